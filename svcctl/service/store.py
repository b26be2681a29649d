"""What the service remembers beside events: accounts now, in one SQLite file that survives kill -9."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

_SCHEMA = """
create table if not exists accounts (
    api_key text primary key,
    api_secret text not null,
    token text unique,
    domain text not null,
    administrator integer not null default 0
) strict;
"""


@dataclass(frozen=True, slots=True)
class Account:
    """Who may ask: an API key with its secret and, optionally, a token. An administrator may load events."""

    api_key: str
    api_secret: str
    token: str | None
    domain: str
    administrator: bool = False

    def __repr__(self) -> str:
        return f"Account({self.api_key!r}, domain={self.domain!r})"


class Store:
    """One connection, guarded by a lock: statements are short, and callers come from several threads."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._lock = RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block's statements, or none."""
        with self._lock:
            self._connection.execute("begin immediate")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def put_account(self, account: Account) -> None:
        """Add an account, or replace the one with its key."""
        with self.transaction() as connection:
            connection.execute(
                "insert or replace into accounts values (?, ?, ?, ?, ?)",
                (account.api_key, account.api_secret, account.token, account.domain, int(account.administrator)),
            )

    def account(self, api_key: str) -> Account | None:
        return self._account("api_key", api_key)

    def account_by_token(self, token: str) -> Account | None:
        return self._account("token", token)

    def _account(self, column: str, value: str) -> Account | None:
        with self._lock:
            row = self._connection.execute(
                f"select api_key, api_secret, token, domain, administrator from accounts where {column} = ?", (value,)
            ).fetchone()
        return None if row is None else Account(*row[:4], administrator=bool(row[4]))
