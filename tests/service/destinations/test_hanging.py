"""Jobs whose destination accepts connections and never answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from support.engines import engines_of
from support.events import selected
from support.silent import Silent, silent

from svcctl.api.destinations import Destination
from svcctl.dates.range import Range
from svcctl.service.accounts.accounts import Account
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.jobs import delivery
from svcctl.service.jobs.checkpoint import StoredQuery
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.language.types import Column, Type
from svcctl.service.queries.request import AskedQuery
from svcctl.service.state.store import Store

ME = Account("key", "secret", None, "", reseller="north")
FIRST, NOW = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)
T = TypeVar("T")
MOST_SECONDS = 3.0
"""How long an operation may take on a busy machine; on an idle one it takes half a second. The destinations take 5 s
and more to give up."""


def kafka(port: int) -> Mapping[str, str]:
    return {"topic": "t", "bootstrap.servers": f"127.0.0.1:{port}"}


def s3(port: int) -> Mapping[str, str]:
    return {
        "aws.bucket": "bucket",
        "aws.endpoint": f"http://127.0.0.1:{port}",
        "aws.accesskey": "key",
        "aws.secretkey": "secret",
        "multiplefile": "false",
    }


def hdfs(port: int) -> Mapping[str, str]:
    return {"fs.defaultFS": f"hdfs://127.0.0.1:{port}", "file": "/logs/web.csv"}


@pytest.fixture
def server() -> Iterator[Silent]:
    with silent() as server:
        yield server


@pytest.fixture
def jobs(tmp_path: Path, server: Silent) -> Iterator[Jobs]:
    with DuckDBEngine() as engine:
        store = Store(tmp_path / "state.db")
        events = "SELECT TIMESTAMP '2024-01-01' + to_seconds(i) AS eventdate, i AS n FROM range(1000) r(i)"
        engine.append("t", selected(events), create=(Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        jobs = Jobs(store, partial(delivery.deliver, engines_of(engine), lambda: NOW))
        yield jobs
        server.hang_up()
        jobs.close()
        store.close()


def launched(jobs: Jobs, type_: str, params: Mapping[str, str]) -> str:
    asked = AskedQuery("from t", Range(FIRST, NOW), "csv", destination=Destination(type_, params))
    request = StoredQuery(asked, NOW)
    return jobs.launch(ME, type=type_, request=request, params=params).id


@pytest.mark.slow
@pytest.mark.parametrize(("type_", "params"), [("kafka", kafka), ("s3", s3), ("hdfs", hdfs)])
def test_the_operations_of_a_job_answer_at_once(
    jobs: Jobs, server: Silent, type_: str, params: Callable[[int], Mapping[str, str]]
) -> None:
    def timed(operation: Callable[[], T]) -> T:
        started = time.monotonic()
        told = operation()
        took.append(time.monotonic() - started)
        return told

    took: list[float] = []
    job_id = launched(jobs, type_, params(server.port))
    assert server.asked.wait(20)
    first = jobs.runs[job_id]
    statuses = [
        [job.status for job in timed(lambda: jobs.listed(ME))],
        timed(lambda: jobs.stop(ME, job_id)).status,
        timed(lambda: jobs.start(ME, job_id)).status,
        timed(lambda: jobs.get(ME, job_id)).status,
        timed(lambda: jobs.stop(ME, job_id)).status,
        timed(lambda: jobs.start(ME, job_id)).status,
        timed(lambda: jobs.remove(ME, job_id)).status,
        [job.status for job in timed(lambda: jobs.listed(ME))],
    ]
    assert statuses == [["RUNNING"], "STOPPED", "RUNNING", "RUNNING", "STOPPED", "RUNNING", "REMOVED", []]
    assert max(took) < MOST_SECONDS
    assert first.fenced
