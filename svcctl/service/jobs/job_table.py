"""Jobs as rows of a database table. Each function runs in a transaction.

Only this module reads and writes the JSON of the columns `request` and `checkpoint`. The classes for this JSON are in
the module `checkpoint`. The parameters of a destination may contain secrets. So they are only in the database and in
the memory of the service, and never in an answer, a log or an error.

A job belongs to a domain or a reseller. The jobs of an inactive domain do not run, but they keep their status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from svcctl.api.destinations import place_of_files
from svcctl.api.models import JobStatus
from svcctl.errors import NotFound, ServiceError
from svcctl.service.accounts import domains
from svcctl.service.accounts.accounts import Owner
from svcctl.service.jobs import step_log
from svcctl.service.jobs.checkpoint import JobProgress, Rest, StoredQuery
from svcctl.service.jobs.step_log import LogEntries
from svcctl.service.state import schema
from svcctl.service.state.store import Store

_JOBS = schema.jobs.c
_RUNNING = _JOBS.status == str(JobStatus.RUNNING)
_THERE = _JOBS.status != str(JobStatus.REMOVED)
DUE = and_(_RUNNING, or_(_JOBS.domain.is_(None), _JOBS.domain.in_(domains.active())))
"""The SQL condition for jobs that must run.

Such a job has the status RUNNING, and belongs to a reseller or to an active domain.
"""
DAMAGED = "the stored query or progress of the job is damaged"
_COLUMNS = [column for column in _JOBS if column.name not in ("number", "expires")]


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as stored in the database.

    If the stored query or progress cannot be read, `request` is None and `unreadable` has the reason. Such a job can be
    listed, stopped and removed, but it cannot be delivered.
    """

    id: str
    owner: Owner
    status: JobStatus
    type: str
    friendly_name: str
    query: str
    request: StoredQuery | None = field(repr=False)
    params: Mapping[str, Any] = field(repr=False)
    progress: JobProgress = field(default_factory=JobProgress)
    unreadable: str | None = None
    error: tuple[str, ...] = ()
    place: str | None = None
    """The identifier of the only service that has the events of the job's table.

    It is None if all services that use the database have the events.
    """
    holder: str | None = None
    """The process that has the lease of the job, or had the last lease.

    Only a process with the lease may run the job. `holder` is None if the lease was given back or revoked.
    """
    fence: int = 0
    """The fence number of the job's lease. Each new lease of the job has a higher number."""
    generated: int = 0
    reached: int = 0
    accepted: int = 0
    failing_since: int | None = None
    delivered: int | None = None
    """The moment of the last delivery of rows, in epoch milliseconds."""
    verified: int | None = None
    """The date, in epoch milliseconds, up to which a check has found all rows at the destination."""
    kept_from: int | None = None
    """The date, in epoch milliseconds, from which a check expects rows at the destination.

    A user sets this date when the destination no longer has older rows.
    """
    free: bool = True
    """Whether no process runs the job."""

    @property
    def rest(self) -> Rest:
        """The undelivered rest of this job. Raises ServiceError if the stored query or progress cannot be read."""
        if self.request is None:
            raise ServiceError(self.unreadable or DAMAGED)
        return Rest(self.id, self.type, self.params, self.request, self.progress)

    @property
    def continues(self) -> str | None:
        """The ID of the older job that this job continues. It is None if this job continues no other job."""
        return None if self.request is None else self.request.asked.continues


def get(store: Store, job_id: str) -> StoredJob | None:
    return next(iter(_select(store, _JOBS.id == job_id)), None)


def logged(store: Store, *job_ids: str) -> list[StoredJob]:
    """List the jobs with the given IDs. Without an ID, list all jobs.

    The list includes removed jobs that the database still keeps, see `remove`.
    """
    conditions = [_JOBS.id.in_(job_ids)] if job_ids else []
    with store.reading() as connection:
        return _with_removed(connection, store, *conditions)


