"""Dates that people may type, but that the HTTP interface does not define.

The table `TYPED` has operators for relative dates, in addition to the operators of the HTTP interface. The service does
not know these operators, so the client converts a date with such an operator to epoch seconds. For this conversion, the
client uses its own clock. An absolute date without an offset is a `LocalTime`, which the function `in_zone` converts to
a moment. A text that only resembles a date is refused, and the hint of the error contains the right spelling.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from svcctl.dates.epochs import from_ms, to_seconds
from svcctl.dates.lengths import UNITS, whole_seconds_of
from svcctl.dates.operators import (
    MAX_EPOCH_SECONDS,
    OPERATORS,
    Moment,
    Operator,
    check_epoch,
    counting_operator,
    is_absolute,
    midnight,
    operator_of,
    plus,
    with_zone,
)
from svcctl.dates.times import MAX_DATE_CHARS, TIME, two_digits
from svcctl.dates.zones import Zone
from svcctl.errors import UsageError

FORMS = "write 5m, 1h30m, 1d, now, today, yesterday, 31/01/2024 10:00, 2024-01-31T10:00:00Z or epoch seconds"
"""The hint for a text that does not look like a date."""


def _seconds_before_now(text: str) -> int | None:
    return whole_seconds_of(text[4:]) if text.startswith("now-") else None


_DATED_TIME = r"(?a)(yesterday|today|tomorrow) (\d?\d):([0-5]\d)(?::([0-5]\d))?"


def _seconds_from_today(text: str) -> int | None:
    """Return the number of seconds from today's midnight to a typed time such as `yesterday 10:00`.

    Each day counts as 24 hours. The number is negative for a time of yesterday. Returns None for any other text.
    """
    match = re.fullmatch(_DATED_TIME, text)
    if match is None or int(match[2]) > 23:
        return None
    days = ("yesterday", "today", "tomorrow").index(match[1]) - 1
    return days * UNITS["d"] + int(match[2]) * 3_600 + int(match[3]) * 60 + int(match[4] or 0)


def _by_the_clock(now: datetime, seconds: int) -> datetime:
    """Return the moment at which the clocks show a given time of yesterday, today or tomorrow.

    `now` decides which day is today. `seconds` is the given time as a number of seconds from today's midnight. In this
    number, each day counts as 24 hours. Raises UsageError if the clocks show the time twice or never.
    """
    days, time = divmod(seconds, UNITS["d"])
    day = midnight(now, days)
    first, second = (
        day.replace(hour=time // 3_600, minute=time // 60 % 60, second=time % 60, fold=fold) for fold in (0, 1)
    )
    if first.utcoffset() != second.utcoffset():
        raise _undecided(f"{first:%Y-%m-%d %H:%M:%S}", first, second, "the time zone")
    return first


def _month(moment: datetime, months: int = 0) -> datetime:
    """Return the first moment of the month that contains `moment`, or of the month that is `months` months later."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return midnight(moment.replace(year=year, month=month + 1, day=1))


TYPED = (
    counting_operator("<N>s", UNITS["s"], "N seconds"),
    counting_operator("<N>m", UNITS["m"], "N minutes"),
    counting_operator("<N>w", UNITS["w"], "N weeks"),
    counting_operator("1h30m", UNITS["s"], "1 hour and 30 minutes", whole_seconds_of),
    Operator(
        "now-1h",
        False,
        lambda now, n: plus(now, timedelta(seconds=-n)),
        lambda now, start, n: plus(now, timedelta(seconds=-n)),
        "now minus 1 hour",
        "now minus 1 hour",
        _seconds_before_now,
    ),
    Operator(
        "yesterday",
        True,
        lambda now, n: midnight(now, -1),
        lambda now, start, n: midnight(now, -1),
        "previous day 00:00:00",
        "previous day 00:00:00",
    ),
    Operator(
        "tomorrow",
        True,
        lambda now, n: midnight(now, 1),
        lambda now, start, n: midnight(now, 1),
        "next day 00:00:00",
        "next day 00:00:00",
    ),
    Operator(
        "yesterday 10:00",
        True,
        _by_the_clock,
        lambda now, start, n: _by_the_clock(now, n),
        "previous day 10:00:00",
        "previous day 10:00:00",
        _seconds_from_today,
    ),
    Operator(
        "this month",
        True,
        lambda now, n: _month(now),
        lambda now, start, n: _month(now),
        "day 1 of this month 00:00:00",
        "day 1 of this month 00:00:00",
    ),
    Operator(
        "last month",
        True,
        lambda now, n: _month(now, -1),
        lambda now, start, n: _month(now, -1),
        "day 1 of last month 00:00:00",
        "day 1 of last month 00:00:00",
    ),
)
ALL_OPERATORS = (*OPERATORS, *TYPED)
"""All operators that people may type. If two operators match a text, the first operator is used."""

