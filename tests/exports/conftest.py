"""Fixtures of exports: a service with the events, a proxy before it, and runs into a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.exports import Exports, load_events
from support.faults import FaultyProxy
from support.shells import Shell

from svcctl.api.auth import Signature


@pytest.fixture(scope="session")
def events(service: Shell) -> Shell:
    """The service with the table exported.events."""
    load_events(service)
    return service


@pytest.fixture(scope="session")
def signature(events: Shell) -> Signature:
    credentials = json.loads((events.home / "data" / "credentials.json").read_text())["local"]
    return Signature(credentials["api_key"], credentials["api_secret"])


@pytest.fixture(scope="session")
def answers(events: Shell) -> Iterator[FaultyProxy]:
    """One proxy for all tests, since it keeps what the service answers."""
    with FaultyProxy(events.home / "data" / "service.sock").serving() as proxy:
        yield proxy


@pytest.fixture
def proxy(answers: FaultyProxy) -> FaultyProxy:
    """The proxy as new: it breaks nothing and nothing has been asked."""
    answers.choose = lambda body: None
    answers.exact = False
    answers.asked.clear()
    return answers


@pytest.fixture
def exports(proxy: FaultyProxy, signature: Signature, tmp_path: Path) -> Exports:
    return Exports(proxy, tmp_path, signature)
