"""How far work is that takes long; this module loads nothing, since most commands show no progress."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """With a `total`, of which `done` is done, a terminal shows a bar and the time left."""

    text: str
    done: float = 0
    total: float | None = None
