"""The job operations of the interface, the statuses of jobs, and the threads that run jobs in this process.

A job is a query with a destination, to which the rows are delivered. The module `delivery` delivers the rows.

    launch ──> RUNNING ── stop ──> STOPPED      RUNNING ── all is delivered ──> COMPLETED
                  ^── start ─────────┘          any ── remove ──> REMOVED, then unknown

The interface does not define the following cases. This service handles them in this way:
- A request to stop a STOPPED job is refused with code 108.
- A request to start a RUNNING job is refused with code 101.
- A request to start or launch a job is also refused with code 101 if too many jobs run. The limits are MOST_RUNNING
  jobs of the domain and MOST_IN_TOTAL jobs of all domains.
- A request to stop or start a COMPLETED job changes nothing and returns the job.
- If several requests to stop, start or remove a job arrive at the same moment, one succeeds and the others are refused.
  The answer to a request shows the status that this request caused, even if another request has changed the job since.
- A removed job is deleted with its parameters, except if the check of another job needs the removed job. Later
  requests for the removed job are refused with code 100, like requests for a job that never existed or belongs to
  another domain.
- A job that is stopped or removed first delivers the rows that it has read so far. If the destination does not accept
  these rows within WAIT_SECONDS, the thread of the job is fenced, so it can no longer commit or save. The answer then
  has the progress from which a restarted job continues. A restarted job waits until the fenced thread has ended.
- The jobs of a disabled or pending domain do not run. These jobs keep their status, so the RUNNING jobs continue when
  the domain is enabled. The jobs of a deleted domain are deleted with the domain.
- If the query of a job fails, the job stops and has the reason in `error`.
- While the destination of a job is down, the job retries, and has the reason in `error`. A successful retry clears
  `error`. If the job is stopped before a retry succeeds, the reason stays in `error` until the job is started.
- A job stays RUNNING while the database cannot be written (no space, read-only, locked, unreachable). The reason is in
  `error`, and is only in memory until it can be saved.
- If the thread of a RUNNING job has died, `settle` starts another thread.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import string
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from svcctl.api import destinations, models
from svcctl.api.models import JobStatus
from svcctl.dates.epochs import seconds_to_ms, to_ms
from svcctl.errors import Conflict, NotFound, SvcctlError
from svcctl.service.accounts.accounts import Account, Owner
from svcctl.service.jobs import job_table, leases
from svcctl.service.jobs.checkpoint import StoredQuery
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.runner import WAITING_SECONDS, Deliver, JobRun, Runner
from svcctl.service.settings import RUNNING_JOBS, TOTAL_JOBS
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.store import Store
from svcctl.words import is_secret, json_text, mask_urls

UNKNOWN, UNCHANGEABLE, NOT_RUNNING = 100, 101, 108
CODES = (UNKNOWN, UNCHANGEABLE, NOT_RUNNING)
"""The error codes of refused operations on jobs."""

MOST_RUNNING, MOST_IN_TOTAL = int(RUNNING_JOBS.default_value), int(TOTAL_JOBS.default_value)
"""The maximum number of running jobs: MOST_RUNNING for each domain or reseller, MOST_IN_TOTAL for all together."""
WAIT_SECONDS = 0.5
"""The maximum number of seconds that an operation waits for the destination.

Rows that the destination has not accepted within this time are delivered after a restart of the job.
"""
ELSEWHERE_SECONDS = 1.5
"""The maximum number of seconds that an operation waits for another process that runs the job."""
CLOSE_SECONDS = 10.0
"""The maximum number of seconds that a stopping service waits for the destinations."""

_log = logging.getLogger("svcctl.service")


Follow = Callable[[StoredJob, StoredJob], StoredJob]
"""A function that makes a new job begin where an old job stopped.

