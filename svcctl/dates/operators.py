"""The dates in requests: the values that the request parameters `from` and `to` accept, and the meaning of each value.

An operator is a relative date, such as `2h`. The table `OPERATORS` has all operators that the documentation of the HTTP
interface describes. An operator with a number counts back from now in `from`. In `to`, it counts forward from the
moment of `from`. In one example of the documentation, `from: 2h` means a time after now. This example contradicts the
documentation's own rule, and svcctl follows the rule.

Days and hours have a fixed length, so `1d` is always 24 hours. Operators that name a day, such as `today`, use the days
of a time zone. Both the client and the service use this module. The module `shorthand` has further dates that people
may type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, TypeVar

from svcctl.dates.epochs import from_ms
from svcctl.errors import UsageError
from svcctl.words import plural

Moment = int | float | str
"""A date in a request: a number of epoch seconds, an absolute date as text, or an operator such as `2h`."""

ABSOLUTE_FORMAT = "%d/%m/%Y %H:%M:%S"
DATE_FORMATS = ("default", "sql", "iso")
"""The values of the request parameter `dateFormat`, which sets the format of dates in an answer."""
MAX_EPOCH_SECONDS = 99_999_999_999
"""The largest accepted number of epoch seconds, which is a moment in the year 5138.

A larger number is refused, because its unit is probably milliseconds or a smaller unit.
"""
_EPOCH_UNITS = ("seconds", "milliseconds", "microseconds", "nanoseconds")
"""The units in which programs count time from the epoch. Each unit is a thousandth of the previous unit."""

_ABSOLUTE = r"(?a)\d{2}/\d{2}/\d{4} \d{2}:\d{2}:\d{2}"


def is_absolute(text: str) -> bool:
    """Return whether a text has the form of an absolute date in a request, dd/MM/yyyy HH:mm:ss."""
    return re.fullmatch(_ABSOLUTE, text) is not None


def with_zone(date: datetime) -> datetime:
    """Return a date with a time zone. A date without a zone gets the zone UTC, as the HTTP interface defines."""
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def plus(moment: datetime, length: timedelta) -> datetime:
    """Add elapsed time to a moment, and return the sum in the zone of the moment.

    The operator + of datetime is not used, because this operator ignores clock changes.
    """
    return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)


def midnight(moment: datetime, days: int = 0) -> datetime:
    """Return the first moment of the day that contains `moment`, or of the day that is `days` days later."""
    # If the clocks show midnight twice, the day starts at the first midnight (fold=0). If the clocks show 23:59:59
    # twice, the day ends at the second 23:59:59.
    return (moment + timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _end_of_day(moment: datetime) -> datetime:
    return moment.replace(hour=23, minute=59, second=59, microsecond=0, fold=1)


def _end_of_month(moment: datetime) -> datetime:
    next_month = (moment.replace(day=28) + timedelta(days=4)).replace(day=1)
    return _end_of_day(next_month - timedelta(days=1))


class Operator(NamedTuple):
    """An operator, which is a relative date such as `2d`. An operator has one meaning in `from` and one in `to`.

    `name` is the spelling, with `<N>` in place of a number. If `name` is only an example, such as `1h30m`, the function
    `reads` extracts the number from a text. A `zoned` operator names a day, and the start of a day depends on the time
    zone.

    `in_from` computes the moment that the operator means in `from`. The arguments of `in_from` are the current time and
    the number. `in_to` computes the moment that the operator means in `to`. The arguments of `in_to` are the current
    time, the moment of `from`, and the number. `from_meaning` and `to_meaning` describe the two moments in words.
    """

    name: str
    zoned: bool
    in_from: Callable[[datetime, int], datetime]
    in_to: Callable[[datetime, datetime, int], datetime]
    from_meaning: str
    to_meaning: str
    reads: Callable[[str], int | None] | None = None

    @property
    def plain(self) -> bool:
        """Whether the operator means the same moment in `from` and in `to`."""
        return self.from_meaning == self.to_meaning

    @property
    def counts(self) -> bool:
        """Whether the operator's name has a placeholder for a number, `<N>`."""
        return "<N>" in self.name

    def written(self, n: int) -> str:
        return self.name.replace("<N>", str(n))

    def number_in(self, text: str) -> int | None:
        """Return the number in a text that uses this operator, such as 2 in `2d`. Returns None for any other text.

        The result is 0 if the operator has no number.
        """
        if self.reads is not None:
            return self.reads(text)
        match = re.fullmatch(self.name.replace("<N>", "([0-9]+)"), text)
        return None if match is None else int(match[1][:12]) if self.counts else 0


def counting_operator(
    name: str, seconds: int, length: str, reads: Callable[[str], int | None] | None = None
) -> Operator:
    """Make an operator that counts N units of time.

    In `from`, the operator counts back from now. In `to`, the operator counts forward from the moment of `from`.
    `seconds` is the number of seconds of one unit. `length` is the length of time in words, such as `N days`. If `name`
    is only an example, `reads` extracts N from a text.
    """
    return Operator(
        name,
        False,
        lambda now, n: plus(now, timedelta(seconds=-n * seconds)),
        lambda now, start, n: plus(start, timedelta(seconds=n * seconds)),
        f"now minus {length}",
        f"from plus {length}",
        reads,
    )


def with_number(meaning: str, n: int) -> str:
    """Return the meaning of an operator in words, with a number in place of N: `now minus 1 day`."""
    return re.sub(r"\bN ([a-z]+)s\b", lambda match: f"{n} {plural(n, match[1])}", meaning)