def owned(store: Store, owner: Owner) -> list[StoredJob]:
    """List the jobs of an owner, the oldest first."""
    return _select(store, _JOBS.domain == owner.domain, _JOBS.reseller == owner.reseller)


def every(store: Store) -> list[StoredJob]:
    """List the jobs of all owners."""
    return _select(store)


def successor(store: Store, owner: Owner, job_id: str) -> StoredJob | None:
    """Return the owner's job that continues the job `job_id`. Return None if there is no such job.

    If the caller has begun a transaction, nobody else can store such a job until the transaction ends.
    """
    with store.transaction() as connection:
        jobs = select_jobs(connection, store, _JOBS.domain == owner.domain, _JOBS.reseller == owner.reseller)
    return next((job for job in jobs if job.continues == job_id), None)


def unfinished(store: Store) -> list[StoredJob]:
    """List the jobs that run or can be started again."""
    return _select(store, _JOBS.status.in_((str(JobStatus.RUNNING), str(JobStatus.STOPPED))))


@dataclass(frozen=True, slots=True)
class Due:
    """A job that must run. `fence` is the fence number of its lease. `free` is true if no process runs the job."""

    fence: int
    free: bool


def due(store: Store) -> dict[str, Due]:
    """Return the jobs that must run, by ID. These are the RUNNING jobs of active domains and of resellers.

    The service calls this function every second, so the function must be fast. If only one process uses the database,
    the result is cached until the database changes.
    """

    def read(connection: Connection) -> dict[str, Due]:
        rows = connection.execute(select(_JOBS.id, _JOBS.fence, free(store)).where(DUE).order_by(_JOBS.number))
        return {job_id: Due(fence, bool(is_free)) for job_id, fence, is_free in rows}

    if not store.shared:
        return store.cached_value("due jobs", read)
    with store.reading() as connection:
        return read(connection)


Room = Callable[[Sequence[Owner]], None]
"""A function that refuses a new job if too many jobs run.

The argument has the owner of each running job. The function raises an error if no further job may run.
"""


def add(store: Store, job: StoredJob, room: Room | None = None) -> None:
    """Store a new job. Raises the error of `room` if too many jobs run.

    Also raises an error if the job's domain can no longer be accessed.
    """
    with store.transaction() as connection:
        if room is not None:
            room(_owners(connection))
        if job.owner.domain is not None:
            domains.check_access(connection, domains.with_id(connection, job.owner.domain))
        connection.execute(insert(schema.jobs).values(_row(job)))


def succeed(store: Store, before: str, follow: Callable[[StoredJob], StoredJob], room: Room | None) -> StoredJob:
    """Stop the job `before`. Then store and return a new job that continues the stopped job.

    The function `follow` makes the new job from the stopped job. A process that still runs the job `before` can no
    longer save its progress. Raises NotFound if the job `before` does not exist. Raises the errors of `add`.
    """
    with store.transaction() as connection:
        stopped = case((_RUNNING, str(JobStatus.STOPPED)), else_=_JOBS.status)
        values = {"status": stopped, "holder": None, "fence": _JOBS.fence + 1}
        connection.execute(update(schema.jobs).where(_JOBS.id == before).values(values))
        jobs = select_jobs(connection, store, _JOBS.id == before)
        if not jobs:
            raise NotFound(f"no job {before}")
        job = follow(jobs[0])
        add(store, job, room)
        return job


def move(
    store: Store, job_id: str, before: JobStatus, after: JobStatus, room: Room | None = None
) -> tuple[StoredJob | None, bool]:
    """Change the status of a job from `before` to `after`. If the status is not `before`, the job stays unchanged.

    Returns the job, and whether this call changed the status. The returned job is None if the job does not exist. If
    several calls arrive at the same moment, only one of them changes the status. A change to RUNNING clears the error
    of the job. Raises the error of `room` if too many jobs run.
    """
    with store.transaction() as connection:
        job = next(iter(select_jobs(connection, store, _JOBS.id == job_id)), None)
        if job is None or job.status is not before:
            return job, False
        if room is not None:
            room(_owners(connection))
        values: dict[str, Any] = {"status": str(after)} | ({"error": ()} if after is JobStatus.RUNNING else {})
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id).values(_dated(store, values)))
        return next(iter(select_jobs(connection, store, _JOBS.id == job_id)), None), True


