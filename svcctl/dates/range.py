"""The range that a pair of dates resolves to; and for `--from`, `--to`, `--date-format` and `--time-zone`, the dates to
send, and how dates are shown here."""

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
from svcctl.dates.zones import GMT, Local, Zone
from svcctl.errors import RangeEndsFirst, UsageError

_LONG_AGO = 10**6
"""Epoch seconds, in January 1970: a number nearer to 0 is most likely a length without its unit."""


class Range(NamedTuple):
    """A half-open window `start <= eventdate < end`, both in UTC; `end` is None for a continuous query."""

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
    """The range of a pair at the moment `now` (aware), with operators in `zone`.

    Seconds may have a fraction, which counts to the millisecond, as the dates of events do; finer digits are cut off.
    Operators count from now in whole seconds. UsageError when a date is not valid or leaves the calendar, or when the
    end is before the start; an empty range is allowed.
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
    """The moment, in UTC, of one date that was typed; a relative one counts back from `now`. UsageError for others."""
    moment = in_zone(typed, zone)
    return resolve(moment, None, now=now, zone=(zone or GMT).clocks, operators=ALL_OPERATORS).start


class Dates(NamedTuple):
    """The dates of a request: both ends, and the format and zone of dates if the service is to write them."""

    range: Range
    """The ends as they resolve now; what is sent may still be relative."""
    from_: Moment
    to: Moment | None
    date_format: str | None
    time_zone: str | None
    """The zone as the interface names it."""
    zone: Zone | None
    """The zone of dates that are shown here; None: UTC."""
    plain: bool
    """Whether the range holds no surprise: `to` does not count from `from`, and all dates follow the zone."""
    changes: tuple[int, ...] = ()
    """Epoch seconds in the range at which the offset of the zone changes; without an end, up to a year from now."""
    reading: str | None = None
    """How dates without an offset were read, if the zone was not typed with them."""
    cut: str | None = None
    """A note on an end in the future, which the query does not wait for."""
    slip: str | None = None
    """A note on a start that lacks its unit."""
    short: str | None = None
    """A note on an end that leaves out the last second of a day."""
    other_pair: str | None = None
    """A note on an end that was probably meant to count back from now."""

    @property
    def clocks(self) -> tzinfo:
        """The clocks that dates are shown by."""
        return (self.zone or GMT).clocks

    def notes(self, *, terminal: bool) -> Iterator[str]:
        """What to say about the dates; at a terminal, also the range if it is not `plain`."""
        if terminal and not self.plain:
            yield self.summary
        yield from filter(None, (self.reading, self.slip, self.short, self.other_pair, self.cut))

    def offset_note(self, *, text: bool = True) -> str | None:
        """A note if all dates are written with the offset of the start and it changes within the range. `text` says
        that the dates are texts, which contain the offset in iso."""
        if self.zone is None or not self.changes:
            return None
        when = "during the year" if self.range.end is None else "within the range"
        offset = self.zone.offset_name(self.range.start.timestamp())
        return self.zone.change_note(when, f"all dates are written in {offset}", text and self.date_format != "iso")

    @property
    def spans(self) -> list[tuple[Moment, Moment | None, str | None]]:
        """The range cut where the offset changes, for a request each: from, to and the interface's zone. An end that is
        `now` stays, so that the service's clock decides."""
        if self.zone is None or self.range.end is None or not self.changes:
            return [(self.from_, self.to, self.time_zone)]
        end = self.to if self.to == "now" else to_seconds(self.range.end)
        edges: list[Moment] = [to_seconds(self.range.start), *self.changes, end]
        starts = (self.range.start.timestamp(), *self.changes)
        return [(*span, self.zone.offset_name(start)) for span, start in zip(pairwise(edges), starts, strict=True)]

    @property
    def label(self) -> str:
        """The range in words, in UTC."""
        until = "" if self.range.end is None else f" to {moment_text(self.range.end)}"
        return f"{moment_text(self.range.start)}{until} (UTC)"

    @property
    def summary(self) -> str:
        """The range in short, in the zone, with its length: `2024-01-31 10:00 … 2024-02-01 10:00 UTC (1d)`."""
        texts = _in_clocks(self.clocks, self.range.start, self.range.end, offset=" %z" if self.changes else "")
        if self.range.end is None:
            return f"{texts[0]} … {_name(self.zone)}"
        length = length_text((self.range.end - self.range.start).total_seconds())
        return f"{texts[0]} … {texts[1]} {_name(self.zone)} ({length})"


