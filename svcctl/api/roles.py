"""Roles: check them by the nine rules of the HTTP interface, compare them, and read them from the service.

The rules are checked before a request is sent. Only the service can check rule 7, which says that policies must exist
and be available.

The function `lint` checks the fields of a role, with their names in the HTTP interface. An error is a mistake for which
a service refuses the role. A warning is about a grant that is broader than it looks, or that some services may
understand differently.

The specification leaves some questions open, which svcctl answers as follows. A new role without policies, applications
and resourceIds grants everything. A new role with only some of these three fields grants nothing for the missing
fields. `*` may not be combined with other values. A default application is never required.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from svcctl.api.models import EVERYTHING, Role, is_built_in
from svcctl.api.refusals import Code, no_domain, no_role
from svcctl.errors import Conflict, CredentialsError, MalformedAnswer, NotFound, ServiceError
from svcctl.words import json_text, nearest, suggesting

GRANTS = {"policies": "policies", "applications": "applications", "resourceIds": "resources"}
"""The fields of a role that grant something, and the words for these fields in messages."""
READ_ONLY = ("alertPermissions", "defVault", "maxVault")
FIELDS = ("name", "description", *GRANTS, "finderName", "defaultApplicationName")
"""The fields that may be sent when a role is created or updated."""

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RoleFinding:
    """A mistake or a risk in a field of a role.

    `rule` is the number of the interface's rule; None for a mistake that no rule covers. `key` is the field. For a list
    of resource IDs, `key` is `resourceIds.<label>`. For the first element of such a list, `key` is
    `resourceIds.<label>[0]`.
    """

    level: Literal["error", "warning"]
    rule: int | None
    key: str | None
    message: str


def lint(fields: Fields, *, update: bool = False) -> list[RoleFinding]:
    """Return all findings about a new role, with the errors first. If `update` is set, check the changes to a role."""
    findings = [finding for rule in _RULES for finding in rule(fields, update)]
    return sorted(findings, key=lambda finding: finding.level != "error")


def grants_all(fields: Fields, *, update: bool = False) -> list[str]:
    """Return which of policies, applications and resources a role grants completely, now and in future."""
    if not update and _mentions_no_grant(fields):
        return list(GRANTS.values())
    return [word for key, word in GRANTS.items() if _is_all(fields.get(key))]


def flat(resource_ids: object) -> set[int]:
    """Return the integers in resourceIds. The lists of all labels are combined (rule 8)."""
    lists = resource_ids.values() if isinstance(resource_ids, Mapping) else ()
    return {number for ids in lists if isinstance(ids, list | tuple) for number in ids if type(number) is int}


def _fields(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    for key, value in fields.items():
        if key not in (*FIELDS, *READ_ONLY):
            near = nearest(str(key), FIELDS)
            yield RoleFinding(
                "error", None, key, f"unknown field '{key}'" + (f" (did you mean '{near}'?)" if near else "")
            )
        elif key in ("description", "finderName") and not isinstance(value, str):
            yield RoleFinding("error", None, key, f"{key} {_is_not('text', value)}")


def _rule_1(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 1: only the name of a role is required, and a role with only a name grants everything."""
    name = fields.get("name")
    if "name" not in fields:
        if not update:
            yield RoleFinding("error", 1, None, "the name is missing")
    elif not isinstance(name, str):
        yield RoleFinding("error", 1, "name", f"name {_is_not('text', name)}")
    elif is_built_in(name):
        yield RoleFinding("error", None, "name", f"'{name}' is the name of a built-in role")
    elif not name.strip() or not name.isprintable():
        yield RoleFinding("error", 1, "name", "name is blank" if not name.strip() else "name cannot be printed")
    if update or any(nearest(str(key), GRANTS) for key in fields if key not in FIELDS):
        return  # a misspelled field may be the grant that seems to be missing
    if _mentions_no_grant(fields):
        yield RoleFinding(
            "warning", 1, None, "only a name: the role grants all policies, all applications and all resources"
        )
    elif left_out := [key for key in GRANTS if key not in fields]:
        message = f"{', '.join(left_out)} not given: svcctl reads this as none, but services may read it as all"
        yield RoleFinding("warning", 1, None, message)


