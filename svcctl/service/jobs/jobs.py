"""The job operations of the interface, the states of jobs, and the threads that run them.

A job is a query whose rows go to a destination. The module `delivery` sends them; it is passed in as `deliver`.

    launch ──> RUNNING ── stop ──> STOPPED      RUNNING ── all is delivered ──> COMPLETED
                  ^── start ─────────┘          any ── remove ──> REMOVED, then unknown

The interface does not define these cases:
- Stopping a STOPPED job is refused with 108.
- Starting a RUNNING job is refused with 101, and so is starting or launching a job when MOST_RUNNING jobs of its domain
  run, or MOST_IN_TOTAL of all.
- Stopping or starting a COMPLETED job changes nothing and returns it.
- A removed job is deleted with its parameters. It is refused with 100 like a job that never existed, and like a job of
  another domain.
- Stop and remove deliver the rows that were read so far, if the destination takes them within PATIENCE. If not, the
  thread is fenced: it commits and saves nothing more, so the answer tells where a restart begins, and ends when the
  destination lets it. Until then a restarted job waits for it.
- The jobs of a domain that is disabled or pending do not run. They keep their status, so those that ran continue when
  the domain is enabled. The jobs of a deleted domain are deleted with it.
- A job whose query fails stops with the reason in `error`. A job whose destination is down retries, with the reason in
  `error` until it succeeds.
"""

from __future__ import annotations

import logging
import secrets
import string
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svcctl.api import models
from svcctl.api.models import JobStatus
from svcctl.errors import Conflict, NotFound, SvcctlError
from svcctl.service.jobs import stored
from svcctl.service.jobs.stored import StoredJob
from svcctl.service.provisioning.accounts import Account
from svcctl.service.store import Store
from svcctl.service_settings import RUNNING_JOBS, TOTAL_JOBS

UNKNOWN, UNCHANGEABLE, NOT_RUNNING = 100, 101, 108
STATUSES = (UNKNOWN, UNCHANGEABLE, NOT_RUNNING)
"""The statuses of envelopes that refuse a job operation."""

MOST_RUNNING, MOST_IN_TOTAL = int(RUNNING_JOBS.default), int(TOTAL_JOBS.default)
"""Jobs that may run at once, of one domain or reseller and of all."""
PATIENCE = 0.5
"""Seconds that an operation waits for the destination. Rows that it did not accept are delivered after a restart."""
CLOSE_SECONDS = 10.0
"""How long the end of the service waits for the destinations."""
WAITING_SECONDS = 5.0
"""After this time a job that waits for its previous run says so in its `error`."""

_log = logging.getLogger("svcctl.service")


class Fenced(Exception):
    """The run was stopped, and its destination took too long: what it does no longer counts."""


