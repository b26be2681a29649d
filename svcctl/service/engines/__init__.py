"""Storage engines. An engine stores events, and runs compiled queries over the events.

A plan is a compiled query. A `Tables` object stores events, and a `Reader` runs plans over these events. An `Engine`
has one Tables object and one Reader. An `Engines` object has all tables of a service.

Some SQL differs between readers, for example safe arithmetic, date formats and regular expressions. This SQL comes from
the reader's Dialect, which is a protocol in `language.dialect`. A reader returns rows as Arrow batches. Callers never
pass or get SQL text.

To store tables in another way, add a class that implements the protocol Tables. To run queries on another engine, add a
Reader and a Dialect. The tests in tests/service/engines/test_conformance.py then show which methods are missing.
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
"""A mark is a position in a table: the end of the table at some moment.

A mark separates the rows that were stored before this moment from the rows that were stored later. Only the engine that
made a mark can read the mark. A mark can be stored as JSON and stays valid after a restart. Two marks of a table are
equal if nothing was stored between them. A mark is valid while its table exists. If a table is replaced, the marks of
the old table are not valid for the new table.
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
"""The Arrow type for each type of the query language. Timestamps are in UTC, without a zone, in whole milliseconds."""

ROWS_PER_BATCH = 8192
"""The default maximum number of rows in a batch.

With rows of 100 to 400 bytes, a full batch has about 1 to 3 MB.
"""
BYTES_PER_BATCH = 1 << 22
"""The approximate maximum size of a batch in bytes. Batches of large rows have fewer rows."""

_BEGIN = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Extent:
    """The number of events in a table, their earliest and latest date, and their size on the disk.

    The dates are in UTC and without a zone. The size is in bytes, and is None if it is unknown.
    """

    events: int
    oldest: datetime | None
    newest: datetime | None
    bytes: int | None


class Stream(Protocol):
    """The rows of one running plan. The rows can be read only once."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches with at least one row.

        The plan starts when the caller asks for the first batch, and runs while batches are read.

        Raises ServiceError if the engine fails, and Unavailable if another attempt may succeed later. After a call of
        `interrupt`, raises the error that was passed to `interrupt` as `reason`.
        """

    @abstractmethod
    def interrupt(self, reason: SvcctlError | None = None) -> None:
        """Make the iteration raise `reason` soon, even if the iteration has not started yet.

        If `reason` is None, a ServiceError is raised. This method may be called from any thread and more than once.
        After the end of the iteration, the method does nothing. An interrupt can get lost while a statement starts, so
        a caller must repeat the call until the iteration ends.
        """


