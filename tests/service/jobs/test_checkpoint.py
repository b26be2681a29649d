"""What a job stores as JSON is read again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.range import Range
from svcctl.errors import ServiceError
from svcctl.service.jobs.checkpoint import Batch, Checkpoint, StoredQuery
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import Covered, Step

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
    Covered(None, 4, 1704067200000),
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
    begun = Checkpoint(None, {}, Batch(7, (STEP,)))
    batch = {"end": 7, "steps": [[3, 2, 4, 10, 1, None, 5, False]]}
    assert begun.to_json() == {"version": 1, "step": None, "memo": {}, "batch": batch}


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
    step=st.builds(Step, since=st.none() | st.integers() | st.text()),
)
def test_what_is_stored_comes_back_from_json_as_it_was(query: StoredQuery, step: Step) -> None:
    assert StoredQuery.from_json(json.loads(json.dumps(query.to_json()))) == query
    for checkpoint in (Checkpoint(step, {"partition": 3}), Checkpoint(None, {}, Batch(9, (step, step)))):
        assert Checkpoint.from_json(json.loads(json.dumps(checkpoint.to_json()))) == checkpoint


def test_the_format_of_a_newer_service_is_refused() -> None:
    message = "the job was stored by a newer svcctl, in format 2; this one reads formats up to 1"
    with pytest.raises(ServiceError) as caught:
        StoredQuery.from_json(QUERY_STORED | {"version": 2})
    assert caught.value.message == message
    with pytest.raises(ServiceError) as caught:
        Checkpoint.from_json(CHECKPOINT_STORED | {"version": 2})
    assert caught.value.message == message
