"""Threads for requests of libraries that cannot interrupt a request. Each request runs in a separate thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from svcctl.io.time_limit import without_signals

T = TypeVar("T")


def in_thread(request: Callable[[], T], name: str) -> Future[T]:
    """Make a request in a daemon thread.

    The thread ends with the request, even if nobody waits for the answer any more.
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
