"""Jobs as rows of the store. Each function is a transaction.

Only this module reads and writes the JSON of the columns `request` and `checkpoint`, with the classes of the module
`checkpoint`. The parameters of a destination contain secrets. So they are only in the state and in the memory of the
job's thread, and never in an answer, a log or an error.

A job belongs to a domain or a reseller. The jobs of a domain that is not active do not run, but keep their status.
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
"""The SQL condition for jobs that must run: they are RUNNING, and belong to a reseller or to an active domain."""
DAMAGED = "the stored query or progress of the job is damaged"
_COLUMNS = [column for column in _JOBS if column.name not in ("number", "expires")]


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A stored job. `request` is None if the stored query or progress cannot be read; `unreadable` then has the reason.
    Such a job can be listed, stopped and removed, but not delivered."""

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
    """The service that has the job's events, see `process.place`; None if every process has them."""
    holder: str | None = None
    """The process that runs the job, or ran it last."""
    fence: int = 0
    """The fence number of the job's lease."""
    generated: int = 0
    reached: int = 0
    accepted: int = 0
    failing_since: int | None = None
    delivered: int | None = None
    """The moment, in epoch milliseconds, at which rows were delivered last."""
    verified: int | None = None
    """The date, in epoch milliseconds, up to which a check has found all rows at the destination."""
    kept_from: int | None = None
    """The date in epoch milliseconds from which the destination keeps rows."""
    free: bool = True
    """Whether no process runs the job."""

    @property
    def rest(self) -> Rest:
        """The undelivered rest of this job. Raises ServiceError if the job's query or progress cannot be read."""
        if self.request is None:
            raise ServiceError(self.unreadable or DAMAGED)
        return Rest(self.id, self.type, self.params, self.request, self.progress)

    @property
    def continues(self) -> str | None:
        """The ID of the job that this job continues, or None."""
        return None if self.request is None else self.request.asked.continues


def get(store: Store, job_id: str) -> StoredJob | None:
    return next(iter(_select(store, _JOBS.id == job_id)), None)


def logged(store: Store, *job_ids: str) -> list[StoredJob]:
    """List all jobs, or the jobs with the given IDs. The list includes removed jobs whose log is kept, see `remove`."""
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
    """Return the owner's job that continues the job `job_id`, or None.

    If the caller has begun a transaction, nobody else can store such a job before the transaction ends.
    """
    with store.transaction() as connection:
        jobs = select_jobs(connection, store, _JOBS.domain == owner.domain, _JOBS.reseller == owner.reseller)
    return next((job for job in jobs if job.continues == job_id), None)


def unfinished(store: Store) -> list[StoredJob]:
    """List the jobs that run or can be started again."""
    return _select(store, _JOBS.status.in_((str(JobStatus.RUNNING), str(JobStatus.STOPPED))))


@dataclass(frozen=True, slots=True)
class Due:
    """A job that must run. `fence` is the fence number of its lease. `free` means that no process runs the job."""

    fence: int
    free: bool


def due(store: Store) -> dict[str, Due]:
    """Return the jobs that must run, by ID. These are the RUNNING jobs of active domains and of resellers.

    The service calls this function every second, so the function reads no JSON. If the state is not shared, the
    function reads nothing while the state stays the same. A shared state is always read, because a lease may end
    without a change of the state.
    """

    def read(connection: Connection) -> dict[str, Due]:
        rows = connection.execute(select(_JOBS.id, _JOBS.fence, free(store)).where(DUE).order_by(_JOBS.number))
        return {job_id: Due(fence, bool(is_free)) for job_id, fence, is_free in rows}

    if not store.shared:
        return store.cached_value("due jobs", read)
    with store.reading() as connection:
        return read(connection)


Room = Callable[[Sequence[Owner]], None]
"""A function that takes the owner of each running job, and raises an error if one more job may not run."""


