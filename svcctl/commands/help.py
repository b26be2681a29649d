"""`svcctl help TOPIC`: what holds for all commands, told once, in plain text of at most 80 columns.

The README's reference holds the same pages between markers. Write it anew with

    python -m svcctl.commands.help README.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from svcctl.api.dates import OPERATORS
from svcctl.completion.words import Completes
from svcctl.context import Context
from svcctl.errors import UsageError
from svcctl.local_service import DATA_ENVIRONMENT, PROCESS_SETTINGS
from svcctl.profiles.settings import CONFIG_ENVIRONMENT, PROFILE_ENVIRONMENT, SETTINGS
from svcctl.terminal.diagnostics import EXIT_CODES
from svcctl.terminal.formats import FORMATS

WIDTH = 80


def register(app: typer.Typer) -> None:
    app.command("help")(help_)


TopicArg = Annotated[str | None, typer.Argument(metavar="[TOPIC]"), Completes(words=lambda: TOPICS)]


def help_(ctx: typer.Context, topic: TopicArg = None) -> None:
    """Explain a topic: dates, formats, profiles, and more."""
    svc: Context = ctx.obj
    if topic is None:
        titles = _columns([(name, page().partition("\n")[0]) for name, page in TOPICS.items()])
        svc.output.text(_page("Topics of 'svcctl help TOPIC'", titles, "A command explains itself with --help."))
        return
    if topic not in TOPICS:
        raise UsageError(
            f"no help topic '{topic}'",
            hint=f"topics are: {', '.join(TOPICS)}; a command explains itself: 'svcctl {topic} --help'",
        )
    svc.output.text(TOPICS[topic]())


def _page(title: str, *blocks: str) -> str:
    return "\n\n".join((title, *blocks))


def _text(text: str) -> str:
    """Paragraphs, wrapped."""
    return "\n\n".join("\n".join(_wrapped(paragraph, WIDTH)) for paragraph in text.strip().split("\n\n"))


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells: the first column is as wide as it must be, the others share what is left and wrap there."""
    first = max(len(row[0]) for row in rows)
    width = (WIDTH - 2 - first) // (len(rows[0]) - 1) - 2
    lines = []
    for name, *cells in rows:
        for at, parts in enumerate(zip_longest(*(_wrapped(cell, width) for cell in cells), fillvalue="")):
            rest = "".join(f"  {part:<{width}}" for part in parts)
            lines.append(f"  {name if at == 0 else '':<{first}}{rest}".rstrip())
    return "\n".join(lines)


def _dates() -> str:
    *others, last = [row.name for row in OPERATORS if row.zoned]
    return _page(
        "Dates of --from and --to",
        _text("""
            A range holds its start and not its end: neighbouring ranges neither lose nor repeat rows. --from must be
            given; --to is now unless given, and may not be before --from.

            Relative dates count back from now in --from: --from 2h is two hours ago, never later than now. In --to
            they count forward from --from: --from 5d --to 2d is a range of two days. Yesterday is --from 1ad --to 1d.
        """),
        _columns(
            [
                ("", "in --from", "in --to"),
                *((row.name, row.from_meaning, row.to_meaning) for row in OPERATORS),
            ]
        ),
        _text(f"""
            Absolute dates are 31/01/2024 10:00:00 (day first, UTC), ISO 8601 as 2024-01-31, 2024-01-31T10:00 or
            2024-01-31T10:00:00+02:00 (UTC without an offset), and epoch seconds. Milliseconds are refused.

            --time-zone GMT+2 (two hours east of Greenwich) moves {", ".join(others)} and {last}, and the
            dates that csv, tsv, xml, xls and tables print. Absolute dates stay as they are. See what a pair comes to:
        """),
        "  svcctl range --from 1ad --to 1d --time-zone GMT+2",
    )


def _formats() -> str:
    lists = ", ".join(row.name for row in FORMATS.values() if row.lists)
    return _page(
        "Formats of --format",
        _columns(
            [
                ("auto", "table on a terminal, csv in a pipe or a file (the default)"),
                *((row.name, row.meaning) for row in FORMATS.values()),
            ]
        ),
        _text(f"""
            All but table, vertical and chart are the service's own bytes, passed on as they arrive. Binary formats
            (msgpack, xls) are not written to a terminal. Lists (profiles, jobs, …) take {lists}.

            A chart is a bar a row; rows that begin with a date, as those of 'group every 10m' do, are a line over
            time, one line for each value of the other columns. The first number that is not needed to tell the rows
            apart is what is drawn; --columns, which table, vertical and chart take, picks others. In a pipe, and
            without colour, a chart is plain text.
        """),
    )


