"""Jobs at moments: their rate and lag, and one look at all jobs after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from svcctl.api.job_names import hint, resolved, shortest
from svcctl.api.models import Job, JobStatus
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import NotFound, Unavailable


class Watched(NamedTuple):
    """A job at one moment: its rate in events per second since the moment before, and its lag in seconds.

    The rate is that of eventsSent; where a service sends it only when the job is complete, of eventGenerated. Both are
    None where they are not known: at the first look, and for a job that does not run. `short` is the beginning
    of the ID that tells it from the IDs of all jobs.
    """

    job: Job
    rate: float | None
    lag: float | None
    short: str


def at_moment(jobs: Iterable[Job], at: int, size: int) -> tuple[Watched, ...]:
    """Jobs at a moment in epoch milliseconds; `size` is the length of their short IDs."""
    return tuple(_watched(job, at, size, 0, None) for job in jobs)


def failing_first(jobs: Iterable[Watched]) -> list[Watched]:
    """Jobs with an error before the others, otherwise in their order."""
    return sorted(jobs, key=lambda one: not one.job.error)


class Look(NamedTuple):
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
    """A look every `interval` seconds at the named jobs, or at all if none is named, for `seconds` from the first look.

    `read` lists all jobs. While the service does not answer, the jobs are as they were seen last. A job is named as
    `choose` takes it; NotFound when the service does not list it.
    """
    deadline: float | None = None
    everything: tuple[Job, ...] = ()
    named: Collection[str] | None = None
    before: dict[str, tuple[int, Job]] = {}
    while True:
        failure = None
        try:
            everything = tuple(read())
        except Unavailable as error:
            failure = error.message
        else:
            named = _named(ids, everything) if named is None else named
        if deadline is None and seconds is not None:
            deadline = time.monotonic() + seconds
        at = seconds_to_ms(clock())
        jobs = [job for job in everything if not ids or job.id in (named or ())]
        size = shortest(job.id for job in everything)
        yield Look(at, tuple(_watched(job, at, size, *before.get(job.id, (0, None))) for job in jobs), failure)
        if failure is None:
            before = {job.id: (at, job) for job in jobs}
        if deadline is not None and time.monotonic() + interval > deadline:
            return
        time.sleep(interval)


def _named(ids: Collection[str], jobs: Collection[Job]) -> Collection[str]:
    """The IDs of the named jobs, all of which are in the list."""
    named = resolved(ids, lambda: jobs)
    listed = {job.id for job in jobs}
    for job_id in named:
        if job_id not in listed:
            near = hint(job_id, jobs)
            raise NotFound(f"no job {job_id}", hint=near, reason=None if near else "unlisted-job")
    return named


def _watched(job: Job, at: int, size: int, then: int, before: Job | None) -> Watched:
    rate = lag = None
    events = None if before is None else _growth(before, job)
    if events is not None and at > then:
        rate = round(events * 1000 / (at - then), 1)
    if job.status == JobStatus.RUNNING and job.last_datetime:
        accepted = job.extra.get("acceptedUntil")
        lag = round((at - max(job.last_datetime, accepted if isinstance(accepted, int) else 0)) / 1000, 1)
    return Watched(job, rate, lag, job.id[:size])


def _growth(before: Job, after: Job) -> int | None:
    """How many events a job has sent between two looks; how many it has generated if one of them has no eventsSent."""
    for then, now in ((before.events_sent, after.events_sent), (before.event_generated, after.event_generated)):
        if then is not None and now is not None:
            return now - then
    return None
