"""Storage engines: where events are stored, and what runs compiled queries over them.

`Tables` stores events, and a `Reader` runs plans over them; an `Engine` is one of each, and `Engines` has all tables
of a service. SQL that differs between readers (safe arithmetic, date formats, patterns …) comes from the reader's
Dialect, a protocol of `language.dialect`. Rows cross this boundary only as Arrow batches, in the types of ARROW; SQL
text never does.

A new place for tables is a Tables, a new engine of queries a Reader and its dialect; the tests in
tests/service/engines/test_conformance.py say what is missing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from svcctl.errors import SvcctlError, UsageError
from svcctl.service.engines.table_rules import ColumnChange, UnknownTable, check_case
from svcctl.service.language import compile, tree
from svcctl.service.language.dialect import Dialect
from svcctl.service.language.query_error import NOWHERE
from svcctl.service.language.types import Column, Plan, Table, Type

Mark = int | str
"""A mark stands for everything that was stored in a table until some moment.

Only the engine that made a mark can read it. A mark fits JSON, stays valid after a restart, and equals another mark of
the same table when nothing was stored in between. It is valid as long as its table exists: a table that replaces it has
other marks.
"""

ARROW: Mapping[Type, pa.DataType] = {
    Type.TIMESTAMP: pa.timestamp("us"),
    Type.STR: pa.string(),
    Type.INT4: pa.int32(),
    Type.INT8: pa.int64(),
    Type.FLOAT8: pa.float64(),
    Type.BOOL: pa.bool_(),
    Type.IP4: pa.uint32(),
}
"""The Arrow types of values in batches. Timestamps are in UTC, without a zone, in whole milliseconds."""

ROWS_PER_BATCH = 8192
"""With lines of 100 to 400 bytes, a batch is 1 to 3 MB: large enough to send, small beside the memory limit."""
BYTES_PER_BATCH = 1 << 22
"""About the most bytes of a batch, whatever the size of a row."""

_BEGIN = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a table holds: events, their first and last date (UTC, without a zone), bytes on the disk if known."""

    events: int
    oldest: datetime | None
    newest: datetime | None
    bytes: int | None


class Stream(Protocol):
    """The rows of one running plan, read once."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches with at least one row. The plan starts with the first batch, and runs while batches are read.

        Raises ServiceError when the engine fails, Unavailable when it may work later, or the reason of `interrupt`.
        """

    @abstractmethod
    def interrupt(self, reason: SvcctlError | None = None) -> None:
        """Make the iteration raise `reason` soon, also if it has not started yet.

        May be called from any thread and more than once; does nothing after the end. An engine may miss an interrupt
        while a statement starts, so a caller that waits for the end repeats it.
        """


class Tables(Protocol):
    """Stored tables of events. Every method may be called from any thread; reads run side by side with a write.

    The methods that take the name of a table raise UnknownTable if there is none of this name, except where they say
    otherwise.
    """

    @abstractmethod
    def check(self) -> None:
        """Raise Unavailable when the tables cannot be reached, so that queries and loads would fail."""

    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """The stored tables by name, as of the last write."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """The table of a name."""

    @abstractmethod
    def everywhere(self, name: str) -> bool:
        """Whether other service processes read the same table, with the same marks, and so can take over its jobs."""

    @abstractmethod
    def newest(self, name: str) -> datetime | None:
        """The latest eventdate of a table, without a zone and in UTC; None when it is empty."""

    @abstractmethod
    def events(self, name: str) -> int:
        """How many events a table holds; the answer takes no time."""

    @abstractmethod
    def extent(self, name: str) -> Extent:
        """How much a table holds."""

    @abstractmethod
    def mark(self, name: str) -> Mark:
        """The mark of everything that is stored in a table now."""

    @abstractmethod
    def check_mark(self, name: str, mark: Mark) -> None:
        """Raise the error of `replaced`, `moved` or `lost` if that happened to the table since the mark."""

    @abstractmethod
    def create(self, name: str, columns: Sequence[Column]) -> Table:
        """Make an empty table. Raises the errors of `check_table`."""

    @abstractmethod
    def append(
        self,
        name: str,
        rows: pa.RecordBatchReader,
        *,
        create: Sequence[Column] | None = None,
        replace: bool = False,
        change: ColumnChange | None = None,
        load_id: str | None = None,
        go_on: Callable[[], None] | None = None,
    ) -> int:
        """Store rows in the order of eventdate, all or none. Returns how many they are.

        Columns are matched by name: columns that the rows lack become null, columns that the table lacks are a
        UsageError. Values are cast to the table's types, and timestamps are cut to milliseconds; ServiceError when a
        value does not fit, or a row has no eventdate. With `create` the table is made in the same transaction, and with
        `replace` also in place of the table of that name. With a `change` the table gets its columns in the same
        transaction, and events that are stored already have null in new ones; marks stay valid. Raises the errors of
        `ColumnChange.check`, and UsageError if a stored value would change. Without a `change`, too, ColumnsChanged is
        raised if another load changes the columns meanwhile. With a `load_id`, rows are stored once: AlreadyLoaded if
        `has_load` is true. `go_on` is called before others can see the change; if it raises, nothing is changed.
        """

    @abstractmethod
    def has_load(self, name: str, load_id: str) -> bool:
        """Whether rows were appended to a table under this ID. False if there is no table, or it was replaced since."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a table and its rows."""

    @abstractmethod
    def trim(self, name: str, *, most: int, since: datetime) -> int:
        """Remove the rows stored first, until at most `most` are left, and as many as are older than `since`.

        `since` is without a zone and in UTC. Returns how many rows are left. Marks stay valid, but streams that begin
        later do not have the removed rows.
        """

    @abstractmethod
    def remove_before(self, name: str, date: datetime) -> int:
        """Remove the rows that are older than a date, which is without a zone and in UTC. Returns how many they were.

        Marks stay valid, and streams that have begun still return the removed rows.
        """

    @abstractmethod
    def has_removed(self, name: str, since: Mark | None, until: Mark | None, start: datetime) -> bool:
        """Whether events stored between two marks, and dated from `start` on, may have been removed after `until`.

        False only if all of them are still there. `start` is without a zone and in UTC. Raises the errors of
        `check_mark`, and ServiceError when this is no longer known.
        """


