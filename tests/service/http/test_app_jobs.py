"""The job operations on the wire: paths, HTTP statuses and envelopes."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from json import dumps
from pathlib import Path
from typing import Any

import pytest
from support.application import answered
from support.engines import chosen_engine
from support.state import FAILURES, with_catalog
from support.stored_queries import stored_query

from svcctl.service.accounts import accounts, domains, seed, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.language.types import Column, Type
from svcctl.service.state.sqlite import SQLite
from svcctl.service.state.store import Store

NOW = 1_700_000_000.0
NOWHERE = "00000000-0000-0000-0000-000000000000"
Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Sends a request and returns HTTP status and body, without what differs from one answer to the next."""
    with chosen_engine() as engines, ThreadPoolExecutor(2) as executor:
        store = with_catalog(tmp_path / "state.db")
        accounts.put(store, Account("key", "secret", "mine", seed.LOCAL_DOMAIN, administrator=True))
        domains.put_provider_domain(store, "elsewhere")
        users.assign(store, "elsewhere", "owner@elsewhere", users.OWNER)
        accounts.put(store, Account("other", "secret", "theirs", "elsewhere"))
        engines.of("t").stored.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        jobs = Jobs(store, lambda job, run: job.query.endswith("limit 0") or (run.stopping.wait() and False))
        app = build(Service(engines, store, executor, clock=lambda: NOW), jobs)

        def ask(method: str, path: str, json: Any = None, token: str = "mine") -> tuple[int, dict[str, Any]]:
            content = b"" if json is None else dumps(json).encode()
            answer = answered(app, method, f"/search{path}", content, {"authorization": f"Bearer {token}"})
            body = answer.json()
            assert body.pop("timestamp") == int(NOW * 1000)
            assert re.fullmatch(r"[0-9a-f]{12}", body.pop("cid"))
            if answer.is_error:
                del body["reason"], body["data"]
            return answer.status_code, body

        yield ask
        jobs.close()
        store.close()


def launch(ask: Ask, **more: Any) -> str:
    destination = {"type": "DONOTHING", "params": {"friendlyName": "mine", "colour": "red"}}
    status, body = ask("POST", "/query", {"query": "from t", "from": 1, "destination": destination, **more})
    assert status == 200, body
    job_id = str(body["object"]["id"])
    assert body == {"success": True, "msg": "", "status": 0, "object": {"id": job_id}}
    return job_id


def job(job_id: str, status: str) -> dict[str, Any]:
    return {
        "status": status,
        "id": job_id,
        "eventGenerated": 0,
        "eventsSent": 0,
        "lastDatetime": 0,
        "type": "donothing",
        "friendlyName": "mine",
        "query": "from t",
        "error": [],
        "from": 1000,
        "params": {},
        "launched": int(NOW * 1000),
    } | ({"process": f"{socket.gethostname()}/{os.getpid()}"} if status == "RUNNING" else {})


def done(content: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"success": True, "msg": "", "status": 0, "object": content}


def refused(http: int, code: int, message: str) -> tuple[int, dict[str, Any]]:
    told = {"error": {"code": code, "message": message}, "object": [message, message]}
    return http, {"success": False, "msg": message, "status": 1} | told


def test_a_job_is_launched_stopped_started_listed_and_removed(ask: Ask) -> None:
    job_id = launch(ask)
    assert ask("GET", f"/job/{job_id}") == done(job(job_id, "RUNNING"))
    assert ask("GET", f"/job/stop/{job_id}") == done(job(job_id, "STOPPED"))
    assert ask("GET", "/jobs") == done([job(job_id, "STOPPED")])
    assert ask("GET", f"/job/start/{job_id}") == done(job(job_id, "RUNNING"))
    assert ask("DELETE", f"/job/remove/{job_id}") == done(job(job_id, "REMOVED"))
    assert ask("GET", "/jobs") == done([])


