"""The rows that a job should have delivered, one stretch after another, and whether another text has the same values.

The type of a column may have become wider since a row was delivered: 1 is now produced as 1.0 or as "1". Such texts
have the same values, but only if that of the destination is of the narrower type.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isclose

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.dates.epochs import to_ms
from svcctl.service.rendering import arrow
from svcctl.service.verification import ExpectedRows, NotReproducible

JSON_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[^",:{}\[\]]+|[",:{}\[\]]', re.DOTALL)
CSV_TOKENS = re.compile(rb'"(?:[^"]|"")*"|[^",\n]+|[",\n]')
_NUMBER_TEXT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """The expected rows from `first` to before `end`; `lines` and `dates` are None if they cannot be produced."""

    first: int
    end: int
    lines: pa.StringArray | None = None
    dates: pa.Int64Array | None = None

    def part(self, first: int, end: int) -> Stretch:
        if self.lines is None or self.dates is None:
            return Stretch(first, end)
        at, count = first - self.first, end - first
        return Stretch(first, end, self.lines.slice(at, count), self.dates.slice(at, count))

    def range_of_dates(self) -> tuple[int | None, int | None]:
        """The earliest and the latest date in epoch milliseconds; None if there is no date."""
        if self.dates is None:
            return None, None
        limits = pc.min_max(self.dates)
        return limits["min"].as_py(), limits["max"].as_py()

    def rows(self) -> Iterator[tuple[bytes, int | None]]:
        """The text and the date of each row."""
        assert self.dates is not None
        return zip(self.texts(), self.dates.to_pylist(), strict=True)

    def texts(self) -> list[bytes]:
        assert self.lines is not None
        return arrow.row_bytes(self.lines)


class ExpectedCursor:
    """A position in the rows that a job should have delivered. They come in order, and no row is left out.

    `since` is the date before which rows may be gone, in epoch milliseconds.
    """

    def __init__(
        self, rows: Iterable[ExpectedRows | NotReproducible], first: int, end: int, since: int | None = None
    ) -> None:
        self.row = first
        """The number of the next row."""
        self.last_date = 0
        """The latest date of the rows so far, in epoch milliseconds."""
        self._since = since
        self._rows = iter(rows)
        self.exact = True
        """Whether floats of the rows are the same each time; see `ExpectedRows`."""
        self._loaded: deque[Stretch] = deque()
        self._read = first
        self._end = end

    def next(self, most: int) -> Stretch | None:
        """The next rows, at most so many; None after the last one. They stay the next until `advance`."""
        if self.row >= self._end:
            return None
        if not self._loaded and not self._load():
            raise ValueError(f"row {self.row} of {self._end} was not produced")
        stretch = self._loaded[0]
        return stretch.part(self.row, min(stretch.end, self.row + most, self._end))

    def take(self, end: int) -> Iterator[Stretch]:
        """Pass the rows before `end`, and return each stretch of them before that."""
        while self.row < end and (stretch := self.next(end - self.row)) is not None:
            yield stretch
            self.advance(stretch.end - stretch.first)

    def following(self, most: int, end: int) -> Iterator[Stretch]:
        """The next rows before `end`, at most so many, and only as far as they can be produced."""
        end, row, at = min(end, self._end, self.row + most), self.row, 0
        while row < end and (at < len(self._loaded) or self._load()):
            stretch = self._loaded[at]
            if stretch.lines is None:
                return
            yield stretch.part(row, min(stretch.end, end))
            row, at = stretch.end, at + 1

    def advance(self, count: int) -> None:
        """Pass rows that `next` or `following` has returned."""
        end = self.row + count
        while self.row < end:
            passed = self._loaded[0].part(self.row, min(end, self._loaded[0].end))
            self.last_date = max(self.last_date, passed.range_of_dates()[1] or 0)
            self.row = passed.end
            if self.row == self._loaded[0].end:
                self._loaded.popleft()

    def by_age(self, stretch: Stretch) -> Iterator[tuple[Stretch, bool]]:
        """The parts of the next rows, each with whether its rows may be gone since they are older than `since`.

        Rows that cannot be produced are as old as the next one that can.
        """
        if self._since is None:
            yield stretch, False
        elif stretch.dates is None:
            following = self._date_after()
            yield stretch, following is not None and following < self._since
        else:
            old = pc.fill_null(pc.less(stretch.dates, self._since), False).to_pylist()
            first = 0
            for end in range(1, len(old) + 1):
                if end == len(old) or old[end] != old[first]:
                    yield stretch.part(stretch.first + first, stretch.first + end), old[first]
                    first = end

    def _load(self) -> bool:
        """Load the next rows; False after the last ones."""
        for rows in self._rows:
            if rows.first != self._read:
                raise ValueError(f"row {rows.first} was produced where row {self._read} was expected")
            if isinstance(rows, ExpectedRows):
                stretch = Stretch(rows.first, rows.first + len(rows.lines), rows.lines, rows.dates)
                self.exact = rows.exact
            else:
                stretch = Stretch(rows.first, rows.end)
            self._read = stretch.end
            if stretch.end > stretch.first:
                self._loaded.append(stretch)
                return True
        return False

    def _date_after(self) -> int | None:
        """The date of the first row with a date after the next stretch."""
        at = 1
        while at < len(self._loaded) or self._load():
            if (date := self._loaded[at].range_of_dates()[0]) is not None:
                return date
            at += 1
        return None


def same_values(expected: bytes, actual: bytes, tokens: re.Pattern[bytes], *, exact: bool = True) -> bool:
    """Whether a row of a destination has the values that are expected, perhaps in narrower types.

    Without `exact`, floats with all their digits may differ by rounding.
    """
    if expected == actual:
        return True
    wider, narrower = tokens.findall(expected), tokens.findall(actual)
    return (
        len(wider) == len(narrower)
        and b"".join(narrower) == actual
        and all(_has_value(*map(_text, pair), exact=exact) for pair in zip(wider, narrower, strict=True))
    )


def comparable(row: bytes, tokens: re.Pattern[bytes]) -> bytes:
    """A text that two rows have in common if their values are the same, whatever their types."""
    return b"\0".join(repr(_value(_text(token))).encode() for token in tokens.findall(row))


def _text(token: bytes) -> str:
    return token.decode(errors="surrogateescape")


def _value(token: str) -> object:
    text = token.strip('"')
    if not _NUMBER_TEXT.fullmatch(text):
        return text
    return float(text if _INTEGER.fullmatch(text) else f"{float(text):.9g}")


def _has_value(expected: str, actual: str, *, exact: bool) -> bool:
    """Whether two tokens have the same value; see `same_values`."""
    if expected == actual or _is_wider(expected, actual):
        return True
    if exact or not any(map(_is_inexact, (expected, actual))) or _INTEGER.fullmatch(actual):
        return False
    return all(map(_NUMBER_TEXT.fullmatch, (expected, actual))) and isclose(
        float(expected), float(actual), rel_tol=1e-9
    )


def _is_inexact(number: str) -> bool:
    """Whether a number is a float with all digits that it can have, as most results of calculations."""
    digits = re.sub("[eE].*|[-.]", "", number).strip("0")
    return len(digits) >= 15 and not _INTEGER.fullmatch(number)


def _is_wider(wider: str, narrower: str) -> bool:
    """Whether a token is the value of a narrower one in a wider type: float8 for integers, str for all."""
    if narrower.startswith('"'):
        return False
    number = wider.strip('"')  # of an integer that became a float8, which became a str
    if _INTEGER.fullmatch(narrower) and _NUMBER_TEXT.fullmatch(number) and not _INTEGER.fullmatch(number):
        return float(number) == int(narrower)
    with suppress(ValueError):
        text = json.loads(wider) if wider.startswith('"') else wider
        if text == narrower and wider != narrower:
            return narrower in ("true", "false") or _NUMBER_TEXT.fullmatch(narrower) is not None
        if narrower == "null":
            return text in ("nan", "inf", "-inf") and text != wider
        moment = to_ms(datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC))
        return narrower == str(moment) or to_ms(datetime.strptime(narrower, "%Y-%m-%dT%H:%M:%S.%f%z")) == moment
    return False
