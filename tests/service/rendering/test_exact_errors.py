"""Exact answers, made by the service and read by the client: no row is taken for an error, and no row hides one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import IncompleteResult
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Plan, Type
from svcctl.service.rendering import ENCODERS, Rendering, stream

COLUMNS = (
    Column("name", Type.STR),
    Column("code", Type.INT8),
    Column("text", Type.STR),
    Column("digits", Type.STR),
)
NAMES = (
    "svc.api.error",
    "disk.error",
    '"svc.api.error"',
    'a\nsvc.api.error,500,"M"\n',
    'a\nsvc.api.error\t500\t"M"\n',
    '["error",500,"M"]',
    '\n["error",500,"M"]\n',
    '{"e":[500,"M"]}',
    '],"error":[500,"M"]}',
    '</field></event><error code="500">M</error></events>',
    "",
    None,
)
TEXTS = ("M", "M, N", "M\tN", 'M "N"', "M\nN", "12", "", None)
HOSTILE = [(name, 500, text, "500") for name, text in product(NAMES, TEXTS)]
SELECTED = {
    "three": (0, 1, 2),
    "three texts": (0, 3, 2),
    "two": (0, 1),
    "four": (0, 1, 2, 3),
    "one": (0,),
}
NAMED = (
    (("msg", Type.STR), ("status", Type.INT8), ("cid", Type.STR)),
    (("error", Type.STR), ("status", Type.INT8), ("cid", Type.STR)),
    (("error", Type.STR), ("object", Type.STR)),
    (("success", Type.BOOL), ("msg", Type.STR)),
    (("msg", Type.STR), ("code", Type.INT8), ("context", Type.STR)),
    (("e", Type.STR),),
    (("m", Type.STR), ("d", Type.STR), ("e", Type.STR)),
    (("svc.api.error", Type.STR), ("500", Type.INT8), ("M", Type.STR)),
    (("<html>", Type.STR), ("{", Type.STR)),
    (('{"error":[500,"M"]}', Type.STR),),
    (("late", Type.INT8), ("lag", Type.INT8)),
)
VALUES = {Type.STR: "boom", Type.INT8: 500, Type.BOOL: False}
STREAMED = [mode for mode in ENCODERS if ENCODERS[mode].streams]


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        rows = [("plain", 1, "x", "1"), *HOSTILE]
        types = [pa.string(), pa.int64(), pa.string(), pa.string()]
        arrays = [pa.array(values, type_) for values, type_ in zip(zip(*rows, strict=True), types, strict=True)]
        dates = pa.array([datetime(2024, 1, 31)] * len(rows), pa.timestamp("ms"))
        created = (Column("eventdate", Type.TIMESTAMP), *COLUMNS, Column("i", Type.INT8))
        table = pa.table([dates, *arrays, pa.array(range(len(rows)))], [column.name for column in created])
        engine.append("t", table.to_reader(), create=created)
        yield engine


def answers(
    engine: DuckDBEngine, mode: str, select: str, columns: tuple[Column, ...], end: str = "\n"
) -> Iterator[tuple[bytes, bytes]]:
    """Answers of the first row and one other row, or of no row: a whole one, and one that fails after its rows."""
    expression = parse_one(select, read="duckdb")
    assert isinstance(expression, exp.Select)
    with ENCODERS[mode](columns, Rendering("c1d", 0, line_end=end)) as encoder:
        head = encoder.head()
        with stream(engine, Plan(expression, columns, "t"), encoder.expressions(), rows_per_batch=1) as batches:
            chunks = [bytes(encoder.chunk(batch)) for batch in batches if batch.num_rows]
        ends = b"".join(encoder.tail()), encoder.error(500, 'out, of\n"luck"')
    for chunk in chunks[1:] or [b""]:
        start = head + b"".join(chunks[:1]) + chunk
        yield start + ends[0], start + ends[1]


def read(mode: str, body: bytes) -> tuple[bytes, int | None, str]:
    """The bytes and rows before the end, and the error."""
    answer = QueryResponse(MODES[mode], ENCODERS[mode].content_type, [body], exact=True)
    got = b""
    try:
        for block in answer.raw():
            got += block
    except IncompleteResult as error:
        return got, answer.row_count, error.message
    return got, answer.row_count, ""


@pytest.mark.parametrize("mode", STREAMED)
@pytest.mark.parametrize("which", SELECTED)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_no_row_is_taken_for_an_error_nor_hides_one(engine: DuckDBEngine, mode: str, which: str, end: str) -> None:
    columns = tuple(COLUMNS[index] for index in SELECTED[which])
    names = ", ".join(column.name for column in columns)
    select = f"SELECT {names} FROM events.t ORDER BY i"
    for row, (whole, failed) in zip(HOSTILE, answers(engine, mode, select, columns, end), strict=True):
        rows = None if mode == "xml" else 2
        assert read(mode, whole) == (whole, rows, ""), row
        _, count, message = read(mode, failed)
        assert (count, message.partition(": it ended in ")[2]) == (
            rows,
            f"an error of the service: {_shown(mode)} (code 500{', cid c1d' * (mode in ('json', 'json/compact'))})",
        ), row


def _shown(mode: str) -> str:
    return 'out, of "luck"'


@pytest.mark.parametrize("mode", [mode for mode in STREAMED if mode != "xml"])
@pytest.mark.parametrize("named", NAMED, ids=lambda named: ",".join(name for name, _ in named))
def test_a_lone_row_is_a_row_whatever_its_columns_are_called(engine: DuckDBEngine, mode: str, named: Any) -> None:
    columns = tuple(Column(name, type_) for name, type_ in named)
    values = [VALUES[type_] for _, type_ in named]
    written = ", ".join(f"'{value}'" if isinstance(value, str) else str(value).upper() for value in values)
    for first, rows in ((0, [tuple(values)]), (-1, [])):
        select = f"SELECT {written} FROM events.t WHERE i = {first}"
        [(whole, failed)] = answers(engine, mode, select, columns)
        answer = QueryResponse(MODES[mode], ENCODERS[mode].content_type, [whole], exact=True)
        texts = [tuple(str(value).lower() for value in row) for row in answer.rows()]
        assert texts == [tuple(str(value).lower() for value in row) for row in rows]
        _, count, message = read(mode, failed)
        assert (count, "it ended in an error of the service" in message) == (len(rows), True)


def test_the_name_of_an_error_is_in_quotes_only_where_a_row_could_be_one(engine: DuckDBEngine) -> None:
    for which, line in (
        ("two", b"svc.api.error,500\n"),
        ("three", b'"svc.api.error",500,M\n'),
        ("four", b"svc.api.error,500,M,500\n"),
    ):
        columns = tuple(COLUMNS[index] for index in SELECTED[which])
        select = f"SELECT {', '.join(column.name for column in columns)} FROM events.t WHERE i = 1"
        [(whole, _)] = answers(engine, "csv", select, columns)
        assert whole.endswith(b"\n" + line)
