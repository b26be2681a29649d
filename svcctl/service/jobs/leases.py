"""Leases of jobs: only one process at a time runs a job. If that process dies, another process takes over the job.

A lease has a holder, an end, and a fence number. The holder is a process, written as `host/process ID/…`. While the
holder renews the lease, no other process takes the job. Each new lease of a job has a higher fence number. A process
passes the fence number of its lease with each save. If another process has leased the job in the meantime, the save is
refused. So a process that wakes up after it was suspended cannot change the job.

If only one process uses the database, a lease has no end, and only the fence number matters.

Each function runs in a transaction. All moments are read from the clock of the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_, select, update

from svcctl.dates.epochs import seconds_to_ms
from svcctl.service.jobs import job_table
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.state import schema
from svcctl.service.state.store import Store


@dataclass(frozen=True, slots=True)
class Term:
    """The durations that apply to leases, in seconds."""

    seconds: float = 3.0
    """The time after which a lease ends if it is not renewed."""
    margin: float = 0.3
    """The holder stops using a lease this number of seconds before the lease ends."""
    renewal: float = 0.8
    """The interval at which a lease is renewed."""


TERM = Term()
MOST_AT_ONCE = 4
"""The maximum number of jobs that a process leases in one transaction.

Because of this limit, processes that start at the same time share the jobs.
"""

_JOBS = schema.jobs.c


def claim(store: Store, holder: str, place: str | None, running: Collection[str], seconds: float) -> list[StoredJob]:
    """Lease jobs for this process, and return these jobs with their new fence numbers.

    A job is leased if it must run, and no process runs it. Jobs with an ID in `running` are left out, because this
    process already runs them. Jobs that read events of another service are left out too. `place` is the identifier of
    this service.
    """
    with store.transaction() as connection:
        query = select(_JOBS.id).where(job_table.DUE, job_table.free(store), _here(place), _JOBS.id.not_in(running))
        if store.shared:
            query = query.limit(MOST_AT_ONCE)
        ids = list(connection.scalars(query.order_by(_JOBS.number)))
        lease = {"holder": holder, "fence": _JOBS.fence + 1, "expires": _end(store, seconds)}
        connection.execute(update(schema.jobs).where(_JOBS.id.in_(ids)).values(lease))
        return job_table.select_jobs(connection, store, _JOBS.id.in_(ids))


def renew(
    store: Store, holder: str, runs: Iterable[tuple[str, int, int, int, int]], seconds: float
) -> set[tuple[str, int]]:
    """Renew the leases of this process, and store figures that other processes can show.

    Each item of `runs` has five values from a JobRun: `job_id`, `token`, `generated`, `reached` and `accepted`. The
    last three values are stored. Returns the job ID and the fence number of each lease that was renewed. A lease that
    was revoked or taken by another process is not renewed.
    """
    with store.transaction() as connection:
        leases = set()
        for job_id, token, generated, reached, accepted in runs:
            lease = (_JOBS.id == job_id, _JOBS.fence == token, _JOBS.holder == holder)
            progress = {"generated": generated, "reached": reached, "accepted": accepted}
            values = {"expires": _end(store, seconds), **progress}
            if connection.execute(update(schema.jobs).where(*lease).values(values)).rowcount:
                leases.add((job_id, token))
        return leases


def release(store: Store, job_id: str, token: int) -> None:
    """Give back the lease with the fence number `token`, so that another process can take the job at once."""
    _free(store, job_id, token, {"holder": None})


def revoke(store: Store, job_id: str, token: int) -> None:
    """End the lease with the fence number `token`, so that the run with this lease can no longer save."""
    _free(store, job_id, token, {"holder": None, "fence": token + 1})


def _free(store: Store, job_id: str, token: int, values: dict[str, int | None]) -> None:
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id, _JOBS.fence == token).values(values))


def _here(place: str | None) -> ColumnElement[bool]:
    return or_(_JOBS.place.is_(None), _JOBS.place == place)


def _end(store: Store, seconds: float) -> ColumnElement[int] | int:
    return store.moment() + seconds_to_ms(seconds) if store.shared else 0
