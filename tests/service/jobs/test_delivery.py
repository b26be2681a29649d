"""A job's rows reach a destination exactly once, wherever the service dies, and whatever arrives meanwhile."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support.engines import engines_of, new_lake
from support.events import batches, selected

from svcctl.api.models import JobStatus
from svcctl.dates.epochs import to_ms
from svcctl.dates.range import Range
from svcctl.errors import Unavailable
from svcctl.service import rendering
from svcctl.service.accounts.accounts import Account
from svcctl.service.destinations import JobDestination, Memo
from svcctl.service.engines import Engines
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.table_rules import ColumnChange
from svcctl.service.jobs import delivery, job_table, step_log
from svcctl.service.jobs.checkpoint import Checkpoint, JobProgress, Rest, StoredQuery
from svcctl.service.jobs.continuation import follow
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.runner import JobRun
from svcctl.service.language import compile, parse
from svcctl.service.language.types import Column, Type
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import Step
from svcctl.service.rendering import DateStyle, arrow
from svcctl.service.rendering.rows import CSV
from svcctl.service.state.store import Store
from svcctl.service.verification.expected import Production
from svcctl.service.verification.verify import delivered_by

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
    begun: list[tuple[int, list[bytes]]] = field(default_factory=list)
    """The files whose commit was begun, some by services that died in it."""

    def danger(self) -> None:
        """A moment in which the service may die, or the destination not answer."""
        for due, error in ((self.deaths, Killed()), (self.failures, Unavailable("it does not answer"))):
            if due:
                due[0] -= 1
                if due[0] < 0:
                    due.pop(0)
                    raise error


def hashed(rows: list[bytes]) -> str:
    return hashlib.sha256(b"".join(rows)).hexdigest()


class Small(JobDestination):
    """What both kinds have in common: batches of about 100 bytes, and dangers everywhere."""

    rows = CSV

    def __init__(self, world: World) -> None:
        self.world = world
        self.batch: list[bytes] = []

    def room(self) -> int:
        return 100 - sum(map(len, self.batch))

    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        self.world.danger()
        assert b"".join(line.encode() for line in lines.to_pylist()) == bytes(arrow.text(lines))
        self.batch += [line.encode() for line in lines.to_pylist()]


class Files(Small):
    """Replaces what has the same number, as s3 and hdfs do."""

    repeats = True

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self.world.danger()
        self.number = memo.get("parts", 0)
        return sent

    def prepare(self) -> Memo:
        return {"parts": self.number, "sha256": [hashed(self.batch)]} if self.batch else {}

    def commit(self) -> Memo:
        self.world.begun.append((self.number, self.batch))
        self.world.danger()
        self.world.files[self.number] = self.batch
        self.world.danger()
        self.batch = []
        self.number += 1
        return {"parts": self.number}


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


@dataclass(frozen=True)
class Delivered:
    """What is there in the end: the rows that each job delivered, and the last job."""

    held: list[list[bytes]]
    job: StoredJob
    answer: list[bytes]
    """What the first query answers over all events."""


def run_to_the_end(
    kind: type[Small],
    queries: list[str],
    arrivals: list[list[int]],
    deaths: list[int],
    failures: list[int],
    *,
    endless: bool = True,
) -> Delivered:
    """Deliver a job for each query, which continues the one before it.

    A change comes at each death, and when events arrive; the last job runs to the end of the range. Without `endless`,
    the others have that end, too.
    """
    worlds: dict[str, World] = {}
    clock, deaths, failures = World(), list(deaths), list(failures)
    coming, left = list(enumerate(arrivals)), list(queries)
    with (
        DuckDBEngine() as engine,
        tempfile.TemporaryDirectory() as directory,
        closing(Store(Path(directory) / "state.db")) as store,
        closing(Jobs(store, lambda job, run: False)) as launched,
    ):
        engine.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("text", Type.STR)))

        def happens() -> None:
            """New events, one lot after the other, then the next query, and then the end of the range."""
            if coming:
                index, seconds = coming.pop(0)
                append(engine, seconds, index * 1000)
                clock.now += timedelta(minutes=10)
            elif left:
                run.stopping.set()
            else:
                clock.now = END + timedelta(minutes=1)

        def launch(continues: str | None) -> str:
            query = left.pop(0)
            until = None if left and endless else END
            request = StoredQuery(AskedQuery(query, Range(FIRST, until), "csv", continues=continues), LAUNCH)
            type_ = "s3" if kind.repeats else "kafka"
            job_id = launched.launch(ME, type=type_, request=request, params={}, follow=follow).id
            worlds[job_id] = World(deaths=deaths, failures=failures)
            return job_id

        def connect(_: str, name: str, *__: Any, endless: bool) -> JobDestination:
            return kind(worlds[name])

        happens()
        job_id, done = launch(None), False
        while not done:
            job = job_table.get(store, job_id)
            assert job is not None
            run = JobRun(job_id, store, job.fence, stopping=Idle(happens))
            with suppress(Killed):
                done = delivery.deliver(engines_of(engine), lambda: clock.now, job, run, connect=connect)
            if left and not done:
                job_id = launch(job_id)
        check_log(store, engines_of(engine), worlds)
        job = job_table.get(store, job_id)
        assert job is not None
        plan = compile(parse(queries[0]), engine.tables(), dialect=engine.dialect, start=FIRST, end=END, now=LAUNCH)
        with rendering.stream(engine, plan, [CSV.text(plan.columns, DateStyle())]) as stream:
            answer = [row.encode() for batch in stream for row in batch.column(0).to_pylist()]
    return Delivered([_held(world) for world in worlds.values()], job, answer)


def check_log(store: Store, engines: Engines, worlds: dict[str, World]) -> None:
    """The log of each job produces its rows again in the same order, and has each file once, with its rows."""
    for job_id, world in worlds.items():
        job = job_table.get(store, job_id)
        assert job is not None
        held = _held(world)
        delivered, whole = delivered_by(store, job)
        assert (delivered.first, delivered.sent) == (0, len(held))
        rest = replace(job.rest, type="s3")  # all of these destinations have csv
        production = Production(engines, rest, 0, delivered.sent, whole, lambda: False)
        entries = list(step_log.steps(store, job_id, delivered.sent))
        rows = [line for part in production.rows(entries) for _, line, _ in part.rows()]
        assert (rows, production.faults) == (held, [])
        assert len({entry.first for entry in entries}) == len(entries) <= len(held)
        files = [(file.number, file.end - file.first, file.sha256[-1]) for file in delivered.files]
        numbered = sorted(world.files.items())
        assert files == [(number, len(batch), hashed(batch)) for number, batch in numbered]


def _held(world: World) -> list[bytes]:
    # A service that was only suspended ends its commit at any later moment, which changes nothing.
    assert [world.files[number] for number, _ in world.begun] == [batch for _, batch in world.begun]
    return world.log or [row for number in sorted(world.files) for row in world.files[number]]


seconds = st.lists(st.integers(0, 7199), min_size=1, max_size=40)
"""Moments of the range, in no order: late events, and events of one moment."""
dangers = st.lists(st.integers(0, 30), max_size=12)
SLOW = [pytest.param(kind, marks=pytest.mark.slow, id=f"{kind.__name__}, often") for kind in (Files, Log, TornLog)]
KINDS = pytest.mark.parametrize("kind", [Files, *SLOW])
FEW = settings(max_examples=settings().max_examples // 25)
"""2 examples, and 6 in the slow tests: each delivers events with an engine and a store of its own."""


@KINDS
@FEW
@given(arrivals=st.lists(seconds, min_size=1, max_size=4), deaths=dangers, failures=dangers)
def test_every_row_is_there_once(
    kind: type[Small], arrivals: list[list[int]], deaths: list[int], failures: list[int]
) -> None:
    query = "from t where n % 3 != 1 select n, text"
    done = run_to_the_end(kind, [query], arrivals, deaths, failures)
    assert [sorted(rows) for rows in done.held] == [sorted(done.answer)]
    assert (done.job.progress.sent, done.job.progress.last_datetime) == (len(done.answer), to_ms(END))


@KINDS
@FEW
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
    done = run_to_the_end(kind, [query], arrivals, deaths, failures)
    [held] = done.held
    assert len(held) == len(done.answer) == done.job.progress.sent
    assert len(set(held)) == len(held)


@KINDS
@FEW
@given(first=seconds, deaths=dangers, failures=dangers)
def test_a_period_is_there_once_and_complete(
    kind: type[Small], first: list[int], deaths: list[int], failures: list[int]
) -> None:
    # later events fall into periods that are still open, or they would rightly be missing
    arrivals = [[second % 3600 for second in first], [4500 + second % 300 for second in first]]
    query = "from t group every 1m by n % 2 as half every 1m select count() as count"
    done = run_to_the_end(kind, [query], arrivals, deaths, failures)
    assert done.held == [done.answer]


@KINDS
@FEW
@given(arrivals=st.lists(seconds, min_size=1, max_size=4), deaths=dangers, failures=dangers)
@example(arrivals=[[0], [0], [4140]], deaths=[], failures=[2])  # a period without events closes before the commit
def test_every_event_is_in_one_group_or_counted_as_late(
    kind: type[Small], arrivals: list[list[int]], deaths: list[int], failures: list[int]
) -> None:
    query = "from t where n >= 0 group every 1m select count() as count"
    done = run_to_the_end(kind, [query], arrivals, deaths, failures)
    grouped = sum(int(row.rpartition(b",")[2]) for rows in done.held for row in rows)
    late = done.job.progress.checkpoint.late
    assert grouped + (late.count if late else 0) == sum(map(len, arrivals))


@KINDS
@FEW
@given(arrivals=st.lists(seconds, min_size=1, max_size=3), deaths=dangers, failures=dangers)
def test_a_group_without_periods_waits_for_the_end_of_the_range(
    kind: type[Small], arrivals: list[list[int]], deaths: list[int], failures: list[int]
) -> None:
    query = "from t group by text, n % 5 as five select count() as count, max(n) as most"
    done = run_to_the_end(kind, [query], arrivals, deaths, failures)
    assert done.held == [done.answer]


# A job that another one continues


@KINDS
@FEW
@given(
    arrivals=st.lists(seconds, min_size=1, max_size=6),
    deaths=dangers,
    failures=dangers,
    changes=st.integers(1, 5),
    endless=st.booleans(),
)
@example(arrivals=[[*range(40)]], deaths=[4], failures=[], changes=1, endless=True)  # in the middle of a step
def test_every_event_is_delivered_once_by_a_job_or_by_one_that_continues_it(
    kind: type[Small], arrivals: list[list[int]], deaths: list[int], failures: list[int], changes: int, endless: bool
) -> None:
    queries = [f'from t select n, "{number}" as job' for number in range(changes + 1)]
    held = run_to_the_end(kind, queries, arrivals, deaths, failures, endless=endless).held
    expected = [lot * 1000 + at for lot, seconds in enumerate(arrivals) for at in range(len(seconds))]
    assert sorted(int(row.split(b",")[0]) for rows in held for row in rows) == expected


@KINDS
@FEW
@given(first=seconds, deaths=dangers, failures=dangers, groups=st.lists(st.booleans(), min_size=2, max_size=4))
def test_every_event_is_in_one_row_or_in_one_group_when_the_query_changes_between_these(
    kind: type[Small], first: list[int], deaths: list[int], failures: list[int], groups: list[bool]
) -> None:
    # single events that follow groups have an end, and groups behind these are refused
    assume([grouped for grouped, _ in groupby(groups)].count(True) < 2)
    # later events fall into periods that are still open, or they would rightly be missing
    lots = [
        [second % 3600 for second in first],
        *([4500 + 600 * lot + second % 300 for second in first] for lot in (0, 1)),
    ]
    queries = ["from t group every 1m select count() as n" if grouped else "from t select 1 as n" for grouped in groups]
    held = run_to_the_end(kind, queries, lots, deaths, failures).held
    assert sum(int(row.rpartition(b",")[2]) for rows in held for row in rows) == sum(map(len, lots))


def test_a_job_says_that_the_rest_of_the_one_before_cannot_be_delivered(tmp_path: Path) -> None:
    world = World(failures=[0])
    with DuckDBEngine() as engine, closing(Store(tmp_path / "state.db")) as store:
        engine.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("text", Type.STR)))
        append(engine, [1, 2, 3], 0)
        engines = engines_of(engine)
        request = StoredQuery(AskedQuery("from t select n", Range(FIRST, None), "csv"), LAUNCH)
        step = Step(0, 0, None, engine.mark("t"), to_ms(FIRST), None, 0, last=False)
        before = Rest("old", "donothing", {}, request, JobProgress(1, 0, Checkpoint(step)))
        with closing(Jobs(store, lambda job, run: False)) as launched:
            job_id = launched.launch(ME, type="donothing", request=request, params={}).id
        job = job_table.get(store, job_id)
        assert job is not None
        job = replace(job, progress=JobProgress(before=before))
        assert job_table.save(store, job_id, job.fence, job.progress)
        run = JobRun(job_id, store, job.fence)

        def stop() -> None:
            run.stopping.set()

        run.stopping = Idle(stop)
        assert not delivery.deliver(engines, lambda: LAUNCH, job, run, connect=lambda *_, endless: Files(world))
        kept = job_table.get(store, job_id)
    assert kept is not None
    assert run.error == ("job old, which this one continues: it does not answer",)
    assert kept.progress.to_json() == job.progress.to_json()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("query", "delivered"),
    [
        ("from t", [f"2024-01-01 00:00:0{n}.000,{n}" for n in (0, 1, 2)] + ["2024-01-01 00:00:03.000,0.5"]),
        (
            "from t select *, n + 1 as m",
            [f"2024-01-01 00:00:0{n}.000,{n},{n + 1}" for n in (0, 1, 2)] + ["2024-01-01 00:00:03.000,0.5,1.5"],
        ),
        ("from t select n", ["0", "1", "2", "0.5"]),
    ],
)
def test_a_job_keeps_its_columns_when_its_table_gains_some(
    query: str, delivered: list[str], tmp_path: Path, *, shared: bool
) -> None:
    """A column is added while the job runs, another one while it is stopped; then a column gets a wider type."""
    world, columns = World(), (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
    tables = new_lake(str(tmp_path / "tables")) if shared else DuckDBEngine()
    with tables as engine, closing(Store(tmp_path / "state.db")) as store:
        engines = engines_of(engine)

        def add(n: float, *changed: Column) -> None:
            now = {column.name: column for column in (engine.table("t").columns if n else columns)}
            after = tuple((now | {column.name: column for column in changed}).values())
            change = ColumnChange(tuple(now.values()), after) if changed else None
            event = {
                "eventdate": FIRST.replace(tzinfo=None) + timedelta(seconds=3 if n == 0.5 else n),
                "n": n,
                "a": "x",
            }
            event |= {column.name: None for column in after if column.name not in event}
            rows = batches(after, [[event[column.name] for column in after]])
            engine.append("t", rows, create=None if n else columns, change=change)
            world.now += timedelta(minutes=1)

        add(0)
        asked = AskedQuery(query, Range(FIRST, None), "csv")
        request = StoredQuery(asked, LAUNCH, mark=engine.mark("t"), columns=("eventdate", "n"))
        job_table.add(store, StoredJob("one", ME.owner, JobStatus.RUNNING, "donothing", "", query, request, {}))

        def run_until(*steps: Callable[[], None]) -> None:
            left = list(steps)

            def happens() -> None:
                left.pop(0)() if left else run.stopping.set()

            run = JobRun("one", store)
            run.stopping = Idle(happens)
            job = job_table.get(store, "one")
            assert job is not None
            delivery.deliver(engines, lambda: world.now, job, run, connect=lambda *_, endless: Files(world))

        run_until(lambda: add(1, Column("a", Type.STR)))
        add(2, Column("b", Type.BOOL))
        run_until(lambda: None, lambda: add(0.5, Column("n", Type.FLOAT8)), lambda: None)
        engine.check_mark("t", request.mark or 0)
    lines = [row.decode().rstrip() for row in _held(world)]
    assert lines == delivered


@pytest.mark.parametrize(
    ("query", "reached"),
    [
        ("from t where n < 0", LAUNCH + timedelta(minutes=20)),
        ("from t where n < 0 group every 15m select count() as count", LAUNCH + timedelta(minutes=15)),
    ],
)
def test_the_last_date_moves_on_where_nothing_matches_and_is_kept_by_a_stop(
    query: str, reached: datetime, tmp_path: Path
) -> None:
    world = World()
    with DuckDBEngine() as engine:
        engines = engines_of(engine)
        engine.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        store = Store(tmp_path / "state.db")
        request = StoredQuery(AskedQuery(query, Range(FIRST, None), "csv"), LAUNCH)
        runs: list[JobRun] = []
        begun = threading.Event()

        def happens() -> None:
            world.now += timedelta(minutes=10)
            if world.now == LAUNCH + timedelta(minutes=40):
                runs[0].stopping.set()

        def deliver(job: StoredJob, run: JobRun) -> bool:
            run.stopping = Idle(happens)
            runs.append(run)
            begun.set()
            return delivery.deliver(engines, lambda: world.now, job, run, connect=lambda *_, endless: Files(world))

        jobs = Jobs(store, deliver)
        job_id = jobs.launch(ME, type="donothing", request=request, params={}).id
        assert begun.wait(10)
        assert runs[0].ended.wait(10)
        job = job_table.get(store, job_id)
        jobs.close()
        store.close()
    assert job is not None
    assert (job.progress.sent, job.progress.checkpoint.step is not None) == (0, True)
    assert datetime.fromtimestamp(job.progress.last_datetime / 1000, UTC) == reached


def test_events_in_a_batch_that_is_open_are_with_the_destination_until_it_fails(tmp_path: Path) -> None:
    world = World()
    with DuckDBEngine() as engine:
        engines = engines_of(engine)
        values = f"SELECT TIMESTAMP '{FIRST.replace(tzinfo=None)}' AS eventdate, 1::BIGINT AS n"
        engine.append("t", selected(values), create=(Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        store = Store(tmp_path / "state.db")
        request = StoredQuery(AskedQuery("from t", Range(FIRST, None), "csv"), LAUNCH)
        run = JobRun("one", store)
        seen: list[tuple[int, int]] = []

        def happens() -> None:
            """Each time the job waits: its batch is open, then a second row meets two failures."""
            seen.append((run.accepted, run.reached))
            world.now += timedelta(minutes=10)
            match len(seen):
                case 3:
                    world.failures = [0, 1]
                    engine.append("t", selected(values))
                case 5:
                    run.stopping.set()

        run.stopping = Idle(happens)
        job = StoredJob("one", ME.owner, JobStatus.RUNNING, "donothing", "", "from t", request, {})
        job_table.add(store, job)
        with suppress(Unavailable):
            delivery.deliver(engines, lambda: world.now, job, run, connect=lambda *_, endless: Files(world))
        store.close()
    launch, later = to_ms(LAUNCH), to_ms(LAUNCH + timedelta(minutes=10))
    assert seen == [(launch, 0), (launch, 0), (later, 0), (0, 0), (0, 0)]


def test_a_job_whose_table_is_away_shows_it_stands_still_and_recovers(tmp_path: Path) -> None:
    world = World()
    folder, away = tmp_path / "tables", tmp_path / "away"
    with new_lake(str(folder)) as lake:
        engines = engines_of(lake)
        lake.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        store = Store(tmp_path / "state.db")
        request = StoredQuery(AskedQuery("from t", Range(FIRST, None), "csv"), LAUNCH)
        runs: list[JobRun] = []
        begun = threading.Event()
        seen: list[tuple[tuple[str, ...], datetime]] = []

        def happens() -> None:
            """Each time the job waits: it follows, its table goes away, and it is back."""
            job = job_table.get(store, runs[0].job_id)
            assert job is not None
            seen.append((job.error, datetime.fromtimestamp(runs[0].reached / 1000, UTC)))
            world.now += timedelta(minutes=10)
            match len(seen):
                case 1:
                    folder.rename(away)
                case 3:
                    away.rename(folder)
                case 4:
                    runs[0].stopping.set()

        def deliver(job: StoredJob, run: JobRun) -> bool:
            run.stopping = Idle(happens)
            runs.append(run)
            begun.set()
            return delivery.deliver(engines, lambda: world.now, job, run, connect=lambda *_, endless: Files(world))

        jobs = Jobs(store, deliver)
        jobs.launch(ME, type="donothing", request=request, params={})
        assert begun.wait(10)
        assert runs[0].ended.wait(10)
        jobs.close()
        store.close()
    reason = (f"cannot read the shared folder {folder}: it does not exist",)
    assert [error for error, _ in seen] == [(), reason, reason, ()]
    first = seen[0][1]
    assert [reached - first for _, reached in seen] == [timedelta(minutes=at) for at in (0, 0, 0, 30)]


def test_a_job_shows_how_many_events_came_too_late_for_its_groups(tmp_path: Path) -> None:
    world = World()
    query = "from t group every 10m select count() as count"
    with DuckDBEngine() as engine:
        engines = engines_of(engine)
        engine.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("text", Type.STR)))
        append(engine, [0, 1, 601], 0)
        store = Store(tmp_path / "state.db")
        request = StoredQuery(AskedQuery(query, Range(FIRST, None), "csv"), LAUNCH)
        runs: list[JobRun] = []
        begun = threading.Event()
        shown: list[object] = []

        def happens() -> None:
            """Events come for periods of the first half hour, which the first step has closed."""
            shown.append(jobs.get(ME, runs[0].job_id).extra.get("late"))
            world.now += timedelta(minutes=1)
            append(engine, [5 * len(shown)] * len(shown), 10)
            if len(shown) == 4:
                runs[0].stopping.set()

        def deliver(job: StoredJob, run: JobRun) -> bool:
            run.stopping = Idle(happens)
            runs.append(run)
            begun.set()
            return delivery.deliver(engines, lambda: world.now, job, run, connect=lambda *_, endless: Files(world))

        jobs = Jobs(store, deliver)
        job_id = jobs.launch(ME, type="donothing", request=request, params={}).id
        assert begun.wait(10)
        assert runs[0].ended.wait(10)
        stored_late = jobs.get(ME, job_id).extra["late"]
        jobs.close()
        store.close()
    assert (shown, stored_late) == ([0, 1, 3, 6], 6)
