"""A command line whose local service is in the same process, with tables in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.clients import without_cid
from support.engines import chosen_engine
from support.over_httpx import OverHttpx
from support.reseller import WIDE, Done, InProcess, Recording, Scripted
from support.state import with_catalog
from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.cli import main
from svcctl.cli.context import Context
from svcctl.service.accounts import accounts, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.engines import Engines
from svcctl.service.http import app as service_app
from svcctl.service.http.context import Service
from svcctl.service.jobs import delivery
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.state.store import Store
from svcctl.terminal.diagnostics import Diagnostics

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Running(Context):
    """A context whose local service already runs."""

    def start_local(self, *, unasked: bool = False) -> bool:
        return False


@dataclass
class Own:
    """Runs a command as the administrator of the service; `answer` takes the place of the service."""

    engines: Engines
    store: Store
    directory: Path
    jobs: Jobs
    _executor: ThreadPoolExecutor
    _capsys: pytest.CaptureFixture[str]
    live: frozenset[str] = frozenset()
    environment: dict[str, str] = field(default_factory=dict)
    stderr: Callable[[], io.StringIO] = io.StringIO
    """Makes stderr; on a terminal, commands print more."""

    def __call__(self, *arguments: str, answers: Sequence[str] = (), answer: Callable[..., Any] | None = None) -> Done:
        stderr, prompt = self.stderr(), Scripted(answers)
        transport = Recording(answer or self.service())
        client = Client(
            "http://localhost", Bearer("token"), transport=OverHttpx(transport), retries=0, clock=NOW.timestamp
        )
        context = Running(
            diagnostics=Diagnostics(stderr, width=WIDE),
            environment=self.environment,
            clock=NOW.timestamp,
            client_factory=lambda *_: client,
            prompt=prompt,
        )
        code = main.run(arguments, context)
        return Done(
            code, self._capsys.readouterr().out, without_cid(stderr.getvalue()), transport.sent, prompt.questions
        )

    def service(self) -> Callable[..., Any]:
        """The function by which the service answers requests."""
        service = Service(self.engines, self.store, self._executor, clock=NOW.timestamp, live=self.live)
        return InProcess(service_app.build(service, self.jobs)).handle_request

    def file(self, name: str, text: str | bytes) -> str:
        """Write a file into the working directory and return its name."""
        (self.directory / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name


@pytest.fixture
def own(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    store = with_catalog(data / "state.db")
    accounts.put(store, Account("key", "secret", "token", seed.LOCAL_DOMAIN, administrator=True))
    environment = {"SVCCTL_DATA": str(data), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with chosen_engine() as engines, ThreadPoolExecutor(2) as executor:
        jobs = Jobs(store, partial(delivery.deliver, engines, lambda: NOW))
        yield Own(engines, store, tmp_path, jobs, executor, capsys, environment=environment)
        jobs.close()
    store.close()
