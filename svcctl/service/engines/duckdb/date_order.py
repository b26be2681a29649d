"""Checks whether the rows of a load arrive in order of date.

The rows of most logs arrive in order and need not be sorted. Without sorting, a large load needs much less time and
disk space. This module also records the number of rows and the earliest and latest date of a load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.service.engines.duckdb.row_groups import combined


class Arriving:
    """Passes on the rows of a load, and records their order, their number and their dates.

    The constructor reads the first batch. `in_order` is true while all rows read so far are in order of date.
    `count` is the number of rows read so far. `dates` are the earliest and the latest date of these rows, in epoch
    milliseconds. `dates` is None if the rows have no dates, or if the column eventdate has another type than timestamp.
    """

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._schema = rows.schema
        self._dated = any(field.name == "eventdate" and pa.types.is_timestamp(field.type) for field in rows.schema)
        self.in_order = self._dated
        self._last: pa.Scalar | None = None
        self.dates: tuple[int, int] | None = None
        self.count = 0
        batches = self._looked_at(rows)
        self._batches = chain(list(islice(batches, 1)), batches)

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows in larger batches, which DuckDB stores faster."""
        return pa.RecordBatchReader.from_batches(self._schema, combined(self._batches))

    def _looked_at(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self._look_at(batch)
            yield batch

    def _look_at(self, batch: pa.RecordBatch) -> None:
        self.count += batch.num_rows
        if not self._dated or not batch.num_rows:
            return
        dates = batch.column("eventdate")
        bounds = pc.min_max(dates.cast(pa.timestamp("us"), safe=False).cast(pa.int64())).as_py().values()
        bounding_dates = [*(self.dates or ()), *(_milliseconds(bound) for bound in bounds if bound is not None)]
        self.dates = (min(bounding_dates), max(bounding_dates)) if bounding_dates else None
        if not self.in_order:
            return
        earlier = pc.any(pc.less(dates[1:], dates[:-1])).as_py()
        follows = self._last is None or pc.greater_equal(dates[0], self._last).as_py()
        self.in_order = bool(follows) and not earlier and not dates.null_count
        self._last = dates[-1]


def _milliseconds(microseconds: int) -> int:
    """Convert microseconds to milliseconds. The result is rounded towards zero, as in DuckDB's integer division."""
    return microseconds // 1000 if microseconds >= 0 else -(-microseconds // 1000)
