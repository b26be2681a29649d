"""A job's rows reach a destination exactly once, wherever the service dies, and whatever arrives meanwhile."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.events import selected

from svcctl.api.dates import Range
from svcctl.errors import Unavailable
from svcctl.service import rendering
from svcctl.service.destinations import Destination, Memo
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.jobs import delivery, stored
from svcctl.service.jobs.checkpoint import StoredQuery
from svcctl.service.jobs.jobs import Jobs, Run
from svcctl.service.jobs.stored import StoredJob
from svcctl.service.language import compile, parse
from svcctl.service.language.types import Column, Type
from svcctl.service.provisioning.accounts import Account
from svcctl.service.queries.asked import AskedQuery
from svcctl.service.rendering import Dates, arrow
from svcctl.service.rendering.rows import CSV
from svcctl.service.store import Store

ME = Account("key", "secret", None, "local")
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
LAUNCH = FIRST + timedelta(hours=1)
END = LAUNCH + timedelta(hours=1)


class Killed(BaseException):
    """The process is gone in this moment: nothing that comes after it happens."""


@dataclass
class World:
    """What outlives a service: the clock, what destinations hold, and when the next deaths are due."""

    now: datetime = LAUNCH
    deaths: list[int] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    files: dict[int, list[bytes]] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)

    def danger(self) -> None:
        """A moment in which the service may die, or the destination not answer."""
        for due, error in ((self.deaths, Killed()), (self.failures, Unavailable("it does not answer"))):
            if due:
                due[0] -= 1
                if due[0] < 0:
                    due.pop(0)
                    raise error


class Small(Destination):
    """What both kinds have in common: batches of about 100 bytes, and dangers everywhere."""

    rows = CSV

    def __init__(self, world: World) -> None:
        self.world = world
        self.batch: list[bytes] = []

    def room(self) -> int:
        return 100 - sum(map(len, self.batch))

    def write(self, lines: pa.StringArray, row: int) -> None:
        self.world.danger()
        assert b"".join(line.encode() for line in lines.to_pylist()) == bytes(arrow.text(lines))
        self.batch += [line.encode() for line in lines.to_pylist()]


class Files(Small):
    """Replaces what has the same number, as s3 and hdfs do."""

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self.world.danger()
        self.number = memo.get("number", 0)
        return sent

    def commit(self) -> Memo:
        self.world.danger()
        self.world.files[self.number] = self.batch
        self.world.danger()
        self.batch = []
        self.number += 1
        return {"number": self.number}


class Log(Small):
    """Appends all of a batch or nothing, and counts, as Kafka does."""

    counts = True

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self.world.danger()
        return len(self.world.log)

    def commit(self) -> Memo:
        self.world.danger()
        self.world.log += self.batch
        self.world.danger()
        self.batch = []
        return {}


class TornLog(Log):
    """Appends row by row, as a Kafka without transactions does."""

    def commit(self) -> Memo:
        while self.batch:
            self.world.danger()
            self.world.log.append(self.batch.pop(0))
        return {}


class Idle(threading.Event):
    """A pause in which something happens instead of time passing."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__()
        self.happens = happens

    def wait(self, timeout: float | None = None) -> bool:
        self.happens()
        return self.is_set()


def append(engine: DuckDBEngine, seconds: list[int], first: int) -> None:
    """Events at so many seconds after FIRST, numbered from `first`."""
    values = ", ".join(f"({second}, {first + index})" for index, second in enumerate(seconds))
    events = f"""SELECT TIMESTAMP '2024-01-01' + to_seconds(s) AS eventdate, n, repeat('x', n % 7) AS text
        FROM (VALUES {values}) AS v(s, n)"""
    engine.append("t", selected(events))


