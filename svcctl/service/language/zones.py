"""SQL that converts between moments and the local times of a zone.

The offsets of a zone come from Python's time zone database and become constants of the SQL statement. So all engines
return the same rows, and engines need no time zone database. For a named zone such as Europe/Berlin, the statement only
has the offsets of the years 1970 to 2037. Any other moment or local time becomes null.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import pairwise

from sqlglot import exp

from svcctl.dates.zones import LocalZone, named_zone
from svcctl.errors import UsageError
from svcctl.service.language.query_error import UnplacedError
from svcctl.service.language.sql import ExpressionContext, Sql, case_when, epoch_ms, from_epoch_ms, number

START, END = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1970, 2038))
"""The period in which every zone has offsets, in epoch seconds. END itself is not in the period."""
ZONE_FORMS = "write GMT+2, UTC, or a name such as Europe/Berlin"

Steps = Sequence[tuple[int, int | None]]
"""A value that changes in steps over time. Each pair has a step's start, in seconds since 1970, and the step's value.

A value is in seconds, or None. Before the first step, the value is None.
"""


def is_zone(text: str) -> bool:
    try:
        _zone(text)
    except UnplacedError:
        return False
    return True


def local_time(context: ExpressionContext, moment: Sql, zone: str, argument: int) -> Sql:
    """Return SQL that converts a moment to the local time of a zone, as a timestamp.

    The local time is null if the zone has no offset for the moment. `argument` is the index of the argument that names
    the zone. Raises UnplacedError with this index if there is no such zone.
    """
    clocks = _zone(zone, argument)
    if isinstance(clocks, timezone):
        return _shift(context, moment, _seconds(clocks.utcoffset(None)))
    return _shift_by_steps(context, moment, _offsets(zone), 1)


def moment_of(context: ExpressionContext, local: Sql, zone: str, argument: int) -> Sql:
    """Return SQL that converts a local time of a zone to its moment.

    The moment is null if the zone has no offset for the local time. A local time that occurs twice, or does not exist,
    gets the offset before the change of the clocks. `argument` is the index of the argument that names the zone. Raises
    UnplacedError with this index if there is no such zone.
    """
    clocks = _zone(zone, argument)
    if isinstance(clocks, timezone):
        return _shift(context, local, -_seconds(clocks.utcoffset(None)))
    return _shift_by_steps(context, local, _offsets_by_local_time(zone), -1)


def moment_of_literal(text: str, local: datetime, zone: str, argument: int, *, only_day: bool) -> datetime:
    """Return the moment of a local time that is a literal in the query. `text` is the literal.

    With `only_day`, return the first moment of the day. Raises UnplacedError if the time occurs twice, does not exist,
    or is not in the years 1970 to 2037. Also raises UnplacedError if there is no such zone.
    """
    clocks = _zone(zone, argument)
    if isinstance(clocks, timezone):
        try:
            return local.replace(tzinfo=clocks).astimezone(UTC)
        except OverflowError:
            raise UnplacedError(f"'{text}' is outside the calendar", argument=0) from None
    outside = f"'{text}' is not in the years 1970 to 2037, for which {zone} has offsets"
    if not 1969 <= local.year <= 2038:
        raise UnplacedError(outside, argument=0)
    first, second = (local.replace(tzinfo=clocks, fold=fold).astimezone(UTC) for fold in (0, 1))
    there = first.astimezone(clocks).replace(tzinfo=None)
    if there != local and not (only_day and there.date() == local.date()):
        raise UnplacedError(f"'{text}' does not exist in {zone}: its clocks skip this time", argument=0)
    if first < second and not only_day:
        written = " or ".join(f'parsedate("{moment:%Y-%m-%d %H:%M:%S}")' for moment in (first, second))
        raise UnplacedError(f"'{text}' occurs twice in {zone}", argument=0, hint=f"write it in UTC: {written}")
    if not START <= first.timestamp() < END:
        raise UnplacedError(outside, argument=0)
    return first


def _zone(text: str, argument: int | None = None) -> tzinfo:
    try:
        clocks = named_zone(text).clocks
    except UsageError as error:
        raise UnplacedError(str(error), argument=argument, hint=error.hint) from None
    if isinstance(clocks, LocalZone):
        raise UnplacedError("a query cannot use the time zone 'local'", argument=argument, hint=ZONE_FORMS)
    return clocks


def _seconds(offset: timedelta | None) -> int:
    return int((offset or timedelta()).total_seconds())


@lru_cache(maxsize=64)
def _offsets(zone: str) -> Steps:
    """Return the offsets of a zone from UTC, each with the epoch second at which the offset begins."""
    named = named_zone(zone)
    starts = [start for start, _ in named.spans(START, END)]
    return *((start, _seconds(datetime.fromtimestamp(start, named.clocks).utcoffset())) for start in starts), (
        END,
        None,
    )


@lru_cache(maxsize=64)
def _offsets_by_local_time(zone: str) -> Steps:
    """Return the offsets of a zone from UTC, each with the local time at which the offset begins.

    The local time is in seconds since 1970, computed as if the local time were UTC.
    """
    offsets = _offsets(zone)
    (start, first), *_ = offsets
    steps = [(start + (first or 0), first)]
    for (_, before), (start, after) in pairwise(offsets):
        values = [offset for offset in (before, after) if offset is not None]
        steps.append((start + max(values), after))
    return tuple(steps)


def _shift(context: ExpressionContext, time: Sql, seconds: int) -> Sql:
    moved = exp.Add(this=epoch_ms(time), expression=number(seconds * 1000))
    return context.attempt(from_epoch_ms(moved)) if seconds else time


def _shift_by_steps(context: ExpressionContext, time: Sql, steps: Steps, sign: int) -> Sql:
    """Return SQL for a time plus the value of `steps` at this time. If `sign` is -1, the value is subtracted."""
    time = epoch_ms(time)
    context.spend(sum(1 for _ in time.walk()) * len(steps))

    def choose(value: Sql, steps: Steps) -> Sql:
        if len(steps) == 1:
            [(_, seconds)] = steps
            return exp.null() if seconds is None else number(sign * seconds * 1000)
        middle = len(steps) // 2
        earlier = exp.LT(this=value.copy(), expression=number(steps[middle][0] * 1000))
        return case_when((earlier, choose(value, steps[:middle])), default=choose(value, steps[middle:]))

    def body(value: Sql) -> Sql:
        return from_epoch_ms(exp.Add(this=value.copy(), expression=choose(value, ((0, None), *steps))))

    return context.dialect.repeat(time, body)
