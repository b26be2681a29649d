"""Domains in files for `domain apply`: their keys, and the allowed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from svcctl.api.models import Domain, DomainStatus, is_amount
from svcctl.cli.inputs.yaml_files import YamlDocument
from svcctl.io.yaml_text import NUMBERS, number

ENABLED, DISABLED = "enabled", "disabled"
KEYS = ("name", "plan", "time", "volume", "state")


@dataclass(frozen=True, slots=True)
class WrittenDomain:
    """A domain in a file. Values that are not in the file stay unchanged."""

    document: YamlDocument
    name: str
    plan: str
    time: float | None
    volume: float | None
    state: str | None


def written(document: YamlDocument) -> WrittenDomain:
    """Return the domain in a document. Raises UsageError, with the name of the key, for a mistake."""
    document.check_keys(KEYS)
    return WrittenDomain(
        document,
        document.needed("name"),
        document.needed("plan"),
        _amount(document, "time"),
        _amount(document, "volume"),
        document.one_of("state", (ENABLED, DISABLED)),
    )


def _amount(document: YamlDocument, key: str) -> float | None:
    text = document.text(key)
    if text is None:
        return None
    if (value := number(text)) is None:
        raise document.error(f"{key} '{text}' is not a number", key, hint=NUMBERS)
    if not is_amount(value):
        raise document.error(f"{key} must be 0 or more, not {text}", key)
    return value


def exported(domain: Domain) -> dict[str, Any]:
    """Convert a domain to fields of a file. The function `written` can read these fields."""
    values = {
        "name": domain.name,
        "plan": domain.plan,
        "time": domain.time,
        "volume": domain.volume,
        "state": _state(domain),
    }
    return {key: value for key, value in values.items() if value is not None}


def _state(domain: Domain) -> str | None:
    """Return the state of a domain, `enabled` or `disabled`; None if the state is not known."""
    if domain.status is None:
        return None
    return ENABLED if domain.status.casefold() == DomainStatus.ACTIVE.casefold() else DISABLED
