"""The local service seen from outside: who may use its directory, and which process is awaited and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from svcctl.errors import Locked, SvcctlError, Unavailable, UsageError
from svcctl.service import process
from svcctl.service.process import ServiceFiles

# What the errors say, each once; the tests state their kind.
WORDS = {
    "open to others": "directory {directory} can be used by others (its mode is {mode:04o})",
}
HINTS = {
    "open to others": "make it private: chmod 700 '{directory}'; or set SVCCTL_DATA to a new directory",
}


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o1777])
def test_a_directory_that_others_can_use_is_refused_and_left_as_it_is(tmp_path: Path, mode: int) -> None:
    directory = tmp_path / "my data"
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(UsageError) as caught:
        ServiceFiles(directory).make()
    assert (caught.value.message, caught.value.hint) == (
        WORDS["open to others"].format(directory=directory, mode=mode),
        HINTS["open to others"].format(directory=directory),
    )
    assert directory.stat().st_mode & 0o7777 == mode
    directory.chmod(0o700)
    ServiceFiles(directory).make()


@dataclass
class Impostors:
    """Starts processes of `support.impostor` in one directory."""

    files: ServiceFiles
    _closing: ExitStack

    def __call__(self, answer: str, claimed: str = "") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "support.impostor", str(self.files.directory), answer, claimed]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        self._closing.callback(process.wait)
        self._closing.callback(process.kill)
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == b"ready\n"
        return process


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[Impostors]:
    files = ServiceFiles(tmp_path / "data")
    process.credentials(files, "local")
    with ExitStack() as closing:
        yield Impostors(files, closing)


ENDED = -signal.SIGTERM
SILENT = 0.4


@pytest.mark.parametrize(
    "answer",
    [
        *(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n" for status in (401, 404, 405, 500, 503)),
        "SSH-2.0-x\r\n",
        "",
    ],
    ids=lambda answer: answer.split("\r\n")[0] or "silence",
)
def test_a_service_that_does_not_accept_the_request_gets_a_signal(impostor: Impostors, answer: str) -> None:
    service = impostor(answer)
    assert process.stop(impostor.files, SILENT)
    assert service.wait(5) == ENDED


def test_a_suspended_service_is_ended(impostor: Impostors) -> None:
    service = impostor("")
    os.kill(service.pid, signal.SIGSTOP)
    assert process.stop(impostor.files, SILENT)
    assert service.wait(5) == ENDED


def test_without_credentials_a_service_gets_a_signal(impostor: Impostors) -> None:
    impostor.files.credentials.unlink()
    service = impostor("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert process.stop(impostor.files, SILENT)
    assert service.wait(5) == ENDED
    assert not impostor.files.credentials.exists()


NOT_FOUND = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
CANNOT_STOP = "cannot stop the local service in {directory} (process {process}): {reason}"
NO_PROOF = "it does not answer, and nothing proves which process it is"


@pytest.mark.parametrize("answer", ["-", "", NOT_FOUND], ids=["deaf", "silent", "old"])
def test_a_process_that_only_has_the_id_in_the_lock_file_gets_no_signal(impostor: Impostors, answer: str) -> None:
    bystander = impostor("-", "-")
    service = impostor(answer, str(bystander.pid))
    with pytest.raises(Unavailable) as caught:
        process.stop(impostor.files, SILENT)
    assert caught.value.message == CANNOT_STOP.format(
        directory=impostor.files.directory, process=bystander.pid, reason=NO_PROOF
    )
    assert (service.poll(), bystander.poll()) == (None, None)


@pytest.mark.parametrize("answer", ["", NOT_FOUND], ids=["silent", "old"])
def test_a_process_that_listens_but_does_not_hold_the_lock_gets_no_signal(impostor: Impostors, answer: str) -> None:
    service = impostor("-")
    listening = impostor(answer, "-")
    with pytest.raises(Unavailable):
        process.stop(impostor.files, SILENT)
    assert (service.poll(), listening.poll()) == (None, None)
    service.kill()
    service.wait()
    assert not process.stop(impostor.files, SILENT)
    assert listening.poll() is None


def test_a_service_that_accepts_to_stop_and_does_not_is_reported(impostor: Impostors) -> None:
    service = impostor("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(SvcctlError, match=f"process {service.pid}.*did not stop in 0.6s"):
        process.stop(impostor.files, SILENT, 0.6)
    assert service.poll() is None


def test_a_reset_deletes_nothing_of_a_service_that_runs(impostor: Impostors) -> None:
    impostor("-")
    impostor.files.events.write_text("events")
    with pytest.raises(Locked):
        process.reset(impostor.files)
    assert impostor.files.events.read_text() == "events"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("-", "holds its lock, but does not listen on its socket"),
        ("", "does not answer"),
        ("SSH-2.0-x\r\n", "does not answer"),
    ],
    ids=["deaf", "silent", "foreign"],
)
def test_a_service_that_holds_its_lock_and_is_silent_is_reported_in_time(
    impostor: Impostors, answer: str, fault: str
) -> None:
    service = impostor(answer)
    began = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        process.await_answer(impostor.files, pytest.fail, SILENT)
    assert caught.value.message == f"the local service in {impostor.files.directory} (process {service.pid}) {fault}"
    assert SILENT <= time.monotonic() - began < SILENT + 5


@pytest.mark.parametrize("status", [200, 404, 503])
def test_any_answer_shows_that_the_service_runs(impostor: Impostors, status: int) -> None:
    impostor(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
    assert process.await_answer(impostor.files, pytest.fail, SILENT)


def test_nobody_waits_for_a_service_that_does_not_run(impostor: Impostors) -> None:
    listening = impostor("", "-")
    assert not process.await_answer(impostor.files, pytest.fail, SILENT)
    assert not process.stop(impostor.files, SILENT)
    assert listening.poll() is None


def test_a_service_is_awaited_as_long_as_it_touches_its_lock(impostor: Impostors) -> None:
    service = impostor("")
    touched = 0

    def touch() -> None:
        nonlocal touched
        while service.poll() is None:
            impostor.files.lock.touch()
            touched += 1
            if touched == 8:
                service.kill()
            time.sleep(SILENT / 4)

    touching = threading.Thread(target=touch)
    impostor.files.lock.touch()
    touching.start()
    assert not process.await_answer(impostor.files, pytest.fail, SILENT)
    touching.join()
    assert touched >= 8


def test_a_date_of_the_lock_in_the_future_does_not_hide_that_nothing_answers(impostor: Impostors) -> None:
    impostor("-")
    os.utime(impostor.files.lock, (time.time() + 3600,) * 2)
    with pytest.raises(Unavailable):
        process.await_answer(impostor.files, pytest.fail, SILENT)
