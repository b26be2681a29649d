"""A new state for each test, and SQLite that fails as a full, read-only or locked state does."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from pathlib import Path

from svcctl.service.accounts import seed
from svcctl.service.state.database import STATE_FULL, STATE_LOCKED, STATE_READ_ONLY, Failure
from svcctl.service.state.store import Store

MOST_PAGES = 1 << 30


def with_catalog(path: Path) -> Store:
    """Make the state of a new service: a copy of the first one, which takes a third of the time."""
    path.touch(mode=0o600)
    path.write_bytes(_first())
    return Store(path)


@cache
def _first() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "state.db"
        with closing(Store(path)) as store:
            seed.catalog(store)
        return path.read_bytes()


@contextmanager
def full(store: Store) -> Iterator[None]:
    """Keep the file from growing; data that fits into its free pages can still be written."""
    with _settings(store) as driver:
        [pages] = driver.execute("pragma page_count").fetchone()
        driver.execute(f"pragma max_page_count = {pages}")
    yield
    with _settings(store) as driver:
        driver.execute(f"pragma max_page_count = {MOST_PAGES}")


@contextmanager
def read_only(store: Store) -> Iterator[None]:
    with _settings(store) as driver:
        driver.execute("pragma query_only = on")
    yield
    with _settings(store) as driver:
        driver.execute("pragma query_only = off")


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Keep the write lock, as another process that writes without end."""
    with _settings(store) as driver:
        [(_, _, file)] = driver.execute("pragma database_list").fetchall()
    with closing(sqlite3.connect(Path(file), isolation_level=None)) as other:
        other.execute("begin immediate")
        yield


@contextmanager
def _settings(store: Store) -> Iterator[sqlite3.Connection]:
    """The connection of a store, as the driver's object."""
    with store.reading() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        yield driver


FAILURES: dict[str, tuple[Callable[[Store], AbstractContextManager[None]], Failure]] = {
    "full": (full, STATE_FULL),
    "read-only": (read_only, STATE_READ_ONLY),
    "locked": (locked, STATE_LOCKED),
}
