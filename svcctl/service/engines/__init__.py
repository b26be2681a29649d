"""Storage engines: they store events, and run compiled queries over the events.

`Tables` stores events, and a `Reader` runs plans over them. An `Engine` has one Tables and one Reader; `Engines` has
all tables of a service. SQL that differs between readers (safe arithmetic, date formats, patterns …) comes from the
reader's Dialect, a protocol of `language.dialect`. Only Arrow batches cross this boundary, in the types of ARROW; SQL
text never does.

A new place for tables is a new Tables. A new engine for queries is a new Reader with its dialect. The tests in
tests/service/engines/test_conformance.py show what is missing.
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

Only the engine that made a mark can read it. A mark fits JSON and stays valid after a restart. Two marks of a table are
equal if nothing was stored between them. A mark is valid as long as its table exists: a table that replaces the table
has other marks.
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
"""The number of rows in a batch.

With lines of 100 to 400 bytes, a batch is 1 to 3 MB: large enough to send, and small compared with the memory limit.
"""
BYTES_PER_BATCH = 1 << 22
"""The approximate maximum size of a batch in bytes, however large its rows are."""

_BEGIN = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a table: its number of events, their first and last date, and its bytes on disk if known.

    The dates are in UTC and without a zone.
    """

    events: int
    oldest: datetime | None
    newest: datetime | None
    bytes: int | None


class Stream(Protocol):
    """The rows of one running plan, read once."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches with at least one row. The plan starts with the first batch, and runs while batches are read.

        Raises ServiceError when the engine fails, Unavailable when it may work later, or the `reason` given to
        `interrupt`.
        """

    @abstractmethod
    def interrupt(self, reason: SvcctlError | None = None) -> None:
        """Make the iteration raise `reason` soon, even if it has not started yet.

        May be called from any thread and more than once; it does nothing after the end. An engine may miss an interrupt
        while a statement starts, so a caller that waits for the end must repeat the call.
        """


class Tables(Protocol):
    """Stored tables of events. Every method may be called from any thread, and reads do not wait for a write.

    A method that takes the name of a table raises UnknownTable if there is no table of this name, unless its docstring
    says otherwise.
    """

    @abstractmethod
    def check(self) -> None:
        """Raise Unavailable when the tables cannot be reached, so that queries and loads would fail."""

    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """Return the stored tables by name, as of the last write."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """Return the table with a name."""

    @abstractmethod
    def everywhere(self, name: str) -> bool:
        """Whether other service processes read the same table with the same marks.

        If so, they can take over its jobs.
        """

    @abstractmethod
    def newest(self, name: str) -> datetime | None:
        """Return the latest eventdate of a table, in UTC and without a zone; None if the table is empty."""

    @abstractmethod
    def events(self, name: str) -> int:
        """Return the number of events in a table. This takes no time."""

    @abstractmethod
    def extent(self, name: str) -> Extent:
        """Return the number, dates and size of the events in a table."""

    @abstractmethod
    def mark(self, name: str) -> Mark:
        """Return the mark for everything that is stored in a table now."""

    @abstractmethod
    def check_mark(self, name: str, mark: Mark) -> None:
        """Raise an error if the table was replaced or moved, or has lost rows, since the mark.

        The errors are those of `replaced`, `moved` and `lost`.
        """

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
        """Store rows in the order of eventdate, all or none. Returns the number of rows.

        Columns are matched by name. A column that the rows lack becomes null. For a column that the table lacks,
        UsageError is raised. Values are cast to the table's types, and timestamps are cut to milliseconds. ServiceError
        is raised when a value does not fit, or a row has no eventdate.

        With `create`, the table is made in the same transaction; with `replace` as well, it takes the place of any
        table of that name. With a `change`, the table gets the columns after the change in the same transaction. Events
        that are already stored have null in new columns, and marks stay valid. Raises the errors of
        `ColumnChange.check`, and UsageError if a stored value would change. ColumnsChanged is raised if another load
        changes the columns at the same time, even without a `change`.

        With a `load_id`, rows are stored only once: AlreadyLoaded is raised if `has_load` is true. `go_on` is called
        before others can see the change; if it raises an error, nothing is changed.
        """

    @abstractmethod
    def has_load(self, name: str, load_id: str) -> bool:
        """Whether rows were appended to a table under this ID.

        False if there is no table, or if it was replaced since then.
        """

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a table and its rows."""

    @abstractmethod
    def trim(self, name: str, *, most: int, since: datetime) -> int:
        """Remove the rows that were stored first, until at most `most` rows are left.

        At least as many rows are removed as are older than `since` (UTC, without a zone). Returns the number of rows
        that are left. Marks stay valid, but streams that begin later do not have the removed rows.
        """

    @abstractmethod
    def remove_before(self, name: str, date: datetime) -> int:
        """Remove the rows that are older than a date (UTC, without a zone). Returns the number of removed rows.

        Marks stay valid, and streams that have begun still return the removed rows.
        """

    @abstractmethod
    def has_removed(self, name: str, since: Mark | None, until: Mark | None, start: datetime) -> bool:
        """Whether a removal after `until` may have removed events that were stored between two marks.

        Only events dated from `start` on (UTC, without a zone) count. False only if all these events are still there.
        Raises the errors of `check_mark`, and ServiceError when this is no longer known.
        """


