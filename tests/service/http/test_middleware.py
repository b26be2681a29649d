"""The access log as a table: an event for each request, stored when the log is flushed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from support.application import answered

from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.http.app import build
from svcctl.service.http.middleware import AccessLog
from svcctl.service.provisioning import accounts, seed
from svcctl.service.provisioning.accounts import Account
from svcctl.service.service import Service
from svcctl.service.store import Store


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AccessLog]:
    """The log around a service whose one account has the token `mine`."""
    with DuckDBEngine() as engine, ThreadPoolExecutor(1) as executor:
        store = Store(tmp_path / "state.db")
        seed.catalog(store)
        accounts.put(store, Account("key", "secret", "mine", seed.LOCAL_DOMAIN))
        # A minute ahead, so that what has just happened is before its "now".
        service = Service(engine, store, executor, clock=lambda: time.time() + 60)
        yield AccessLog(build(service), engine)
        store.close()


def ask(log: AccessLog, method: str, path: str, content: bytes = b"", token: str = "mine") -> httpx.Response:
    return answered(log, method, path, content, {"authorization": f"Bearer {token}", "user-agent": "test/1"})


def events(log: AccessLog) -> list[str]:
    """The stored events as lines of csv, without their date and duration."""
    columns = "method, uri, statusCode, bytesSent, domain, cid, userAgent"
    query = {"query": f"from service.access select {columns}", "from": "1h", "to": "now", "mode": {"type": "csv"}}
    return ask(log, "POST", "/search/query", json.dumps(query).encode()).text.splitlines()[1:]


def test_each_request_is_an_event_once_the_log_is_flushed(log: AccessLog) -> None:
    told = [ask(log, "GET", "/service/status"), ask(log, "GET", "/none?x=1"), ask(log, "GET", "/domain", token="no")]
    assert events(log) == []
    log.flush()
    size = [len(answer.content) for answer in told]
    cid = [answer.headers["x-svc-cid"] for answer in told]
    assert events(log)[:3] == [
        f"GET,/service/status,200,{size[0]},local,{cid[0]},test/1",
        f"GET,/none,404,{size[1]},,{cid[1]},test/1",
        f"GET,/domain,401,{size[2]},,{cid[2]},test/1",
    ]


def test_the_log_is_not_quiet_while_a_request_is_open() -> None:
    quiet: list[float] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        quiet.append(around.quiet_for())
        await Response()(scope, receive, send)

    with DuckDBEngine() as engine:
        around = AccessLog(app, engine)
        ask(around, "GET", "/")
        assert quiet == [0.0]
        assert around.quiet_for() > 0
