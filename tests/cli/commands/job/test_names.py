"""How the verbs of `svcctl job` find a job: by its ID, the beginning of the ID, or its name."""

from __future__ import annotations

import pytest
from support.jobs import COMPLETED, NIGHTLY, OTHER, STOPS, UNKNOWN, VERBS, requests
from support.reseller import Reseller


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (NIGHTLY, [STOPS]),
        ("nightly", ["GET /search/jobs", STOPS]),
        (NIGHTLY[:-5], ["GET /search/jobs"]),
        (NIGHTLY[:-5].upper(), ["GET /search/jobs"]),
        ("3f", ["GET /search/jobs"]),
        ("cafe", ["GET /search/jobs", f"GET /search/job/stop/{COMPLETED}"]),
        ("nope", ["GET /search/jobs", "GET /search/job/stop/nope"]),
    ],
)
def test_the_list_is_requested_unless_a_whole_id_is_typed(job: Reseller, name: str, sent: list[str]) -> None:
    assert requests(job("stop", name)) == sent


def test_a_beginning_of_several_ids_is_refused_before_any_change(job: Reseller) -> None:
    for verb in VERBS:
        done = job(verb, "resting", "3f2a", answers=["y"])
        assert (done.code, done.stdout, requests(done)) == (2, "", ["GET /search/jobs"]), verb
        assert {OTHER, NIGHTLY} <= {*done.stderr.split()}, verb


def test_an_unknown_job_exits_4_and_the_hint_says_where_jobs_are(job: Reseller) -> None:
    for verb in VERBS:
        for name in ("nope", UNKNOWN):
            done = job(verb, name, *(["--yes"] if verb == "rm" else []))
            assert (done.code, done.stdout) == (4, ""), verb
            assert name in done.stderr, verb
            assert "'svcctl job list'" in done.stderr.split("\n")[1], verb


def test_a_name_that_is_mistyped_is_suggested(job: Reseller) -> None:
    for verb in VERBS:
        done = job(verb, "nightley", *(["--yes"] if verb == "rm" else []))
        assert (done.code, "'nightly'" in done.stderr.split("\n")[1]) == (4, True), verb


def test_a_command_that_changes_a_job_wants_more_than_a_few_characters_of_its_id(job: Reseller) -> None:
    for verb in ("stop", "start", "restart", "rm"):
        done = job(verb, "caf", *(["--yes"] if verb == "rm" else []))
        assert (done.code, done.stdout, requests(done)) == (2, "", ["GET /search/jobs"]), verb
        assert COMPLETED in done.stderr.split()
    assert job("show", "caf").code == 0
