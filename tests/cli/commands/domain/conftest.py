"""An active domain and one that is pending."""

from __future__ import annotations

import pytest
from support.reseller import Machine, Reseller

from svcctl.api.models import DomainStatus
from svcctl.service.accounts import domains, users


@pytest.fixture
def two(reseller: Reseller, machine: Machine) -> None:
    """An active domain with two users, one of whom has another domain; and that one, which is pending."""
    for name in ("acme", "waiting"):
        domains.create(machine.store, "demo", {"name": name, "plan": "basic"})
        users.assign(machine.store, f"{name}@demo", "ann@acme.example", "OWNER")
    users.assign(machine.store, "acme@demo", "bob@acme.example", "USER")
    domains.set_status(machine.store, "waiting@demo", DomainStatus.PENDING)
