"""Large results of Spark. The server writes them to Parquet files next to the tables, and this service reads the files.

A server of Spark Connect holds in memory the part of a result that the client has not read yet. So a large result would
make the server fail. Files do not have this limit. The files of a result are removed when the result has been read, or
when the query ends early.

The files of killed processes must also be removed. So each process that has results in files also has a file
`alive`. The process regularly writes a growing number to this file. If the number of a process has not changed for
DEAD_SECONDS, the process is considered dead. Another process then removes the files of the dead process.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, SubTreeFileSystem
from sqlglot import exp

from svcctl.service.engines import BYTES_PER_BATCH
from svcctl.service.engines.lake import Lake

FOLDER = ".spill"
ALIVE = "alive"
BEAT_SECONDS = 10.0
DEAD_SECONDS = 60.0
ROWS = 1_000_000
"""Results of at least this many rows are written to files. If rows are large, the minimum is lower.

The number of rows in a result is estimated by the number of rows that the query reads.
"""
BUFFER_BYTES = 1 << 20
Place = tuple[Any, ...]
"""The sort key of a row in a result: a 0, followed by the values by which the rows are ordered.

In a result without an order, every row has the key (0,).
"""

_log = logging.getLogger("svcctl.service")


def is_large(select: exp.Select, rows: int, least: int) -> bool:
    """Whether a plan reads at least `least` rows and may return all of these rows.

    `rows` is the number of rows that the plan reads.
    """
    return rows >= least and select.find(exp.AggFunc, exp.Group, exp.Limit) is None


@dataclass(slots=True)
class _Other:
    """Another process that has files.

    `number` is the latest number that the process wrote. `since` is the time when this number was first seen.
    """

    number: bytes
    since: float


class Spills:
    """The folder with the large results of this process.

    A thread regularly writes that this process is alive, and removes the folders of dead processes.
    """

    def __init__(self, lake: Lake, *, beat_seconds: float = BEAT_SECONDS, dead_seconds: float = DEAD_SECONDS) -> None:
        self.uri = lake.folder.table_uri(FOLDER)
        self._folder = lake.folder
        local = lake.folder.local
        self._files: FileSystem = (
            lake.filesystem(FOLDER) if local is None else SubTreeFileSystem(str(local / FOLDER), LocalFileSystem())
        )
        self._own = uuid.uuid4().hex
        self._beat_seconds = beat_seconds
        self._dead_seconds = dead_seconds
        self._beats = 0
        self._left: set[str] = set()
        self._others: dict[str, _Other] = {}
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._keep, name="spills", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        if self._beats:
            self._remove(self._own)

    def begin(self) -> str:
        """Return a new name, below `uri`, for the files of a result."""
        with self._guard:
            if not self._beats:
                self._beat()
        return f"{self._own}/{uuid.uuid4().hex}"

    def end(self, name: str) -> None:
        """Remove the files of a result."""
        if not self._remove(name):
            with self._guard:
                self._left.add(name)

    def read(self, name: str, keys: int, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a result in order.

        The last `keys` columns of the files are the sort keys and are left out.
        """
        infos = self._files.get_file_info(FileSelector(name, recursive=True, allow_not_found=True))
        parts = [_Part(self._files, info.path, keys, rows) for info in infos if info.path.endswith(".parquet")]
        yield from merged([part for part in parts if part.first])

    def _keep(self) -> None:
        while True:
            try:
                with self._guard:
                    if self._beats:
                        self._beat()
                    left, self._left = self._left, set()
                for name in left:
                    self.end(name)
                self._sweep()
            except Exception as error:
                _log.warning("the folder of large answers cannot be kept: %s", str(error).partition("\n")[0])
            if self._stopping.wait(self._beat_seconds):
                return

    def _beat(self) -> None:
        self._folder.require()  # otherwise the next lines would make the missing folder of a disk that is not mounted
        self._beats += 1
        self._files.create_dir(self._own)
        with self._files.open_output_stream(f"{self._own}/{ALIVE}") as out:
            out.write(str(self._beats).encode())

    def _sweep(self) -> None:
        """Remove the folders of dead processes."""
        now = time.monotonic()
        names = {
            info.base_name
            for info in self._files.get_file_info(FileSelector("", allow_not_found=True))
            if info.type is FileType.Directory
        } - {self._own}
        self._others = {name: other for name, other in self._others.items() if name in names}
        for name in names:
            number = b""
            with suppress(OSError), self._files.open_input_stream(f"{name}/{ALIVE}") as file:
                number = file.read()
            other = self._others.get(name)
            if other is None or other.number != number:
                self._others[name] = _Other(number, now)
            elif now - other.since >= self._dead_seconds:
                self._remove(name)

    def _remove(self, name: str) -> bool:
        """Remove a folder. Returns True if the folder no longer exists."""
        with suppress(OSError):
            self._files.delete_dir(name)
        try:
            return self._files.get_file_info(name).type is FileType.NotFound
        except OSError:
            return False


class _Part:
    """A file of a result. The rows of the file are ordered by its last `keys` columns."""

    def __init__(self, files: FileSystem, path: str, keys: int, rows: int) -> None:
        self._files = files
        self._path = path
        self._keys = keys
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._batch: pa.RecordBatch | None = None
        with self._open() as file:
            size = sum(file.metadata.row_group(at).total_byte_size for at in range(file.num_row_groups))
            self._rows = max(1, min(rows, BYTES_PER_BATCH * file.metadata.num_rows // max(1, size)))
            first_row = next(file.iter_batches(1), None)
        self.first: Place = () if first_row is None else (0, *self._place(first_row, 0))
        """The sort key of the next row in this file. At the end of the file, this value is an empty tuple."""

    def until(self, place: Place) -> Iterator[pa.RecordBatch]:
        """Yield the next rows, up to and including the sort key `place`. If `place` is empty, yield all rows.

        Afterwards, `first` is the sort key of the next row.
        """
        while self.first and (not place or self.first <= place):
            batch = self._batch or self._next()
            assert batch is not None
            count = batch.num_rows
            if place and (0, *self._place(batch, count - 1)) > place:
                count = bisect(range(count), place, key=lambda row: (0, *self._place(batch, row)))
            yield batch.slice(0, count).select(range(batch.num_columns - self._keys))
            self._batch = batch.slice(count) if count < batch.num_rows else self._next()
            self.first = () if self._batch is None else (0, *self._place(self._batch, 0))

    def _next(self) -> pa.RecordBatch | None:
        if self._batches is None:
            self._batches = self._open().iter_batches(self._rows)
        return next(self._batches, None)

    def _open(self) -> pq.ParquetFile:
        # no pre-buffering, because a file may be larger than the memory
        return pq.ParquetFile(self._files.open_input_file(self._path), buffer_size=BUFFER_BYTES, pre_buffer=False)

    def _place(self, batch: pa.RecordBatch, row: int) -> Place:
        values = (column[row].as_py() for column in batch.columns[batch.num_columns - self._keys :])
        return tuple(tuple(value.values()) if isinstance(value, dict) else value for value in values)


def merged(parts: Sequence[_Part]) -> Iterator[pa.RecordBatch]:
    """Merge the rows of all files in order."""
    waiting = [(part.first, index) for index, part in enumerate(parts)]
    heapify(waiting)
    while waiting:
        _, index = heappop(waiting)
        part = parts[index]
        yield from part.until(waiting[0][0] if waiting else ())
        if part.first:
            heappush(waiting, (part.first, index))
