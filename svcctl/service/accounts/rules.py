"""Custom roles, and the nine rules of the HTTP interface about custom roles.

`Changes` is the content of a request. `CustomRole` is a stored role. Each rule that a request can break is a function.
The function raises an error with the code of the rule: 131 to 139 for rules 1 to 9. The rules leave some choices, which
this service has made as follows:

- Rule 1: A new role grants everything if its request has no policies, no applications and no resourceIds. If the
  request has one or two of these fields, the role grants nothing for the missing fields.
- Rule 2: `*` is stored as `*`, so the role also grants names that become available later. A list with `*` cannot have
  other names.
- Rule 4: A role must grant at least one policy or application that the domain has. If the domain has no policies, `*`
  in the role's policies grants nothing. The same applies to applications. The rule is checked when a role is created,
  and when its policies or applications are updated. A role does not change when its domain loses a policy or an
  application. An update with empty applications removes the role's applications. If such an update also names a default
  application, the role keeps this one application. An error is raised if the role did not have this application before
  the update.
- Rule 5: A role need not have a default application. A default application must be among the role's applications.
- Rule 7: Both policies and applications must be available in the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from svcctl.service.accounts.codes import Reason, refusal
from svcctl.words import did_you_mean

WILDCARD = "*"
ALL_NAMES = (WILDCARD,)
READ_ONLY: dict[str, Any] = {"alertPermissions": [], "defVault": 1, "maxVault": 1}
"""The fields of a role that only the provider can set, with the values that all roles have in this service."""

Names = tuple[str, ...]
"""Names of policies or applications. ALL_NAMES means all available names."""
Resources = tuple[int, ...] | None
"""Resource IDs in ascending order. None means all resources."""


@dataclass(frozen=True, slots=True)
class CustomRole:
    name: str
    description: str | None
    policies: Names
    applications: Names
    resource_ids: Resources
    finder_name: str | None
    default_application: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the role as a JSON object of the HTTP interface.

        The labels of resourceIds are not stored, so the object has all IDs under one label.
        """
        everything = self.resource_ids is None
        fields: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "policies": WILDCARD if self.policies == ALL_NAMES else list(self.policies),
            "applications": WILDCARD if self.applications == ALL_NAMES else list(self.applications),
            "resourceIds": {WILDCARD: []} if everything else {"ids": list(self.resource_ids or ())},
            "finderName": self.finder_name,
            "defaultApplicationName": self.default_application,
        }
        return {key: value for key, value in fields.items() if value is not None} | READ_ONLY


@dataclass(frozen=True, slots=True)
class Changes:
    """The fields of a request that creates or updates a role. A field is None if the request does not have this field.

    If the request has resource IDs, `resource_ids` is a tuple with one element. The element is a tuple of the IDs, or
    None for all resources. An empty text as the default application removes the role's default application (rule 6).
    """

    name: str | None = None
    description: str | None = None
    policies: Names | None = None
    applications: Names | None = None
    resource_ids: tuple[Resources] | None = None
    finder_name: str | None = None
    default_application: str | None = None


# Reading a request


def read(fields: Mapping[str, Any]) -> Changes:
    """Read and check the fields of a request that creates or updates a role.

    Raises an error with the code of the rule that the request breaks.
    """
    refuse_read_only(fields)
    made: dict[str, Any] = {}
    for key, value in fields.items():
        if key not in _READERS:
            raise refusal(Reason.BODY, f"unknown field '{key}'")
        attribute, reader = _READERS[key]
        made[attribute] = reader(key, value)
    return Changes(**made)


def refuse_read_only(fields: Mapping[str, Any]) -> None:
    """Raise an error if a request sets a field that only the provider can set (rule 9)."""
    for key in READ_ONLY:
        if key in fields:
            raise refusal(Reason.READ_ONLY, f"{key} cannot be set")


def role_name(key: str, value: object) -> str:
    """Read the name of a role. The name is required (rule 1), so a blank name is an error."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise refusal(Reason.NAME_ONLY, "the role's name must be printable text and not blank")
    return value


def names(key: str, value: object) -> Names:
    """Read a list of names, or `*` for all names (rule 2). A single name means a list with that name (rule 3)."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(name, str) and name for name in items):
        raise refusal(Reason.SINGLE, f"{key} must be a list of names, or a single name")
    if WILDCARD in items and len(items) > 1:
        raise refusal(Reason.ALL, f"{key} has other names next to '*', which already means all")
    return tuple(dict.fromkeys(items))


def resources(key: str, value: object) -> tuple[Resources]:
    """Read resource IDs: the integers in the lists of all labels. The label `*` means all resources (rules 2 and 8)."""
    if value == WILDCARD:
        return (None,)
    if not isinstance(value, dict):
        raise refusal(Reason.RESOURCES, f"{key} must be an object that maps labels to lists of integers")
    for label, ids in value.items():
        if not isinstance(ids, list) or not all(type(resource) is int for resource in ids):
            raise refusal(Reason.RESOURCES, f"{key}.{label} must be a list of integers")
    flat = {resource for ids in value.values() for resource in ids}
    if WILDCARD in value and (flat or len(value) > 1):
        raise refusal(Reason.ALL, f"{key} has other labels or IDs next to '*', which already means all")
    return (None,) if WILDCARD in value else (tuple(sorted(flat)),)


