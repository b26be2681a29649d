"""Keys that a person types while a command repeats its output.

The key `q` ends the output, Ctrl-Z suspends the command, and keys are not echoed. A thread reads the keys, so that `q`
works even if the service is slow. The thread uses the terminal only while the process is in the foreground, because the
system stops a background process that reads from its terminal.
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
"""The interval, in seconds, at which the thread checks whether the process is in the foreground."""
_REPEAT_SECONDS = 0.01
_WAKES = signal.SIGUSR1
"""The signal with which the thread interrupts the main thread."""
_SUSPENDING = (signal.SIGTSTP, signal.SIGQUIT)
"""The signals of Ctrl-Z and Ctrl-\\. The terminal is restored before such a signal stops or ends the process."""


class _Left(BaseException):
    """The exception that the key q raises. It is a BaseException, so `except Exception` does not catch it."""


class Keyboard:
    """The keys that are typed at stdin. If stdin is not a terminal, no keys are read."""

    def __init__(self, stdin: TextIO | None) -> None:
        self._terminal = stdin.fileno() if stdin is not None and stdin.isatty() else None
        self._modes: list[Any] | None = None
        """The modes of the terminal before this object changed them; None if it has not changed them."""
        self._lock = threading.RLock()
        self._aside = False
        self._left = False
        self._waits = False

    @property
    def is_read(self) -> bool:
        return self._terminal is not None

    @contextmanager
    def watched(self, aside: Callable[[], None], back: Callable[[], None]) -> Iterator[None]:
        """Read keys until the end of the block. Only the main thread may call this method.

        After Ctrl-Z, `aside` is called before the process stops, and `back` is called when the process continues.
        `back` is also called when the process returns to the foreground.
        """

        def suspend(number: int, _: FrameType | None) -> None:
            self._aside = True
            self._restore()
            aside()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            # Here the process stops until somebody continues it.
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
        """Yield items until somebody types q.

        The key interrupts the wait for the next item, but not the work on an item.
        """
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
        """Read keys until the terminal is gone or `watched` ends. The key q interrupts the thread `main`.

        `end` is the reading side of a pipe. The method `watched` closes the writing side when it ends.
        """
        assert self._terminal is not None
        # The main thread handles these signals. If another process has the terminal, reading must fail, and must not
        # stop this process.
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
            # A signal just before the main thread begins to wait does not wake that thread, so the signal is repeated.
            while not select.select([end], [], [], _REPEAT_SECONDS)[0]:
                signal.pthread_kill(main, _WAKES)

    def _key(self) -> bytes | None:
        """Return the next key; empty if the terminal is gone, and None if the process is in the background."""
        assert self._terminal is not None
        try:
            return os.read(self._terminal, 1) if is_in_foreground(self._terminal) else None
        except OSError:
            return b"" if is_in_foreground(self._terminal) else None

    def _take(self) -> bool:
        """Switch off the echo and the line buffering of the terminal. Returns False for a process in the background.

        In the background, nothing is changed. Each call checks the modes of the terminal, because a shell may have
        changed the modes since the last call.
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
        """Restore the modes of the terminal.

        In the background, the terminal belongs to another process, so nothing is changed.
        """
        with self._lock, suppress(OSError, termios.error):
            if self._terminal is not None and self._modes is not None and is_in_foreground(self._terminal):
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._modes)
                self._modes = None


def is_in_foreground(terminal: int | TextIO) -> bool:
    """Return whether this process may use a terminal.

    The result is also True for a terminal that is not the controlling terminal of the process.
    """
    try:
        return os.tcgetpgrp(terminal if isinstance(terminal, int) else terminal.fileno()) == os.getpgrp()
    except OSError:
        return True
