"""Domains: their names and states, their users, and access to them.

A domain of a reseller has a full name, `<domain>@<reseller>`. The provider's own domains, such as the domain of the
local profile, have no @ part and no plan.

The row of a deleted domain is kept with its identity, and a new domain can take the name. Users, roles and jobs refer
to the identity of their domain. So the new domain does not get the users, roles and jobs of the deleted domain.

    (none) ── create ──> Active <── enable ── Disabled        Pending (set by the provider)
                           └───── disable ──────^                └── ends when the provider sets another state
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, case, func, insert, select, update
from sqlalchemy import delete as delete_

from svcctl.api.models import DomainStatus
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import SvcctlError
from svcctl.service.accounts import price_plans
from svcctl.service.accounts.codes import Reason, refusal
from svcctl.service.state import schema
from svcctl.service.state.store import Store, is_there

MAX_NAME_CHARS = 64
"""The maximum length of a full domain name, including its @ part."""
NO_ROLE = ""
"""The value that is stored as the role of a user whose role was deleted."""

_DOMAINS, _MEMBERS = schema.domains.c, schema.members.c
_COLUMNS = [_DOMAINS[name] for name in ("id", "name", "reseller", "plan", "time", "volume")]
_LABEL = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredDomain:
    id: int
    name: str
    reseller: str | None
    plan: str | None
    time: float | None
    volume: float | None
    status: DomainStatus

    def to_json(self) -> dict[str, Any]:
        """Return the domain as a JSON object of the HTTP interface. Members without a value are omitted."""
        fields = {"name": self.name, "plan": self.plan, "time": self.time, "volume": self.volume}
        return {key: value for key, value in fields.items() if value is not None} | {"status": str(self.status)}


@dataclass(frozen=True, slots=True)
class Member:
    """A user of a domain.

    `role` is None if the user's role was deleted. `last_domain` means that the user has no other domain. Deleting the
    domain then also deletes the user.
    """

    email: str
    role: str | None
    owner: bool
    last_domain: bool

    def to_json(self) -> dict[str, Any]:
        return {"email": self.email, "role": self.role, "owner": self.owner, "lastDomain": self.last_domain}


# Operations of resellers


def list_domains(store: Store, reseller: str) -> list[StoredDomain]:
    """List the domains of a reseller, ordered by name."""
    with store.reading() as connection:
        return _select(connection, _DOMAINS.reseller == reseller)


def get(store: Store, reseller: str, name: str) -> tuple[StoredDomain, list[Member]]:
    """Return a domain of a reseller, and the domain's users.

    Raises an error with the code 106 if the reseller has no such domain.
    """
    with store.reading() as connection:
        domain = find_of_reseller(connection, reseller, name)
        return domain, members(connection, domain.id)


def create(store: Store, reseller: str, fields: Mapping[str, Any]) -> StoredDomain:
    """Create an Active domain.

    If the reseller has set `include_all_available_apps`, the domain gets the applications of its plan and the generic
    applications.
    """
    with store.transaction() as connection:
        new, plan = _new_domain(connection, reseller, fields)
        domain = _insert(connection, new)
        preference = price_plans.reseller(connection, reseller)
        if preference is not None and preference.include_all_available_apps:
            _activate(
                connection, domain, (*plan.applications, *price_plans.generic_feature_names(connection, "application"))
            )
    return domain


def check(store: Store, reseller: str, fields: Mapping[str, Any]) -> None:
    """Check whether `create` would accept these fields. Raises the same errors as `create`."""
    with store.reading() as connection:
        _new_domain(connection, reseller, fields)


def _new_domain(
    connection: Connection, reseller: str, fields: Mapping[str, Any]
) -> tuple[StoredDomain, price_plans.PricePlan]:
    """Make a domain from the fields of a request. Return the domain, which is not stored yet, and its plan."""
    name = full_name(_required_text(fields, "name"), reseller)
    plan_name = _required_text(fields, "plan")
    plan = price_plans.plan(connection, reseller, plan_name)
    if plan is None:
        raise refusal(
            Reason.NO_PLAN,
            f"reseller '{reseller}' has no plan '{plan_name}'",
            hint=f"its plans are {', '.join(price_plans.plan_names(connection, reseller)) or 'none'}",
        )
    time = _amount(fields, "time", plan.time, Reason.TIME, plan_name)
    volume = _amount(fields, "volume", plan.volume, Reason.VOLUME, plan_name)
    if _select(connection, _DOMAINS.name == name):
        raise refusal(Reason.TAKEN, f"domain {name} already exists")
    return StoredDomain(0, name, reseller, plan_name, time, volume, DomainStatus.ACTIVE), plan


def enable(store: Store, reseller: str, name: str) -> StoredDomain:
    return _move(store, reseller, name, DomainStatus.ACTIVE, "enabled")


def disable(store: Store, reseller: str, name: str) -> StoredDomain:
    return _move(store, reseller, name, DomainStatus.DISABLED, "disabled")


def delete(store: Store, reseller: str, name: str) -> StoredDomain:
    """Delete a domain with its memberships, accounts and jobs. Return the domain.

    Users who have no other domain are deleted too.
    """
    with store.transaction() as connection:
        domain = find_of_reseller(connection, reseller, name)
        _change(connection, domain, deleted_at=seconds_to_ms(time.time()))
        connection.execute(delete_(schema.members).where(_MEMBERS.domain == domain.id))
        delete_users_without_domain(connection)
        for table in (schema.accounts, schema.jobs):  # these rows contain secrets
            connection.execute(delete_(table).where(table.c.domain == domain.id))
    return replace(domain, status=DomainStatus.DELETED)


def full_name(name: str, reseller: str) -> str:
    """Return the full name of a reseller's domain, with the @ part. Raise an error if the name is not allowed."""
    label, at, tail = name.partition("@")
    full = f"{label}@{tail if at else reseller}"
    if at and tail != reseller:
        raise refusal(Reason.NAME, f"domain name '{name}' must end in @{reseller}")
    if len(full) > MAX_NAME_CHARS:
        raise refusal(Reason.NAME, f"domain name '{full}' has {len(full)} characters, more than {MAX_NAME_CHARS}")
    if not _LABEL.fullmatch(label):
        raise refusal(
            Reason.NAME,
            f"invalid domain name '{label}': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit",
        )
    return full