def test_what_cannot_be_done_says_why_in_the_envelope(ask: Ask) -> None:
    job_id = launch(ask)
    running = f"job {job_id} is already running"
    assert ask("GET", f"/job/start/{job_id}") == refused(409, 101, running)
    ask("GET", f"/job/stop/{job_id}")
    stopped = f"job {job_id} is STOPPED: only a running job can be stopped"
    assert ask("GET", f"/job/stop/{job_id}") == refused(409, 108, stopped)


def test_a_client_that_can_only_get_removes_a_job_too(ask: Ask) -> None:
    job_id = launch(ask)
    assert ask("GET", f"/job/remove/{job_id}") == done(job(job_id, "REMOVED"))
    assert ask("GET", "/jobs") == done([])


def test_the_known_parameters_of_a_destination_may_be_written_in_any_case(ask: Ask) -> None:
    destination = {"type": "DoNothing", "params": [{"FRIENDLYNAME": "mine"}]}
    status, body = ask("POST", "/query", json={"query": "from t", "from": 1, "destination": destination})
    assert (status, ask("GET", f"/job/{body['object']['id']}")[1]["object"]["friendlyName"]) == (200, "mine")


def test_a_job_that_is_completed_is_left_as_it_is_by_stop_and_start(ask: Ask) -> None:
    job_id = launch(ask, to=2, query="from t limit 0")
    while (completed := ask("GET", f"/job/{job_id}"))[1]["object"]["status"] == "RUNNING":
        time.sleep(0.01)
    expected = job(job_id, "COMPLETED") | {"query": "from t limit 0", "to": 2000}
    assert completed == done(expected)
    assert ask("GET", f"/job/stop/{job_id}") == done(expected)
    assert ask("GET", f"/job/start/{job_id}") == done(expected)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/job/"),
        ("GET", "/job/stop/"),
        ("GET", "/job/start/"),
        ("DELETE", "/job/remove/"),
        ("GET", "/job/remove/"),
    ],
)
def test_an_unknown_job_and_one_of_another_domain_are_the_same(ask: Ask, method: str, path: str) -> None:
    assert ask(method, path + NOWHERE) == refused(404, 100, f"no job {NOWHERE}")
    job_id = launch(ask)
    assert ask(method, path + job_id, token="theirs") == refused(404, 100, f"no job {job_id}")


def test_another_domain_sees_its_own_jobs(ask: Ask) -> None:
    launch(ask)
    assert ask("GET", "/jobs", token="theirs") == done([])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"destination": {"type": "kafka", "params": {"topic": "x"}}},
            "destination.params: kafka needs bootstrap.servers",
        ),
        (
            {"destination": {"type": "ftp"}},
            "unknown destination.type 'ftp' (known types are Kafka, S3, HDFS, donothing)",
        ),
        ({"limit": -1}, "limit '-1' is not a number of rows"),
    ],
)
def test_a_launch_that_could_not_be_delivered_makes_no_job(ask: Ask, fields: dict[str, Any], message: str) -> None:
    body = {"query": "from t", "from": 1, "destination": {"type": "donothing"}} | fields
    assert ask("POST", "/query", body) == refused(400, 1, message)
    assert ask("GET", "/jobs") == done([])


def test_a_launch_that_continues_a_job_stops_it_until_the_new_job_is_removed(ask: Ask) -> None:
    first = launch(ask)
    second = launch(ask, continues=first, query="from t where n = 1")
    old, new = (ask("GET", f"/job/{job}")[1]["object"] for job in (first, second))
    assert (old["status"], new["status"], new["continues"]) == ("STOPPED", "RUNNING", first)
    body = {"query": "from t", "from": 1, "destination": {"type": "donothing"}, "continues": first}
    for answer in (ask("GET", f"/job/start/{first}"), ask("POST", "/query", body)):
        assert (answer[0], answer[1]["error"]["code"]) == (409, 101)
    ask("DELETE", f"/job/remove/{second}")
    assert ask("GET", f"/job/start/{first}")[1]["object"]["status"] == "RUNNING"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from t group by n", "line 1, column 8: groups over the whole range cannot continue another query"),
        ("from t offset 3", "a query that leaves out rows cannot continue another one"),
        ("from nowhere", "line 1, column 6: no table 'nowhere' (tables are t)"),
    ],
)
def test_a_job_runs_on_when_the_one_that_was_to_continue_it_is_refused(ask: Ask, query: str, message: str) -> None:
    first = launch(ask)
    body = {"query": query, "from": 1, "to": 4_000_000_000, "destination": {"type": "donothing"}, "continues": first}
    status, answer = ask("POST", "/query", body)
    assert (status, answer["msg"]) == (400, message)
    assert [job["status"] for job in ask("GET", "/jobs")[1]["object"]] == ["RUNNING"]


