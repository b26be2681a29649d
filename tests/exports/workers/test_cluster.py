"""Exports whose windows a Dask cluster fetches: real processes, one of which is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from support.exports import START, left
from support.faults import FaultyProxy
from support.shells import Shell

from svcctl.api.auth import Signature

pytestmark = pytest.mark.slow

PYTHON = [sys.executable, "-u", "-c"]
SCHEDULER = """
import asyncio, distributed
async def main():
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address)
        await scheduler.finished()
asyncio.run(main())
"""
WORKER = """
import asyncio, sys, distributed
async def main():
    async with distributed.Worker(sys.argv[1], nthreads=2, dashboard=False) as worker:
        print("ready")
        await worker.finished()
asyncio.run(main())
"""


@dataclass(frozen=True)
class Cluster:
    """A scheduler and two workers, which know the service's credentials."""

    shell: Shell
    address: str
    workers: tuple[subprocess.Popen[str], ...]


@pytest.fixture
def cluster(proxy: FaultyProxy, signature: Signature, tmp_path: Path) -> Iterator[Cluster]:
    base = Shell(tmp_path, {"SVCCTL_BASE_URL": proxy.url})
    known = base.environment | {"SVCCTL_API_KEY": signature.api_key, "SVCCTL_API_SECRET": signature.api_secret}
    processes: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: str) -> str:
        process = subprocess.Popen(
            [*PYTHON, script, *arguments],
            env=known,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    try:
        address = start(SCHEDULER)
        assert [start(WORKER, address) for _ in range(2)] == ["ready", "ready"]
        # Whoever starts the export has other credentials: those of the workers are used, and none are sent to them.
        shell = Shell(tmp_path, base.variables | {"SVCCTL_API_KEY": "nobody", "SVCCTL_API_SECRET": "none"})
        yield Cluster(shell, address, tuple(processes[1:]))
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def covers(body: bytes, second: int) -> bool:
    """Whether a request is for a range with this second."""
    asked = json.loads(body)
    return bool(asked["from"] <= second < asked["to"])


def export(cluster: Cluster, *more: str) -> subprocess.CompletedProcess[str]:
    return cluster.shell(
        *("export", "from exported.events", "--from", str(START), "--to", "1h", "--window", "1m", "-o", "all.csv"),
        *("--scheduler", cluster.address, *more),
    )


def test_the_workers_share_the_windows_and_one_of_them_may_die(
    cluster: Cluster, proxy: FaultyProxy, events: Shell
) -> None:
    requests = count(1)

    def choose(body: bytes) -> str:
        if next(requests) == 20:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)
        return "slow"

    proxy.choose = choose
    done = export(cluster)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    expected = events("query", "from exported.events", "--from", str(START), "--to", "1h", "-f", "csv")
    assert (cluster.shell.home / "all.csv").read_bytes().decode() == expected.stdout
    assert proxy.asked.total() > len(proxy.asked)  # what the dead worker had was requested again
    assert cluster.workers[0].wait(10) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("variable", "difference"),
    [
        ({"SVCCTL_BASE_URL": "https://events.example.com"}, "a worker would ask {}, not https://events.example.com"),
        ({"SVCCTL_MAX_ROWS": "10"}, "max_rows of a worker is not set, not 10"),
    ],
)
def test_a_worker_with_another_service_or_other_limits_is_refused(
    cluster: Cluster, variable: dict[str, str], difference: str
) -> None:
    other = Shell(cluster.shell.home, cluster.shell.variables | variable)
    done = export(Cluster(other, cluster.address, cluster.workers), "--on-error", "stop")
    first, second = done.stderr.splitlines()
    assert (done.returncode, left(cluster.shell.home)) == (2, [])
    assert first == f"svcctl: error: {difference.format(cluster.shell.variables['SVCCTL_BASE_URL'])}"
    assert second == "hint: give the workers the same profile, or the same SVCCTL_… environment"


def test_ctrl_c_ends_the_export_at_once_and_the_next_run_completes_it(
    cluster: Cluster, proxy: FaultyProxy, events: Shell
) -> None:
    proxy.choose = lambda body: "stall" if covers(body, START + 1800) else None
    command = ("export", "from exported.events", "--from", str(START), "--to", "1h", "--window", "1m", "-o", "all.csv")
    process = cluster.shell.start(*command, "--scheduler", cluster.address, stderr=subprocess.PIPE)
    proxy.await_requests(20)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == (
        b"svcctl: interrupted\nhint: the same command again fetches only what is missing\n"
    )
    assert (process.returncode, left(cluster.shell.home)) == (130, [])
    proxy.choose = lambda body: None
    done = export(cluster)
    assert done.returncode == 0, done.stderr
    expected = events("query", "from exported.events", "--from", str(START), "--to", "1h", "-f", "csv")
    assert (cluster.shell.home / "all.csv").read_bytes().decode() == expected.stdout


def test_refusals_reach_the_terminal_as_they_are(cluster: Cluster, proxy: FaultyProxy) -> None:
    proxy.choose = lambda body: "503" if covers(body, START + 600) else None
    done = export(cluster, "--retries", "0")
    assert (done.returncode, done.stderr.split("\n")[1:]) == (
        6,
        [
            "svcctl: error: 1 of 60 windows missing, from 2024-01-31 00:10:00 to 2024-01-31 00:11:00 UTC: "
            "the service answered HTTP 503: not now",
            "hint: the same command again fetches only what is missing",
            "",
        ],
    )
