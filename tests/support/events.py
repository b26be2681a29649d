"""Events for an engine, as Arrow batches: from given rows, or from a SELECT that a separate DuckDB runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import duckdb
import pyarrow as pa

from svcctl.service.engines import ARROW, Tables
from svcctl.service.language.types import Column


def batches(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> pa.RecordBatchReader:
    schema = pa.schema([(column.name, ARROW[column.type]) for column in columns])
    batch = pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    return pa.RecordBatchReader.from_batches(schema, [batch])


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """The DuckDB of this process. There is only one, because to open one costs more than most selects."""
    return duckdb.connect()


def selected(select: str) -> pa.RecordBatchReader:
    with _database().cursor() as connection:
        return connection.sql(select).to_arrow_table().to_reader()


def store(tables: Tables, name: str, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Add rows to a table, which is made if it does not exist."""
    tables.append(name, batches(columns, rows), create=None if name in tables.tables() else columns)
