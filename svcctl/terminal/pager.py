"""A pager for output that is longer than the screen: $SVCCTL_PAGER, or else $PAGER, or else less.

The first screen of a result is held back for a moment. A result that is short, or that arrives slowly, is printed
without a pager. If a pager cannot be started or fails early, the text is also printed without a pager.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from svcctl.errors import PagerLeft
from svcctl.terminal.size import terminal_size

if TYPE_CHECKING:
    import subprocess

VARIABLE = "SVCCTL_PAGER"
_NO_PAGER = ("", "cat")
_OPTIONS = {"LESS": "FRX", "LV": "-c"}
"""Default environment variables for pagers: quit if the text fits, show colours, do not clear the screen."""
_MOST_REPEATED = 1 << 17
"""The number of bytes that are kept in memory, so that they can be printed again if the pager fails.

A pager that has read more bytes counts as working.
"""
_SIGNALLED = 128
_COLORS = r"\x1b\[\d*m"
FIRST_SCREEN_SECONDS = 1.0
"""The number of seconds for which the first screen is held back."""


def command(environment: Mapping[str, str]) -> str | None:
    """Return the command of the pager; None if there is no pager to use.

    This is the case if the user wants no pager, if the terminal cannot show a pager, or if no pager is installed.
    """
    if environment.get("TERM", "dumb") == "dumb":
        return None
    for name in (VARIABLE, "PAGER"):
        if name in environment:
            return None if environment[name].strip() in _NO_PAGER else environment[name]
    return "less" if shutil.which("less", path=environment.get("PATH")) else None


class Paged(io.RawIOBase):
    """A terminal that holds back the first screen of text, and starts a pager if there is more.

    Call `finish` at the end.
    """

    def __init__(self, terminal: io.RawIOBase, pager: str, above: Iterable[bytes] = ()) -> None:
        self.terminal = terminal
        self._above = above
        """Lines that the pager shows above the text. These lines are read when the pager starts."""
        self._pager = pager
        self._size = terminal_size()
        self._first_bytes = bytearray()
        """The bytes that are held back until the pager starts.

        After the start, these are the first bytes that the pager received.
        """
        self._process: subprocess.Popen[bytes] | None = None
        self._direct = False
        self._lock = threading.Lock()
        self._slow = threading.Timer(FIRST_SCREEN_SECONDS, self._release)
        self._slow.daemon = True

    def fileno(self) -> int:
        return self.terminal.fileno()

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Write all of the data. Raises PagerLeft if the person has left the pager."""
        block = bytes(data)
        with self._lock:
            if self._direct:
                self.terminal.write(block)
            elif self._process is not None:
                self._keep(block)
                self._send(block)
            else:
                if block and not self._first_bytes:
                    self._slow.start()
                self._first_bytes += block
                if self._rows() > self._size.lines:
                    self._start()
        return len(block)

    @property
    def failed(self) -> int:
        """The exit code of the pager if the pager failed; otherwise 0."""
        return self._process.returncode if self._process is not None and self._direct else 0

    def _rows(self) -> int:
        """Return the number of screen rows for the text that is held back, plus one row for the prompt after it."""
        lines = re.sub(_COLORS, "", self._first_bytes.decode("utf-8", "replace")).split("\n")
        return sum(1 + max(0, len(line) - 1) // self._size.columns for line in lines)

    def _release(self) -> None:
        """Print the text that is held back, and all later text, without a pager.

        This method is called after FIRST_SCREEN_SECONDS, so that slow rows are visible when they arrive.
        """
        with self._lock:
            if self._process is None and not self._direct and self._first_bytes:
                self._print_again()

    def finish(self) -> None:
        """Print the text that is held back, or wait until the person leaves the pager.

        While waiting, Ctrl-C goes to the pager.
        """
        self._slow.cancel()
        if self._process is None:
            if not self._direct:
                self.terminal.write(bytes(self._first_bytes))
            return
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._close()
        finally:
            signal.signal(signal.SIGINT, before)
        if not self._direct and self._broken():
            self._print_again()

    def _start(self) -> None:
        import subprocess  # late, because this module loads slowly, and only long output needs it

        environment = {**_OPTIONS, **os.environ}
        self._first_bytes[:0] = b"".join(self._above)
        self._process = subprocess.Popen(["/bin/sh", "-c", self._pager], stdin=subprocess.PIPE, env=environment)
        self._send(bytes(self._first_bytes))

    def _send(self, block: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(block)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._close()
            if not self._broken():
                raise PagerLeft from None
            self._print_again()

    def _keep(self, block: bytes) -> None:
        if len(self._first_bytes) <= _MOST_REPEATED:
            self._first_bytes += block

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the person left the pager before the last bytes
            self._process.stdin.close()
        self._process.wait()

    def _broken(self) -> bool:
        """Return whether the pager failed. A pager that the person left has not failed."""
        assert self._process is not None
        return 0 < self._process.returncode < _SIGNALLED and len(self._first_bytes) <= _MOST_REPEATED

    def _print_again(self) -> None:
        self._direct = True
        self.terminal.write(bytes(self._first_bytes))
