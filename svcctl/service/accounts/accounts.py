"""Accounts, which authorize requests.

An account has an API key, a secret and perhaps a token. An account belongs to a domain or to a reseller. An account
refers to its domain by the domain's identity, a number. A new domain can take the name of a deleted domain, but not its
identity.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, delete, func, insert, or_, select, update

from svcctl.errors import NotFound, UsageError
from svcctl.service.accounts import domains, price_plans
from svcctl.service.state import schema
from svcctl.service.state.store import Store, is_there
from svcctl.words import did_you_mean

_ACCOUNTS = schema.accounts.c


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of jobs and queries: a domain or a reseller. `domain` is the identity of the domain, a number.

    All accounts of an owner share the owner's jobs and queries.
    """

    domain: int | None = None
    reseller: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """An API key with its secret and an optional token.

    An account belongs to a domain or to a reseller. `domain` is the full name of the domain, and `domain_id` is the
    domain's identity in the store. If the account belongs to a reseller, `domain` is empty, and the account can manage
    the domains of the reseller's customers. `name` says who uses the key. The key expires at the moment `expires`, in
    epoch milliseconds. If `expires` is None, the key does not expire.
    """

    api_key: str
    api_secret: str
    token: str | None
    domain: str
    administrator: bool = False
    reseller: str | None = None
    domain_id: int | None = None
    name: str | None = None
    expires: int | None = None

    @property
    def owner(self) -> Owner:
        return Owner(self.domain_id, self.reseller)

    @property
    def operates(self) -> bool:
        """Whether the account may operate the service.

        Only administrators of the provider's domains may operate the service.
        """
        return self.administrator and self.reseller is None and "@" not in self.domain

    def has_expired(self, now: float) -> bool:
        """Whether the key has expired at the moment `now`, in epoch seconds."""
        return self.expires is not None and self.expires <= now * 1000

    def __repr__(self) -> str:
        whose = f"domain={self.domain!r}" if self.reseller is None else f"reseller={self.reseller!r}"
        return f"Account({self.api_key!r}, {whose})"


def put(store: Store, account: Account) -> None:
    """Add an account. An existing account with the same key is replaced.

    Raises NotFound if the account's domain does not exist.
    """
    with store.transaction() as connection:
        _put(store, connection, account)


def with_key(store: Store, api_key: str) -> Account | None:
    return _with(store, _ACCOUNTS.api_key, api_key)


def with_token(store: Store, token: str) -> Account | None:
    return _with(store, _ACCOUNTS.token, token)


def _with(store: Store, column: Column[Any], value: str) -> Account | None:
    return store.cached_value(
        (column.name, value), lambda connection: next(iter(_select(connection, column == value)), None)
    )


def find(connection: Connection, key: str) -> Account:
    """Find an account by its key or by its name.

    Raises NotFound if there is no such account. Raises UsageError if several accounts have the name.
    """
    matches = _select(connection, or_(_ACCOUNTS.api_key == key, _ACCOUNTS.name == key))
    matches = [account for account in matches if account.api_key == key] or matches
    if not matches:
        names = connection.scalars(select(_ACCOUNTS.name).where(_ACCOUNTS.name.is_not(None)))
        near = did_you_mean(key, names)
        raise NotFound(f"no key '{key}'", hint=near, reason=None if near else "unknown-key")
    if len(matches) > 1:
        keys = ", ".join(account.api_key for account in matches)
        raise UsageError(f"{len(matches)} keys have the name '{key}'", hint=f"name one by its key: {keys}")
    return matches[0]


def remove(store: Store, key: str) -> None:
    """Delete an account by its key or by its name. Raises the errors of `find`."""
    with store.transaction() as connection:
        account = find(connection, key)
        connection.execute(delete(schema.accounts).where(_ACCOUNTS.api_key == account.api_key))


def issue(
    store: Store,
    *,
    domain: str | None = None,
    reseller: str | None = None,
    administrator: bool = False,
    name: str | None = None,
    expires: int | None = None,
) -> Account:
    """Create an account of a domain or of a reseller, with new secrets.

    Raises NotFound if the domain or the reseller does not exist. Raises UsageError if the name is invalid or another
    key has the name.
    """
    if (domain is None) == (reseller is None):
        raise UsageError("a key belongs to a domain or to a reseller", hint="give --domain NAME or --reseller NAME")
    with store.transaction() as connection:
        if reseller is not None and price_plans.reseller(connection, reseller) is None:
            raise NotFound(f"no reseller '{reseller}'")
        if name is not None:
            _check_name(connection, name)
        secret = secrets.token_hex(16), secrets.token_hex(32), secrets.token_urlsafe(32)
        made = Account(*secret, domain or "", administrator, reseller, name=name, expires=expires)
        return _put(store, connection, made)


def _check_name(connection: Connection, name: str) -> None:
    if not name.strip() or name.strip() != name or not name.isprintable():
        raise UsageError(f"invalid key name '{name}'", hint="use printable characters, with no blank at the ends")
    if is_there(connection, or_(_ACCOUNTS.name == name, _ACCOUNTS.api_key == name)):
        raise UsageError(f"another key has the name '{name}'", hint="choose a different name, or delete that key first")


def _put(store: Store, connection: Connection, account: Account) -> Account:
    """Store an account. Return the account with the identity and the full name of its domain."""
    if account.reseller is None:
        domain = domains.find(connection, account.domain)
        account = replace(account, domain=domain.name, domain_id=domain.id)
    row = {name: value for name, value in asdict(account).items() if name != "domain_id"}
    row["domain"] = account.domain_id
    if not connection.execute(update(schema.accounts).where(_ACCOUNTS.api_key == account.api_key).values(row)).rowcount:
        connection.execute(insert(schema.accounts).values(row | {"created": store.moment()}))
    return account


def _select(connection: Connection, *conditions: ColumnElement[bool]) -> list[Account]:
    domain = func.coalesce(schema.domains.c.name, "")
    columns = (column for column in _ACCOUNTS if column.name not in ("domain", "created", "last_used"))
    rows = connection.execute(
        select(*columns, domain.label("domain"), _ACCOUNTS.domain.label("domain_id"))
        .join_from(schema.accounts, schema.domains, isouter=True)
        .where(*conditions)
        .order_by(_ACCOUNTS.api_key)
    )
    return [Account(**row) for row in rows.mappings()]
