"""Threads that leave Ctrl-C and SIGTERM to the main thread."""

from __future__ import annotations

import signal


def without_signals() -> None:
    """Call this first in a thread: it and the threads that it starts then never get these signals.

    The system gives a signal to any thread of the process, but Python handles it in the main thread, which does not
    wake for a signal of another thread: if it waits for that thread, it would notice Ctrl-C when the work is done.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
