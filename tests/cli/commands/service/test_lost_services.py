"""A service that commands do not reach at first: its socket is gone, it is starting, it hangs, or it runs elsewhere."""

from __future__ import annotations

import fcntl
import os
import select
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from support.shells import SVCCTL, Shell
from support.waiting import eventually

from svcctl.io.files import is_locked
from svcctl.service import process
from svcctl.service.process import ServiceFiles

QUERY = ("query", "from service.access", "--from", "1h")


def files_of(shell: Shell) -> ServiceFiles:
    return ServiceFiles(Path(shell.environment["SVCCTL_DATA"]))


def pid(shell: Shell) -> int:
    return int(files_of(shell).lock.read_text())


@contextmanager
def killed_at_the_end(shell: Shell) -> Iterator[int]:
    """A descriptor of the service's process, which can be read when the process has ended."""
    descriptor = os.pidfd_open(pid(shell))
    try:
        yield descriptor
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Shell]:
    """A shell with a running service without demo events."""
    shell = Shell(tmp_path, {"SVCCTL_DEMO": "0"})
    assert shell("service", "start").returncode == 0
    with killed_at_the_end(shell):
        yield shell


def deleted(socket: Path) -> None:
    socket.unlink()


def replaced(socket: Path) -> None:
    socket.unlink()
    socket.write_text("a file")


def moved(socket: Path) -> None:
    socket.rename(socket.with_name("old.sock"))


@pytest.mark.slow
@pytest.mark.parametrize("lose", [deleted, replaced, moved])
def test_commands_find_a_service_that_lost_its_socket(started: Shell, lose: Callable[[Path], None]) -> None:
    running, socket = pid(started), files_of(started).socket
    for command in (QUERY, ("service", "status"), ("job", "list"), ("service", "start")):
        lose(socket)
        done = started(*command)
        assert (done.returncode, "started" in done.stderr) == (0, False), done.stderr
    assert (pid(started), socket.stat().st_mode & 0o777) == (running, 0o600)
    lose(socket)
    assert started("service", "stop").returncode == 0
    assert not is_locked(files_of(started).lock)


@pytest.mark.slow
def test_a_service_whose_directory_is_replaced_leaves_the_socket_of_the_new_one_alone(started: Shell) -> None:
    with killed_at_the_end(started) as old:
        shutil.rmtree(files_of(started).directory)
        assert started("service", "start").returncode == 0
        socket = files_of(started).socket.stat().st_ino
        assert select.select([old], [], [], 30)[0] == [old]
    assert files_of(started).socket.stat().st_ino == socket
    assert started("service", "stop").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("length", [60, 150])
def test_the_place_of_the_socket_depends_on_nothing_but_the_directory(tmp_path: Path, length: int) -> None:
    data = tmp_path / ("x" * length)
    shell = Shell(tmp_path, {"SVCCTL_DEMO": "0", "SVCCTL_DATA": str(data)})
    (tmp_path / "link").symlink_to(data)
    assert shell("service", "start", TMPDIR=str(tmp_path)).returncode == 0
    with killed_at_the_end(shell):
        for variables in ({"TMPDIR": "/nowhere"}, {"TMPDIR": ""}, {"SVCCTL_DATA": str(tmp_path / "link")}):
            assert shell(*QUERY, **variables).returncode == 0
            checked = shell("profile", "check", "local", **variables)
            assert checked.returncode == 0, checked.stdout + checked.stderr
        assert [path.parent for path in tmp_path.rglob("*.sock")] == [data]
        assert shell("service", "stop", TMPDIR="/nowhere").returncode == 0
        assert not is_locked(data / "service.lock")


