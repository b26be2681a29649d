"""The state in an SQLite file. The file survives kill -9 and power cuts."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Engine, create_engine, event, literal
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from svcctl.dates.epochs import seconds_to_ms
from svcctl.io import files
from svcctl.service.state.database import (
    STATE_AWAY,
    STATE_DAMAGED,
    STATE_FULL,
    STATE_LOCKED,
    STATE_READ_ONLY,
    Database,
    Failure,
    StateUnavailable,
)

LOCK_SECONDS = 10
"""The number of seconds that a transaction waits while another process writes."""

FAILURES: Mapping[int, tuple[Failure, str | None]] = {
    sqlite3.SQLITE_FULL: (STATE_FULL, None),
    sqlite3.SQLITE_READONLY: (STATE_READ_ONLY, None),
    sqlite3.SQLITE_BUSY: (STATE_LOCKED, None),
    sqlite3.SQLITE_LOCKED: (STATE_LOCKED, None),
    sqlite3.SQLITE_CORRUPT: (STATE_DAMAGED, None),
    sqlite3.SQLITE_NOTADB: (STATE_DAMAGED, None),
    **dict.fromkeys(
        (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM), (STATE_AWAY, "check its disk")
    ),
}
"""Maps SQLite's primary error codes to failures and to advice for the operator. Other codes show a defect of svcctl."""


class SQLite(Database):
    """A state in an SQLite file, for one service. Commands such as `svcctl service accounts` may open the file too."""

    shared = False
    writing = ("pragma busy_timeout = 0", "begin immediate")
    foreign = "move it away to start with an empty one"

    def __init__(self, path: Path, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self.name = f"file {path}"
        self.lock_wait_seconds = lock_seconds
        self.reading = (f"pragma busy_timeout = {seconds_to_ms(lock_seconds)}", "begin")
        self._path = path

    @cached_property
    def engine(self) -> Engine:
        os.close(os.open(self._path, os.O_CREAT | os.O_CLOEXEC, 0o600))
        options = {"timeout": self.lock_wait_seconds, "check_same_thread": False, "isolation_level": None}
        engine = create_engine("sqlite://", creator=partial(sqlite3.connect, self._path, **options), poolclass=NullPool)

        @event.listens_for(engine, "connect")
        def connected(driver: sqlite3.Connection, _: Any) -> None:
            for setting in ("journal_mode = wal", "synchronous = full", "foreign_keys = on"):
                driver.execute(f"pragma {setting}")

        return engine

    def version(self, driver: Any) -> Hashable:
        with self.translate_errors():
            [version] = driver.execute("pragma data_version").fetchone()  # changes when another process writes
        return int(version)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            entry = FAILURES.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
            if entry is None:
                raise
            failure, advice = entry
            raise StateUnavailable(failure, self.name, str(cause), advice) from None

    @contextmanager
    def upgrading(self, driver: Any) -> Iterator[None]:
        # An upgrade may drop a table and make it again. With foreign keys, this would delete the rows that refer to the
        # table.
        driver.execute("pragma foreign_keys = off")
        yield
        driver.execute("pragma foreign_keys = on")

    def keep_copy(self, driver: Any, version: str) -> str:
        """Write a copy of the file to the disk before the upgrade changes anything.

        Return a text with the path of the copy.
        """
        copy = self._path.with_name(f"{self._path.name}.before-{version}")
        files.write(copy, driver.serialize(), private=True)
        return f"the old file is {copy}"

    def mark_version(self, driver: Any, version: str) -> None:
        return

    def moment(self) -> ColumnElement[int]:
        return literal(seconds_to_ms(time.time()), BigInteger)