The arguments are the old job and the new job. The function returns the changed copy of the new job.
"""


class Jobs:
    """The job operations, and the threads of the jobs that this process runs.

    The process runs each job that it has leased and that must run (see `job_table.DUE`). An operation changes the
    database, and then calls `settle`, which starts and ends threads. If the database fails only during `settle`, the
    operation has succeeded, and a later call of `settle` starts and ends the threads.

    `place` is the identifier of this service, if the service has events that no other service has. Jobs that read these
    events run only in this service.
    """

    def __init__(
        self,
        store: Store,
        deliver: Deliver,
        *,
        share: int = MOST_RUNNING,
        total: int = MOST_IN_TOTAL,
        place: str | None = None,
        term: leases.Term = leases.TERM,
        waiting: float = WAITING_SECONDS,
    ) -> None:
        self._store = store
        self._term = term
        self._place = place
        self._holder = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._renewed = 0.0
        self._trouble: tuple[str, ...] = ()
        self._troubled_since: int | None = None
        """The moment, in epoch milliseconds, at which `settle` most recently began to fail.

        The reason is in `_trouble`.
        """
        self._runner = Runner(deliver, waiting)
        self._share = share
        self._total = total
        self.runs: dict[str, JobRun] = {}
        """The runs in this process, by the IDs of their jobs. Runs that are about to end are included."""
        self._lock = threading.RLock()
        self._closed = False

    def settle(self) -> None:
        """Start and end threads, so that this process runs exactly the jobs that it must run.

        Threads that must end get WAIT_SECONDS to end by themselves. A thread that takes longer is fenced, so it can no
        longer save. Raises StateUnavailable if the database cannot be read or written. The caller must then call
        `settle` again.
        """
        try:
            self._settle()
        except StateUnavailable as error:
            if not self._trouble:
                self._troubled_since = seconds_to_ms(time.time())
            self._trouble = (error.message,)
            raise
        self._trouble = ()

    def _settle(self) -> None:
        ending: list[JobRun] = []
        try:
            with self._lock:
                if self._closed:
                    return
                due = job_table.due(self._store)
                for run in list(self.runs.values()):
                    if not run.thread.is_alive():
                        _log.error("job %s: its thread is gone; a job that is RUNNING gets another one", run.job_id)
                        self._give_back(run)
                    elif run.job_id in due and due[run.job_id].fence != run.token and not run.fenced:
                        run.lose()
                ending = [run for job_id, run in self.runs.items() if job_id not in due]
                alive = {run.job_id for run in self.runs.values() if not run.stopping.is_set()}
                if any(job.free and job_id not in alive for job_id, job in due.items()):
                    for job in leases.claim(self._store, self._holder, self._place, alive, self._term.seconds):
                        self._start(job)
        finally:
            for run in ending:
                run.stop()  # again if the run was stopped before, because the engine may have missed the interrupt
            _wait([run for run in ending if not run.fenced], WAIT_SECONDS)

    def renew(self) -> None:
        """Renew the leases of the jobs that this process runs, so that no other process takes over these jobs."""
        now = time.monotonic()
        with self._lock:
            runs = [run for run in self.runs.values() if not run.fenced]
        if not (self._store.shared and runs) or now - self._renewed < self._term.renewal:
            return
        figures = [(run.job_id, run.token, run.generated, run.reached, run.accepted) for run in runs]
        try:
            renewals = leases.renew(self._store, self._holder, figures, self._term.seconds)
        except StateUnavailable as error:
            for run in runs:
                run.wait_for(error)
            raise
        self._renewed = now
        for run in runs:
            if (run.job_id, run.token) in renewals:
                run.until = now + self._term.seconds - self._term.margin
            elif not run.ended.is_set():
                run.lose()

    def close(self) -> None:
        """End all threads. The jobs stay RUNNING, so they continue when the service is started again."""
        with self._lock:
            self._closed = True
            runs = list(self.runs.values())
        for run in runs:
            run.stop()
        with suppress(StateUnavailable):
            _wait(runs, CLOSE_SECONDS)

    def launch(
        self,
        account: Account,
        *,
        type: str,
        request: StoredQuery,
        params: Mapping[str, Any],
        everywhere: bool = True,
        follow: Follow | None = None,
    ) -> models.Job:
        """Store a new job and run it.

        `everywhere` is true if every process has the events that the job reads. Then any process may run the job. If
        the new job continues an old job, the old job is stopped in the transaction that stores the new job. The
        function `follow` makes the new job begin where the old job stopped. Without `follow`, the new job begins at the
        start of its query's range.
        """
        name = params.get("friendlyName") or f"{type}_{''.join(secrets.choice(_LETTERS) for _ in range(8))}"
        job = StoredJob(
            id=str(uuid.uuid4()),
            owner=account.owner,
            status=JobStatus.RUNNING,
            type=type,
            friendly_name=json_text(name),
            query=request.asked.query,
            request=request,
            params=params,
            place=self._place if self._store.shared and not everywhere else None,
        )
        if job.continues is None:
            job_table.add(self._store, job, partial(self._need_room, account))
        else:
            job = self._continue(account, job.continues, job, follow)
        with suppress(StateUnavailable):
            self.settle()
        return self._shown(job)

    def _continue(self, account: Account, before: str, job: StoredJob, follow: Follow | None) -> StoredJob:
        takes_place = self.owned(account, before).status is JobStatus.RUNNING
        room = None if takes_place else partial(self._need_room, account)
        self._check_last(account, before)
        if (run := self.runs.get(before)) is not None:  # a stopped run saves its progress before it ends
            run.stop()
            run.ended.wait(WAIT_SECONDS)

        def following(stopped: StoredJob) -> StoredJob:
            self._check_last(account, before)  # again, since another request may have come first
            return job if follow is None else follow(stopped, job)

        try:
            return job_table.succeed(self._store, before, following, room)
        except SvcctlError:
            with suppress(StateUnavailable):
                self.settle()  # runs the old job again
            raise

    def _check_last(self, account: Account, job_id: str) -> None:
        """Raise Conflict if another job already continues this job. Two such jobs would deliver the same events."""
        if (job := job_table.successor(self._store, account.owner, job_id)) is not None:
            raise Conflict(
                f"job {job_id} is continued by job {job.id}",
                code=UNCHANGEABLE,
                hint=f"remove job {job.id} first",
                reason="job-continued",
                data={"job": job_id, "by": job.id},
            )

    def listed(self, account: Account) -> list[models.Job]:
        """List the jobs of the account's domain or reseller, the oldest first."""
        return [self._shown(job) for job in job_table.owned(self._store, account.owner)]

    def every(self) -> list[models.Job]:
        """List the jobs of all domains and resellers."""
        return [self._shown(job) for job in job_table.every(self._store)]

    def get(self, account: Account, job_id: str) -> models.Job:
        return self._shown(self.owned(account, job_id))

    def reached(self, job: StoredJob) -> int:
        """Return the date, in epoch milliseconds, up to which a job has read and delivered all events."""
        run = self.runs.get(job.id)
        return job.reached if run is None else run.reached

    def stop(self, account: Account, job_id: str) -> models.Job:
        self.owned(account, job_id)
        job, stopped = self._moved(job_id, JobStatus.RUNNING, JobStatus.STOPPED)
        if not stopped:
            if job.status is JobStatus.COMPLETED:
                return self._shown(job)
            raise Conflict(
                f"job {job_id} is {job.status}: only a running job can be stopped",
                code=NOT_RUNNING,
                reason="job-not-running",
                data={"job": job_id, "status": job.status},
            )
        with suppress(StateUnavailable):
            self._end(job_id)
        # Another request may have started or removed the job since, but the answer has the status of this request.
        return self._shown(replace(job_table.get(self._store, job_id) or job, status=JobStatus.STOPPED))

    def start(self, account: Account, job_id: str) -> models.Job:
        self.owned(account, job_id)

        def may_start(running: Sequence[Owner]) -> None:
            self._check_last(account, job_id)
            self._need_room(account, running)

        job, started = self._moved(job_id, JobStatus.STOPPED, JobStatus.RUNNING, may_start)
        if job.status is JobStatus.RUNNING and not started:
            raise Conflict(
                f"job {job_id} is already running", code=UNCHANGEABLE, reason="job-running", data={"job": job_id}
            )
        if not started:
            return self._shown(job)
        with suppress(StateUnavailable):
            self.settle()
        now = job_table.get(self._store, job_id)
        return self._shown(now if now is not None and now.status is JobStatus.RUNNING else job)

    def remove(self, account: Account, job_id: str) -> models.Job:
        self.owned(account, job_id)
        self._moved(job_id, JobStatus.RUNNING, JobStatus.STOPPED)
        with suppress(StateUnavailable):
            self._end(job_id)
        removed = job_table.remove(self._store, job_id)
        if removed is None:
            raise _unknown(job_id)
        with suppress(StateUnavailable):
            self.settle()  # the job may have been started again in the meantime
        return self._shown(replace(removed, status=JobStatus.REMOVED))

    def _moved(
        self, job_id: str, before: JobStatus, after: JobStatus, room: job_table.Room | None = None
    ) -> tuple[StoredJob, bool]:
        """Change the status of a job from `before` to `after`.

        Return the job, and whether this call changed the status. Raises NotFound if the job does not exist.
        """
        job, moved = job_table.move(self._store, job_id, before, after, room)
        if job is None:
            raise _unknown(job_id)
        return job, moved

    def _end(self, job_id: str) -> None:
        """Wait until no process runs a stopped job. If a process needs too long, end its lease of the job."""
        self.settle()
        until = time.monotonic() + ELSEWHERE_SECONDS
        while self._store.shared and (job := job_table.get(self._store, job_id)) is not None:
            if job.status is JobStatus.RUNNING:  # another request has started the job again
                return
            if job.free or time.monotonic() >= until:  # a process that wakes up could renew an ended lease
                leases.revoke(self._store, job_id, job.fence)
                return
            time.sleep(0.05)

    def _need_room(self, account: Account, running: Sequence[Owner]) -> None:
        if (own := running.count(account.owner)) >= self._share:
            raise Conflict(
                f"no more jobs can run in this domain: {own} are running, and the limit is {self._share}",
                code=UNCHANGEABLE,
                hint="stop or remove one",
                reason="too-many-jobs",
                data={"running": own, "limit": self._share, "setting": RUNNING_JOBS.name},
            )
        if len(running) >= self._total:
            raise Conflict(
                f"the service already runs {len(running)} jobs of all its domains, which is the maximum",
                code=UNCHANGEABLE,
                hint="try again when some of them have ended",
                reason="service-busy",
            )

    def owned(self, account: Account, job_id: str) -> StoredJob:
        """Return the stored job with this ID. Raises NotFound if the account has no such job."""
        job = job_table.get(self._store, job_id)
        if job is None or job.owner != account.owner:
            raise _unknown(job_id)
        return job

    def _shown(self, job: StoredJob) -> models.Job:
        """Return a job as the HTTP interface shows it.

        While a job runs, `event_generated` includes rows that are not yet delivered, and `last_datetime` advances even
        if no event matches the query.
        """
        run = self.runs.get(job.id)
        live = run if run is not None and job.status is JobStatus.RUNNING and run.token == job.fence else None
        error, since = job.error, job.failing_since
        if live is not None and live.error is not None:
            error, since = live.error, since or live.failing_since
        elif live is None and job.status is JobStatus.RUNNING and job.free and self._trouble:
            error, since = self._trouble, since or self._troubled_since
        # If another process runs the job, that process stored the figures when it last renewed its lease.
        figures = live or (job if job.status is JobStatus.RUNNING and not job.free else None)
        return models.Job(
            id=job.id,
            status=job.status,
            type=job.type,
            friendly_name=job.friendly_name,
            event_generated=max(job.progress.sent, figures.generated if figures else 0),
            events_sent=job.progress.sent,
            last_datetime=max(job.progress.last_datetime, figures.reached if figures else 0),
            query=job.query,
            error=error,
            extra=_history(
                job,
                late=live.late if live else None,
                accepted=figures.accepted if figures else 0,
                runs=figures is not None,
                failing_since=since if error else None,
            ),
        )

    def _start(self, job: StoredJob) -> None:
        before = self.runs.get(job.id) or self.runs.get(job.continues or "")
        run = self.runs[job.id] = JobRun(job.id, self._store, job.fence, generated=job.progress.sent)
        if self._store.shared:
            _log.info("job %s: this process runs it, by its lease %d", job.id, job.fence)
            run.until = time.monotonic() + self._term.seconds - self._term.margin
        name = f"job-{job.id[:8]}"
        run.thread = threading.Thread(target=self._work, args=(run, before), name=name, daemon=True)
        run.thread.start()

    def _work(self, run: JobRun, before: JobRun | None) -> None:
        try:
            self._runner.work(run, before)
            self._give_back(run)
        finally:
            run.ended.set()

    def _give_back(self, run: JobRun) -> None:
        """Delete an ended run from the dictionary `runs`, and give back the lease of the run.

        If the database is unavailable, the lease is not given back. A lease in a shared database then ends by itself.
        """
        try:
            with suppress(StateUnavailable):
                leases.release(self._store, run.job_id, run.token)
        finally:
            with self._lock:
                if self.runs.get(run.job_id) is run:
                    del self.runs[run.job_id]


