"""Accounts: the API keys, secrets and tokens that requests are authorized with, and who they belong to."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass

from svcctl.errors import NotFound
from svcctl.service.provisioning import domains, offers
from svcctl.service.store import Store


@dataclass(frozen=True, slots=True)
class Account:
    """An API key with its secret and, optionally, a token.

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
        """Whether this account runs the service: an administrator of one of the provider's domains."""
        return self.administrator and self.reseller is None and "@" not in self.domain

    def __repr__(self) -> str:
        whose = f"domain={self.domain!r}" if self.reseller is None else f"reseller={self.reseller!r}"
        return f"Account({self.api_key!r}, {whose})"


def put(store: Store, account: Account) -> None:
    """Add an account, or replace the one with its key."""
    with store.transaction() as connection:
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


def every(store: Store) -> list[Account]:
    with store.reading() as connection:
        return _select(connection, "true order by domain, reseller, api_key")


def with_key(store: Store, api_key: str) -> Account | None:
    with store.reading() as connection:
        return next(iter(_select(connection, "api_key = ?", api_key)), None)


def with_token(store: Store, token: str) -> Account | None:
    with store.reading() as connection:
        return next(iter(_select(connection, "token = ?", token)), None)


def remove(store: Store, api_key: str) -> None:
    """Remove an account. NotFound when there is none."""
    with store.transaction() as connection:
        if not connection.execute("delete from accounts where api_key = ?", (api_key,)).rowcount:
            raise NotFound(f"no key '{api_key}'")


def issue(
    store: Store, *, domain: str | None = None, reseller: str | None = None, administrator: bool = False
) -> Account:
    """A new account of a domain or of a reseller, with new secrets. NotFound when that does not exist."""
    with store.reading() as connection:
        if domain is not None:
            domain = domains.find(connection, domain).name
        elif reseller is None or offers.reseller(connection, reseller) is None:
            raise NotFound(f"no reseller '{reseller}'")
    account = Account(
        secrets.token_hex(16), secrets.token_hex(32), secrets.token_urlsafe(32), domain or "", administrator, reseller
    )
    put(store, account)
    return account


def _select(connection: sqlite3.Connection, condition: str, *values: str) -> list[Account]:
    rows = connection.execute(
        f"select api_key, api_secret, token, domain, administrator, reseller from accounts where {condition}", values
    )
    return [
        Account(key, secret, token, domain, bool(administrator), reseller)
        for key, secret, token, domain, administrator, reseller in rows.fetchall()
    ]