def _name(zone: Zone | None) -> str:
    return "UTC" if zone is None or zone == GMT else zone.name


def _in_clocks(clocks: tzinfo, *moments: datetime | None, offset: str = "") -> list[str]:
    """Moments as clocks show them, all as fine as the finest of them; `offset` is a pattern for what follows each."""
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
) -> Dates:
    """The dates to send. UsageError when the range is impossible, or a name is unknown.

    `written` says that the service writes dates in the answer: then it gets format and zone unchanged. In the JSON
    formats the interface has neither, so ends that depend on the zone become epoch seconds here. So do dates that the
    interface has no word for, absolute dates in a zone, and days in a zone whose offset changes: the service knows
    offsets only. A request that is `resent` after a break must mean the same then, so both ends become epoch seconds.

    A service waits for an end in the future. Unless the request `waits`, `now` is sent instead, and a start in the
    future is a UsageError. `now` stays `now`, so that the service's clock decides.
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
    return Dates(
        resolved, from_, to, date_format, sent_zone, zone, plain, changes, reading, cut, slip, short, other_pair
    )


def read_in(zone: Zone | None, now: datetime, typed: Mapping[str, Typed | None]) -> str | None:
    """A note on how dates without an offset were read, in a zone that was not typed with them.

    `typed` has the dates by the names of their options.
    """
    local = {name: date for name, date in typed.items() if isinstance(date, LocalTime)}
    if not local or zone is None or not zone.source:
        return None
    moments = [moment_text(start_of(date, zone, now=now)) for date in local.values()]
    return f"{' and '.join(local)} in {zone.name} ({zone.source}): {' to '.join(moments)} UTC"


def _until_now(from_: Moment, to: Moment | None, zone: Zone | None, now: datetime) -> tuple[Moment | None, str | None]:
    """The end to use when nobody waits, with a note if it was in the future. UsageError for a start in the future."""
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
    """A note when a range ends at 23:59:59, as `endday` does, and so leaves out the last second of a day."""
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
    """A note when `to` counts from `from` and was probably meant to count back from now, as `from` does.

    That is so when the range would be shorter: 4ad and 3ad are 3 days, and probably one day was meant.
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


def period_note(chosen: Dates, every: int, *, formula: bool) -> str | None:
    """A note when periods of `every` seconds, which a service counts in UTC, do not begin when the zone's periods do.

    With `formula`, the note contains one that groups by days of the zone. The zone of this computer has no name that
    the service knows, so it gets a formula only for a range in which its offset does not change.
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
    if isinstance(zone.clocks, Local):
        name = zone.offset_name(start) if len(aheads) == 1 and chosen.range.end is not None else ""
    if every != UNITS["d"] or not formula or not name:
        return text
    return f'{text}; for days there: group by formatdate(eventdate, "yyyy-MM-dd", "{name}") as day'


def _is_typed(moment: Moment | None) -> bool:
    """Whether a date is written in a way that the service does not know."""
    return operator_of(moment) is None and operator_of(moment, ALL_OPERATORS) is not None


def _changes(zone: Zone, resolved: Range, now: datetime) -> tuple[int, ...]:
    """When the offset of a zone changes within a range; without an end, up to a year from now."""
    end = resolved.end or max(now, resolved.start) + timedelta(days=366)
    spans = zone.spans(int(resolved.start.timestamp()), math.ceil(end.timestamp()))
    return tuple(start for start, _ in spans[1:])
