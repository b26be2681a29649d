"""The faults that a check has found so far, and how many rows have each kind of fault."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from svcctl.service.verification import CheckTally, DeliveryFinding, FaultKind, earliest, latest
from svcctl.service.verification.comparison import ExpectedCursor


class FaultLog:
    """The faults that a check has found. Faults of the same kind are merged if their rows are consecutive.

    The faults are also counted in `tally`. `cursor` is the position of the check in the expected rows.
    """

    def __init__(self, cursor: ExpectedCursor) -> None:
        self.tally = CheckTally()
        self.uncertain: FaultKind | None = None
        """A kind of fault that `ready` holds back, because the check does not know yet whether these faults are real.
        """
        self._cursor = cursor
        self._open: dict[FaultKind, DeliveryFinding] = {}
        self._ready: defaultdict[FaultKind, list[DeliveryFinding]] = defaultdict(list)

    def add(self, finding: DeliveryFinding, *, date: int | None = None, count: int = 1) -> None:
        """Add a fault to the log, and count it in `tally`.

        If the finding has no date, `date` is used as the date of its first row. By default, `date` is the latest date
        before the position of the cursor. A finding without rows counts as `count` rows.
        """
        kind = finding.kind
        if (dated := finding.from_ms) is None:
            dated = self._cursor.last_date if date is None else date
        self.tally.add(kind, finding.end - finding.first or count, dated)
        before = self._open.get(kind)
        if before is not None and before.end == finding.first < finding.end and before.file == finding.file:
            dates = earliest(before.from_ms, finding.from_ms), latest(before.to_ms, finding.to_ms)
            finding = replace(before, end=finding.end, from_ms=dates[0], to_ms=dates[1])
        elif before is not None:
            self._ready[kind].append(before)
        self._open[kind] = finding

    def drop(self, kind: FaultKind) -> int:
        """Delete all faults of a kind, and return the number of their rows.

        `uncertain` must be set to this kind before the first fault is added. Otherwise, `ready` may already have
        returned faults of this kind.
        """
        self._open.pop(kind, None)
        self._ready.pop(kind, None)
        return self.tally.counts.pop(kind, 0)

    def ready(self) -> list[DeliveryFinding]:
        """Return the findings that became complete since the previous call.

        A finding is complete when no more rows can be added to the finding.
        """
        kinds = [kind for kind in self._ready if kind is not self.uncertain]
        return [finding for kind in kinds for finding in self._ready.pop(kind)]

    def rest(self) -> list[DeliveryFinding]:
        """Return all findings that were not returned yet."""
        self.uncertain = None
        rest = [*self.ready(), *self._open.values()]
        self._open = {}
        return rest