_ISO = rf"(?a)\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{TIME}(?: ?(?:Z|[+-]\d{{2}}(?::?\d{{2}})?))?)?"
_MONTH = r"(?a)(\d{4})[-/](\d{2})"
_YEAR_FIRST = rf"(?a)(\d{{4}})/(\d{{2}})/(\d{{2}})((?:[T ]{TIME})?)"
_DAY_FIRST = r"(?a)(\d{2})/(\d{2})/(\d{4})((?: \d?\d:\d{2})?)(:\d{2})?"
_RUN_TOGETHER = r"(?a)((?:19|20)\d\d)(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?(Z?))?"
_WHOLE_SECONDS = r"(?a)-?(?:0|[1-9]\d*)"
_DECIMAL = r"(?a)(-?[1-9]\d{6,})\.(\d+)"
"""A pattern for epoch seconds with a fraction.

At least seven digits must precede the point, because 10.30 may be a time, and 31.01 may be a day.
"""
_TOO_FINE = r"(?a)(\.\d{3})\d*[1-9]\d*"
_YEAR = r"(?a)19[789]\d|2\d{3}"


class LocalTime(NamedTuple):
    """An absolute date without an offset. The time zone decides which moment the date means."""

    text: str
    """The date as it was typed."""
    time: datetime
    """The date and time that the clocks show, without a zone."""
    is_day: bool
    """Whether the date was typed without a time. Such a date means the first moment of the day."""

    def in_zone(self, zone: Zone | None) -> Moment:
        """Return the moment, in epoch seconds, at which the clocks of a zone show this time.

        If `zone` is None, the time is in UTC. Then a date of the form dd/MM/yyyy HH:mm:ss is returned as text, because
        the HTTP interface accepts this form. Raises UsageError if the clocks of the zone show the time twice or never.
        The hint of this error offers two dates with an offset.
        """
        if zone is None:
            utc_text = two_digits(self.text)
            return utc_text if is_absolute(utc_text) else _epoch(with_zone(self.time), self.text)
        first, second = (self.time.replace(tzinfo=zone.clocks, fold=fold) for fold in (0, 1))
        try:
            ahead, behind = (moment.utcoffset() or timedelta() for moment in (first, second))
        except (OverflowError, ValueError):
            raise _outside(self.text) from None
        seconds = _epoch(first, self.text)
        if ahead == behind or (self.is_day and from_ms(seconds * 1000).astimezone(zone.clocks).date() == first.date()):
            return seconds
        raise _undecided(self.text, first, second, zone.name)


Typed = Moment | LocalTime
"""A typed date. If the date is a LocalTime, the time zone is applied later."""


def in_zone(typed: Typed, zone: Zone | None) -> Moment:
    """Convert a typed date to a Moment. A date without an offset is read in `zone`, or in UTC if `zone` is None.

    Raises UsageError if the clocks of the zone show the time twice or never.
    """
    return typed.in_zone(zone) if isinstance(typed, LocalTime) else typed


def _undecided(text: str, first: datetime, second: datetime, zone: str) -> UsageError:
    """Return the error for a time that the clocks of a zone show twice or never.

    `first` is the time with the offset before the clock change. `second` is the time with the offset after the change.
    """
    twice = (first.utcoffset() or timedelta()) > (second.utcoffset() or timedelta())
    return UsageError(
        f"date '{text}' {'occurs twice' if twice else 'does not exist'} in {zone}, whose clocks change then",
        hint=f"write {_with_offset(first)} or {_with_offset(second)}",
    )


def _with_offset(moment: datetime) -> str:
    """Return a moment in ISO 8601 with its offset.

    An offset with seconds cannot be typed, so a moment with such an offset is returned in UTC.
    """
    spec = "milliseconds" if moment.microsecond else "seconds" if moment.second else "minutes"
    if (moment.utcoffset() or timedelta()) % timedelta(minutes=1):
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return moment.isoformat(timespec=spec)


def parse_moment(text: str, *, today: date | None = None) -> Typed:
    """Parse a date that a person typed.

    An operator is returned as text. A number is taken as epoch seconds. An absolute date with an offset is converted to
    epoch seconds. An absolute date without an offset is converted to a LocalTime. Fractions of a second have at most
    three digits. Raises UsageError for any other text, such as epoch milliseconds, a day that does not exist, or digits
    that look like a date. The hint for a text such as `monday` is computed from `today`. Without `today`, the current
    day in UTC is used.
    """
    return _needed(text, _parsed(text), today)


def _needed(text: str, moment: Typed | None, today: date | None = None) -> Typed:
    """Return the parsed date `moment`. Raises UsageError if `moment` is None.

    If `text` resembles a date, the hint of the error suggests the right spelling.
    """
    if moment is None:
        hint = _corrected(text.strip(), today=today)
        reason = None if hint else "not-a-date"
        raise UsageError(f"'{text.strip()}' is not a valid date", hint=hint or FORMS, reason=reason)
    return moment


