"""The state of the service: all data except the events, in a database that survives kill -9.

The store holds the connection to the database, begins transactions, and upgrades the tables. Queries on the tables are
in other modules, such as `accounts`. The queries use the tables of `schema`, and do not depend on the kind of database.
Other processes, such as `svcctl service accounts`, may open the database at the same time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, Transaction, event, exists, insert, select, true, update
from sqlalchemy.exc import DBAPIError

from svcctl import __version__
from svcctl.errors import UsageError
from svcctl.service.state import migrations
from svcctl.service.state.database import STATE_DAMAGED, STATE_LOCKED, Database, StateUnavailable
from svcctl.service.state.sqlite import SQLite

T = TypeVar("T")

PAUSE_SECONDS = 0.02
"""The number of seconds between two attempts to begin a transaction while another process has locked the database."""

_log = logging.getLogger("svcctl.service")


class Store:
    """The service's state, with one connection to its database. Only one thread at a time uses the connection."""

    def __init__(
        self,
        place: Path | Database,
        *,
        fill: Callable[[Store], None] | None = None,
        before_upgrade: Callable[[], None] | None = None,
        scripts: Path = migrations.SCRIPTS,
    ) -> None:
        """Open the database, and create or upgrade its tables. If `place` is a path, the database is an SQLite file.

        `fill` stores the first rows, in the transaction that creates the tables. `scripts` is the folder with the
        scripts that upgrade tables of an older version. Before the upgrade, an SQLite file is copied. `before_upgrade`
        can raise an error to prevent an upgrade.

        Raises UsageError if the tables are damaged, or were written by a newer svcctl or by another program. Raises
        StateUnavailable if the tables cannot be read or changed.
        """
        self._database = database = SQLite(place) if isinstance(place, Path) else place
        self._lock = RLock()
        self._cache: dict[Hashable, Any] = {}
        self._version: Hashable = None
        self._scripts, self._newest = scripts, migrations.newest(scripts)
        try:
            engine = database.engine
            event.listen(engine, "begin", _begin_statements)
            with database.translate_errors():
                self._connection = engine.connect()
            try:
                self._open(fill, before_upgrade)
            except BaseException:
                self.close()
                raise
        except StateUnavailable as error:
            if error.failure is not STATE_DAMAGED:
                raise
            reason = error.reason if database.shared else "state-file-damaged"
            raise UsageError(error.detail, hint=error.advice, reason=reason) from None

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @property
    def shared(self) -> bool:
        """Whether several service processes can use this state at once, over a network."""
        return self._database.shared

    def moment(self) -> ColumnElement[int]:
        """Return SQL for the present time in epoch milliseconds, by a clock that all processes share."""
        return self._database.moment()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run the block as a transaction. Other processes cannot write during the transaction.

        If the block raises an error, all of its statements are undone. Inside the block of another transaction, the new
        transaction becomes a part of the outer transaction. While a transaction waits for another process, other
        threads can read.
        """
        until = time.monotonic() + self._database.lock_wait_seconds
        while True:
            with self._lock, self._database.translate_errors():
                if (begun := self._begin_writing(until)) is not None:
                    with begun:
                        self._cache.clear()
                        yield self._connection
                    return
            time.sleep(PAUSE_SECONDS)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run the block in a transaction for reading. All queries in the block read one snapshot of the database."""
        with self._lock, self._database.translate_errors(), self._begin(self._database.reading):
            yield self._connection

    def check(self) -> None:
        """Check that the database answers. Raises StateUnavailable if the database does not answer."""
        with self.reading() as connection:
            connection.execute(select(true()))

    def cached_value(self, key: Hashable, read: Callable[[Connection], T]) -> T:
        """Return the cached result of `read` for `key`. After any change of the database, `read` is called again.

        The result None is not cached, because clients could fill the cache with unknown keys.
        """
        with self._lock:
            version = self._present_version()
            if version != self._version:
                self._cache.clear()
                self._version = version
            if key in self._cache:
                cached: T = self._cache[key]
                return cached
            with self.reading() as connection:
                value = read(connection)
            if value is not None:
                self._cache[key] = value
            return value

    def _begin_writing(self, until: float) -> Transaction | None:
        """Begin a transaction for writing. If a transaction for writing has already begun, begin a savepoint.

        If another process has locked the database, return None, so that the caller tries again. Raises StateUnavailable
        instead if the monotonic clock has reached `until`.
        """
        begun = self._connection.get_execution_options().get("begin")
        if self._connection.in_transaction() and begun == self._database.writing:
            return self._connection.begin_nested()
        try:
            with self._database.translate_errors():
                return self._begin(self._database.writing)
        except StateUnavailable as error:
            if error.failure is not STATE_LOCKED or time.monotonic() >= until:
                raise
            return None

    def _begin(self, statements: Sequence[str]) -> Transaction:
        """Begin a transaction. If the connection was closed, use a new connection."""
        self._connection.execution_options(begin=statements)
        try:
            return self._connection.begin()
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        return self._connection.begin()

    def _present_version(self) -> Hashable:
        """Return the present value of `Database.version`. A closed connection is replaced first."""
        for attempt in (1, 2):
            with self._database.translate_errors():
                driver = self._driver
            try:
                return self._database.version(driver)
            except StateUnavailable:
                self._connection.invalidate()
                if attempt == 2:
                    raise
        raise AssertionError

    @property
    def _driver(self) -> Any:
        return self._connection.connection.driver_connection

    def _open(self, fill: Callable[[Store], None] | None, before_upgrade: Callable[[], None] | None) -> None:
        with self.reading() as connection:
            version = migrations.version_of(connection)
        if version != self._newest:
            self._upgrade(fill, before_upgrade)
        self._database.mark_version(self._driver, self._newest)

    def _upgrade(self, fill: Callable[[Store], None] | None, before_upgrade: Callable[[], None] | None) -> None:
        """Create or upgrade the tables in one transaction. If the process is killed, the tables stay unchanged."""
        database = self._database
        with database.upgrading(self._driver), self.transaction() as connection:
            version = migrations.version_of(connection)  # another process may have upgraded the tables
            if version == migrations.FOREIGN:
                raise UsageError(f"the state {database.name} has tables of other programs", hint=database.foreign)
            if version is None:
                migrations.create(connection, self._newest)
                if fill is not None:
                    fill(self)
            elif version > self._newest:
                raise UsageError(
                    f"state {database.name} has version {int(version)}, and svcctl {__version__} reads versions up to"
                    f" {int(self._newest)}",
                    reason="newer-version",
                )
            elif version < self._newest:
                if before_upgrade is not None:
                    before_upgrade()
                note = database.keep_copy(self._driver, self._newest)
                migrations.upgrade(connection, self._scripts)
                _log.info("upgraded state %s to version %s; %s", database.name, self._newest, note)


def _begin_statements(connection: Connection) -> None:
    for statement in connection.get_execution_options()["begin"]:
        connection.exec_driver_sql(statement)


def replace(connection: Connection, table: Table, **row: Any) -> None:
    """In a table, update the row that has the primary key of `row`. If there is no such row, insert `row`."""
    key = [column == row[column.name] for column in table.primary_key]
    if not connection.execute(update(table).where(*key).values(row)).rowcount:
        connection.execute(insert(table).values(row))


def is_there(connection: Connection, *conditions: ColumnElement[bool]) -> bool:
    """Return whether at least one row meets all conditions."""
    return bool(connection.scalar(select(exists().where(*conditions))))
