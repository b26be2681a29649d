"""The access log as a table: an event for each request, stored when the log is flushed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from random import Random

import httpx
import pyarrow as pa
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from support.application import answered
from support.engines import engines_of
from support.state import with_catalog

from svcctl.service.accounts import accounts, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.http.access_log import COLUMNS, TABLE, AccessLog
from svcctl.service.http.app import build
from svcctl.service.http.context import Service


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AccessLog]:
    """The log around a service whose one account has the token `mine`."""
    with DuckDBEngine() as engine, ThreadPoolExecutor(1) as executor:
        store = with_catalog(tmp_path / "state.db")
        accounts.put(store, Account("key", "secret", "mine", seed.LOCAL_DOMAIN))
        # A minute ahead, so that what has just happened is before its "now".
        service = Service(engines_of(engine), store, executor, clock=lambda: time.time() + 60)
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


def test_what_a_client_chooses_is_cut_before_it_is_stored(log: AccessLog) -> None:
    answered(log, "GET", "/" + "x" * 5000, headers={"user-agent": "y" * 5000})
    log.flush()
    (line,) = events(log)
    assert line.split(",")[1] == "/" + "x" * 498 + "…"
    assert line.split(",")[-1] == "y" * 199 + "…"


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await Response()(scope, receive, send)


def stored(engine: DuckDBEngine) -> list[str]:
    with engine.statement('SELECT uri FROM events."service.access"') as stream:
        return [row for batch in stream for row in batch.column(0).to_pylist()]


def test_the_table_keeps_the_last_requests_and_none_that_are_too_old() -> None:
    with DuckDBEngine() as engine:
        log = AccessLog(_nothing, engine, most=20, age=86_400)
        for number in range(50):
            answered(log, "GET", f"/{number}")
            log.flush()
        assert stored(engine) == [f"/{number}" for number in range(30, 50)]
    with DuckDBEngine() as engine:
        engine.create(TABLE, COLUMNS)
        row = {"eventdate": datetime(2020, 1, 1), "uri": "/old"}
        batch = pa.RecordBatch.from_pylist(
            [row], schema=pa.schema({"eventdate": pa.timestamp("ms"), "uri": pa.string()})
        )
        engine.append(TABLE, pa.RecordBatchReader.from_batches(batch.schema, [batch]))
        log = AccessLog(_nothing, engine, age=86_400)
        answered(log, "GET", "/new")
        log.flush()
        assert stored(engine) == ["/new"]


@pytest.mark.slow
def test_a_flood_of_requests_takes_a_bounded_part_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    random = Random(1)
    with DuckDBEngine(path) as engine:
        log = AccessLog(_nothing, engine, most=200)
        for _ in range(20):
            for _ in range(60):
                headers = {"user-agent": random.randbytes(5000).hex()}
                answered(log, "GET", f"/{random.randbytes(5000).hex()}", headers=headers)
            log.flush()
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 20_000_000
