"""What the service remembers beside events, in one SQLite file that survives kill -9.

The store owns the connection, its lock and its transactions. The SQL of each table stands in the module whose facts the
table holds; here, only that of accounts. Other processes may have the file open too (`svcctl service accounts …` does).
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from svcctl.errors import NotFound
from svcctl.service.jobs import jobs
from svcctl.service.provisioning import domains, offers, roles
from svcctl.service.queries import saved

_ACCOUNTS = """
create table if not exists accounts (
    api_key text primary key,
    api_secret text not null,
    token text unique,
    domain text not null,
    administrator integer not null default 0,
    reseller text
) strict;
"""
_SCHEMAS = (_ACCOUNTS, offers.SCHEMA, domains.SCHEMA, roles.SCHEMA, saved.SCHEMA, jobs.SCHEMA)


@dataclass(frozen=True, slots=True)
class Account:
    """Who may ask: an API key with its secret and, optionally, a token.

    An account belongs to a domain, whose administrators give it roles, or to a reseller, whose customer domains it
    manages; then `domain` is empty.
    """

    api_key: str
    api_secret: str
    token: str | None
    domain: str
    administrator: bool = False
    reseller: str | None = None

    @property
    def operates(self) -> bool:
        """Whether this is someone who runs the service: an administrator of a domain of the provider's own."""
        return self.administrator and self.reseller is None and "@" not in self.domain

    def __repr__(self) -> str:
        whose = f"domain={self.domain!r}" if self.reseller is None else f"reseller={self.reseller!r}"
        return f"Account({self.api_key!r}, {whose})"


class Store:
    """One connection, guarded by a lock: statements are short, and callers come from several threads."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._lock = RLock()
        self._connection = sqlite3.connect(path, timeout=10, check_same_thread=False, isolation_level=None)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.execute("pragma foreign_keys = on")
        for schema in _SCHEMAS:
            self._connection.executescript(schema)

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

    def put_account(self, account: Account) -> None:
        """Add an account, or replace the one with its key."""
        with self.transaction() as connection:
            connection.execute(
                "insert or replace into accounts values (?, ?, ?, ?, ?, ?)",
                (
                    account.api_key,
                    account.api_secret,
                    account.token,
                    account.domain,
                    int(account.administrator),
                    account.reseller,
                ),
            )

    def accounts(self) -> list[Account]:
        with self.reading() as connection:
            return [_account(row) for row in connection.execute(f"{_SELECT} order by domain, reseller, api_key")]

    def account(self, api_key: str) -> Account | None:
        return self._find("api_key", api_key)

    def account_by_token(self, token: str) -> Account | None:
        return self._find("token", token)

    def remove_account(self, api_key: str) -> bool:
        """Forget an account; False when there was none."""
        with self.transaction() as connection:
            return connection.execute("delete from accounts where api_key = ?", (api_key,)).rowcount > 0

    def _find(self, column: str, value: str) -> Account | None:
        with self._lock:
            row = self._connection.execute(f"{_SELECT} where {column} = ?", (value,)).fetchone()
        return None if row is None else _account(row)


def issue(
    store: Store, *, domain: str | None = None, reseller: str | None = None, administrator: bool = False
) -> Account:
    """A new account of a domain or of a reseller, its secrets made here. NotFound when there is no such one."""
    with store.reading() as connection:
        if domain is not None:
            domain = domains.find(connection, domain).name
        elif reseller is None or offers.reseller(connection, reseller) is None:
            raise NotFound(f"no reseller '{reseller}'")
    account = Account(
        secrets.token_hex(16), secrets.token_hex(32), secrets.token_urlsafe(32), domain or "", administrator, reseller
    )
    store.put_account(account)
    return account


_SELECT = "select api_key, api_secret, token, domain, administrator, reseller from accounts"


def _account(row: tuple[str, str, str | None, str, int, str | None]) -> Account:
    key, secret, token, domain, administrator, reseller = row
    return Account(key, secret, token, domain, bool(administrator), reseller)
