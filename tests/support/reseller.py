"""A reseller's command line whose service is in the same process: what is sent, printed, asked, and the exit code."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from support.clients import without_cid
from svcctl.api.addresses import Paths
from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.cli import build, hoist
from svcctl.context import Context
from svcctl.errors import UsageError
from svcctl.service.http import app as service_app
from svcctl.service.provisioning import accounts, seed
from svcctl.service.provisioning.accounts import Account
from svcctl.service.service import Service
from svcctl.service.store import Store
from svcctl.terminal.diagnostics import Diagnostics

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
    """Remembers what is sent: method, path with query, and the decoded body."""

    def __init__(self, inner: Callable[[httpx.Request], httpx.Response]) -> None:
        self.inner = inner
        self.sent: list[tuple[str, str, Any]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        self.sent.append((request.method, request.url.raw_path.decode(), json.loads(content) if content else None))
        return self.inner(request)


class Answering(Context):
    """A context with somebody there, who types what the test says; without answers there is no terminal."""

    answers: Sequence[str] = ()
    questions: list[str]

    def ask(self, question: str) -> None:
        if self._answer(question) != "y":
            raise UsageError("no")

    def ask_word(self, question: str, expected: str) -> None:
        if self._answer(question) != expected:
            raise UsageError(f"that was not '{expected}'; nothing was done")

    def _answer(self, question: str) -> str:
        if not self.answers:
            raise UsageError(f"{question} There is no terminal to ask on", hint="say it with --yes")
        self.questions.append(question)
        answer, *self.answers = self.answers
        return answer


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    sent: list[tuple[str, str, Any]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)


Reseller = Callable[..., Done]


@dataclass(frozen=True)
class Machine:
    """The store that the service has, and where both keep their files."""

    store: Store
    directory: Path


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    store = Store(tmp_path / "state.db")
    seed.catalog(store)
    accounts.put(store, Account(KEY, SECRET, None, "", reseller=seed.RESELLER))
    yield Machine(store, tmp_path)
    store.close()


@pytest.fixture
def reseller(machine: Machine, capsys: pytest.CaptureFixture[str]) -> Reseller:
    """Runs a command as the demo reseller; `answer` takes the place of the service, `paths` of its paths."""
    in_process = InProcess(service_app.build(Service(cast(Any, None), machine.store, cast(Any, None))))

    def run(
        *arguments: str,
        answers: Sequence[str] = (),
        answer: Callable[[httpx.Request], httpx.Response] | None = None,
        paths: Mapping[str, str] | None = None,
    ) -> Done:
        stderr = io.StringIO()
        environment = {"SVCCTL_DATA": str(machine.directory), "SVCCTL_CONFIG": str(machine.directory / "none.yaml")}
        context = Answering({}, Diagnostics(stderr), environment=environment)
        context.answers, context.questions = answers, []
        transport = Recording(answer or in_process.handle_request)
        context.__dict__["client"] = Client(
            "http://localhost", Signature(KEY, SECRET), transport=transport, paths=Paths(**(paths or {})), retries=0
        )
        hoisted = hoist(arguments)
        try:
            with context.closing:
                build(hoisted, context)(hoisted, prog_name="svcctl", standalone_mode=False)
            code = 0
        except Exception as error:
            code = context.diagnostics.report(error)
        return Done(code, capsys.readouterr().out, without_cid(stderr.getvalue()), transport.sent, context.questions)

    return run
