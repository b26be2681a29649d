"""The queue of the tasks of a run. A task is the request for a time window.

The queue also decides how many windows are fetched with one request. For a service, a request for ten events costs
about as much as a request for ten thousand events. So while requests are quick, one request fetches several
neighbouring windows. This is possible if all windows go into one file, or if the answer can be split into the files of
the windows.

After the first failure, windows are requested one by one, so that each error belongs to one window. An export then
works even if the service refuses ranges of several windows, or if its answers cannot be split.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from svcctl.errors import SvcctlError
from svcctl.exports.workers.fetch import Fetched, Task

REQUEST_SHARE = 16
"""A request fetches at most 1/REQUEST_SHARE of the remaining windows, so that all workers finish at the same time."""
QUICK_SECONDS = 1.0
"""The maximum duration, in seconds, of a request for several windows.

The duration of the next request is estimated from the previous request.
"""
SPLIT_BYTES = 4 << 20
"""The maximum size, in bytes, of an answer for several windows that have separate files.

All rows of such an answer are held until the last row has arrived. The size is estimated from the previous answer.
"""

Joined = Callable[[Sequence[Task]], Task]
"""A function that makes one task from the tasks of neighbouring windows."""


class Queue:
    """The queue of the tasks of a run.

    The function `joined` makes one task from the tasks of neighbouring windows. If `joined` is None, windows are
    requested one by one. The queue is not thread-safe, so callers must hold a lock.
    """

    def __init__(self, tasks: Iterable[Task], workers: int, joined: Joined | None) -> None:
        self._tasks = deque(tasks)
        self._share = max(REQUEST_SHARE, 2 * workers)
        self._joined = joined
        self._most = 1

    def next(self) -> list[Task]:
        """Remove the tasks of the next request from the queue, and return these tasks.

        Return an empty list if the queue is empty.
        """
        request = [self._tasks.popleft()] if self._tasks else []
        count = 0 if self._joined is None else min(self._most, len(self._tasks) // self._share)
        while len(request) < count and request[-1].goes_on_in(self._tasks[0]):
            request.append(self._tasks.popleft())
        return request

    def joined(self, request: Sequence[Task]) -> Task:
        """Return one task that fetches the windows of all tasks in `request`."""
        return request[0] if len(request) == 1 or self._joined is None else self._joined(request)

    def learn(self, request: Sequence[Task], outcome: Fetched | SvcctlError) -> bool:
        """Use the outcome of a request to choose the number of windows for the next requests.

        If a request for several windows has failed, put its tasks back in the queue, and return True. After any
        failure, windows are requested one by one.
        """
        if isinstance(outcome, Fetched):
            share = outcome.seconds / QUICK_SECONDS
            if request[0].whole:
                share = max(share, outcome.received / SPLIT_BYTES)
            self._most = max(1, min(int(len(request) / max(share, 0.001)), max(self._most, 2 * len(request))))
            return False
        self._joined = None
        if len(request) > 1:
            self._tasks.extendleft(reversed(request))
        return len(request) > 1
