"""Lines of JSON values become the same columns whether csv or JSON reads them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svcctl.errors import IncompleteResult
from svcctl.io.arrow import batch_of_values, batches, schema_of

COLUMNS = [("t", "timestamp"), ("s", "str"), ("a", "int4"), ("b", "int8"), ("x", "float8"), ("ok", "bool"), ("o", "?")]
TEXTS = st.text(st.sampled_from('ab ",\\[]{}:\n\t\r/null0é漢😀\u2028\x00'), max_size=6)
VALUES = (
    st.integers(-(10**13), 10**13),
    TEXTS,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.one_of(TEXTS, st.integers(), st.lists(st.integers(), max_size=3), st.dictionaries(TEXTS, TEXTS, max_size=2)),
)
ROWS = st.lists(st.tuples(*(st.none() | values for values in VALUES)), min_size=1, max_size=5)
SPELLINGS: list[dict[str, Any]] = [
    {"separators": (",", ":"), "ensure_ascii": False},
    {"separators": (",", ":")},
    {},
]


def by_json(rows: list[Any], columns: Any) -> pa.Table:
    return pa.Table.from_batches(batches(rows, columns), schema_of(columns))


@given(ROWS, st.sampled_from(SPELLINGS))
@example([(0, "", 1, 1, 0.5, True, "null")], SPELLINGS[0])
@example([(0, " null", 1, 1, 0.5, True, None), (None,) * 7], SPELLINGS[0])
@example([(0, 'a"b', 1, 1, 0.5, True, "c\\d")], SPELLINGS[0])
@example([(0, "", 1, 1, 0.5, True, 0), (0, "", 1, 1, 0.5, True, {"": '"'})], SPELLINGS[0])
def test_values_are_the_same_by_csv_and_by_json_or_are_left_to_json(
    rows: list[tuple[Any, ...]], spelling: dict[str, Any]
) -> None:
    values = "".join(json.dumps(row, **spelling)[1:-1] + "\n" for row in rows).encode()
    batch = batch_of_values(values, COLUMNS)
    if batch is not None:
        assert pa.Table.from_batches([batch]).equals(by_json(rows, COLUMNS))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (b'"a" ,"b"\n', "str"),
        (b' "a","b"\n', "str"),
        (b'"a", "b"\n', "str"),
        (b'"a",5\n', "str"),
        (b'"a", null\n', "str"),
        (b'"a",[1]\n', "str"),
        (b'"a",{"b":1}\n', "str"),
        (b'"a","\\n"\n', "str"),
        (b'"a","\\u00e9"\n', "str"),
        (b'"a\t","b"\n', "str"),
        (b'"a","\xff"\n', "str"),
        (b'1,"2"\n', "int8"),
        (b"1,2.5\n", "int8"),
        (b"1,9223372036854775808\n", "int8"),
        (b"1,2147483648\n", "int4"),
        (b"1,0\n", "bool"),
        (b'"10.0.0.1",167772161\n', "ip4"),
        (b'"a","b","c"\n', "str"),
    ],
)
def test_values_that_csv_reads_differently_are_left_to_json(values: bytes, kind: str) -> None:
    assert batch_of_values(values, [("p", kind), ("q", kind)]) is None


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (b'"a,b","null"\nnull,""\n', "str", [("a,b", "null"), (None, "")]),
        (b'"a\\"b","c\\\\"\n"\\/","[1,2]"\n', "str", [('a"b', "c\\"), ("/", "[1,2]")]),
        (b'"10.0.0.1",null\n', "ip4", [("10.0.0.1", None)]),
        (b"1e3,null\n-0.5,1E-7\n", "float8", [(1000.0, None), (-0.5, 1e-7)]),
        (b"true,false\nnull,null\n", "bool", [(True, False), (None, None)]),
    ],
)
def test_plain_values_are_read_by_csv(values: bytes, kind: str, expected: list[Any]) -> None:
    batch = batch_of_values(values, [("p", kind), ("q", kind)])
    assert batch is not None
    assert [tuple(row.values()) for row in batch.to_pylist()] == expected


@pytest.mark.parametrize(("value", "kind"), [(1.5, "int8"), ("a", "timestamp"), (2**31, "int4"), ("x", "bool")])
def test_a_value_of_another_type_than_its_column_is_an_error(value: object, kind: str) -> None:
    with pytest.raises(IncompleteResult):
        list(batches([(value,)], [("p", kind)]))
