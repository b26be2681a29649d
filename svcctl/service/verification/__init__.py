"""Verification: whether a destination has exactly the rows that a job delivered to it.

The log of a job's steps says how its rows can be produced again. They are compared with what the destination has, by
code that shares nothing with the delivery. Rows have the numbers that the job gave them, from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.service.rendering.arrow import row_bytes

if TYPE_CHECKING:
    from svcctl.service.jobs.step_log import FileEntry


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """Consecutive rows that a job delivered, from `first` to before `end`.

    `lines` are their texts at the destination, and `dates` their epoch milliseconds, null for a row without a date.
    Both are None for rows that cannot be produced again; `reason` is a clause that says why. Without `exact`, the rows
    have results of calculations over several events: sums of floats depend on the order of events, which changes.
    """

    first: int
    end: int
    lines: pa.StringArray | None = None
    dates: pa.Int64Array | None = None
    exact: bool = True
    reason: str = ""

    def part(self, first: int, end: int) -> ExpectedRows:
        if self.lines is None or self.dates is None:
            return replace(self, first=first, end=end)
        at, count = first - self.first, end - first
        return ExpectedRows(first, end, self.lines.slice(at, count), self.dates.slice(at, count), self.exact)

    def range_of_dates(self) -> tuple[int | None, int | None]:
        """The earliest and the latest date in epoch milliseconds; None if there is no date."""
        if self.dates is None:
            return None, None
        limits = pc.min_max(self.dates)
        return limits["min"].as_py(), limits["max"].as_py()

    def rows(self) -> Iterator[tuple[int, bytes, int | None]]:
        """The number, the text and the date of each row; nothing for rows that cannot be produced."""
        if self.lines is not None and self.dates is not None:
            yield from zip(range(self.first, self.end), row_bytes(self.lines), self.dates.to_pylist(), strict=True)


@dataclass(frozen=True, slots=True)
class DeliveredJob:
    """Where a job delivered its rows, and which of them are in its log: those from `first` to before `sent`."""

    job_id: str
    type: str
    params: Mapping[str, Any] = field(repr=False)
    """The parameters of the destination, with their secrets."""
    sent: int
    first: int
    partition: int | None
    """The partition of Kafka, as it was saved."""
    offset: int | None
    """The offset of Kafka that was saved last."""
    offsets: Sequence[tuple[int, int]]
    """For each step the number of its first row, and the offset up to which the partition was written when the step
    began; ascending."""
    files: Sequence[FileEntry]
    """The files with these rows, in the order of their rows."""
    running: Callable[[], bool]
    """Returns whether the job may have delivered more since its rows were counted."""
    claimed: Callable[[], Collection[int]]
    """Returns the numbers of files in the same place that jobs of the service have logged."""
    since: int | None
    """Rows with a date before this one, in epoch milliseconds, may be gone from the destination."""


class FaultKind(StrEnum):
    MISSING = "missing"
    DUPLICATED = "duplicated"
    OUT_OF_ORDER = "out of order"
    ALTERED = "altered"
    TRUNCATED = "truncated"
    FOREIGN = "foreign"


GAPS = (FaultKind.MISSING, FaultKind.ALTERED, FaultKind.TRUNCATED, FaultKind.OUT_OF_ORDER)
"""The faults after which a destination is not whole; the others only add rows."""


@dataclass(frozen=True, slots=True)
class DeliveryFinding:
    """Consecutive rows, from `first` to before `end`, that have the same fault.

    `offset` is that of the first row's message. `from_ms` and `to_ms` are the earliest and the latest of their dates in
    epoch milliseconds. Members that do not apply, or are not known, are None.
    """

    kind: FaultKind
    first: int
    end: int
    partition: int | None = None
    offset: int | None = None
    file: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """The number of rows that were compared so far."""

    rows: int


@dataclass(slots=True)
class CheckTally:
    """The figures of a check: numbers of rows, by kind of fault and altogether.

    `gap_from` is the date of the first row with one of GAPS, and `last_date` the latest date of all rows, both in epoch
    milliseconds. `notes` are sentences for people. Rows from the date `hidden_from` on may be there, but cannot be seen
    yet: an open transaction may hide them.
    """

    rows: int = 0
    counts: Counter[FaultKind] = field(default_factory=Counter)
    no_longer_there: int = 0
    not_reproducible: int = 0
    not_yet: int = 0
    gap_from: int | None = None
    last_date: int | None = None
    hidden_from: int | None = None
    notes: list[str] = field(default_factory=list)

    def add(self, kind: FaultKind, count: int, date: int | None) -> None:
        """Add rows with a fault; `date` is that of the first one."""
        self.counts[kind] += count
        if kind in GAPS:
            self.gap_from = earliest(self.gap_from, date)


def earliest(*dates: int | None) -> int | None:
    """The first of some dates; those that are None do not count."""
    return min((date for date in dates if date is not None), default=None)


def latest(*dates: int | None) -> int | None:
    """The last of some dates; those that are None do not count."""
    return max((date for date in dates if date is not None), default=None)
