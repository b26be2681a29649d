"""The date range of a query: the moments of `--from` and `--to`, and the dates, date format and zone in the request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import NamedTuple

from svcctl.dates.epochs import to_seconds
from svcctl.dates.lengths import UNITS, length_text
from svcctl.dates.operators import (
    DATE_FORMATS,
    OPERATORS,
    Moment,
    Operator,
    midnight,
    moment_text,
    operator_of,
    plus,
    resolve_one,
)
from svcctl.dates.shorthand import ALL_OPERATORS, LocalTime, Typed, depends_on_zone, in_zone
from svcctl.dates.zones import GMT, LocalZone, Zone
from svcctl.errors import RangeEndsFirst, UsageError

_LONG_AGO = 10**6
"""A number of epoch seconds in January 1970.

A typed number that is closer to 0 is probably a length of time without its unit, such as 5 for 5m.
"""


class Range(NamedTuple):
    """A half-open date range, `start <= eventdate < end`, in UTC. `end` is None for a query without an end."""

    start: datetime
    end: datetime | None


def resolve(
    start: Moment,
    end: Moment | None,
    *,
    now: datetime,
    zone: tzinfo = UTC,
    operators: Sequence[Operator] = OPERATORS,
) -> Range:
    """Return the range that two dates mean at the moment `now`. Operators that name a day use the days of `zone`.

    `now` has a time zone. Epoch seconds may have a fraction, which is rounded down to milliseconds, because the dates
    of events have milliseconds. For operators, `now` is rounded down to whole seconds. Raises UsageError if a date is
    invalid or outside the calendar, or if the end is before the start. An empty range is allowed.
    """
    now = now.astimezone(zone).replace(microsecond=0)
    first = resolve_one(start, zone, operators, lambda operator, n: operator.in_from(now, n))
    begin = first.astimezone(UTC)
    if end is None:
        return Range(begin, None)
    last = resolve_one(end, zone, operators, lambda operator, n: operator.in_to(now, first, n)).astimezone(UTC)
    if last < begin:
        raise RangeEndsFirst(
            f"the range ends before it starts: from {moment_text(begin)} to {moment_text(last)} (UTC)",
            reason="range-ends-first",
        )
    return Range(begin, last)


def start_of(typed: Typed, zone: Zone | None, *, now: datetime) -> datetime:
    """Return the moment of one typed date, in UTC. A relative date counts back from `now`.

    Raises UsageError for an invalid date.
    """
    moment = in_zone(typed, zone)
    return resolve(moment, None, now=now, zone=(zone or GMT).clocks, operators=ALL_OPERATORS).start


class RequestDates(NamedTuple):
    """The dates of a request: the start and the end of the range, and the date format and zone of the answer."""

    range: Range
    """The range as absolute moments. The dates in the request, `from_` and `to`, may be relative."""
    from_: Moment
    to: Moment | None
    date_format: str | None
    time_zone: str | None
    """The zone in the request, such as GMT+2."""
    zone: Zone | None
    """The zone in which svcctl shows dates; None if the zone is UTC."""
    plain: bool
    """Whether the range is clear without an explanation.

    The range is not clear if `to` counts from `from`. It is also not clear if there is a zone, but `from` is a number
    or has its own offset.
    """
    changes: tuple[int, ...] = ()
    """The moments, in epoch seconds, at which the clocks of the zone change within the range.

    If the range has no end, only the changes of about one year are listed.
    """
    reading: str | None = None
    """A note on the zone of typed dates without an offset, if a profile or a variable sets the zone."""
    cut: str | None = None
    """A note if the range ends in the future, but the query does not wait for this end."""
    slip: str | None = None
    """A note if the start is probably a length of time without its unit, such as 5 for 5m."""
    short: str | None = None
    """A note if the end excludes the last second of a day."""
    other_pair: str | None = None
    """A note if the end was probably meant to count back from now."""

    @property
    def clocks(self) -> tzinfo:
        """The time zone in which dates are shown, as a tzinfo."""
        return (self.zone or GMT).clocks

    def notes(self, *, terminal: bool) -> Iterator[str]:
        """Yield the notes on the dates. On a terminal, the first note is `summary` if the range is not `plain`."""
        if terminal and not self.plain:
            yield self.summary
        yield from filter(None, (self.reading, self.slip, self.short, self.other_pair, self.cut))

    def offset_note(self, *, text: bool = True) -> str | None:
        """Return a note if the clocks change within the range.

        In this case, the service writes all dates with the offset that the zone has at the start of the range.

        If `text` is true, dates are written as texts. The note then recommends the date format iso, in which each date
        includes its offset. The recommendation is omitted if the request already has the format iso.
        """
        if self.zone is None or not self.changes:
            return None
        when = "during the year" if self.range.end is None else "within the range"
        offset = self.zone.offset_name(self.range.start.timestamp())
        return self.zone.change_note(when, f"all dates are written in {offset}", text and self.date_format != "iso")

    @property
    def spans(self) -> list[tuple[Moment, Moment | None, str | None]]:
        """The parts of the range between clock changes. Each part has a start, an end and a zone for one request.

        If the range ends at `now`, the last part also ends at `now`, so that the service's clock decides when the range
        ends.
        """
        if self.zone is None or self.range.end is None or not self.changes:
            return [(self.from_, self.to, self.time_zone)]
        end = self.to if self.to == "now" else to_seconds(self.range.end)
        edges: list[Moment] = [to_seconds(self.range.start), *self.changes, end]
        starts = (self.range.start.timestamp(), *self.changes)
        return [(*span, self.zone.offset_name(start)) for span, start in zip(pairwise(edges), starts, strict=True)]

    @property
    def label(self) -> str:
        """The range as text, in UTC."""
        until = "" if self.range.end is None else f" to {moment_text(self.range.end)}"
        return f"{moment_text(self.range.start)}{until} (UTC)"

    @property
    def summary(self) -> str:
        """The range in its zone, and the length of the range: `2024-01-31 10:00 … 2024-02-01 10:00 UTC (1d)`."""
        texts = _in_clocks(self.clocks, self.range.start, self.range.end, offset=" %z" if self.changes else "")
        if self.range.end is None:
            return f"{texts[0]} … {_name(self.zone)}"
        length = length_text((self.range.end - self.range.start).total_seconds())
        return f"{texts[0]} … {texts[1]} {_name(self.zone)} ({length})"


def _name(zone: Zone | None) -> str:
    return "UTC" if zone is None or zone == GMT else zone.name


def _in_clocks(clocks: tzinfo, *moments: datetime | None, offset: str = "") -> list[str]:
    """Return moments as texts in a time zone, all with the same precision: minutes, seconds or milliseconds.

    `offset` is a strftime pattern that is appended to each text.
    """
    local_times = [moment.astimezone(clocks) for moment in moments if moment is not None]
    fine = any(moment.microsecond for moment in local_times)
    spec = "milliseconds" if fine else "seconds" if any(moment.second for moment in local_times) else "minutes"
    return [moment.replace(tzinfo=None).isoformat(" ", spec) + moment.strftime(offset) for moment in local_times]


def dates_of(
    from_: Typed,
    to: Typed | None,
    date_format: str | None,
    zone: Zone | None,
    *,
    now: datetime,
    written: bool,
    waits: bool = True,
    resent: bool = False,
) -> RequestDates:
    """Return the dates to send for a typed range. Raises UsageError for an impossible range or an unknown date format.

    A date that the HTTP interface cannot express is sent as epoch seconds. An absolute date in a zone is also sent as
    epoch seconds. In the following cases, the start and the end are both sent as epoch seconds:

    - The request may be sent again after a lost connection (`resent`), and must mean the same range each time.
    - A date depends on the zone, but the answer will contain no dates as texts (`written` is false). Then the request
      cannot contain a zone. The JSON formats are an example.
    - A date depends on the zone, and the offset of the zone changes. The service only knows fixed offsets.

    Without `resent`, an end of `now` is sent as `now`, so that the service's clock decides when the range ends.

    A service waits for an end that is in the future. If `waits` is false, a future end is sent as `now`, and a future
    start raises UsageError.
    """
    if date_format not in (None, *DATE_FORMATS):
        raise UsageError(f"unknown date format '{date_format}'", hint=f"date formats are: {', '.join(DATE_FORMATS)}")
    reading = read_in(zone, now, {"--from": from_, "--to": to})
    offset_typed = isinstance(from_, int | float)
    from_, to = in_zone(from_, zone), None if to is None else in_zone(to, zone)
    clocks = (zone or GMT).clocks
    to, cut = (to, None) if waits else _until_now(from_, to, zone, now)
    resolved = resolve(from_, to, now=now, zone=clocks, operators=ALL_OPERATORS)
    operator = operator_of(to, ALL_OPERATORS)
    short = last_second(to, resolved, clocks)
    other_pair = counted_back(from_, to, resolved, now=now, zone=clocks)
    plain = (operator is None or operator.plain) and not (zone and offset_typed)
    by_zone = zone is not None and (depends_on_zone(from_) or depends_on_zone(to))
    slip = None
    if isinstance(from_, int | float) and offset_typed and 0 < abs(from_) < _LONG_AGO:
        slip = f"--from {from_} is {resolved.start:%Y-%m-%d %H:%M:%S} UTC; write {abs(from_)}m for minutes"
    fixed = resent or (not written and by_zone) or (zone is not None and by_zone and not zone.is_fixed)
    if fixed or _is_typed(from_):
        from_ = to_seconds(resolved.start)
    if resolved.end is not None and (resent or to != "now") and (fixed or _is_typed(to)):
        to = to_seconds(resolved.end)
    sent_zone = zone.offset_name(resolved.start.timestamp()) if zone else None
    changes = _changes(zone, resolved, now) if zone else ()
    return RequestDates(
        resolved, from_, to, date_format, sent_zone, zone, plain, changes, reading, cut, slip, short, other_pair
    )


def read_in(zone: Zone | None, now: datetime, typed: Mapping[str, Typed | None]) -> str | None:
    """Return a note on the zone of typed dates without an offset, if a profile or a variable sets the zone.

    `typed` has the typed date of each option, by the name of the option.
    """
    local = {name: date for name, date in typed.items() if isinstance(date, LocalTime)}
    if not local or zone is None or not zone.source:
        return None
    moments = [moment_text(start_of(date, zone, now=now)) for date in local.values()]
    return f"{' and '.join(local)} in {zone.name} ({zone.source}): {' to '.join(moments)} UTC"


def _until_now(from_: Moment, to: Moment | None, zone: Zone | None, now: datetime) -> tuple[Moment | None, str | None]:
    """Return the end to send for a query that does not wait. An end in the future is sent as `now`.

    Also returns a note if the typed end is in the future. Raises UsageError for a start in the future.
    """
    clocks = (zone or GMT).clocks
    start = resolve(from_, None, now=now, zone=clocks, operators=ALL_OPERATORS).start
    if start > now:
        (text,) = _in_clocks(clocks, start)
        raise UsageError(f"the range begins in the future: {text} {_name(zone)}", reason="range-not-begun")
    end = resolve(from_, to, now=now, zone=clocks, operators=ALL_OPERATORS).end
    if end is None or end <= now:
        return to, None
    (text,) = _in_clocks(clocks, end)
    return "now", f"--to is in the future: the range ends now; --follow waits until {text} {_name(zone)}"


def last_second(to: Moment | None, resolved: Range, zone: tzinfo) -> str | None:
    """Return a note if a range ends at 23:59:59, as with `endday`. Such a range excludes the last second of the day."""
    operator = operator_of(to, ALL_OPERATORS)
    if resolved.end is None or not (operator is None or operator.name in ("endday", "endmonth")):
        return None
    end = resolved.end.astimezone(zone)
    if f"{end:%H:%M:%S}" != "23:59:59":
        return None
    after = plus(end.replace(microsecond=0), timedelta(seconds=1))
    date = f"{after:%F}" if midnight(after).astimezone(UTC) == after else after.isoformat(timespec="minutes")
    return f"the range leaves out its last second, {end:%F %T}: --to {date} includes it"


def counted_back(from_: Moment, to: Moment | None, resolved: Range, *, now: datetime, zone: tzinfo = UTC) -> str | None:
    """Return a note if `to` counts forward from `from`, but was probably meant to count back from now.

    For example, the range from 4ad (four days ago) to 3ad has 3 days, but the user probably meant one day. The note is
    returned only if the range would be shorter with an end that counts back from now.
    """
    start, end = operator_of(from_, ALL_OPERATORS), operator_of(to, ALL_OPERATORS)
    if to is None or resolved.end is None or start is None or start.plain or end is None or end.plain:
        return None
    end_from_now = resolve(to, None, now=now, zone=zone, operators=ALL_OPERATORS).start
    if not resolved.start < end_from_now < resolved.end:
        return None
    days = (start.number_in(str(from_)) or 0) - (end.number_in(str(to)) or 0)
    for other in (f"now-{to}", end.written(days)):
        if (
            operator_of(other, ALL_OPERATORS)
            and resolve(from_, other, now=now, zone=zone, operators=ALL_OPERATORS).end == end_from_now
        ):
            return f"--to {to} counts from --from; to count it from now, give --from {from_} --to {other}"
    return None


def period_note(chosen: RequestDates, every: int, *, formula: bool) -> str | None:
    """Return a note if the periods of `group every` begin at other times in UTC than in the zone of the range.

    The service counts periods in UTC. `every` is the length of a period in seconds. For periods of one day, `formula`
    adds a `group by` clause to the note. The clause groups by days of the zone, and contains the zone's name. The zone
    of this computer (`local`) has no name, so the clause contains the zone's offset instead. For `local`, the clause is
    left out if the range has no end or contains a clock change.
    """
    start, end = (int(moment.timestamp()) for moment in (chosen.range.start, chosen.range.end or chosen.range.start))
    aheads: dict[int, str] = {}
    zone = chosen.zone or GMT
    for moment, _ in zone.spans(start, end):
        ahead = int((datetime.fromtimestamp(moment, zone.clocks).utcoffset() or timedelta()).total_seconds())
        aheads.setdefault(ahead, f"{datetime.fromtimestamp(moment // every * every + ahead, UTC):%H:%M}")
    if not any(ahead % every for ahead in aheads):
        return None
    begins = " or ".join(dict.fromkeys(aheads.values()))
    text = f"'group every' counts in UTC: a period begins at {begins} {zone.name}"
    if len(aheads) > 1:
        text = f"{text}, whose clocks change within the range"
    name = zone.name
    if isinstance(zone.clocks, LocalZone):
        name = zone.offset_name(start) if len(aheads) == 1 and chosen.range.end is not None else ""
    if every != UNITS["d"] or not formula or not name:
        return text
    return f'{text}; for days there: group by formatdate(eventdate, "yyyy-MM-dd", "{name}") as day'


def _is_typed(moment: Moment | None) -> bool:
    """Return whether a date uses an operator that svcctl accepts but the service does not know."""
    return operator_of(moment) is None and operator_of(moment, ALL_OPERATORS) is not None


def _changes(zone: Zone, resolved: Range, now: datetime) -> tuple[int, ...]:
    """Return the moments, in epoch seconds, at which the offset of a zone changes within a range.

    If the range has no end, the search ends 366 days after now, or 366 days after a start in the future.
    """
    end = resolved.end or max(now, resolved.start) + timedelta(days=366)
    spans = zone.spans(int(resolved.start.timestamp()), math.ceil(end.timestamp()))
    return tuple(start for start, _ in spans[1:])
