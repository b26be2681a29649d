"""Dates that people type, beyond those of the interface.

Relative dates are rows of `TYPED`, operators like the interface's own. The service does not know them, so the client
resolves them by its clock and zone, and sends epoch seconds. An absolute date without an offset is a `LocalTime`, which
`in_zone` turns into a moment of a zone. A text that is almost a date is refused with the right spelling as the hint.
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
"""The hint for a text that does not resemble a date."""


def _seconds_before_now(text: str) -> int | None:
    return whole_seconds_of(text[4:]) if text.startswith("now-") else None


_DATED_TIME = r"(?a)(yesterday|today|tomorrow) (\d?\d):([0-5]\d)(?::([0-5]\d))?"


def _seconds_from_today(text: str) -> int | None:
    """The seconds from today's midnight to a text such as `yesterday 10:00`, if each day has 24 hours; else None."""
    match = re.fullmatch(_DATED_TIME, text)
    if match is None or int(match[2]) > 23:
        return None
    days = ("yesterday", "today", "tomorrow").index(match[1]) - 1
    return days * UNITS["d"] + int(match[2]) * 3_600 + int(match[3]) * 60 + int(match[4] or 0)


def _by_the_clock(now: datetime, seconds: int) -> datetime:
    """The moment at which the clocks show a time on the day of `now`, the day before or the day after.

    `seconds` is counted from today's midnight, on days of 24 hours. UsageError if the clocks show the time twice, or
    never.
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
    """The first moment of the month of a moment, or of a month some months later."""
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
"""All operators that people may type. The interface's own come first, in case two match a text."""

_ISO = rf"(?a)\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{TIME}(?: ?(?:Z|[+-]\d{{2}}(?::?\d{{2}})?))?)?"
_MONTH = r"(?a)(\d{4})[-/](\d{2})"
_YEAR_FIRST = rf"(?a)(\d{{4}})/(\d{{2}})/(\d{{2}})((?:[T ]{TIME})?)"
_DAY_FIRST = r"(?a)(\d{2})/(\d{2})/(\d{4})((?: \d?\d:\d{2})?)(:\d{2})?"
_RUN_TOGETHER = r"(?a)((?:19|20)\d\d)(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?(Z?))?"
_WHOLE_SECONDS = r"(?a)-?(?:0|[1-9]\d*)"
_DECIMAL = r"(?a)(-?[1-9]\d{6,})\.(\d+)"
"""Epoch seconds with a fraction. A shorter number with a point is a time or a day, such as 10.30 or 31.01."""
_TOO_FINE = r"(?a)(\.\d{3})\d*[1-9]\d*"
_YEAR = r"(?a)19[789]\d|2\d{3}"


class LocalTime(NamedTuple):
    """An absolute date typed without an offset, so that its moment depends on the zone."""

    text: str
    """The date as it was typed."""
    time: datetime
    """The date and time that the clocks show, without a zone."""
    is_day: bool
    """Whether only a day was typed, without a time: it means the first moment of the day."""

    def in_zone(self, zone: Zone | None) -> Moment:
        """The moment, in epoch seconds, at which the clocks of a zone show this time.

        Without a zone, the time is in UTC, and a date in the interface's own form stays text. UsageError if the clocks
        show the time twice, or never; its hint has the two spellings with an offset.
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
"""A typed date, before its zone is known."""


def in_zone(typed: Typed, zone: Zone | None) -> Moment:
    """The date to send for a typed date; a date without an offset is read in a zone, by default UTC.

    UsageError if the clocks of the zone show the time twice, or never.
    """
    return typed.in_zone(zone) if isinstance(typed, LocalTime) else typed


def _undecided(text: str, first: datetime, second: datetime, zone: str) -> UsageError:
    """The error for a time that the clocks of a zone show twice, or never.

    `first` and `second` are the time with the offsets before and after the clock change.
    """
    twice = (first.utcoffset() or timedelta()) > (second.utcoffset() or timedelta())
    return UsageError(
        f"date '{text}' {'occurs twice' if twice else 'does not exist'} in {zone}, whose clocks change then",
        hint=f"write {_with_offset(first)} or {_with_offset(second)}",
    )


def _with_offset(moment: datetime) -> str:
    """A moment in ISO 8601 with its offset; in UTC if the offset has seconds, which cannot be typed."""
    spec = "milliseconds" if moment.microsecond else "seconds" if moment.second else "minutes"
    if (moment.utcoffset() or timedelta()) % timedelta(minutes=1):
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return moment.isoformat(timespec=spec)


def parse_moment(text: str, *, today: date | None = None) -> Typed:
    """The date to send for a text that a person typed.

    Operators stay as written, digits are epoch seconds, an absolute date with an offset becomes epoch seconds, and one
    without an offset becomes a LocalTime. A fraction of a second counts to the millisecond. UsageError for anything
    else, such as epoch milliseconds, a day that does not exist, or digits that spell a date. `today` is used by the
    hints, for example for the date of `monday`.
    """
    return _needed(text, _parsed(text), today)


def _needed(text: str, moment: Typed | None, today: date | None = None) -> Typed:
    """Return a parsed date; UsageError, with the nearest date as the hint, if the text is not a date."""
    if moment is None:
        hint = _corrected(text.strip(), today=today)
        reason = None if hint else "not-a-date"
        raise UsageError(f"'{text.strip()}' is not a valid date", hint=hint or FORMS, reason=reason)
    return moment


def parse_second(text: str) -> Typed:
    """The date to send where dates are whole seconds.

    UsageError for a fraction of a second; the hint has the seconds before and after it.
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
    """The date that a text means; None if it does not resemble a date. UsageError for an impossible date.

    With `whole`, the hint for an epoch in another unit is in whole seconds.
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
    """Whether the moment of a date depends on the time zone."""
    operator = operator_of(moment, ALL_OPERATORS)
    return operator is not None and operator.zoned


def _absolute(iso: str, text: str) -> float | LocalTime:
    """The moment of a date in ISO 8601. UsageError if there is no such day; its message has the typed text."""
    try:
        moment = datetime.fromisoformat(two_digits(iso))
    except ValueError:
        hint = _corrected(text, orders=True) or ("the order is dd/MM/yyyy" if re.fullmatch(_DAY_FIRST, text) else None)
        raise UsageError(f"date '{text}' does not exist", hint=hint) from None
    seconds = _epoch(with_zone(moment), text)
    return LocalTime(text, moment, is_day=":" not in iso) if moment.tzinfo is None else seconds


def _corrected(text: str, *, orders: bool = False, today: date | None = None) -> str | None:
    """The hint for a text that is not a date; with `orders`, only corrections of the order of day, month and year."""
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
    """Whether a text that a person typed is a date."""
    # not parse_moment: its hint calls this function
    try:
        return _parsed(text) is not None
    except UsageError:
        return False