@dataclass
class Run:
    """The thread that runs a job: it saves its progress in the store, and ends when `stopping` is set.

    After `fence` it changes nothing in the store, and must not commit anything to its destination.
    """

    job_id: str
    store: Store
    generated: int = 0
    """Rows read so far, delivered or not."""
    stopping: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    interrupt: Callable[[], None] | None = None
    """Interrupts the engine; the delivery sets it while a query runs."""
    fenced: bool = False
    _told: tuple[str, ...] = ()
    _saving: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Ask the thread to end after it has delivered the rows that it has read."""
        self.stopping.set()
        if (interrupt := self.interrupt) is not None:
            interrupt()

    def fence(self) -> None:
        """Let the thread save nothing more, from the return of this call on."""
        with self._saving:
            self.fenced = True

    def check(self) -> None:
        """Raise Fenced when nothing more may be delivered."""
        if self.fenced:
            raise Fenced

    def save(self, sent: int, last_datetime: int, checkpoint: Mapping[str, Any]) -> None:
        """Save the progress of the delivery in one transaction, and clear the error of the job. Fenced if it is."""
        self._told = ()
        with self._saving:
            self.check()
            progress = {"sent": sent, "last_datetime": last_datetime, "checkpoint": checkpoint}
            stored.change(self.store, self.job_id, **progress, error=())

    def trouble(self, reason: str) -> None:
        """Save and log why the job is stuck, once for each new reason."""
        with self._saving:
            if self._told != (reason,) and not self.fenced:
                self._told = (reason,)
                _log.warning("job %s: %s", self.job_id, reason)
                stored.change(self.store, self.job_id, error=self._told)

    def end(self, status: JobStatus, *errors: str) -> None:
        """Save the final state, unless the job was stopped in the meantime."""
        with self._saving:
            if not self.fenced:
                stored.end(self.store, self.job_id, status, errors)


Deliver = Callable[[StoredJob, Run], bool]
"""Delivers a job from its checkpoint until it is complete (True) or its run is stopped (False)."""


class Jobs:
    """The job operations, and a thread for each job that is RUNNING in an active domain.

    An operation changes the store, and then calls `settle`.
    """

    def __init__(
        self, store: Store, deliver: Deliver, *, share: int = MOST_RUNNING, total: int = MOST_IN_TOTAL
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._share = share
        self._total = total
        self._runs: dict[str, Run] = {}
        self._lock = threading.RLock()
        self._closed = False

    def settle(self) -> None:
        """Start and end threads so that exactly the jobs run that should, by the present state of the store.

        Returns within PATIENCE, when the threads that have to end have ended or are fenced.
        """
        with self._lock:
            if self._closed:
                return
            due = {job.id: job for job in stored.due(self._store)}
            for job in due.values():
                run = self._runs.get(job.id)
                if run is None or run.stopping.is_set():
                    self._start(job)
            ending = [run for job_id, run in self._runs.items() if job_id not in due]
        for run in ending:
            run.stop()  # also those that were stopped before: the engine may have missed an interrupt
        _wait([run for run in ending if not run.fenced], PATIENCE)

    def close(self) -> None:
        """End all threads. Their jobs stay RUNNING, so that `settle` starts them when the service runs again."""
        with self._lock:
            self._closed = True
            runs = list(self._runs.values())
        for run in runs:
            run.stop()
        _wait(runs, CLOSE_SECONDS)

    def launch(
        self, account: Account, *, type: str, query: str, request: Mapping[str, Any], params: Mapping[str, Any]
    ) -> models.Job:
        """Store a new job and run it."""
        name = params.get("friendlyName") or f"{type}_{''.join(secrets.choice(_LETTERS) for _ in range(8))}"
        job = StoredJob(str(uuid.uuid4()), account.owner, JobStatus.RUNNING, type, str(name), query, request, params)
        with self._lock:
            self._need_room(account)
            stored.add(self._store, job)
        self.settle()
        return self._shown(job)

    def listed(self, account: Account) -> list[models.Job]:
        """List the jobs of the account's domain, the oldest first."""
        return [self._shown(job) for job in stored.owned(self._store, account.owner)]

    def get(self, account: Account, job_id: str) -> models.Job:
        return self._shown(self._own(account, job_id))

    def stop(self, account: Account, job_id: str) -> models.Job:
        with self._lock:
            job = self._own(account, job_id)
            if job.status is JobStatus.COMPLETED:
                return self._shown(job)
            if job.status is not JobStatus.RUNNING:
                raise Conflict(f"job {job_id} is {job.status}: only a running job can be stopped", code=NOT_RUNNING)
            self._set(job_id, JobStatus.STOPPED)
        self.settle()
        return self.get(account, job_id)

    def start(self, account: Account, job_id: str) -> models.Job:
        with self._lock:
            job = self._own(account, job_id)
            if job.status is JobStatus.RUNNING:
                raise Conflict(f"job {job_id} is already running", code=UNCHANGEABLE)
            if job.status is JobStatus.STOPPED:
                self._need_room(account)
                self._set(job_id, JobStatus.RUNNING)
        self.settle()
        return self.get(account, job_id)

    def remove(self, account: Account, job_id: str) -> models.Job:
        with self._lock:
            job = self._own(account, job_id)
            if job.status is JobStatus.RUNNING:
                self._set(job_id, JobStatus.STOPPED)
        self.settle()
        with self._lock:
            removed = self._shown(self._own(account, job_id), JobStatus.REMOVED)
            stored.remove(self._store, job_id)
        self.settle()  # it may have been started again in the meantime
        return removed

    def _need_room(self, account: Account) -> None:
        running = [job.owner for job in stored.running(self._store)]
        if (own := running.count(account.owner)) >= self._share:
            raise Conflict(
                f"{own} jobs are already running, which is the maximum",
                code=UNCHANGEABLE,
                hint="stop or remove one first",
            )
        if len(running) >= self._total:
            raise Conflict(
                f"the service already runs {len(running)} jobs of all its domains, which is the maximum",
                code=UNCHANGEABLE,
                hint="try again when some of them have ended",
            )

    def _own(self, account: Account, job_id: str) -> StoredJob:
        job = stored.get(self._store, job_id)
        if job is None or job.owner != account.owner:
            raise NotFound(f"no job {job_id}", code=UNKNOWN)
        return job

    def _set(self, job_id: str, status: JobStatus) -> None:
        stored.change(self._store, job_id, status=str(status), error=())

    def _shown(self, job: StoredJob, status: JobStatus | None = None) -> models.Job:
        """Return the interface's job object; while a job runs, rows that are not yet delivered count as generated."""
        run = self._runs.get(job.id)
        in_flight = run.generated if run is not None and job.status is JobStatus.RUNNING else 0
        return models.Job(
            id=job.id,
            status=status or job.status,
            type=job.type,
            friendly_name=job.friendly_name,
            event_generated=max(job.sent, in_flight),
            events_sent=job.sent,
            last_datetime=job.last_datetime,
            query=job.query,
            error=job.error,
        )

    def _start(self, job: StoredJob) -> None:
        before = self._runs.get(job.id)
        run = self._runs[job.id] = Run(job.id, self._store, generated=job.sent)
        threading.Thread(target=self._work, args=(run, before), name=f"job-{job.id[:8]}", daemon=True).start()

    def _work(self, run: Run, before: Run | None) -> None:
        """Run a job in its thread, after the job's previous thread has ended: two at once would deliver rows twice."""
        try:
            while before is not None and not before.ended.wait(WAITING_SECONDS):
                if not run.stopping.is_set():
                    run.trouble("waiting for the destination to answer the job's previous run")
            job = stored.get(self._store, run.job_id)
            running = job is not None and job.status is JobStatus.RUNNING and not run.stopping.is_set()
            if job is not None and running and self._deliver(job, run):
                run.end(JobStatus.COMPLETED)
        except Fenced:
            _log.info("job %s: its thread has ended, some time after it was stopped", run.job_id)
        except SvcctlError as error:
            run.end(JobStatus.STOPPED, error.message)
        except Exception:
            _log.exception("job %s failed", run.job_id)
            run.end(JobStatus.STOPPED, "the service failed on this job; its log has the reason")
        finally:
            with self._lock:
                if self._runs.get(run.job_id) is run:
                    del self._runs[run.job_id]
            run.ended.set()


_LETTERS = string.ascii_lowercase + string.digits


def _wait(runs: Sequence[Run], patience: float) -> None:
    """Wait for stopped runs to deliver what they have read, and fence those that take longer."""
    deadline = time.monotonic() + patience
    for run in runs:
        if not run.ended.wait(max(0.0, deadline - time.monotonic())):
            run.fence()
