"""Checks of jobs by a service: which jobs and rows they cover, what they remember, and how many run at once."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.application import answered
from support.engines import engines_of
from support.events import store as store_events
from support.state import with_catalog

from svcctl.api.models import JobStatus
from svcctl.dates.range import Range
from svcctl.errors import CredentialsError, Unavailable
from svcctl.service.accounts import accounts, domains, seed, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.engines import Engines
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.hosts.allowed_hosts import EVERYTHING
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.http.monitoring import exposed
from svcctl.service.jobs import job_table, step_log
from svcctl.service.jobs.checkpoint import Checkpoint, JobProgress, StoredQuery
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.step_log import FileEntry, LogEntries, StepEntry
from svcctl.service.language.types import Column, Type
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import Step
from svcctl.service.state.store import Store
from svcctl.service.verification import (
    CheckProgress,
    CheckTally,
    DeliveredJob,
    DeliveryFinding,
    ExpectedRows,
    FaultKind,
)
from svcctl.service.verification.verify import Checks, check

NOW = 1_750_000_000.0
MS = 1_704_067_200_000
"""The epoch milliseconds of the first event; one follows each second."""
EVENTS = 20
PLACE = {"topic": "t", "file": "/t.csv"}
TOKEN = {"authorization": "Bearer mine"}
Found = Iterator[DeliveryFinding | CheckProgress | CheckTally]


@dataclass
class Peer:
    """A destination that has all rows, but for the `faults` of each job, and what it was asked."""

    faults: dict[str, list[DeliveryFinding]] = field(default_factory=dict)
    asked: list[DeliveredJob] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    failure: Exception | None = None
    hidden_from: int | None = None
    gone: int = 0
    waits: bool = False
    """Whether a check makes progress only, until it is stopped."""
    ended: threading.Event = field(default_factory=threading.Event)

    def __call__(
        self,
        job: DeliveredJob,
        expected: Iterable[ExpectedRows],
        *,
        allowed: object,
        stopped: Callable[[], bool],
    ) -> Found:
        self.asked.append(job)
        yield CheckProgress(1)
        while self.waits and not stopped():
            time.sleep(0.01)
            yield CheckProgress(2)
        if stopped():
            self.ended.set()
            return
        if self.failure is not None:
            raise self.failure
        dates = []
        for part in expected:
            if part.lines is not None and part.dates is not None:
                self.lines += part.lines.to_pylist()
                dates += part.dates.to_pylist()
        faults = self.faults.get(job.job_id, [])
        yield from faults
        counts = Counter({fault.kind: fault.end - fault.first for fault in faults})
        gap = min((fault.from_ms for fault in faults if fault.from_ms is not None), default=None)
        last, hidden = max(dates, default=None), self.hidden_from
        yield CheckTally(job.sent - job.first, counts, self.gone, gap_from=gap, last_date=last, hidden_from=hidden)


@dataclass
class World:
    service: Service
    jobs: Jobs
    peer: Peer
    app: Any
    mark: int

    @property
    def store(self) -> Store:
        return self.service.store

    def add(self, job_id: str, *, sent: int = EVENTS, type: str = "kafka", first: int = 0, **more: Any) -> StoredJob:
        """A stopped job that has delivered the first events in one step, whose log begins with the row `first`."""
        asked = AskedQuery(
            "from t select n", Range(datetime(2024, 1, 1, tzinfo=UTC), None), continues=more.pop("continues", None)
        )
        request = StoredQuery(asked, datetime(2024, 1, 2, tzinfo=UTC))
        step = Step(0, 0, None, self.mark, MS, None, 0, last=False)
        memo = {"partition": 3, "offset": 40} if type == "kafka" else {"parts": 2}
        progress = JobProgress(sent, MS + 1000 * (sent - 1), Checkpoint(step, memo))
        account = accounts.with_key(self.store, "key")
        assert account is not None
        job = StoredJob(
            job_id,
            account.owner,
            JobStatus.STOPPED,
            type,
            f"name of {job_id}",
            asked.query,
            request,
            {"topic": "t", "file": "/t.csv"},
        )
        job_table.add(self.store, replace(job, progress=progress, **more))
        if first == 0:
            self.log(job_id, StepEntry(0, step, 7))
        return job

    def log(self, job_id: str, *steps: StepEntry, files: tuple[FileEntry, ...] = ()) -> None:
        with self.store.transaction() as connection:
            step_log.write(connection, LogEntries(job_id, steps, files))

    def ask(self, job_id: str, options: str = "", token: str = "mine") -> tuple[int, Any]:
        """The status, and the lines of a stream without progress, or the message of a refusal."""
        headers = {"authorization": f"Bearer {token}"}
        answer = answered(self.app, "GET", f"/service/jobs/{job_id}/verify{options}", headers=headers)
        if answer.is_error:
            return answer.status_code, (answer.json()["reason"], answer.json()["msg"])
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in answer.text.splitlines()]
        return answer.status_code, [line for line in lines if "progress" not in line]

    def results(self, job_id: str, options: str = "") -> list[Any]:
        status, lines = self.ask(job_id, options)
        assert status == 200, lines
        return [line["result"] for line in lines if "result" in line]

    def verified(self, job_id: str) -> int | None:
        job = job_table.get(self.store, job_id)
        assert job is not None
        return job.verified


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with (
        DuckDBEngine() as engine,
        ThreadPoolExecutor(2) as executor,
        closing(with_catalog(tmp_path / "state.db")) as store,
        closing(Jobs(store, lambda job, run: False)) as jobs,
    ):
        accounts.put(store, Account("key", "secret", "mine", seed.LOCAL_DOMAIN, administrator=True))
        domains.put_provider_domain(store, "elsewhere")
        users.assign(store, "elsewhere", "owner@elsewhere", users.OWNER)
        accounts.put(store, Account("other", "secret", "theirs", "elsewhere"))
        columns = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
        events = [(datetime.fromtimestamp(MS / 1000 + n, UTC).replace(tzinfo=None), n) for n in range(EVENTS)]
        store_events(engine, "t", columns, events)
        engines: Engines = engines_of(engine)
        service, peer = Service(engines, store, executor, clock=lambda: NOW), Peer()
        app = build(service, jobs, checks=Checks(store, engines, jobs, EVERYTHING, peer))
        yield World(service, jobs, peer, app, engine.mark("t"))


def result(job_id: str, **more: Any) -> dict[str, Any]:
    last = MS + 1000 * (EVENTS - 1)
    kinds = dict.fromkeys(("missing", "duplicated", "outOfOrder", "altered", "truncated", "foreign"), 0)
    others = dict.fromkeys(("noLongerThere", "notReproducible", "notYet", "hidden"), 0)
    found = {"job": job_id, "name": f"name of {job_id}", "rows": EVENTS, "upTo": last, **kinds, **others}
    return found | {"verified": last, "notes": []} | more


def gap(first: int, end: int, kind: FaultKind = FaultKind.MISSING) -> DeliveryFinding:
    dates = MS + 1000 * first, MS + 1000 * (end - 1)
    return DeliveryFinding(kind, first, end, 3, 50, None, *dates)


def test_the_rows_of_the_log_are_compared_with_the_destination(world: World) -> None:
    world.add("a")
    assert world.ask("a") == (200, [{"result": result("a")}])
    assert world.peer.lines == [f'{{"n":{n}}}' for n in range(EVENTS)]
    [delivered] = world.peer.asked
    assert (delivered.sent, delivered.first, delivered.partition, delivered.offset) == (EVENTS, 0, 3, 40)
    assert (delivered.offsets, delivered.running(), delivered.since) == ([(0, 7)], False, None)


def test_a_gap_is_told_with_its_dates_and_its_query(world: World) -> None:
    world.add("a")
    world.peer.faults["a"] = [gap(4, 6), gap(9, 10, FaultKind.FOREIGN)]
    _, [missing, foreign, told] = world.ask("a")
    assert missing == {
        "finding": {
            "job": "a",
            "kind": "missing",
            "rows": [4, 5],
            "count": 2,
            "partition": 3,
            "offset": 50,
            "from": MS + 4000,
            "to": MS + 5000,
            "query": "from t select n",
            "range": [MS, None],
        }
    }
    assert (foreign["finding"]["kind"], "query" in foreign["finding"]) == ("foreign", False)
    assert told == {"result": result("a", missing=2, foreign=1, verified=MS + 3999)}


def test_the_verified_date_never_passes_a_gap(world: World) -> None:
    world.add("a", sent=10)
    assert (world.results("a")[0]["verified"], world.verified("a")) == (MS + 9000, MS + 9000)
    world.peer.faults["a"] = [gap(4, 6)]
    world.results("a")
    assert world.verified("a") == MS + 3999  # it moves back
    world.peer.faults["a"] = [gap(7, 8)]
    world.results("a")
    assert world.verified("a") == MS + 6999
    world.peer.faults["a"] = [replace(gap(2, 3), from_ms=None, to_ms=None)]
    world.results("a")
    assert world.verified("a") == MS  # the date of the gap is not known, so the gap may be the first row
    world.peer.faults["a"] = [gap(2, 3, FaultKind.DUPLICATED)]
    world.peer.faults["a"] = [replace(world.peer.faults["a"][0], from_ms=None)]
    world.results("a")
    assert world.verified("a") == MS + 9000
    [shown] = [job for job in world.jobs.every() if job.id == "a"]
    assert shown.extra["verified"] == MS + 9000
    labels = 'job="a",name="name of a",type="kafka"'
    text = "".join(exposed(world.service, world.jobs))
    assert f"svcctl_job_verified_timestamp_seconds{{{labels}}} {MS / 1000 + 9}\n" in text


def test_a_gap_before_the_kept_rows_moves_the_verified_date_back(world: World) -> None:
    world.add("a", sent=10)
    assert world.results("a")[0]["verified"] == MS + 9000
    world.peer.faults["a"], world.peer.gone = [gap(4, 6, FaultKind.ALTERED)], 2
    assert world.results("a", f"?from={MS + 15000}")[0]["verified"] == MS + 3999


def test_a_gap_without_a_date_in_an_older_job_leaves_no_row_of_the_newer_job_verified(world: World) -> None:
    world.add("a")
    world.add("b", continues="a")
    world.peer.faults["a"] = [replace(gap(2, 3), from_ms=None, to_ms=None)]
    assert [result["verified"] for result in world.results("b")] == [MS, MS]


def test_a_date_that_is_not_kept_verifies_no_rows_that_were_missing(world: World) -> None:
    world.add("a")
    world.peer.faults["a"] = [gap(4, 6)]
    assert world.results("a")[0]["verified"] == MS + 3999
    world.peer.faults, world.peer.gone = {}, 2
    assert world.results("a", f"?from={MS + 6000}")[0]["verified"] == MS + 3999
    assert world.results("a", f"?from={MS + 3000}")[0]["verified"] == MS + 19000
    world.peer.faults["a"] = [gap(4, 6)]
    assert world.results("a")[0]["verified"] == MS + 3999
    world.peer.faults = {}
    assert world.results("a", f"?from={MS + 6000}&keep=true")[0]["verified"] == MS + 19000


def test_rows_that_cannot_be_seen_yet_are_not_verified(world: World) -> None:
    world.add("a")
    world.peer.hidden_from = MS + 8000
    assert world.results("a")[0]["verified"] == MS + 7999


def test_a_job_is_verified_with_those_that_it_continues(world: World) -> None:
    world.add("a", sent=15)
    world.log("a", StepEntry(18, None, 90))  # the job after it has delivered the rest
    world.add("b", continues="a")
    world.peer.faults["a"] = [gap(4, 6)]
    assert [(one["job"], one["rows"], one["verified"]) for one in world.results("b")] == [
        ("a", 18, MS + 3999),
        ("b", EVENTS, MS + 3999),
    ]
    assert [(one.job_id, one.sent, one.offset) for one in world.peer.asked] == [("a", 18, 90), ("b", EVENTS, 40)]
    assert job_table.remove(world.store, "a") is not None  # as `job apply` does
    assert job_table.get(world.store, "a") is None
    assert [one["rows"] for one in world.results("b")] == [18, EVENTS]
    assert world.ask("a")[0] == 404


def test_the_kept_date_of_a_job_holds_for_those_that_it_continues(world: World) -> None:
    world.add("a")
    world.add("b", continues="a")
    world.results("b", f"?from={MS + 6000}&keep=true")
    world.results("b")
    assert [(one.job_id, one.since) for one in world.peer.asked] == 2 * [("a", MS + 6000), ("b", MS + 6000)]


def test_a_job_whose_predecessor_is_gone_is_verified_alone(world: World) -> None:
    world.add("b", continues="a")
    [told] = world.results("b")
    [note] = told["notes"]
    assert ("job a" in note, "removed" in note) == (True, True)


def test_a_file_that_nobody_delivered_is_found_without_rows(world: World) -> None:
    world.add("a")
    world.peer.faults["a"] = [DeliveryFinding(FaultKind.FOREIGN, EVENTS, EVENTS, file="t_009.csv")]
    _, [foreign, _] = world.ask("a")
    assert foreign == {"finding": {"job": "a", "kind": "foreign", "file": "t_009.csv"}}


def test_a_job_whose_rest_is_being_delivered_by_another_is_verified_up_to_there(world: World) -> None:
    before = world.add("a", sent=10)
    stored = job_table.get(world.store, "a")
    assert stored is not None
    rest = replace(stored.rest, progress=replace(stored.progress, sent=12))
    world.add("b", continues="a")
    job = job_table.get(world.store, "b")
    assert job is not None
    assert job_table.save(world.store, "b", job.fence, JobProgress(0, 0, before=rest))
    assert [one["rows"] for one in world.results("b")] == [12, 0]
    assert before.id == "a"


def test_a_job_that_goes_on_after_its_position_was_read_has_no_fault(world: World) -> None:
    job = world.add("a", sent=10)  # of the 20 rows of its step
    world.log("a", StepEntry(EVENTS, Step(EVENTS, 0, world.mark, world.mark, MS, None, 0, last=False), 30))
    assert world.results("a") == [result("a", rows=10, upTo=MS + 9000, verified=MS + 9000)]
    [delivered] = world.peer.asked
    assert not delivered.running()
    stored = job_table.get(world.store, "a")
    assert stored is not None
    assert job_table.save(world.store, "a", stored.fence, replace(stored.progress, sent=EVENTS))
    assert delivered.running()
    assert job.id == "a"


def test_a_job_that_is_older_than_its_log_says_where_that_begins(world: World) -> None:
    world.add("a", first=5)
    [note] = world.results("a")[0]["notes"]
    assert "its 20 rows" in note
    assert world.verified("a") is None
    step = Step(5, 0, None, world.mark, MS + 5000, None, 0, last=False)
    world.log("a", StepEntry(5, step, 7))
    [told] = world.results("a")
    [note] = told["notes"]
    assert "begins with row 5, of 2024-01-01 00:00:05" in note
    assert (told["rows"], told["verified"]) == (15, MS + 19000)


def test_files_are_those_of_the_log_and_others_of_the_place_are_known(world: World) -> None:
    world.add("a", type="hdfs")
    world.add("b", type="hdfs")
    world.log("a", files=(FileEntry(0, 0, 12, ("x",)), FileEntry(2, 12, 20, ("y", "z"))))
    world.log("b", files=(FileEntry(1, 0, 12, ("x",)),))
    assert world.results("a") == [result("a")]
    [delivered] = world.peer.asked
    assert [(file.number, file.first, file.end, file.sha256) for file in delivered.files] == [
        (0, 0, 12, ("x",)),
        (2, 12, 20, ("y", "z")),
    ]
    assert delivered.expected_hashes() == {1: {"x"}}
    world.log("b", files=(FileEntry(3, 12, 20, ("x",)),))  # delivered while the check runs
    assert delivered.expected_hashes() == {1: {"x"}, 3: {"x"}}
    world.add("c", type="hdfs", continues="b")
    assert job_table.remove(world.store, "b") is not None
    assert delivered.expected_hashes() == {1: {"x"}, 3: {"x"}}


def test_files_of_a_removed_job_are_known_while_another_job_has_their_place(world: World) -> None:
    world.add("a", type="hdfs")
    world.add("b", type="hdfs", params={"file": "/t.csv", "password": "hidden"})
    world.add("elsewhere", type="hdfs", params={"file": "/u.csv"})
    world.log("b", StepEntry(0, Step(0, 0, None, world.mark, MS, None, 0, last=False)))
    for number, job_id in enumerate(("a", "b", "elsewhere")):
        world.log(job_id, files=(FileEntry(number, 0, 20, ("x",)),))
    world.results("a")
    [delivered] = world.peer.asked
    for job_id in ("b", "elsewhere"):
        assert job_table.remove(world.store, job_id) is not None
    assert (delivered.expected_hashes(), world.ask("b")[0]) == ({1: {"x"}}, 404)
    [left] = [job for job in job_table.logged(world.store) if job.id != "a"]
    assert (left.id, left.params) == ("b", {"fs.defaultFS": "", "file": "/t.csv"})
    assert step_log.last(world.store, "b") is None
    assert job_table.remove(world.store, "a") is not None
    assert job_table.logged(world.store) == []


def test_the_date_from_which_rows_are_kept_is_remembered(world: World) -> None:
    world.add("a")
    world.results("a", f"?from={MS}")
    world.results("a")
    world.results("a", f"?from={MS + 5000}&keep=true")
    world.results("a")
    world.results("a", f"?from={MS}")
    assert [one.since for one in world.peer.asked] == [MS, None, MS + 5000, MS + 5000, MS]


@pytest.mark.parametrize(
    ("job_id", "options", "token", "refused"),
    [
        ("nothing", "", "mine", (404, "no-job")),
        ("a", "", "theirs", (404, "no-job")),
        ("idle", "", "mine", (400, "not-verifiable")),
        ("a", "?from=yesterday", "mine", (400, "refused")),
        ("a", "?keep=true", "mine", (400, "refused")),
        ("a", "?from=1&keep=yes", "mine", (400, "refused")),
        ("a", "", "nobody", (401, "credentials-refused")),
    ],
)
def test_a_check_is_refused_before_it_begins(
    job_id: str, options: str, token: str, refused: tuple[int, str], world: World
) -> None:
    world.add("a")
    world.add("idle", type="donothing")
    status, (reason, _) = world.ask(job_id, options, token)
    assert (status, reason) == refused
    assert world.peer.asked == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [(Unavailable("kafka: no answer for hidden-word"), 503), (CredentialsError("not allowed"), 403)],
)
def test_a_check_that_cannot_go_on_says_why(failure: Exception, code: int, world: World) -> None:
    world.add("a", params={"topic": "t", "sasl.password": "hidden-word"})
    world.peer.failure = failure
    _, [line] = world.ask("a")
    assert (list(line), line["error"]["status"]) == (["error"], code)
    assert "hidden-word" not in line["error"]["message"]
    assert world.verified("a") is None
    assert world.ask("a")[0] == 200  # the check before it is over


async def follow(app: Any, job_id: str, leave: asyncio.Event) -> None:
    """Ask for a check, read its progress, and leave."""
    begun, body = asyncio.Event(), [b""]

    async def receive() -> dict[str, Any]:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if b'"progress"' in message.get("body", b""):
            begun.set()

    path = f"/service/jobs/{job_id}/verify"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer mine")],
        "client": ("127.0.0.1", 1),
        "server": ("service", 80),
        "scheme": "http",
    }
    task = asyncio.create_task(app(scope, receive, send))
    await asyncio.wait_for(begun.wait(), 10)
    await task


def test_a_client_that_leaves_ends_the_check_and_two_run_at_most(world: World) -> None:
    for job_id in ("a", "b", "c"):
        world.add(job_id)
    world.add("d", continues="a")
    world.peer.waits = True
    seen: list[tuple[int, Any]] = []

    async def both() -> None:
        leave = asyncio.Event()
        first = asyncio.create_task(follow(world.app, "a", leave))
        second = asyncio.create_task(follow(world.app, "b", leave))
        await asyncio.sleep(1.5)
        for job_id in ("a", "c", "d"):
            seen.append(await asyncio.to_thread(world.ask, job_id))
        leave.set()
        await asyncio.wait_for(asyncio.gather(first, second), 5)

    asyncio.run(both())
    assert [(status, reason) for status, (reason, _) in seen] == [
        (409, "job-in-check"),
        (409, "service-busy"),
        (409, "job-in-check"),
    ]
    assert world.peer.ended.is_set()
    assert world.service.turns.load() == {"running": 0, "waiting": 0, "idle": 0}
    world.peer.waits = False
    assert world.results("c") == [result("c")]


def test_a_check_ends_soon_after_its_client_left_although_the_storage_is_silent(world: World) -> None:
    async def leave_soon(app: Any) -> None:
        leave = asyncio.Event()
        asyncio.get_running_loop().call_later(1, leave.set)
        await asyncio.wait_for(follow(app, "a", leave), 3)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        world.add("a", type="s3", params={"aws.bucket": "b", "aws.endpoint": url_of(silent)})
        world.log("a", files=(FileEntry(0, 0, 20, ("x",)),))
        checks = Checks(world.store, world.service.engines, world.jobs, EVERYTHING, check)
        asyncio.run(leave_soon(build(world.service, world.jobs, checks=checks)))


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"
