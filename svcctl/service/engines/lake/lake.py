"""The tables of a shared folder: listed, made, appended to, replaced and dropped by any number of processes.

What other processes do is seen at once in a table that is asked for, and within a second in the list of tables.
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
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from svcctl.errors import NotFound, ServiceError, Unavailable
from svcctl.service.engines import AlreadyLoaded, Mark, TableExists, check_table
from svcctl.service.engines.lake import layout, marks
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.engines.lake.log import Action, Entry, Log
from svcctl.service.engines.lake.snapshot import Loads, Reader, Snapshot, explained
from svcctl.service.engines.lake.writer import Files, numbered
from svcctl.service.language.types import Column, Table

LIST_SECONDS = 1.0
THREADS = 8
"""Tables that are looked at side by side, in a list of them."""
CHECKPOINT_COMMITS = 50
"""After so many versions their sum is written down, so that a reader need not read each."""


_log = logging.getLogger("svcctl.service")


class Lake:
    """The tables below a URI: a local folder, `hdfs://host:port/folder` or `s3://bucket/folder`.

    Access to the store comes from the environment, as for other targets (see storage/s3.py and hdfs.py).
    """

    def __init__(self, uri: str, environment: Mapping[str, str], *, lock_file: Path | None = None) -> None:
        self.folder = Folder(uri, environment, lock_file)
        self._readers: dict[str, Reader] = {}
        self._logs: dict[str, Log] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._listed: Mapping[str, Table] = {}
        self._listed_at = -LIST_SECONDS

    def tables(self) -> Mapping[str, Table]:
        """The tables by name, as they were at most a second ago; of this process's writes, as they are now."""
        if time.monotonic() - self._listed_at >= LIST_SECONDS:
            with self._reading(), ThreadPoolExecutor(THREADS) as threads:
                found = list(threads.map(self._readable, self.folder.names()))
            listed = {each.name: Table(each.name, each.columns) for each in found if each}
            if listed != self._listed:  # the same mapping means that nothing has changed
                self._listed = MappingProxyType(listed)
            self._listed_at = time.monotonic()
        return self._listed

    def current(self, name: str) -> Snapshot | None:
        """A table as it is now, or None when there is none. Unavailable when the folder is not there."""
        return self.reader(name).snapshot

    def reader(self, name: str) -> Reader:
        """The reader of a table, which has just read it."""
        with self._reading():
            return self._read(name)

    def _read(self, name: str) -> Reader:
        with self._lock(name):
            reader = self._readers.get(name) or Reader(name, self.folder.table_uri(name), self.folder.options)
            self._readers[name] = reader
            reader.read(self.log(name).has)
            return reader

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What the readers read in such a block is forgotten when it may be that of another folder."""
        try:
            with self.folder.reading():
                yield
        except Unavailable:
            self._readers = {}
            raise

    def _readable(self, name: str) -> Snapshot | None:
        """A table for the list, which a damaged one must not hide."""
        try:
            return self._read(name).snapshot
        except (Unavailable, ServiceError) as error:
            _log.warning("table '%s' cannot be read: %s", name, error.message)
            return None

    def snapshot(self, name: str) -> Snapshot:
        """A table as it is now; NotFound when there is none, Unavailable when the folder is not there."""
        if (found := self.current(name)) is None:
            raise NotFound(f"no table '{name}'")
        return found

    def log(self, name: str) -> Log:
        return self._logs.setdefault(name, Log(self.folder, name))

    def mark(self, name: str) -> Mark:
        return marks.mark(self.log(name), self.snapshot(name))

    def check_mark(self, name: str, mark: Mark) -> None:
        marks.check(self.current(name), name, mark)

    def between(self, snapshot: Snapshot, since: Mark | None, until: Mark | None) -> Loads | None:
        """The loads after `since` and up to `until`, as the log of a snapshot's table tells; None for all."""
        return marks.loads(self.log(snapshot.name), snapshot, since, until)

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        check_table(name, columns, self._fresh())
        self._begin(name, columns, [], replace=False)
        return Table(name, tuple(columns))

    def has_load(self, name: str, id_: str) -> bool:
        """Whether a load of this ID is in a table."""
        reader = self.reader(name)
        return reader.snapshot is not None and reader.has_load(_within(reader.snapshot.id, id_))

    def append(self, name: str, batches: Iterable[pa.RecordBatch], *, id_: str | None = None) -> int:
        """Store rows, which have all columns and come ordered by eventdate; how many there were.

        AlreadyLoaded when a load of this ID is in the table. ServiceError when the table is replaced meanwhile.
        """
        table = self.snapshot(name)
        if id_ is not None and self.has_load(name, id_):
            raise AlreadyLoaded(name, id_)
        load = _load_number(table)
        with Files(self.folder, name, table.columns) as files:
            for batch in numbered(batches, table.columns, load):
                files.write(batch)
            adds = files.adds()
            if not adds:
                return 0
            loaded = None if id_ is None else _within(table.id, id_)
            actions: list[Action] = [*([] if loaded is None else [_transaction(loaded)]), *adds]

            def conflict(entry: Entry) -> None:
                if entry.begun is not None:
                    raise ServiceError(f"table '{name}' was dropped or replaced during the load; nothing was loaded")
                if id_ is not None and loaded in entry.loaded_ids:
                    raise AlreadyLoaded(name, id_)

            self._commit(name, table.version, lambda: actions, "WRITE", load=load, conflict=conflict)
            files.keep()
            return files.rows

    def make(
        self,
        name: str,
        columns: Sequence[Column],
        batches: Iterable[pa.RecordBatch],
        *,
        replace: bool = False,
        id_: str | None = None,
    ) -> int:
        """Make a table of rows, with `replace` in the place of the one of that name; how many there were.

        When another process makes the same table meanwhile, the rows are added to it. AlreadyLoaded when a load of this
        ID is in the table.
        """
        check_table(name, columns, self._fresh(), replace=replace)
        load = _load_number(self.current(name))
        with Files(self.folder, name, columns) as files:
            for batch in numbered(batches, columns, load):
                files.write(batch)
            self._begin(name, columns, files.adds(), replace=replace, load=load, id_=id_)
            files.keep()
            return files.rows

    def drop(self, name: str) -> None:
        """Remove a table in one commit; `upkeep` removes its files."""
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
        """A commit after which a table has these columns and files, and no others, and is another one than before."""
        identity = str(uuid.uuid4())

        def actions() -> list[Action]:
            now = int(time.time() * 1000)
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
                raise NotFound(f"no table '{name}'")
            described = there.columns if dropped and there else columns
            removed = [removal(there, file.path, now) for file in there.files] if there else []
            created = {"metaData": layout.metadata(described, identity, now, dropped=dropped)}
            return [{"protocol": layout.PROTOCOL}, created, *removed, *marked, *adds]

        version = self.reader(name).version
        self._commit(name, version, actions, "CREATE TABLE", load=load, conflict=lambda entry: None)

    def _commit(
        self,
        name: str,
        version: int,
        actions: Callable[[], Sequence[Action]],
        operation: str,
        *,
        load: int | None = None,
        conflict: Callable[[Entry], None],
    ) -> None:
        made = self.log(name).commit(version, actions, operation, load=load, conflict=conflict)
        self._listed_at = -LIST_SECONDS
        if made % CHECKPOINT_COMMITS == CHECKPOINT_COMMITS - 1:
            try:
                self.checkpoint(name)
            except (Unavailable, ServiceError) as error:  # the commit is made, and a later one will do
                _log.warning("the versions of table '%s' were not summed up: %s", name, error.message)

    def rewrite(self, table: Snapshot, old: Iterable[str], adds: Sequence[Action], *, keeps_rows: bool) -> None:
        """Put files in the place of others that hold the same rows, or fewer. ServiceError when one of those is gone.

        Rows are not loaded by it, so marks stay as they are.
        """
        gone = frozenset(old)
        now = int(time.time() * 1000)
        actions: list[Action] = [removal(table, path, now) for path in gone]
        for action in (*actions, *adds):
            next(iter(action.values()))["dataChange"] = not keeps_rows

        def conflict(entry: Entry) -> None:
            if entry.begun is not None or entry.removed & gone:
                raise ServiceError(f"another process changed table '{table.name}' at the same time", code=503)

        self._commit(table.name, table.version, lambda: [*actions, *adds], "OPTIMIZE", conflict=conflict)

    def checkpoint(self, name: str) -> None:
        """Write down the sum of a table's versions."""
        reader = self.reader(name)
        with self._lock(name), self.folder.checked(), explained(name, self.folder.table_uri(name)):
            reader.table.create_checkpoint()

    def filesystem(self, name: str) -> PyFileSystem:
        """The folder of a table, for Arrow."""
        handler = DeltaStorageHandler(self.folder.table_uri(name), self.folder.options)
        return PyFileSystem(handler)

    def _fresh(self) -> Mapping[str, Table]:
        self._listed_at = -LIST_SECONDS
        return self.tables()

    def _lock(self, name: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(name, threading.Lock())


def removal(table: Snapshot, path: str, now: int) -> dict[str, Any]:
    """The action that removes a file."""
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
    """The ID of a load in the log, which also has those of tables that this one has replaced."""
    return f"{table}:{load}"


def _transaction(id_: str) -> Action:
    """Delta's own way to tell that a load was made; it stays in the sums of versions."""
    return {"txn": {"appId": id_, "version": 1, "lastUpdated": int(time.time() * 1000)}}


def _load_number(table: Snapshot | None) -> int:
    """A number above those of a table's loads, which no other process takes: milliseconds and 22 random bits."""
    number = int(time.time() * 1000) << 22 | secrets.randbits(22)
    last = 0 if table is None else table.last_load
    return number if number > last else last + 1 + secrets.randbits(22)