def _rule_2(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 2: `*` means all, so `*` cannot be combined with other values."""
    for key, word in GRANTS.items():
        value = fields.get(key)
        if _is_all(value):
            yield RoleFinding("warning", 2, key, f"'*' grants all {word} of the domain, including future ones")
        elif isinstance(value, list | dict) and any(
            isinstance(element, str) and element == EVERYTHING for element in value
        ):
            yield RoleFinding("error", 2, key, f"{key}: '*' means all and cannot be combined with others")


def _rule_3(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 3: policies and applications are lists of names, or a single name."""
    for key in ("policies", "applications"):
        value = fields.get(key, [])
        if not isinstance(value, str | list):
            yield RoleFinding("error", 3, key, f"{key} {_is_not('a list of names or a single name', value)}")
            continue
        for name in [value] if isinstance(value, str) else value:
            if not isinstance(name, str):
                yield RoleFinding("error", 3, key, f"{key}: {_shown(name)} {_is_not('text', name)}")
            elif not name:
                yield RoleFinding("error", 3, key, f"{key} has an empty name")


def _rule_4(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 4: a role without policies must have an application."""
    policies, applications = fields.get("policies"), fields.get("applications")
    if update:
        # Fields that the update omits stay unchanged. The default application of a role always stays in the role.
        empty = policies == [] and applications == [] and not fields.get("defaultApplicationName")
    else:
        empty = not _mentions_no_grant(fields) and policies in (None, []) and applications in (None, [])
    if empty:
        yield RoleFinding("error", 4, "applications", "no policies, so there must be at least one application")


def _rule_5(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 5: the default application of a role is one of its applications."""
    default, applications = fields.get("defaultApplicationName"), fields.get("applications")
    if not isinstance(default, str) or not default or _is_all(applications):
        return
    if applications is None and (update or _mentions_no_grant(fields)):
        return  # the role's applications stay, or all applications are granted
    if update and applications == []:
        return  # an update may leave the role only its default application
    names = [applications] if isinstance(applications, str) else applications or []
    if isinstance(names, list) and default not in names:
        key = "defaultApplicationName"
        yield RoleFinding("error", 5, key, f"{key} '{default}' is not among the applications")


def _rule_6(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 6: in an update, an empty default application removes the current default application."""
    key = "defaultApplicationName"
    if key not in fields:
        return
    if not isinstance(fields[key], str):
        yield RoleFinding("error", 6, key, f"{key} {_is_not('text', fields[key])} ('' is for none)")
    elif not fields[key] and not update:
        yield RoleFinding("warning", 6, key, f"{key} is empty: only an update can remove a default application")


def _rule_8(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 8: resourceIds maps labels to lists of integers. Only the integers have a meaning."""
    key = "resourceIds"
    value = fields.get(key, {})
    if value == EVERYTHING:
        return
    if not isinstance(value, dict):
        yield RoleFinding(
            "error", 8, key, f"{key} {_is_not('an object of labels with a list of integers each', value)}"
        )
        return
    for label, ids in value.items():
        where = f"{key}.{label}"
        if not isinstance(ids, list):
            yield RoleFinding("error", 8, where, f"{where} {_is_not('a list of integers', ids)}")
            continue
        for index, item in enumerate(ids):
            if type(item) is not int:
                yield RoleFinding(
                    "error", 8, f"{where}[{index}]", f"{where}: {_shown(item)} {_is_not('an integer', item)}"
                )
        if label == EVERYTHING and ids:
            yield RoleFinding("error", 2, where, f"{key}: '*' means all and cannot be combined with others")


def _rule_9(fields: Fields, update: bool) -> Iterator[RoleFinding]:
    """Check rule 9: three fields of a role are read-only."""
    for key in READ_ONLY:
        if key in fields:
            yield RoleFinding("error", 9, key, f"{key} cannot be set")


_RULES = (_fields, _rule_1, _rule_2, _rule_3, _rule_4, _rule_5, _rule_6, _rule_8, _rule_9)


def _mentions_no_grant(fields: Fields) -> bool:
    return not any(key in fields for key in GRANTS)


def _is_all(value: object) -> bool:
    """Return whether the value of a field is `*`, or has `*` as its only element or only key."""
    return value == EVERYTHING or (isinstance(value, list | dict) and list(value) == [EVERYTHING])


def _is_not(expected: str, value: object) -> str:
    """Return the end of a message about a value of a wrong type."""
    if value is None:
        return "has no value"
    quote = ": put it in quotes" if expected == "text" and not isinstance(value, list | dict) else ""
    return f"is not {expected}{quote}"


def _shown(value: object) -> str:
    return "an element" if isinstance(value, list | dict) or value is None else f"'{json_text(value)}'"


def in_words(role: Role) -> dict[str, str | None]:
    """Return the fields of a role that a request may send, as text for people."""
    return {key: _words(value) for key, value in comparable(role).items()}


def comparable(role: Role) -> dict[str, str | frozenset[str] | frozenset[int]]:
    """Return the fields of a role in a form that is equal for all roles with the same meaning.

    The order and the repetition of values do not change the meaning of a role. The labels of resource IDs do not change
    the meaning either (rule 8). The result contains only fields that a request may send.
    """
    values = role.body()
    for key in ("policies", "applications"):
        if isinstance(values.get(key), list):
            values[key] = frozenset(values[key])
    if "resourceIds" in values:
        values["resourceIds"] = (
            EVERYTHING if EVERYTHING in values["resourceIds"] else frozenset(flat(values["resourceIds"]))
        )
    return values


def _words(value: str | frozenset[str] | frozenset[int] | None) -> str | None:
    if value == EVERYTHING:
        return "all"
    if isinstance(value, frozenset):
        return ", ".join(map(str, sorted(value))) or None
    return value or None


# Reading


def require(client: Client, domain: str, name: str) -> Role | None:
    """Read a role. Returns None if the service cannot read roles.

    Raises NotFound if the service can read roles, but the role does not exist.
    """
    try:
        return client.role(domain, name)
    except ServiceError as error:
        if not may_lack(error) or (isinstance(error, NotFound) and reads_roles(client, domain)):
            raise
        return None


def reads_roles(client: Client, domain: str) -> bool:
    """Return whether the service can read roles.

    Raises NotFound if the domain does not exist, and CredentialsError if the domain belongs to somebody else.
    """
    try:
        client.roles(domain)
    except ServiceError as error:
        if not may_lack(error):
            raise
        return False
    except MalformedAnswer:
        return False
    return True


def may_lack(error: ServiceError) -> bool:
    """Return whether an error may mean that the service does not have the operation."""
    return error.code != Code.NO_DOMAIN and not isinstance(error, CredentialsError | Conflict)


if TYPE_CHECKING:
    from svcctl.api.client import Client


def known_domain(client: Client, name: str) -> AbstractContextManager[None]:
    """Return a context manager that adds the name of a similar domain to an error about an unknown domain.

    If the client's credentials do not allow listing domains, the error is unchanged.
    """

    def names() -> Iterable[str]:
        full = [domain.name for domain in client.domains()]
        return full if "@" in name else dict.fromkeys(full_name.partition("@")[0] for full_name in full)

    return suggesting(name, names, "domains", when=no_domain)


@contextmanager
def known_role(client: Client, domain: str, name: str) -> Iterator[None]:
    """Add the most similar name to an error, if the `with` block raises an error about an unknown domain or role."""
    roles = suggesting(name, lambda: [role.name for role in client.roles(domain)], "roles", when=no_role)
    with known_domain(client, domain), roles:
        yield
