"""Storage engines: where events are stored, and how a compiled query reads them.

`Engine`, `Stream` and `Mark` are all that the rest of the service knows of one. What differs between engines in the
language itself (safe arithmetic, date formats, patterns …) is in an engine's Dialect, in `language.dialect`. Rows cross
this boundary as Arrow batches only, in the types of ARROW; SQL text never does.

A new engine is a module here and its dialect; the tests in tests/service/engines/test_conformance.py say what is
missing.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

import pyarrow as pa

from svcctl.errors import ServiceError, SvcctlError, UsageError
from svcctl.service.language.dialect import Dialect
from svcctl.service.language.types import Column, Plan, Table, Type

Mark = int | str
"""Everything that was stored in a table until some moment.

Only the engine that made it can read it. It fits JSON, stays valid after a restart, and equals another mark of the same
table when nothing was stored in between. It ends with its table: a table that is made anew has marks of its own.
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
"""How values cross the boundary. Timestamps are in UTC, without a zone, in whole milliseconds."""

ROWS_PER_BATCH = 8192
"""Lines of 100 to 400 bytes make chunks of 1 to 3 MB: large enough for the wire, small beside the memory limit."""
BYTES_PER_BATCH = 1 << 22
"""About so many bytes are in a batch at most, whatever the size of a row."""

_TABLE_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*", re.ASCII)


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
        """Batches with at least one row. The work starts with the first of them, and runs while they are read.

        ServiceError when the engine fails, Unavailable when it may do better later, or the reason given to `interrupt`.
        """

    @abstractmethod
    def interrupt(self, reason: SvcctlError | None = None) -> None:
        """Make the iteration raise `reason`, soon and wherever it is: before its start, too.

        May be called from any thread and more than once; does nothing after the end. An engine may miss an interrupt
        while it starts, so a caller that waits for the end repeats it.
        """


class Engine(Protocol):
    """Stored tables of events. Every method may be called from any thread; reads run side by side with a write."""

    @property
    def dialect(self) -> Dialect:
        """What plans for this engine are compiled with."""

    @abstractmethod
    def check(self) -> None:
        """Unavailable when the place where tables are stored is away, so that queries and loads fail."""

    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """The stored tables by name, as of the last write."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """One table; NotFound when it is not stored."""

    @abstractmethod
    def everywhere(self, name: str) -> bool:
        """Whether other service processes read the same table, with the same marks, so that they can take its jobs."""

    @abstractmethod
    def newest(self, name: str) -> datetime | None:
        """The latest eventdate of a table, without a zone and in UTC; None when it is empty."""

    @abstractmethod
    def events(self, name: str) -> int:
        """How many events a table holds, which is known at once. NotFound when there is no such table."""

    @abstractmethod
    def extent(self, name: str) -> Extent:
        """How much a table holds. NotFound when there is no such table."""

    @abstractmethod
    def mark(self, name: str) -> Mark:
        """Everything that is stored in a table now. NotFound when there is no such table."""

    @abstractmethod
    def check_mark(self, name: str, mark: Mark) -> None:
        """ServiceError as of `replaced` or `moved` when the table of a mark was dropped, replaced or moved since."""

    @abstractmethod
    def create(self, name: str, columns: Sequence[Column]) -> Table:
        """A new, empty table. UsageError as of `check_table`."""

    @abstractmethod
    def append(
        self,
        name: str,
        rows: pa.RecordBatchReader,
        *,
        create: Sequence[Column] | None = None,
        replace: bool = False,
        load_id: str | None = None,
        go_on: Callable[[], None] = lambda: None,
    ) -> int:
        """Store rows sorted by eventdate, all or none; how many there were.

        Columns go by name; those the rows lack become null, those the table lacks are a UsageError. Values are cast to
        the table's types, timestamps cut to milliseconds; ServiceError when a value does not fit, or a row has no
        eventdate. With `create` the table is made first, and only stays if the rows do; with `replace`, in the place of
        the table of that name, which is dropped if the rows stay. With a `load_id`, rows are stored once: AlreadyLoaded
        as of `has_load`. `go_on` is called when all of that is done and not seen by others yet; its error leaves
        everything as it was.
        """

    @abstractmethod
    def has_load(self, name: str, load_id: str) -> bool:
        """Whether rows were appended to a table under this ID. False of a table that is not there or was made anew."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a table and its rows. NotFound when there is no such table."""

    @abstractmethod
    def trim(self, name: str, *, most: int, since: datetime) -> int:
        """Remove the rows stored first, until at most so many are left, and as many as are older than `since`.

        `since` is without a zone and in UTC. Returns how many rows are left. Marks stay valid, but what was removed is
        in no stream that begins later, even if its marks enclose it. NotFound when there is no such table.
        """

    @abstractmethod
    def remove_before(self, name: str, date: datetime) -> int:
        """Remove the rows that are older than a date, without a zone and in UTC; how many there were.

        Marks stay valid, and streams that have begun go on with what they saw at their begin. NotFound when there is
        no such table.
        """

    @abstractmethod
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> AbstractContextManager[Stream]:
        """Run a plan over the rows stored after `since` (None: all) and up to `until` (None: now); leaving stops it.

        Batches hold the plan's columns in its order, in the types of ARROW, under any names. With `until` given, the
        same call returns the same rows in the same order, whatever was stored in the meantime. ServiceError when the
        plan cannot run, or as of `check_mark`.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what the engine holds. No other call may follow."""


