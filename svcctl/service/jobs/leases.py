"""Leases: only one process runs a job, and if that process dies, another process takes over the job.

A lease has a holder (the process, as `host/process ID/…`), a fence number that grows with each lease of the job, and an
end. While the holder renews the lease, no other process takes the job. Each save by a run names the fence number of the
run's lease. If the job was leased again since, the save is refused. So a process that was suspended and wakes up
changes nothing. If the state is not shared, leases do not end and exclude no process; only the fence number matters.

Each function is a transaction. All moments are by the clock of the database.
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
    """The times of a lease, in seconds."""

    seconds: float = 3.0
    """The time after which a lease ends if it is not renewed."""
    margin: float = 0.3
    """The holder considers its lease ended earlier than other processes do, by this time."""
    renewal: float = 0.8
    """The interval at which a lease is renewed."""


TERM = Term()
MOST_AT_ONCE = 4
"""The maximum number of jobs that a process leases at a time. So processes that start together share the jobs."""

_JOBS = schema.jobs.c


def claim(store: Store, holder: str, place: str | None, running: Collection[str], seconds: float) -> list[StoredJob]:
    """Lease jobs that are due, free and not yet `running` here; return them with their new fence numbers."""
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
    """Renew the leases of runs. A run is given as job ID, fence number, number of rows read, and two moments.

    The moments are the run's `reached` and `accepted`. The number of rows and both moments are stored, so that other
    processes can show them. Returns the job ID and the fence number of each lease that still holds.
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
    """Let another process take the job at once, since the run with this fence number has ended."""
    _free(store, job_id, token, {"holder": None})


def revoke(store: Store, job_id: str, token: int) -> None:
    """End the lease of a run that does not end in time, so that the run can save nothing more."""
    _free(store, job_id, token, {"holder": None, "fence": token + 1})


def _free(store: Store, job_id: str, token: int, values: dict[str, int | None]) -> None:
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id, _JOBS.fence == token).values(values))


def _here(place: str | None) -> ColumnElement[bool]:
    return or_(_JOBS.place.is_(None), _JOBS.place == place)


def _end(store: Store, seconds: float) -> ColumnElement[int] | int:
    return store.moment() + seconds_to_ms(seconds) if store.shared else 0
