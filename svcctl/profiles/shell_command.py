"""Running a shell command for its output, with limits on time and size.

A command that exceeds a limit is ended, together with the processes that it started. Usually, the command runs in a new
process group, and the whole group is ended. If svcctl is in the foreground of a terminal, the command stays in the
process group of svcctl, so that the command can use the terminal. The processes of the command are then ended one by
one.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_TURN_SECONDS = 0.02
"""The number of seconds between two checks for the end of the command."""
_QUIET_SECONDS = 0.2
"""After the command has ended, its output counts as complete when nothing arrives for this number of seconds."""
_GRACE_SECONDS = 0.5
"""The number of seconds between SIGTERM and SIGKILL."""


class CommandTimeout(Exception):
    """A command that did not end in time."""


class TooLong(Exception):
    """A command that printed more bytes than allowed."""


class Ended(NamedTuple):
    """The exit code and the output of a command that has ended."""

    code: int
    """The exit code. If a signal ended the command, the code is the negative number of the signal."""
    output: bytes


def run(command: str, *, seconds: float, max_bytes: int) -> Ended:
    """Run a command with /bin/sh. Returns its exit code and its output. Raises CommandTimeout or TooLong.

    If svcctl is in the foreground and its standard input is a terminal, the command can read this input. Otherwise, the
    input of the command is empty. A child process may continue to run after the end of the command.
    """
    with _terminal() as terminal:
        modes = None if terminal is None else termios.tcgetattr(terminal)  # a command can change the terminal's modes
        process = subprocess.Popen(
            command,
            shell=True,
            stdin=None if terminal is not None and os.isatty(0) else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            process_group=0 if terminal is None else None,
        )
        try:
            output = _output(process, time.monotonic() + seconds, max_bytes)
            return Ended(process.wait(), output)
        finally:
            if process.poll() is None:
                _end(process, group=terminal is None)
                if terminal is not None and modes is not None:  # a prompt for a password may have switched off the echo
                    termios.tcsetattr(terminal, termios.TCSADRAIN, modes)
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def _terminal() -> Iterator[int | None]:
    """Yield the terminal of this process; None if the process has no terminal or runs in the background."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield terminal if os.tcgetpgrp(terminal) == os.getpgrp() else None
    finally:
        os.close(terminal)


def _output(process: subprocess.Popen[bytes], deadline: float, max_bytes: int) -> bytes:
    """Wait for the end of the command, and return its output.

    A child process of the command may keep the pipe open. So the function does not wait for the end of the pipe.
    """
    assert process.stdout is not None
    output, sources = bytearray(), [process.stdout.fileno()]
    quiet_since = time.monotonic()
    while True:
        ended, now = process.poll() is not None, time.monotonic()
        if now >= deadline:
            if ended:
                return bytes(output)
            raise CommandTimeout
        if select.select(sources, [], [], _TURN_SECONDS)[0]:
            block = os.read(sources[0], 1 << 16)
            output += block
            if len(output) > max_bytes:
                raise TooLong
            if not block:
                sources = []
            quiet_since = now
        elif ended and (not sources or now - quiet_since >= _QUIET_SECONDS):
            return bytes(output)
        elif not ended:
            quiet_since = now


def _end(process: subprocess.Popen[bytes], *, group: bool) -> None:
    """End the command and all processes that it started."""
    pids = [] if group else _family(process.pid)

    def send(number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if group:
                os.killpg(process.pid, number)
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    try:
        send(signal.SIGTERM)
        send(signal.SIGCONT)  # a stopped process receives SIGTERM only when it continues
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    finally:
        send(signal.SIGKILL)
        process.wait()


def _family(process: int) -> list[int]:
    """Return the IDs of a process and its descendants.

    On a system without /proc, the result is only the ID of the process itself.
    """
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    family = [process]
    for pid in family:
        family += children.get(pid, [])
    return family
