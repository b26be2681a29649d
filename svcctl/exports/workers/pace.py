"""The pace of an export: when requests are sent, and which refusals only make a window wait for its turn.

All workers of a process share one Pace.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import count

SPREAD = 0.5
"""After a pause, the next requests of all workers are spread over this number of seconds."""


class Pace:
    """The pace of requests: at most `per_second` per second, and none during a pause that the service asks for.

    None for `per_second` means no limit. `clock` returns a monotonic time in seconds. `chance` returns a random number
    from 0 to 1. All methods are thread-safe.
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
        """Pause all requests for a number of seconds.

        The pause is for all workers, because a Retry-After is meant for all of them.
        """
        with self._lock:
            self._held = max(self._held, self._clock() + seconds)

    def wait(self, stopping: threading.Event) -> bool:
        """Wait until a request may be sent, and return True. Returns False if the export stops before that.

        After a pause, the requests that have waited longest are sent first, and requests that were just refused are
        sent last.
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
        """Return an object for the requests of one window; see RequestTurns."""
        return RequestTurns(self)


class RequestTurns:
    """The requests of one window, among the requests of other windows. Use `with turns:` around each request.

    If a service accepts fewer requests at a time than there are workers, it refuses some requests, and may refuse the
    same window many times. Such a refusal is not a failure while other windows make progress: an earlier request is
    still being answered, or a window was fetched since the last refusal. If the service refuses all requests, the
    refusals of the oldest request count as failures, so the waiting ends.
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
        """Note a refusal. Returns the number of refusals in a row during which no other window made progress."""
        pace = self._pace
        with pace._lock:
            before, self._fetched = self._fetched, pace._fetched
            progress = pace._fetched > before or min(pace._open, default=self._number) < self._number
        self._refused = 0 if progress else self._refused + 1
        return self._refused
