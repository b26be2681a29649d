"""A limit on how long a block may run, and threads that leave signals to the main thread.

The limit uses the alarm of the process. It covers everything that --max-time limits: connections, retries, the pauses
that a service asks for, and writing.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_RETRY_SECONDS = 0.01
"""The delay of a repeated alarm. Zero would switch the alarm off."""
_LIMITING_FILES = (__file__, contextlib.__file__)


class _TimeIsUp(BaseException):
    """Interrupts a block. It is a BaseException, so that no `except Exception` in the block catches it."""


@contextlib.contextmanager
def time_limit(seconds: float | None, late: Callable[[float], Exception | None] | None = None) -> Iterator[None]:
    """Interrupt the block after `seconds`, and raise the error that `late` returns for them.

    If `late` is missing or returns None, the block just ends. If `seconds` is None, there is no limit. Only the main
    thread may set one.
    """
    if seconds is None:
        yield
        return
    over = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        if over:
            return
        if frame is not None and frame.f_code.co_filename in _LIMITING_FILES:  # entering or leaving the block
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
    """Block SIGINT and SIGTERM in this thread, and in threads that it starts afterwards. Call it first in a new thread.

    The system delivers a signal to any thread, but Python handles it in the main thread, and a signal to another thread
    does not wake the main thread. If that waits for the other thread, it would notice Ctrl-C only when the work is
    done.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
