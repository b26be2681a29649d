"""The pages of help topics. Each page is a template, which is filled with values when the page is printed.

In a template, `@name@` is replaced with a value: a table between blank lines, or words in a paragraph. The functions in
`FILLED` return the values by their names. Paragraphs are wrapped, but lines that begin with a blank are not changed. If
a page is longer than a screen, the names of its sections are added below its title. The page of the query language is
a complete file, which `.ci/generate` writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from svcctl.cli.help import LANGUAGE, PAGE_WIDTH, PARTS, TOPICS

if TYPE_CHECKING:
    from svcctl.api.destinations import Parameter
    from svcctl.dates.operators import Operator

WRITTEN = "query-language"
"""The topic that has a complete page in a file, instead of a template."""
SCREEN_LINES = 24
"""The number of lines of a page that fit a terminal. A longer page names its sections below its title."""
MEMBER_INDENT, MEMBER_WIDTH = 2, 78
"""The indentation and the width of a list of JSON members, on the help page of the topic `service`."""

_FOLDER = Path(__file__).parent


def read(topic: str) -> str:
    """Return the page of a topic, without the newline at its end. The page may be a part of another topic's page."""
    if topic in PARTS:
        whole, begin, end = PARTS[topic]
        text = read(whole)
        return text[text.index(begin) : text.index(end)].strip("\n")
    text = _source(topic)
    if topic == WRITTEN:
        return _with_sections(text)
    values = FILLED[topic]() if topic in FILLED else {}
    blocks = re.sub(r"@([a-z_]+)@", lambda match: values[match[1]], text).split("\n\n")
    wrapped = (block if block.startswith(" ") else "\n".join(_wrapped(block, PAGE_WIDTH)) for block in blocks)
    return _with_sections("\n\n".join(wrapped))


def sections(page: str) -> list[str]:
    """Return the names of the sections of a page, from its headings.

    A heading is a line between blank lines that is not indented and does not end in a full stop or a colon. A heading
    such as `functions: text` gives the name `functions`. A name that appears several times is returned once.
    """
    _, *blocks = page.split("\n\n")
    headings = (block.partition(":")[0] for block in blocks if re.fullmatch(r"\S.*[^.:]", block))
    return list(dict.fromkeys(headings))


def _with_sections(page: str) -> str:
    """Add the names of the sections of a page below its title, if the page is longer than a screen."""
    names = sections(page)
    if len(page.split("\n")) <= SCREEN_LINES or not names:
        return page
    title, _, rest = page.partition("\n\n")
    line = "\n".join(_wrapped(f"Sections: {'; '.join(names)}.", PAGE_WIDTH))
    return f"{title}\n\n{line}\n\n{rest}"


def _source(topic: str) -> str:
    """Return the template of a topic. For the topic WRITTEN, return its page."""
    name = f"{topic}.txt" if topic == WRITTEN else f"templates/{topic}.txt"
    return (_FOLDER / name).read_text(encoding="utf-8").strip("\n")


def contents() -> str:
    """Return a list of the topics, with the first lines of their pages."""
    width = max(map(len, TOPICS))
    titles = [f"  {topic:<{width}}  {_source(topic).splitlines()[0]}" for topic in TOPICS]
    parts = [f"  {name:<{width}}  part of {page}" for name, (page, *_) in PARTS.items()]
    return "\n".join(
        [
            *(
                "Topics of 'svcctl help TOPIC'",
                "",
                *titles,
                *parts,
                "",
                "One function: svcctl help count",
            ),
            "Help of a command: svcctl help COMMAND, such as svcctl help job list",
        ]
    )


def functions() -> list[str]:
    """Return the names of all functions, read from the page that lists them."""
    lines = (line[2:].strip("`") for line in read("functions").split("\n") if line[:2] == "  " and line[2:3] != " ")
    return [
        name.rstrip("`") for name, parenthesis, _ in (line.partition("(") for line in lines) if parenthesis and name
    ]


def of_word(word: str) -> str | None:
    """Return the page about a word of the query language, or about an environment variable; None for other words.

    The page about a function is the function's entry in the page of the language.
    """
    if "_" in word:
        variable = re.compile(rf"\b{re.escape(word.upper())}\b")
        pages = (read(topic) for topic in ("proxy", "environment"))
        return next((page for page in pages if variable.search(page)), None)
    if word in LANGUAGE:
        return read(WRITTEN)
    blocks = read("functions").split("\n\n")
    entries = [block for block in blocks if block.startswith((f"  {word}(", f"  `{word}`("))]
    return "\n\n".join([*entries, "All functions: svcctl help functions"]) if entries else None


