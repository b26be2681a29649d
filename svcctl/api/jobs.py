"""Operations on jobs that need several requests: launch a job and read it, wait for a state, and restart a job.

Operations that need only one request are methods of the client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from svcctl.api.models import Job, JobStatus, status_text
from svcctl.errors import Conflict, NotFound, ServiceError, SvcctlError, Unavailable

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.api.query import QueryRequest

POLL_SECONDS = 0.5


def launch(client: Client, request: QueryRequest, note: Callable[[str], None]) -> Job:
    """Launch a query as a job, and return the job.

    If the job cannot be read, `note` is called with the reason, and the result is a Job with only the ID.
    """
    job_id = client.launch(request)
    try:
        return client.job(job_id)
    except SvcctlError as error:
        note(f"the job is launched, but {error.message}")
        return Job(job_id, "")


def wait_for(
    client: Client,
    job_id: str,
    states: Collection[str],
    deadline: float | None,
    *,
    seen: Callable[[Job], None] | None = None,
) -> Job:
    """Wait until a job is in one of `states` and has no error, and return the job.

    `deadline` is a time on the clock time.monotonic. With a deadline, requests without an answer are repeated until the
    deadline. Raises Unavailable after the deadline. Raises Conflict or ServiceError as soon as the job can no longer
    reach one of `states` by itself. `seen` is called with the job before each pause between requests, and may
    raise an error.
    """
    while True:
        state = f"unknown, not {' or '.join(sorted(states))}"
        try:
            job = client.job(job_id)
        except NotFound:
            if "REMOVED" in states:
                return Job(job_id, "REMOVED")
            raise
        except Unavailable:
            if deadline is None:
                raise
        else:
            if job.status in states and not job.error:
                return job
            _check_hope(job, states)
            if seen:
                seen(job)
            state = _unlike(job, states)
        if deadline is not None and time.monotonic() >= deadline:
            raise Unavailable(f"job {job_id} is {state}, and the time is up")
        pause = POLL_SECONDS if deadline is None else min(POLL_SECONDS, max(0.0, deadline - time.monotonic()))
        time.sleep(pause)


def _unlike(job: Job, states: Collection[str]) -> str:
    """Describe the difference between the state of a job and the wanted states."""
    state = status_text(job)
    if state in states:
        return f"{state} but reports: {job.reason}"
    return f"{state}{f' ({job.reason})' if job.error else ''}, not {' or '.join(sorted(states))}"


def progress(job: Job, states: Collection[str]) -> str:
    """Describe the progress of a job in one line, for a command that waits for a wanted state."""
    sent, generated = job.events_sent, job.event_generated
    if sent is None and generated is not None:
        events = f"{generated} events generated"
    else:
        events = f"{sent or 0} of {'…' if generated is None else generated} events"
    facts = [status_text(job), events]
    facts += [f"error: {job.reason}"] if job.error else []
    return f"waiting for {' or '.join(sorted(states))}: {', '.join(facts)}"


def _check_hope(job: Job, states: Collection[str]) -> None:
    """Raise Conflict or ServiceError if a job can no longer reach a wanted state by itself."""
    resting = job.status in ("COMPLETED", "STOPPED")
    if resting and job.error:
        raise ServiceError(f"job {job.id} is {job.status} with an error: {job.reason}")
    others = {"COMPLETED": {"REMOVED"}, "STOPPED": set(states) - {"COMPLETED", "STOPPED"}}
    if resting and not others[job.status] & set(states):
        raise Conflict(
            f"job {job.id} is {job.status}: it does not become {' or '.join(sorted(states))} by itself",
            hint="it can be started again" if job.status == "STOPPED" else None,
            reason="job-rests",
            data={"job": job.id},
        )


class Changed(NamedTuple):
    """A job after an operation.

    `left` is the reason why the operation did not change the job; None if the operation changed the job.
    """

    job: Job
    left: str | None = None


def restart(client: Client, job_id: str, note: Callable[[str], None]) -> Changed:
    """Stop a job and start it again. `note` is called with the job's error, because a start clears the error.

    A job that is already stopped is only started. A completed job is not changed.
    """
    job = client.job(job_id)
    if job.error:
        note(f"job {job_id} was {status_text(job)} with the error: {job.reason}")
    if job.status not in (JobStatus.STOPPED, JobStatus.COMPLETED):
        try:
            job = client.stop_job(job_id)
        except Conflict:
            job = client.job(job_id)
            if job.status not in (
                JobStatus.STOPPED,
                JobStatus.COMPLETED,
            ):  # the job did not stop by itself meanwhile
                raise
    if job.status == JobStatus.COMPLETED:
        return Changed(job, f"job {job_id} is COMPLETED")
    try:
        return Changed(client.start_job(job_id))
    except SvcctlError as error:
        error.add_note("it is stopped now")
        error.reason, error.data = "job-left-stopped", {"job": job_id}
        raise
