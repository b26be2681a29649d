"""`svcctl job show`: all fields of a job, and the errors of a service."""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest
from support.jobs import OTHER, STOPPED
from support.reseller import Reseller


def test_a_job_that_is_shown_alone_is_one_json_object(job: Reseller) -> None:
    assert json.loads(job("show", "other", "-f", "json").stdout)["id"] == OTHER
    assert job("show", "other", "-f", "ndjson", "--columns", "id").stdout == f'{{"id":"{OTHER}"}}\n'
    several = json.loads(job("show", "other", "resting", "-f", "json").stdout)
    assert [shown["id"] for shown in several] == [OTHER, STOPPED]


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (
            500,
            '{"msg":"it broke","status":500,"timestamp":1,"cid":"c1","object":["it broke","because of that"]}',
            1,
            "it broke: because of that (code 500, cid c1)",
        ),
        (200, '{"msg":"no job","status":100,"cid":"c4"}', 4, "no job (code 100, cid c4)"),
        (200, '{"msg":"not running","status":108,"cid":"c6"}', 5, "not running (code 108, cid c6)"),
        (401, '{"msg":"who are you","status":1}', 3, "who are you (code 1)"),
        (502, "<html><title>Go away</title></html>", 6, "the service answered HTTP 502: Go away"),
    ],
)
def test_the_kind_of_an_error_decides_the_exit_code(
    scripted: Callable[..., CompletedProcess[str]], status: int, body: str, code: int, message: str
) -> None:
    """All forms of error bodies are in tests/api/test_refusals.py."""
    done = scripted("show", "X", status=status, body=body)
    assert (done.returncode, done.stdout, done.stderr.split("\n")[0]) == (code, "", f"svcctl: error: {message}")


def test_the_date_up_to_which_a_job_is_verified_is_shown(
    scripted: Callable[..., CompletedProcess[str]],
) -> None:
    job = {"id": "X", "status": "RUNNING", "verified": 1_795_640_400_000}
    done = scripted("show", "X", "-f", "table", status=200, body=json.dumps({"status": 0, "object": job}))
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("verified")] == [
        ["verified", "2026-11-25", "21:00:00.000"]
    ]
