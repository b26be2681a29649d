"""The state of the service: everything but the events, in one SQLite file that survives kill -9.

The store owns the file, its version, its connection, its lock and its transactions. It does not know what the tables
contain: each noun's module has its own queries, written with the tables of `schema`, so they do not depend on SQLite.
Other processes may have the file open too, as `svcctl service accounts` does.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    exists,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool

from svcctl import __version__, files
from svcctl.errors import UsageError
from svcctl.service import migrations

LOCK_SECONDS = 10
"""How long a transaction waits for one of another process."""

_log = logging.getLogger("svcctl.service")


class Store:
    """One connection, guarded by a lock: statements are short, and callers come from several threads."""

    def __init__(
        self, path: Path, *, before_upgrade: Callable[[], None] = lambda: None, lock_seconds: float = LOCK_SECONDS
    ) -> None:
        """Open the file, or create it. A file of an older version is copied and upgraded; `before_upgrade` can raise an
        error to prevent that. UsageError when a newer svcctl wrote the file, or when it is damaged.
        """
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._path = path
        self._lock = RLock()
        try:
            self._connection = _engine(path, lock_seconds).connect()
            try:
                self._open(before_upgrade)
            except BaseException:
                self.close()
                raise
        except DatabaseError as error:
            damaged = not isinstance(
                error, OperationalError
            )  # an OperationalError is about locks, the disk or permissions
            raise UsageError(
                f"state file {path} cannot be opened: {error.orig}",
                hint="restore it from a backup, or start over with 'svcctl service reset'" if damaged else None,
            ) from None

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run the block's statements all or none; no other thread or process writes in between."""
        with self._lock, self._connection.execution_options(begin="begin immediate").begin():
            yield self._connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give all queries of the block the same state of the file."""
        with self._lock, self._connection.execution_options(begin="begin").begin():
            yield self._connection

    def _open(self, before_upgrade: Callable[[], None]) -> None:
        with self.reading() as connection:
            version = migrations.version_of(connection)
        if version != migrations.VERSION:
            self._upgrade(before_upgrade)

    def _upgrade(self, before_upgrade: Callable[[], None]) -> None:
        """Upgrade the file in one transaction, so that killing the process leaves it as it was.

        The copy of an older file is on the disk before anything changes.
        """
        driver = self._connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.execute(
            "pragma foreign_keys = off"
        )  # dropping a table to rebuild it would delete the rows that refer to it
        with self.transaction() as connection:
            version = migrations.version_of(connection)  # another process may have upgraded it
            if version is None:
                migrations.create(connection)
            elif version > migrations.VERSION:
                raise UsageError(
                    f"state file {self._path} has version {int(version)}, and svcctl {__version__} reads versions up to"
                    f" {int(migrations.VERSION)}",
                    hint="install a newer svcctl: pip install --upgrade 'svcctl[service]'",
                )
            elif version < migrations.VERSION:
                before_upgrade()
                copy = self._path.with_name(f"{self._path.name}.before-{migrations.VERSION}")
                files.write(copy, driver.serialize(), private=True)
                migrations.upgrade(connection)
                _log.info("upgraded %s to version %s; the old file is %s", self._path, migrations.VERSION, copy)
        driver.execute("pragma foreign_keys = on")


def replace(connection: Connection, table: Table, **row: Any) -> None:
    """Update the row that has this primary key, or insert one."""
    key = [column == row[column.name] for column in table.primary_key]
    if not connection.execute(update(table).where(*key).values(row)).rowcount:
        connection.execute(insert(table).values(row))


def is_there(connection: Connection, *conditions: ColumnElement[bool]) -> bool:
    """Whether a row meets all conditions."""
    return bool(connection.scalar(select(exists().where(*conditions))))


def _engine(path: Path, lock_seconds: float) -> Engine:
    """SQLite that survives power cuts, with transactions that the store begins itself."""
    engine = create_engine(
        "sqlite://",
        creator=partial(sqlite3.connect, path, timeout=lock_seconds, check_same_thread=False, isolation_level=None),
        poolclass=NullPool,
    )

    @event.listens_for(engine, "connect")
    def connected(driver: sqlite3.Connection, _: Any) -> None:
        for setting in ("journal_mode = wal", "synchronous = full", "foreign_keys = on"):
            driver.execute(f"pragma {setting}")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options()["begin"])

    return engine
