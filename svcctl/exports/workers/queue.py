"""The tasks that are still to be handed out, in order, and how many of them one request fetches.

A request costs a service about the same for ten events as for ten thousand. So neighbouring windows are joined into one
task while requests are quick, if they go into one file anyway or the answer can be split into their files. If a joined
task fails, its windows are requested one by one: an error is about one window, a service that can only answer short
ranges is asked for those, and an answer that cannot be split is not needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from svcctl.errors import SvcctlError
from svcctl.exports.workers.fetch import Fetched, Task

REQUEST_SHARE = 16
"""A request takes at most one of so many parts of the windows that are left, so that the workers end together."""
QUICK_SECONDS = 1.0
"""Seconds that a request for several windows may take, estimated from those before it."""
SPLIT_BYTES = 4 << 20
"""Bytes of an answer that is split, estimated from those before it: all of it is held until its end is there."""

Joined = Callable[[Sequence[Task]], Task]
"""Makes one task that fetches what several tasks fetch."""


class Queue:
    """The tasks of a run; with `joined`, those of neighbouring windows become one task.

    Its callers keep their threads apart.
    """

    def __init__(self, tasks: Iterable[Task], workers: int, joined: Joined | None) -> None:
        self._tasks = deque(tasks)
        self._share = max(REQUEST_SHARE, 2 * workers)
        self._joined = joined
        self._most = 1

    def next(self) -> list[Task]:
        """The tasks of the next request; none when all have been handed out."""
        request = [self._tasks.popleft()] if self._tasks else []
        count = 0 if self._joined is None else min(self._most, len(self._tasks) // self._share)
        while len(request) < count and request[-1].goes_on_in(self._tasks[0]):
            request.append(self._tasks.popleft())
        return request

    def joined(self, request: Sequence[Task]) -> Task:
        """One task for the windows of all tasks of a request."""
        return request[0] if len(request) == 1 or self._joined is None else self._joined(request)

    def learn(self, request: Sequence[Task], outcome: Fetched | SvcctlError) -> bool:
        """Note what came of a request; returns whether its tasks are in the queue again, to be requested one by one."""
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
