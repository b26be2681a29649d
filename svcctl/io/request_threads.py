"""Threads for requests that cannot be interrupted. Each request runs in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from svcctl.io.time_limit import without_signals

T = TypeVar("T")


def in_thread(request: Callable[[], T], name: str) -> Future[T]:
    """Call `request` in a new daemon thread, and return a future for its result.

    The thread ends when `request` ends.
    """
    answer: Future[T] = Future()

    def work() -> None:
        without_signals()
        try:
            answer.set_result(request())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return answer
