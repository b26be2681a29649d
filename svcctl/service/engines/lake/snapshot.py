"""A snapshot: one version of a table with its columns and its files. Each file has the dates and the loads of its rows.

With these dates and loads, a query can skip most files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from svcctl.dates.epochs import MILLISECOND
from svcctl.errors import ServiceError, Unavailable
from svcctl.service.engines.lake.layout import ADDED_KEY, DROPPED_KEY, Hidden, columns_of, hidden
from svcctl.service.language.types import Column, Table

_GAPS = ("Expected contiguous commit files", "No table metadata or protocol found")
"""Parts of the messages with which the Delta library reports that versions are missing in a log.

The missing versions may be at the beginning of the log or between other versions.
"""
SORTED_ROWS = 500_000
"""The number of rows that are sorted at once, if files have overlapping dates. These rows need about 100 MB."""
SORTED_BYTES = 1 << 22
"""If files have large rows, the rows that are sorted at once take about this many bytes in the compressed files."""
LARGE_ROW = 256
"""A row is large if it has more than this number of bytes in a compressed file."""
ORDERED = "ordered-"
"""The prefix in the name of a file with rows in the order of eventdate, load and row."""
NO_LOAD = 0
"""The load number of rows that another tool has added without a load number."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table. `path` is relative to the folder of the table.

    `oldest` and `newest` are the earliest and latest date of its events. Each row has the number of the load that
    stored it. `loads` has the lowest and the highest of these numbers in the file.
    """

    path: str
    day: str
    bytes: int
    rows: int
    oldest: datetime
    newest: datetime
    loads: tuple[int, int]

    @property
    def ordered(self) -> bool:
        return self.path.rpartition("/")[2].startswith(ORDERED)

    @property
    def end(self) -> datetime:
        """The exclusive end of the file's dates.

        The end is one millisecond after `newest`. If no such date exists, the end is the largest datetime.
        """
        return self.newest + MILLISECOND if self.newest <= datetime.max - MILLISECOND else datetime.max

    @property
    def weight(self) -> int:
        """The memory that sorting the file needs, expressed as a number of rows of usual size."""
        return self.bytes * SORTED_ROWS // SORTED_BYTES if self.bytes > LARGE_ROW * self.rows else self.rows

    def is_within(self, start: datetime | None, end: datetime | None) -> bool:
        """Whether all events of the file are dated at or after `start` and before `end`."""
        return (start is None or self.oldest >= start) and (end is None or self.end <= end)


@dataclass(frozen=True, slots=True)
class Loads:
    """A set of loads. If `excluded` is True, the set has all loads except the loads in `numbers`.

    If `excluded` is False, the set has the loads in `numbers`.
    """

    numbers: frozenset[int]
    excluded: bool = False

    def may_be_in(self, file: File) -> bool:
        first, last = file.loads
        if self.excluded:
            return not (first == last and first in self.numbers)
        return any(first <= number <= last for number in self.numbers)

    def have_all(self, files: Iterable[File]) -> bool:
        """Whether all rows of the files are known to belong to these loads. If so, the rows need no filter.

        Call this method only with files for which `may_be_in` is true.
        """
        return (self.excluded and not self.numbers) or all(file.loads[0] == file.loads[1] for file in files)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version of a table. `metadata` is the content of the action `metaData` in the log.

    If a table replaces another table, the two tables have different values of `id`. A dropped table has no snapshot.
    """

    name: str
    version: int
    id: str
    columns: tuple[Column, ...]
    files: tuple[File, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def table(self) -> Table:
        return Table(self.name, self.columns, added=int(self.metadata["configuration"].get(ADDED_KEY) or 0))

    @property
    def hidden(self) -> Hidden:
        return hidden(self.columns)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def oldest(self) -> datetime | None:
        return min((file.oldest for file in self.files), default=None)

    @property
    def newest(self) -> datetime | None:
        return max((file.newest for file in self.files), default=None)

    @property
    def last_load(self) -> int:
        return max((file.loads[1] for file in self.files), default=0)

    def within(self, start: datetime | None, end: datetime | None, loads: Loads | None = None) -> list[File]:
        """Return the files that may have events at or after `start` and before `end`, in order of their earliest event.

        Both dates are in UTC and without a zone. With `loads`, only files that may have rows of these loads are
        returned.
        """
        files = (
            file
            for file in self.files
            if (start is None or file.end > start)
            and (end is None or file.oldest < end)
            and (loads is None or loads.may_be_in(file))
        )
        return _by_date(files)


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """Files of a snapshot that are read together. Only rows at or after `start` and before `end` are used.

    If `ordered` is True, the rows need not be sorted.
    """

    files: list[File]
    ordered: bool
    start: datetime | None = None
    end: datetime | None = None

    def rows_of(self, sorted_rows: int) -> int:
        """Return how many rows of this part need as much memory as `sorted_rows` rows of usual size."""
        return min((sorted_rows * file.rows // file.weight for file in self.files), default=sorted_rows)


def whole(files: Iterable[File]) -> SnapshotPart:
    """Return a single SnapshotPart that contains all files."""
    files = _by_date(files)
    apart = all(earlier.newest < later.oldest for earlier, later in pairwise(files))
    return SnapshotPart(files, apart and all(file.ordered for file in files))


def parts(files: Sequence[File], sorted_rows: int = SORTED_ROWS) -> list[SnapshotPart]:
    """Split files into parts in order of date. A part that must be sorted has at most about `sorted_rows` rows."""
    result: list[SnapshotPart] = []
    in_last = 0
    for part in map(whole, _overlapping(_by_date(files))):
        rows = sum(file.weight for file in part.files)
        alike = bool(result) and result[-1].end is None and result[-1].ordered == part.ordered
        if alike and (part.ordered or in_last + rows <= sorted_rows):
            result[-1].files.extend(part.files)
            in_last += rows
        elif part.ordered or rows <= sorted_rows:
            result.append(part)
            in_last = rows
        else:
            end = max(file.end for file in part.files)
            result += _cut(part.files, part.files[0].oldest, end, sorted_rows)
    return result or [whole(files)]


def joined(parts: Sequence[SnapshotPart]) -> SnapshotPart:
    """Join consecutive parts into one part. The reader must sort the rows of the joined part."""
    files = dict.fromkeys(file for part in parts for file in part.files)
    return SnapshotPart(list(files), False, parts[0].start, parts[-1].end)


def _by_date(files: Iterable[File]) -> list[File]:
    """Return the files in order of their earliest event."""
    return sorted(files, key=lambda file: (file.oldest, file.newest, file.path))


def _overlapping(files: Sequence[File]) -> Iterator[list[File]]:
    """Split files into groups. The files must be in order of date.

    All events in a group are later than the events in the groups before it.
    """
    group: list[File] = []
    newest = datetime.min
    for file in files:
        if group and file.oldest > newest:
            yield group
            group = []
        group.append(file)
        newest = max(newest, file.newest)
    if group:
        yield group


def _cut(files: Sequence[File], start: datetime, end: datetime, sorted_rows: int) -> list[SnapshotPart]:
    """Split a range of dates into parts with at most about `sorted_rows` rows each.

    The range begins with `start` and ends before `end`. The range is halved until its parts are small enough. The
    number of rows is estimated, as if the dates in each file were evenly distributed.
    """
    part_files = [file for file in files if file.oldest < end and file.end > start]
    rows = sum(
        file.weight * ((min(file.end, end) - max(file.oldest, start)) / (file.newest - file.oldest + MILLISECOND))
        for file in part_files
    )
    if rows <= sorted_rows or end - start <= MILLISECOND:
        return [SnapshotPart(part_files, False, start, end)] if part_files else []
    middle = start + (end - start) / 2
    return [*_cut(part_files, start, middle, sorted_rows), *_cut(part_files, middle, end, sorted_rows)]


class SnapshotReader:
    """Reads snapshots of one table. Each read needs only the part of the log that was added after the previous read."""

    def __init__(self, name: str, uri: str, options: dict[str, str]) -> None:
        self._name = name
        self._uri = uri
        self._options = options
        self._table: DeltaTable | None = None
        self.snapshot: Snapshot | None = None
        """The snapshot that the latest call of `read` has read. None if there was no table."""
        self.version = -1
        """The version that the latest call of `read` has read. -1 if there was no table."""

    def read(self, has: Callable[[int], bool]) -> None:
        """Read the present version of the table. `has` returns whether the log has the commit of a version."""
        if self._table is not None and not has(self.version + 1):
            if has(self.version):
                return
            self._table = None  # the log was shortened or removed, so the whole log is read again
        with translated(self._name, self._uri):
            try:
                if self._table is None:
                    self._table = DeltaTable(self._uri, storage_options=self._options)
                else:
                    self._table.update_incremental()
            except TableNotFoundError:
                self._table, self.snapshot, self.version = None, None, -1
                return
            self.snapshot = _snapshot(self._name, self._table)
        self.version = self._table.version()

    @property
    def table(self) -> DeltaTable:
        assert self._table is not None
        return self._table

    def has_load(self, id_: str) -> bool:
        """Whether the log had a load with this ID at the latest call of `read`."""
        return self.table.transaction_version(id_) is not None


@contextmanager
def translated(name: str, uri: str) -> Iterator[None]:
    """Turn errors of the Delta library in the `with` block into Unavailable.

    A TableNotFoundError is raised unchanged. If versions are missing in the log, raises ServiceError instead of
    Unavailable, because another attempt would also fail.
    """
    try:
        yield
    except TableNotFoundError:
        raise
    except (DeltaError, OSError) as error:
        text = str(error)
        if any(sign in text for sign in _GAPS):
            hint = "restore the missing files of the log, or load the table again into an empty folder"
            raise _unreadable(name, f"versions are missing in {uri}/_delta_log", hint) from None
        reason = " ".join(text.partition("\n")[0].split())[:300]
        raise Unavailable(f"cannot read table '{name}' in {uri}: {reason}") from None


def _snapshot(name: str, table: DeltaTable) -> Snapshot | None:
    metadata = table.metadata()
    schema = table.schema().to_json()
    columns = columns_of(schema)
    if not columns or DROPPED_KEY in metadata.configuration:
        return None
    _check_readable(name, table, metadata.configuration)
    names = hidden(columns)
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    files = (_file(name, names, row) for row in rows)
    action = {
        "id": str(metadata.id),
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": metadata.partition_columns,
        "configuration": metadata.configuration,
        "createdTime": metadata.created_time,
    }
    return Snapshot(name, table.version(), str(metadata.id), columns, tuple(file for file in files if file), action)


def _check_readable(name: str, table: DeltaTable, configuration: Mapping[str, str | None]) -> None:
    """Raise ServiceError if deletion vectors have deleted rows of a table, or if its columns are mapped to other names.

    Only other tools use these two features of Delta.
    """
    features = table.protocol().reader_features or ()
    if "deletionVectors" in features and any(batch.num_rows for batch in table.deletion_vectors()):
        hint = "let that tool write the files without the deleted rows, as REORG TABLE … APPLY (PURGE) does"
        raise _unreadable(name, "another tool deleted rows of it with deletion vectors", hint)
    if configuration.get("delta.columnMapping.mode") not in (None, "none"):
        hint = "let that tool turn column mapping off, which writes the files again"
        raise _unreadable(name, "another tool mapped its columns to other names", hint)


def _file(table: str, names: Hidden, row: Mapping[str, Any]) -> File | None:
    """Return a File from the file's statistics in the log. Return None if the file is empty.

    Raises ServiceError if the file has no statistics, or if the file has rows without a date.
    """
    rows = row.get("num_records")
    if rows == 0:
        return None
    dateless, loadless = (row.get(f"null_count.{column}") for column in ("eventdate", names.load))
    if dateless:
        hint = "another tool added them: let it delete them, or give them a date"
        raise _unreadable(table, f"{row['path']} has rows without eventdate", hint)
    oldest, newest = row.get("min.eventdate"), row.get("max.eventdate")
    if rows is None or dateless is None or loadless is None or oldest is None or newest is None:
        hint = f"another tool added the file: let it write statistics of eventdate and {names.load}"
        raise _unreadable(table, f"its log has no statistics of {row['path']}", hint)
    first, last = (row[f"{end}.{names.load}"] for end in ("min", "max"))
    loads = (NO_LOAD if loadless else first, NO_LOAD if last is None else last)
    day = str(row[f"partition.{names.day}"])
    return File(row["path"], day, row["size_bytes"], rows, _floor(oldest), _floor(newest), loads)


def _unreadable(table: str, why: str, hint: str) -> ServiceError:
    return ServiceError(f"cannot read table '{table}': {why}", code=500, hint=hint)


def _floor(date: datetime) -> datetime:
    """Round a date down to the millisecond."""
    return date.replace(microsecond=date.microsecond // 1000 * 1000)
