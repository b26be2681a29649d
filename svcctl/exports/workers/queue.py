"""The tasks of a run in order, and the number of tasks for one request.

A request costs a service about the same for ten events as for ten thousand. So while requests are quick, one request
fetches several neighbouring windows, if they go into one file or the answer can be split into their files. After the
first failure, windows are requested one by one: then each error belongs to one window, and a service that only answers
short ranges, or whose answers cannot be split, still works.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from svcctl.errors import SvcctlError
from svcctl.exports.workers.fetch import Fetched, Task

REQUEST_SHARE = 16
"""A request takes at most 1/REQUEST_SHARE of the remaining windows, so that all workers finish together."""
QUICK_SECONDS = 1.0
"""The most seconds for a request for several windows, estimated from the last request."""
SPLIT_BYTES = 4 << 20
"""The most bytes of an answer that is split, estimated from the last one. The whole answer is held until its end."""

Joined = Callable[[Sequence[Task]], Task]
"""Makes one task for the windows of several tasks."""


class Queue:
    """The tasks of a run. With `joined`, the tasks of neighbouring windows become one task.

    Not thread-safe: callers hold a lock.
    """

    def __init__(self, tasks: Iterable[Task], workers: int, joined: Joined | None) -> None:
        self._tasks = deque(tasks)
        self._share = max(REQUEST_SHARE, 2 * workers)
        self._joined = joined
        self._most = 1

    def next(self) -> list[Task]:
        """The tasks of the next request; none when the queue is empty."""
        request = [self._tasks.popleft()] if self._tasks else []
        count = 0 if self._joined is None else min(self._most, len(self._tasks) // self._share)
        while len(request) < count and request[-1].goes_on_in(self._tasks[0]):
            request.append(self._tasks.popleft())
        return request

    def joined(self, request: Sequence[Task]) -> Task:
        """One task for the windows of all tasks of a request."""
        return request[0] if len(request) == 1 or self._joined is None else self._joined(request)

    def learn(self, request: Sequence[Task], outcome: Fetched | SvcctlError) -> bool:
        """Learn from the outcome of a request; returns whether its tasks are queued again, for single requests."""
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
