"""The position of a check in the expected rows of a job, and the comparison of expected and delivered values.

The type of a column may have become wider since a row was delivered. For example, a delivered 1 may now be produced as
1.0 or as "1". Such values count as equal if the value at the destination has the narrower type.
"""

from __future__ import annotations

import json
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from math import isclose

import pyarrow.compute as pc

from svcctl.dates.epochs import to_ms
from svcctl.service.verification import ExpectedRows, earliest, latest

JSON_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[^",:{}\[\]]+|[",:{}\[\]]', re.DOTALL)
CSV_TOKENS = re.compile(rb'"(?:[^"]|"")*"|[^",\n]+|(?<![^,])(?=[,\n])|[",\n]')
"""A pattern for the tokens of a csv row. The token of a cell with null is empty."""
_ROW_OF_NULLS = re.compile(rb'"",*\n')
_NOT_FINITE = ("nan", "inf", "-inf")
"""The texts of the floats that a destination stores as null: infinity and values that are not a number.

If the type of the column becomes text later, the check produces these texts where the destination has null.
"""
_NUMBER_TEXT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"-?\d+")


class ExpectedCursor:
    """A position in the expected rows, which are the rows that a job should have delivered.

    The rows go from `first` (included) to `end` (not included). Raises ValueError if the rows are not in order or have
    a gap. Rows with a date before `since` (epoch milliseconds) may no longer be at the destination.
    """

    def __init__(self, rows: Iterable[ExpectedRows], first: int, end: int, since: int | None = None) -> None:
        self.row = first
        """The number of the next row."""
        self.last_date = 0
        """The latest date of the rows before the position, in epoch milliseconds."""
        self.passed_dates: tuple[int | None, int | None] = (None, None)
        """The earliest and the latest date of the rows that were passed since the last call of `begin`."""
        self.exact = True
        """Whether all rows that were loaded so far have exact floats, see `ExpectedRows`."""
        self._since = since
        self._rows = iter(rows)
        self._loaded: deque[ExpectedRows] = deque()
        self._end = end

    def begin(self) -> None:
        """Forget the dates in `passed_dates`, because the rows of the next file begin."""
        self.passed_dates = (None, None)

    def following(self, most: int = sys.maxsize) -> Iterator[ExpectedRows]:
        """Yield the next rows in parts, together at most `most` rows. The position stays the same."""
        row, end, at = self.row, min(self._end, self.row + most), 0
        while row < end:
            if at == len(self._loaded):
                self._load(row)
            rows = self._loaded[at]
            yield rows.part(row, min(rows.end, end))
            row, at = rows.end, at + 1

    def next(self, most: int) -> ExpectedRows | None:
        """Return the first part of the next rows, with at most `most` rows. Return None after the last row.

        The position stays the same.
        """
        return next(self.following(most), None)

    def take(self, end: int) -> Iterator[ExpectedRows]:
        """Yield the rows before `end` in parts. The position moves past a part when the next part is requested."""
        while self.row < end and (rows := self.next(end - self.row)) is not None:
            yield rows
            self.advance(rows.end - rows.first)

    def advance(self, count: int) -> None:
        """Move the position past `count` rows. `next` or `following` must have returned these rows before."""
        end = self.row + count
        while self.row < end:
            passed = self._loaded[0].part(self.row, min(end, self._loaded[0].end))
            dates = passed.range_of_dates()
            self.last_date = max(self.last_date, dates[1] or 0)
            self.passed_dates = earliest(self.passed_dates[0], dates[0]), latest(self.passed_dates[1], dates[1])
            self.row = passed.end
            if self.row == self._loaded[0].end:
                self._loaded.popleft()

    def by_age(self, rows: ExpectedRows) -> Iterator[tuple[ExpectedRows, bool]]:
        """Split rows into older and newer parts. `rows` must be the next rows.

        Yield each part, and whether its rows are older than `since`. Such old rows may no longer be at the destination.
        Rows that cannot be produced again have no dates. The first date after these rows decides whether they are old.
        """
        if self._since is None:
            yield rows, False
        elif rows.dates is None:
            dates = (part.range_of_dates()[0] for part in self.following())
            first_date = next((date for date in dates if date is not None), None)
            yield rows, first_date is not None and first_date < self._since
        else:
            row = rows.first
            for old, group in groupby(pc.fill_null(pc.less(rows.dates, self._since), False).to_pylist()):
                end = row + len(list(group))
                yield rows.part(row, end), old
                row = end

    def _load(self, row: int) -> None:
        """Load the rows from the number `row` on. Raises ValueError if the next rows begin with another number."""
        rows = next((rows for rows in self._rows if rows.end > rows.first), None)
        if rows is None or rows.first != row:
            produced = "nothing" if rows is None else f"row {rows.first}"
            raise ValueError(f"row {row} of {self._end} was expected, but {produced} was produced")
        self.exact = self.exact and rows.exact
        self._loaded.append(rows)


