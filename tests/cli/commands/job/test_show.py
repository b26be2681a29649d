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
    assert [one["id"] for one in several] == [OTHER, STOPPED]


BODIES = [
    (400, '{"error":{"code":12,"message":"no such thing"}}', 1, "no such thing (code 12)"),
    (
        500,
        '{"msg":"it broke","status":500,"timestamp":1,"cid":"c1","object":["it broke","because of that"]}',
        1,
        "it broke: because of that (code 500, cid c1)",
    ),
    (500, '{"error":"server_error","status":500,"cid":"c2"}', 1, "server_error (code 500, cid c2)"),
    (
        400,
        '{"msg":"too much","code":624,"timestamp":1,"cid":"c3","context":{"limit":5}}',
        1,
        "too much (code 624, cid c3)",
    ),
    (
        400,
        '{"error":"Bad parameters","object":["406 : Date from not valid format"]}',
        1,
        "Bad parameters: Date from not valid format (code 406)",
    ),
    (200, '{"msg":"no job","status":100,"cid":"c4"}', 4, "no job (code 100, cid c4)"),
    (200, '{"msg":"cannot change status","status":101,"cid":"c5"}', 5, "cannot change status (code 101, cid c5)"),
    (200, '{"msg":"not running","status":108,"cid":"c6"}', 5, "not running (code 108, cid c6)"),
    (401, '{"msg":"who are you","status":1}', 3, "who are you (code 1)"),
]


@pytest.mark.parametrize(
    ("verb", "status", "body", "code", "message"),
    [("show", *row) for row in BODIES] + [(verb, *row) for verb in ("stop", "start", "rm") for row in BODIES[5:8]],
)
def test_every_error_body_has_its_code_and_message(
    scripted: Callable[..., CompletedProcess[str]],
    verb: str,
    status: int,
    body: str,
    code: int,
    message: str,
) -> None:
    done = scripted(verb, "X", *(["--yes"] if verb == "rm" else []), status=status, body=body)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.split("\n")[0] == f"svcctl: error: {message}"


@pytest.mark.parametrize(("status", "code"), [(403, 3), (502, 6), (503, 6), (520, 6), (522, 6), (524, 6)])
def test_a_page_of_a_proxy_is_told_from_an_answer(
    scripted: Callable[..., CompletedProcess[str]], status: int, code: int
) -> None:
    page = "<html><head><title>Go away</title></head><body>please</body></html>"
    done = scripted("show", "X", status=status, body=page, type="text/html")
    assert (done.returncode, done.stdout) == (code, "")
    assert "Go away" in done.stderr


def test_the_date_up_to_which_a_job_is_verified_is_shown(
    scripted: Callable[..., CompletedProcess[str]],
) -> None:
    job = {"id": "X", "status": "RUNNING", "verified": 1_795_640_400_000}
    done = scripted("show", "X", "-f", "table", status=200, body=json.dumps({"status": 0, "object": job}))
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("verified")] == [
        ["verified", "2026-11-25", "21:00:00.000"]
    ]