def holding(word: str) -> list[str]:
    """Return the topics whose pages contain a word. The topic that contains the word most often comes first."""
    whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    counts = {topic: len(whole.findall(read(topic))) for topic in TOPICS}
    return sorted((topic for topic, count in counts.items() if count), key=lambda topic: -counts[topic])


def table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows of cells as lines of a table.

    The first column is as wide as its longest cell. The other columns share the rest of the line, and their cells are
    wrapped.
    """
    first = max(len(row[0]) for row in rows)
    width = (PAGE_WIDTH - 2 - first) // (len(rows[0]) - 1) - 2
    lines = []
    for name, *cells in rows:
        for at, parts in enumerate(zip_longest(*(_wrapped(cell, width) for cell in cells), fillvalue="")):
            rest = "".join(f"  {part:<{width}}" for part in parts)
            lines.append(f"  {name if at == 0 else '':<{first}}{rest}".rstrip())
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


def _listed(names: Iterable[str], last: str) -> str:
    """Join names with commas, and the last name with the word `last`: `a, b and c` if the word is `and`."""
    *others, final = names
    return f"{', '.join(others)} {last} {final}"


def _dates() -> dict[str, str]:
    from svcctl.dates.operators import OPERATORS
    from svcctl.dates.shorthand import ALL_OPERATORS, TYPED

    def operators(rows: Iterable[Operator]) -> str:
        return table([("", "in --from", "in --to"), *((row.name, row.from_meaning, row.to_meaning) for row in rows)])

    zoned = _listed((row.name for row in ALL_OPERATORS if row.zoned), "and")
    return {
        "operators": operators(OPERATORS),
        "typed": operators(TYPED),
        "zone_dates": table(
            [
                ("typed", f"absolute dates without an offset, {zoned}"),
                ("printed", "dates in csv, tsv, xml, xls and tables (JSON has epoch milliseconds)"),
                ("in files", "times without a zone in files to load ('svcctl help loading')"),
            ]
        ),
    }


def _formats() -> dict[str, str]:
    from svcctl.api.follow import MAX_REMEMBERED
    from svcctl.api.response import MODES
    from svcctl.api.retry import MAX_DELAY
    from svcctl.dates.lengths import length_text
    from svcctl.io.losses import MAX_CELL_CHARS, MAX_SHEET_COLUMNS
    from svcctl.io.spreadsheet import MAX_ROWS
    from svcctl.terminal.external_sort import RUN_BYTES
    from svcctl.terminal.formats import AUTO, FORMATS, ROWS
    from svcctl.words import size_text

    rows = FORMATS.values()
    auto = (AUTO, "table on a terminal, csv in a pipe or a file (the default)")
    return {
        "formats": table([auto, *((row.name, row.meaning) for row in rows)]),
        "binary": _listed((row.name for row in rows if row.binary), "and"),
        "lists": _listed((row.name for row in rows if row.lists), "or"),
        "own": _listed((row.name for row in rows if not row.raw), "and"),
        "served": _listed((row.name for row in rows if not row.arranges), "and"),
        "endings": table([(f".{end}", row.name) for row in rows for end in row.endings]),
        "rows": ROWS,
        "cell": f"{MAX_CELL_CHARS:,}",
        "sheet_rows": f"{MAX_ROWS:,}",
        "sheet_columns": f"{MAX_SHEET_COLUMNS:,}",
        "run": size_text(RUN_BYTES),
        "remembered": str(MAX_REMEMBERED),
        "marked": _listed((mode.name for mode in MODES.values() if mode.marks_end), "and"),
        "delay": length_text(MAX_DELAY),
    }


def _profiles() -> dict[str, str]:
    from svcctl.profiles.settings import MAPPINGS, PROFILE_SETTINGS

    about = {"headers": "name of a header", "paths": "path of a request"}
    renamed = [
        (f"{group}.NAME", f"{about[group]}, if your service uses another one; NAME is {_listed(keys, 'or')}")
        for group, keys in MAPPINGS.items()
    ]
    return {"settings": table([*((row.name, row.explanation) for row in PROFILE_SETTINGS.values()), *renamed])}


_SEE = {
    "SVCCTL_DESTINATIONS_ALLOWED": " ('svcctl help destinations')",
    "SVCCTL_SERVICE_STATE": " ('svcctl help cluster')",
}
"""References to help topics, by the name of an environment variable. They follow the explanation of the variable."""


def _environment() -> dict[str, str]:
    from svcctl.api.wire.proxies import ALL_PROXY, DEFAULT_PORTS, HTTPS_PROXY, NO_PROXY
    from svcctl.exports.state import STATE_ENVIRONMENT
    from svcctl.profiles.settings import CONFIG_ENVIRONMENT, PROFILE_ENVIRONMENT, PROFILE_SETTINGS
    from svcctl.service.process import DATA_ENVIRONMENT
    from svcctl.service.settings import SERVICE_SETTINGS
    from svcctl.terminal.pager import VARIABLE

    variables = [
        (PROFILE_ENVIRONMENT, "profile to use ('svcctl help profiles')"),
        (CONFIG_ENVIRONMENT, "file in which your profiles are stored"),
        *((row.environment, row.explanation) for row in PROFILE_SETTINGS.values() if row.environment),
        (DATA_ENVIRONMENT, "directory of the local service's data"),
        (STATE_ENVIRONMENT, "directory in which exports store their progress (--state)"),
        *((row.name, row.explanation + _SEE.get(row.name, "")) for row in SERVICE_SETTINGS),
        (VARIABLE, "pager for long output, instead of the one in PAGER; empty or cat for no pager"),
        ("SSL_CERT_FILE", "file of CA certificates to trust, if the profile has no ca_bundle"),
        ("SSL_CERT_DIR", "directory of CA certificates, prepared with 'openssl rehash'"),
        ("NO_COLOR", "any value that is not empty turns colours off"),
        ("CLICOLOR_FORCE", "any value except 0 turns colours on, even in a pipe"),
        ("CLICOLOR", "0 turns colours off on a terminal"),
        ("COLUMNS", "width of the output in characters, instead of the width of the terminal"),
        ("LINES", "height of the output in lines, instead of the height of the terminal"),
    ]
    proxies = [
        (HTTPS_PROXY, "proxy of https services"),
        (ALL_PROXY, "proxy, if https_proxy and HTTPS_PROXY are not set"),
        (NO_PROXY, "hosts to reach without a proxy"),
    ]
    return {
        "variables": table(variables),
        "proxies": table([(", ".join(names), about) for names, about in proxies]),
        "schemes": table([(name, f"port {port}") for name, port in DEFAULT_PORTS.items()]),
    }


def _exit_codes() -> dict[str, str]:
    from svcctl.api.retry import NOT_DONE, STATUSES
    from svcctl.errors import EXIT_CODES

    return {
        "exit_codes": table([(f"{row.code:>3}", row.meaning) for row in EXIT_CODES]),
        "retried": _listed(map(str, sorted(STATUSES)), "or"),
        "not_done": _listed(map(str, sorted(NOT_DONE)), "and"),
    }


def _destinations() -> dict[str, str]:
    from svcctl.api.destinations import TYPES

    def keys(parameters: Iterable[Parameter]) -> list[tuple[str, str]]:
        return [(row.key, "required: " * row.required + row.about) for row in parameters]

    rows = TYPES.values()
    return {
        "parameters": "\n\n".join(f"{row.name}\n\n{table(keys(row.parameters))}" for row in rows),
        "local": table([(row.name, row.local) for row in rows]),
    }


def _service() -> dict[str, str]:
    from svcctl.api.loads import LOAD_OPTIONS

    lines = _wrapped(f"{_listed((*LOAD_OPTIONS, 'loadId', 'attempt'), 'and')}.", MEMBER_WIDTH)
    return {"load_options": "\n".join(" " * MEMBER_INDENT + line for line in lines)}


FILLED: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "dates": _dates,
    "formats": _formats,
    "profiles": _profiles,
    "environment": _environment,
    "exit-codes": _exit_codes,
    "destinations": _destinations,
    "service": _service,
}
"""The functions that return the values for a topic's template. They import other modules only when they are called."""
