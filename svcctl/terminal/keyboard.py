"""The keyboard while a screen is shown: `q` leaves it, Ctrl-Z puts it aside, and no key is echoed.

A thread reads the keys, so that `q` works while the service is slow. It reads and changes the terminal only while this
process is in the terminal's foreground: the system stops a process in the background that does either.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO, TypeVar

T = TypeVar("T")

_LEAVE = b"qQ"
_POLL_SECONDS = 0.2
"""How often the thread looks whether the process is in the foreground."""
_REPEAT_SECONDS = 0.01
_WAKES = signal.SIGUSR1
"""The signal with which the thread interrupts the main one."""
_SUSPENDING = (signal.SIGTSTP, signal.SIGQUIT)
"""Ctrl-Z and Ctrl-\\: they stop or end the process, which leaves the terminal in order."""


class _Left(BaseException):
    """Somebody typed q; no `except Exception` on its way takes it for a failure."""


class Keyboard:
    """The keys that are typed at stdin. If that is not a terminal, nothing is read from it."""

    def __init__(self, stdin: TextIO | None) -> None:
        self._terminal = stdin.fileno() if stdin is not None and stdin.isatty() else None
        self._modes: list[Any] | None = None
        """The terminal's modes before they were changed."""
        self._lock = threading.RLock()
        self._aside = False
        self._left = False
        self._waits = False

    @property
    def is_read(self) -> bool:
        return self._terminal is not None

    @contextmanager
    def watched(self, aside: Callable[[], None], back: Callable[[], None]) -> Iterator[None]:
        """Read keys until the end of the block.

        Ctrl-Z calls `aside` before the process stops, and `back` afterwards; `back` is also called when the process
        comes to the foreground again. Only the main thread may do this.
        """

        def suspend(number: int, _: FrameType | None) -> None:
            self._aside = True
            self._restore()
            aside()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            # The process was stopped, and somebody has continued it.
            signal.signal(number, suspend)
            self._aside = False
            back()

        handlers = {number: suspend for number in _SUSPENDING if signal.getsignal(number) != signal.SIG_IGN}
        previous = {number: signal.signal(number, suspend) for number in handlers}
        previous[_WAKES] = signal.signal(_WAKES, lambda *_: self._wake(back))
        end, ended = os.pipe()
        reader = threading.Thread(target=self._read, args=(end, threading.get_ident()), daemon=True)
        try:
            if self.is_read:
                reader.start()
            yield
        finally:
            os.close(ended)
            if reader.ident is not None:
                reader.join()
            os.close(end)
            self._restore()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def until_left(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until somebody types q; waiting for an item is interrupted, and using it is not."""
        iterator = iter(items)
        with suppress(_Left):
            while not self._left:
                try:
                    self._waits = True
                    item = next(iterator)
                except StopIteration:
                    return
                finally:
                    self._waits = False
                yield item

    def _wake(self, back: Callable[[], None]) -> None:
        if not self._left:
            back()
        elif self._waits:
            self._waits = False
            raise _Left

    def _read(self, end: int, main: int) -> None:
        """Read keys until the terminal is gone or the other side of the pipe `end` is closed; q interrupts `main`."""
        assert self._terminal is not None
        # The main thread deals with these; a terminal that is lost to another process is an error, and no stop.
        others = {signal.SIGINT, signal.SIGTERM, *_SUSPENDING, _WAKES, signal.SIGTTIN, signal.SIGTTOU}
        signal.pthread_sigmask(signal.SIG_BLOCK, others)
        taken = True
        with suppress(OSError, termios.error):
            while True:
                before, taken = taken, self._take()
                if taken and not before:
                    signal.pthread_kill(main, _WAKES)
                sources = [end, self._terminal] if taken else [end]
                ready, _, _ = select.select(sources, [], [], _POLL_SECONDS)
                if end in ready:
                    return
                key = self._key() if ready else None
                if key == b"":
                    return
                if key is not None and key in _LEAVE:
                    break
            self._left = True
            # A signal that comes just before the main thread waits does not wake it, so it is repeated.
            while not select.select([end], [], [], _REPEAT_SECONDS)[0]:
                signal.pthread_kill(main, _WAKES)

    def _key(self) -> bytes | None:
        """The next key; empty when the terminal is gone, None in the background, to which the process may have come."""
        assert self._terminal is not None
        try:
            return os.read(self._terminal, 1) if is_in_foreground(self._terminal) else None
        except OSError:
            return b"" if is_in_foreground(self._terminal) else None

    def _take(self) -> bool:
        """Switch off the echo and the waiting for whole lines; False in the background, where nothing is changed.

        A shell may have changed the modes since they were last set, so they are compared each time.
        """
        assert self._terminal is not None
        with self._lock:
            if self._aside or not is_in_foreground(self._terminal):
                return False
            modes = termios.tcgetattr(self._terminal)
            if modes[3] & (termios.ECHO | termios.ICANON):
                self._modes = self._modes or modes
                control = [*modes[6]]
                control[termios.VMIN], control[termios.VTIME] = 1, 0
                quiet = [*modes[:3], modes[3] & ~(termios.ECHO | termios.ICANON), *modes[4:6], control]
                termios.tcsetattr(self._terminal, termios.TCSANOW, quiet)
        return True

    def _restore(self) -> None:
        """Give the terminal its modes back; in the background they are another process's."""
        with self._lock, suppress(OSError, termios.error):
            if self._terminal is not None and self._modes is not None and is_in_foreground(self._terminal):
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._modes)
                self._modes = None


def is_in_foreground(terminal: int | TextIO) -> bool:
    """Whether this process may use a terminal; also for one without jobs, which is not its controlling terminal."""
    try:
        return os.tcgetpgrp(terminal if isinstance(terminal, int) else terminal.fileno()) == os.getpgrp()
    except OSError:
        return True
