"""What a running service has done since it started, counted for its metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

METHODS = frozenset(("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"))


@dataclass
class Counts:
    """Answers by method and HTTP status, bytes of their bodies, and events that came too late for their groups. Used in
    the event loop alone.
    """

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    bytes: int = 0
    late: int = 0

    def answer(self, method: str, status: int) -> None:
        """Count an answer that begins. Clients may invent methods, which are counted as one."""
        self.answers[method if method in METHODS else "other", status] += 1
