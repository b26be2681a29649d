"""A shell command that is run for its output, within a time and a size; past these, all that it started is ended.

The command is the leader of a process group of its own, so that the group can be ended. In the foreground of a terminal
it stays in svcctl's group, because only that group may ask the person there; its descendants are ended one by one.
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
"""How often the end of the command is looked for while a child of it may hold the pipe."""
_QUIET_SECONDS = 0.2
"""How long a pipe that is still open must be silent after the end of the command, for the output to be complete."""
_GRACE_SECONDS = 0.5
"""Time between SIGTERM and SIGKILL."""


class Late(Exception):
    """The command did not end in time."""


class TooLong(Exception):
    """The command printed more than is allowed."""


class Ended(NamedTuple):
    code: int
    """The exit code; negative for the number of a signal."""
    output: bytes


def run(command: str, *, seconds: float, max_bytes: int) -> Ended:
    """Run a command of /bin/sh. Raises Late or TooLong.

    It has the terminal as its standard input where that is svcctl's, and nothing elsewhere. A child that it leaves may
    go on and hold the pipe.
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
                if terminal is not None and modes is not None:  # a prompt for a password may have hidden what is typed
                    termios.tcsetattr(terminal, termios.TCSADRAIN, modes)
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def _terminal() -> Iterator[int | None]:
    """The terminal of this process; None if it has none, or is in its background."""
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
    """All that the command printed, once it has ended; what it wrote is in the pipe then."""
    assert process.stdout is not None
    output, sources = bytearray(), [process.stdout.fileno()]
    quiet_since = time.monotonic()
    while True:
        ended, now = process.poll() is not None, time.monotonic()
        if now >= deadline:
            if ended:
                return bytes(output)
            raise Late
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
    """End the command and all that it started."""
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
        send(signal.SIGCONT)  # a stopped process ends only when it is continued
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    finally:
        send(signal.SIGKILL)
        process.wait()


def _family(process: int) -> list[int]:
    """A process and its descendants; the process alone where the system has no /proc."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    family = [process]
    for pid in family:
        family += children.get(pid, [])
    return family
