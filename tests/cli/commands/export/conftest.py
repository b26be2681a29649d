"""A service with the table timed.events, a home that uses it, and a proxy between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.faults import FaultyProxy
from support.shells import Shell
from support.timed_events import EVENTS, START, Moved


@pytest.fixture(scope="session")
def events(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    rows = [f"{datetime.fromtimestamp(START + 300 * n, UTC):%Y-%m-%d %H:%M:%S}.000,{n}" for n in range(EVENTS)]
    file = tmp_path_factory.mktemp("events") / "events.csv"
    file.write_text("\n".join(["eventdate,n", *rows, ""]), encoding="utf-8")
    loaded = service("service", "load", str(file), "--table", "timed.events")
    assert loaded.returncode == 0, loaded.stderr
    return service


@pytest.fixture
def home(events: Shell, tmp_path: Path) -> Shell:
    """A home of its own, in which the service of the events is the local one."""
    data, state = events.environment["SVCCTL_DATA"], str(tmp_path / "states")
    return Shell(tmp_path, {"SVCCTL_DATA": data, "SVCCTL_STATE": state})


@pytest.fixture
def proxied(home: Shell) -> Iterator[tuple[Shell, FaultyProxy]]:
    """The same behind a proxy that can break answers."""
    data = Path(home.environment["SVCCTL_DATA"])
    credentials = json.loads((data / "credentials.json").read_text())["local"]
    proxy = FaultyProxy(data / "service.sock")
    with proxy.serving():
        given = {
            "SVCCTL_BASE_URL": proxy.url,
            "SVCCTL_API_KEY": credentials["api_key"],
            "SVCCTL_API_SECRET": credentials["api_secret"],
        }
        yield Shell(home.home, home.variables | given), proxy


@pytest.fixture
def moved(proxied: tuple[Shell, FaultyProxy]) -> Moved:
    return Moved(proxied[0], START)