@pytest.mark.slow
def test_a_suspended_service_is_reported_and_can_be_stopped_and_restarted(started: Shell) -> None:
    os.kill(pid(started), signal.SIGSTOP)
    for command in (QUERY, ("service", "status"), ("service", "start")):
        began = time.monotonic()
        done = started(*command)
        assert (done.returncode, f"(process {pid(started)}) does not answer" in done.stderr) == (6, True)
        assert time.monotonic() - began < 15
    suspended = pid(started)
    assert started("service", "restart").returncode == 0
    with killed_at_the_end(started):
        os.kill(pid(started), signal.SIGSTOP)
        assert pid(started) != suspended
        assert started("service", "stop").returncode == 0
        assert not is_locked(files_of(started).lock)


@pytest.mark.slow
def test_a_lock_of_a_process_elsewhere_is_reported_by_each_command(shell: Shell) -> None:
    files = files_of(shell)
    files.make()
    with closing(files.lock.open("w")) as stream:  # as a file system holds the lock of another host
        stream.write("1")
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        os.utime(files.lock, (0, 0))
        for command in (QUERY, ("job", "list"), ("service", "status"), ("service", "start")):
            done = shell(*command)
            assert (done.returncode, "does not listen on its socket" in done.stderr) == (6, True)
        for verb in (("stop",), ("restart",), ("reset", "--yes")):
            done = shell("service", *verb)
            assert (done.returncode, "cannot stop" in done.stderr) == (6, True)


@pytest.mark.slow
def test_a_service_that_makes_demo_events_is_awaited_and_can_be_stopped(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"SVCCTL_DEMO": "20000d"})
    starting = shell.start("service", "start", stderr=subprocess.PIPE)
    eventually(files_of(shell).socket.exists)
    with killed_at_the_end(shell):
        status = shell("service", "status")
        assert (status.returncode, "starting or stopping" in status.stderr) == (4, True)
        waiting = shell.start(*QUERY, stderr=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(7)  # longer than a silent service is awaited
        waiting.terminate()
        assert b"waiting for the local service" in waiting.communicate()[1]
        stopped = shell("service", "stop")
        assert (stopped.returncode, is_locked(files_of(shell).lock)) == (0, False)
        assert b"did not start" in starting.communicate()[1]
        assert starting.returncode == 1


@pytest.mark.slow
def test_a_command_that_finds_a_service_stopping_starts_it_again(started: Shell) -> None:
    stopping = started.start("service", "stop", stderr=subprocess.DEVNULL)
    before = pid(started)
    eventually(lambda: not process.listens(files_of(started)))
    done = started(*QUERY)
    assert (done.returncode, stopping.wait(30)) == (0, 0)
    with killed_at_the_end(started):
        assert pid(started) != before


NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c")
SAME_NUMBER = "while sleep 99 & [ $! -lt $(cat {lock}) ]; do kill $!; done; bystander=$!"
"""Starts a process that has the ID of the lock file in its own namespace."""


@pytest.mark.slow
@pytest.mark.skipif(
    subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode != 0,
    reason="no PID namespace can be made here",
)
@pytest.mark.parametrize("suspended", [False, True], ids=["answers", "hangs"])
def test_no_process_of_this_namespace_gets_a_signal_for_a_service_of_another(tmp_path: Path, suspended: bool) -> None:
    shell, svcctl = Shell(tmp_path, {"SVCCTL_DEMO": "0"}), shlex.join(SVCCTL)
    lock = shlex.quote(str(files_of(shell).lock))
    service = subprocess.Popen(
        [*NAMESPACE, f"{svcctl} -q service start; {f'kill -STOP $(cat {lock});' if suspended else ''} echo; sleep 99"],
        env=shell.environment,
        stdout=subprocess.PIPE,
    )
    with service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"\n"
        codes = " ".join(
            f"{svcctl} service {verb}; echo $?;"
            for verb in (("stop", "restart", "reset --yes") if suspended else ("stop",))
        )
        done = subprocess.run(
            [*NAMESPACE, f"{SAME_NUMBER.format(lock=lock)}; {codes} kill $bystander && echo alive"],
            env=shell.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == [*(["6"] * 3 if suspended else ["0"]), "alive"], done.stderr
        assert is_locked(files_of(shell).lock) == suspended
        service.kill()
