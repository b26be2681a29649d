"""A limit on how long a block runs, whatever it is waiting for; and threads that leave signals to the main one.

The alarm clock of the process keeps the limit, so it covers connections, retries, the pauses that a service asks for,
and writing: whatever --max-time bounds.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_RETRY_SECONDS = 0.01
"""Seconds; zero would switch the alarm off."""
_LIMITING_FILES = (__file__, contextlib.__file__)


class _TimeIsUp(BaseException):
    """Interrupts a block; no `except Exception` on its way takes it for a failure."""


@contextlib.contextmanager
def time_limit(seconds: float | None, late: Callable[[float], Exception | None] | None = None) -> Iterator[None]:
    """Interrupt the block after `seconds`, and raise what `late` makes of them; without an error the block just ends.

    Without a number there is no limit. Only the main thread may set one.
    """
    if seconds is None:
        yield
        return
    over = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        if over:
            return
        if frame is not None and frame.f_code.co_filename in _LIMITING_FILES:  # on the way into the block, or out of it
            signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
            return
        raise _TimeIsUp

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, _RETRY_SECONDS))
    try:
        yield
    except _TimeIsUp:
        if late is not None and (error := late(seconds)) is not None:
            raise error from None
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def without_signals() -> None:
    """Call this first in a thread: it and the threads that it starts then never get these signals.

    The system gives a signal to any thread of the process, but Python handles it in the main thread, which does not
    wake for a signal of another thread: if it waits for that thread, it would notice Ctrl-C when the work is done.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
