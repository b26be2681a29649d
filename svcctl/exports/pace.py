"""The pace of an export: when a request may be sent. All workers share one, so that together they keep to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pace:
    """At most `per_second` requests a second (None: no limit), and none before a moment that the service named.

    `clock` is monotonic, in seconds. All methods may be called from any thread.
    """

    def __init__(self, per_second: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._free = 0.0
        self._held = 0.0

    def hold(self, seconds: float) -> None:
        """Let nobody send anything for so long: one Retry-After slows all workers."""
        with self._lock:
            self._held = max(self._held, self._clock() + seconds)

    def wait(self, stopping: threading.Event) -> bool:
        """Wait until a request may be sent, and count it; False when the export stops instead."""
        while not stopping.is_set():
            with self._lock:
                now = self._clock()
                moment = max(self._free, self._held)
                if moment <= now:
                    self._free = now + self._interval
                    return True
            stopping.wait(moment - now)
        return False
