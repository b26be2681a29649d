"""How many windows a request takes: several short ones are requested at once if they go into one file anyway.

A request costs the same whether its window has ten events or a million. So windows beside each other are joined into a
task while its answer stays small and quick. A joined task fetches the same rows as its windows would, since rows come
in the order of their windows. If it fails, its windows are requested one by one, so that an error is about one window,
and a service that can only answer short ranges is asked for those.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from svcctl.exports.fetch import Fetched, Task
from svcctl.exports.windows import Window

SECONDS = 2.0
"""Seconds that a joined request may take, estimated from the last one."""
SHARE = 32
"""A request takes at most one of so many parts of the windows that are left, so that the workers end together."""


class Batches:
    """The tasks that are still to be handed out, in order, joined up to `bytes` of an answer. Any thread may call it.

    `part` names the part of a window. Without it no windows are joined, because each of them is a file.
    """

    def __init__(self, tasks: Iterable[Task], workers: int, part: Callable[[Window], str] | None, bytes: int) -> None:
        self._tasks = deque(tasks)
        self._share = max(SHARE, 8 * workers)
        self._part = part
        self._bytes = bytes
        self._count = 1
        self._lock = threading.Lock()

    def next(self) -> Sequence[Task] | None:
        """The tasks that come next, for one request; None when all have been handed out."""
        with self._lock:
            count = 1 if self._part is None else max(1, min(self._count, len(self._tasks) // self._share))
            some = list(islice(self._tasks, count))
            for at in range(1, len(some)):
                if some[at - 1].window.end != some[at].window.start:
                    del some[at:]
                    break
            for _ in some:
                self._tasks.popleft()
            return some or None

    def combined(self, tasks: Sequence[Task]) -> Task:
        """One task that fetches what the given tasks fetch."""
        if len(tasks) == 1 or self._part is None:
            return tasks[0]
        window = Window(tasks[0].window.start, tasks[-1].window.end)
        return replace(tasks[0], window=window, path=self._part(window))

    def learn(self, fetched: Fetched, windows: int) -> None:
        """Adjust how many windows are joined, after a request for `windows` of them."""
        fit = min(
            self._bytes * windows // max(fetched.entry.bytes, 1),
            int(SECONDS * windows / max(fetched.seconds, 0.001)),
        )
        with self._lock:
            self._count = max(1, min(fit, max(self._count, 2 * windows)))

    def split(self, tasks: Sequence[Task]) -> bool:
        """Stop joining windows, and hand out failed tasks again, one by one; returns whether there were several."""
        with self._lock:
            self._part = None
            if len(tasks) == 1:
                return False
            self._tasks.extendleft(reversed(tasks))
            return True