class Reader(Protocol):
    """Runs plans over the rows of some Tables, in any thread."""

    @property
    def dialect(self) -> Dialect:
        """The dialect that plans for this reader are compiled with."""

    @abstractmethod
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> AbstractContextManager[Stream]:
        """Run a plan over the rows stored after `since` (None: all) and up to `until` (None: now).

        Leaving the block stops the plan. Batches hold the plan's columns in order, in the types of ARROW, under any
        names. With `until` given, the same call returns the same rows in the same order, whatever is stored later.
        Raises ServiceError when the plan cannot run, and the errors of `Tables.check_mark`.
        """


@dataclass(frozen=True, slots=True)
class Engine:
    """Tables, and the reader of their rows."""

    stored: Tables
    reader: Reader


class Engines:
    """The tables of a service: those in its own engine, and those in the engine of a shared folder, if it has one.

    New tables are made in `shared`, but for `own_names`, which are made in `own`. Tables that were loaded
    before the service had a folder stay in `own` until they are moved. A name that both engines have means the shared
    table.
    """

    def __init__(self, own: Engine, shared: Engine | None = None, own_names: Collection[str] = ()) -> None:
        self._own = own
        self._shared = shared
        self._own_names = frozenset(own_names)
        self._listed: tuple[Mapping[str, Table], ...] = ()

    def of(self, name: str) -> Engine:
        """The engine that has a table, or would store it."""
        own, shared = self._own, self._shared
        if shared is None or name in self._own_names:
            return own
        return own if name in own.stored.tables() and name not in shared.stored.tables() else shared

    def check(self) -> None:
        """Raise Unavailable when the tables cannot be reached."""
        for engine in filter(None, (self._own, self._shared)):
            engine.stored.check()

    def tables(self) -> Mapping[str, Table]:
        """All tables by name, as of the last write; the same mapping while nothing has changed."""
        own = self._own.stored.tables()
        if self._shared is None:
            return own
        shared = self._shared.stored.tables()
        if not self._listed or self._listed[0] is not own or self._listed[1] is not shared:
            own_only = {name: table for name, table in own.items() if name in self._own_names}
            self._listed = own, shared, MappingProxyType(dict(sorted({**own, **shared, **own_only}.items())))
        return self._listed[2]

    def table(self, name: str) -> Table:
        """The table of a name. Raises UnknownTable."""
        try:
            return self.of(name).stored.table(name)
        except UnknownTable:
            raise UnknownTable(name, self.tables()) from None

    def for_load(self, name: str) -> Tables:
        """The tables to load events of a table into. Raises the errors of `check_case`."""
        check_case(name, self.tables())
        return self.of(name).stored

    def move(self, name: str, *, shared: bool) -> int:
        """Move a table to the shared folder, or from there to the service's own file. Returns how many rows it has.

        Marks of the table become invalid. Raises UnknownTable, and UsageError when there is no folder, the table is
        there already, or it must not be moved.
        """
        if self._shared is None:
            raise UsageError(
                "the service has no shared folder of tables", hint="name one with SVCCTL_TABLES or --tables"
            )
        table, source, target = self.table(name), self.of(name), self._shared if shared else self._own
        if name in self._own_names:
            raise UsageError(f"table '{name}' belongs to the service, so it stays where it is")
        if source is target:
            raise UsageError(f"table '{name}' is in {'the shared folder' if shared else 'the file'} already")
        everything = tree.Query(at=NOWHERE, table=name, clauses=())
        plan = compile(everything, {name: table}, dialect=source.reader.dialect, start=_BEGIN, end=None, now=_BEGIN)
        schema = pa.schema([(column.name, ARROW[column.type]) for column in table.columns])
        with source.reader.stream(plan) as rows:
            renamed = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
            batches = pa.RecordBatchReader.from_batches(schema, renamed)
            replace = name in target.stored.tables()
            moved = target.stored.append(name, batches, create=table.columns, replace=replace)
        source.stored.drop(name)
        return moved


def by_bytes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into batches of at most about BYTES_PER_BATCH."""
    pieces = -(-batch.nbytes // BYTES_PER_BATCH)
    rows = max(1, -(-batch.num_rows // max(1, pieces)))
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