def same_values(expected: bytes, actual: bytes, tokens: re.Pattern[bytes], *, exact: bool = True) -> bool:
    """Whether a row at a destination has the expected values. The types at the destination may be narrower.

    If `exact` is false, floats with 15 digits or more may differ by a rounding error.
    """
    if expected == actual:
        return True
    if _ROW_OF_NULLS.fullmatch(actual) and not expected.startswith(b'""'):
        actual = actual[2:]
    wider, narrower = tokens.findall(expected), tokens.findall(actual)
    return (
        len(wider) == len(narrower)
        and b"".join(narrower) == actual
        and all(_has_value(*map(_text, pair), exact=exact) for pair in zip(wider, narrower, strict=True))
    )


def comparable(row: bytes) -> bytes:
    """Return a text that is the same for two csv rows with the same values, even if the values have different types."""
    return b"\0".join(repr(_value(_text(token))).encode() for token in CSV_TOKENS.findall(row))


def _text(token: bytes) -> str:
    return token.decode(errors="surrogateescape")


def _value(token: str) -> object:
    text = token.strip('"')
    if text in _NOT_FINITE:
        return ""
    if not _NUMBER_TEXT.fullmatch(text):
        return text
    return float(text if _INTEGER.fullmatch(text) else f"{float(text):.9g}")


def _has_value(expected: str, actual: str, *, exact: bool) -> bool:
    """Whether two tokens of rows have the same value, see `same_values`."""
    if expected == actual or _is_wider(expected, actual):
        return True
    if exact or not any(map(_is_inexact, (expected, actual))) or _INTEGER.fullmatch(actual):
        return False
    return all(map(_NUMBER_TEXT.fullmatch, (expected, actual))) and isclose(
        float(expected), float(actual), rel_tol=1e-9
    )


def _is_inexact(number: str) -> bool:
    """Whether a number is a float with at least 15 digits, like most results of calculations with floats."""
    digits = re.sub("[eE].*|[-.]", "", number).strip("0")
    return len(digits) >= 15 and not _INTEGER.fullmatch(number)


def _is_wider(wider: str, narrower: str) -> bool:
    """Whether the token `wider` has the same value as the token `narrower`, in a wider type.

    float8 is wider than the types of integers, and str is wider than all other types.
    """
    if narrower.startswith('"'):
        return False
    number = wider.strip('"')  # without quotes, for an integer that became a float8, and then a str
    if _INTEGER.fullmatch(narrower) and _NUMBER_TEXT.fullmatch(number) and not _INTEGER.fullmatch(number):
        return float(number) == int(narrower)
    with suppress(ValueError):
        text = json.loads(wider) if wider.startswith('"') else wider
        if text == narrower and wider != narrower:
            return narrower in ("true", "false") or _NUMBER_TEXT.fullmatch(narrower) is not None
        if narrower == ("" if text == wider else "null"):
            return text in _NOT_FINITE
        moment = to_ms(datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC))
        return narrower == str(moment) or to_ms(datetime.strptime(narrower, "%Y-%m-%dT%H:%M:%S.%f%z")) == moment
    return False
