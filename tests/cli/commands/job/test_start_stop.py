"""`svcctl job start`, `stop` and `restart`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest
from support.jobs import COMPLETED, NIGHTLY, OTHER, REFUSED, STOPPED, STOPS, launch, requests
from support.reseller import Reseller
from support.shells import Shell
from support.typed import type_in


def test_a_list_is_piped_into_stop(jobs: Shell) -> None:
    running = [launch(jobs), launch(jobs)]
    complete = launch(jobs, "--to", "01/02/2024 00:00:00")
    assert jobs("job", "wait", complete).returncode == 0
    ids = jobs("job", "list", "--status", "running", "--ids").stdout
    assert ids == "".join(f"{job_id}\n" for job_id in running)
    done = jobs("job", "stop", "-", "-f", "ndjson", stdin=ids)
    assert done.returncode == 0, done.stderr
    stopped = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert [(job["id"], job["status"]) for job in stopped] == [(job_id, "STOPPED") for job_id in running]


def test_several_jobs_are_all_tried_and_the_worst_code_is_the_commands(job: Reseller) -> None:
    done = job("stop", "nope", STOPPED, NIGHTLY, "-f", "ndjson")
    assert (done.code, [json.loads(line)["id"] for line in done.stdout.splitlines()]) == (5, [NIGHTLY])
    errors = [line for line in done.stderr.splitlines() if line.startswith("svcctl: error: ")]
    assert [name in error for name, error in zip(("nope", STOPPED), errors, strict=True)] == [True, True]


def test_starting_a_running_job_exits_5(job: Reseller) -> None:
    assert job("start", OTHER).code == 5


def test_a_failing_job_that_is_stopped_says_why_it_failed_until_it_is_started(job: Reseller) -> None:
    assert job("stop", "nightly").code == 0
    assert json.loads(job("show", NIGHTLY, "-f", "json").stdout)["error"] == [REFUSED]
    listed = job("list", "--status", "STOPPED", "--columns", "friendlyName,error", "-f", "tsv")
    assert listed.stdout == f'friendlyName\terror\nresting\t[]\nnightly\t"[""{REFUSED}""]"\n'
    done = job("restart", "nightly")
    assert [word in done.stderr for word in (NIGHTLY, "STOPPED", REFUSED)] == [True] * 3


def test_a_restart_prints_the_error_that_it_clears(job: Reseller) -> None:
    done = job("restart", "nightly", STOPPED, COMPLETED, "-f", "csv")
    assert [line.split(",")[:2] for line in done.stdout.split("\n")[1:-1]] == [
        [NIGHTLY, "RUNNING"],
        [STOPPED, "RUNNING"],
        [COMPLETED, "COMPLETED"],
    ]
    cleared, unchanged = done.stderr.split("\n")[:-1]
    assert (done.code, REFUSED in cleared, NIGHTLY in cleared, COMPLETED in unchanged) == (0, True, True, True)
    assert requests(done)[1:] == [
        f"GET /search/job/{NIGHTLY}",
        STOPS,
        f"GET /search/job/start/{NIGHTLY}",
        f"GET /search/job/{STOPPED}",
        f"GET /search/job/start/{STOPPED}",
        f"GET /search/job/{COMPLETED}",
    ]


@pytest.mark.parametrize(
    ("verb", "id", "status"),
    [
        ("stop", STOPPED, "STOPPED"),
        ("start", OTHER, "RUNNING"),
        ("start", COMPLETED, "COMPLETED"),
        ("stop", COMPLETED, "COMPLETED"),
    ],
)
def test_if_needed_makes_a_change_of_a_job_idempotent(job: Reseller, verb: str, id: str, status: str) -> None:
    done = job(verb, id, "--if-needed", "-f", "csv")
    assert (done.code, done.stdout.split("\n")[1].split(",")[:2]) == (0, [id, status])
    assert (id in done.stderr, "error" in done.stderr) == (True, False)


def test_a_change_of_several_jobs_says_on_a_terminal_how_many_it_made(job: Reseller) -> None:
    for arguments, changed in (
        (("restart", "nightly", COMPLETED), "restarted 1 of 2 jobs"),
        (("stop", "nightly", "other"), "stopped 2 of 2 jobs"),
        (("start", "nightly", COMPLETED, "--if-needed"), "started 1 of 2 jobs"),
        (("rm", "other", "nope", "--yes"), "removed 1 of 2 jobs"),
    ):
        assert job(*arguments, terminal=True).stderr.split("\n")[-2] == f"svcctl: {changed}"
    done = job("stop", "nightly", "resting", "done", terminal=True)
    assert (done.code, done.stderr.count("error"), "1 of 3" in done.stderr) == (5, 1, True)


@pytest.mark.parametrize("format", ["table", "vertical", "json", "csv"])
def test_the_jobs_that_are_there_are_printed_though_another_one_is_not(job: Reseller, format: str) -> None:
    for verb, name in (("show", "other"), ("stop", "other"), ("start", "other"), ("rm", "resting")):
        done = job(verb, name, "nope", *["--yes"] * (verb == "rm"), "-f", format)
        words = re.findall(f"{OTHER[:8]}|{STOPPED[:8]}|RUNNING|STOPPED|REMOVED", done.stdout)
        status = {"stop": "STOPPED", "rm": "REMOVED"}.get(verb, "RUNNING")
        assert (done.code, words) == (4, [(STOPPED if verb == "rm" else OTHER)[:8], status]), verb


def test_quiet_silences_the_note_that_there_is_nothing_to_do(job: Reseller) -> None:
    for arguments in (("restart", COMPLETED), ("stop", COMPLETED, "--if-needed"), ("stop", STOPPED, "--if-needed")):
        done = job(*arguments, "-q", terminal=True)
        assert (done.code, done.stderr) == (0, ""), arguments


@pytest.mark.parametrize(("terminal", "stderr"), [(True, "svcctl: no IDs: nothing done\n"), (False, "")])
def test_a_list_without_jobs_is_nothing_to_do(
    job: Reseller, monkeypatch: pytest.MonkeyPatch, terminal: bool, stderr: str
) -> None:
    type_in(monkeypatch, b"id,status\n")
    done = job("stop", "-", terminal=terminal)
    assert (done.code, done.stdout, done.stderr, done.sent) == (0, "", stderr, [])


@pytest.mark.parametrize(("verb", "status"), [("stop", "RUNNING"), ("start", "PAUSED"), ("rm", "STOPPED")])
def test_a_change_that_the_service_did_not_make_exits_5(
    scripted: Callable[..., CompletedProcess[str]], verb: str, status: str
) -> None:
    body = json.dumps({"status": 0, "msg": "", "object": {"id": "X", "status": status, "error": []}})
    done = scripted(verb, "X", *["--yes"] * (verb == "rm"), status=200, body=body)
    assert (done.returncode, done.stdout) == (5, "")
    assert status in done.stderr
