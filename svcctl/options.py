"""Option types shared by commands: each option is declared once, and a signature reads as the command's synopsis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.api.dates import Moment, parse_moment, parse_zone
from svcctl.completion import words
from svcctl.completion.words import FILES, QUERY, Completes


def _moment(text: str) -> Moment:
    return parse_moment(text)


def _zone(text: str) -> str:
    parse_zone(text)
    return text


# Typer wants one class here; a parsed date is an int or a str.
FromOpt = Annotated[
    Any,
    typer.Option(
        "--from",
        parser=_moment,
        metavar="DATE",
        help="Start of the range; 1h is an hour ago (see 'svcctl help dates').",
    ),
    Completes(words=words.start_dates),
]
ToOpt = Annotated[
    Any,
    typer.Option("--to", parser=_moment, metavar="DATE", help="End of the range, not included."),
    Completes(words=words.end_dates),
]
TimeZoneOpt = Annotated[
    str | None,
    typer.Option("--time-zone", parser=_zone, metavar="GMT+N", help="Zone of relative dates and of printed ones."),
    Completes(words=words.time_zones),
]
QueryTextArg = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT|-]", help="The query; - reads it from standard input."),
    Completes(QUERY),
]
QueryFileOpt = Annotated[
    Path | None, typer.Option("--file", "-F", metavar="FILE", help="Read the query from FILE."), Completes(FILES)
]
_FORMAT = typer.Option(
    "--format", "-f", metavar="FORMAT", help="Output format; auto is a table on a terminal, csv in a pipe."
)
FormatOpt = Annotated[str | None, _FORMAT, Completes(words=words.list_formats)]
QueryFormatOpt = Annotated[str | None, _FORMAT, Completes(words=words.formats)]
OutputOpt = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, whole or not at all; .gz compresses."),
    Completes(FILES),
]
ForceOpt = Annotated[bool, typer.Option("--force", help="Replace the file when it exists.")]
YesOpt = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
