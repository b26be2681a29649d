"""`svcctl job rm`: the question before a removal, and jobs that do not exist."""

from __future__ import annotations

import pytest
from support.jobs import COMPLETED, NIGHTLY, OTHER, STOPPED, UNKNOWN, launch, on_terminal, requests
from support.reseller import Reseller
from support.shells import Shell


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 130, 1), ("", 130, 1), ("y", 0, 0)])
def test_on_a_terminal_the_answer_decides(jobs: Shell, answer: str, code: int, left: int) -> None:
    job_id = launch(jobs)
    assert on_terminal(jobs, ["job", "rm", job_id], f"{answer}\n").code == code
    assert len(jobs.ndjson("job", "list")) == left


def test_the_question_before_a_removal_names_the_jobs(job: Reseller) -> None:
    done = job("rm", "nightly", answers=["n"])
    assert (done.code, done.questions) == (130, [f"Remove job {NIGHTLY}  FAILING  nightly?"])
    done = job("rm", "nightly", COMPLETED, answers=["n"])
    assert done.questions == [
        f"Jobs:\n  {NIGHTLY}  FAILING  nightly\n  {COMPLETED}  COMPLETED  done\nRemove these 2 jobs?"
    ]
    done = job("rm", STOPPED, "-f", "csv", answers=["y"])
    assert (done.code, done.stdout.split("\n")[1].split(",")[:2]) == (0, [STOPPED, "REMOVED"])


def test_nothing_is_removed_and_nobody_is_asked_when_one_of_the_jobs_is_unknown(job: Reseller) -> None:
    done = job("rm", "nightly", "nightley", UNKNOWN, answers=["y"], terminal=True)
    assert (done.code, done.questions) == (4, [])
    assert [word in done.stderr for word in ("'nightly'", UNKNOWN)] == [True, True]
    assert NIGHTLY in job("list", "--ids").stdout


def test_a_removal_passes_over_jobs_that_are_not_there_if_it_may(job: Reseller) -> None:
    done = job("rm", "nope", "resting", "--if-needed", "--yes", "-f", "csv")
    assert (done.code, "nope" in done.stderr) == (0, True)
    assert done.stdout.split("\n")[1].split(",")[:2] == [STOPPED, "REMOVED"]
    done = job("rm", STOPPED, "--if-needed")
    assert (done.code, done.stdout, STOPPED in done.stderr) == (0, "", True)


def test_without_a_terminal_a_removal_is_refused_before_anything_changes(job: Reseller) -> None:
    done = job("rm", "nightly")
    assert (done.code, requests(done), "--yes" in done.stderr) == (2, ["GET /search/jobs"], True)
    done = job("rm", NIGHTLY, OTHER)
    assert (done.code, requests(done), "--yes" in done.stderr) == (2, ["GET /search/jobs"], True)
    assert job("rm", "nightley").code == 4
