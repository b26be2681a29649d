"""Times that are numbers, such as epoch seconds, and the search for the unit of the numbers in a column.

The user may name the unit. Otherwise, the first numbers of the column decide the unit. In this unit, at least nine of
ten numbers must be plausible times. A plausible time is from the year 2000 until one day after now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from svcctl.dates.epochs import to_ms
from svcctl.errors import UsageError
from svcctl.service.language.types import Type
from svcctl.service.loading.skips import shown

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The first and last moment of the years 1 to 9999, in epoch milliseconds."""
_OLDEST_MS = to_ms(datetime(2000, 1, 1, tzinfo=UTC))
_DAY_MS = 86_400_000
_PLAUSIBLE_SHARE = 0.9
_NUMBER_TEXT = re.compile(r"\s*[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d{1,2})?\s*")
_DATE_DIGITS = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d*")
_DIGIT_FORMATS = {8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S", 17: "%Y%m%d%H%M%S%g"}
"""The formats of dates that consist of digits, by the number of digits."""
_SHORT_DATE_DIGITS = re.compile(r"\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
"""Matches a date with a year of two digits."""
_CLOCK_DIGITS = re.compile(r"(?:[01]\d|2[0-3])[0-5]\d[0-5]\d")


@dataclass(frozen=True, slots=True)
class NumberUnit:
    """A unit of numbers that are times. Its length in milliseconds is `numerator` divided by `denominator`.

    `zero_ms` is the time of the number 0, in epoch milliseconds.
    """

    name: str
    numerator: int
    denominator: int = 1
    zero_ms: int = 0

    @property
    def is_local(self) -> bool:
        """Whether the numbers count local time. Days of spreadsheets count local time. Epochs count time in UTC."""
        return self.zero_ms != 0

    def number(self, ms: int) -> float:
        """Convert epoch milliseconds to a number in this unit."""
        return (ms - self.zero_ms) * self.denominator / self.numerator


_SPREADSHEET = NumberUnit("spreadsheet", _DAY_MS, 1, -25_569 * _DAY_MS)
"""The unit of spreadsheets: days since 1899-12-30."""
_EPOCHS = (
    NumberUnit("epoch", 1000),
    NumberUnit("epoch_ms", 1),
    NumberUnit("epoch_us", 1, 1000),
    NumberUnit("epoch_ns", 1, 1_000_000),
)
NUMBER_UNITS: Mapping[str, NumberUnit] = {unit.name: unit for unit in (*_EPOCHS, _SPREADSHEET)}
"""The units that --time-format accepts, by name."""


@dataclass(frozen=True, slots=True)
class NumberTimes:
    """A rule for reading numbers as times: the unit, and the first and last accepted time in epoch milliseconds."""

    unit: NumberUnit
    first_ms: int = FIRST_MS
    last_ms: int = LAST_MS

    @property
    def has_any_year(self) -> bool:
        """Whether a number may stand for a time of any year that a table can have."""
        return (self.first_ms, self.last_ms) == (FIRST_MS, LAST_MS)

    def as_time(self, value: str, type_: Type) -> str:
        """Return SQL that converts a number, or a text that contains a number, to a time.

        The SQL gives null for any other text, and for a time outside the accepted times.
        """
        unit, first, last = self.unit, self.unit.number(self.first_ms), self.unit.number(self.last_ms)
        is_whole = type_ in (Type.INT4, Type.INT8)
        number = f"({value})::DOUBLE"
        if type_ is Type.STR:
            number = f"TRY_CAST(replace({value}, ',', '.') AS DOUBLE)"
        if unit.is_local or (unit.numerator == unit.denominator and not is_whole):
            us = f"round({number} * {unit.numerator})::BIGINT * 1000 + {unit.zero_ms * 1000}"
        elif not is_whole:
            us = f"round({number} * {unit.numerator * 1000 / unit.denominator})::BIGINT"
        elif unit.denominator > 1000:
            us = f"({value})::BIGINT // {unit.denominator // 1000}"
        else:  # whole numbers give exact times in every year
            us = f"({value})::BIGINT * {unit.numerator * 1000 // unit.denominator}"
        return f"CASE WHEN {value if is_whole else number} BETWEEN {first} AND {last} THEN make_timestamp({us}) END"


def _plausible(unit: NumberUnit, now_ms: int) -> NumberTimes:
    return NumberTimes(unit, _OLDEST_MS, now_ms + _DAY_MS)


def numbers_among(values: Sequence[str]) -> list[str]:
    """Return the values that are numbers."""
    return [value for value in values if _NUMBER_TEXT.fullmatch(value)]


def detected(numbers: Sequence[str], now_ms: int) -> NumberTimes | None:
    """Find the rule for reading the numbers of a column as times. `numbers` has the first numbers of the column.

    Returns None if the numbers are not plausible times in any unit of epochs.
    """
    return next((times for unit in _EPOCHS if _fits(numbers, times := _plausible(unit, now_ms))), None)


def _fits(numbers: Sequence[str], times: NumberTimes) -> bool:
    first, last = times.unit.number(times.first_ms), times.unit.number(times.last_ms)
    plausible = sum(first <= float(number.replace(",", ".")) <= last for number in numbers)
    return plausible >= _PLAUSIBLE_SHARE * len(numbers) > 0


def own_times(file: str, numbers: Sequence[str], now_ms: int) -> NumberTimes:
    """Return the rule for numbers in the member eventdate of JSON. These numbers are epoch milliseconds of any year.

    The service itself writes eventdate in this form. Raises UsageError if the numbers may also be epoch seconds.
    """
    if _fits(numbers, _plausible(NUMBER_UNITS["epoch"], now_ms)):
        raise UsageError(
            f"numbers in eventdate of {file} such as {shown(numbers[0])} may be epoch seconds, or milliseconds of 1970",
            reason="seconds-or-milliseconds",
        )
    return NumberTimes(NUMBER_UNITS["epoch_ms"])


def unclear(file: str, column: str, numbers: Sequence[str], now_ms: int, *, is_day: bool) -> UsageError:
    """Return the error for a column of times in which the first numbers are not plausible as epochs.

    `is_day` means that the column has days, and another column has the times of day.
    """
    example, meaning, data = numbers[0].strip(), "are not epochs between 2000 and now", {}
    is_date = sum(bool(_DATE_DIGITS.fullmatch(number.strip())) for number in numbers) >= _PLAUSIBLE_SHARE * len(numbers)
    if is_date and len(example) in _DIGIT_FORMATS:
        meaning, data = "look like dates", {"spelled": _DIGIT_FORMATS[len(example)]}
    elif not is_day and all(_CLOCK_DIGITS.fullmatch(number.strip()) for number in numbers):
        meaning, data = "may be times of day", {"clock": column}
    elif all(_SHORT_DATE_DIGITS.fullmatch(number.strip()) for number in numbers):
        meaning, data = "may be dates", {"spelled": "%y%m%d"}
    elif _fits(numbers, _plausible(_SPREADSHEET, now_ms)):
        meaning, data = "may be days of a spreadsheet", {"unit": _SPREADSHEET.name}
    return UsageError(
        f"numbers in {column} of {file} such as {shown(example)} {meaning}", reason="unclear-numbers", data=data
    )
