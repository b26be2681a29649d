"""The faults that a check has found so far, and the figures of its tally."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from svcctl.service.verification import CheckTally, DeliveryFinding, FaultKind, earliest, latest

GAPS = (FaultKind.MISSING, FaultKind.ALTERED, FaultKind.TRUNCATED, FaultKind.OUT_OF_ORDER)
"""The faults after which a destination is not whole; the others only add rows."""


class FaultLog:
    """Counts faults and other rows for the tally, and merges faults of the same kind that consecutive rows have."""

    def __init__(self) -> None:
        self.counts: Counter[FaultKind] = Counter()
        self.no_longer_there = self.not_reproducible = self.not_yet = 0
        self.notes: list[str] = []
        self.gap_from: int | None = None
        """The earliest date of a row with one of GAPS, in epoch milliseconds."""
        self.hidden_from: int | None = None
        """The earliest date of rows that an open transaction may hide, in epoch milliseconds."""
        self._open: dict[FaultKind, DeliveryFinding] = {}
        self._ready: list[DeliveryFinding] = []

    def add(self, finding: DeliveryFinding, date: int, count: int | None = None) -> None:
        """Add a fault. `date` stands for the date of its first row if that is not known: the latest date before.

        A finding without rows counts as one row, or `count` rows.
        """
        kind = finding.kind
        self.counts[kind] += finding.end - finding.first or count or 1
        if kind in GAPS:
            self.gap_from = earliest(self.gap_from, date if finding.from_ms is None else finding.from_ms)
        before = self._open.get(kind)
        if before is not None and before.end == finding.first < finding.end and before.file == finding.file:
            dates = earliest(before.from_ms, finding.from_ms), latest(before.to_ms, finding.to_ms)
            finding = replace(before, end=finding.end, from_ms=dates[0], to_ms=dates[1])
        elif before is not None:
            self._ready.append(before)
        self._open[kind] = finding

    def ready(self) -> list[DeliveryFinding]:
        """The findings that are complete since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def rest(self) -> list[DeliveryFinding]:
        """All findings that were not returned yet."""
        rest = [*self._ready, *self._open.values()]
        self._ready, self._open = [], {}
        return rest

    def tally(self, rows: int, last_date: int) -> CheckTally:
        counted = self.no_longer_there, self.not_reproducible, self.not_yet
        notes = tuple(self.notes)
        return CheckTally(rows, self.counts, *counted, self.gap_from, last_date or None, notes, self.hidden_from)