def _profiles() -> str:
    return _page(
        "Profiles",
        _text("""
            A profile says where a service is and who you are there. Profiles are kept in a file of mode 0600, which is
            refused when others can read it. The profile 'local' is built in: it is the service of one's own, started
            when it is needed; 'local-reseller' has a reseller's credentials there.
        """),
        "  svcctl profile set prod        asks for what is missing\n"
        "  svcctl profile check prod      tries it, step by step\n"
        "  svcctl -p prod query 'from auth.all' --from 1h\n"
        "  svcctl profile use prod        makes it the default",
        _columns(
            [
                *((row.name, row.meaning) for row in SETTINGS.values()),
                ("headers.…", "names of headers where they differ: apikey, sign, timestamp, reseller_apikey"),
                ("paths.…", "paths of operations where they differ: query, job, jobs, domain"),
            ]
        ),
        _text("""
            A secret is a value, a file (api_secret_file), or a command that prints it (api_secret_command); it is
            never an option's value, and it is read only when it is used.

            A setting is what the flag says, else the environment, else the profile, else the default. A profile named
            with --profile is a flag: then the environment does not change where requests go or who signs them.
            'svcctl profile show' tells every value and its source.
        """),
    )


def _environment() -> str:
    return _page(
        "Environment",
        _columns(
            [
                (PROFILE_ENVIRONMENT, "profile to use"),
                (CONFIG_ENVIRONMENT, "profiles file to use"),
                *((row.environment, row.meaning) for row in SETTINGS.values() if row.environment),
                (DATA_ENVIRONMENT, "directory of the local service's data"),
                *((row.environment, f"{row.meaning} (default {row.default:g})") for row in PROCESS_SETTINGS),
                ("NO_COLOR", "no colour"),
                ("CLICOLOR_FORCE", "colour in a pipe, too"),
            ]
        ),
        "With SVCCTL_BASE_URL and credentials set, no profile is needed.\n"
        "The local service reads its variables when it starts.",
    )


def _exit_codes() -> str:
    return _page("Exit codes", _columns([(f"{row.code:>3}", row.meaning) for row in EXIT_CODES]))


def _query_language() -> str:
    """A page kept as text: the language is the service's, which need not be installed here."""
    from importlib import resources

    return resources.files("svcctl").joinpath("pages", "query-language.txt").read_text(encoding="utf-8").rstrip("\n")


def _destinations() -> str:
    from svcctl.api.destinations import TYPES

    def keys(kind: str) -> str:
        rows = [
            (parameter.key, parameter.meaning + ", required" * parameter.required + ", secret" * parameter.secret)
            for parameter in TYPES[kind].parameters
        ]
        return f"{kind}\n\n{_columns(rows)}"

    return _page(
        "Destinations of --dest",
        "  svcctl query 'from auth.all' --from 1d --dest donothing",
        _text("""
            Starts a job that sends the rows to a destination, and prints the job instead of the rows. With --follow the
            job also sends new events until it is stopped; see 'svcctl job'. Set the parameters of the destination with
            --dest-param KEY=VALUE, once per key.

            Never put a secret on the command line: KEY=@FILE reads a value from a file, and --dest-json FILE reads the
            whole destination ('-' for standard input): {"type": "kafka", "params": {"topic": "auth", …}}. Keys that are
            not listed here are sent with a warning.
        """),
        *(keys(kind) for kind in TYPES),
        "What the local service does with the rows",
        _columns([(kind, row.local) for kind, row in TYPES.items()]),
    )


TOPICS: dict[str, Callable[[], str]] = {
    "dates": _dates,
    "formats": _formats,
    "profiles": _profiles,
    "environment": _environment,
    "exit-codes": _exit_codes,
    "query-language": _query_language,
    "destinations": _destinations,
}

_MARKED = re.compile(r"(<!-- svcctl help ([a-z-]+) -->\n).*?(<!-- end of help -->)", re.DOTALL)


def with_topics(text: str) -> str:
    """A document with the pages of the topics between its markers as they are now."""
    return _MARKED.sub(lambda match: f"{match[1]}```text\n{TOPICS[match[2]]()}\n```\n{match[3]}", text)


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(with_topics(document.read_text(encoding="utf-8")), encoding="utf-8")
