"""A state with two domains and an account in each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.state import with_catalog

from svcctl.service.accounts import accounts, domains, seed, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.state.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An administrator with the token `operator`, and in the domain elsewhere an account with the token `ordinary`."""
    store = with_catalog(tmp_path / "state.db")
    accounts.put(store, Account("key", "secret", "operator", seed.LOCAL_DOMAIN, administrator=True))
    domains.put_provider_domain(store, "elsewhere")
    users.assign(store, "elsewhere", "owner@elsewhere", users.OWNER)
    accounts.put(store, Account("other", "secret", "ordinary", "elsewhere"))
    yield store
    store.close()
