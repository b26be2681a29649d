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
    """A job at one moment, with its rate in events per second and its lag in seconds.

    The rate is the average since the previous reading; None at the first reading. The rate counts the field
    `eventsSent`. If the service states this field only for completed jobs, the rate counts `eventGenerated`. The lag is
    None for a job that is not running. `short` is the shortened ID, which is different for each job.
    """

    job: Job
    rate: float | None
    lag: float | None
    short: str


def at_moment(jobs: Iterable[Job], at: int, size: int) -> tuple[Watched, ...]:
    """Return the jobs at one moment, without rates.

    `at` is the moment in epoch milliseconds. `size` is the number of characters of the shortened IDs.
    """
    return tuple(_watched(job, at, size, 0, None) for job in jobs)


def failing_first(jobs: Iterable[Watched]) -> list[Watched]:
    """Return the jobs with an error, followed by all other jobs. Both groups keep their order."""
    return sorted(jobs, key=lambda watched: not watched.job.error)


class Look(NamedTuple):
    """The watched jobs at the moment `at`, in epoch milliseconds.

    `failure` is the reason why the service did not answer at that moment; None if the service answered.
    """

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
    """Read the jobs every `interval` seconds, and yield the named jobs after each reading.

    `ids` are texts that name jobs, as in `choose`. If `ids` is empty, all jobs are yielded. `seconds` is the maximum
    time between the first and the last reading; None if the readings never end. `read` returns all jobs. While the
    service does not answer, the last known jobs are yielded. Raises NotFound if the service does not list a named job.
    Raises Unavailable if the service does not answer at the last reading.
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
    """Return the IDs of the named jobs. Raises NotFound for a job that is not in the list."""
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
    """Return the number of events that a job sent between two readings; None if the number is unknown.

    If a reading has no `eventsSent`, the result is the number of events that the job generated.
    """
    for then, now in ((before.events_sent, after.events_sent), (before.event_generated, after.event_generated)):
        if then is not None and now is not None:
            return now - then
    return None
