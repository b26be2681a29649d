"""Operations on the custom roles of a domain. Each operation checks that its caller may manage the domain.

The module `rules` has the rules about roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, insert, select
from sqlalchemy import delete as delete_
from sqlalchemy import update as update_

from svcctl.api.models import is_built_in
from svcctl.service.accounts import domains, rules
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.codes import Reason, refusal
from svcctl.service.accounts.rules import Available, CustomRole
from svcctl.service.state import schema
from svcctl.service.state.store import Store

_ROLES = schema.roles.c


def create(store: Store, account: Account, domain_name: str, fields: Mapping[str, Any]) -> CustomRole:
    changes = rules.read(fields)
    with store.transaction() as connection:
        domain = _managed_domain(connection, account, domain_name)
        role = rules.new_role(changes, _available(connection, domain))
        _require_free(connection, domain, role.name)
        _put(connection, domain, role)
    return role


def update(store: Store, account: Account, domain_name: str, name: str, fields: Mapping[str, Any]) -> CustomRole:
    """Update a role. Only the fields in the request change.

    If the request has a new `name`, the role is renamed, and its users keep the role.
    """
    changes = rules.read(fields)
    with store.transaction() as connection:
        domain = _managed_domain(connection, account, domain_name)
        role = rules.updated_role(_get(connection, domain, name), changes, _available(connection, domain))
        _delete(connection, domain, name)
        _require_free(connection, domain, role.name)
        _put(connection, domain, role)
        connection.execute(update_(schema.members).where(*_has_role(domain, name)).values(role=role.name))
    return role


def get(store: Store, account: Account, domain_name: str, name: str) -> CustomRole:
    with store.reading() as connection:
        return _get(connection, _managed_domain(connection, account, domain_name), name)


def users(store: Store, account: Account, domain_name: str, name: str) -> list[str]:
    """List the email addresses of the users who have the role `name`."""
    user = schema.members.c.user
    with store.reading() as connection:
        domain = _managed_domain(connection, account, domain_name)
        return list(connection.scalars(select(user).where(*_has_role(domain, name)).order_by(user)))


def available(store: Store, account: Account, domain_name: str) -> Available:
    """List the policies and applications that roles of a domain can grant."""
    with store.reading() as connection:
        return _available(connection, _managed_domain(connection, account, domain_name))


def list_roles(store: Store, account: Account, domain_name: str) -> list[CustomRole]:
    """List the custom roles of a domain, ordered by name."""
    with store.reading() as connection:
        return _select(connection, _managed_domain(connection, account, domain_name))


def delete(store: Store, account: Account, domain_name: str, name: str) -> CustomRole:
    """Delete a role and return it.

    The users of the role have no role afterwards, even if a new role gets the same name.
    """
    with store.transaction() as connection:
        domain = _managed_domain(connection, account, domain_name)
        role = _get(connection, domain, name)
        _delete(connection, domain, name)
        connection.execute(update_(schema.members).where(*_has_role(domain, name)).values(role=domains.NO_ROLE))
    return role


def _managed_domain(connection: Connection, account: Account, name: str) -> domains.StoredDomain:
    """Return a domain by its name. Raises an error if the account may not manage the domain.

    Administrators manage their own domain. Accounts of a reseller manage the reseller's domains. Also raises an error
    if the domain is deleted, pending or disabled, or has no owner.
    """
    if account.reseller is not None:
        domain = domains.find_of_reseller(connection, account.reseller, name)
    elif name not in (account.domain, account.domain.partition("@")[0]):
        raise refusal(
            Reason.NOT_ADMINISTRATOR,
            f"the account belongs to domain {account.domain} and cannot manage {name}",
            data={"command": "role"},
        )
    elif not account.administrator:
        raise refusal(Reason.NOT_ADMINISTRATOR, f"the account is not an administrator of domain {account.domain}")
    else:
        assert account.domain_id is not None
        domain = domains.with_id(connection, account.domain_id)
    domains.check_access(connection, domain)
    return domain


def _available(connection: Connection, domain: domains.StoredDomain) -> Available:
    return Available(
        domains.available(connection, domain, "policy"), domains.available(connection, domain, "application")
    )


def _require_free(connection: Connection, domain: domains.StoredDomain, name: str) -> None:
    """Raise an error if another role or a built-in role has this name."""
    if is_built_in(name):
        raise refusal(Reason.ROLE_TAKEN, f"{name} is the name of a built-in role")
    if _select(connection, domain, name):
        raise refusal(Reason.ROLE_TAKEN, f"domain {domain.name} already has a role '{name}'")


def _get(connection: Connection, domain: domains.StoredDomain, name: str) -> CustomRole:
    roles = _select(connection, domain, name)
    if not roles:
        raise refusal(Reason.NO_ROLE, f"domain {domain.name} has no role '{name}'")
    return roles[0]


def _select(connection: Connection, domain: domains.StoredDomain, name: str | None = None) -> list[CustomRole]:
    """Read the roles of a domain, ordered by name. With `name`, read only the role with this name."""
    named = [] if name is None else [_ROLES.name == name]
    columns = (column for column in _ROLES if column is not _ROLES.domain)
    rows = connection.execute(select(*columns).where(_ROLES.domain == domain.id, *named).order_by(_ROLES.name))
    return [_role(row) for row in rows.mappings()]


def _role(row: RowMapping) -> CustomRole:
    lists = {name: tuple(row[name]) for name in ("policies", "applications")}
    ids = row["resource_ids"]
    return CustomRole(**{**row, **lists, "resource_ids": None if ids is None else tuple(ids)})


def _has_role(domain: domains.StoredDomain, name: str) -> list[ColumnElement[bool]]:
    """Return the SQL conditions that select the members of a domain who have the role with this name."""
    return [schema.members.c.domain == domain.id, schema.members.c.role == name]


def _put(connection: Connection, domain: domains.StoredDomain, role: CustomRole) -> None:
    connection.execute(insert(schema.roles).values(domain=domain.id, **asdict(role)))


def _delete(connection: Connection, domain: domains.StoredDomain, name: str) -> None:
    connection.execute(delete_(schema.roles).where(_ROLES.domain == domain.id, _ROLES.name == name))
