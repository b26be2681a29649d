"""How long to wait before trying again: one rule for requests, connections that are followed, and jobs.

The longest wait doubles with each failure, and the wait itself is drawn evenly from half of that on, so that clients
which failed together do not come back together, and no retry is spent at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_DELAY = 0.5
"""Seconds that the first wait lasts at most."""
MAX_DELAY = 30.0
"""Seconds that any wait lasts at most."""
_MOST_DOUBLINGS = 32


def delay(failures: int, *, chance: Callable[[], float] = random.random) -> float:
    """Seconds to wait after so many failures in a row, counted from 1; `chance` gives numbers from 0 to 1."""
    doublings = min(failures - 1, _MOST_DOUBLINGS)  # a power without a bound overflows in a long outage
    return (0.5 + chance() / 2) * min(MAX_DELAY, FIRST_DELAY * 2.0**doublings)