def run_to_the_end(
    kind: type[Small], query: str, arrivals: list[list[int]], deaths: list[int], failures: list[int]
) -> tuple[list[bytes], list[bytes], StoredJob]:
    """What the destination holds in the end, what the query answers over all events, and the job."""
    world = World(deaths=list(deaths), failures=list(failures))
    with DuckDBEngine() as engine, tempfile.TemporaryDirectory() as directory:
        engine.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("text", Type.STR)))
        coming = list(enumerate(arrivals))

        def happens() -> None:
            """New events, one lot after the other, and then the end of the range."""
            if coming:
                index, seconds = coming.pop(0)
                append(engine, seconds, index * 1000)
                world.now += timedelta(minutes=10)
            else:
                world.now = END + timedelta(minutes=1)

        happens()
        store = Store(Path(directory) / "state.db")
        asked = AskedQuery(query, Range(FIRST, END), "csv")
        request = StoredQuery(asked, LAUNCH).to_json()
        launched = Jobs(store, lambda job, run: False)
        job_id = launched.launch(ME, type="donothing", query=query, request=request, params={}).id
        launched.close()
        while True:
            job = stored.get(store, job_id)
            assert job is not None
            run = Run(job_id, store, stopping=Idle(happens))
            try:
                done = delivery.deliver(engine, lambda: world.now, job, run, connect=lambda *_, endless: kind(world))
            except Killed:
                continue
            assert done
            break
        job = stored.get(store, job_id)
        assert job is not None
        plan = compile(parse(query), engine.tables(), dialect=engine.dialect, start=FIRST, end=END, now=LAUNCH)
        with rendering.stream(engine, plan, [CSV.text(plan.columns, Dates())]) as stream:
            answer = [row.encode() for batch in stream for row in batch.column(0).to_pylist()]
        store.close()
    held = world.log or [row for number in sorted(world.files) for row in world.files[number]]
    return held, answer, job


seconds = st.lists(st.integers(0, 7199), min_size=1, max_size=40)
"""Moments of the range, in no order: late events, and events of one moment."""
dangers = st.lists(st.integers(0, 30), max_size=12)
KINDS = pytest.mark.parametrize("kind", [Files, Log, TornLog])


@KINDS
@settings(max_examples=20, deadline=None)
@given(arrivals=st.lists(seconds, min_size=1, max_size=4), deaths=dangers, failures=dangers)
def test_every_row_is_there_once(
    kind: type[Small], arrivals: list[list[int]], deaths: list[int], failures: list[int]
) -> None:
    held, answer, job = run_to_the_end(kind, "from t where n % 3 != 1 select n, text", arrivals, deaths, failures)
    assert sorted(held) == sorted(answer)
    assert (job.sent, job.last_datetime) == (len(answer), int(END.timestamp() * 1000))


@KINDS
@settings(max_examples=10, deadline=None)
@given(
    arrivals=st.lists(seconds, min_size=1, max_size=4),
    deaths=dangers,
    failures=dangers,
    skip=st.integers(0, 50),
    limit=st.integers(0, 60),
)
def test_offset_and_limit_count_over_all_that_arrives(
    kind: type[Small], arrivals: list[list[int]], deaths: list[int], failures: list[int], skip: int, limit: int
) -> None:
    query = f"from t select n offset {skip} limit {limit}"
    held, answer, job = run_to_the_end(kind, query, arrivals, deaths, failures)
    assert len(held) == len(answer) == job.sent
    assert len(set(held)) == len(held)


@KINDS
@settings(max_examples=10, deadline=None)
@given(first=seconds, deaths=dangers, failures=dangers)
def test_a_period_is_there_once_and_complete(
    kind: type[Small], first: list[int], deaths: list[int], failures: list[int]
) -> None:
    # later events fall into periods that are still open, or they would rightly be missing
    arrivals = [[second % 3600 for second in first], [4500 + second % 300 for second in first]]
    query = "from t group every 1m by n % 2 as half every 1m select count() as count"
    held, answer, _ = run_to_the_end(kind, query, arrivals, deaths, failures)
    assert held == answer


@KINDS
@settings(max_examples=10, deadline=None)
@given(arrivals=st.lists(seconds, min_size=1, max_size=3), deaths=dangers, failures=dangers)
def test_a_group_without_periods_waits_for_the_end_of_the_range(
    kind: type[Small], arrivals: list[list[int]], deaths: list[int], failures: list[int]
) -> None:
    query = "from t group by text, n % 5 as five select count() as count, max(n) as most"
    held, answer, _ = run_to_the_end(kind, query, arrivals, deaths, failures)
    assert held == answer
