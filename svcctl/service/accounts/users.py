"""The users of domains. The provider adds and removes users with `svcctl service accounts`."""

from __future__ import annotations

import re

from sqlalchemy import Connection, insert, select, update
from sqlalchemy import delete as delete_

from svcctl.api.models import BUILT_IN_ROLES
from svcctl.errors import NotFound, UsageError
from svcctl.service.accounts import domains
from svcctl.service.accounts.domains import Member, StoredDomain
from svcctl.service.state import schema
from svcctl.service.state.store import Store, is_there
from svcctl.service.state.store import replace as put
from svcctl.words import did_you_mean

OWNER, ADMIN, USER = BUILT_IN_ROLES

_MEMBERS = schema.members.c
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def assign(store: Store, name: str, email: str, role: str | None) -> tuple[str, str, str | None]:
    """Add a user to a domain, or change the user's role in the domain.

    Returns the domain's full name, the role, and the email of the former owner. The email is None if the owner did not
    change. If `role` is None, an existing user keeps the present role, and a new user gets the role USER. With the role
    OWNER, the user replaces the former owner and is stored with the role ADMIN.

    Raises NotFound if there is no such role. Raises UsageError if the email is invalid, or if the domain would have no
    owner.
    """
    if not _EMAIL.fullmatch(email):
        raise UsageError(f"'{email}' is not an email address", hint="write it as in ann@acme.example")
    with store.transaction() as connection:
        domain = domains.find(connection, name)
        custom = connection.scalars(select(schema.roles.c.name).where(schema.roles.c.domain == domain.id))
        role_names = [*BUILT_IN_ROLES, *sorted(custom)]
        members = domains.members(connection, domain.id)
        if role is None:
            present_roles = (OWNER if member.owner else member.role for member in members if member.email == email)
            role = next(present_roles, None) or USER
        owner = role == OWNER
        if role not in role_names:
            hint = did_you_mean(role, role_names) or f"roles are: {', '.join(role_names)}"
            raise NotFound(f"{name} has no role '{role}'", hint=hint)
        if not owner and not members:
            raise UsageError(f"the first user of {name} must be its owner", hint=f"assign one with --role {OWNER}")
        if not owner and any(member.owner and member.email == email for member in members):
            raise UsageError(f"{email} is the owner of {name}", hint=f"assign another user with --role {OWNER} first")
        if owner:
            connection.execute(update(schema.members).where(_MEMBERS.domain == domain.id).values(owner=False))
        if not is_there(connection, schema.users.c.email == email):
            connection.execute(insert(schema.users).values(email=email))
        put(connection, schema.members, domain=domain.id, user=email, role=ADMIN if owner else role, owner=owner)
    return (
        domain.name,
        role,
        next((member.email for member in members if owner and member.owner and member.email != email), None),
    )


def memberships_to_end(store: Store, name: str) -> list[tuple[StoredDomain, Member]]:
    """List the domain memberships that `remove` would end. Raises the same errors as `remove`."""
    with store.reading() as connection:
        return _memberships_to_end(connection, name)


def remove(store: Store, name: str) -> None:
    """Remove a user from all domains (EMAIL), or from one domain (DOMAIN/EMAIL).

    If the user then has no domain, the user is deleted. Raises NotFound if there is no such user. Raises UsageError if
    the user owns one of the domains, because nobody could access a domain without an owner.
    """
    with store.transaction() as connection:
        for domain, member in _memberships_to_end(connection, name):
            left = (_MEMBERS.domain == domain.id, _MEMBERS.user == member.email)
            connection.execute(delete_(schema.members).where(*left))
        domains.delete_users_without_domain(connection)


def _memberships_to_end(connection: Connection, name: str) -> list[tuple[StoredDomain, Member]]:
    memberships = [
        (domain, member)
        for domain, members in domains.with_members(connection)
        for member in members
        if name in (member.email, f"{domain.name}/{member.email}")
    ]
    if not memberships:
        raise NotFound(f"no user '{name}'")
    for domain, member in memberships:
        if member.owner:
            raise UsageError(
                f"{member.email} is the owner of {domain.name}",
                reason="user-owns-domain",
                data={"domain": domain.name, "role": OWNER},
            )
    return memberships
