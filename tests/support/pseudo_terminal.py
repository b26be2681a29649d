"""Runs a command on a pseudo-terminal and keeps every byte that it writes, without interpreting them."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
import tty
from dataclasses import dataclass

from support.shells import SVCCTL, Shell


@dataclass(frozen=True)
class Seen:
    """The exit code of a command, and the bytes that it wrote to its terminal."""

    code: int
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode()


def on_terminal(shell: Shell, *arguments: str | bytes, typed: bytes = b"", **variables: str) -> Seen:
    """Run a command with stdin, stdout and stderr on a terminal of 200 columns, where `typed` is typed."""
    return on_terminal_of(200, shell, *arguments, typed=typed, **variables)


def on_terminal_of(columns: int, shell: Shell, *arguments: str | bytes, typed: bytes = b"", **variables: str) -> Seen:
    """Run a command as `on_terminal` does, on a terminal of another width."""
    master, slave = pty.openpty()
    tty.setraw(slave)  # output is not changed, and input is not echoed
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    seen = bytearray()

    def read() -> None:
        try:
            while block := os.read(master, 1 << 16):
                seen.extend(block)
        except OSError:  # the last process has closed the terminal
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        os.write(master, typed)
        code = subprocess.run(
            [*SVCCTL, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**shell.environment, "TERM": "xterm", "SVCCTL_PAGER": "", **variables},
            cwd=shell.home,
            start_new_session=True,
            timeout=shell.timeout,
            check=False,
        ).returncode
    finally:
        os.close(slave)
        reader.join(shell.timeout)
        os.close(master)
    return Seen(code, bytes(seen))
