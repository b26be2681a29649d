"""Jobs as rows of the store; each function is a transaction.

The module `checkpoint` reads and writes the JSON of `request` and `checkpoint`. The parameters of a destination contain
secrets: they are in the state file and in the memory of the job's thread, never in an answer, a log or an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, update

from svcctl.api.models import JobStatus
from svcctl.service import schema
from svcctl.service.store import Store

_JOBS = schema.jobs.c


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A stored job. `request` is the query as asked, `checkpoint` the progress of the delivery, `owner` the domain."""

    id: str
    owner: str
    status: JobStatus
    type: str
    friendly_name: str
    query: str
    request: Mapping[str, Any]
    params: Mapping[str, Any] = field(repr=False)
    sent: int = 0
    last_datetime: int = 0
    checkpoint: Mapping[str, Any] = field(default_factory=dict)
    error: tuple[str, ...] = ()


def get(store: Store, job_id: str) -> StoredJob | None:
    return next(iter(_select(store, _JOBS.id == job_id)), None)


def owned(store: Store, owner: str) -> list[StoredJob]:
    """List the jobs of an owner, the oldest first."""
    return _select(store, _JOBS.owner == owner)


def running(store: Store) -> list[StoredJob]:
    return _select(store, _JOBS.status == str(JobStatus.RUNNING))


def add(store: Store, job: StoredJob) -> None:
    with store.transaction() as connection:
        connection.execute(insert(schema.jobs).values(asdict(job) | {"status": str(job.status)}))


def change(store: Store, job_id: str, **values: Any) -> None:
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id).values(values))


def end(store: Store, job_id: str, status: JobStatus, errors: tuple[str, ...]) -> None:
    """Set the final state of a running job. A job that was stopped in the meantime keeps its state."""
    still = (_JOBS.id == job_id, _JOBS.status == str(JobStatus.RUNNING))
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(*still).values(status=str(status), error=errors))


def remove(store: Store, job_id: str) -> None:
    with store.transaction() as connection:
        connection.execute(delete(schema.jobs).where(_JOBS.id == job_id))


def _select(store: Store, condition: ColumnElement[bool]) -> list[StoredJob]:
    columns = (column for column in _JOBS if column is not _JOBS.number)
    with store.reading() as connection:
        rows = connection.execute(select(*columns).where(condition).order_by(_JOBS.number)).mappings().all()
    return [StoredJob(**{**row, "status": JobStatus(row["status"]), "error": tuple(row["error"])}) for row in rows]