def save(store: Store, job_id: str, token: int, progress: JobProgress, log: LogEntries | None = None) -> bool:
    """Save the progress of a job and the entries of its log, and clear the error of the job.

    Returns False, and saves nothing, if the job does not exist or `token` is not the fence number of its lease.
    """
    with store.transaction() as connection:
        saved = _change(store, job_id, token, [], _columns(progress) | {"error": ()})
        if saved and log is not None:
            step_log.write(connection, log)
    return saved


def trouble(store: Store, job_id: str, token: int, errors: tuple[str, ...]) -> None:
    """Set the error of a running job. If the job was stopped in the meantime, its error stays unchanged."""
    _change(store, job_id, token, [_RUNNING], {"error": errors})


def reach(store: Store, job_id: str, token: int, moment: int) -> None:
    """Move the dates `last_datetime` and `reached` of a job forward to `moment`, in epoch milliseconds.

    A date that is already later stays unchanged.
    """
    dates = {
        column.name: case((column < moment, moment), else_=column) for column in (_JOBS.last_datetime, _JOBS.reached)
    }
    _change(store, job_id, token, [], dates)


def end(store: Store, job_id: str, token: int, status: JobStatus, errors: tuple[str, ...]) -> None:
    """Set the final status and the errors of a running job. A job that was stopped in the meantime stays unchanged."""
    _change(store, job_id, token, [_RUNNING], {"status": str(status), "error": errors})


def set_dates(store: Store, job_id: str, **dates: int) -> None:
    """Set the dates `verified` or `kept_from` of a job, in epoch milliseconds."""
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id).values(dates))


def remove(store: Store, job_id: str) -> StoredJob | None:
    """Remove a job and return it. Return None if there is no such job.

    The database keeps the removed job, with the status REMOVED, if the check of another job needs it. There are two
    cases:
    - Another job continues the removed job. The log is kept too, because both jobs are verified together.
    - Another job delivers files to the same place. The numbers of the removed job's files are kept, so that the check
      of the other job does not report these files as foreign.
    """
    with store.transaction() as connection:
        job = next(iter(select_jobs(connection, store, _JOBS.id == job_id)), None)
        if job is not None:
            values = {"status": str(JobStatus.REMOVED), "holder": None, "fence": _JOBS.fence + 1}
            connection.execute(update(schema.jobs).where(_JOBS.id == job_id).values(values))
            _forget(connection, _with_removed(connection, store))
        return job


def _forget(connection: Connection, jobs: Sequence[StoredJob]) -> None:
    """Delete the removed jobs that are not needed to verify other jobs. `jobs` are all stored jobs."""
    needed = [job for job in jobs if job.status is not JobStatus.REMOVED]
    ids = {job.id for job in needed}
    for job in needed:  # `needed` grows during the loop by the older jobs that its jobs continue
        continued = [other for other in jobs if (other.id, other.owner) == (job.continues, job.owner)]
        needed += [other for other in continued if other.id not in ids]
        ids |= {other.id for other in continued}
    places = [(job.type, place_of_files(job.type, job.params, job.id)) for job in needed]
    for job in (job for job in jobs if job.id not in ids):
        place = place_of_files(job.type, job.params, job.id)
        if place and (job.type, place) in places:
            without_secrets = _columns(replace(job.progress, before=None)) | {"params": dict(place)}
            connection.execute(update(schema.jobs).where(_JOBS.id == job.id).values(without_secrets))
            connection.execute(delete(schema.job_steps).where(schema.job_steps.c.job == job.id))
        else:
            connection.execute(delete(schema.jobs).where(_JOBS.id == job.id))


