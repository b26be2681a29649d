"""Runs a command on a pseudo-terminal, and keeps every byte that it writes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from support.shells import SVCCTL, Shell


@dataclass(frozen=True)
class Seen:
    """The exit code of a command, and the bytes that it wrote to its terminal."""

    code: int
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode()

    @property
    def screen(self) -> str:
        return screen(self.text)


def screen(text: str, *, styles: bool = False) -> str:
    """What is left on a terminal to which a text was written, with or without styles: progress erases itself.

    Only the movements of progress are known; a line is never too long, and a character one cell wide.
    """
    lines: list[list[str]] = [[]]
    row = column = 0
    style = ""
    for found in re.finditer(r"\x1b\[(?P<number>[?\d;]*)(?P<control>[@-~])|[^\x1b]", text):
        if found["control"] == "A":
            row = max(0, row - int(found["number"] or 1))
        elif found["control"] == "K":
            del lines[row][0 if found["number"] == "2" else column :]
        elif found["control"] == "m" and styles:
            style += found[0]
        elif found[0] == "\r":
            column = 0
        elif found[0] == "\n":
            row, column = row + 1, 0
            lines += [[]] * (row == len(lines))
        elif found["control"] is None:
            lines[row] += " " * (column - len(lines[row]))
            lines[row][column : column + 1] = [style + found[0]]
            column, style = column + 1, ""
    while len(lines) > row + 1 and not lines[-1]:
        lines.pop()
    return "\n".join(map("".join, lines)) + style


def on_terminal(shell: Shell, *arguments: str | bytes, typed: bytes = b"", **variables: str) -> Seen:
    """Run a command with stdin, stdout and stderr on a terminal of 200 columns, where `typed` is typed."""
    return on_terminal_of(200, shell, *arguments, typed=typed, **variables)


def on_terminal_of(columns: int, shell: Shell, *arguments: str | bytes, typed: bytes = b"", **variables: str) -> Seen:
    """Run a command as `on_terminal` does, on a terminal of another width."""
    return run_on_terminal(columns, shell, [*SVCCTL, *arguments], typed=typed, **variables)


def run_on_terminal(
    columns: int, shell: Shell, command: Sequence[str | bytes], *, typed: bytes = b"", **variables: str
) -> Seen:
    """Run a command of any program in the environment of a shell."""
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
            command,
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


@dataclass
class Session:
    """A command that runs on a terminal with the modes of a shell: it echoes keys, and passes them on in lines."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    seen: bytearray = field(default_factory=bytearray)

    @property
    def is_quiet(self) -> bool:
        """Whether the terminal neither echoes keys nor waits for lines."""
        return not termios.tcgetattr(self.slave)[3] & (termios.ECHO | termios.ICANON)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def wait_for(self, text: str, seconds: float = 20) -> None:
        """Read what the command writes until it has written a text."""
        deadline = time.monotonic() + seconds
        while text.encode() not in self.seen:
            assert select.select([self.master], [], [], deadline - time.monotonic())[0], self.seen.decode()
            self.seen += os.read(self.master, 1 << 16)

    def end(self) -> tuple[int, str]:
        """The exit code, and what the command wrote since the last call of `wait_for`, up to its end."""
        before, deadline = len(self.seen), time.monotonic() + 20
        while (is_running := self.process.poll() is None) or select.select([self.master], [], [], 0)[0]:
            assert time.monotonic() < deadline, self.seen.decode()
            # A terminal that nobody reads would soon be full, and the command could not end.
            if select.select([self.master], [], [], 0.01 if is_running else 0)[0]:
                self.seen += os.read(self.master, 1 << 16)
        return self.process.wait(), self.seen[before:].decode()


@contextmanager
def session(shell: Shell, *arguments: str, variables: Mapping[str, str], stdin: int | None = None) -> Iterator[Session]:
    """Run svcctl on a terminal of 200 columns until the block ends; `stdin` may be something else."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    environment = {**shell.environment, "TERM": "xterm", "NO_COLOR": "1", **variables}
    process = subprocess.Popen(
        [*SVCCTL, *arguments],
        stdin=slave if stdin is None else stdin,
        stdout=slave,
        stderr=slave,
        env=environment,
        cwd=shell.home,
        start_new_session=True,
    )
    try:
        yield Session(process, master, slave)
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)
