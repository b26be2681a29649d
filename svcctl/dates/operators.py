"""Dates of the query interface: the texts that `from` and `to` accept, and the moments that they mean.

The operators are the rows of `OPERATORS`, taken from the interface's table of relative dates. In `from`, an operator
counts back from now. In `to`, it counts forward from `from`. The interface's one example of `from: 2h` shows a time
after now, which contradicts its own rule; svcctl follows the rule.

Client and service share this module: it states facts of the interface and holds no state. The module `shorthand` has
other dates that people type. Days and hours have a fixed length, so `1d` is always 24 hours. Operators that name a day
follow the clocks of the zone.
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
"""A date as the interface accepts it: epoch seconds, or the text of an operator or an absolute date."""

ABSOLUTE_FORMAT = "%d/%m/%Y %H:%M:%S"
DATE_FORMATS = ("default", "sql", "iso")
"""The values of `dateFormat`, the format in which dates are printed."""
MAX_EPOCH_SECONDS = 99_999_999_999
"""The largest epoch seconds, in the year 5138. A larger number is taken for another unit, such as milliseconds."""
_EPOCH_UNITS = ("seconds", "milliseconds", "microseconds", "nanoseconds")
"""Units in which programs count time from the epoch; each is a thousandth of the one before."""

_ABSOLUTE = r"(?a)\d{2}/\d{2}/\d{4} \d{2}:\d{2}:\d{2}"


def is_absolute(text: str) -> bool:
    """Whether a text has the form of the interface's absolute dates, dd/MM/yyyy HH:mm:ss."""
    return re.fullmatch(_ABSOLUTE, text) is not None


def with_zone(date: datetime) -> datetime:
    """A date with a zone: unchanged if it has an offset, otherwise in UTC, as the interface defines it."""
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def plus(moment: datetime, length: timedelta) -> datetime:
    """A moment plus a length of elapsed time, in the same zone; datetime's own addition ignores clock changes."""
    return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)


def midnight(moment: datetime, days: int = 0) -> datetime:
    """The first moment of the day of a moment, or of a day some days later."""
    # If the clocks show midnight twice, the day starts at the first one (fold=0). A day ends at its second 23:59:59.
    return (moment + timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _end_of_day(moment: datetime) -> datetime:
    return moment.replace(hour=23, minute=59, second=59, microsecond=0, fold=1)


def _end_of_month(moment: datetime) -> datetime:
    next_month = (moment.replace(day=28) + timedelta(days=4)).replace(day=1)
    return _end_of_day(next_month - timedelta(days=1))


class Operator(NamedTuple):
    """A relative date: its spelling, and the moments that it means in `from` and in `to`.

    In `name` and in the meanings, N stands for a whole number. `in_from` computes the moment from now and N; `in_to`
    from now, the moment of `from`, and N. A `zoned` operator names a day, whose start depends on the time zone. If
    `name` is only an example, `reads` extracts the number from a text.
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
        """Whether the operator is written with a number."""
        return "<N>" in self.name

    def written(self, n: int) -> str:
        return self.name.replace("<N>", str(n))

    def number_in(self, text: str) -> int | None:
        """The number in a text that is written with this operator; None for any other text.

        The number is 0 if the operator has none.
        """
        if self.reads is not None:
            return self.reads(text)
        match = re.fullmatch(self.name.replace("<N>", "([0-9]+)"), text)
        return None if match is None else int(match[1][:12]) if self.counts else 0


def counting_operator(
    name: str, seconds: int, length: str, reads: Callable[[str], int | None] | None = None
) -> Operator:
    """An operator that goes N times `seconds` back from now, or forward from `from`.

    `length` has the same in words, such as `N days`.
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
    """The meaning of an operator, with a number in place of N: `now minus 1 day`."""
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
    """Return a number of epoch seconds unchanged; UsageError if it is too large and must be in another unit.

    A service would wait for such a date until the year 50000. Negative numbers are dates before 1970. The hint has the
    date in seconds, to the millisecond. With `whole`, a date with a fraction has the seconds before and after it in the
    hint.
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
    """The operator with which a date is written; None for an absolute date."""
    if not isinstance(moment, str):
        return None
    return next((operator for operator in operators if operator.number_in(moment) is not None), None)


def resolve_one(
    moment: Moment,
    zone: tzinfo,
    operators: Sequence[Operator],
    apply: Callable[[Operator, int], datetime],
) -> datetime:
    """The moment, with a time zone, that a date of the interface means.

    `apply` computes the moment of an operator from the operator and its number. UsageError for a text that is not a
    date, and for a date outside the calendar.
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
    """The moment of a number of epoch seconds; digits finer than a millisecond are cut off."""
    from decimal import ROUND_FLOOR, Decimal

    # Decimal, because the product of a binary float could be slightly too small and lose a millisecond.
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
    """A moment as text in UTC, with milliseconds only if they are not 0."""
    spec = "milliseconds" if moment.microsecond else "seconds"
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", spec)
