"""Accounts: the API keys, secrets and tokens that authorize requests, and the domain or reseller of each.

An account refers to its domain by the domain's identity: the name of a deleted domain can be given to another one.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, delete, func, select

from svcctl.errors import NotFound, UsageError
from svcctl.service.accounts import domains, price_plans
from svcctl.service.state import schema
from svcctl.service.state.store import Store
from svcctl.service.state.store import replace as store_row


@dataclass(frozen=True, slots=True)
class Owner:
    """What jobs and queries belong to: a domain, by its identity, or a reseller. All its accounts share them."""

    domain: int | None = None
    reseller: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """An API key with its secret and, optionally, a token.

    An account belongs to a domain, whose administrators give it roles, or to a reseller, whose customer domains it
    manages; then `domain` is empty. `domain_id` is the identity of the domain in the store.
    """

    api_key: str
    api_secret: str
    token: str | None
    domain: str
    administrator: bool = False
    reseller: str | None = None
    domain_id: int | None = None

    @property
    def owner(self) -> Owner:
        return Owner(self.domain_id, self.reseller)

    @property
    def operates(self) -> bool:
        """Whether this account runs the service: an administrator of one of the provider's domains."""
        return self.administrator and self.reseller is None and "@" not in self.domain

    def __repr__(self) -> str:
        whose = f"domain={self.domain!r}" if self.reseller is None else f"reseller={self.reseller!r}"
        return f"Account({self.api_key!r}, {whose})"


def put(store: Store, account: Account) -> None:
    """Add an account, or replace the one with its key. NotFound when its domain does not exist."""
    with store.transaction() as connection:
        _put(connection, account)


def every(store: Store) -> list[Account]:
    """List all accounts, those of the same domain together."""
    with store.reading() as connection:
        return _select(connection)


def with_key(store: Store, api_key: str) -> Account | None:
    return _with(store, schema.accounts.c.api_key, api_key)


def with_token(store: Store, token: str) -> Account | None:
    return _with(store, schema.accounts.c.token, token)


def _with(store: Store, column: Column[Any], value: str) -> Account | None:
    return store.remembered(
        (column.name, value), lambda connection: next(iter(_select(connection, column == value)), None)
    )


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
    with store.transaction() as connection:
        if reseller is not None and price_plans.reseller(connection, reseller) is None:
            raise NotFound(f"no reseller '{reseller}'")
        secret = secrets.token_hex(16), secrets.token_hex(32), secrets.token_urlsafe(32)
        return _put(connection, Account(*secret, domain or "", administrator, reseller))


def _put(connection: Connection, account: Account) -> Account:
    """Store an account with the identity of the domain that has the name now, and return it."""
    if account.reseller is None:
        domain = domains.find(connection, account.domain)
        account = replace(account, domain=domain.name, domain_id=domain.id)
    row = {name: value for name, value in asdict(account).items() if name != "domain_id"}
    store_row(connection, schema.accounts, **(row | {"domain": account.domain_id}))
    return account


def _select(connection: Connection, *conditions: ColumnElement[bool]) -> list[Account]:
    accounts, name = schema.accounts.c, func.coalesce(schema.domains.c.name, "")
    columns = (column for column in accounts if column is not accounts.domain)
    rows = connection.execute(
        select(*columns, name.label("domain"), accounts.domain.label("domain_id"))
        .join_from(schema.accounts, schema.domains, isouter=True)
        .where(*conditions)
        .order_by(name, accounts.reseller, accounts.api_key)
    )
    return [Account(**row) for row in rows.mappings()]
