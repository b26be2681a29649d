"""`svcctl query --dest`: the job that a query launches."""

from __future__ import annotations

import json
import re

import pytest
from support.jobs import launch, on_terminal
from support.shells import Shell

SECRET = "5ecr3t"


def test_a_query_with_a_destination_is_launched_and_printed(jobs: Shell) -> None:
    done = jobs("query", "from sample", "--from", "31/01/2024 00:00:00", "--dest", "DoNothing", "-f", "csv")
    header, job, end = done.stdout.split("\n")
    assert (done.returncode, header, end) == (0, "id,status,type,friendlyName", "")
    assert re.fullmatch(r"[0-9a-f-]{36},(RUNNING|COMPLETED),donothing,donothing_[a-z0-9]{8}", job)


def test_a_preview_shows_parameters_and_no_secret(jobs: Shell) -> None:
    (jobs.home / "secret").write_text(f"{SECRET}\n")
    (jobs.home / "dest.json").write_text('{"type": "S3", "params": {"aws.bucket": "b", "aws.region": "r"}}')
    done = jobs(
        *("query", "from t", "--from", "1", "--to", "2", "--dest-json", "dest.json", "--dry-run"),
        *("--dest-param", "aws.secretkey=@secret", "--dest-param", "aws.region=s"),
    )
    assert (done.returncode, "unmasked" in done.stderr.splitlines()[-1]) == (0, True)
    assert json.loads(done.stdout.split("\n\n", 1)[1]) == {
        "query": "from t",
        "from": 1,
        "to": 2,
        "mode": {"type": "json"},
        "destination": {
            "type": "S3",
            "params": {"aws.bucket": "b", "aws.region": "s", "aws.secretkey": "****"},
        },
    }


def test_a_launched_job_is_printed_without_a_heading(jobs: Shell) -> None:
    done = jobs("query", "from sample", "--from", "1h", "--dest", "donothing", "-f", "csv", "--no-header")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


def test_a_job_whose_range_ends_in_the_future_says_so(jobs: Shell) -> None:
    done = jobs(
        "query", "from sample", "--from", "2024-01-31", "--to", "2100-01-01", "--dest", "donothing", "-f", "csv"
    )
    assert (done.returncode, done.stderr) == (
        0,
        "svcctl: --to is in the future: the job waits for events until 2100-01-01 00:00:00 UTC "
        "(--to now ends at once)\n",
    )


def test_a_second_job_of_a_name_is_noted(jobs: Shell) -> None:
    named = ["--follow", "--dest-param", "friendlyName=twin"]
    first = launch(jobs, *named)
    seen = on_terminal(jobs, ["query", "from sample", "--from", "31/01/2024 00:00:00", "--dest", "donothing", *named])
    note = f"svcctl: 1 other job is named 'twin': {first[:8]} RUNNING; commands need the ID"
    assert (seen.code, seen.screen.splitlines()[-1]) == (0, note)
    done = jobs("query", "from sample", "--from", "2024-01-31", "--dest", "donothing", *named)
    assert (done.returncode, re.sub(r"[0-9a-f]{8} ", "ID ", done.stderr)) == (
        0,
        "svcctl: 2 other jobs are named 'twin': ID RUNNING, ID RUNNING; commands need the ID\n",
    )


def test_an_unknown_parameter_is_noted_and_sent(jobs: Shell) -> None:
    done = jobs("query", "from sample", "--from", "1h", "--dest", "donothing", "--dest-param", "colour=red")
    assert (done.returncode, "'colour' (sent anyway)" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dest", "donothing", "--output", "x"], "--output cannot be used with --dest: no rows come back"),
        (["--dest", "donothing", "--fail-on-empty"], "--fail-on-empty cannot be used with --dest: no rows come back"),
        (["--dest", "kafka"], "kafka needs topic and bootstrap.servers"),
        (["--dest-json", "absent"], "the destination cannot be read from absent: No such file or directory"),
        (["--dest", "donothing", "--to", "1"], "the range ends before it starts: from "),
    ],
)
def test_an_invalid_destination_is_refused(shell: Shell, arguments: list[str], message: str) -> None:
    done = shell("query", "from t", "--from", "1h", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"svcctl: error: {message}")


@pytest.mark.slow
def test_no_secret_is_in_the_log_or_the_list(jobs: Shell) -> None:
    (jobs.home / "dest.json").write_text(
        json.dumps(
            {
                "aws.bucket": "b",
                "aws.endpoint": "http://127.0.0.1:1",
                "aws.accesskey": "AKID",
                "aws.secretkey": SECRET,
            }
        )
    )
    job_id = launch(jobs, "--follow", "--dest", "s3", "--dest-json", "dest.json")
    done = jobs("-v", "job", "wait", job_id, "--for", "COMPLETED", "--max-time", "5", "--keep-waiting")
    assert done.returncode == 6
    assert "127.0.0.1:1" in done.stderr
    shown = done.stdout + done.stderr + jobs("-v", "job", "list", "-f", "json").stdout
    assert SECRET not in shown + (jobs.home / "data" / "service.log").read_text()
