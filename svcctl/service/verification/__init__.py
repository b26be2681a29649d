"""Verification: whether a destination has exactly the rows that a job delivered to it.

The log of a job's steps says how its rows can be produced again. They are compared with what the destination has, by
code that shares nothing with the delivery. Rows have the numbers that the job gave them, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """Consecutive rows that a job delivered: the number of the first, and each row's text as its destination has it.

    `dates` are theirs in epoch milliseconds, null for a row without a date. Without `exact`, the rows have results of
    calculations over several events: sums of floats depend on the order of events, which changes.
    """

    first: int
    lines: pa.StringArray
    dates: pa.Int64Array
    exact: bool = True


@dataclass(frozen=True, slots=True)
class NotReproducible:
    """The rows from `first` to before `end`, which cannot be produced again, and the reason as a clause."""

    first: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file that a job delivered, with its rows from `first` to before `end`.

    `sha256` are the hashes in hexadecimal that it may have: several if it was prepared several times.
    """

    number: int
    first: int
    end: int
    sha256: tuple[str, ...]


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
    files: Sequence[LoggedFile]
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


@dataclass(frozen=True, slots=True)
class CheckTally:
    """The result of a check: numbers of rows, by kind of fault and altogether.

    `gap_from` is the date of the first row that is missing, altered, truncated or out of order, and `last_date` the
    latest date of all rows, both in epoch milliseconds. `notes` are sentences for people. Rows from the date
    `hidden_from` on may be there, but cannot be seen yet.
    """

    rows: int
    counts: Mapping[FaultKind, int]
    no_longer_there: int = 0
    not_reproducible: int = 0
    not_yet: int = 0
    gap_from: int | None = None
    last_date: int | None = None
    notes: tuple[str, ...] = ()
    hidden_from: int | None = None


def earliest(*dates: int | None) -> int | None:
    """The first of some dates; those that are None do not count."""
    return min((date for date in dates if date is not None), default=None)


def latest(*dates: int | None) -> int | None:
    """The last of some dates; those that are None do not count."""
    return max((date for date in dates if date is not None), default=None)
