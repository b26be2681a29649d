"""The log of a job: the query steps that returned rows, and the files that were written.

A job runs its query in steps. Each step reads a part of the events. With the log, the rows of the job can be produced
again in the same order. A step without rows has no entry, so the log grows only when rows are delivered. Entries are
written in the transaction that saves the job's progress, and are removed with their job. Older versions of the service
kept no log, so the log of an old job begins at the upgrade.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from svcctl.service.queries.schedule import Step
from svcctl.service.state import schema
from svcctl.service.state.store import Store, is_there, replace

PAGE_ENTRIES = 1000
"""The number of entries that are read from the database at once."""
MAX_OFFSETS = 100_000
"""The maximum number of Kafka offsets that are returned from a log.

If the log has more offsets, only every second offset is returned, or every fourth, and so on.
"""

_STEPS, _FILES = schema.job_steps.c, schema.job_files.c


@dataclass(frozen=True, slots=True)
class StepEntry:
    """The log entry of a query step with rows.

    `first` is the number of the step's first row. The rows of the step end where the rows of the next entry begin. For
    Kafka, `offset` is the offset up to which the partition was written when the step began.

    An entry with `step` None marks the end of the job's rows. A newer job writes such an entry after it has delivered
    the last rows of this job.
    """

    first: int
    step: Step | None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The log entry of a file with the rows from `first` (included) to `end` (not included).

    `sha256` lists the possible SHA-256 hashes of the file, in hexadecimal. There are several hashes if the commit of
    the file was prepared several times.
    """

    number: int
    first: int
    end: int
    sha256: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogEntries:
    """Entries of a job's log: query steps that returned rows, and files that were written."""

    job_id: str
    steps: tuple[StepEntry, ...] = ()
    files: tuple[FileEntry, ...] = ()


def write(connection: Connection, entries: LogEntries) -> None:
    """Write entries of a job's log. An entry replaces an older entry with the same first row or the same file number.

    Does nothing if the job does not exist.
    """
    if not (entries.steps or entries.files) or not is_there(connection, schema.jobs.c.id == entries.job_id):
        return
    for entry in entries.steps:
        step = None if entry.step is None else list(entry.step.to_json().values())
        row = {"job": entries.job_id, "first": entry.first, "step": step, "offset": entry.offset}
        replace(connection, schema.job_steps, **row)
    for file in entries.files:
        row = {"job": entries.job_id, "number": file.number, "first": file.first, "end": file.end}
        replace(connection, schema.job_files, **row, sha256=list(file.sha256))


def steps(store: Store, job_id: str, before: int) -> Iterator[StepEntry]:
    """Yield the entries of a job's steps in order. Only steps whose first row is below `before` are returned."""
    last = -1
    while True:
        page = _steps(store, _STEPS.job == job_id, _STEPS.first > last, _STEPS.first < before)
        yield from page
        if len(page) < PAGE_ENTRIES:
            return
        last = page[-1].first


def last(store: Store, job_id: str, before: int = sys.maxsize) -> StepEntry | None:
    """Return the entry of a job's last step whose first row is below `before`. Return None if there is no entry."""
    with store.reading() as connection:
        first = connection.scalar(select(func.max(_STEPS.first)).where(_STEPS.job == job_id, _STEPS.first < before))
    return None if first is None else _steps(store, _STEPS.job == job_id, _STEPS.first == first)[0]


def files(store: Store, job_id: str) -> list[FileEntry]:
    """Return the files of a job, in the order of their first rows."""
    query = select(_FILES.number, _FILES.first, _FILES.end, _FILES.sha256)
    with store.reading() as connection:
        rows = connection.execute(query.where(_FILES.job == job_id).order_by(_FILES.first, _FILES.number)).all()
    return [FileEntry(number, first, end, tuple(hashes)) for number, first, end, hashes in rows]


def offsets(store: Store, job_id: str, before: int, most: int = MAX_OFFSETS) -> list[tuple[int, int]]:
    """Return the Kafka offsets of a job's steps, as pairs of the step's first row and the offset.

    Only steps whose first row is below `before` are returned. If there are more than `most` pairs, only every second
    pair is returned, or every fourth, and so on.
    """
    pairs: list[tuple[int, int]] = []
    stride, at = 1, 0
    for entry in steps(store, job_id, before):
        if entry.offset is None:
            continue
        if at % stride == 0:
            pairs.append((entry.first, entry.offset))
        at += 1
        if len(pairs) > most:
            pairs, stride = pairs[::2], stride * 2
    return pairs


def _steps(store: Store, *conditions: ColumnElement[bool]) -> list[StepEntry]:
    query = select(_STEPS.first, _STEPS.step, _STEPS.offset).where(*conditions)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(_STEPS.first).limit(PAGE_ENTRIES)).all()
    return [StepEntry(first, _step(values), offset) for first, values, offset in rows]


def _step(values: Any) -> Step | None:
    return None if values is None else Step(*values)
