"""Runs commands of a reseller against a service in the same process, and records requests, output and questions."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from support.clients import without_cid
from support.over_httpx import OverHttpx
from support.state import with_catalog
from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.cli import main
from svcctl.cli.context import Context
from svcctl.service.accounts import accounts, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.http import app as service_app
from svcctl.service.http.context import Service
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.state.store import Store
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.prompt import no_person_error

KEY, SECRET = "reseller-key", "reseller-secret"


class InProcess(httpx.BaseTransport):
    """An ASGI application as a synchronous transport."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def send() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app)) as client:
                return await client.request(
                    request.method, request.url, headers=request.headers, content=request.content
                )

        answer = asyncio.run(send())
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


class Recording(httpx.BaseTransport):
    """Records each request: method, path with query, and the decoded body."""

    def __init__(self, inner: Callable[[httpx.Request], httpx.Response]) -> None:
        self.inner = inner
        self.sent: list[tuple[str, str, Any]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        self.sent.append((request.method, request.url.raw_path.decode(), json.loads(content) if content else None))
        return self.inner(request)


class Scripted:
    """A prompt that gets the test's answers; without answers there is no terminal."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.questions: list[str] = []

    @property
    def is_attended(self) -> bool:
        return bool(self._answers)

    def answer(self, question: str, ending: str, *, hidden: bool = False) -> str:
        if not self._answers:
            raise no_person_error(question)
        self.questions.append(question)
        return self._answers.pop(0)


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    stdout: str
    stderr: str
    sent: list[tuple[str, str, Any]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)


WIDE = 1000
"""The width of a terminal that breaks no message into lines."""


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


Reseller = Callable[..., Done]


@dataclass(frozen=True)
class Machine:
    """The store of the service, and the directory of all files."""

    store: Store
    directory: Path


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    store = with_catalog(tmp_path / "state.db")
    accounts.put(store, Account(KEY, SECRET, None, "", reseller=seed.RESELLER))
    yield Machine(store, tmp_path)
    store.close()


@pytest.fixture
def reseller(machine: Machine, capsys: pytest.CaptureFixture[str]) -> Reseller:
    """Runs a command as the demo reseller. `answer` replaces the service.

    With `terminal`, stderr is a terminal; stdout never is.
    """
    return command_line(machine, capsys)


def command_line(machine: Machine, capsys: pytest.CaptureFixture[str], jobs: Jobs | None = None) -> Reseller:
    """Runs commands as `reseller` does, with a service that runs `jobs`."""
    # With a base URL the context does not start the local service; the test makes the client itself.
    environment = {
        "SVCCTL_DATA": str(machine.directory),
        "SVCCTL_CONFIG": str(machine.directory / "none.yaml"),
        "SVCCTL_BASE_URL": "http://localhost",
        "NO_COLOR": "1",
    }
    in_process = InProcess(service_app.build(Service(cast(Any, None), machine.store, cast(Any, None)), jobs))

    def run(
        *arguments: str,
        answers: Sequence[str] = (),
        answer: Callable[[httpx.Request], httpx.Response] | None = None,
        terminal: bool = False,
    ) -> Done:
        stderr, prompt = Terminal() if terminal else io.StringIO(), Scripted(answers)
        transport = Recording(answer or in_process.handle_request)
        client = Client(
            "http://localhost",
            Signature(KEY, SECRET),
            transport=OverHttpx(transport),
            retries=0,
        )
        context = Context(
            diagnostics=Diagnostics(stderr, moving=False, width=WIDE),
            environment=environment,
            client_factory=lambda *_: client,
            prompt=prompt,
        )
        code = main.run(arguments, context)
        return Done(code, capsys.readouterr().out, without_cid(stderr.getvalue()), transport.sent, prompt.questions)

    return run
