"""The key q, which ends what a terminal shows in place."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from svcctl.io.time_limit import without_signals

_AGAIN = 0.05
"""Seconds between signals. They are repeated, since one that arrives while the block is entered has no effect."""


class _Left(BaseException):
    """Interrupts a block; no `except Exception` on its way takes it for a failure."""


@contextmanager
def left_by_q(keyboard: int) -> Iterator[bool]:
    """End the block when q is typed. The block gets True if the file `keyboard` is a terminal that may be read."""
    if not _readable(keyboard):
        yield False
        return
    import termios
    import tty

    done = threading.Event()
    inside = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        if inside and (frame is None or frame.f_code.co_filename != __file__):
            raise _Left

    def listen() -> None:
        without_signals()
        while not done.is_set():
            if select.select([keyboard], [], [], _AGAIN)[0] and os.read(keyboard, 1) in b"q":  # or nobody is there
                while not done.wait(_AGAIN):
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    listener = threading.Thread(target=listen, daemon=True)
    modes = termios.tcgetattr(keyboard)
    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        listener.start()
        inside = True
        yield True
    except _Left:
        pass
    finally:
        inside = False
        termios.tcsetattr(keyboard, termios.TCSADRAIN, modes)
        done.set()
        listener.join()
        signal.signal(signal.SIGUSR1, previous)


def _readable(keyboard: int) -> bool:
    if not os.isatty(keyboard):
        return False
    with suppress(OSError):  # a terminal without job control
        return os.tcgetpgrp(keyboard) == os.getpgrp()  # the shell would suspend a command in the background
    return True
