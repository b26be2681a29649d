"""Resolve `--from`, `--to`, `--date-format` and `--time-zone`: the dates to send, and how dates are shown here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from svcctl.api.dates import DATE_FORMATS, Moment, Range, depends_on_zone, parse_zone, resolve
from svcctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates of a request: both ends, and format and zone where the service is to write dates."""

    range: Range
    """The ends as they resolve now; what is sent may still be relative."""
    from_: Moment
    to: Moment | None
    date_format: str | None
    time_zone: str | None
    zone: tzinfo
    """The zone of dates that are shown here."""

    @property
    def label(self) -> str:
        """The range in words, in UTC."""
        until = "" if self.range.end is None else f" to {self.range.end:%Y-%m-%d %H:%M:%S}"
        return f"{self.range.start:%Y-%m-%d %H:%M:%S}{until} (UTC)"


def choose(
    from_: Moment, to: Moment | None, date_format: str | None, time_zone: str | None, *, now: datetime, written: bool
) -> Dates:
    """The dates to send. UsageError when the range cannot be, or a name is unknown.

    `written` says that the service writes dates in the answer: then it gets format and zone as they are. In the JSON
    formats the interface has neither, so ends that depend on the zone become epoch seconds here. A query without an end
    may be sent again after a break and must mean the same then, so its start becomes epoch seconds too.
    """
    if date_format not in (None, *DATE_FORMATS):
        raise UsageError(f"unknown date format '{date_format}'", hint=f"date formats are: {', '.join(DATE_FORMATS)}")
    zone = parse_zone(time_zone or "GMT")
    resolved = resolve(from_, to, now=now, zone=zone)
    if not written and (to is None or (time_zone and (depends_on_zone(from_) or depends_on_zone(to)))):
        from_ = int(resolved.start.timestamp())
        to = None if resolved.end is None else int(resolved.end.timestamp())
    return Dates(resolved, from_, to, date_format, time_zone, zone)