# Access to a domain


def require_access(store: Store, id: int) -> None:
    """Raise the errors of `check_access` for the domain with this identity."""

    def accessible(connection: Connection) -> bool:
        check_access(connection, with_id(connection, id))
        return True

    store.cached_value(("access", id), accessible)


def check_access(connection: Connection, domain: StoredDomain) -> None:
    """Raise an error if a domain is deleted, pending or disabled, or has no owner."""
    if domain.status is DomainStatus.DELETED:
        raise refusal(Reason.NO_DOMAIN, f"domain {domain.name} is deleted")
    if domain.status is DomainStatus.PENDING:
        raise refusal(Reason.PENDING, f"domain {domain.name} is pending and cannot be accessed")
    if domain.status is DomainStatus.DISABLED:
        raise refusal(
            Reason.DISABLED,
            f"domain {domain.name} is disabled and cannot be accessed",
            hint="its reseller can enable it" if domain.reseller else None,
            data={"domain": domain.name} if domain.reseller else None,
        )
    if not is_there(connection, _MEMBERS.domain == domain.id, _MEMBERS.owner):
        raise refusal(
            Reason.NO_OWNER,
            f"domain {domain.name} has no owner and cannot be accessed until one is assigned",
            data={"domain": domain.name},
        )


def refusals(store: Store, ids: Collection[int]) -> dict[int, SvcctlError]:
    """Return an error for each domain in `ids` that cannot be accessed. The error says why."""
    errors: dict[int, SvcctlError] = {}
    if not ids:
        return errors
    with store.reading() as connection:
        for id in ids:
            try:
                check_access(connection, with_id(connection, id))
            except SvcctlError as error:
                errors[id] = error
    return errors


def active() -> Select[int]:
    """Return the SQL query for the identities of Active domains. Only jobs of Active domains may run."""
    return select(_DOMAINS.id).where(_DOMAINS.deleted_at.is_(None), _DOMAINS.status == str(DomainStatus.ACTIVE))


def with_id(connection: Connection, id: int) -> StoredDomain:
    """Return the domain with this identity, even if the domain is deleted."""
    status = case((_DOMAINS.deleted_at.is_(None), _DOMAINS.status), else_=str(DomainStatus.DELETED))
    row = connection.execute(select(*_COLUMNS, status.label("status")).where(_DOMAINS.id == id)).mappings().one()
    return _domain_of_row(row)


def find(connection: Connection, name: str) -> StoredDomain:
    """Find a domain by its full name. The part before the @ is enough if only one domain has this part.

    Raises an error with the code 106 if there is no such domain, or if several domains have the same part before the @.
    """
    matches = _select(connection, _DOMAINS.name == name)
    matches = matches or _select(connection, _DOMAINS.name.startswith(f"{name}@", autoescape=True))
    if len(matches) != 1:
        raise _no_domain(name)
    return matches[0]


def available(connection: Connection, domain: StoredDomain, kind: price_plans.Kind) -> tuple[str, ...]:
    """List the policies or the applications of a domain's Admin role.

    In a domain of the provider, the Admin role has all existing policies and applications.
    """
    if domain.reseller is None or domain.plan is None:
        return price_plans.feature_names(connection, kind)
    if kind == "application":
        active, features = schema.domain_applications.c, schema.features.c
        there = select(features.name).where(features.kind == kind)
        names = select(active.name).where(active.domain == domain.id, active.name.in_(there)).order_by(active.name)
        return tuple(connection.scalars(names))
    plan = price_plans.plan(connection, domain.reseller, domain.plan)
    return tuple(sorted({*(plan.policies if plan else ()), *price_plans.generic_feature_names(connection, kind)}))


