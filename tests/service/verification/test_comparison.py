"""Rows are compared by value: a type that became wider since the delivery changes their text."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from svcctl.service.verification import ExpectedRows
from svcctl.service.verification.comparison import CSV_TOKENS, JSON_TOKENS, ExpectedCursor, same_values


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ('{"a":1,"b":"x"}', '{"a":1,"b":"x"}'),
        ('{"a":1.0,"b":"x"}', '{"a":1,"b":"x"}'),
        ('{"a":"1"}', '{"a":1}'),
        ('{"a":"-1.5"}', '{"a":-1.5}'),
        ('{"a":"-1.0","b":"1e+17"}', '{"a":-1,"b":100000000000000000}'),
        ('{"a":"true","1":[2.0]}', '{"a":true,"1":[2]}'),
        ('{"a":"nan"}', '{"a":null}'),
        ('{"a":"2023-11-14 22:13:20.250"}', '{"a":1700000000250}'),
        ('["a\\"b,:{}",9007199254740992.0]', '["a\\"b,:{}",9007199254740992]'),
    ],
)
def test_a_message_of_narrower_types_has_the_same_values(expected: str, found: str) -> None:
    assert same_values(expected.encode(), found.encode(), JSON_TOKENS)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":1}', '{"a":"1"}'),
        ('{"a":1.5}', '{"a":1}'),
        ('{"a":"1.5"}', '{"a":1}'),
        ('{"a":"x"}', '{"a":"y"}'),
        ('{"a":"null"}', '{"a":null}'),
        ('{"a":1}', '{ "a":1}'),
        ('{"a":1}', '{"b":1}'),
        ('{"1":1}', "{1:1}}"),
        ('{"a":1,"b":2}', '{"b":2,"a":1}'),
        ('{"a":"2023-11-14 22:13:20.250"}', '{"a":1700000000251}'),
        ('{"a":1}', ""),
        ('["9007199254740993"]', "[9007199254740992]"),
        ("[9007199254740992.0]", "[9007199254740993]"),
        ('{"a":"b"}', '{"a":"b'),
    ],
)
def test_other_texts_differ(expected: str, found: str) -> None:
    assert not same_values(expected.encode(), found.encode(), JSON_TOKENS)


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ('{"a":0.30000000000000004,"b":-1.234567890123456e-7}', '{"a":0.3,"b":-1.234567890123451e-7}', True),
        ('{"a":0.30000000000000004}', '{"a":0.31}', False),
        ('{"a":1.2345678}', '{"a":1.2345679}', False),
    ],
)
def test_only_calculated_floats_may_differ_by_rounding(expected: str, found: str, same: bool) -> None:
    assert same_values(expected.encode(), found.encode(), JSON_TOKENS, exact=False) is same
    assert not same_values(expected.encode(), found.encode(), JSON_TOKENS)


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ('1.0,"a,""b\n",x\n', '1,"a,""b\n",x\n', True),
        ("2023-11-14 22:13:20.250\n", "2023-11-14T22:13:20.250Z\n", True),
        ("2023-11-14 22:13:20.250\n", "2023-11-15T00:13:20.250+0200\n", True),
        ("nan,1,-inf\n", ",1,\n", True),
        ("nan\n", '""\n', True),
        ("inf,,\n", '"",,\n', True),
        ('"",nan\n', '"",\n', True),
        ("nan,1\n", '"",1\n', False),
        ("x,1\n", ",1\n", False),
        ("nan\n", "null\n", False),
        ("1,\n", "1\n", False),
        ('1,""\n', "1,\n", False),
        ("1\n", "1", False),
        ("1,2\n", "2,1\n", False),
    ],
)
def test_a_row_of_csv_is_compared_by_value(expected: str, found: str, same: bool) -> None:
    assert same_values(expected.encode(), found.encode(), CSV_TOKENS) is same


def rows(first: int, *dates: int | None) -> ExpectedRows:
    end = first + len(dates)
    return ExpectedRows(first, end, pa.array(map(str, range(first, end)), pa.string()), pa.array(dates, pa.int64()))


def ages(cursor: ExpectedCursor, most: int) -> Iterator[tuple[int, int, bool]]:
    while (rows := cursor.next(most)) is not None:
        yield from ((part.first, part.end, old) for part, old in cursor.by_age(rows))
        cursor.advance(rows.end - rows.first)


def test_rows_come_in_parts_of_one_age() -> None:
    expected = [
        rows(3, 1, 2, None, 9),
        ExpectedRows(7, 9),
        rows(9),
        ExpectedRows(9, 10),
        rows(10, 4),
    ]
    cursor = ExpectedCursor(expected, 3, 11, since=5)
    parts = [(3, 5, True), (5, 7, False), (7, 9, True), (9, 10, True), (10, 11, True)]
    assert list(ages(cursor, 100)) == parts
    assert (cursor.row, cursor.last_date) == (11, 9)


def test_rows_that_cannot_be_produced_are_not_old_without_a_later_date() -> None:
    cursor = ExpectedCursor([ExpectedRows(0, 2)], 0, 2, since=5)
    assert list(ages(cursor, 1)) == [(0, 1, False), (1, 2, False)]


@pytest.mark.parametrize("expected", [[rows(0, 1)], [rows(0, 1), rows(2, 1)]])
def test_rows_that_are_left_out_are_an_error(expected: list[ExpectedRows]) -> None:
    with pytest.raises(ValueError, match="row 1"):
        list(ages(ExpectedCursor(expected, 0, 2), 5))
