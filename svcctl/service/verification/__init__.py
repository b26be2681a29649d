"""Verification: a check that a destination has exactly the rows that a job has delivered.

The log of a job lists the job's query steps. The check runs these steps again, and compares their rows with the rows at
the destination. The check and the delivery have separate code. The rows of a job are numbered from 0.
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
    """Consecutive rows that a job delivered, from `first` (included) to `end` (not included).

    `lines` has the text that each row should have at the destination. `dates` has the date of each row in epoch
    milliseconds, or null for a row without a date. If the rows cannot be produced again, `lines` and `dates` are None,
    and `reason` says why.

    `exact` is false if the rows have values that are calculated from several events. For example, a sum of floats
    depends on the order of the events, and this order may change.
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
        """Return the earliest and the latest date in epoch milliseconds. Both are None if no row has a date."""
        if self.dates is None:
            return None, None
        limits = pc.min_max(self.dates)
        return limits["min"].as_py(), limits["max"].as_py()

    def rows(self) -> Iterator[tuple[int, bytes, int | None]]:
        """Yield the number, the text and the date of each row. Yield nothing if the rows cannot be produced again."""
        if self.lines is not None and self.dates is not None:
            yield from zip(range(self.first, self.end), row_bytes(self.lines), self.dates.to_pylist(), strict=True)


@dataclass(frozen=True, slots=True)
class DeliveredJob:
    """The destination of a job, and the rows of the job that can be checked at the destination.

    The rows that can be checked go from `first` (included) to `sent` (not included). The log of the job covers these
    rows.
    """

    job_id: str
    type: str
    params: Mapping[str, Any] = field(repr=False)
    """The parameters of the destination, with their secrets."""
    sent: int
    first: int
    partition: int | None
    """The Kafka partition that the job writes to. It is None if the job has not saved its partition."""
    offset: int | None
    """The Kafka offset that the job saved last. It is None if the job has saved no offset."""
    offsets: Sequence[tuple[int, int]]
    """A pair for each step of the query, in ascending order. A long log has pairs for some of the steps only.

    The first number is the number of the step's first row. The second number is the Kafka offset up to which the
    partition was written when the step began.
    """
    files: Sequence[FileEntry]
    """The files with the rows that can be checked, in the order of their rows."""
    running: Callable[[], bool]
    """A function that returns whether the job may have delivered more rows since `sent` was read."""
    expected_hashes: Callable[[], Mapping[int, Collection[str]]]
    """A function that returns the files of all jobs that deliver to the same place as this job.

    The files in `files` are left out. The result maps the number of a file to the hashes that the file can have.
    """
    since: int | None
    """A date in epoch milliseconds. Rows before this date may no longer be at the destination."""
    header: bytes | None = None
    """The line of column names with which each file begins. It is None for Kafka, or if the names are not known."""


class FaultKind(StrEnum):
    MISSING = "missing"
    DUPLICATED = "duplicated"
    OUT_OF_ORDER = "out of order"
    ALTERED = "altered"
    TRUNCATED = "truncated"
    FOREIGN = "foreign"


GAPS = (FaultKind.MISSING, FaultKind.ALTERED, FaultKind.TRUNCATED, FaultKind.OUT_OF_ORDER)
"""The kinds of faults in which an expected row is missing, changed or out of order at the destination.

In the other kinds of faults, the destination has additional rows.
"""


@dataclass(frozen=True, slots=True)
class DeliveryFinding:
    """A fault of consecutive rows, from `first` (included) to `end` (not included).

    For Kafka, `offset` is the offset of the first row's message. If rows are missing, `offset` is the offset of the
    first message after the gap. `from_ms` and `to_ms` are the earliest and the latest date of the rows in epoch
    milliseconds. A member is None if it does not apply or if its value is unknown.
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
    """The progress of a check: the number of rows that were compared so far."""

    rows: int


@dataclass(slots=True)
class CheckTally:
    """The figures that a check has counted.

    - `rows`: the number of all rows
    - `counts`: the number of rows with each kind of fault
    - `no_longer_there`: the number of rows that the destination may have deleted
    - `not_reproducible`: the number of rows that cannot be produced again
    - `not_yet`: the number of rows (Kafka) or files (S3, HDFS) that the job may have delivered, but that cannot be
      checked yet
    - `hidden`: the number of rows in `not_yet` that an open Kafka transaction may hide
    - `gap_from`: the earliest date of a row with a fault of GAPS
    - `last_date`: the latest date of all rows
    - `hidden_from`: the earliest date of a row that an open Kafka transaction may hide
    - `notes`: texts for the user

    Dates are in epoch milliseconds.
    """

    rows: int = 0
    counts: Counter[FaultKind] = field(default_factory=Counter)
    no_longer_there: int = 0
    not_reproducible: int = 0
    not_yet: int = 0
    hidden: int = 0
    gap_from: int | None = None
    last_date: int | None = None
    hidden_from: int | None = None
    notes: list[str] = field(default_factory=list)

    def add(self, kind: FaultKind, count: int, date: int | None) -> None:
        """Add rows with a fault. `date` is the date of the first of these rows in epoch milliseconds."""
        self.counts[kind] += count
        if kind in GAPS:
            self.gap_from = earliest(self.gap_from, date)


def earliest(*dates: int | None) -> int | None:
    """Return the earliest date. Dates that are None are ignored. Return None if all dates are None."""
    return min((date for date in dates if date is not None), default=None)


def latest(*dates: int | None) -> int | None:
    """Return the latest date. Dates that are None are ignored. Return None if all dates are None."""
    return max((date for date in dates if date is not None), default=None)
