"""Which job a text means: an ID, the beginning of one, or a friendly name."""

import os.path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.api.job_names import SHOWN_ID_CHARS, choose, resolved, shortest
from svcctl.api.models import Job
from svcctl.errors import UsageError

FIRST, SECOND = "3f2a41c0-0000-4000-8000-000000000001", "3f2a41c0-0000-4000-8000-000000000002"
THIRD = "beefbeef-0000-4000-8000-000000000003"
JOBS = [Job(FIRST, "RUNNING", friendly_name="nightly"), Job(SECOND, "STOPPED"), Job(THIRD, "RUNNING")]
NAMED = [*JOBS, Job("7", "RUNNING", friendly_name="beef"), Job("72", "RUNNING", friendly_name="twin")]
TWINS = [*NAMED, Job("8", "STOPPED", friendly_name="twin")]


@pytest.mark.parametrize(
    ("text", "job_id"),
    [
        (FIRST, FIRST),
        ("beefb", THIRD),
        ("BEEFB", THIRD),
        ("nightly", FIRST),
        ("beef", "7"),  # a name before the beginning of an ID
        (FIRST[:-1] + "2", SECOND),
        ("7", "7"),  # a whole ID before the beginning of another
        ("72", "72"),
        ("unknown", "unknown"),
        ("", ""),
        ("night", "night"),
    ],
)
def test_a_text_means_one_job_or_is_left_to_the_service(text: str, job_id: str) -> None:
    assert resolved([text], lambda: NAMED) == [job_id]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "3f2a",
            "2 job IDs begin with '3f2a': 3f2a41c0-0000-4000-8000-000000000001 nightly, "
            "3f2a41c0-0000-4000-8000-000000000002",
            "give more of the ID",
        ),
        ("twin", "2 jobs are named 'twin': 72 RUNNING, 8 STOPPED", "give the ID of one"),
    ],
)
def test_a_text_that_may_mean_several_jobs_is_refused_with_those(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolved([THIRD, text], lambda: TWINS)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_the_list_is_requested_once_and_not_for_whole_ids() -> None:
    requests = []

    def jobs() -> list[Job]:
        requests.append("list")
        return JOBS

    assert choose([FIRST, THIRD, FIRST], jobs).ids == [FIRST, THIRD]
    assert requests == []
    chosen = choose(["nightly", "beef", THIRD], jobs)
    assert (chosen.ids, chosen.jobs(), requests) == ([FIRST, THIRD], JOBS, ["list"])


@given(st.lists(st.text("ab-", min_size=1, max_size=12), unique=True, max_size=8))
def test_the_beginning_of_an_id_in_a_list_means_that_job(ids: list[str]) -> None:
    jobs = [Job(one, "RUNNING") for one in ids]
    size = shortest(ids)
    assert [resolved([one[:size]], lambda: jobs) for one in ids] == [[one] for one in ids]
    alike = max((len(os.path.commonprefix([a, b])) for a in ids for b in ids if a != b), default=0)  # noqa: RUF071
    assert size == max(SHOWN_ID_CHARS, alike + 1)