def _unknown(job_id: str) -> NotFound:
    return NotFound(f"no job {job_id}", code=UNKNOWN, reason="no-job", data={"job": job_id})


def _history(
    job: StoredJob, *, late: int | None, accepted: int, runs: bool, failing_since: int | None
) -> dict[str, Any]:
    """Return the members that this service adds to the JSON of a job. The interface does not define these members.

    The members have the query's range, the destination's parameters without secrets, and figures of the job. A member
    without a value is left out.

    `late` is the number of events that arrived too late for their groups. If `late` is None, the saved number is used.
    `accepted` is the date, in epoch milliseconds, up to which the destination has all events. If that date is unknown,
    `accepted` is 0.
    """
    shown = {key for key in destinations.known_keys(job.type) if not is_secret(key)} - {"friendlyName"}
    start, end, launched = None, None, None
    if job.request is not None:
        start, end, launched = job.request.asked.range.start, job.request.asked.range.end, job.request.launched
    saved = job.progress.checkpoint.late
    members = {
        "from": None if start is None else to_ms(start),
        "to": None if end is None else to_ms(end),
        "params": {key: _masked(value) for key, value in job.params.items() if key in shown},
        "late": late if late is not None else saved and saved.count,
        "launched": None if launched is None else to_ms(launched),
        "continues": job.continues,
        "acceptedUntil": accepted or None,
        "failingSince": failing_since,
        "lastDelivered": job.delivered,
        "verified": job.verified,
        "keptFrom": job.kept_from,
        "process": job.holder.rpartition("/")[0] if runs and job.holder else None,
    }
    return {name: value for name, value in members.items() if value is not None}


def _masked(value: Any) -> Any:
    """Mask the secrets in the URLs of a parameter's value."""
    return mask_urls(value) if isinstance(value, str) else value


_LETTERS = string.ascii_lowercase + string.digits


def _wait(runs: Sequence[JobRun], patience: float) -> None:
    """Wait for at most `patience` seconds until stopped runs have ended. Fence each run that takes longer.

    A fenced run can no longer commit or save.
    """
    deadline = time.monotonic() + patience
    for run in runs:
        if not run.ended.wait(max(0.0, deadline - time.monotonic())):
            run.fence()