OPERATORS = (
    Operator(
        "today",
        True,
        lambda now, n: midnight(now),
        lambda now, start, n: midnight(now),
        "current day 00:00:00",
        "current day 00:00:00",
    ),
    Operator(
        "now",
        False,
        lambda now, n: now,
        lambda now, start, n: now,
        "current date and time",
        "current date and time",
    ),
    Operator(
        "endday",
        True,
        lambda now, n: _end_of_day(now),
        lambda now, start, n: _end_of_day(start),
        "current day 23:59:59",
        "23:59:59 of the day of from",
    ),
    Operator(
        "endmonth",
        True,
        lambda now, n: _end_of_month(now),
        lambda now, start, n: _end_of_month(start),
        "last day of the current month 23:59:59",
        "last day of the month of from 23:59:59",
    ),
    counting_operator("<N>d", 86_400, "N days"),
    Operator(
        "<N>ad",
        True,
        lambda now, n: midnight(now, -n),
        lambda now, start, n: midnight(start, n),
        "now minus N days, at 00:00:00",
        "from plus N days, at 00:00:00",
    ),
    counting_operator("<N>h", 3_600, "N hours"),
    Operator(
        "<N>ah",
        True,
        lambda now, n: plus(midnight(now), timedelta(hours=-n)),
        lambda now, start, n: plus(midnight(start), timedelta(hours=n)),
        "current day 00:00:00 minus N hours",
        "day of from at 00:00:00 plus N hours",
    ),
)

_FORMS = ", ".join(operator.written(5) for operator in OPERATORS)
_FORMS += ", dd/MM/yyyy HH:mm:ss or epoch seconds"


Seconds = TypeVar("Seconds", int, float)


def check_epoch(seconds: Seconds, *, whole: bool = False) -> Seconds:
    """Return a number of epoch seconds unchanged. Raises UsageError if the number is too large for seconds.

    A number that is too large is taken as milliseconds or a smaller unit. The hint of the error contains the date in
    seconds, with three decimals if they are needed. With `whole`, a hint that would need decimals contains two whole
    numbers instead, the date rounded down and rounded up. Negative numbers are dates before 1970.
    """
    size = abs(seconds)
    power = next((at for at in range(len(_EPOCH_UNITS)) if size < (MAX_EPOCH_SECONDS + 1) * 1000**at), None)
    if power == 0:
        return seconds
    if power is None:
        problem = "is after the year 5138" if seconds > 0 else "is before the year 1"
        raise UsageError(f"date {seconds} {problem}", hint="dates are epoch seconds, such as 1700000000")
    second, milliseconds = divmod(int(size) * 1000 // 1000**power, 1000)
    sign = "-" if seconds < 0 else ""
    seconds_text = f"{sign}{second} or {sign}{second + 1}" if whole else f"{sign}{second}.{milliseconds:03}"
    raise UsageError(
        f"date {seconds} is in {_EPOCH_UNITS[power]}; dates are epoch seconds",
        hint=f"write {seconds_text if milliseconds else f'{sign}{second}'} instead",
    )


def operator_of(moment: Moment | None, operators: Sequence[Operator] = OPERATORS) -> Operator | None:
    """Return the operator that a date uses. Returns None if the date is a number, an absolute date, or None."""
    if not isinstance(moment, str):
        return None
    return next((operator for operator in operators if operator.number_in(moment) is not None), None)


def resolve_one(
    moment: Moment,
    zone: tzinfo,
    operators: Sequence[Operator],
    apply: Callable[[Operator, int], datetime],
) -> datetime:
    """Convert a date in a request to a moment with a time zone.

    The function `apply` computes the moment of an operator from the operator and the operator's number. Raises
    UsageError for a text that is not a date, and for a date outside the calendar.
    """
    parsed = _parse_text(moment, operators) if isinstance(moment, str) else check_epoch(moment)
    try:
        if isinstance(parsed, int | float):
            resolved = _at_epoch(parsed, zone)
        else:
            resolved = parsed.astimezone(zone) if isinstance(parsed, datetime) else apply(*parsed)
        resolved.astimezone(UTC)
    except OverflowError:
        raise UsageError(f"date '{moment}' is outside the calendar") from None
    return resolved


def _at_epoch(seconds: float, zone: tzinfo) -> datetime:
    """Convert epoch seconds to a moment, rounded down to the millisecond."""
    from decimal import ROUND_FLOOR, Decimal

    # The product of a binary float may be slightly too small, which would lose a millisecond. Decimal is exact.
    milliseconds = (Decimal(repr(seconds)) * 1000).to_integral_value(ROUND_FLOOR)
    return from_ms(int(milliseconds)).astimezone(zone)


def _parse_text(text: str, operators: Sequence[Operator]) -> datetime | tuple[Operator, int]:
    if is_absolute(text):
        try:
            return with_zone(datetime.strptime(text, ABSOLUTE_FORMAT))
        except ValueError:
            raise UsageError(f"date '{text}' does not exist", hint="the order is dd/MM/yyyy HH:mm:ss") from None
    for operator in operators:
        if (number := operator.number_in(text)) is not None:
            return operator, number
    raise UsageError(f"'{text}' is not a valid date", hint=f"write {_FORMS}")


def moment_text(moment: datetime) -> str:
    """Return a moment as text in UTC. Milliseconds are omitted if they are 0."""
    spec = "milliseconds" if moment.microsecond else "seconds"
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", spec)
