"""A limit on how long a block runs, whatever it is waiting for; the process's alarm clock keeps it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt the block after `seconds`; without a number there is no limit."""

    class TimeIsUp(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise TimeIsUp

    if seconds is None:
        yield
        return
    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except TimeIsUp:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
