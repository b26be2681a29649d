"""The columns of roles."""

from __future__ import annotations

from typing import Any

from svcctl.api.models import Role
from svcctl.terminal.records import ListField, Listing


def _role_field(name: str) -> ListField[Role]:
    def shown(role: Role) -> Any:
        from svcctl.api.roles import in_words

        value = (role.to_json() | in_words(role)).get(name)
        return None if value == [] else value

    return ListField(name, lambda role: role.to_json().get(name), shown=shown)


_GRANTS = ("name", "policies", "applications", "resourceIds", "defaultApplicationName")
ROLES = Listing(tuple(map(_role_field, (*_GRANTS, "description"))))
ROLE = Listing(
    tuple(map(_role_field, (*_GRANTS, "description", "finderName", "alertPermissions", "defVault", "maxVault")))
)
