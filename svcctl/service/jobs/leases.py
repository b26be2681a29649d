"""Leases: one process runs a job, and when it dies another takes over; each function is a transaction.

A lease has the process that holds it (`host/process ID/…`), a fence number that grows with each lease of the job, and
an end. The holder renews it, and while it does so nobody else takes the job. Whatever a run saves names its fence
number and is refused if a later lease has another, so a process that was suspended and wakes up changes nothing. Where
one process has the state for itself, leases have no end and hold nobody off, and only the number counts.

All moments are those of the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_, select, update

from svcctl.service.jobs import stored
from svcctl.service.jobs.stored import StoredJob
from svcctl.service.state import schema
from svcctl.service.state.store import Store


@dataclass(frozen=True, slots=True)
class Term:
    """How long leases hold, in seconds."""

    seconds: float = 3.0
    """Without being renewed."""
    margin: float = 0.3
    """By how much sooner the holder considers a lease ended."""
    renewal: float = 0.8
    """How often a lease is renewed."""


TERM = Term()
MOST_AT_ONCE = 4
"""How many jobs a process takes at a time, so that processes which start together share them."""

_JOBS = schema.jobs.c


def claim(store: Store, holder: str, place: str | None, running: Collection[str], seconds: float) -> list[StoredJob]:
    """Take jobs that are due and free, besides those that run here already, and return them with their new number."""
    with store.transaction() as connection:
        found = select(_JOBS.id).where(stored.DUE, stored.free(store), _here(place), _JOBS.id.not_in(running))
        if store.shared:
            found = found.limit(MOST_AT_ONCE)
        ids = list(connection.scalars(found.order_by(_JOBS.number)))
        lease = {"holder": holder, "fence": _JOBS.fence + 1, "expires": _end(store, seconds)}
        connection.execute(update(schema.jobs).where(_JOBS.id.in_(ids)).values(lease))
        return stored.select_jobs(connection, store, _JOBS.id.in_(ids))


def renew(store: Store, holder: str, runs: Iterable[tuple[str, int, int, int]], seconds: float) -> set[tuple[str, int]]:
    """Renew the leases of runs (job, fence number, rows read, moment reached); returns those that still hold.

    What a run has read and reached is stored for whoever asks another process.
    """
    with store.transaction() as connection:
        kept = set()
        for job_id, token, generated, reached in runs:
            mine = (_JOBS.id == job_id, _JOBS.fence == token, _JOBS.holder == holder)
            values = {"expires": _end(store, seconds), "generated": generated, "reached": reached}
            if connection.execute(update(schema.jobs).where(*mine).values(values)).rowcount:
                kept.add((job_id, token))
        return kept


def release(store: Store, job_id: str, token: int) -> None:
    """Let the next process have the job at once, after the run of this number has ended."""
    _free(store, job_id, token, {"holder": None})


def revoke(store: Store, job_id: str, token: int) -> None:
    """End a lease whose run does not end, so that it can save nothing more."""
    _free(store, job_id, token, {"holder": None, "fence": token + 1})


def _free(store: Store, job_id: str, token: int, values: dict[str, int | None]) -> None:
    with store.transaction() as connection:
        connection.execute(update(schema.jobs).where(_JOBS.id == job_id, _JOBS.fence == token).values(values))


def _here(place: str | None) -> ColumnElement[bool]:
    return or_(_JOBS.place.is_(None), _JOBS.place == place)


def _end(store: Store, seconds: float) -> ColumnElement[int] | int:
    return store.moment() + int(seconds * 1000) if store.shared else 0
