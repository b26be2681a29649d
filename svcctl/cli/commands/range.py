"""`svcctl range`: show the dates that --from and --to mean. No service is needed."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any

import typer

from svcctl.cli.commands import page_of
from svcctl.cli.context import Context
from svcctl.cli.options import FormatOpt, FromOpt, TimeZoneOpt, ToOpt
from svcctl.dates.epochs import to_ms, to_seconds
from svcctl.dates.lengths import length_text
from svcctl.dates.operators import operator_of
from svcctl.dates.range import Range, dates_of, start_of
from svcctl.dates.shorthand import ALL_OPERATORS, parse_moment
from svcctl.dates.zones import Zone
from svcctl.errors import UsageError
from svcctl.terminal.records import row_listing

AtOpt = Annotated[
    Any,
    typer.Option("--at", parser=parse_moment, metavar="TIME", help="Use this time instead of now (an absolute date)."),
]

RANGE = row_listing("as", "from", "to")


def register(app: typer.Typer) -> None:
    app.command("range", help=page_of("range", preview))(preview)


def preview(
    ctx: typer.Context,
    from_: FromOpt,
    to: ToOpt = "now",
    time_zone: TimeZoneOpt = None,
    at: AtOpt = None,
    format: FormatOpt = None,
) -> None:
    """In --from a relative date counts back from now; in --to it counts forward from --from. `--from 2h` is two hours
    ago. The range includes its start and excludes its end.
    """
    svc: Context = ctx.obj
    zone = time_zone or svc.profile.time_zone
    now = svc.now() if at is None else _at(at, zone, svc.now())
    chosen = dates_of(from_, to, None, zone, now=now, written=False)
    for text in chosen.notes(terminal=False):
        svc.diagnostics.note(text)
    svc.output.records(RANGE, _rows(chosen.range, chosen.clocks), svc.format(format, lists=True))


def _at(moment: Any, zone: Zone | None, now: datetime) -> datetime:
    """Return the moment of --at. Raises UsageError for a relative date."""
    if isinstance(moment, str) and operator_of(moment, ALL_OPERATORS) is not None:
        raise UsageError(f"--at '{moment}' is a relative date", hint="give a date such as 2018-10-08T14:33:12Z")
    return start_of(moment, zone, now=now)


def _rows(resolved: Range, zone: tzinfo) -> list[list[Any]]:
    assert resolved.end is not None
    ends = (resolved.start, resolved.end)
    return [
        ["UTC", *(_text(end.astimezone(UTC)) for end in ends)],
        ["zone", *(_text(end.astimezone(zone)) for end in ends)],
        ["local", *(_text(end.astimezone()) for end in ends)],
        ["seconds", *map(to_seconds, ends)],
        ["milliseconds", *map(to_ms, ends)],
        ["length", None, length_text((resolved.end - resolved.start).total_seconds())],
    ]


def _text(moment: datetime) -> str:
    fraction = f".{moment.microsecond // 1000:03}" if moment.microsecond else ""
    return moment.strftime(f"%Y-%m-%d %H:%M:%S{fraction} %z")
