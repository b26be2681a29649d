"""A load that the service cannot finish, because it is stopping."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message
from support.engines import chosen_engine

from svcctl.service.http import app as service_app
from svcctl.service.http.context import Service
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.state.store import Store


class Busy(Executor):
    """Work that never ends."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    with chosen_engine() as engines:
        yield Service(engines, store, Busy())


def test_a_client_is_told_that_the_service_stops_and_that_its_load_may_be_done(
    service: Service, tmp_path: Path
) -> None:
    app = service_app.build(service, Jobs(service.store, lambda job, run: True))
    body = json.dumps({"files": [{"path": str(tmp_path / "a.csv")}], "table": "t"}).encode()
    headers = [(b"authorization", b"Bearer operator"), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/service/load",
        "raw_path": b"/service/load",
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("localhost", 1),
    }
    sent: list[Message] = []

    async def stopped_meanwhile() -> None:
        read, waiting = asyncio.Event(), asyncio.Event()

        async def receive() -> Message:
            if not read.is_set():
                read.set()
                return {"type": "http.request", "body": body, "more_body": False}
            waiting.set()
            return await asyncio.Future()

        async def send(message: Message) -> None:
            sent.append(message)

        request = asyncio.ensure_future(app(scope, receive, send))
        await asyncio.wait_for(waiting.wait(), 20)
        request.cancel()
        await request

    asyncio.run(stopped_meanwhile())
    assert sent[0]["status"] == 504
    assert json.loads(sent[1]["body"])["msg"] == "the service is stopping"
