"""The tasks that are still to be handed out, in order, and how many of them one request fetches.

A request costs a service about the same for ten events as for ten thousand. So windows beside each other that go into
one file anyway are joined into one task while requests are quick. If a joined task fails, its windows are requested one
by one: an error is about one window, and a service that can only answer short ranges is asked for those.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from svcctl.errors import SvcctlError
from svcctl.exports.windows import Window
from svcctl.exports.workers.fetch import Fetched, Task

SHARE = 16
"""A request takes at most one of so many parts of the windows that are left, so that the workers end together."""
QUICK_SECONDS = 1.0
"""Seconds that a request for several windows may take, estimated from those before it."""


class Queue:
    """The tasks of a run; with `part`, which names the part of a window, those of windows beside each other are joined.

    Its callers keep their threads apart.
    """

    def __init__(self, tasks: Iterable[Task], workers: int, part: Callable[[Window], str] | None) -> None:
        self._tasks = deque(tasks)
        self._share = max(SHARE, 2 * workers)
        self._part = part
        self._most = 1

    def next(self) -> list[Task]:
        """The tasks of the next request; none when all have been handed out."""
        some = [self._tasks.popleft()] if self._tasks else []
        count = 0 if self._part is None else min(self._most, len(self._tasks) // self._share)
        while len(some) < count and some[-1].window.end == self._tasks[0].window.start:
            some.append(self._tasks.popleft())
        return some

    def joined(self, some: Sequence[Task]) -> Task:
        """One task that fetches what these fetch."""
        if len(some) == 1 or self._part is None:
            return some[0]
        window = Window(some[0].window.start, some[-1].window.end)
        return replace(some[0], window=window, path=self._part(window))

    def learn(self, some: Sequence[Task], outcome: Fetched | SvcctlError) -> bool:
        """Note what came of a request; returns whether its tasks are in the queue again, to be requested one by one."""
        if isinstance(outcome, Fetched):
            quick = int(QUICK_SECONDS * len(some) / max(outcome.seconds, 0.001))
            self._most = max(1, min(quick, max(self._most, 2 * len(some))))
            return False
        self._part = None
        if len(some) > 1:
            self._tasks.extendleft(reversed(some))
        return len(some) > 1
