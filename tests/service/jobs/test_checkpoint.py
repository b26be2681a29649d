"""What a job stores as JSON is read again."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update
from support.waiting import eventually

from svcctl.api.models import JobStatus
from svcctl.dates.range import Range
from svcctl.service.accounts.accounts import Owner
from svcctl.service.jobs import job_table
from svcctl.service.jobs.checkpoint import Batch, Checkpoint, JobProgress, Rest, StoredQuery
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.runner import JobRun
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import CoveredEvents, Step
from svcctl.service.state import schema
from svcctl.service.state.store import Store

OWNER = Owner(reseller="north")
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
QUERY = StoredQuery(
    AskedQuery(
        "from t where n > 1 limit 7",
        Range(FIRST, FIRST + timedelta(hours=2)),
        date_format="iso",
        zone=timezone(timedelta(hours=2)),
        skip=2,
        limit=9,
        continues="a",
    ),
    FIRST + timedelta(hours=1),
    CoveredEvents(None, 4, 1704067200000),
    columns=("eventdate", "n"),
)
QUERY_STORED = {
    "version": 1,
    "query": "from t where n > 1 limit 7",
    "from": 1704067200000,
    "to": 1704074400000,
    "zone": 120,
    "dateFormat": "iso",
    "skip": 2,
    "limit": 9,
    "launched": 1704070800000,
    "continues": "a",
    "covered": {"since": None, "until": 4, "end": 1704067200000},
    "mark": None,
    "columns": ("eventdate", "n"),
}
STEP = Step(3, 2, 4, 10, 1, None, 5, False)
CHECKPOINT = Checkpoint(STEP, {"parts": 1})
CHECKPOINT_STORED = {
    "version": 1,
    "step": {"first": 3, "skip": 2, "since": 4, "until": 10, "start": 1, "end": None, "now": 5, "last": False},
    "memo": {"parts": 1},
}


def test_a_query_is_stored_with_the_version_of_its_format() -> None:
    assert QUERY.to_json() == QUERY_STORED


def test_a_checkpoint_is_stored_with_the_version_of_its_format() -> None:
    assert CHECKPOINT.to_json() == CHECKPOINT_STORED
    begun = Checkpoint(batch=Batch(7, (STEP,)))
    batch = {"end": 7, "steps": [[3, 2, 4, 10, 1, None, 5, False]]}
    assert begun.to_json() == {"version": 1, "step": None, "memo": {}, "batch": batch}


def test_the_rest_of_a_job_is_stored_with_its_own_progress() -> None:
    assert JobProgress(3, 5).to_json() == {}
    assert JobProgress(3, 5, CHECKPOINT).to_json() == CHECKPOINT_STORED
    rest = Rest("a", "kafka", {"topic": "t"}, QUERY, JobProgress(3, 5, CHECKPOINT))
    assert JobProgress(0, 7, before=rest).to_json() == {
        "version": 1,
        "rest": {
            "job_id": "a",
            "type": "kafka",
            "params": {"topic": "t"},
            "request": QUERY_STORED,
            "sent": 3,
            "last_datetime": 5,
            "checkpoint": CHECKPOINT_STORED,
        },
    }


marks = st.none() | st.integers() | st.text()
moments = st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
)


@given(
    query=st.builds(
        StoredQuery,
        st.builds(
            AskedQuery,
            st.text(),
            st.builds(Range, moments, st.none() | moments),
            date_format=st.sampled_from(["default", "sql", "iso"]),
            zone=st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))),
            skip=st.integers(0),
            limit=st.none() | st.integers(0),
        ),
        moments,
    ),
    step=st.builds(
        Step,
        first=st.integers(),
        skip=st.integers(),
        since=marks,
        until=marks,
        start=st.integers(),
        end=st.none() | st.integers(),
        now=st.integers(),
        last=st.booleans(),
    ),
)
def test_what_is_stored_comes_back_from_json_as_it_was(query: StoredQuery, step: Step) -> None:
    assert StoredQuery.from_json(json.loads(json.dumps(query.to_json()))) == query
    for checkpoint in (None, Checkpoint(step, {"partition": 3}), Checkpoint(batch=Batch(9, (step, step)))):
        progress = JobProgress(3, 5, checkpoint)
        for saved in (progress, JobProgress(0, 7, before=Rest("a", "kafka", {"topic": "t"}, query, progress))):
            read = JobProgress.from_json(saved.sent, saved.last_datetime, json.loads(json.dumps(saved.to_json())))
            assert read == saved


NEWER = "the job was stored by a newer svcctl, in format 2; this one reads formats up to 1"


@pytest.mark.parametrize(
    ("column", "stored", "reason"),
    [
        ("request", QUERY_STORED | {"version": 2}, NEWER),
        ("checkpoint", CHECKPOINT_STORED | {"version": 2}, NEWER),
        ("request", {}, job_table.DAMAGED),
        ("checkpoint", {"version": 1, "step": {"first": 3}, "memo": {}}, job_table.DAMAGED),
        ("checkpoint", ["no object"], job_table.DAMAGED),
    ],
)
def test_a_job_that_cannot_be_read_is_listed_with_the_others_and_stops_with_the_reason(
    column: str, stored: object, reason: str, tmp_path: Path
) -> None:
    with closing(Store(tmp_path / "state.db")) as store, closing(Jobs(store, delivers)) as jobs:
        for job_id in ("damaged", "whole"):
            job_table.add(store, StoredJob(job_id, OWNER, JobStatus.RUNNING, "kafka", "", "from t", QUERY, {}))
        with store.transaction() as connection:
            row = update(schema.jobs).where(schema.jobs.c.id == "damaged")
            connection.execute(row.values({"last_datetime": 5, column: stored}))
        jobs.settle()
        eventually(lambda: [job.status for job in jobs.every()] == ["STOPPED", "COMPLETED"])
        damaged, _ = jobs.every()
        assert (damaged.last_datetime, damaged.error) == (5, (reason,))


def delivers(job: StoredJob, run: JobRun) -> bool:
    return job.rest.job_id == "whole"
