"""The tables of a shared folder. Any number of processes can list, make, extend, replace and drop tables.

All of these operations use the logs of the tables. A read always uses the newest version of a table. The list of tables
shows changes by other processes within a second.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import ServiceError, Unavailable
from svcctl.service.engines import Extent, Mark
from svcctl.service.engines.lake import layout, marks
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.engines.lake.log import Action, CommitEntry, Log
from svcctl.service.engines.lake.snapshot import Loads, Snapshot, SnapshotReader, translated
from svcctl.service.engines.lake.writer import CommitFiles, numbered
from svcctl.service.engines.table_rules import (
    AlreadyLoaded,
    ColumnChange,
    ColumnsChanged,
    TableExists,
    UnknownTable,
    check_table,
)
from svcctl.service.language.types import Column, Table

LIST_SECONDS = 1.0
THREADS = 8
"""The number of tables that are read in parallel to make the list of tables."""
CHECKPOINT_COMMITS = 50
"""The number of versions after which a checkpoint is written. Readers then need not read each older version."""


_log = logging.getLogger("svcctl.service")


class Lake:
    """The tables below a URI: a local folder, `hdfs://host:port/folder` or `s3://bucket/folder`.

    This class has the methods of `Tables` that need only the log. The subclass LakeTables adds the methods that read or
    sort rows. `environment` has the credentials for the store (see storage/s3.py and storage/hdfs.py).
    """

    def __init__(self, uri: str, environment: Mapping[str, str], *, lock_file: Path | None = None) -> None:
        self.folder = Folder(uri, environment, lock_file)
        self._readers: dict[str, SnapshotReader] = {}
        self._logs: dict[str, Log] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._listed: Mapping[str, Table] = {}
        self._listed_at = -LIST_SECONDS

    def tables(self) -> Mapping[str, Table]:
        """Return the tables, keyed by name.

        All changes by this process are included. Changes by other processes appear within a second.
        """
        if time.monotonic() - self._listed_at >= LIST_SECONDS:
            with self._reading(), ThreadPoolExecutor(THREADS) as threads:
                tables = list(threads.map(self._readable, self.folder.names()))
            listed = {table.name: table.table for table in tables if table}
            if listed != self._listed:  # if nothing has changed, callers must get the same mapping
                self._listed = MappingProxyType(listed)
            self._listed_at = time.monotonic()
        return self._listed

    def current(self, name: str) -> Snapshot | None:
        """Return the newest version of a table. Return None if there is no table.

        Raises Unavailable if the folder is missing.
        """
        return self.reader(name).snapshot

    def reader(self, name: str) -> SnapshotReader:
        """Return a reader that has just read the newest version of a table."""
        with self._reading():
            return self._read(name)

    def _read(self, name: str) -> SnapshotReader:
        with self._lock(name):
            reader = self._readers.get(name) or SnapshotReader(name, self.folder.table_uri(name), self.folder.options)
            self._readers[name] = reader
            reader.read(self.log(name).has)
            return reader

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Read from the folder in the `with` block. If Unavailable is raised, discard all readers of tables.

        The readers may have read from another folder in this case.
        """
        try:
            with self.folder.reading():
                yield
        except Unavailable:
            self._readers = {}
            raise

    def _readable(self, name: str) -> Snapshot | None:
        """Return the newest version of a table. Return None if there is no table.

        Also return None if the table cannot be read, so that the list of tables does not fail.
        """
        try:
            return self._read(name).snapshot
        except (Unavailable, ServiceError) as error:
            _log.warning("table '%s' cannot be read: %s", name, error.message)
            return None

    def snapshot(self, name: str) -> Snapshot:
        """Return the newest version of a table.

        Raises UnknownTable if there is no table, and Unavailable if the folder is missing.
        """
        if (snapshot := self.current(name)) is None:
            raise UnknownTable(name, self.tables())
        return snapshot

    def check(self) -> None:
        self.folder.require()

    def table(self, name: str) -> Table:
        return self.snapshot(name).table

    def everywhere(self, name: str) -> bool:
        return True

    def newest(self, name: str) -> datetime | None:
        return self.snapshot(name).newest

    def events(self, name: str) -> int:
        return self.snapshot(name).rows

    def extent(self, name: str) -> Extent:
        snapshot = self.snapshot(name)
        return Extent(snapshot.rows, snapshot.oldest, snapshot.newest, snapshot.bytes or None)

    def log(self, name: str) -> Log:
        return self._logs.setdefault(name, Log(self.folder, name))

    def mark(self, name: str) -> Mark:
        return marks.mark(self.log(name), self.snapshot(name))

    def check_mark(self, name: str, mark: Mark) -> None:
        marks.check(self.current(name), name, mark)

    def has_removed(self, name: str, since: Mark | None, until: Mark | None, start: datetime) -> bool:
        snapshot = self.snapshot(name)
        if since is not None:
            marks.check(snapshot, name, since)
        return any(cut > start for cut in marks.cuts(self.log(name), snapshot, until))

    def between(self, snapshot: Snapshot, since: Mark | None, until: Mark | None) -> Loads | None:
        """Return the loads between the marks `since` and `until`. Return None if both marks are None."""
        return marks.loads(self.log(snapshot.name), snapshot, since, until)

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        check_table(name, columns, self._fresh())
        self._begin(name, columns, [], replace=False)
        return Table(name, tuple(columns))

    def has_load(self, name: str, load_id: str) -> bool:
        reader = self.reader(name)
        return reader.snapshot is not None and reader.has_load(_within(reader.snapshot.id, load_id))

    def extend(
        self,
        table: Snapshot,
        batches: Iterable[pa.RecordBatch],
        *,
        change: ColumnChange | None = None,
        rewritten: Sequence[Action] = (),
        id_: str | None = None,
    ) -> int:
        """Store rows, which must have all columns and be ordered by eventdate. Returns the number of rows.

        With `change`, the columns of the table are changed. If the stored rows had to be rewritten for this change,
        `rewritten` has the Delta actions that add the rewritten files.

        Raises AlreadyLoaded if the table has a load with this ID. Raises ServiceError if another process drops or
        replaces the table at the same time.

        Raises ColumnsChanged if another process changes the columns at the same time. Without `change`, columns that
        another process adds are accepted. With `rewritten`, raises ColumnsChanged if another process makes any commit
        at the same time.
        """
        name, columns = table.name, table.columns if change is None else change.after
        if id_ is not None and self.has_load(name, id_):
            raise AlreadyLoaded(name, id_)
        load = _load_number(table)
        with CommitFiles(self.folder, name, columns) as files:
            for batch in numbered(batches, columns, load):
                files.write(batch)
            adds = files.adds()
            if not adds:
                return 0
            loaded = None if id_ is None else _within(table.id, id_)
            actions: list[Action] = [*([] if loaded is None else [_transaction(loaded)]), *adds]
            if change is not None:
                added = table.table.added + len(change.added)
                actions.insert(0, {"metaData": layout.changed_metadata(name, table.metadata, columns, added)})
            if rewritten:
                now = seconds_to_ms(time.time())
                actions += [*(removal(table, file.path, now) for file in table.files), *rewritten]

            def conflict(entry: CommitEntry) -> None:
                if entry.begun not in (None, table.id):
                    raise ServiceError(f"table '{name}' was dropped or replaced during the load; nothing was loaded")
                if id_ is not None and loaded in entry.loaded_ids:
                    raise AlreadyLoaded(name, id_)
                if rewritten or (entry.begun == table.id and (change or not self._still_fits(table))):
                    raise ColumnsChanged(name)

            self._commit(name, table.version, lambda: actions, "WRITE", load=load, conflict=conflict)
            files.keep()
            return files.rows

    def _still_fits(self, table: Snapshot) -> bool:
        """Whether files that were written with the columns of a snapshot still fit the present table.

        The files fit if the only changes to the table are added columns.
        """
        now = self.snapshot(table.name)
        return now.columns[: len(table.columns)] == table.columns and now.hidden == table.hidden

    def make(
        self,
        name: str,
        columns: Sequence[Column],
        batches: Iterable[pa.RecordBatch],
        *,
        replace: bool = False,
        id_: str | None = None,
    ) -> int:
        """Make a table with rows. Returns the number of rows.

        With `replace`, the new table replaces a table with the same name. If another process makes the same table at
        the same time, the rows are added to that table. Raises AlreadyLoaded if the table has a load with this ID.
        """
        check_table(name, columns, self._fresh(), replace=replace)
        load = _load_number(self.current(name))
        with CommitFiles(self.folder, name, columns) as files:
            for batch in numbered(batches, columns, load):
                files.write(batch)
            self._begin(name, columns, files.adds(), replace=replace, load=load, id_=id_)
            files.keep()
            return files.rows

    def drop(self, name: str) -> None:
        """Remove a table in one commit. The module `upkeep` later removes the files of the table."""
        self.snapshot(name)
        self._begin(name, (), [], replace=True, dropped=True)

    def _begin(
        self,
        name: str,
        columns: Sequence[Column],
        adds: Sequence[Action],
        *,
        replace: bool,
        load: int | None = None,
        id_: str | None = None,
        dropped: bool = False,
    ) -> None:
        """Commit a new table with these columns and files.

        With `replace`, the new table replaces a table with the same name.
        """
        identity = str(uuid.uuid4())

        def actions() -> list[Action]:
            now = seconds_to_ms(time.time())
            there = self.current(name)
            if id_ is not None and self.has_load(name, id_):
                raise AlreadyLoaded(name, id_)
            into = there.id if there and not replace else identity
            marked = [] if id_ is None else [_transaction(_within(into, id_))]
            if there is not None and not replace:
                if adds and there.columns == tuple(columns):
                    return [*marked, *adds]
                self._listed_at = -LIST_SECONDS
                raise TableExists(name)
            if there is None and dropped:
                raise UnknownTable(name, self.tables())
            described = there.columns if dropped and there else columns
            removed = [removal(there, file.path, now) for file in there.files] if there else []
            created = {"metaData": layout.metadata(described, identity, now, dropped=dropped)}
            return [{"protocol": layout.PROTOCOL}, created, *removed, *marked, *adds]

        version = self.reader(name).version
        self._commit(name, version, actions, "CREATE TABLE", load=load)

    def _commit(
        self,
        name: str,
        version: int,
        actions: Callable[[], Sequence[Action]],
        operation: str,
        *,
        load: int | None = None,
        cut: datetime | None = None,
        conflict: Callable[[CommitEntry], None] | None = None,
    ) -> None:
        made = self.log(name).commit(version, actions, operation, load=load, cut=cut, conflict=conflict)
        self._listed_at = -LIST_SECONDS
        if made % CHECKPOINT_COMMITS == CHECKPOINT_COMMITS - 1:
            try:
                self.checkpoint(name)
            except (Unavailable, ServiceError) as error:  # the commit was made, and a later commit writes a checkpoint
                _log.warning("the versions of table '%s' were not summed up: %s", name, error.message)

    def exchange(
        self, table: Snapshot, old: Iterable[str], adds: Sequence[Action], *, cut: datetime | None = None
    ) -> None:
        """Replace the files `old` by new files with the same rows. Rows with dates before `cut` may be left out.

        `adds` has the Delta actions that add the new files. Marks stay valid. Raises ServiceError if another process
        has removed one of the old files.
        """
        gone = frozenset(old)
        now = seconds_to_ms(time.time())
        actions: list[Action] = [removal(table, path, now) for path in gone]
        for action in (*actions, *adds):
            next(iter(action.values()))["dataChange"] = cut is not None

        def conflict(entry: CommitEntry) -> None:
            if entry.begun not in (None, table.id) or entry.removed & gone:
                raise ServiceError(f"another process changed table '{table.name}' at the same time", code=503)

        self._commit(table.name, table.version, lambda: [*actions, *adds], "OPTIMIZE", cut=cut, conflict=conflict)

    def checkpoint(self, name: str) -> None:
        """Write a checkpoint: a file with the present version of a table. Readers then need not read older commits."""
        reader = self.reader(name)
        with self._lock(name), self.folder.checked(), translated(name, self.folder.table_uri(name)):
            reader.table.create_checkpoint()

    def filesystem(self, name: str) -> PyFileSystem:
        """Return an Arrow filesystem for the folder of a table."""
        handler = DeltaStorageHandler(self.folder.table_uri(name), self.folder.options)
        return PyFileSystem(handler)

    def _fresh(self) -> Mapping[str, Table]:
        self._listed_at = -LIST_SECONDS
        return self.tables()

    def _lock(self, name: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(name, threading.Lock())


def removal(table: Snapshot, path: str, now: int) -> dict[str, Any]:
    """Return the Delta action that removes a file of a table."""
    file = next(file for file in table.files if file.path == path)
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": now,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {table.hidden.day: file.day},
            "size": file.bytes,
        }
    }


def _within(table: str, load: str) -> str:
    """Return the ID under which the log records a load: the table's ID, followed by the load's ID.

    The table's ID is needed because the log may also have loads of earlier tables with the same name.
    """
    return f"{table}:{load}"


def _transaction(id_: str) -> Action:
    """Return the Delta action that records a load. Checkpoints keep this action."""
    return {"txn": {"appId": id_, "version": 1, "lastUpdated": seconds_to_ms(time.time())}}


def _load_number(table: Snapshot | None) -> int:
    """Return a number for a new load.

    The number is larger than the numbers of the table's loads, and unique among processes. It usually consists of the
    time in epoch milliseconds and 22 random bits.
    """
    number = seconds_to_ms(time.time()) << 22 | secrets.randbits(22)
    last = 0 if table is None else table.last_load
    return number if number > last else last + 1 + secrets.randbits(22)