def add(store: Store, job: StoredJob, room: Room | None = None) -> None:
    """Store a new job. Raises the error of `room`, or an error if the job's domain can no longer be accessed."""
    with store.transaction() as connection:
        if room is not None:
            room(_owners(connection))
        if job.owner.domain is not None:
            domains.check_access(connection, domains.with_id(connection, job.owner.domain))
        connection.execute(insert(schema.jobs).values(_row(job)))


def succeed(store: Store, before: str, follow: Callable[[StoredJob], StoredJob], room: Room | None) -> StoredJob:
    """Stop the job `before`, and store and return its successor, which `follow` makes from the stopped job.

    The run of `before` can save nothing more. Raises NotFound if `before` is gone, and the errors of `add`.
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
    """Change the status of a job from `before` to `after`; a job with another status stays unchanged.

    Returns the job, or None if the job is gone, and whether this call changed the status. Only one of several
    simultaneous calls changes it. `room` can refuse a start, as in `add`. A start clears the error of the job. Until
    then, a stopped job shows why it failed.
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
    """Save the progress of a job with the entries of its log, and clear its error. Returns False if the job is gone, or
    if `token` is not the fence number of its lease."""
    with store.transaction() as connection:
        saved = _change(store, job_id, token, [], _columns(progress) | {"error": ()})
        if saved and log is not None:
            step_log.write(connection, log)
    return saved


def trouble(store: Store, job_id: str, token: int, errors: tuple[str, ...]) -> None:
    """Set the error of a running job. A job that was stopped in the meantime keeps its earlier error."""
    _change(store, job_id, token, [_RUNNING], {"error": errors})


def reach(store: Store, job_id: str, token: int, moment: int) -> None:
    """Move the last date of a job, and the date up to which the job has read all events, forward and never back."""
    dates = {
        column.name: case((column < moment, moment), else_=column) for column in (_JOBS.last_datetime, _JOBS.reached)
    }
    _change(store, job_id, token, [], dates)


def end(store: Store, job_id: str, token: int, status: JobStatus, errors: tuple[str, ...]) -> None:
    """Set the final state of a running job. A job that was stopped in the meantime keeps its state."""
    _change(store, job_id, token, [_RUNNING], {"status": str(status), "error": errors})


def set_dates(store: Store, job_id: str, **dates: int) -> None:
    """Set the dates `verified` or `kept_from` of a job, in epoch milliseconds."""
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id).values(dates))


def remove(store: Store, job_id: str) -> StoredJob | None:
    """Delete a job and return it; return None if it is gone.

    The job stays as REMOVED as long as other jobs need it for their checks. A job that another job continues stays with
    its log, because both are verified together. A job with files stays with the numbers of its files while another job
    delivers to the same place, so that the files are not foreign there.
    """
    with store.transaction() as connection:
        job = next(iter(select_jobs(connection, store, _JOBS.id == job_id)), None)
        if job is not None:
            values = {"status": str(JobStatus.REMOVED), "holder": None, "fence": _JOBS.fence + 1}
            connection.execute(update(schema.jobs).where(_JOBS.id == job_id).values(values))
            _forget(connection, _with_removed(connection, store))
        return job


def _forget(connection: Connection, jobs: Sequence[StoredJob]) -> None:
    """Delete the removed jobs that are not needed to verify others; `jobs` are all that are stored."""
    needed = [job for job in jobs if job.status is not JobStatus.REMOVED]
    ids = {job.id for job in needed}
    for job in needed:  # grows by the jobs that these continue
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
    """Return the SQL condition that no process runs a job.

    Such a job was never leased, or its lease was given back or has ended.
    """
    return or_(_JOBS.holder.is_(None), _JOBS.expires <= store.moment())


def select_jobs(connection: Connection, store: Store, *conditions: ColumnElement[bool]) -> list[StoredJob]:
    """List the jobs that meet all conditions, the oldest first."""
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
    """Add the moments that change with `values`: the beginning of a failure, and the last delivery."""
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
"""The fields of `StoredJob` whose values are stored unchanged, in columns with the same names."""


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
