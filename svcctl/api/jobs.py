"""Jobs over time: launched and read back, waited for, and watched.

An operation of the service is a method of the client; this file asks again until something has happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svcctl.api.models import Job
from svcctl.errors import Conflict, NotFound, ServiceError, SvcctlError, Unavailable

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.api.query import QueryRequest

POLL_SECONDS = 0.5


def launch(client: Client, request: QueryRequest, note: Callable[[str], None]) -> Job:
    """Launch a query as a job and read the job back; a job that cannot be read has its ID at least, and a note."""
    job_id = client.launch(request)
    try:
        return client.job(job_id)
    except SvcctlError as error:
        note(f"the job is launched, but {error.message}")
        return Job(job_id, "")


def wait_for(client: Client, job_id: str, wanted: Collection[str], deadline: float | None) -> Job:
    """The job once it is in a wanted state and without errors; `deadline` is a reading of time.monotonic.

    Conflict or ServiceError as soon as that cannot happen by itself. With a deadline, a service that does not answer is
    asked again; Unavailable when the deadline has passed.
    """
    while True:
        state = "unknown"
        try:
            job = client.job(job_id)
        except NotFound:
            if "REMOVED" in wanted:
                return Job(job_id, "REMOVED")
            raise
        except Unavailable:
            if deadline is None:
                raise
        else:
            state = job.status
            if job.status in wanted and not job.error:
                return job
            _check_hope(job, wanted)
            if job.error:
                state += f" ({'; '.join(job.error)})"
        if deadline is not None and time.monotonic() >= deadline:
            raise Unavailable(f"job {job_id} is {state}, not {' or '.join(sorted(wanted))}, and the time is up")
        pause = POLL_SECONDS if deadline is None else min(POLL_SECONDS, max(0.0, deadline - time.monotonic()))
        time.sleep(pause)


def _check_hope(job: Job, wanted: Collection[str]) -> None:
    """Raise unless a job that is not in a wanted state can still reach one by itself."""
    resting = job.status in ("COMPLETED", "STOPPED")
    if resting and job.error:
        raise ServiceError(f"job {job.id} is {job.status} with an error: {'; '.join(job.error)}")
    others = {"COMPLETED": {"REMOVED"}, "STOPPED": set(wanted) - {"COMPLETED", "STOPPED"}}
    if resting and not others[job.status] & set(wanted):
        raise Conflict(f"job {job.id} is {job.status}: it does not become {' or '.join(sorted(wanted))} by itself")


@dataclass(frozen=True, slots=True)
class Watched:
    """A job at one moment: its rate in events per second since the moment before, and its lag in seconds behind now.

    Both are None where they are not known: at the first look, and for a job that does not run.
    """

    job: Job
    rate: float | None
    lag: float | None


@dataclass(frozen=True, slots=True)
class Look:
    """All jobs at one moment, in epoch milliseconds; `failure` says why the service could not be asked."""

    at: int
    jobs: tuple[Watched, ...]
    failure: str | None = None


def looks(
    read: Callable[[], Iterable[Job]],
    ids: Collection[str],
    *,
    interval: float,
    seconds: float | None,
    clock: Callable[[], float],
) -> Iterator[Look]:
    """A look every `interval` seconds at the named jobs, at all without a name, for `seconds` from the first look.

    `read` lists all jobs. While the service does not answer, the jobs are as they were seen last.
    """
    deadline: float | None = None
    jobs: tuple[Job, ...] = ()
    before: dict[str, tuple[int, int | None]] = {}
    while True:
        failure = None
        try:
            found = read()
        except Unavailable as error:
            failure = error.message
        else:
            jobs = tuple(job for job in found if not ids or job.id in ids)
        if deadline is None and seconds is not None:
            deadline = time.monotonic() + seconds
        at = int(clock() * 1000)
        yield Look(at, tuple(_watched(job, at, *before.get(job.id, (0, None))) for job in jobs), failure)
        if failure is None:
            before = {job.id: (at, job.events_sent) for job in jobs}
        if deadline is not None and time.monotonic() + interval > deadline:
            return
        time.sleep(interval)


def _watched(job: Job, at: int, then: int, sent: int | None) -> Watched:
    rate = lag = None
    if sent is not None and job.events_sent is not None and at > then:
        rate = round((job.events_sent - sent) * 1000 / (at - then), 1)
    if job.status == "RUNNING" and job.last_datetime:
        lag = round((at - job.last_datetime) / 1000, 1)
    return Watched(job, rate, lag)
