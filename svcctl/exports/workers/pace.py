"""The pace of an export: the moments at which requests are sent, and the refusals that do not count as failures.

All workers of a process share one Pace object.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import count

SPREAD = 0.5
"""After a pause, the first requests of the workers are spread over this number of seconds."""


class Pace:
    """The pace of the requests of all workers.

    At most `per_second` requests are sent per second. If `per_second` is None, the number is not limited. While the
    service asks for a pause, no requests are sent. `clock` returns a monotonic time in seconds. `chance` returns a
    random number from 0 to 1. All methods are thread-safe.
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
        """Pause the requests of all workers for a number of seconds, for example if the service asks for a pause."""
        with self._lock:
            self._held = max(self._held, self._clock() + seconds)

    def wait(self, stopping: threading.Event) -> bool:
        """Wait until a request may be sent, and return True. Return False if `stopping` is set before that.

        After a pause, the requests that have waited longest are sent first. Requests that were just refused are sent
        last.
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
        """Return an object that counts the refusals of a window's requests, see RequestTurns."""
        return RequestTurns(self)


class RequestTurns:
    """Decides which refusals of a window's requests count as failures. Use `with turns:` around each request.

    A service may accept fewer requests at a time than there are workers. The service then refuses some requests, and
    may refuse the same window many times. Such a refusal does not count as a failure while other windows make progress.
    Other windows make progress if an earlier request is still being answered, or if a window was fetched since the last
    refusal. If the service refuses all requests, the refusals of the oldest request count as failures. So the export
    does not wait forever.
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
        """Count a refusal. Return the number of successive refusals during which no other window made progress."""
        pace = self._pace
        with pace._lock:
            before, self._fetched = self._fetched, pace._fetched
            progress = pace._fetched > before or min(pace._open, default=self._number) < self._number
        self._refused = 0 if progress else self._refused + 1
        return self._refused
