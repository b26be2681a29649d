"""How long to wait before trying again: one rule for requests, connections that are followed, and jobs.

A limit on the wait doubles with each failure, and the wait is drawn evenly between half of the limit and all of it. So
clients that failed together do not come back together, and no retry follows at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_DELAY = 0.5
"""The longest first wait, in seconds."""
MAX_DELAY = 30.0
"""The longest wait, in seconds."""
_MOST_DOUBLINGS = 32


def delay(failures: int, *, chance: Callable[[], float] = random.random) -> float:
    """Seconds to wait after a number of failures in a row, at least 1; `chance` gives numbers from 0 to 1."""
    doublings = min(failures - 1, _MOST_DOUBLINGS)  # a power without a bound overflows in a long outage
    return (0.5 + chance() / 2) * min(MAX_DELAY, FIRST_DELAY * 2.0**doublings)
