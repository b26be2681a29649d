"""A domain with an owner, and a file of roles."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reseller import Machine
from support.roles import ROLES

from svcctl.service.accounts import domains, users


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "roles.yaml"
    path.write_text(ROLES)
    return path


@pytest.fixture
def acme(machine: Machine) -> None:
    domains.create(machine.store, "demo", {"name": "acme", "plan": "full"})
    users.assign(machine.store, "acme@demo", "ann@acme.example", "OWNER")
