"""Servers of peers: the error of a server that does not start, and that no server outlives the tests."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from peers import installed
from peers.processes import PeerFailed, Process, Together, free_port, running

STARTS_A_SERVER = """
import pathlib, sys
from peers.processes import Process
directory = pathlib.Path(sys.argv[1])
asleep = ["sh", "-c", "touch ready; exec sleep 600"]
server = Process("sleeper", asleep, directory, ready=(directory / "ready").stat)
server.start()
print(server.child.pid, flush=True)
input()
"""

PORTS = range(7_100, 7_110)  # outside those of other tests
RESERVES_PORTS = """
from peers.processes import free_port
print(*[free_port(range(7_100, 7_110)) for _ in range(5)], flush=True)
input()
"""


def shell(directory: Path, script: str, seconds_to_start: float = 60) -> Process:
    ready = (directory / "ready").stat
    return Process("server", ["sh", "-c", script], directory, ready, seconds_to_start=seconds_to_start)


def ended(process: int) -> bool:
    """Whether the process of a pidfd ends within 20 s."""
    return bool(select.select([process], [], [], 20)[0])


def test_a_server_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(PeerFailed) as caught:
        shell(tmp_path, "echo no such disk >&2; exit 3").start()
    assert str(caught.value) == "server did not start: exited with 3\nno such disk\n"


def test_a_server_that_never_becomes_ready_is_stopped_and_reported(tmp_path: Path) -> None:
    server = shell(tmp_path, "echo waiting for a friend; exec sleep 600", seconds_to_start=0.2)
    with pytest.raises(PeerFailed, match=r"(?s)server did not start: .*ready'\nwaiting for a friend\n$"):
        server.start()
    assert server.child is None


def test_a_server_and_its_children_are_gone_after_the_block_however_it_ends(tmp_path: Path) -> None:
    server = shell(tmp_path, "sleep 600 & echo $! > child; mv child ready; wait")
    with ExitStack() as files:
        with pytest.raises(ZeroDivisionError), running(server):
            child = os.pidfd_open(int((tmp_path / "ready").read_text()))
            files.callback(os.close, child)
            raise ZeroDivisionError
        assert ended(child)


def test_a_server_ends_when_the_tests_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS_A_SERVER, str(tmp_path)]
    paths = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, env=paths, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        server = os.pidfd_open(int(tests.stdout.readline()))
        try:
            tests.send_signal(signal.SIGKILL)
            assert ended(server)
        finally:
            os.close(server)


def test_servers_that_belong_together_start_in_order_and_stop_in_reverse() -> None:
    told: list[str] = []

    class Told:
        def __init__(self, name: str) -> None:
            self.name = name

        def start(self) -> None:
            told.append(f"start {self.name}")

        def stop(self) -> None:
            told.append(f"stop {self.name}")

    with running(Together([Told("keeper"), Told("broker")])):
        assert told == ["start keeper", "start broker"]
    assert told[2:] == ["stop broker", "stop keeper"]


def test_a_missing_peer_skips_a_test_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SVCCTL_REQUIRE_PEERS", raising=False)
    reason = "Tea is not installed (no tea-kettle-7): run .ci/peers"
    with pytest.raises(pytest.skip.Exception, match=r"^Tea is not installed \(no tea-kettle-7\): run \.ci/peers$"):
        installed.need("Tea", "sh", "tea-kettle-7")
    monkeypatch.setenv("SVCCTL_REQUIRE_PEERS", "1")
    with pytest.raises(pytest.fail.Exception) as caught:
        installed.need("Tea", "sh", "tea-kettle-7")
    assert caught.value.msg == reason
    installed.need("A shell", "sh")


def test_no_two_processes_get_the_same_port_even_before_a_server_listens() -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", RESERVES_PORTS],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout is not None
        theirs = set(map(int, other.stdout.readline().split()))
        ours = {free_port(PORTS) for _ in range(3)}
        assert len(theirs) == 5
        assert len(ours) == 3
        assert not ours & theirs
        with pytest.raises(PeerFailed, match="no port is free"):
            for _ in PORTS:
                free_port(PORTS)
        other.communicate("\n")
