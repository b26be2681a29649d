"""How a wanted role differs from the one that a service has, and the request that makes them the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from svcctl.api.models import ALL, Role
from svcctl.api.refusals import Code
from svcctl.api.role_rules import GRANTS, flat
from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError

if TYPE_CHECKING:
    from svcctl.api.client import Client


@dataclass(frozen=True, slots=True)
class Difference:
    """A field whose value is to change, both values in words; None where there is no value."""

    key: str
    before: str | None
    after: str | None


def differences(current: Role | None, wanted: Role) -> list[Difference]:
    """The fields in which a role differs from the wanted one; fields that are not given stay as they are.

    Order and repetition do not count, nor do the labels of resource IDs (rule 8).
    """
    before = {} if current is None else _comparable(current)
    return [
        Difference(key, _words(before.get(key)), _words(after))
        for key, after in _comparable(wanted).items()
        if before.get(key) != after and (before.get(key) or after)
    ]


def in_words(role: Role) -> dict[str, str | None]:
    """The fields that a request may send, as a person reads them."""
    return {key: _words(value) for key, value in _comparable(role).items()}


def _comparable(role: Role) -> dict[str, str | frozenset[str] | frozenset[int]]:
    values = role.body()
    for key in ("policies", "applications"):
        if isinstance(values.get(key), list):
            values[key] = frozenset(values[key])
    if "resourceIds" in values:
        values["resourceIds"] = ALL if ALL in values["resourceIds"] else frozenset(flat(values["resourceIds"]))
    return values


def _words(value: str | frozenset[str] | frozenset[int] | None) -> str | None:
    if value == ALL:
        return "all"
    if isinstance(value, frozenset):
        return ", ".join(map(str, sorted(value))) or None
    return value or None


# Changing


@dataclass(frozen=True, slots=True)
class Change:
    """What a wanted role needs: `current` is None for a role that is created, or that could not be read."""

    name: str
    wanted: Role
    current: Role | None
    readable: bool = True

    @property
    def creates(self) -> bool:
        return self.readable and self.current is None

    @property
    def differences(self) -> list[Difference]:
        wanted = replace(self.wanted, name=None)
        if self.creates and not any(key in wanted.body() for key in GRANTS):  # rule 1: only a name grants everything
            wanted = replace(wanted, policies=(ALL,), applications=(ALL,), resource_ids={ALL: ()})
        return differences(self.current, wanted)


def plan(client: Client, domain: str, name: str, wanted: Role) -> Change | None:
    """The change that a role of this name needs; None when the role is as wanted."""
    try:
        current = client.role(domain, name)
    except ServiceError as error:
        if not _may_lack(error):
            raise
        return Change(name, wanted, None, reads_roles(client, domain))
    return Change(name, wanted, current) if differences(current, wanted) else None


def require(client: Client, domain: str, name: str) -> Role | None:
    """The role, None if the service cannot read roles. NotFound when the service can, and there is no such role."""
    try:
        return client.role(domain, name)
    except ServiceError as error:
        if not _may_lack(error) or (isinstance(error, NotFound) and reads_roles(client, domain)):
            raise
        return None


def make(client: Client, domain: str, change: Change, before_creating: Callable[[], None]) -> bool:
    """Make one change; returns whether that created the role.

    Where roles cannot be read, the role is updated, and created if the update finds none. `before_creating` is called
    before such a creation, and may refuse it.
    """
    if change.creates:
        client.create_role(domain, change.wanted)
        return True
    try:
        client.update_role(domain, change.name, replace(change.wanted, name=None))
        return False
    except NotFound as error:
        if change.readable or error.code == Code.NO_DOMAIN:
            raise
        before_creating()
        client.create_role(domain, change.wanted)
        return True


def reads_roles(client: Client, domain: str) -> bool:
    """Whether the service can read roles at all: only then does its `not found` mean that a role does not exist.

    NotFound or CredentialsError when there is no such domain, or it belongs to somebody else.
    """
    try:
        client.roles(domain)
    except ServiceError as error:
        if not _may_lack(error):
            raise
        return False
    return True


def _may_lack(error: ServiceError) -> bool:
    """Whether a refusal may mean that the service has no such operation; services say so in many ways."""
    return error.code != Code.NO_DOMAIN and not isinstance(error, CredentialsError | Conflict)
