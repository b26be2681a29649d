"""`svcctl service trim`: old events leave a table of the service's own file and one of a shared folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shells import OWN_FILE, Shell, made

DAYS = "eventdate,n\n" + "".join(
    f"2024-01-0{day}T{hour:02}:00:00Z,{day}{hour:02}\n" for day in (1, 2) for hour in (3, 9)
)
"""Four events: of each day one at three and one at nine o'clock."""
JOB = ("--from", "2024-01-01", "--to", "2030-01-01", "--dest", "donothing", "--dest-param")


@pytest.fixture(params=["file", "folder"])
def trimmed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell whose service has the table web.a, loaded twice, so that its dates overlap."""
    tables = {"SVCCTL_TABLES": made(tmp_path / "tables")} if request.param == "folder" else {}
    shell = Shell(tmp_path, {**OWN_FILE, **tables, "SVCCTL_DEMO": "0"})
    (shell.home / "a.csv").write_text(DAYS, encoding="utf-8")
    for _ in range(2):
        assert shell("service", "load", "a.csv", "-t", "web.a").returncode == 0
    yield shell
    shell("service", "stop")


def found(shell: Shell) -> str:
    """The numbers of all events in order."""
    query = ("query", "from web.a select n", "--from", "2023-01-01", "--to", "2025-01-01", "-f", "csv", "--no-header")
    return " ".join(shell(*query).stdout.split())


def wait_for(shell: Shell, sent: int) -> None:
    """Until the job named `all` has delivered so many events."""
    deadline = time.monotonic() + 30
    while (told := shell.ndjson("job", "list"))[0]["eventsSent"] != sent:
        assert time.monotonic() < deadline, told


def trim(shell: Shell, before: str) -> str:
    """Remove events; what was said. A job that is just reading is waited for."""
    deadline = time.monotonic() + 30
    while (done := shell("service", "trim", "web.a", "--before", before, "--yes")).returncode == 5:
        assert time.monotonic() < deadline, done.stderr
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_events_before_a_date_are_removed_and_jobs_that_have_read_them_go_on(trimmed: Shell) -> None:
    assert trimmed("query", "from web.a", *JOB, "friendlyName=all").returncode == 0
    wait_for(trimmed, 8)
    unattended = trimmed("service", "trim", "web.a", "--before", "2024-01-02T05:00:00Z")
    assert (unattended.returncode, unattended.stderr) == (
        2,
        "svcctl: error: this needs confirmation: Remove the events before 2024-01-02 05:00:00 (UTC) from web.a, which"
        " has events from 2024-01-01 03:00:00 to 2024-01-02 09:00:00 (UTC)?\nhint: add --yes\n",
    )
    left = "svcctl: removed 6 events from web.a; 2 are left, at 2024-01-02 09:00:00 (UTC)\n"
    assert trim(trimmed, "2024-01-02T05:00:00Z") == left
    assert found(trimmed) == "209 209"
    assert trimmed("service", "restart").returncode == 0
    assert trimmed("service", "load", "a.csv", "-t", "web.a").returncode == 0
    wait_for(trimmed, 12)
    assert trim(trimmed, "1d") == "svcctl: removed 6 events from web.a; 0 are left\n"
    assert trimmed.ndjson("job", "list")[0]["status"] == "RUNNING"


@pytest.mark.slow
def test_a_stopped_job_has_read_the_events_that_it_has_delivered(trimmed: Shell) -> None:
    assert trimmed("query", "from web.a", *JOB, "friendlyName=all").returncode == 0
    wait_for(trimmed, 8)
    assert trimmed("job", "stop", "all").returncode == 0
    assert trim(trimmed, "2024-01-02") == (
        "svcctl: removed 4 events from web.a; 4 are left, from 2024-01-02 03:00:00 to 2024-01-02 09:00:00 (UTC)\n"
    )
    assert trimmed("job", "start", "all").returncode == 0
    assert trimmed("service", "load", "a.csv", "-t", "web.a").returncode == 0
    wait_for(trimmed, 12)


@pytest.mark.slow
def test_events_that_a_job_has_not_read_yet_are_not_removed(trimmed: Shell) -> None:
    assert trimmed("query", "from web.a group select count()", *JOB, "friendlyName=sum").returncode == 0
    [job] = trimmed.ndjson("job", "list")
    refused = trimmed("service", "trim", "web.a", "--before", "2024-01-02", "--yes")
    assert (refused.returncode, refused.stderr.partition(" (code")[0]) == (
        5,
        "svcctl: error: job sum has not read the events of web.a before 2024-01-02 00:00:00 (UTC) yet",
    )
    for table, code in (("web.none", 4), ("service.access", 1)):
        assert trimmed("service", "trim", table, "--before", "2024-01-02", "--yes").returncode == code
    assert trimmed("job", "rm", str(job["id"]), "--yes").returncode == 0
    trim(trimmed, "2024-01-02")
    assert found(trimmed) == "203 203 209 209"
