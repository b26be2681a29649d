"""The pace of an export: when a request may be sent, and which refusals only mean that a window has to wait its turn.

All workers of a process share one Pace, so that together they keep to it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import count

SPREAD = 0.5
"""After a pause all workers come back within this many seconds, not at the same moment."""


class Pace:
    """At most `per_second` requests a second (None: no limit), and none before a moment that the service named.

    `clock` is monotonic, in seconds; `chance` gives numbers from 0 to 1. All methods may be called from any thread.
    """

    def __init__(
        self,
        per_second: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._clock = clock
        self._chance = chance
        self._lock = threading.Lock()
        self._free = 0.0
        self._held = 0.0
        self._waiting: set[int] = set()
        self._numbers = count()
        self._open: set[int] = set()
        self._fetched = 0

    def hold(self, seconds: float) -> None:
        """Stop all requests for a number of seconds: one Retry-After slows all workers."""
        with self._lock:
            self._held = max(self._held, self._clock() + seconds)

    def wait(self, stopping: threading.Event) -> bool:
        """Wait until a request may be sent, and count it; False when the export stops instead.

        After a pause, requests that have waited longest come first: one that was just refused comes last.
        """
        with self._lock:
            number = next(self._numbers)
            self._waiting.add(number)
        held = late = 0.0
        try:
            while not stopping.is_set():
                with self._lock:
                    now = self._clock()
                    if held < self._held and (held or now < self._held):
                        place = sum(other < number for other in self._waiting) + self._chance()
                        held, late = self._held, SPREAD * place / (1 + place)
                    moment = max(self._free, self._held + late)
                    if moment <= now:
                        self._free = now + self._interval
                        return True
                stopping.wait(moment - now)
            return False
        finally:
            with self._lock:
                self._waiting.discard(number)

    def turns(self) -> RequestTurns:
        """The turns of a window."""
        return RequestTurns(self)


class RequestTurns:
    """The requests of one window among those of others: use `with turns:` around each request.

    A service that has fewer places than there are workers refuses some requests, and may refuse the same one again and
    again. Such a refusal is not a failure while others get on: a request that was sent before this one is still being
    answered, or a window was fetched since the last refusal. If all requests are refused, the oldest of them fails, so
    this ends.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._number = -1
        self._fetched = pace._fetched
        self._refused = 0

    def __enter__(self) -> None:
        pace = self._pace
        with pace._lock:
            self._number = next(pace._numbers)
            pace._open.add(self._number)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        pace = self._pace
        with pace._lock:
            pace._open.discard(self._number)
            pace._fetched += kind is None

    def refused(self) -> int:
        """Note that the last request was refused; returns how many in a row were while no other window got on."""
        pace = self._pace
        with pace._lock:
            before, self._fetched = self._fetched, pace._fetched
            others_get_on = pace._fetched > before or min(pace._open, default=self._number) < self._number
        self._refused = 0 if others_get_on else self._refused + 1
        return self._refused
