"""Jobs over time: read all jobs repeatedly, and compute the rate and the lag of each job."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from svcctl.api.job_names import hint, resolved, shortest
from svcctl.api.models import Job, JobStatus
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import NotFound, Unavailable


class Watched(NamedTuple):
    """A job at one moment: its rate in events per second since the previous look, and its lag in seconds.

    The rate counts eventsSent, or eventGenerated if the service sends eventsSent only for a complete job. The rate is
    None at the first look. The lag is None for a job that does not run. `short` is the shortened ID; no two jobs have
    the same one.
    """

    job: Job
    rate: float | None
    lag: float | None
    short: str


def at_moment(jobs: Iterable[Job], at: int, size: int) -> tuple[Watched, ...]:
    """Return the jobs at one moment, without rates.

    `at` is in epoch milliseconds; `size` is the number of characters of the short IDs.
    """
    return tuple(_watched(job, at, size, 0, None) for job in jobs)


def failing_first(jobs: Iterable[Watched]) -> list[Watched]:
    """Return the jobs with an error, then all other jobs; both keep their order."""
    return sorted(jobs, key=lambda watched: not watched.job.error)


class Look(NamedTuple):
    """The watched jobs at one moment, in epoch milliseconds; `failure` says why the service did not answer."""

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
    """Look at the jobs that `ids` name, or at all jobs if `ids` is empty, every `interval` seconds.

    The looks end `seconds` after the first one. `read` lists all jobs. While the service does not answer, the last
    known jobs are repeated. `ids` are texts as for `choose`; NotFound when the service does not list a named job.
    Unavailable if the service does not answer at the last look.
    """
    deadline: float | None = None
    everything: tuple[Job, ...] = ()
    named: Collection[str] | None = None
    before: dict[str, tuple[int, Job]] = {}
    while True:
        failure: Unavailable | None = None
        try:
            everything = tuple(read())
        except Unavailable as error:
            failure = error
        else:
            named = _named(ids, everything) if named is None else named
        if deadline is None and seconds is not None:
            deadline = time.monotonic() + seconds
        at = seconds_to_ms(clock())
        jobs = [job for job in everything if not ids or job.id in (named or ())]
        size = shortest(job.id for job in everything)
        watched = tuple(_watched(job, at, size, *before.get(job.id, (0, None))) for job in jobs)
        yield Look(at, watched, None if failure is None else failure.message)
        if failure is None:
            before = {job.id: (at, job) for job in jobs}
        if deadline is not None and time.monotonic() + interval > deadline:
            if failure is not None:
                raise failure
            return
        time.sleep(interval)


def _named(ids: Collection[str], jobs: Collection[Job]) -> Collection[str]:
    """Return the IDs of the named jobs. NotFound for a job that is not in the list."""
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
    """Return the number of events that a job sent between two looks; None if it is unknown.

    If a look has no eventsSent, the events that the job generated are counted instead.
    """
    for then, now in ((before.events_sent, after.events_sent), (before.event_generated, after.event_generated)):
        if then is not None and now is not None:
            return now - then
    return None
