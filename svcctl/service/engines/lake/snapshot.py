"""A version of a table: its columns, its files, and what each of them holds, so that a query opens few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from svcctl.errors import ServiceError, Unavailable
from svcctl.service.engines.lake.layout import DROPPED_KEY, Hidden, columns_of, hidden
from svcctl.service.language.types import Column

_GAPS = ("Expected contiguous commit files", "No table metadata or protocol found")
"""What the library says of a log in which versions are missing, between others or at its begin."""
SORTED_ROWS = 500_000
"""So many rows of files that overlap are sorted at once: some 100 MB."""
SORTED_BYTES = 1 << 22
"""Of large rows, as many are sorted at once as so many bytes of files hold."""
LARGE_ROW = 256
"""Bytes of a row in a file, where it is compressed."""
_STEP = timedelta(milliseconds=1)
ORDERED = "ordered-"
"""Names of files begin with it when their rows are ordered by eventdate, load and row."""


@dataclass(frozen=True, slots=True)
class File:
    """A file: `path` is below the table; `oldest` and `newest` are the dates of its events, `loads` theirs."""

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
    def weight(self) -> int:
        """How much is sorted of it, in rows of usual size."""
        return self.bytes * SORTED_ROWS // SORTED_BYTES if self.bytes > LARGE_ROW * self.rows else self.rows


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads that are read: those, or all but those."""

    numbers: frozenset[int]
    excluded: bool = False

    def may_be_in(self, file: File) -> bool:
        first, last = file.loads
        if self.excluded:
            return not (first == last and first in self.numbers)
        return any(first <= number <= last for number in self.numbers)

    def have_all(self, files: Iterable[File]) -> bool:
        """Whether they have every row of files that they may be in, since each file has the rows of one load."""
        return (self.excluded and not self.numbers) or all(file.loads[0] == file.loads[1] for file in files)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as of a version. Tables that were dropped have none. `id` is another one for each table of a name."""

    name: str
    version: int
    id: str
    columns: tuple[Column, ...]
    files: tuple[File, ...]

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
        """The files that may hold events from `start` and before `end` (without a zone), by the first of each."""
        found = (
            file
            for file in self.files
            if (start is None or file.newest >= start)
            and (end is None or file.oldest < end)
            and (loads is None or loads.may_be_in(file))
        )
        return _by_date(found)


@dataclass(frozen=True, slots=True)
class Part:
    """Files, or their rows from `start` and before `end`, that are read at once. `ordered` ones need not be sorted."""

    files: list[File]
    ordered: bool
    start: datetime | None = None
    end: datetime | None = None


def whole(files: Iterable[File]) -> Part:
    """All files in one part."""
    files = _by_date(files)
    apart = all(earlier.newest < later.oldest for earlier, later in pairwise(files))
    return Part(files, apart and all(file.ordered for file in files))


def parts(files: Sequence[File], sorted_rows: int = SORTED_ROWS) -> list[Part]:
    """Files in parts whose rows follow one another; those to be sorted have about `sorted_rows` at most."""
    found: list[Part] = []
    in_last = 0
    for part in map(whole, _overlapping(_by_date(files))):
        rows = sum(file.weight for file in part.files)
        alike = bool(found) and found[-1].end is None and found[-1].ordered == part.ordered
        if alike and (part.ordered or in_last + rows <= sorted_rows):
            found[-1].files.extend(part.files)
            in_last += rows
        elif part.ordered or rows <= sorted_rows:
            found.append(part)
            in_last = rows
        else:
            end = _after(max(file.newest for file in part.files))
            found += _cut(part.files, part.files[0].oldest, end, sorted_rows)
    return found or [whole(files)]


def _by_date(files: Iterable[File]) -> list[File]:
    """Files by the first event of each."""
    return sorted(files, key=lambda file: (file.oldest, file.newest, file.path))


def _overlapping(files: Sequence[File]) -> Iterator[list[File]]:
    """Files, which come by date, in groups, of which each has later events than the one before."""
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


def _cut(files: Sequence[File], start: datetime, end: datetime, sorted_rows: int) -> list[Part]:
    """The rows of files from `start` and before `end`, halved until there are few, if they are spread evenly."""
    found = [file for file in files if file.oldest < end and file.newest >= start]
    rows = sum(
        file.weight * ((min(_after(file.newest), end) - max(file.oldest, start)) / (file.newest - file.oldest + _STEP))
        for file in found
    )
    if rows <= sorted_rows or end - start <= _STEP:
        return [Part(found, False, start, end)] if found else []
    middle = start + (end - start) / 2
    return [*_cut(found, start, middle, sorted_rows), *_cut(found, middle, end, sorted_rows)]


def _after(date: datetime) -> datetime:
    """The next date; of the last one there is, an end of its millisecond."""
    return date + _STEP if date <= datetime.max - _STEP else datetime.max


class Reader:
    """Reads the snapshots of one table, each from the one before."""

    def __init__(self, name: str, uri: str, options: dict[str, str]) -> None:
        self._name = name
        self._uri = uri
        self._options = options
        self._table: DeltaTable | None = None
        self.snapshot: Snapshot | None = None
        """The table as it was read last, or None when there was none."""
        self.version = -1
        """The last version that was read; -1 when there was none."""

    def read(self, has: Callable[[int], bool]) -> None:
        """Read the table as it is now. `has` tells whether there is such a version."""
        if self._table is not None and not has(self.version + 1):
            if has(self.version):
                return
            self._table = None  # the log was shortened, or is gone
        with explained(self._name, self._uri):
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
        """Whether the log, as it was read last, has a load of this ID."""
        return self.table.transaction_version(id_) is not None


@contextmanager
def explained(name: str, uri: str) -> Iterator[None]:
    """The library's errors as Unavailable, but for that of a table that is not there.

    ServiceError when the log has a gap, which stays.
    """
    try:
        yield
    except TableNotFoundError:
        raise
    except (DeltaError, OSError) as error:
        text = str(error)
        if any(sign in text for sign in _GAPS):
            raise ServiceError(
                f"cannot read table '{name}': versions are missing in {uri}/_delta_log",
                code=500,
                hint="restore the missing files of the log, or load the table again into an empty folder",
            ) from None
        reason = " ".join(text.partition("\n")[0].split())[:300]
        raise Unavailable(f"cannot read table '{name}' in {uri}: {reason}") from None


def _snapshot(name: str, table: DeltaTable) -> Snapshot | None:
    metadata = table.metadata()
    columns = columns_of(table.schema().to_json())
    if not columns or DROPPED_KEY in metadata.configuration:
        return None
    names = hidden(columns)
    files = tuple(
        File(
            row["path"],
            str(row[f"partition.{names.day}"]),
            row["size_bytes"],
            row["num_records"],
            row["min.eventdate"],
            row["max.eventdate"],
            (row[f"min.{names.load}"], row[f"max.{names.load}"]),
        )
        for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()
        if row["num_records"]
    )
    return Snapshot(name, table.version(), str(metadata.id), columns, files)
