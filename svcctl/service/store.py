"""What the service remembers beside events, in one SQLite file that survives kill -9.

The store owns the connection, its lock and its transactions, and knows nothing of what the tables hold: the queries of
each table are in the module of its noun. Other processes may have the file open too (`svcctl service accounts …` does).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from svcctl.service.schema import SCHEMA


class Store:
    """One connection, guarded by a lock: statements are short, and callers come from several threads."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._lock = RLock()
        self._connection = sqlite3.connect(path, timeout=10, check_same_thread=False, isolation_level=None)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.execute("pragma foreign_keys = on")
        self._connection.executescript(SCHEMA)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block's statements, or none; nobody else writes in between."""
        with self._lock:
            self._connection.execute("begin immediate")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the file for all of the block's queries."""
        with self._lock:
            self._connection.execute("begin")
            try:
                yield self._connection
            finally:
                self._connection.execute("commit")