def test_only_a_job_of_ones_own_can_be_continued_and_only_by_a_job(ask: Ask) -> None:
    first = launch(ask)
    body = {"query": "from t", "from": 1, "destination": {"type": "donothing"}, "continues": first}
    assert ask("POST", "/query", body, token="theirs") == refused(404, 100, f"no job {first}")
    del body["destination"]
    message = "continues names a job, so the query needs a destination"
    assert ask("POST", "/query", body) == refused(400, 1, message)


def test_a_query_that_cannot_run_is_refused_at_launch_with_its_place(ask: Ask) -> None:
    body = {"query": "from t where m = 1", "from": 1, "destination": {"type": "donothing"}}
    status, answer = ask("POST", "/query", body)
    message = "line 1, column 14: no column 'm' (columns are eventdate, n)"
    assert (status, answer) == (
        400,
        {
            "success": False,
            "msg": message,
            "status": 1,
            "error": {"code": 1, "message": message},
            "object": [message, "no column 'm'"],
            "context": {"line": 1, "column": 14},
        },
    )
    assert ask("GET", "/jobs") == done([])


LAUNCH = {"query": "from t", "from": 1, "destination": {"type": "donothing", "params": {"friendlyName": "x" * 50_000}}}
OPERATIONS: dict[str, tuple[str, str, Any]] = {
    "launch": ("POST", "/search/query", LAUNCH),
    "stop": ("GET", "/search/job/stop/{job}", None),
    "remove": ("DELETE", "/search/job/remove/{job}", None),
    "create a domain": ("POST", "/domain", {"name": "acme", "plan": "basic"}),
    "disable a domain": ("POST", "/domain/old/disable", None),
    "create a role": ("POST", "/domain/old@demo/roles", {"name": "watchers"}),
}


@pytest.mark.parametrize(
    ("name", "operation"),
    [*(("read-only", operation) for operation in OPERATIONS), ("full", "launch"), ("locked", "stop")],
)
def test_what_changes_a_state_that_cannot_be_written_is_refused_with_the_reason(
    tmp_path: Path, name: str, operation: str
) -> None:
    failing, failure = FAILURES[name]
    method, path, body = OPERATIONS[operation]
    with (
        chosen_engine() as engines,
        ThreadPoolExecutor(2) as executor,
        closing(Store(SQLite(tmp_path / "state.db", lock_seconds=0.05))) as store,
        closing(Jobs(store, lambda job, run: run.stopping.wait() and False)) as jobs,
    ):
        seed.catalog(store)
        domains.create(store, seed.RESELLER, {"name": "old", "plan": "basic"})
        mine = Account("key", "secret", "token", seed.LOCAL_DOMAIN, domain_id=1)
        accounts.put(store, mine)
        accounts.put(store, Account("other", "secret", "reseller", "", reseller=seed.RESELLER))
        engines.of("t").stored.create("t", (Column("eventdate", Type.TIMESTAMP),))
        app = build(Service(engines, store, executor, clock=lambda: NOW), jobs)
        job_id = jobs.launch(mine, type="donothing", request=stored_query(), params={}).id
        before = jobs.every(), domains.list_all(store)
        token = "token" if path.startswith("/search") else "reseller"
        with failing(store):
            content = b"" if body is None else dumps(body).encode()
            told = answered(app, method, path.format(job=job_id), content, {"authorization": f"Bearer {token}"})
        content = told.json()
        message = content["object"][1] if "object" in content else content["error"]["message"]
        assert (told.status_code, message.partition("; ")[0]) == (failure.status, failure.message)
        assert (jobs.every(), domains.list_all(store)) == before
