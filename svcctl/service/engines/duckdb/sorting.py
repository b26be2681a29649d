"""Converts and sorts rows for a table in a shared folder.

The rows get the columns and types of the table, and are sorted by eventdate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from svcctl.errors import ServiceError, SvcctlError, UsageError
from svcctl.service.engines.duckdb.statement import Statement
from svcctl.service.engines.duckdb.syntax import ARRIVED
from svcctl.service.engines.lake.layout import stored
from svcctl.service.language.types import Column, Type


def arranged(
    rows: pa.RecordBatchReader, name: str, columns: Sequence[Column], sorter: duckdb.DuckDBPyConnection
) -> Iterator[pa.RecordBatch]:
    """Yield rows with all columns of a table, in the types of its files, ordered by eventdate.

    Rows that arrive in order are passed on at once. If a batch is out of order, this batch and all later rows are
    sorted before they are passed on. Raises the errors of `Tables.append`.
    """
    names = {column.name for column in columns}
    if unknown := [column_name for column_name in rows.schema.names if column_name not in names]:
        raise UsageError(
            f"table '{name}' has no column {', '.join(map(repr, unknown))}",
            hint=f"it has {', '.join(column.name for column in columns)}",
        )
    schema = pa.schema([(column.name, stored(column.type)) for column in columns])
    batches = (_shaped(batch, columns, schema) for batch in rows if batch.num_rows)
    last = None
    for batch in batches:
        dates = batch.column("eventdate")
        if (last is not None and dates[0].as_py() < last) or pc.any(pc.less(dates[1:], dates[:-1])).as_py():
            yield from _sorted(chain([batch], batches), schema, sorter)
            return
        last = dates[-1].as_py()
        yield batch


def _shaped(batch: pa.RecordBatch, columns: Sequence[Column], schema: pa.Schema) -> pa.RecordBatch:
    names = set(batch.schema.names)
    try:
        arrays = [
            _cast(batch.column(column.name), column.type)
            if column.name in names
            else pa.nulls(batch.num_rows, stored(column.type))
            for column in columns
        ]
    except pa.ArrowException as error:
        raise ServiceError(f"a value does not fit the table: {str(error).partition(chr(10))[0]}") from None
    shaped = pa.RecordBatch.from_arrays(arrays, schema=schema)
    if shaped.column("eventdate").null_count:
        raise ServiceError("a row has no eventdate")
    return shaped


def _cast(values: pa.Array, type_: Type) -> pa.Array:
    if type_ is Type.TIMESTAMP:
        return pc.floor_temporal(values.cast(stored(type_), safe=False), unit="millisecond")
    return values.cast(stored(type_))


def _sorted(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, sorter: duckdb.DuckDBPyConnection
) -> Iterator[pa.RecordBatch]:
    failure: list[SvcctlError] = []

    def counted() -> Iterator[pa.RecordBatch]:
        count = 0
        try:
            for batch in batches:
                end = count + batch.num_rows
                yield pa.RecordBatch.from_arrays([*batch.columns, pa.arange(count, end)], schema=within)
                count = end
        except SvcctlError as error:  # DuckDB would only pass on the text of this error
            failure.append(error)
            raise

    within = schema.append(pa.field(ARRIVED, pa.int64()))
    sorter.register("incoming", pa.RecordBatchReader.from_batches(within, counted()))
    select = f'SELECT * EXCLUDE ("{ARRIVED}") FROM incoming ORDER BY eventdate, "{ARRIVED}"'
    statement = Statement(sorter, [select], 1 << 16)
    try:
        for batch in statement:
            yield batch.cast(schema)
    except SvcctlError as error:
        raise (failure or [error])[0] from None
    finally:
        statement.close()
