"""Threads that leave Ctrl-C and SIGTERM to the main one."""

from __future__ import annotations

import signal


def without_signals() -> None:
    """Begin a thread with this, and all that it begins has it as well.

    The system gives a signal to any thread of the process. Python handles it in the main one, which does not wake for a
    signal that another was given: while it waits for that thread, Ctrl-C would be noticed when the work is done.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
