"""Combines small batches of rows. DuckDB stores rows faster if each batch fills a row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from svcctl.service.engines.duckdb.opening import ROW_GROUP_SIZE

GROUP_BYTES = 1 << 23
"""If a combined batch has at least this many bytes, it is passed on even if it does not fill a row group."""


def combined(
    batches: Iterable[pa.RecordBatch], rows: int = ROW_GROUP_SIZE, size: int = GROUP_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches` in unchanged order, in new batches of `rows` rows or at least `size` bytes.

    The last batch may be smaller.
    """
    waiting: list[pa.RecordBatch] = []
    waiting_rows = waiting_bytes = 0
    for batch in batches:
        rest = batch
        while waiting_rows + rest.num_rows >= rows:
            first = rest.slice(0, rows - waiting_rows)
            group = pa.concat_batches([*waiting, first]) if waiting else first
            rest = rest.slice(rows - waiting_rows)
            waiting, waiting_rows, waiting_bytes = [], 0, 0  # frees the memory while the group is stored
            yield group
        waiting.append(rest)
        waiting_rows += rest.num_rows
        waiting_bytes += rest.nbytes
        if waiting_bytes >= size:
            group = pa.concat_batches(waiting)
            waiting, waiting_rows, waiting_bytes = [], 0, 0
            yield group
    if waiting_rows:
        yield pa.concat_batches(waiting)