def free(store: Store) -> ColumnElement[bool]:
    """Return the SQL condition for jobs that no process runs.

    Such a job has no lease, or its lease has ended.
    """
    return or_(_JOBS.holder.is_(None), _JOBS.expires <= store.moment())


def select_jobs(connection: Connection, store: Store, *conditions: ColumnElement[bool]) -> list[StoredJob]:
    """List the jobs that meet all conditions, the oldest first. Removed jobs are left out."""
    return _with_removed(connection, store, _THERE, *conditions)


def _with_removed(connection: Connection, store: Store, *conditions: ColumnElement[bool]) -> list[StoredJob]:
    rows = (
        connection.execute(select(*_COLUMNS, free(store).label("free")).where(*conditions).order_by(_JOBS.number))
        .mappings()
        .all()
    )
    return list(map(_stored, rows))


def _select(store: Store, *conditions: ColumnElement[bool]) -> list[StoredJob]:
    with store.reading() as connection:
        return select_jobs(connection, store, *conditions)


def _owners(connection: Connection) -> list[Owner]:
    """Return the owner of each job that is RUNNING."""
    return [Owner(*row) for row in connection.execute(select(_JOBS.domain, _JOBS.reseller).where(_RUNNING))]


def _change(
    store: Store, job_id: str, token: int, conditions: list[ColumnElement[bool]], values: dict[str, Any]
) -> bool:
    with store.transaction() as connection:
        statement = update(schema.jobs).where(_JOBS.id == job_id, _JOBS.fence == token, *conditions)
        return bool(connection.execute(statement.values(_dated(store, values))).rowcount)


def _dated(store: Store, values: dict[str, Any]) -> dict[str, Any]:
    """Return the new column values of a job, and add the moments that depend on them.

    If the job gets an error and had none before, `failing_since` becomes the present moment. If the error is cleared,
    `failing_since` is cleared too. If more rows were sent, `delivered` becomes the present moment.
    """
    moments: dict[str, Any] = {}
    if "error" in values:
        since = func.coalesce(_JOBS.failing_since, store.moment())
        moments["failing_since"] = since if values["error"] else None
    if "sent" in values:
        moments["delivered"] = case((_JOBS.sent < values["sent"], store.moment()), else_=_JOBS.delivered)
    return values | moments


_AS_STORED = (
    *("id", "type", "friendly_name", "query", "params", "error", "place", "holder", "fence"),
    *("generated", "reached", "accepted", "failing_since", "delivered", "verified", "kept_from"),
)
"""The names of the fields of `StoredJob` that are stored unchanged, each in a column with the same name."""


def _row(job: StoredJob) -> dict[str, Any]:
    row = {name: getattr(job, name) for name in _AS_STORED} | asdict(job.owner) | _columns(job.progress)
    return row | {"status": str(job.status), "request": job.rest.request.to_json()}


def _columns(progress: JobProgress) -> dict[str, Any]:
    return {"sent": progress.sent, "last_datetime": progress.last_datetime, "checkpoint": progress.to_json()}


def _stored(row: RowMapping) -> StoredJob:
    request, unreadable, progress = None, None, JobProgress(row["sent"], row["last_datetime"])
    try:
        progress = JobProgress.from_json(row["sent"], row["last_datetime"], row["checkpoint"])
        request = StoredQuery.from_json(row["request"])
    except ServiceError as error:
        unreadable = error.message
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        unreadable = DAMAGED
    values = {name: row[name] for name in _AS_STORED} | {"error": tuple(row["error"])}
    owner, status, free = Owner(row["domain"], row["reseller"]), JobStatus(row["status"]), bool(row["free"])
    read = {"request": request, "progress": progress, "unreadable": unreadable}
    return StoredJob(**values | read, owner=owner, status=status, free=free)
