"""Accounts: the API keys, secrets and tokens that authorize requests, and the domain or reseller of each."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Connection, delete, select

from svcctl.errors import NotFound, UsageError
from svcctl.service import schema
from svcctl.service.provisioning import domains, offers
from svcctl.service.store import Store, replace


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
        replace(connection, schema.accounts, **asdict(account))


def every(store: Store) -> list[Account]:
    """List all accounts, those of the same domain together."""
    with store.reading() as connection:
        return _select(connection)


def with_key(store: Store, api_key: str) -> Account | None:
    with store.reading() as connection:
        return next(iter(_select(connection, schema.accounts.c.api_key == api_key)), None)


def with_token(store: Store, token: str) -> Account | None:
    with store.reading() as connection:
        return next(iter(_select(connection, schema.accounts.c.token == token)), None)


def remove(store: Store, api_key: str) -> None:
    """Delete an account. NotFound when there is none."""
    with store.transaction() as connection:
        if not connection.execute(delete(schema.accounts).where(schema.accounts.c.api_key == api_key)).rowcount:
            raise NotFound(f"no key '{api_key}'")


def issue(
    store: Store, *, domain: str | None = None, reseller: str | None = None, administrator: bool = False
) -> Account:
    """Create an account of a domain or of a reseller, with new secrets. NotFound when that does not exist."""
    if (domain is None) == (reseller is None):
        raise UsageError("a key belongs to a domain or to a reseller", hint="give --domain NAME or --reseller NAME")
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


def _select(connection: Connection, *conditions: ColumnElement[bool]) -> list[Account]:
    table = schema.accounts
    rows = connection.execute(
        select(table).where(*conditions).order_by(table.c.domain, table.c.reseller, table.c.api_key)
    )
    return [Account(**row) for row in rows.mappings()]
