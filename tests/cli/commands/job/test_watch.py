"""`svcctl job watch`: rows in a pipe, frames on a terminal."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.jobs import NOWHERE, launch, on_terminal
from support.pseudo_terminal import screen
from support.scripted import Serve, http, ok
from support.shells import Shell

LISTED = json.dumps({"status": 0, "object": [{"id": NOWHERE, "status": "RUNNING"}]})


def test_watching_in_a_pipe_is_a_row_for_each_job_and_look(jobs: Shell) -> None:
    job_id = launch(jobs, query="from sample where false")  # its rate is the same at every look
    rows = jobs.ndjson("job", "watch", job_id, "--interval", "0.1", "--max-time", "0.4")
    assert len(rows) >= 2
    assert set(rows[0]) == {
        *("time", "id", "status", "type", "friendlyName"),
        *("eventsSent", "eventGenerated", "rate", "lag", "error", "failing"),
    }
    assert (rows[-1]["id"], rows[-1]["status"], rows[-1]["rate"]) == (job_id, "RUNNING", 0.0)


@pytest.mark.parametrize(
    ("answers", "code", "rows", "notes"),
    [
        ([http("502 Bad")] * 20, 6, 0, 2),
        ([ok("{}")] * 20, 6, 0, 2),
        ([http("502 Bad"), *[ok(LISTED)] * 20], 0, 1, 1),
        ([ok(LISTED), *[http("502 Bad")] * 20], 6, 1, 2),
    ],
)
def test_watching_in_a_pipe_reports_each_new_failure_and_ends_with_the_last_one(
    answers: list[bytes], code: int, rows: int, notes: int, serve: Serve, shell: Shell
) -> None:
    script = serve(*answers)
    options = ("job", "watch", "-f", "csv", "--interval", "0.1", "--max-time", "0.3")
    done = shell(*options, **script.access)
    assert done.stdout.startswith("time,id,status,")
    assert (done.returncode, done.stdout.count("\n") > rows, len(done.stderr.splitlines())) == (code, True, notes)


def test_watching_on_a_terminal_leaves_the_last_frame(jobs: Shell) -> None:
    job_id = launch(jobs)
    seen = on_terminal(jobs, ["job", "watch", "--interval", "0.1", "--max-time", "1"])
    before, other, after = re.split("\x1b\\[\\?1049[hl]", seen.text)
    assert (seen.code, screen(before)) == (0, "")
    assert other.count("\x1b[H") >= 3
    lines = after.split("\n")
    assert lines[0].startswith("id")
    assert lines[2].startswith(job_id.partition("-")[0] + "  RUNNING  donothing_")
    assert re.fullmatch(r"1 job, 20[-0-9]{8} [:0-9]{8} \(UTC\)", lines[3])
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.slow
def test_watching_continues_while_the_service_is_away(tmp_path: Path, shell: Shell) -> None:
    assert shell("service", "start").returncode == 0
    try:
        job_id = launch(shell, query="from auth.all")
        watching = shell.start(
            "--retries", "0", "job", "watch", "-f", "csv", "--interval", "0.2", stdout=subprocess.PIPE
        )
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith(b"time,id,status,")
        assert job_id.encode() in watching.stdout.readline()
        assert shell("service", "stop").returncode == 0
        assert shell("service", "start").returncode == 0
        for _ in range(10):
            assert job_id.encode() in watching.stdout.readline()
        watching.terminate()
        watching.wait(10)
        watching.stdout.close()
    finally:
        shell("service", "stop")
