"""The pace of an export: the times of requests, and refusals that only make a window wait for its turn.

All workers of a process share one Pace.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import count

SPREAD = 0.5
"""Seconds after a pause within which all workers send their next requests, not all at the same moment."""


class Pace:
    """At most `per_second` requests per second (None: no limit), and none during a pause that the service requests.

    `clock` is monotonic, in seconds. `chance` returns numbers from 0 to 1. All methods are thread-safe.
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
        """Pause all requests for a number of seconds, because a Retry-After is meant for all workers."""
        with self._lock:
            self._held = max(self._held, self._clock() + seconds)

    def wait(self, stopping: threading.Event) -> bool:
        """Wait until a request may be sent; False if the export stops before.

        After a pause, the requests that have waited longest come first, and those that were just refused come last.
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
        """The requests of one window; see RequestTurns."""
        return RequestTurns(self)


class RequestTurns:
    """The requests of one window among those of other windows. Use `with turns:` around each request.

    A service with fewer places than workers refuses some requests, and may refuse the same window many times. Such a
    refusal is no failure while other windows make progress: an earlier request is still being answered, or a window was
    fetched since the last refusal. If the service refuses all requests, the oldest request counts its refusals as
    failures, so the waiting ends.
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
        """Note a refusal; returns the number of refusals in a row without progress of other windows."""
        pace = self._pace
        with pace._lock:
            before, self._fetched = self._fetched, pace._fetched
            progress = pace._fetched > before or min(pace._open, default=self._number) < self._number
        self._refused = 0 if progress else self._refused + 1
        return self._refused
