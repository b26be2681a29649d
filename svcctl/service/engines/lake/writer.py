"""Writes rows to files of a table. A later commit makes the files visible."""

from __future__ import annotations

import json
import posixpath
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from svcctl.dates.epochs import EPOCH, seconds_to_ms
from svcctl.errors import Unavailable
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.engines.lake.layout import file_schema, hidden
from svcctl.service.engines.lake.snapshot import ORDERED
from svcctl.service.language.types import Column
from svcctl.storage import Sink

ROWS_PER_GROUP = 122_880
"""The number of rows in a row group. DuckDB reads this many rows at once."""
BYTES_PER_GROUP = 1 << 26
"""The approximate maximum size of a row group in bytes."""
LARGE_ROW, VECTOR = 1 << 11, 2048
"""A row group with large rows has at most about LARGE_ROW * VECTOR bytes.

Rows are large if they have more than LARGE_ROW bytes on average.
"""
ROWS_PER_FILE = 4_000_000
_DAY = 86_400_000_000


class CommitFiles(AbstractContextManager["CommitFiles"]):
    """The files that are written for one commit. The rows of each written batch must be in order of eventdate.

    If a batch begins earlier than the previous batch ended, another file begins. The files are kept if `keep` is called
    in the `with` block. They are also kept if the block raises Unavailable, because the commit may have been made. If
    it was not made, the module `upkeep` removes the kept files later. If the files are not kept, the files and empty
    folders are removed at the end of the block.
    """

    def __init__(self, folder: Folder, table: str, columns: Sequence[Column]) -> None:
        self._folder = folder
        self._table = table
        self._schema = file_schema(columns)
        self._load = hidden(columns).load
        self._day = hidden(columns).day
        self._open: _File | None = None
        self._written: list[tuple[str, dict[str, Any]]] = []
        self._kept = False
        self.rows = 0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Write rows. The rows must have all columns of the file, and be in order of eventdate."""
        days = pc.floor(pc.divide(batch.column("eventdate").cast(pa.int64()).cast(pa.float64(), safe=False), _DAY))
        start = 0
        while start < batch.num_rows:
            day = days[start].as_py()
            same = pc.index(pc.not_equal(days.slice(start), day), True).as_py()
            count = batch.num_rows - start if same < 0 else same
            self._put(int(day), batch.slice(start, count))
            start += count

    def _put(self, day: int, rows: pa.RecordBatch | pa.Table) -> None:
        first = rows.column("eventdate")[0].as_py()
        if self._open is not None and not self._open.takes(day, first):
            self._close()
        if self._open is None:
            self._open = _File(self._folder, self._table, self._day, day, self._schema, self._load)
        self._open.write(rows)
        self.rows += rows.num_rows

    def _close(self) -> None:
        if self._open is not None:
            self._written.append(self._open.close())
            self._open = None

    def adds(self) -> list[dict[str, Any]]:
        """Finish the files. Returns the Delta actions that add the files to the table."""
        self._close()
        return [add for _, add in self._written]

    def keep(self) -> None:
        """Keep the files at the end of the block, because they now belong to the table."""
        self._kept = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open.abandon()
        if self._kept or isinstance(error, Unavailable):
            return
        storage, names = self._folder.storage, [name for name, _ in self._written]
        storage.remove(*names)
        if self._open is not None:
            names.append(self._open.name)
        for folder in {posixpath.dirname(name) for name in names}:
            storage.remove_folder(folder)
        if names:
            storage.remove_folder(self._folder.name(self._table))


class _File:
    """A parquet file with the events of one day, while it is written to the folder."""

    def __init__(self, folder: Folder, table: str, column: str, day: int, schema: pa.Schema, load: str) -> None:
        self._day = day
        self._value = (EPOCH + timedelta(days=day)).date().isoformat()
        self._column = column
        self._path = f"{column}={self._value}/{ORDERED}{uuid.uuid4().hex}.parquet"
        self.name = folder.name(f"{table}/{self._path}")
        self._load = load
        self._schema = schema
        folder.require()  # otherwise Arrow would make the missing folder of a disk that is not mounted
        # The name is unique, so no check is needed that the file is new.
        self._sink = folder.storage.create(self.name, overwrite=True)
        self._out = _Out(self._sink)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._out, mode="w"),
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[field.name for field in schema if pa.types.is_string(field.type)] + [load],
            column_encoding={schema.names[-1]: "DELTA_BINARY_PACKED"},
            # The maximum in statistics is never NaN. So with statistics, DuckDB and other readers would skip rows with
            # NaN.
            write_statistics=[field.name for field in schema if not pa.types.is_floating(field.type)],
        )
        self._pending: list[pa.Table] = []
        self._rows = self._waiting = self._bytes = 0
        self._dates: list[datetime] = []
        self._loads: list[int] = []

    def takes(self, day: int, first: datetime) -> bool:
        """Whether rows of `day` may be added to this file. `first` is the date of the first of these rows."""
        # Two files of a load must not share a date. Otherwise, reading one file after the other would not return the
        # rows in order.
        return day == self._day and first >= self._dates[1] and (self._rows < ROWS_PER_FILE or first == self._dates[1])

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        table = (pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows).select(self._schema.names)
        dates, loads = pc.min_max(table["eventdate"]).as_py(), pc.min_max(table[self._load]).as_py()
        self._dates = [min([*self._dates[:1], dates["min"]]), max([*self._dates[1:], dates["max"]])]
        self._loads = [min([*self._loads[:1], loads["min"]]), max([*self._loads[1:], loads["max"]])]
        self._rows += table.num_rows
        self._waiting += table.num_rows
        self._bytes += table.nbytes
        self._pending.append(table)
        if self._waiting >= ROWS_PER_GROUP or self._bytes >= BYTES_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            large = self._bytes > LARGE_ROW * self._waiting
            groups = -(-self._bytes // (LARGE_ROW * VECTOR if large else BYTES_PER_GROUP))
            rows = max(1, min(ROWS_PER_GROUP, -(-self._waiting // max(1, groups))))
            self._writer.write_table(pa.concat_tables(self._pending), row_group_size=rows)
        self._pending, self._waiting, self._bytes = [], 0, 0

    def close(self) -> tuple[str, dict[str, Any]]:
        """Finish the file. Returns the name of the object, and the Delta action that adds the file to the table."""
        self._flush()
        self._writer.close()
        self._sink.complete()
        stats = {
            "numRecords": self._rows,
            "minValues": {"eventdate": _text(self._dates[0]), self._load: self._loads[0]},
            "maxValues": {"eventdate": _text(self._dates[1]), self._load: self._loads[1]},
            "nullCount": {"eventdate": 0, self._load: 0},
        }
        return self.name, {
            "add": {
                "path": self._path,
                "partitionValues": {self._column: self._value},
                "size": self._out.size,
                "modificationTime": seconds_to_ms(time.time()),
                "dataChange": True,
                "stats": json.dumps(stats),
            }
        }

    def abandon(self) -> None:
        self._out.discards = True  # Arrow writes the end of the file when the object is garbage-collected
        self._sink.abandon()


class _Out:
    """A file object that Arrow can write to. The object passes the bytes to a sink."""

    closed = False
    discards = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.size = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        if not self.discards:
            self._sink.write(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.size

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def numbered(batches: Iterable[pa.RecordBatch], columns: Sequence[Column], load: int) -> Iterator[pa.RecordBatch]:
    """Add hidden columns to the rows of a load. The columns have the number of the load and the number of each row."""
    schema = file_schema(columns)
    row = 0
    for batch in batches:
        end = row + batch.num_rows
        numbers = [pa.repeat(pa.scalar(load, pa.int64()), batch.num_rows), pa.arange(row, end)]
        yield pa.RecordBatch.from_arrays([*batch.columns, *numbers], schema=schema)
        row = end


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