def parse_second(text: str) -> Typed:
    """Parse a typed date in the same way as `parse_moment`, but refuse a fraction of a second.

    For a date with a fraction of a second, raises UsageError. The hint contains the date rounded down and rounded up
    to whole seconds.
    """
    moment = _needed(text, _parsed(text, whole=True))
    if isinstance(moment, float):
        first, zone = datetime.fromtimestamp(math.floor(moment), UTC), "Z"
    elif isinstance(moment, LocalTime) and moment.time.microsecond:
        first, zone = moment.time.replace(microsecond=0), ""
    else:
        return moment
    seconds = (f"{first + timedelta(seconds=count):%Y-%m-%dT%H:%M:%S}{zone}" for count in (0, 1))
    raise UsageError(
        f"'{text}' has a fraction of a second", hint=f"dates here are whole seconds: {' or '.join(seconds)}"
    )


def _parsed(text: str, *, whole: bool = False) -> Typed | None:
    """Parse a date. Returns None for a text that does not look like a date. Raises UsageError for an impossible date.

    The hint for a number in another unit, such as milliseconds, contains the date in seconds. With `whole`, the hint
    contains only whole seconds.
    """
    text = text.strip()
    if len(text) > MAX_DATE_CHARS:
        return None
    if operator_of(text, ALL_OPERATORS) is not None:
        return text
    if match := re.fullmatch(_RUN_TOGETHER, text):
        year, month, day, hour, minute, second, zone = match.groups()
        iso = f"{year}-{month}-{day}" + (f"T{hour}:{minute}:{second or '00'}{zone}" if hour else "")
        if is_date(iso):
            raise UsageError(f"{text} looks like a date", hint=f"write {iso}")
    if re.fullmatch(_YEAR, text):
        raise UsageError(f"{text} looks like a year", hint=f"write {text}-01-01, or {text}-01 for the month")
    if re.fullmatch(_WHOLE_SECONDS, text):
        return check_epoch(int(text), whole=whole)
    if match := re.fullmatch(_DECIMAL, text):
        check_epoch(int(match[1]), whole=whole)
        _check_fine(text)
        return float(text) if int(match[2]) else int(match[1])
    if match := re.fullmatch(_DAY_FIRST, text):
        day, month, year, time, seconds = match.groups()
        return _absolute(f"{year}-{month}-{day}{time}{seconds or ''}", text)
    if match := re.fullmatch(_YEAR_FIRST, text):
        return _absolute("-".join(match.groups()[:3]) + match[4], text)
    if match := re.fullmatch(_MONTH, text):
        return _absolute(f"{match[1]}-{match[2]}-01", text)
    if re.fullmatch(_ISO, text):
        return _absolute(re.sub(r" (?=[Z+-])", "", text), text)
    return None


def depends_on_zone(moment: Moment | None) -> bool:
    """Return whether the moment of a date depends on the time zone."""
    operator = operator_of(moment, ALL_OPERATORS)
    return operator is not None and operator.zoned


def _absolute(iso: str, text: str) -> float | LocalTime:
    """Parse a typed date that was converted to ISO 8601. `iso` is the converted date, and `text` is the typed date.

    Raises UsageError if the date does not exist. The message contains `text`.
    """
    try:
        moment = datetime.fromisoformat(two_digits(iso))
    except ValueError:
        hint = _corrected(text, orders=True) or ("the order is dd/MM/yyyy" if re.fullmatch(_DAY_FIRST, text) else None)
        raise UsageError(f"date '{text}' does not exist", hint=hint) from None
    seconds = _epoch(with_zone(moment), text)
    return LocalTime(text, moment, is_day=":" not in iso) if moment.tzinfo is None else seconds


def _corrected(text: str, *, orders: bool = False, today: date | None = None) -> str | None:
    """Return the hint for a text that is not a date.

    With `orders`, only the order of day, month and year is corrected.
    """
    from svcctl.dates.corrections import CORRECTIONS, ORDERS, correction

    return correction(text, ORDERS if orders else CORRECTIONS, is_date, today or datetime.now(UTC).date())


def _check_fine(text: str) -> None:
    if match := re.search(_TOO_FINE, text):
        cut = text.replace(match[0], match[1])
        raise UsageError(f"date '{text}' is finer than a millisecond", hint=f"write {cut}")


def _epoch(moment: datetime, text: str) -> int | float:
    _check_fine(text)
    seconds = to_seconds(moment)
    if seconds > MAX_EPOCH_SECONDS:
        raise UsageError(f"date '{text}' is after the year 5138")
    if moment.replace(tzinfo=None) - datetime.min < (moment.utcoffset() or timedelta()):
        raise _outside(text)
    return seconds


def _outside(text: str) -> UsageError:
    return UsageError(f"date '{text}' is outside the calendar")


def is_date(text: str) -> bool:
    """Return whether a text that a person typed is a date."""
    # This function cannot use parse_moment, because parse_moment uses this function for its hint.
    try:
        return _parsed(text) is not None
    except UsageError:
        return False
