"""Functions that return a member of a JSON object and check its type.

If the type is wrong, these functions raise ServiceError with the name of the member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcctl.errors import ServiceError


def text(fields: Mapping[str, Any], name: str) -> str:
    """Return a member that must exist and be a string."""
    value = optional_text(fields, name)
    if value is None:
        raise ServiceError(f"{name} is missing")
    return value


def optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a member that is a string; None if the member is missing."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise ServiceError(f"{name} is not a string")
    return value


def texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a member that is a list of strings. If the member is missing, return an empty tuple."""
    value = fields.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ServiceError(f"{name} is not a list of strings")
    return tuple(value)


def members(fields: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """Return a member that is an object of strings. If the member is missing, return an empty object."""
    value = fields.get(name, {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ServiceError(f"{name} is not an object of strings")
    return value


def optional_flag(fields: Mapping[str, Any], name: str) -> bool | None:
    """Return a member that is true or false; None if the member is missing."""
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise ServiceError(f"{name} is neither true nor false")
    return value


def flag(fields: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return a member that is true or false. If the member is missing, return the default."""
    value = optional_flag(fields, name)
    return default if value is None else value
