"""The position of a check in the expected rows, and whether a row of the destination has the expected values.

The type of a column may have become wider since a row was delivered: 1 is now produced as 1.0 or as "1". Such texts
have the same values, but only if that of the destination is of the narrower type.
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
from svcctl.service.verification import ExpectedRows

JSON_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[^",:{}\[\]]+|[",:{}\[\]]', re.DOTALL)
CSV_TOKENS = re.compile(rb'"(?:[^"]|"")*"|[^",\n]+|(?<![^,])(?=[,\n])|[",\n]')
"""A token is empty for a cell of null."""
_ROW_OF_NULLS = re.compile(rb'"",*\n')
_NOT_FINITE = ("nan", "inf", "-inf")
"""The texts of floats that destinations have as null, once their column is of text."""
_NUMBER_TEXT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"-?\d+")


class ExpectedCursor:
    """A position in the rows that a job should have delivered, from `first` to before `end`.

    They come in order and without a hole; ValueError otherwise. Rows dated before `since`, in epoch milliseconds, may
    be gone from the destination.
    """

    def __init__(self, rows: Iterable[ExpectedRows], first: int, end: int, since: int | None = None) -> None:
        self.row = first
        """The number of the next row."""
        self.last_date = 0
        """The latest date of the rows so far, in epoch milliseconds."""
        self.exact = True
        """Whether floats of all rows so far are the same each time; see `ExpectedRows`."""
        self._since = since
        self._rows = iter(rows)
        self._loaded: deque[ExpectedRows] = deque()
        self._end = end

    def following(self, most: int = sys.maxsize) -> Iterator[ExpectedRows]:
        """The next rows, at most so many. They stay the next until `advance`."""
        row, end, at = self.row, min(self._end, self.row + most), 0
        while row < end:
            if at == len(self._loaded):
                self._load(row)
            rows = self._loaded[at]
            yield rows.part(row, min(rows.end, end))
            row, at = rows.end, at + 1

    def next(self, most: int) -> ExpectedRows | None:
        """The first part of the next rows, at most so many; None after the last one."""
        return next(self.following(most), None)

    def take(self, end: int) -> Iterator[ExpectedRows]:
        """Pass the rows before `end`, and return each part of them before that."""
        while self.row < end and (rows := self.next(end - self.row)) is not None:
            yield rows
            self.advance(rows.end - rows.first)

    def advance(self, count: int) -> None:
        """Pass rows that `next` or `following` has returned."""
        end = self.row + count
        while self.row < end:
            passed = self._loaded[0].part(self.row, min(end, self._loaded[0].end))
            self.last_date = max(self.last_date, passed.range_of_dates()[1] or 0)
            self.row = passed.end
            if self.row == self._loaded[0].end:
                self._loaded.popleft()

    def by_age(self, rows: ExpectedRows) -> Iterator[tuple[ExpectedRows, bool]]:
        """The parts of the next rows, each with whether its rows may be gone since they are older than `since`.

        Rows that cannot be produced are as old as the next one that can.
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
        """Load the rows that begin with `row`."""
        rows = next((rows for rows in self._rows if rows.end > rows.first), None)
        if rows is None or rows.first != row:
            produced = "none" if rows is None else f"row {rows.first}"
            raise ValueError(f"row {row} of {self._end} was expected, and {produced} was produced")
        self.exact = self.exact and rows.exact
        self._loaded.append(rows)


def same_values(expected: bytes, actual: bytes, tokens: re.Pattern[bytes], *, exact: bool = True) -> bool:
    """Whether a row of a destination has the values that are expected, perhaps in narrower types.

    Without `exact`, floats with all their digits may differ by rounding.
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
    """A text that two rows of csv have in common if their values are the same, whatever their types."""
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
        if narrower == ("" if text == wider else "null"):
            return text in _NOT_FINITE
        moment = to_ms(datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC))
        return narrower == str(moment) or to_ms(datetime.strptime(narrower, "%Y-%m-%dT%H:%M:%S.%f%z")) == moment
    return False
