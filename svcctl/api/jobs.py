"""Jobs: which one is meant by an ID, its beginning or its friendly name; and jobs over time, from launch to end.

An operation of the service is a method of the client; this file asks again until something has happened.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from svcctl.api.models import Job, JobStatus, status_text
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import Conflict, MalformedAnswer, NotFound, ServiceError, SvcctlError, Unavailable, UsageError
from svcctl.words import counted, did_you_mean, some

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.api.query import QueryRequest

POLL_SECONDS = 0.5


def launch(client: Client, request: QueryRequest, note: Callable[[str], None]) -> Job:
    """Launch a query as a job and read the job back; if it cannot be read, note why and return only its ID."""
    job_id = client.launch(request)
    try:
        return client.job(job_id)
    except SvcctlError as error:
        note(f"the job is launched, but {error.message}")
        return Job(job_id, "")


def wait_for(
    client: Client,
    job_id: str,
    wanted: Collection[str],
    deadline: float | None,
    *,
    seen: Callable[[Job], None] | None = None,
) -> Job:
    """The job once it is in a wanted state and without errors; `deadline` is a reading of time.monotonic.

    Conflict or ServiceError as soon as the job cannot reach such a state by itself. With a deadline, a service that
    does not answer is asked again; Unavailable when the deadline has passed. `seen` gets the job before each pause, and
    may raise.
    """
    while True:
        state = f"unknown, not {' or '.join(sorted(wanted))}"
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
            if job.status in wanted and not job.error:
                return job
            _check_hope(job, wanted)
            if seen:
                seen(job)
            state = _unlike(job, wanted)
        if deadline is not None and time.monotonic() >= deadline:
            raise Unavailable(f"job {job_id} is {state}, and the time is up")
        pause = POLL_SECONDS if deadline is None else min(POLL_SECONDS, max(0.0, deadline - time.monotonic()))
        time.sleep(pause)


def _unlike(job: Job, wanted: Collection[str]) -> str:
    """How the state of a job differs from the wanted ones."""
    state = status_text(job)
    if state in wanted:
        return f"{state} but reports: {job.reason}"
    return f"{state}{f' ({job.reason})' if job.error else ''}, not {' or '.join(sorted(wanted))}"


def progress(job: Job, wanted: Collection[str]) -> str:
    """What a job that is waited for has done so far, in a line."""
    sent, generated = job.events_sent, job.event_generated
    if sent is None and generated is not None:
        events = f"{generated} events generated"
    else:
        events = f"{sent or 0} of {'…' if generated is None else generated} events"
    facts = [status_text(job), events]
    facts += [f"error: {job.reason}"] if job.error else []
    return f"waiting for {' or '.join(sorted(wanted))}: {', '.join(facts)}"


def _check_hope(job: Job, wanted: Collection[str]) -> None:
    """Raise unless a job that is not in a wanted state can still reach one by itself."""
    resting = job.status in ("COMPLETED", "STOPPED")
    if resting and job.error:
        raise ServiceError(f"job {job.id} is {job.status} with an error: {job.reason}")
    others = {"COMPLETED": {"REMOVED"}, "STOPPED": set(wanted) - {"COMPLETED", "STOPPED"}}
    if resting and not others[job.status] & set(wanted):
        can_start = f"it can be started again; 'svcctl job show {job.id}' shows how far it has read"
        raise Conflict(
            f"job {job.id} is {job.status}: it does not become {' or '.join(sorted(wanted))} by itself",
            hint=can_start if job.status == "STOPPED" else None,
        )


# Changed


def restart(client: Client, job_id: str, note: Callable[[str], None], leave: Callable[[str], None]) -> Job:
    """Stop a job and start it again; the error that it had is noted, because a start clears it.

    A stopped job is started, and a completed one stays as it is: `leave` gets the reason.
    """
    job = client.job(job_id)
    if job.error:
        note(f"job {job_id} was {status_text(job)} with the error: {job.reason}")
    if job.status not in (JobStatus.STOPPED, JobStatus.COMPLETED):
        try:
            job = client.stop_job(job_id)
        except Conflict:
            job = client.job(job_id)
            if job.status not in (JobStatus.STOPPED, JobStatus.COMPLETED):  # it has not stopped by itself meanwhile
                raise
    if job.status == JobStatus.COMPLETED:
        leave(f"job {job_id} is COMPLETED")
        return job
    try:
        return client.start_job(job_id)
    except SvcctlError as error:
        error.add_note(f"it is stopped now; start it with 'svcctl job start {job_id}'")
        raise


@dataclass(frozen=True, slots=True)
class Watched:
    """A job at one moment: its rate in events per second since the moment before, and its lag in seconds behind now.

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
            raise NotFound(f"no job {job_id}", hint=hint(job_id, jobs))
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


SHORTEST = 8
"""How many characters of an ID lists show, unless two IDs begin alike."""
ENOUGH = 4
"""How many characters of an ID a command needs to change the job."""

