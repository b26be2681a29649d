"""Jobs as rows of the store; each function is a transaction.

The module `checkpoint` reads and writes the JSON of `request` and `checkpoint`. The parameters of a destination contain
secrets: they are in the state file and in the memory of the job's thread, never in an answer, a log or an error.

A job belongs to a domain or a reseller. The jobs of a domain that is not active do not run, but keep their status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, delete, insert, or_, select, update

from svcctl.api.models import JobStatus
from svcctl.service import schema
from svcctl.service.provisioning import domains
from svcctl.service.provisioning.accounts import Owner
from svcctl.service.store import Store

_JOBS = schema.jobs.c
_RUNNING = _JOBS.status == str(JobStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A stored job. `request` is the query as asked, `checkpoint` the progress of the delivery."""

    id: str
    owner: Owner
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


def owned(store: Store, owner: Owner) -> list[StoredJob]:
    """List the jobs of an owner, the oldest first."""
    return _select(store, _JOBS.domain == owner.domain, _JOBS.reseller == owner.reseller)


def running(store: Store) -> list[StoredJob]:
    """List the jobs that are RUNNING, those of domains that are not active too."""
    return _select(store, _RUNNING)


def due(store: Store) -> list[StoredJob]:
    """List the jobs whose rows are to be delivered: those that are RUNNING, of active domains and of resellers."""
    return _select(store, _RUNNING, or_(_JOBS.domain.is_(None), _JOBS.domain.in_(domains.active())))


def add(store: Store, job: StoredJob) -> None:
    """Store a new job. Refused when its domain can no longer be accessed."""
    row = {name: value for name, value in asdict(job).items() if name != "owner"}
    with store.transaction() as connection:
        if job.owner.domain is not None:
            domains.check_access(connection, domains.identified(connection, job.owner.domain))
        connection.execute(insert(schema.jobs).values(row | asdict(job.owner) | {"status": str(job.status)}))


def change(store: Store, job_id: str, **values: Any) -> None:
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id).values(values))


def end(store: Store, job_id: str, status: JobStatus, errors: tuple[str, ...]) -> None:
    """Set the final state of a running job. A job that was stopped in the meantime keeps its state."""
    with store.transaction() as connection:
        connection.execute(
            update(schema.jobs).where(_JOBS.id == job_id, _RUNNING).values(status=str(status), error=errors)
        )


def remove(store: Store, job_id: str) -> None:
    with store.transaction() as connection:
        connection.execute(delete(schema.jobs).where(_JOBS.id == job_id))


def _select(store: Store, *conditions: ColumnElement[bool]) -> list[StoredJob]:
    columns = (column for column in _JOBS if column is not _JOBS.number)
    with store.reading() as connection:
        rows = connection.execute(select(*columns).where(*conditions).order_by(_JOBS.number)).mappings().all()
    return list(map(_stored, rows))


def _stored(row: RowMapping) -> StoredJob:
    values = dict(row)
    owner = Owner(values.pop("domain"), values.pop("reseller"))
    return StoredJob(
        **values | {"owner": owner, "status": JobStatus(values["status"]), "error": tuple(values["error"])}
    )
