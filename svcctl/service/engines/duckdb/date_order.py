"""Checks whether the rows of a load arrive in order of date, and records their number and their first and last date.

The rows of most logs are in order, and are not sorted. Sorting is most of the work of a large load, and needs space on
the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.service.engines.duckdb.row_groups import combined

BATCHES_AHEAD = 8
"""The number of batches that are checked before the first batch is stored."""


class Arriving:
    """Passes the rows of a load through, and records their order, number and dates.

    BATCHES_AHEAD batches are read at the beginning. `in_order` is true while all rows read so far are in order of date.
    `count` is the number of rows read so far. `dates` are the earliest and latest date of these rows as stored, in
    epoch milliseconds. `dates` is None if there are no rows, or if the dates are not timestamps yet.
    """

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._schema = rows.schema
        self._dated = any(field.name == "eventdate" and pa.types.is_timestamp(field.type) for field in rows.schema)
        self.in_order = self._dated
        self._last: pa.Scalar | None = None
        self.dates: tuple[int, int] | None = None
        self.count = 0
        first = list(islice(rows, BATCHES_AHEAD))
        for batch in first:
            self._look_at(batch)
        self._batches = chain(first, self._rest(rows))

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows, in batches of about one row group."""
        return pa.RecordBatchReader.from_batches(self._schema, combined(self._batches))

    def _rest(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
    """Round towards zero, as DuckDB's integer division does."""
    return microseconds // 1000 if microseconds >= 0 else -(-microseconds // 1000)