class Tables(Protocol):
    """Stored tables of events. Every method may be called from any thread. Reads do not wait for a write.

    A method that gets the name of a table raises UnknownTable if there is no such table. A method that differs from
    this rule says so in its docstring.
    """

    @abstractmethod
    def check(self) -> None:
        """Raise Unavailable if the tables cannot be reached."""

    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """Return the stored tables, keyed by name."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """Return the table with this name."""

    @abstractmethod
    def everywhere(self, name: str) -> bool:
        """Whether other service processes can also read the table and use its marks.

        If so, another process can take over the jobs that read the table.
        """

    @abstractmethod
    def newest(self, name: str) -> datetime | None:
        """Return the latest eventdate of a table, in UTC and without a zone. Return None if the table is empty."""

    @abstractmethod
    def events(self, name: str) -> int:
        """Return the number of events in a table, without reading the events."""

    @abstractmethod
    def extent(self, name: str) -> Extent:
        """Return the number, dates and size of the events in a table."""

    @abstractmethod
    def mark(self, name: str) -> Mark:
        """Return the mark at the present end of a table."""

    @abstractmethod
    def check_mark(self, name: str, mark: Mark) -> None:
        """Raise an error if a mark of the table is no longer valid.

        Raises ServiceError in three cases. The table was replaced after the mark was made, the table was moved to
        another engine after the mark was made, or the table has lost rows that come before the mark.
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
        """Store rows in the order of eventdate. If an error is raised, no row is stored. Returns the number of rows.

        Columns are matched by name. If the rows lack a column of the table, the column is null in these rows. Raises
        UsageError if the rows have a column that the table does not have. Values are cast to the table's types, and
        timestamps are truncated to milliseconds. Raises ServiceError if a value does not fit, or if a row has no
        eventdate.

        With `create`, a table with the columns in `create` is made in the same transaction. With `create` and
        `replace`, the new table replaces a table with the same name.

        With `change`, the columns of the table are changed in the same transaction. Events that are already stored have
        null in new columns, and marks stay valid. Raises the errors of `ColumnChange.check`, and UsageError if a stored
        value would change.

        Raises ColumnsChanged if the rows no longer fit the table, because another load has changed the columns at the
        same time.

        With `load_id`, rows are stored only once. Raises AlreadyLoaded if the table already has a load with this ID.
        `go_on` is called before the new rows become visible. If `go_on` raises an error, nothing is changed.
        """

    @abstractmethod
    def has_load(self, name: str, load_id: str) -> bool:
        """Whether the table has rows that were appended under this ID.

        Return False if there is no table, or if the table was replaced after these rows were appended.
        """

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a table with its rows."""

    @abstractmethod
    def trim(self, name: str, *, most: int, since: datetime) -> int:
        """Remove the rows that were stored earliest. Returns the number of rows that are left.

        The number of removed rows is the larger of two numbers: the number of rows in excess of `most`, and the number
        of rows dated before `since` (UTC, without a zone). Marks stay valid. Streams that begin later do not return the
        removed rows.
        """

    @abstractmethod
    def remove_before(self, name: str, date: datetime) -> int:
        """Remove the rows that are older than a date (UTC, without a zone). Returns the number of removed rows.

        Marks stay valid. Streams that have already begun still return the removed rows.
        """

    @abstractmethod
    def has_removed(self, name: str, since: Mark | None, until: Mark | None, start: datetime) -> bool:
        """Whether events between the marks `since` and `until` may have been removed after `until` was made.

        Only events dated at or after `start` (UTC, without a zone) count. If the result is False, all these events are
        still stored. Raises the errors of `check_mark`. Also raises ServiceError if the engine no longer knows which
        events were removed.
        """


class Reader(Protocol):
    """Runs plans over the rows of a Tables object, in any thread."""

    @property
    def dialect(self) -> Dialect:
        """Return the dialect in which plans for this reader must be compiled."""

    @abstractmethod
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> AbstractContextManager[Stream]:
        """Run a plan over the rows that were stored between the marks `since` and `until`.

        If `since` is None, the rows begin with the first row of the table. If `until` is None, the rows end with the
        last row that is stored now. With `until`, the same call always returns the same rows in the same order, even
        after later loads.

        Batches have the columns of the plan, in the plan's order, with the types in ARROW. The names of the columns may
        differ from the names in the plan. The plan is stopped at the end of the `with` block.

        Raises the errors of `Tables.check_mark`, and ServiceError if the plan cannot run.
        """


@dataclass(frozen=True, slots=True)
class Engine:
    """A Tables object, and a Reader of its rows."""

    stored: Tables
    reader: Reader


class Engines:
    """All tables of a service. A table is either in the service's own engine or in the engine of a shared folder.

    `own` is the service's own engine. `shared` is the engine of the shared folder, or None if there is no shared
    folder. A table named in `own_names` is always made and read in `own`. Other new tables are made in `shared`. Tables
    that were loaded before the service had a shared folder stay in `own` until they are moved. If both engines have a
    table with the same name, and the name is not in `own_names`, the table in `shared` is used.
    """

    def __init__(self, own: Engine, shared: Engine | None = None, own_names: Collection[str] = ()) -> None:
        self._own = own
        self._shared = shared
        self._own_names = frozenset(own_names)
        self._listed: tuple[Mapping[str, Table], ...] = ()

    def of(self, name: str) -> Engine:
        """Return the engine that has a table. For a new table, return the engine that would store the table."""
        own, shared = self._own, self._shared
        if shared is None or name in self._own_names:
            return own
        return own if name in own.stored.tables() and name not in shared.stored.tables() else shared

    def check(self) -> None:
        """Raise Unavailable if the tables cannot be reached."""
        for engine in filter(None, (self._own, self._shared)):
            engine.stored.check()

    def tables(self) -> Mapping[str, Table]:
        """Return all tables, keyed by name.

        If no table has changed since the previous call, the result is the same object as before.
        """
        own = self._own.stored.tables()
        if self._shared is None:
            return own
        shared = self._shared.stored.tables()
        if not self._listed or self._listed[0] is not own or self._listed[1] is not shared:
            own_only = {name: table for name, table in own.items() if name in self._own_names}
            self._listed = own, shared, MappingProxyType(dict(sorted({**own, **shared, **own_only}.items())))
        return self._listed[2]

    def table(self, name: str) -> Table:
        """Return the table with this name. Raises UnknownTable if there is no such table."""
        try:
            return self.of(name).stored.table(name)
        except UnknownTable:
            raise UnknownTable(name, self.tables()) from None

    def for_load(self, name: str) -> Tables:
        """Return the Tables object into which events of a table are loaded. Raises the errors of `check_case`."""
        check_case(name, self.tables())
        return self.of(name).stored

    def move(self, name: str, *, shared: bool) -> int:
        """Move a table to the shared folder if `shared` is True. Otherwise, move the table to the service's own engine.

        Returns the number of rows. Marks of the table become invalid. Raises UsageError if there is no shared folder,
        if the table is already at the target, or if the table is in `own_names`. Raises UnknownTable if there is no
        such table.
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
