"""Formats: what a window becomes, and what all windows become together."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from pyarrow import parquet

from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import IncompleteResult
from svcctl.exports.formats import FORMATS, Part
from svcctl.io.losses import Losses
from svcctl.io.parquet import ROWS_PER_GROUP

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a value of another type": "column b contains a value that is not of its type {kind}",
}

PARQUET = FORMATS["parquet"]


def answer(columns: dict[str, str], rows: Iterable[list[Any]], size: int = 1 << 16) -> QueryResponse:
    """The service's answer, which arrives in pieces of so many bytes."""
    metadata = {"m": {name: {"type": kind, "index": at} for at, (name, kind) in enumerate(columns.items())}}
    lines = [json.dumps(metadata), *(json.dumps({"d": row}, separators=(",", ":")) for row in rows)]
    body = "".join(f"{line}\n" for line in lines).encode()
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return QueryResponse(MODES["json/simple/compact"], "application/json", pieces)


def part(
    columns: dict[str, str], rows: Iterable[list[Any]], size: int = 1 << 16, losses: Losses | None = None
) -> tuple[str, bytes]:
    file = io.BytesIO()
    head = PARQUET.part(answer(columns, rows, size), file, True, losses or Losses())
    return head, file.getvalue()


def merged(head: str, *parts: bytes) -> bytes:
    def reading(data: bytes) -> Part:
        def read() -> Iterator[bytes]:
            yield from (data[at : at + 1000] for at in range(0, len(data), 1000))

        return read

    file = io.BytesIO()
    PARQUET.merged(map(reading, parts), head, file)
    return file.getvalue()


def table(data: bytes) -> Any:
    return parquet.read_table(io.BytesIO(data))


def test_every_type_of_the_service_has_its_own_in_parquet() -> None:
    columns = {
        "at": "timestamp",
        "small": "int4",
        "large": "int8",
        "real": "float8",
        "yes": "bool",
        "text": "str",
        "four": "ip4",
        "six": "ip6",
        "new": "duration",
    }
    rows: list[list[Any]] = [
        [1706659200123, -1, 9007199254740993, 0.1, True, "a\nb", 16909060, 1, {"a": [1]}],
        [-1, 2147483647, -(2**63), 1, False, "漢字 😀", "1.2.3.4", "fe80::1", 7],
        [None] * 9,
    ]
    found = table(part(columns, rows)[1])
    assert {field.name: str(field.type) for field in found.schema} == {
        "at": "timestamp[ms, tz=UTC]",
        "small": "int32",
        "large": "int64",
        "real": "double",
        "yes": "bool",
        "text": "string",
        "four": "string",
        "six": "string",
        "new": "string",
    }
    assert found.column("at").cast("int64").to_pylist() == [1706659200123, -1, None]
    assert [list(row.values())[1:] for row in found.to_pylist()] == [
        [-1, 9007199254740993, 0.1, True, "a\nb", "1.2.3.4", "::1", '{"a": [1]}'],
        [2147483647, -9223372036854775808, 1.0, False, "漢字 😀", "1.2.3.4", "fe80::1", "7"],
        [None] * 8,
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int4", 2**31),
        ("int8", 2**63),
        ("int8", "7"),
        ("int8", 1.5),
        ("timestamp", "2024-01-31"),
        ("bool", "yes"),
        ("float8", "x"),
        ("ip4", -1),
        ("ip4", 2**32),
        ("ip6", 2**128),
    ],
)
def test_a_value_that_is_not_of_its_columns_type_is_an_error(kind: str, value: Any) -> None:
    with pytest.raises(IncompleteResult) as caught:
        part({"a": "str", "b": kind}, [["x", value]])
    assert caught.value.message == WORDS["a value of another type"].format(kind=kind)


def test_a_text_that_no_character_stands_for_is_replaced_and_counted() -> None:
    losses = Losses()
    _, file = part({"a\ud800": "str", "n": "float8", "l": "list"}, [["\udc80é", float("inf"), [1e400]]], losses=losses)
    assert table(file).to_pylist() == [{"a\ufffd": "\ufffdé", "n": float("inf"), "l": "[null]"}]
    assert (losses.halves, losses.bytes, losses.numbers) == (2, 0, 1)


@pytest.mark.slow
def test_the_same_events_make_the_same_file_however_they_arrive() -> None:
    columns = {"n": "int8", "name": "str"}
    count = ROWS_PER_GROUP * 2 + 5
    rows = [[number, f"name {number}"] for number in range(count)]
    head, whole = part(columns, rows)
    assert part(columns, rows, 999) == (head, whole)
    groups = parquet.ParquetFile(io.BytesIO(whole)).metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [ROWS_PER_GROUP, ROWS_PER_GROUP, 5]
    cuts: tuple[list[int], ...] = ([], [7], [ROWS_PER_GROUP], [1, ROWS_PER_GROUP + 1, ROWS_PER_GROUP * 2])
    for cut in cuts:
        edges = [0, *cut, count]
        parts = [part(columns, rows[one:other])[1] for one, other in pairwise(edges)]
        assert table(merged(head, *parts)) == table(whole)


def test_a_file_without_rows_still_has_its_columns() -> None:
    head, data = part({"n": "int8"}, [])
    for file in (data, merged(head), merged(head, data)):
        assert (table(file).num_rows, str(table(file).schema.field("n").type)) == (0, "int64")
