"""A service that has lost events says so on every command until somebody confirms it, and ends the jobs on them."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from support.shells import OWN_FILE, Shell

NOTE = (
    "svcctl: the local service has lost events: 'svcctl service status' shows which, and 'svcctl service confirm-loss' "
    "ends this note\n"
)
EVENTS = "eventdate,n\n2026-01-01 00:00:00,1\n2026-01-02 00:00:00,2\n"


def kill(shell: Shell) -> Path:
    """Kill the service; returns its directory."""
    data = shell.home / "data"
    process = int((data / "service.lock").read_text())
    os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while (Path("/proc") / str(process) / "exe").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return data


@pytest.mark.slow
def test_lost_events_are_reported_until_they_are_confirmed(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {**OWN_FILE, "SVCCTL_DEMO": "0"})
    (shell.home / "a.csv").write_text(EVENTS, encoding="utf-8")
    load = ("service", "load", "a.csv", "-t", "shop.o")
    try:
        assert NOTE not in shell(*load).stderr
        job = ("query", "from shop.o", "--from", "2025-01-01", "--follow", "--dest", "donothing")
        assert shell(*job).returncode == 0
        data = kill(shell)
        for file in data.glob("events.duckdb*"):
            file.unlink()
        started = shell("service", "start").stderr
        assert started.startswith(
            "svcctl: events were lost: the service's file of events was missing or replaced; lost before "
        )
        for command in (load, load, ("tables",), ("-q", "job", "list"), ("service", "accounts", "list", "keys")):
            done = shell(*command)
            assert (done.returncode, done.stderr.count(NOTE)) == (0, 1), done
        [stopped] = json.loads(shell("job", "list", "-f", "json").stdout)
        assert (stopped["status"], stopped["error"]) == ("STOPPED", ["no table 'shop.o'"])
        shell("job", "start", stopped["id"])
        until = time.monotonic() + 30
        while (again := json.loads(shell("job", "list", "-f", "json").stdout)[0])["status"] != "STOPPED":
            assert time.monotonic() < until, again
        assert "was dropped or replaced" in again["error"][0]
        assert " shop.o (2 events)" in json.loads(shell("service", "status", "-f", "json").stdout)["lost"]
        assert shell("service", "confirm-loss").stderr.startswith("svcctl: confirmed: the service's file of events")
        assert shell("service", "confirm-loss").stderr == "svcctl: no events were lost\n"
        assert shell("tables").stderr == ""
        shell("service", "reset", "--yes")
        assert shell("service", "start").stderr.count("lost") == 0
    finally:
        shell("service", "stop")
