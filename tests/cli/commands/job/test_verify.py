"""`svcctl job verify` against a service that streams what a check finds."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from peers.s3 import S3Peer
from support.delivered import deliver
from support.pseudo_terminal import on_terminal_of
from support.scripted import LOST, Serve, head, http
from support.shells import Shell

from svcctl.cli.verification import WORST_FIRST, query_command
from svcctl.errors import EXIT_CODES

LOGINS, COUNTS, IDLE = (f"{digit}f2ab1c0-8a52-4c1e-9d0b-5a1f6f0c7d11" for digit in "345")
EXACT = "X-Svc-Errors: exact"
QUERY = "from auth.all\nwhere result = 'FAIL' // failures"
AT = 1795640400000
"""2026-11-25 21:00:00 UTC, in milliseconds."""
DATED: dict[str, Any] = {"from": AT, "to": AT + 1_500, "query": QUERY}
COMMAND = "svcctl query 'from auth.all where result = '\"'\"'FAIL'\"'\"''"
JOBS = [
    {"id": LOGINS, "status": "RUNNING", "type": "kafka", "friendlyName": "failed-logins.1a2b3c4d", "verified": AT},
    {"id": COUNTS, "status": "COMPLETED", "type": "s3", "friendlyName": "counts"},
    {"id": IDLE, "status": "RUNNING", "type": "donothing", "friendlyName": "idle"},
]
LISTED = http("200 OK", json.dumps({"status": 0, "object": JOBS}), "Content-Type: application/json", EXACT)
LINES = head("200 OK", "Content-Type: application/x-ndjson", "Transfer-Encoding: chunked", EXACT)

Verify = Callable[..., CompletedProcess[str]]


def result(job: str = LOGINS, **counts: Any) -> dict[str, Any]:
    return {"result": {"job": job, "name": "n", "rows": 1_000_000, "upTo": AT, "verified": AT, "notes": [], **counts}}


def finding(kind: str, first: int = 5, last: int = 9, **members: Any) -> dict[str, Any]:
    place = {"job": LOGINS, "kind": kind, "rows": [first, last], "count": last - first + 1}
    return {"finding": place | members}


def failure(status: int) -> dict[str, Any]:
    return {"error": {"status": status, "reason": "destination-fails", "message": "the broker says no"}}


def refusal(status: str, message: str, reason: str) -> bytes:
    return http(status, json.dumps({"error": {"message": message}, "reason": reason}), EXACT)


def streamed(*objects: Any, cut: bool = False) -> bytes:
    """A stream of objects, in chunks that do not end where lines do; a `cut` one lacks its last chunk."""
    body = "".join(json.dumps(record) + "\n" for record in objects).encode()
    pieces = [body[at : at + 50] for at in range(0, len(body), 50)]
    return LINES + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n" * (not cut)


@pytest.fixture
def verify(serve: Serve, shell: Shell) -> Verify:
    """Runs `job verify`, by default of one job, against a service with three jobs and scripted checks."""

    def run(*arguments: str, checks: list[Any], **variables: str) -> CompletedProcess[str]:
        script = serve(LISTED, *checks)
        return shell("job", "verify", *(arguments or ("failed-logins",)), **script.access, **variables)

    return run


def test_a_whole_delivery_is_one_sentence(verify: Verify) -> None:
    done = verify(checks=[streamed({"progress": {"job": LOGINS, "rows": 5, "of": 9}}, result())])
    said = "svcctl: 1,000,000 rows up to 2026-11-25 21:00 UTC: none missing, none duplicated, in order, all equal\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)
    assert verify("-q", "failed-logins", checks=[streamed(result())]).stderr == ""


@pytest.mark.parametrize(
    ("counts", "code", "end"),
    [
        ({"missing": 3}, 7, "3 missing, none duplicated, in order, the others equal"),
        ({"outOfOrder": 2}, 7, "none missing, none duplicated, 2 out of order, all equal"),
        ({"altered": 1, "truncated": 2}, 7, "in order, 1 altered, 2 truncated"),
        ({"duplicated": 4}, 10, "none missing, 4 duplicated, in order, all equal"),
        ({"foreign": 1_000}, 10, "all equal, 1,000 foreign"),
        ({"foreign": 1, "missing": 1}, 7, "1 missing, none duplicated, in order, the others equal, 1 foreign"),
        ({"rows": 5, "notYet": 5, "hidden": 5}, 0, "UTC: none missing, none duplicated, 5 not there yet"),
        ({"noLongerThere": 7, "notYet": 8}, 0, "the others equal, 7 no longer there, 8 not there yet"),
        ({"rows": 5, "missing": 5}, 7, "UTC: 5 missing, none duplicated"),
        ({"rows": 5, "notReproducible": 5, "outOfOrder": 2}, 7, "2 out of order, 5 that cannot be produced again"),
        ({"notReproducible": 9}, 0, "in order, the others equal, 9 that cannot be produced again"),
    ],
    ids=str,
)
def test_the_result_of_a_job_decides_the_exit_code(verify: Verify, counts: dict[str, Any], code: int, end: str) -> None:
    done = verify(checks=[streamed(result(**counts))])
    assert (done.returncode, done.stderr.startswith("svcctl: error: ") == (code > 0)) == (code, True)
    assert done.stderr.endswith(f"{end}\n")


def test_a_gap_has_the_query_that_returns_its_rows(verify: Verify) -> None:
    gap = finding("missing", **DATED, partition=0, offset=12)
    done = verify(checks=[streamed(gap, result(missing=5))])
    text, hint, _ = done.stderr.splitlines()
    dates = "dated 2026-11-25 21:00 to 2026-11-25 21:00:01.500 UTC"
    assert text == f"svcctl: error: 5 rows missing: rows 5 to 9, partition 0, offset 12, {dates}"
    assert hint.endswith(f": {COMMAND} --from 2026-11-25T21:00:00Z --to 2026-11-25T21:00:01.501Z")
    typed = shlex.split(hint.partition(": ")[2].partition(": ")[2])
    assert typed[:3] == ["svcctl", "query", QUERY.partition(" //")[0].replace("\n", " ")]


def test_the_query_of_a_gap_covers_whole_periods_and_has_the_profile(verify: Verify) -> None:
    query = "from auth.all group every 1h select count() as n"
    gap = finding("missing", 5, 5, **DATED | {"file": "c/5.csv", "to": AT, "query": query})
    text, hint, _ = verify(checks=[streamed(gap, result(missing=1))]).stderr.splitlines()
    assert text.endswith("1 row missing: row 5, file c/5.csv, dated 2026-11-25 21:00 UTC")
    assert hint.endswith("--from 2026-11-25T21:00:00Z --to 2026-11-25T22:00:00Z")
    assert (query_command(gap["finding"], "night") or "").startswith(f"svcctl -p night query '{query}'")


def test_the_query_of_a_gap_stays_in_the_range_of_the_job() -> None:
    query = "from auth.all group every 1h select count() as n"
    members = {"query": query, "from": AT, "to": AT, "range": [AT + 600_000, AT + 1_200_000]}
    within = "--from 2026-11-25T21:10:00Z --to 2026-11-25T21:20:00Z"
    assert (query_command(members, None) or "").endswith(within)
    undated = {"query": "from auth.all group by user", "range": members["range"]}
    assert (query_command(undated, None) or "").endswith(within)
    assert query_command({**undated, "query": "from auth.all"}, None) is None


def test_a_gap_without_dates_and_a_foreign_file_have_no_command(verify: Verify) -> None:
    foreign = {"finding": {"job": LOGINS, "kind": "foreign", "file": "c/9.csv"}}
    done = verify(checks=[streamed(finding("missing", query=QUERY), foreign, result(missing=5))])
    lines = done.stderr.splitlines()
    assert (len(lines), lines[0].endswith("rows 5 to 9"), lines[1].endswith("foreign: file c/9.csv")) == (3, True, True)


def test_many_findings_of_a_kind_are_counted(verify: Verify) -> None:
    findings = [finding(kind, row, row) for row in range(9) for kind in ("missing", "altered")]
    stream = streamed(*findings, result(missing=9, altered=9))
    lines = verify(checks=[stream]).stderr.splitlines()
    assert [sum(f"row {kind}: row" in line for line in lines) for kind in ("missing", "altered")] == [5, 5]
    assert lines[10] == "svcctl: error: 4 more findings are missing; to see all: svcctl -v job verify failed-logins"
    every = verify("-v", "failed-logins", checks=[stream]).stderr
    assert (every.count("row missing: row"), "more findings" in every) == (9, False)


def test_programs_get_an_object_for_each_finding_and_each_result(verify: Verify) -> None:
    objects = [finding("missing", **DATED), result(missing=5)]
    stream = streamed({"progress": {"job": LOGINS, "rows": 5, "of": 9}}, *objects)
    done = verify("failed-logins", "-f", "jsonl", checks=[stream])
    assert (done.returncode, [json.loads(line) for line in done.stdout.splitlines()]) == (7, objects)
    assert len(done.stderr.splitlines()) == 1
    assert verify("failed-logins", "-f", "csv", checks=[stream]).returncode == 2


def test_a_job_that_continues_another_has_the_results_of_both(verify: Verify) -> None:
    done = verify(checks=[streamed(result(COUNTS, duplicated=1), result(notes=["no transactions"]))])
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines), lines[1]) == (10, 3, "svcctl: no transactions")
    assert lines[0].startswith("svcctl: error: counts: 1,000,000 rows")


@pytest.mark.parametrize(
    ("check", "code", "text"),
    [
        (streamed(finding("missing"), failure(503)), 6, "the broker says no"),
        (streamed(failure(403)), 3, "the broker says no"),
        (streamed(failure(401)), 3, "the broker says no"),
        (streamed(failure(500)), 1, "the broker says no"),
        (streamed(finding("missing"), cut=True), 6, "was cut off"),
        (streamed(finding("missing")), 6, "without a result"),
        (streamed(result(COUNTS)), 6, "without a result"),
        (streamed(), 6, "without a result"),
        (streamed({"progress": 1}), 6, "is not a JSON object"),
        (LINES + b"5\r\n[1]\n\n\r\n0\r\n\r\n", 6, "is empty"),
        (LOST, 6, "no answer"),
        (http("503 Busy", "<html>busy</html>"), 6, "HTTP 503"),
        (http("401 No", '{"msg":"no key","status":1}', EXACT), 3, "no key"),
        (http("409 No", '{"msg":"two checks run already","status":1}', EXACT), 5, "two checks run already"),
        (http("404 No", '{"msg":"no job 3f2a","status":1,"error":{"code":100}}', EXACT), 4, "svcctl job list"),
        (refusal("400 No", "it is donothing", "not-verifiable"), 2, "it is donothing"),
        (refusal("404 No", "no route", "no-route"), 1, "only svcctl's own"),
        (http("404 Not Found", "<html>not found</html>"), 1, "only svcctl's own"),
        (http("200 OK", '{"result":{"job":"x"}}\n'), 1, "only svcctl's own"),
    ],
)
def test_a_check_without_a_result_verifies_nothing(verify: Verify, check: bytes, code: int, text: str) -> None:
    done = verify(checks=[check])
    assert (done.returncode, done.stdout, text in done.stderr) == (code, "", True), done.stderr
    assert "svcctl: 1,000,000 rows" not in done.stderr
    assert "profile check" not in done.stderr or "the broker" not in done.stderr


def test_a_result_counts_if_the_connection_breaks_after_it(verify: Verify) -> None:
    assert verify(checks=[streamed(result(), cut=True)]).returncode == 0


def test_all_jobs_that_deliver_are_verified_and_the_worst_decides(serve: Serve, shell: Shell, tmp_path: Path) -> None:
    script = serve(LISTED, streamed(result(missing=1)), streamed(failure(503)))
    done = shell("job", "verify", "--all", "--metrics", "jobs.prom", **script.access)
    lines = done.stderr.splitlines()
    assert (done.returncode, [line.partition(", which")[0] for line in lines[::2]]) == (
        6,
        ["svcctl: left out: 1 job to donothing", "svcctl: error: the broker says no"],
    )
    assert lines[1].startswith("svcctl: error: failed-logins: 1,000,000 rows")
    assert script.lines[1:] == [f"GET /service/jobs/{job}/verify" for job in (LOGINS, COUNTS)]
    figures = dict(line.rsplit(" ", 1) for line in (tmp_path / "jobs.prom").read_text().splitlines())
    labels = f'{{job="{LOGINS}",name="failed-logins"}}'
    names = ("success", "missing", "rows", "out_of_order", "verified_seconds")
    assert [figures[f"svcctl_job_verify_{name}{labels}"] for name in names] == ["0", "1", "1000000", "0", "1795640400"]
    assert figures[f'svcctl_job_verify_success{{job="{COUNTS}",name="counts"}}'] == "0"


def test_figures_of_jobs_that_could_not_be_checked_are_written_too(verify: Verify, tmp_path: Path) -> None:
    file = tmp_path / "jobs.prom"
    assert verify("failed-logins", "nowhere", "--metrics", str(file), checks=[LOST]).returncode == 6
    text = file.read_text()
    assert f'verified_seconds{{job="{LOGINS}",name="failed-logins"}} {AT // 1000}' in text
    assert 'success{job="nowhere",name=""} 0' in text
    assert verify("counts", "--metrics", str(tmp_path / "none" / "x"), checks=[LOST]).returncode == 2


def test_the_worst_exit_code_is_that_of_a_destination_that_was_not_read() -> None:
    assert set(WORST_FIRST) >= {row.code for row in EXIT_CODES if row.code not in (8, 9, 130, 141, 143)}
    assert [min(pair, key=WORST_FIRST.index) for pair in ((0, 10), (10, 4), (5, 7), (7, 6), (6, 3))] == [10, 4, 7, 6, 3]


def test_a_date_is_sent_and_kept_if_asked_for(serve: Serve, shell: Shell) -> None:
    script = serve(LISTED, streamed(result()), LISTED, streamed(result()))
    access = script.access
    command = ("job", "verify", "failed-logins", "--from", "2026-11-25T21:00:00Z")
    assert shell(*command, SVCCTL_READ_ONLY="true", **access).returncode == 0
    refused = shell(*command, "--keep", SVCCTL_READ_ONLY="true", **access)
    assert (refused.returncode, len(script.lines)) == (2, 3)
    script.answers.insert(0, LISTED)
    assert shell(*command, "--keep", **access).returncode == 0
    path = f"GET /service/jobs/{LOGINS}/verify?from={AT}"
    assert [line for line in script.lines if "verify" in line] == [path, f"{path}&keep=true"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--all", "counts"),
        ("counts", "--keep"),
        ("counts", "--from", "2099-01-01"),
        ("counts", "--from", "nope"),
    ],
    ids=" ".join,
)
def test_a_command_that_means_nothing_asks_no_service(serve: Serve, shell: Shell, arguments: tuple[str, ...]) -> None:
    script = serve(LISTED)
    done = shell("job", "verify", *arguments, **script.access)
    assert (done.returncode, script.lines) == (2, [])


def test_a_terminal_shows_how_many_rows_are_compared(serve: Serve, shell: Shell) -> None:
    stream = streamed({"progress": {"job": LOGINS, "rows": 250_000, "of": 1_000_000}}, result())
    end = len(stream) - 200
    script = serve(LISTED, slowly(stream[:end], stream[end:]))
    there = Shell(shell.home, script.access)
    seen = on_terminal_of(100, there, "job", "verify", "failed-logins", NO_COLOR="1")
    assert (seen.code, "250,000 of 1,000,000 rows" in seen.text) == (0, True)
    assert "all equal" in " ".join(seen.screen.split())
    assert "250,000" not in seen.screen


def slowly(*pieces: bytes) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(1)


@pytest.fixture
def delivered(service: Shell, s3_peer: S3Peer) -> Iterator[S3Peer]:
    """A bucket that has the rows of the table `sample`, which the job `delivered` has delivered."""
    bucket = s3_peer.fresh_bucket()
    deliver(service, bucket, "delivered", "from sample", "--from", "2024-01-31", "--to", "2024-02-01")
    yield bucket
    assert service("job", "rm", "--yes", "delivered").returncode == 0


def test_a_delivery_of_the_local_service_is_verified(service: Shell, delivered: S3Peer) -> None:
    done = service("job", "verify", "delivered")
    assert (done.returncode, done.stderr.count("none missing, none duplicated, in order, all equal")) == (0, 1)
    [job] = service.ndjson("job", "show", "delivered")
    assert isinstance(job["verified"], int)
    [name] = delivered.objects()
    delivered.rclone("deletefile", f":s3:{delivered.bucket}/{name}")
    lost = service("job", "verify", "delivered")
    text, hint, sentence = lost.stderr.splitlines()
    assert (lost.returncode, "4 rows missing: rows 0 to 3" in text, name in text) == (7, True, True)
    assert "4 missing" in sentence
    queried = service(*shlex.split(hint.rpartition(": svcctl ")[2]), "-f", "ndjson")
    assert len(queried.stdout.splitlines()) == 4
    objects = service("job", "verify", "delivered", "-f", "ndjson").stdout.splitlines()
    assert [list(json.loads(line)) for line in objects] == [["finding"], ["result"]]


def test_a_job_that_delivers_nothing_cannot_be_verified(service: Shell) -> None:
    params = ("--dest", "donothing", "--dest-param", "friendlyName=counts-only")
    assert service("query", "from sample", "--from", "2024-01-31", "--to", "1d", *params).returncode == 0
    assert service("job", "verify", "counts-only").returncode == 2
    assert service("job", "rm", "--yes", "counts-only").returncode == 0
    assert service("job", "verify", "counts-only").returncode == 4
