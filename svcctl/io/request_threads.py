"""Requests that a library cannot interrupt, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from svcctl.io.time_limit import without_signals

T = TypeVar("T")


def in_thread(request: Callable[[], T], name: str) -> Future[T]:
    """Make a request in a daemon thread, which ends with it, whether or not anyone still waits for the answer."""
    answer: Future[T] = Future()

    def work() -> None:
        without_signals()
        try:
            answer.set_result(request())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return answer