# Operations of the provider, for `svcctl service accounts`


def list_all(store: Store) -> list[tuple[StoredDomain, list[Member]]]:
    with store.reading() as connection:
        return with_members(connection)


def with_members(connection: Connection) -> list[tuple[StoredDomain, list[Member]]]:
    """List all domains, each with its users."""
    return [(domain, members(connection, domain.id)) for domain in _select(connection)]


def put_provider_domain(store: Store, name: str) -> None:
    """Create a domain of the provider, which has no reseller and no plan. Do nothing if the domain exists."""
    with store.transaction() as connection:
        if not _select(connection, _DOMAINS.name == name):
            _insert(connection, StoredDomain(0, name, None, None, None, None, DomainStatus.ACTIVE))


def set_status(store: Store, name: str, status: DomainStatus) -> str:
    """Set the state of a domain, and return its full name. Only this function sets or ends the state Pending."""
    with store.transaction() as connection:
        domain = find(connection, name)
        _change(connection, domain, status=str(status))
    return domain.name


def delete_users_without_domain(connection: Connection) -> None:
    """Delete the users who have no domain."""
    connection.execute(delete_(schema.users).where(schema.users.c.email.not_in(select(_MEMBERS.user))))


def _move(store: Store, reseller: str, name: str, target: DomainStatus, word: str) -> StoredDomain:
    with store.transaction() as connection:
        domain = find_of_reseller(connection, reseller, name)
        if domain.status is DomainStatus.PENDING:
            raise refusal(Reason.PENDING, f"domain {domain.name} is pending and cannot be {word}")
        if domain.status is target:
            raise refusal(Reason.ALREADY, f"domain {domain.name} is already {word}")
        _change(connection, domain, status=str(target))
    return replace(domain, status=target)


def find_of_reseller(connection: Connection, reseller: str, name: str) -> StoredDomain:
    """Find a domain of a reseller by its full name, or by the part before the @.

    Raises an error with the code 106 if there is no such domain.
    """
    full = name if "@" in name else f"{name}@{reseller}"
    matches = _select(connection, _DOMAINS.name == full, _DOMAINS.reseller == reseller)
    if not matches:
        raise _no_domain(full)
    return matches[0]


def _no_domain(name: str) -> Exception:
    return refusal(Reason.NO_DOMAIN, f"no domain {name}")


def _select(connection: Connection, *conditions: ColumnElement[bool]) -> list[StoredDomain]:
    """Select domains that are not deleted, ordered by name."""
    rows = connection.execute(
        select(*_COLUMNS, _DOMAINS.status).where(_DOMAINS.deleted_at.is_(None), *conditions).order_by(_DOMAINS.name)
    )
    return list(map(_domain_of_row, rows.mappings()))


def _domain_of_row(row: RowMapping) -> StoredDomain:
    return StoredDomain(**{**row, "status": DomainStatus(row["status"])})


def _insert(connection: Connection, domain: StoredDomain) -> StoredDomain:
    values = asdict(domain) | {"status": str(domain.status)}
    del values["id"]
    (id,) = connection.execute(insert(schema.domains).values(values)).inserted_primary_key or (0,)
    return replace(domain, id=id)


def _change(connection: Connection, domain: StoredDomain, **values: Any) -> None:
    connection.execute(update(schema.domains).where(_DOMAINS.id == domain.id).values(values))


def _activate(connection: Connection, domain: StoredDomain, applications: tuple[str, ...]) -> None:
    rows = [{"domain": domain.id, "name": name} for name in dict.fromkeys(applications)]
    if rows:
        connection.execute(insert(schema.domain_applications), rows)


def members(connection: Connection, domain: int) -> list[Member]:
    """List the users of the domain with this identity."""
    theirs = schema.members.alias()
    count = select(func.count()).where(theirs.c.user == _MEMBERS.user).scalar_subquery()
    rows = connection.execute(
        select(_MEMBERS.user, _MEMBERS.role, _MEMBERS.owner, count == 1)
        .where(_MEMBERS.domain == domain)
        .order_by(_MEMBERS.user)
    )
    return [Member(email, role or None, owner, last) for email, role, owner, last in rows]


def _required_text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise refusal(Reason.BODY, f"{key} is missing" if value is None else f"{key} must be text")
    return value


def _amount(fields: Mapping[str, Any], key: str, most: float | None, reason: Reason, plan: str) -> float | None:
    value = fields.get(key)
    if value is None:
        return most
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(Reason.BODY, f"{key} must be a number")
    if most is None:
        raise refusal(reason, f"plan '{plan}' does not accept {key}")
    if not 0 < value <= most:
        got = value if isinstance(value, int) else f"{value:g}"
        raise refusal(reason, f"{key} must be more than 0 and at most {most:g} in plan '{plan}', not {got}")
    return float(value)
