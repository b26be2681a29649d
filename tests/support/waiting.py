"""Waiting for what another process or thread does and announces to nobody."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(happens: Callable[[], object], seconds: float = 30) -> float:
    """Look again and again until something has happened, at most for some seconds; returns how long that took.

    Where an event can be awaited, await it instead.
    """
    started = time.monotonic()
    while not happens():
        assert time.monotonic() - started < seconds
        time.sleep(0.01)
    return time.monotonic() - started