_HASHED = re.compile(r"(.+)\.([0-9a-f]{8})", re.DOTALL)
_WHOLE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The IDs of the jobs that a user named; `jobs` lists all jobs, and requests them once at most."""

    ids: Sequence[str]
    jobs: Callable[[], Sequence[Job]]

    def hint(self, text: str) -> str:
        """The hint for a text that matches no job; MalformedAnswer if the service answers without a list."""
        return hint(text, () if is_whole(text) else self.jobs())

    def short(self, job_id: str) -> int:
        """How many characters of an ID to show; for a whole ID, all jobs are not requested just to find that out."""
        return SHORTEST if is_whole(job_id) else shortest(job.id for job in self.listed())

    def listed(self) -> Sequence[Job]:
        """The jobs that the service lists; none if it answers without a list."""
        return _any_listed(self.jobs)


def choose(given: Iterable[str], jobs: Callable[[], Sequence[Job]], *, changes: bool = False) -> Chosen:
    """The jobs that the given texts name. UsageError as in `resolved`.

    If the service answers without a list, each text is an ID, which the service knows or refuses.
    """
    jobs = cache(jobs)
    return Chosen(resolved(given, lambda: _any_listed(jobs), changes=changes), jobs)


def _any_listed(jobs: Callable[[], Sequence[Job]]) -> Sequence[Job]:
    try:
        return jobs()
    except MalformedAnswer:
        return ()


def split_name(name: str) -> tuple[str, str | None]:
    """A friendly name without the hash that `svcctl job apply` adds, and the hash."""
    found = _HASHED.fullmatch(name)
    return (found[1], found[2]) if found else (name, None)


def is_whole(text: str) -> bool:
    """Whether a text has the form of the interface's IDs, a UUID."""
    return _WHOLE.fullmatch(text) is not None


def resolved(given: Iterable[str], jobs: Callable[[], Iterable[Job]], *, changes: bool = False) -> list[str]:
    """The IDs of the jobs that the given texts name, each once.

    UsageError when a text matches several jobs, or, for a command that `changes` the jobs, when it is less than ENOUGH
    characters of an ID.

    `jobs` lists all jobs. A text that matches none of them stays as it is, for the service to refuse: services need not
    list all jobs, and their IDs need not be UUIDs.
    """
    return list(dict.fromkeys(text if is_whole(text) else _resolved(text, list(jobs()), changes) for text in given))


def _resolved(text: str, jobs: Sequence[Job], changes: bool) -> str:
    if any(job.id == text for job in jobs):
        return text
    called = [job for job in jobs if (name := job.friendly_name) and text in (name, split_name(name)[0])]
    begin = [job for job in jobs if text and job.id.lower().startswith(text.lower())]
    meant = called or begin  # a name stays the name of its job whatever IDs other jobs get
    if len(meant) > 1:
        raise _ambiguous(text, meant, called=bool(called))
    if changes and meant and not called and len(text) < ENOUGH:
        raise UsageError(
            f"'{text}' is too short for a command that changes a job: {_listed(begin)}",
            hint=f"give at least {ENOUGH} characters, or the ID: {begin[0].id}",
        )
    return meant[0].id if meant else text


def _ambiguous(text: str, jobs: Sequence[Job], *, called: bool) -> UsageError:
    if called:
        return UsageError(
            f"{len(jobs)} jobs are named '{text}': {_listed(jobs, status_text)}", hint="give the ID of one"
        )
    return UsageError(f"{len(jobs)} job IDs begin with '{text}': {_listed(jobs)}", hint="give more of the ID")


def namesakes(job: Job, jobs: Iterable[Job]) -> str | None:
    """A sentence about other jobs with this job's name, which then identifies none of them; None if there are none."""
    others = [other for other in jobs if other.friendly_name == job.friendly_name and other.id != job.id]
    if not others or not job.friendly_name:
        return None
    which = counted(len(others), "other job is", "other jobs are")
    return f"{which} named '{job.friendly_name}': {_listed(others, status_text)}; commands need the ID"


def _listed(jobs: Sequence[Job], about: Callable[[Job], str | None] = attrgetter("friendly_name")) -> str:
    size = shortest(job.id for job in jobs)
    return some([" ".join(filter(None, (job.id[:size], about(job)))) for job in jobs])


def hint(text: str, jobs: Iterable[Job] = ()) -> str:
    """The hint for a text that matches no job."""
    names = (split_name(job.friendly_name)[0] for job in jobs if job.friendly_name)
    return did_you_mean(text, names) or "list the jobs with 'svcctl job list'"


def shortest(ids: Iterable[str]) -> int:
    """How many characters tell these IDs apart, at least SHORTEST."""
    ordered = sorted({one.lower() for one in ids})
    return max([SHORTEST, *(_alike(one, other) + 1 for one, other in pairwise(ordered))])


def _alike(one: str, other: str) -> int:
    """The number of characters with which two texts begin alike."""
    at = 0
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
