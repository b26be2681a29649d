"""Parquet files with typed columns, for exports and for the output of queries. The files are written while rows arrive.

Parquet stores rows in blocks, which are called row groups. The row groups do not depend on the pieces in which the rows
arrive, so the same rows give the same file. A writer holds one row group in memory: about `BYTES_PER_GROUP` bytes, or
one batch of rows if the batch is larger.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from svcctl.io import arrow, extras
from svcctl.io.arrow import ROWS_AT_ONCE, Columns
from svcctl.io.compression import ByteSink
from svcctl.io.imports import prevent_imports

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_GROUP = 32_768
BYTES_PER_GROUP = 1 << 20
"""A row group ends after this number of bytes, or after ROWS_PER_GROUP rows. A writer holds one row group in memory."""


def need() -> None:
    """Raise MissingExtra if the packages for parquet are not installed."""
    extras.need("parquet", "the format parquet")


def batches(rows: Iterable[Sequence[Any]], columns: Columns) -> Iterator[pa.RecordBatch]:
    """Pack rows into batches of typed columns.

    Raises IncompleteResult if a value does not have the type of its column.
    """
    _pyarrow()
    return arrow.batches(rows, columns)


def write(packed: Iterable[pa.RecordBatch], columns: Columns, sink: ByteSink) -> None:
    """Write a parquet file. A row group consists of whole batches. For its size, see BYTES_PER_GROUP."""
    pyarrow = _pyarrow()
    from pyarrow import parquet

    schema = arrow.schema_of(columns)
    with parquet.ParquetWriter(pyarrow.PythonFile(_Appended(sink), "w"), schema, compression="zstd") as writer:
        for group in _grouped(packed):
            with _packing:
                writer.write_table(pyarrow.Table.from_batches(group, schema), ROWS_PER_GROUP + ROWS_AT_ONCE)


def _grouped(packed: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    count = size = 0
    for batch in packed:
        group.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count >= ROWS_PER_GROUP or size >= BYTES_PER_GROUP:
            yield group
            group, count, size = [], 0, 0
    if group:
        yield group


_packing = threading.Lock()
"""A lock, so that only one thread at a time encodes and compresses a row group.

This work takes several times as much memory as the row group.
"""


class _Appended:
    """A file object that passes all bytes to a sink. Arrow asks the file for its position, but never seeks."""

    closed = False

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._at = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._sink.write(view)
        self._at += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._at

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _pyarrow() -> Any:
    need()
    if sys.platform == "linux":  # on other systems, Arrow has no jemalloc
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")  # jemalloc can return freed memory at once
    import pyarrow

    start_arrow()
    if pyarrow.default_memory_pool().backend_name == "jemalloc":
        pyarrow.jemalloc_set_decay_ms(0)
    return pyarrow


_starting = threading.Lock()


def start_arrow() -> None:
    """Create Arrow's first array, and prevent the import of pandas during this call.

    Otherwise, Arrow would import pandas, which takes 0.5 s and 60 MB.
    """
    import pyarrow

    with _starting, prevent_imports("pandas"):
        pyarrow.array([0])
