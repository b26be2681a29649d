"""`svcctl job wait`: the states to wait for, errors of jobs, and the end of the time."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest
from support.jobs import NIGHTLY, OTHER, REFUSED, has_read_everything, launch
from support.reseller import Machine, Reseller
from support.shells import Shell


def test_a_script_waits_for_a_job_and_removes_it(jobs: Shell) -> None:
    job_id = launch(jobs, "--to", "01/02/2024 00:00:00")
    done = jobs("job", "wait", job_id, "--max-time", "30", "-f", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [
        "id,status,failing,type,friendlyName,eventGenerated,eventsSent,lastDatetime,error,query",
        f"{job_id},COMPLETED,false,donothing,{jobs.ndjson('job', 'show', job_id)[0]['friendlyName']},4,4,"
        "1706745600000,[],from sample",
        "",
    ]
    assert jobs("job", "rm", "--yes", job_id).returncode == 0
    assert jobs("job", "list", "--ids").stdout == ""


def test_waiting_ends_when_the_time_is_up(jobs: Shell) -> None:
    job_id = launch(jobs)
    done = jobs("job", "wait", job_id, "--timeout", "20", "--max-time", "0.1")
    assert (done.returncode, done.stdout) == (6, "")
    assert [job_id in done.stderr, "RUNNING" in done.stderr] == [True, True]


def test_waiting_for_an_impossible_state_fails_at_once(jobs: Shell) -> None:
    job_id = launch(jobs)
    assert jobs("job", "wait", job_id, "--for", "RUNNING").returncode == 0
    assert jobs("job", "stop", job_id).returncode == 0
    done = jobs("job", "wait", job_id)
    assert (done.returncode, done.stderr) == (
        5,
        f"svcctl: error: job {job_id} is STOPPED: it does not become COMPLETED by itself\n"
        f"hint: it can be started again; to see how far it has read: svcctl job show {job_id}\n",
    )
    assert jobs("job", "wait", job_id, "--for", "COMPLETED,STOPPED").returncode == 0
    assert jobs("job", "rm", "--yes", job_id).returncode == 0
    assert jobs("job", "wait", job_id, "--for", "REMOVED").returncode == 0


def test_waiting_for_a_job_that_has_no_end_says_so_once(place: Machine, job: Reseller) -> None:
    has_read_everything(place, OTHER)
    done = job("wait", "other", "--max-time", "1")
    assert (done.code, done.stderr.count("new events"), done.stderr.count("\n")) == (6, 1, 2)
    assert job("wait", "other", "--for", "RUNNING").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "stderr"),
    [
        (
            ["other", "--for", "nonsense"],
            2,
            "svcctl: error: there is no state 'nonsense'\nhint: states are RUNNING, STOPPED, COMPLETED, REMOVED\n",
        ),
        (
            ["other", "--for", "completed,failing"],
            2,
            "svcctl: error: cannot wait for FAILING, which means a running job with an error\n"
            "hint: without it, 'svcctl job wait' fails as soon as a job reports an error\n",
        ),
        (["other", "--for", "runing"], 2, "svcctl: error: there is no state 'runing'\nhint: did you mean 'RUNNING'?\n"),
        (
            ["other", "--for", ","],
            2,
            "svcctl: error: ',' does not name a state\nhint: states are RUNNING, STOPPED, COMPLETED, REMOVED\n",
        ),
        (["other", "--for", "paused,running"], 0, ""),
        (
            ["nightly", "--for", "RUNNING", "--max-time", "0.001", "--keep-waiting"],
            6,
            f"svcctl: job {NIGHTLY} is FAILING and reports: {REFUSED} (still waiting)\n"
            f"svcctl: error: job {NIGHTLY} is FAILING ({REFUSED}), not RUNNING, and the time is up\n",
        ),
        (
            ["nightly"],
            1,
            f"svcctl: error: job {NIGHTLY} is FAILING and reports: {REFUSED}\n"
            "hint: --keep-waiting waits until it recovers\n",
        ),
    ],
)
def test_waiting_refuses_unknown_states_and_reports_errors(
    job: Reseller, arguments: list[str], code: int, stderr: str
) -> None:
    done = job("wait", *arguments)
    assert (done.code, done.stderr) == (code, stderr)


@pytest.mark.parametrize("verb", ["start", "wait"])
def test_a_job_that_stopped_with_an_error_is_no_success(
    scripted: Callable[..., CompletedProcess[str]], verb: str
) -> None:
    body = '{"status":0,"msg":"","object":{"id":"X","status":"STOPPED","error":["disk full"]}}'
    done = scripted(verb, "X", status=200, body=body)
    assert (done.returncode, done.stdout) == (1, "")
    assert "disk full" in done.stderr
