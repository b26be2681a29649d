"""Running a shell command for its output, with limits on time and size; beyond these, it and its children are ended.

The command leads its own process group, so that the whole group can be ended. In the foreground of a terminal, it stays
in svcctl's group, because only that group may ask the person there. Its descendants are then ended one by one.
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
"""The interval at which the end of the command is checked, since its output may stay open in a child."""
_QUIET_SECONDS = 0.2
"""The seconds of silence, after the end of a command, after which its output is complete.

A child of the command may hold the pipe open for longer.
"""
_GRACE_SECONDS = 0.5
"""The seconds between SIGTERM and SIGKILL."""


class CommandTimeout(Exception):
    """A command that did not end in time."""


class TooLong(Exception):
    """A command that printed more than allowed."""


class Ended(NamedTuple):
    """The exit code and the output of a command that has ended."""

    code: int
    """The exit code, or the negative number of the signal that ended the command."""
    output: bytes


def run(command: str, *, seconds: float, max_bytes: int) -> Ended:
    """Run a command of /bin/sh and return its output. Raises Late or TooLong.

    The command gets svcctl's standard input if that is a terminal in the foreground, otherwise an empty one. A child
    process may go on running and keep the pipe open.
    """
    with _terminal() as terminal:
        modes = None if terminal is None else termios.tcgetattr(terminal)  # before the command can change them
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
                if terminal is not None and modes is not None:  # a password prompt may have switched off the echo
                    termios.tcsetattr(terminal, termios.TCSADRAIN, modes)
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def _terminal() -> Iterator[int | None]:
    """The terminal of this process; None if it has none or runs in the background."""
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
    """The output of the command, once it has ended; all that it wrote is in the pipe by then."""
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
    """The IDs of a process and its descendants. On a system without /proc, only the ID of the process."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    family = [process]
    for pid in family:
        family += children.get(pid, [])
    return family
