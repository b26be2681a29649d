"""`svcctl range`: what --from and --to resolve to; no service is asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any

import typer

from svcctl.api.dates import Range, parse_moment, parse_zone, resolve
from svcctl.commands import page_of
from svcctl.context import Context
from svcctl.errors import UsageError
from svcctl.options import FormatOpt, FromOpt, TimeZoneOpt, ToOpt
from svcctl.terminal.records import RANGE

AtOpt = Annotated[
    Any,
    typer.Option("--at", parser=parse_moment, metavar="TIME", help="Use this time instead of now (an absolute date)."),
]


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
    now = svc.now() if at is None else _at(at, svc.now())
    zone = parse_zone(time_zone or svc.profile.time_zone or "GMT")
    resolved = resolve(from_, to, now=now, zone=zone)
    svc.output.records(RANGE, _rows(resolved, zone), svc.format(format, lists=True))


def _at(moment: Any, now: datetime) -> datetime:
    """--at as a moment; a relative date would itself need one, so only absolute dates are allowed."""
    if isinstance(moment, str) and "/" not in moment:
        raise UsageError(f"--at '{moment}' is a relative date", hint="give a date such as 2018-10-08T14:33:12Z")
    return resolve(moment, None, now=now).start


def _rows(resolved: Range, zone: timezone) -> list[list[Any]]:
    assert resolved.end is not None
    ends = (resolved.start, resolved.end)
    seconds = [int(end.timestamp()) for end in ends]
    return [
        ["UTC", *(_text(end.astimezone(UTC)) for end in ends)],
        ["zone", *(_text(end.astimezone(zone)) for end in ends)],
        ["local", *(_text(end.astimezone()) for end in ends)],
        ["seconds", *seconds],
        ["milliseconds", *(second * 1000 for second in seconds)],
        ["length", None, _length(resolved.end - resolved.start)],
    ]


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S %z")


def _length(length: timedelta) -> str:
    """A length as `1d 2h 3m 4s`, without parts that are zero."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")) if count]
    return " ".join(parts) or "0s"
