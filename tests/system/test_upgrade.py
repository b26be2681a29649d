"""A service starts on the files that an older svcctl left when it was killed, and continues its jobs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.shells import Shell
from support.unversioned import unpack

from svcctl import __version__

RUNNING, HOURLY, STOPPED = (
    "3c4264b5-205e-4a3e-870b-e48bdcc9f85d",
    "6a0bfaa4-326d-4d54-b7ac-04ae2688320c",
    "bdcb84ba-8a72-4c8c-826a-25aa5e6153fe",
)
NEW = "eventdate,customer,amount,paid\n2024-02-03 00:00:00,ann,100,true\n2024-02-03 00:01:00,bob,1,false\n"


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Shell]:
    """A shell whose service has the files of an older svcctl."""
    unpack(tmp_path / "data")
    shell = Shell(tmp_path, {"SVCCTL_DEMO_DAYS": "0"})
    yield shell
    shell("service", "stop")


def lines(shell: Shell, *arguments: str) -> list[str]:
    done = shell(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def wait_for_sent(shell: Shell, job: str, sent: int) -> None:
    """Wait until the job has delivered so many rows; it must never have more."""
    deadline = time.monotonic() + 30
    while (found := shell.ndjson("job", "show", job)[0]["eventsSent"]) != sent:
        assert isinstance(found, int)
        assert found < sent
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_a_new_service_continues_the_work_of_an_old_one(old: Shell) -> None:
    assert old("service", "start").returncode == 0
    jobs = old.ndjson("job", "list")
    assert [(job["friendlyName"], job["status"], job["error"]) for job in jobs] == [
        ("failed", "STOPPED", ["no table 'shop.closed'"]),
        ("complete", "COMPLETED", []),
        ("limited", "COMPLETED", []),
        ("stopped", "STOPPED", []),
        ("running", "RUNNING", []),
        ("hourly", "RUNNING", []),
    ]
    wait_for_sent(old, RUNNING, 682)  # it was killed with 588 of them delivered
    assert old("job", "start", STOPPED).returncode == 0
    wait_for_sent(old, STOPPED, 700)
    assert old("service", "load", "-", "--table", "shop.orders", stdin=NEW).returncode == 0
    wait_for_sent(old, RUNNING, 683)
    wait_for_sent(old, STOPPED, 702)
    wait_for_sent(old, HOURLY, 27)

    assert lines(old, "query", "--query-id", "large", "--from", "2024-02-02", "--to", "1d")[:2] == [
        "eventdate,customer,amount,paid",
        "2024-02-02 00:51:00.000,ann,102,true",
    ]
    assert lines(old, "-p", "local-reseller", "domain", "list", "-f", "csv") == [
        "name,plan,time,volume,status",
        "acme@demo,basic,20.0,10.0,Active",
        "beta@demo,full,365.0,1000.0,Disabled",
        "late@demo,trial,,,Pending",
    ]
    assert [line.split(",")[0] for line in lines(old, "-p", "local-reseller", "role", "list", "acme")] == [
        "name",
        "everything",
        "night-shift",
    ]
    assert lines(old, "service", "accounts", "list", "resellers") == [
        "name,include_all_available_apps",
        "demo,true",
        "west,false",
    ]


@pytest.mark.slow
def test_a_service_does_not_start_on_the_state_of_a_newer_svcctl_and_says_what_to_install(old: Shell) -> None:
    assert old("service", "queries", "list").returncode == 0
    with closing(sqlite3.connect(old.home / "data" / "state.db")) as connection:
        connection.execute("update alembic_version set version_num = '0009'")
        connection.commit()
    said = (
        f"state file {old.home}/data/state.db has version 9, and svcctl {__version__} reads versions up to 6\n"
        "hint: install a newer svcctl: pip install --upgrade 'svcctl[service]'\n"
    )
    done = old("service", "queries", "list")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"svcctl: error: {said}")
    done = old("service", "start")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"svcctl: error: the local service did not start: {said}",
    )
