"""Columns that are chosen, and rows that are put in order, however many they are."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.api.formats.batches import Batches
from svcctl.errors import UsageError
from svcctl.terminal.external_sort import in_order
from svcctl.terminal.formats import FORMATS
from svcctl.terminal.layout import TableColumn
from svcctl.terminal.selection import NO_SELECTION, Selection, SortKey, rank, selection_of

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a column twice": "--columns names 'user' twice, but {name} needs different names",
    "sorted rows without an end": "--top needs --sort",
}
HINTS = {
    "a column twice": "name it once, or use --format csv or table",
    "sorted rows without an end": "for the largest n: --sort n:desc --top 3; for the first rows of a query: --limit 3",
}

COLUMNS = [TableColumn("user", "str"), TableColumn("n", "float8"), TableColumn("ip", "str")]
ROWS: list[tuple[Any, ...]] = [
    ("bob", 10, "10.0.0.9"),
    ("ana", 9.5, "10.0.0.10"),
    (None, None, None),
    ("ana", math.nan, "9.0.0.1"),
    ("Zoë", -1, "10.0.0.9"),
]


def arranged(selection: Selection) -> tuple[list[str], list[list[Any]]]:
    columns, rows = selection.pick(COLUMNS, selection.order(COLUMNS, ROWS))
    return [column.name for column in columns], [list(row) for row in rows]


@pytest.mark.parametrize(
    ("sort", "top", "users_and_ips"),
    [
        ("n", None, ["Zoë 10.0.0.9", "ana 10.0.0.10", "bob 10.0.0.9", "None None", "ana 9.0.0.1"]),
        ("n:desc", 2, ["bob 10.0.0.9", "ana 10.0.0.10"]),
        ("n:desc", None, ["bob 10.0.0.9", "ana 10.0.0.10", "Zoë 10.0.0.9", "None None", "ana 9.0.0.1"]),
        ("ip", 3, ["ana 9.0.0.1", "bob 10.0.0.9", "Zoë 10.0.0.9"]),
        ("user:desc,ip:asc", None, ["bob 10.0.0.9", "ana 9.0.0.1", "ana 10.0.0.10", "Zoë 10.0.0.9", "None None"]),
    ],
)
def test_numbers_addresses_and_texts_have_their_own_order_and_nulls_are_last(
    sort: str, top: int | None, users_and_ips: list[str]
) -> None:
    names, rows = arranged(selection_of("user,ip", sort, top, no_header=False))
    assert (names, [f"{user} {ip}" for user, ip in rows]) == (["user", "ip"], users_and_ips)


def test_addresses_in_a_column_of_text_come_first_by_their_numbers() -> None:
    values = ["10.1.1.1", "n/a", None, "9.1.1.1", "9.1.1.256", "2001:db8::1", 7]
    order = list(selection_of(None, "ip", None, no_header=False).order(COLUMNS[2:], [(value,) for value in values]))
    assert [value for (value,) in order] == [7, "9.1.1.1", "10.1.1.1", "2001:db8::1", "9.1.1.256", "n/a", None]


@pytest.mark.parametrize("name", [row.name for row in FORMATS.values() if row.arranges])
def test_a_column_is_there_twice_only_where_names_are_no_keys(name: str) -> None:
    twice = selection_of("user,n,user", None, None, no_header=False)
    if name in ("table", "vertical", "chart", "csv", "tsv", "xls"):
        FORMATS[name].check(twice)
        return
    with pytest.raises(UsageError) as caught:
        FORMATS[name].check(twice)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a column twice"].format(name=name),
        HINTS["a column twice"],
    )


def test_options_become_a_selection() -> None:
    assert selection_of(None, None, None, no_header=False) == NO_SELECTION
    assert selection_of('a,"b,c"', 'x:desc,"y:z",w:asc', 3, no_header=True) == Selection(
        ("a", "b,c"), (SortKey("x", True), SortKey("y:z"), SortKey("w")), 3, False
    )
    with pytest.raises(UsageError) as caught:
        selection_of(None, None, 3, no_header=False)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["sorted rows without an end"],
        HINTS["sorted rows without an end"],
    )


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(), st.floats(), st.text())), max_size=40), st.booleans())
def test_any_values_have_an_order_whether_all_are_kept_or_some(rows: list[tuple[Any]], falling: bool) -> None:
    selection = Selection(sort=(SortKey("a", falling),))
    columns = [TableColumn("a")]
    whole = list(selection.order(columns, rows))
    assert sorted(map(repr, whole)) == sorted(map(repr, rows))
    some = Selection(sort=selection.sort, top=3).order(columns, rows)
    assert list(map(repr, some)) == list(map(repr, whole[:3]))


CELLS = st.none() | st.integers(-3, 3) | st.floats() | st.text("ab\0\uffff\U0010ffff1.", max_size=3)


@given(
    st.lists(st.tuples(CELLS, st.integers(0, 2)), max_size=60),
    st.lists(st.tuples(st.sampled_from((0, 1)), st.booleans()), min_size=1, max_size=2),
    st.none() | st.integers(1, 9),
)
def test_runs_give_the_rows_in_the_order_of_one_sort(
    rows: list[tuple[Any, int]], sort: list[tuple[int, bool]], top: int | None
) -> None:
    columns, expected = [TableColumn("a"), TableColumn("n")], rows
    for at, falling in reversed(sort):
        given = [row for row in expected if not rank(row[at], None)[0]]
        nulls = [row for row in expected if rank(row[at], None)[0]]
        expected = sorted(given, key=lambda row: rank(row[at], None), reverse=falling) + nulls

    keys = Selection(sort=tuple(SortKey("an"[at], falling) for at, falling in sort)).keys(columns)
    batches = Batches([rows[:7], rows[7:20], rows[20:]])
    assert list(map(repr, in_order(batches, keys, top, run_bytes=1000))) == list(map(repr, expected[:top]))


def test_numbers_alone_and_numbers_among_others_are_in_one_order() -> None:
    batches: list[list[tuple[Any, str]]] = [
        [(number, "x" * 200) for number in range(40)],
        [(None, "y" * 200), (7, "y"), ("text", "y")] * 10,
        [(number + 0.5, "z" * 200) for number in range(40)],
    ]
    keys = Selection(sort=(SortKey("a", True),)).keys([TableColumn("a"), TableColumn("b")])
    seen = [value for value, _ in in_order(Batches(batches), keys, run_bytes=1000)]
    numbers = [value for batch in batches for value, _ in batch if isinstance(value, int | float)]
    assert seen == ["text"] * 10 + sorted(numbers, reverse=True) + [None] * 10


def test_more_rows_than_memory_holds_are_sorted_in_a_temporary_file() -> None:
    count = 5_000

    def rows() -> Iterator[tuple[int, str]]:
        return ((number * 7919 % count, "x" * 2000) for number in range(count))

    tracemalloc.start()
    ordered = in_order(rows(), lambda rows: [row[0] for row in rows], run_bytes=1 << 18)
    seen = sum(1 for expected, row in enumerate(ordered) if row[0] == expected)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen == count
    assert most < 6 << 20  # of 10 MB of text


def test_a_direction_may_be_in_any_case() -> None:
    assert selection_of(None, "n:DESC,user:Asc", None, no_header=False).sort == (SortKey("n", True), SortKey("user"))
