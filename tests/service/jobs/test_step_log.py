"""The log of a job: it grows with what is delivered, goes with its job, and an old state gets the steps it knows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.engines import engines_of
from support.events import store as store_events
from support.stored_queries import FIRST, FIRST_MS, stored_query

from svcctl.api.models import JobStatus
from svcctl.service.accounts.accounts import Owner
from svcctl.service.destinations import JobDestination
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.jobs import delivery, job_table, step_log
from svcctl.service.jobs.checkpoint import Checkpoint, JobProgress, Rest
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.runner import JobRun
from svcctl.service.jobs.step_log import PAGE_ENTRIES, FileEntry, LogEntries, StepEntry
from svcctl.service.language.types import Column, Type
from svcctl.service.queries.schedule import Step
from svcctl.service.rendering.rows import CSV
from svcctl.service.state.store import Store

LOOKS = 1000
STEP = Step(5, 0, None, 7, FIRST_MS, None, FIRST_MS, last=False)


class Counting(JobDestination):
    """Takes all rows, and counts them as Kafka does."""

    rows = CSV
    counts = True
    patience = 0.0

    def __init__(self) -> None:
        self.there = self.written = 0

    def open(self, sent: int, memo: Any, head: bytes) -> int:
        return self.there

    @property
    def memo(self) -> dict[str, Any]:
        return {"partition": 0, "offset": 10 * self.there}

    def room(self) -> int:
        return 1000

    def write(self, lines: Any, row: int, dates: Any) -> None:
        self.written += len(lines)

    def commit(self) -> dict[str, Any]:
        self.there = self.written
        return self.memo


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "state.db")) as store:
        yield store


def add(store: Store, job_id: str, progress: JobProgress | None = None, continues: str | None = None) -> StoredJob:
    query = stored_query(continues=continues)
    job = StoredJob(job_id, Owner(None, None), JobStatus.RUNNING, "kafka", job_id, "from t", query, {})
    job_table.add(store, job)
    if progress is not None:
        assert job_table.save(store, job_id, 0, progress)
    found = job_table.get(store, job_id)
    assert found is not None
    return found


def log(store: Store, *entries: LogEntries) -> None:
    with store.transaction() as connection:
        for entry in entries:
            step_log.write(connection, entry)


def test_a_job_without_new_events_adds_nothing_to_its_log(store: Store) -> None:
    job, looks = add(store, "a"), 0
    run = JobRun("a", store, job.fence)
    with DuckDBEngine() as engine:

        def events(second: int, n: int) -> None:
            columns = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
            store_events(engine, "t", columns, [(FIRST.replace(tzinfo=None) + timedelta(seconds=second), n)])

        class Idle(type(run.stopping)):  # type: ignore[misc]
            def wait(self, timeout: float | None = None) -> bool:
                nonlocal looks
                looks += 1
                if looks == LOOKS // 2:
                    events(5, 2)
                if looks >= LOOKS:
                    self.set()
                return bool(self.is_set())

        run.stopping = Idle()
        events(1, 1)
        destination = Counting()
        assert not delivery.deliver(
            engines_of(engine), lambda: FIRST + timedelta(hours=1), job, run, connect=lambda *_, endless: destination
        )
    assert looks >= LOOKS
    found = list(step_log.steps(store, "a", 1 << 40))
    assert [(entry.first, entry.offset) for entry in found] == [(0, 0), (1, 10)]
    assert step_log.offsets(store, "a", 1) == [(0, 0)]


def test_the_log_goes_with_its_job_and_a_removed_one_gets_none(store: Store) -> None:
    add(store, "a")
    entries = LogEntries("a", (StepEntry(5, STEP, 3),), (FileEntry(0, 0, 5, ("x",)),))
    log(store, entries, LogEntries("never", (StepEntry(0, STEP),)))
    log(store, LogEntries("a", (StepEntry(5, STEP, 4),), (FileEntry(0, 0, 5, ("x", "y")),)))  # in its place
    assert list(step_log.steps(store, "a", 6)) == [StepEntry(5, STEP, 4)]
    assert step_log.last(store, "a") == StepEntry(5, STEP, 4)
    assert step_log.files(store, "a") == [FileEntry(0, 0, 5, ("x", "y"))]
    assert step_log.last(store, "never") is None
    job_table.remove(store, "a")
    log(store, entries)
    assert (step_log.last(store, "a"), step_log.files(store, "a")) == (None, [])
    add(store, "a")
    assert step_log.last(store, "a") is None


def test_the_log_of_a_removed_job_stays_as_long_as_a_job_that_continues_it(store: Store) -> None:
    add(store, "a")
    log(store, LogEntries("a", (StepEntry(0, STEP),)))
    add(store, "b", continues="a")
    add(store, "c", continues="b")
    for job_id in ("a", "b"):
        removed = job_table.remove(store, job_id)
        assert removed is not None
        assert removed.id == job_id
        assert (job_table.get(store, job_id), job_table.remove(store, job_id)) == (None, None)
    assert [job.id for job in job_table.every(store)] == ["c"]
    assert [(job.id, job.status) for job in job_table.logged(store, "a", "b")] == [
        ("a", JobStatus.REMOVED),
        ("b", JobStatus.REMOVED),
    ]
    assert step_log.last(store, "a") == StepEntry(0, STEP)
    job_table.remove(store, "c")
    assert (job_table.logged(store), step_log.last(store, "a")) == ([], None)


def test_a_long_log_is_read_in_pages_and_with_fewer_offsets(store: Store) -> None:
    entries = 2 * PAGE_ENTRIES
    add(store, "a")
    log(store, LogEntries("a", tuple(StepEntry(n, STEP, 2 * n) for n in range(entries))))
    assert [entry.first for entry in step_log.steps(store, "a", entries)] == list(range(entries))
    offsets = step_log.offsets(store, "a", 100, most=20)
    assert offsets[:3] == [(0, 0), (8, 16), (16, 32)]
    assert len(offsets) <= 20


def test_nothing_is_logged_by_a_run_that_lost_its_lease(store: Store) -> None:
    add(store, "a")
    entries = LogEntries("a", (StepEntry(5, STEP),))
    assert not job_table.save(store, "a", 9, JobProgress(7, 0, Checkpoint(STEP)), entries)
    assert step_log.last(store, "a") is None


def test_an_old_state_gets_the_steps_of_its_checkpoints(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with closing(Store(file)) as store:
        add(store, "new", JobProgress(0, 0))
        add(store, "a", JobProgress(9, 0, Checkpoint(STEP, {"offset": 3})))
        add(store, "empty", JobProgress(5, 0, Checkpoint(STEP)))  # all of its rows are of earlier steps
        rest = Rest("a", "kafka", {}, stored_query(), JobProgress(11, 0, Checkpoint(STEP)))
        add(store, "b", JobProgress(0, 0, before=rest))
        add(store, "damaged", JobProgress(9, 0, Checkpoint(STEP)))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("update jobs set checkpoint = ? where id = 'damaged'", (json.dumps([1]),))
        connection.executescript(
            "drop table job_steps; drop table job_files; alter table jobs drop column verified;"
            "alter table jobs drop column kept_from; update alembic_version set version_num = '0003'"
        )
    with closing(Store(file)) as store:
        found = {job_id: step_log.last(store, job_id) for job_id in ("new", "a", "empty", "b", "damaged")}
    assert found == {**dict.fromkeys(found), "a": StepEntry(5, STEP)}
