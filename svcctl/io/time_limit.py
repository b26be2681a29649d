"""A limit on the duration of a block, and threads that leave signals to the main thread.

The limit uses the alarm signal of the process. So the limit covers everything that --max-time must limit: connections,
retries, the pauses that a service asks for, and writing.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_RETRY_SECONDS = 0.01
"""The delay in seconds after which an alarm is repeated if it could not interrupt the block.

No alarm has a shorter delay, because a delay of 0 would switch the alarm off.
"""
_LIMITING_FILES = (__file__, contextlib.__file__)


class _TimeIsUp(BaseException):
    """An exception that interrupts a block. It is a BaseException, so no `except Exception` in the block catches it."""


@contextlib.contextmanager
def time_limit(seconds: float | None, late: Callable[[float], Exception | None] | None = None) -> Iterator[None]:
    """Interrupt the `with` block after a number of seconds, and raise the error that `late(seconds)` returns.

    If `late` is missing or returns None, the block ends without an error. If `seconds` is None, there is no limit. Only
    the main thread may set a limit.
    """
    if seconds is None:
        yield
        return
    over = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        if over:
            return
        if frame is not None and frame.f_code.co_filename in _LIMITING_FILES:  # the block is being entered or left
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
    """Block SIGINT and SIGTERM in this thread, and in the threads that it starts later.

    Call this function at the beginning of a new thread, so that the system delivers these signals to the main thread.
    Python handles signals only in the main thread, and a signal to another thread does not wake the main thread.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
