"""Make the pages of the help topics from their templates and the tables of the code, and those of commands.

    python -m svcctl.cli.help.pages

writes them all; the pages of commands and the manual pages come from the command tree. In a template `@name@` stands
for what `FILLED` has under that name: a table between blank lines, or words in a paragraph. Paragraphs are wrapped;
lines that begin with a blank stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any

from svcctl.api.destinations import TYPES, Parameter
from svcctl.api.follow import MAX_REMEMBERED
from svcctl.cli.commands import NOUNS
from svcctl.cli.completion.scripts import whole_tree
from svcctl.cli.help import WIDTH, manual
from svcctl.cli.help.command import Page, described, text
from svcctl.cli.main import HIDDEN
from svcctl.dates.operators import OPERATORS, Operator
from svcctl.dates.shorthand import EVERY, TYPED
from svcctl.exports.state import STATE_ENVIRONMENT
from svcctl.profiles.settings import CONFIG_ENVIRONMENT, MAPPINGS, PROFILE_ENVIRONMENT, SETTINGS
from svcctl.service.process import DATA_ENVIRONMENT
from svcctl.service.settings import SERVICE_SETTINGS
from svcctl.terminal.diagnostics import EXIT_CODES
from svcctl.terminal.formats import AUTO, FORMATS, ROWS
from svcctl.terminal.ordering import RUN_BYTES
from svcctl.terminal.pager import VARIABLE

DIRECTORY = Path(__file__).parent
TEMPLATES = DIRECTORY / "templates"


def build(topic: str) -> str:
    """The page of a topic as its file should be."""
    template = (TEMPLATES / f"{topic}.txt").read_text(encoding="utf-8")
    blocks = re.sub(r"@([a-z_]+)@", lambda match: FILLED[match[1]](), template).strip("\n").split("\n\n")
    return "\n\n".join(block if block.startswith(" ") else "\n".join(_wrapped(block, WIDTH)) for block in blocks) + "\n"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells: the first column is as wide as it must be, the others share the rest and wrap there."""
    first = max(len(row[0]) for row in rows)
    width = (WIDTH - 2 - first) // (len(rows[0]) - 1) - 2
    lines = []
    for name, *cells in rows:
        for at, parts in enumerate(zip_longest(*(_wrapped(cell, width) for cell in cells), fillvalue="")):
            rest = "".join(f"  {part:<{width}}" for part in parts)
            lines.append(f"  {name if at == 0 else '':<{first}}{rest}".rstrip())
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


def _listed(names: Sequence[str], last: str) -> str:
    """`a, b and c`, where `last` is `and`."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]])


def _operators(rows: Sequence[Operator]) -> str:
    return table([("", "in --from", "in --to"), *((row.name, row.from_meaning, row.to_meaning) for row in rows)])


def _formats() -> str:
    auto = (AUTO, "table on a terminal, csv in a pipe or a file (the default)")
    return table([auto, *((row.name, row.meaning) for row in FORMATS.values())])


def _settings() -> str:
    about = {"headers": "names of headers", "paths": "paths of operations"}
    renamed = [(f"{group}.…", f"{about[group]}, if they differ: {', '.join(keys)}") for group, keys in MAPPINGS.items()]
    return table([*((row.name, row.meaning) for row in SETTINGS.values()), *renamed])


def _variables() -> str:
    return table(
        [
            (PROFILE_ENVIRONMENT, "profile to use"),
            (CONFIG_ENVIRONMENT, "profiles file to use"),
            *((row.environment, row.meaning) for row in SETTINGS.values() if row.environment),
            (DATA_ENVIRONMENT, "directory of the local service's data"),
            (STATE_ENVIRONMENT, "directory of the states of exports (--state)"),
            *((row.environment, row.explained) for row in SERVICE_SETTINGS),
            (VARIABLE, "pager for long output on a terminal, before PAGER; cat or nothing for none (--no-pager)"),
            ("NO_COLOR", "no colour"),
            ("CLICOLOR_FORCE", "colour in a pipe too"),
        ]
    )


def _parameters() -> str:
    def rows(parameters: Iterable[Parameter]) -> list[tuple[str, str]]:
        return [(row.key, row.meaning + ", required" * row.required + ", secret" * row.secret) for row in parameters]

    return "\n\n".join(f"{kind.name}\n\n{table(rows(kind.parameters))}" for kind in TYPES.values())


FILLED: Mapping[str, Callable[[], str]] = {
    "operators": lambda: _operators(OPERATORS),
    "typed": lambda: _operators(TYPED),
    "zoned": lambda: _listed([row.name for row in EVERY if row.zoned], "and"),
    "formats": _formats,
    "binary": lambda: _listed([row.name for row in FORMATS.values() if row.binary], "and"),
    "lists": lambda: _listed([row.name for row in FORMATS.values() if row.lists], "or"),
    "own": lambda: _listed([row.name for row in FORMATS.values() if not row.raw], "and"),
    "served": lambda: _listed([row.name for row in FORMATS.values() if not row.arranges], "and"),
    "endings": lambda: table([(f".{end}", row.name) for row in FORMATS.values() for end in row.endings]),
    "rows": lambda: ROWS,
    "run": lambda: f"{RUN_BYTES >> 20} MiB",
    "settings": _settings,
    "variables": _variables,
    "exit_codes": lambda: table([(f"{row.code:>3}", row.meaning) for row in EXIT_CODES]),
    "parameters": _parameters,
    "remembered": lambda: str(MAX_REMEMBERED),
    "local": lambda: table([(row.name, row.local) for row in TYPES.values()]),
}
"""What a template may ask for."""


def commands() -> Iterator[Page]:
    """The pages of all commands, each noun's before those of its verbs."""

    def visit(command: Any, path: str) -> Iterator[Page]:
        inner = {name: each for name, each in getattr(command, "commands", {}).items() if not each.hidden}
        for name, each in inner.items():
            verbs = {
                other.removeprefix(f"{name} "): one for other, one in inner.items() if other.startswith(f"{name} ")
            }
            yield described(each, f"{path} {name}", verbs)
            yield from visit(each, f"{path} {name}")

    tree = whole_tree()
    order = [*NOUNS, *HIDDEN]
    tree.commands = dict(sorted(tree.commands.items(), key=lambda item: order.index(item[0].partition(" ")[0])))
    yield described(tree, "svcctl")
    yield from visit(tree, "svcctl")


def of_commands() -> dict[str, str]:
    """The files of the commands' pages and of the manual, by their names in the directory."""
    found = list(commands())
    return {f"commands/{page.path.replace(' ', '-')}.txt": text(page) + "\n" for page in found} | manual.pages(found)


def main() -> None:
    for template in TEMPLATES.iterdir():
        (DIRECTORY / template.name).write_text(build(template.stem), encoding="utf-8")
    files = of_commands()
    for folder in ("commands", "man"):
        for old in (DIRECTORY / folder).glob("*"):
            old.unlink()
    for name, content in files.items():
        (DIRECTORY / name).parent.mkdir(exist_ok=True)
        (DIRECTORY / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