@runtime_checkable
class Several(Protocol):
    """What an engine that is made of several offers besides."""

    @abstractmethod
    def holder(self, name: str) -> Engine:
        """The engine that has a table, or would have it."""

    @abstractmethod
    def move(self, name: str, *, shared: bool) -> int:
        """Move a table to the shared folder, or from there to the service's own file; how many rows it has.

        Its marks end. NotFound when there is no such table, UsageError when it is there already or must stay.
        """


def holder(engine: Engine, name: str) -> Engine:
    """The engine that has a table, or would have it: plans over the table are in its dialect, and run on it."""
    return engine.holder(name) if isinstance(engine, Several) else engine


def by_bytes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of a batch in batches of about BYTES_PER_BATCH at most."""
    pieces = -(-batch.nbytes // BYTES_PER_BATCH)
    rows = max(1, -(-batch.num_rows // max(1, pieces)))
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


class TableExists(UsageError):
    """A table that was to be made is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"table '{name}' is already there")


class AlreadyLoaded(UsageError):
    """A load of this ID is in the table."""

    def __init__(self, name: str, load_id: str) -> None:
        super().__init__(f"table '{name}' has the load {load_id} already")


def check_table_name(name: str) -> str:
    """The same name, or UsageError: tables are named by letters, digits and _ in parts joined by dots."""
    if not _TABLE_NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot name a table", hint="use letters, digits and _ in parts joined by dots, as in web.access"
        )
    return name


def check_table(name: str, columns: Sequence[Column], existing: Iterable[str], *, replace: bool = False) -> None:
    """UsageError when a table cannot be made: its name or a column cannot be used, or it exists (TableExists).

    Names that differ only by case count as equal, because engines cannot tell them apart.
    """
    check_table_name(name)
    if Column("eventdate", Type.TIMESTAMP) not in columns:
        raise UsageError(f"table '{name}' needs a column eventdate of type timestamp")
    if len({column.name.casefold() for column in columns}) < len(columns):
        raise UsageError(f"table '{name}' would have two columns of the same name")
    for other in existing:
        if other == name and not replace:
            raise TableExists(other)
        if other != name and other.casefold() == name.casefold():
            raise UsageError(f"table '{name}' differs from table '{other}' only in case", hint=f"use '{other}'")


def replaced(name: str) -> ServiceError:
    """The error of a query that has read a part of a table which is no longer there."""
    return ServiceError(
        f"table '{name}' was dropped or replaced, so the query cannot continue; a new query or job reads its new events"
    )


def moved(name: str) -> ServiceError:
    """The error of a query that has read a part of a table which another engine has now."""
    return ServiceError(
        f"table '{name}' was moved, so the query cannot continue; a new query or job reads its events where it is now"
    )