class Reader(Protocol):
    """Runs plans over the rows of some Tables, in any thread."""

    @property
    def dialect(self) -> Dialect:
        """Return the dialect in which plans for this reader are compiled."""

    @abstractmethod
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> AbstractContextManager[Stream]:
        """Run a plan over the rows stored after `since` and up to `until`.

        By default, these are all rows stored so far.

        Leaving the block stops the plan. Batches hold the plan's columns in order, in the types of ARROW; the names of
        their columns may differ. With `until`, the same call returns the same rows in the same order, whatever is
        stored later. Raises ServiceError when the plan cannot run, and the errors of `Tables.check_mark`.
        """


@dataclass(frozen=True, slots=True)
class Engine:
    """Tables, and a reader of their rows."""

    stored: Tables
    reader: Reader


class Engines:
    """The tables of a service: those in its own engine, and those in the engine of a shared folder if there is one.

    New tables are made in `shared`, except the tables named in `own_names`, which are made in `own`. Tables that
    were loaded before the service had a folder stay in `own` until they are moved. If both engines have a table of
    the same name, the name means the shared table.
    """

    def __init__(self, own: Engine, shared: Engine | None = None, own_names: Collection[str] = ()) -> None:
        self._own = own
        self._shared = shared
        self._own_names = frozenset(own_names)
        self._listed: tuple[Mapping[str, Table], ...] = ()

    def of(self, name: str) -> Engine:
        """Return the engine that has a table, or would store it."""
        own, shared = self._own, self._shared
        if shared is None or name in self._own_names:
            return own
        return own if name in own.stored.tables() and name not in shared.stored.tables() else shared

    def check(self) -> None:
        """Raise Unavailable when the tables cannot be reached."""
        for engine in filter(None, (self._own, self._shared)):
            engine.stored.check()

    def tables(self) -> Mapping[str, Table]:
        """Return all tables by name, as of the last write. The mapping is the same object while nothing has changed."""
        own = self._own.stored.tables()
        if self._shared is None:
            return own
        shared = self._shared.stored.tables()
        if not self._listed or self._listed[0] is not own or self._listed[1] is not shared:
            own_only = {name: table for name, table in own.items() if name in self._own_names}
            self._listed = own, shared, MappingProxyType(dict(sorted({**own, **shared, **own_only}.items())))
        return self._listed[2]

    def table(self, name: str) -> Table:
        """Return the table with a name. Raises UnknownTable."""
        try:
            return self.of(name).stored.table(name)
        except UnknownTable:
            raise UnknownTable(name, self.tables()) from None

    def for_load(self, name: str) -> Tables:
        """Return the Tables into which events of a table are loaded. Raises the errors of `check_case`."""
        check_case(name, self.tables())
        return self.of(name).stored

    def move(self, name: str, *, shared: bool) -> int:
        """Move a table to the shared folder, or from the folder to the service's own file. Returns the number of rows.

        Marks of the table become invalid. Raises UsageError when there is no folder, when the table is there already,
        or when it must not be moved. Raises UnknownTable.
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
    """Split a batch into batches of at most about BYTES_PER_BATCH bytes."""
    pieces = -(-batch.nbytes // BYTES_PER_BATCH)
    rows = max(1, -(-batch.num_rows // max(1, pieces)))
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
