"""`svcctl job list`: which jobs are listed, in which order, and how their fields are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import httpx
import pytest
from support.jobs import COMPLETED, NIGHTLY, NOWHERE, OTHER, REFUSED, STOPPED, on_terminal
from support.reseller import Machine, Reseller
from support.scripted import Serve, head, ok
from support.shells import Shell

from svcctl.api.models import JobStatus
from svcctl.service.jobs import job_table


def test_a_table_has_failing_jobs_first_and_short_ids_that_every_command_takes(job: Reseller) -> None:
    listed = job("list", "-f", "tsv")
    assert [line.split("\t")[0] for line in listed.stdout.split("\n")] == ["id", COMPLETED, OTHER, STOPPED, NIGHTLY, ""]
    listed = job("list", "-f", "table")
    rows = [line.split() for line in listed.stdout.split("\n")[2:-1]]
    assert [row[1:3] for row in rows] == [
        ["FAILING", "nightly"],
        ["COMPLETED", "done"],
        ["RUNNING", "other"],
        ["STOPPED", "resting"],
    ]
    shown = job("show", *(row[0] for row in rows), "-f", "ndjson")
    assert [json.loads(line)["id"] for line in shown.stdout.split("\n")[:-1]] == [NIGHTLY, COMPLETED, OTHER, STOPPED]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--failing"], [NIGHTLY]),
        (["--status", "failing"], [NIGHTLY]),
        (["--status", "running"], [OTHER, NIGHTLY]),
        (["--status", "STOPPED,completed"], [COMPLETED, STOPPED]),
        (["--type", "Kafka"], [NIGHTLY]),
        (["--type", "s3"], []),
        (["--sort", "friendlyName:desc", "--top", "2"], [STOPPED, OTHER]),
        (["--sort", "status,friendlyName"], [COMPLETED, NIGHTLY, OTHER, STOPPED]),
    ],
)
def test_a_list_is_narrowed_and_sorted(job: Reseller, options: list[str], ids: list[str]) -> None:
    done = job("list", "--ids", *options)
    assert (done.code, done.stdout.split(), done.stderr) == (0, ids, "")


@pytest.mark.parametrize(
    ("option", "stderr"),
    [
        (("--status", "STOPED"), "there is no state 'STOPED'\nhint: did you mean 'STOPPED'?\n"),
        (
            ("--status", "stopped,nonsense"),
            "there is no state 'nonsense'\nhint: states are RUNNING, STOPPED, COMPLETED, REMOVED, FAILING\n",
        ),
        (
            ("--sort", "name"),
            "no column 'name'\nhint: did you mean 'friendlyName'? columns are: id, status, failing, type, "
            "friendlyName, eventGenerated, eventsSent, lastDatetime, error, query, lag\n",
        ),
        (
            ("--columns", "id"),
            "--columns has no effect on --ids, which prints only IDs\nhint: leave out one of the two\n",
        ),
        (("-f", "json"), "--format has no effect on --ids, which prints only IDs\nhint: leave out one of the two\n"),
        (("--type", "nope"), "there is no type 'nope'\nhint: types are Kafka, S3, HDFS, donothing\n"),
    ],
)
def test_an_unknown_state_type_or_column_is_refused(job: Reseller, option: tuple[str, str], stderr: str) -> None:
    done = job("list", "--ids", *option)
    assert (done.code, done.stdout, done.stderr) == (2, "", f"svcctl: error: {stderr}")


def test_a_job_that_a_person_stopped_is_not_failing_even_with_an_error(place: Machine, job: Reseller) -> None:
    job_table.move(place.store, STOPPED, JobStatus.STOPPED, JobStatus.RUNNING)
    job_table.end(place.store, STOPPED, 0, JobStatus.STOPPED, (REFUSED,))
    assert job("list", "--ids", "--failing").stdout.split() == [NIGHTLY]


def test_a_list_without_rows_says_so_on_a_terminal(job: Reseller, reseller: Reseller) -> None:
    for arguments, stderr in (
        (["domain", "list", "-f", "table"], "svcctl: no domains\n"),
        (["job", "list", "-f", "table"], "svcctl: no jobs\n"),
        (["job", "list", "-f", "csv"], ""),
    ):
        done = reseller(*arguments, terminal=True, answer=lambda _: httpx.Response(200, json=[]))
        assert (done.code, done.stderr) == (0, stderr)
    assert job("list", "--status", "REMOVED", "-f", "csv", terminal=True).stderr == ""


def test_at_80_columns_an_error_is_whole_and_columns_that_are_left_out_are_named(shell: Shell, serve: Serve) -> None:
    error = "kafka: no connection to 127.0.0.1:9092: Connection refused; the topic was written last at 10:00 (UTC)"
    counts = {"eventGenerated": 1_000_000, "eventsSent": 999_000, "lastDatetime": 1_700_000_000_000}
    names = {"type": "kafka", "friendlyName": "nightly-to-warehouse", "query": "from web.access where status = 500"}
    running = {"id": NOWHERE, "status": "RUNNING", **names, **counts}
    jobs = [running | {"id": "X"}, running | {"error": [error]}]
    script = serve(ok(json.dumps({"status": 0, "object": jobs})))
    narrow = Shell(shell.home, shell.variables | script.access)
    seen = on_terminal(narrow, ["job", "list"], columns=80)
    lines = seen.screen.split("\n")
    assert (seen.code, lines[4].split()[1], lines[5]) == (0, "FAILING", f"  error: {error}")
    assert lines[0].startswith("svcctl: left out columns that do not fit: lastDatetime, query ")
    seen = on_terminal(narrow, ["job", "watch", "--interval", "0.1", "--max-time", "0.2"], columns=80)
    lines = seen.text.rpartition("\x1b[?1049l")[2].split("\n")
    assert (seen.code, lines[2].split()[1]) == (0, "FAILING")
    assert lines[0].split()[:6] == ["id", "status", "friendlyName", "lag", "eventsSent", "rate"]
    assert lines[3] + lines[4] == f"  error: {error}"
    assert lines[-2].endswith(" (UTC), no room for eventGenerated")
    assert max(map(len, lines)) <= 80


def test_an_error_that_is_an_object_is_shown_by_its_message_and_is_json_as_it_came(
    scripted: Callable[..., CompletedProcess[str]],
) -> None:
    errors = [{"code": 3, "message": "boom"}, "plain", {"code": 4}]
    body = json.dumps({"status": 0, "object": [{"id": "A", "status": "RUNNING", "error": errors}]})
    assert 'boom; plain; {"code": 4}' in scripted("list", "-f", "table", status=200, body=body).stdout
    assert json.loads(scripted("list", "-f", "json", status=200, body=body).stdout)[0]["error"] == errors
    single = json.dumps({"status": 0, "object": {"id": "A", "status": "RUNNING", "error": errors}})
    done = scripted("wait", "A", status=200, body=single)
    assert (done.returncode, "boom; plain" in done.stderr) == (1, True)


def test_fields_may_be_absent_and_statuses_unknown(
    scripted: Callable[..., CompletedProcess[str]],
) -> None:
    body = '{"status":0,"object":[{"id":"A","status":"RECONNECTING"},{"id":"B","status":"STOPPED","lastDatetime":0}]}'
    done = scripted("list", "-f", "csv", status=200, body=body)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "id,status,failing,type,friendlyName,eventGenerated,eventsSent,lastDatetime,error,query\n"
        "A,RECONNECTING,false,,,,,,[],\n"
        "B,STOPPED,false,,,,,0,[],\n"
    )


def test_a_list_of_jobs_is_valid_json_too(shell: Shell, serve: Serve) -> None:
    job = rb'{"id":"1","status":"RUNNING","query":"from caf' + b"\xe9" + rb' \ud800","error":[{"x":NaN}]}'
    body = b'{"object":[' + job + b"]}"
    script = serve(head("200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}") + body)
    done = shell("job", "list", "-f", "json", **script.access)
    listed: Any = json.loads(done.stdout)[0]
    assert (done.returncode, listed["query"], listed["error"]) == (0, "from caf\ufffd \ufffd", [{"x": None}])
    notes = done.stderr.splitlines()
    assert [note.partition(" became ")[0] for note in notes] == [
        "svcctl: 1 number",
        "svcctl: 1 byte that is not UTF-8",
        "svcctl: 1 half of a surrogate pair",
    ]