def default_application(key: str, value: object) -> str:
    """Read the name of the default application. An empty text removes the default application (rule 6)."""
    if not isinstance(value, str):
        raise refusal(Reason.REMOVE_DEFAULT, f"{key} must be a name, or '' for none")
    return value


def text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise refusal(Reason.BODY, f"{key} must be text")
    return value


_READERS: dict[str, tuple[str, Callable[[str, object], Any]]] = {
    "name": ("name", role_name),
    "description": ("description", text),
    "policies": ("policies", names),
    "applications": ("applications", names),
    "resourceIds": ("resource_ids", resources),
    "finderName": ("finder_name", text),
    "defaultApplicationName": ("default_application", default_application),
}


# Applying the rules


@dataclass(frozen=True, slots=True)
class Available:
    """The policies and applications that are available in a domain. The Admin role of the domain has all of them."""

    policies: Collection[str]
    applications: Collection[str]


def with_all_grants(changes: Changes) -> Changes:
    """Complete the grants of a new role (rule 1).

    If the request has no policies, no applications and no resourceIds, the role grants everything. Otherwise, the role
    grants only what the request contains.
    """
    if changes.policies is None and changes.applications is None and changes.resource_ids is None:
        return replace(changes, policies=ALL_NAMES, applications=ALL_NAMES, resource_ids=(None,))
    return replace(changes, policies=changes.policies or (), applications=changes.applications or ())


def keep_default_application(role: CustomRole, changes: Changes, available: Collection[str]) -> Changes:
    """Apply rule 4 to an update that has empty applications and names a default application.

    In the result, the default application is the only application. Raises an error if the role does not have this
    application. Any other update is returned unchanged.
    """
    application = changes.default_application
    if changes.applications != () or not application:
        return changes
    if application not in (available if role.applications == ALL_NAMES else role.applications):
        raise refusal(
            Reason.GRANTS_NOTHING,
            f"applications is empty, and role '{role.name}' does not have application '{application}'",
        )
    return replace(changes, applications=(application,))


def require_a_grant(role: CustomRole, available: Available) -> None:
    """Raise an error if a role grants no policy and no application that the domain has (rule 4)."""
    if granted_names(role.policies, available.policies) or granted_names(role.applications, available.applications):
        return
    fields = (("policies", role.policies), ("applications", role.applications))
    empty = [f"no {kind}" for kind, names in fields if names == ALL_NAMES]
    raise refusal(
        Reason.GRANTS_NOTHING,
        f"role '{role.name}' would grant nothing: it needs at least one policy or application",
        hint=f"'*' means all, but the domain has {' and '.join(empty)}" if empty else None,
    )


def granted_names(names: Names, available: Collection[str]) -> Collection[str]:
    """Return the names in a role's list that are available in the domain. For `*`, return all available names."""
    return available if names == ALL_NAMES else [name for name in names if name in available]


def require_default_among_applications(role: CustomRole, available: Collection[str]) -> None:
    """Raise an error if a role's default application is not among its applications (rule 5)."""
    if role.default_application is None:
        return
    if role.default_application not in (available if role.applications == ALL_NAMES else role.applications):
        raise refusal(
            Reason.DEFAULT_APPLICATION,
            f"defaultApplicationName '{role.default_application}' is not among the applications of role '{role.name}'",
        )


def require_available(kind: str, names: Names | None, available: Collection[str]) -> None:
    """Raise an error if one of the policies or applications is not available in the domain (rule 7)."""
    missing = [name for name in names or () if name not in (*available, WILDCARD)]
    if missing:
        code = Reason.POLICY if kind == "policy" else Reason.APPLICATION
        raise refusal(
            code,
            f"{kind} '{missing[0]}' does not exist or is not available in the domain",
            hint=did_you_mean(missing[0], available) or f"available are {', '.join(sorted(available)) or 'none'}",
        )


def new_role(changes: Changes, available: Available) -> CustomRole:
    """Make the role that a request creates.

    Raises ServiceError with the code of the rule that the request breaks.
    """
    if changes.name is None:
        raise refusal(Reason.NAME_ONLY, "the role's name is missing")
    bare = CustomRole(changes.name, None, (), (), (), None, None)
    return _checked_role(bare, with_all_grants(changes), available)


def updated_role(role: CustomRole, changes: Changes, available: Available) -> CustomRole:
    """Make the role that results from an update. Fields that are not in the request are not checked again."""
    return _checked_role(role, keep_default_application(role, changes, available.applications), available)


def _checked_role(current: CustomRole, changes: Changes, available: Available) -> CustomRole:
    role = _merged_role(current, changes)
    require_available("policy", changes.policies, available.policies)
    require_available("application", changes.applications, available.applications)
    if changes.policies is not None or changes.applications is not None:
        require_a_grant(role, available)
    if changes.applications is not None or changes.default_application is not None:
        require_default_among_applications(role, available.applications)
    return role


def _merged_role(role: CustomRole, changes: Changes) -> CustomRole:
    """Return a role in which the fields of a request replace the old values. An empty text removes a field (rule 6)."""
    return CustomRole(
        role.name if changes.name is None else changes.name,
        role.description if changes.description is None else changes.description or None,
        role.policies if changes.policies is None else changes.policies,
        role.applications if changes.applications is None else changes.applications,
        role.resource_ids if changes.resource_ids is None else changes.resource_ids[0],
        role.finder_name if changes.finder_name is None else changes.finder_name or None,
        role.default_application if changes.default_application is None else changes.default_application or None,
    )
