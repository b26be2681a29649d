"""The thread that runs a job: its retries, its saves, and its end.

If the query of a job fails, the job stops. While the database, the events or the destination are unavailable, the job
waits and tries again.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from svcctl.api import retry
from svcctl.api.models import JobStatus
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import SvcctlError, Unavailable
from svcctl.service.jobs import job_table, leases
from svcctl.service.jobs.checkpoint import JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.step_log import LogEntries
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.store import Store

WAITING_SECONDS = 5.0
"""The number of seconds that a job waits for its previous run before the job reports the wait in `error`."""
MOST_DOUBLED = 4
"""After this number of consecutive failures, the delay before the next attempt no longer grows.

The delay is at most 4 s.
"""

_log = logging.getLogger("svcctl.service")


class Fenced(Exception):
    """Raised when a run must no longer deliver rows or save its progress.

    Either the run took too long to stop, or its lease has ended and another process may run the job.
    """


@dataclass
class JobRun:
    """A run of a job: the thread that runs the job, its lease, and figures of the delivery.

    The thread saves the job's progress in the database, and ends when `stopping` is set. After a call of `fence`, and
    after the end of the lease, the thread must no longer commit or save.
    """

    job_id: str
    store: Store
    token: int = 0
    """The fence number of this run's lease. A newer lease of the same job has a higher number."""
    until: float = math.inf
    """The end of the lease by the monotonic clock. From then on, another process may run the job."""
    generated: int = 0
    """The number of rows read so far, including rows that are not yet delivered."""
    reached: int = 0
    """The date, in epoch milliseconds, up to which all events are read and all matching events are delivered.

    This date is shown to users. It is also checked before events of a table are removed. A restarted job does not
    continue from this date, but from its checkpoint.
    """
    accepted: int = 0
    """The date, in epoch milliseconds, up to which all events are written to the destination.

    Written events count even if their batch is not committed yet. After a failure of the destination, the date is 0
    until the next commit. The date is used only to show how far the delivery lags.
    """
    late: int | None = None
    """The number of events that arrived too late for their groups. It is None until these events are counted."""
    stopping: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    interrupt: Callable[[], None] | None = None
    """A function that interrupts the running query. It is None while no query runs."""
    fenced: bool = False
    error: tuple[str, ...] | None = None
    """The reason why the job is stuck. It is empty if the job is not stuck.

    The reason is set even while the database cannot be written. `error` is None until this run has set or cleared the
    reason. Until then, the job shows the error that an earlier run has saved.
    """
    failing_since: int | None = None
    """The moment, in epoch milliseconds, at which the job most recently began to fail.

    It is None if the job has not failed in this run.
    """
    thread: threading.Thread = field(default_factory=threading.Thread)
    _saved: tuple[str, ...] | None = None
    """The error that this run saved most recently. It is None if this run has saved no error."""
    _saving: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Ask the thread to deliver the rows that it has read, and then to end."""
        self.stopping.set()
        if (interrupt := self.interrupt) is not None:
            interrupt()

    def fence(self) -> None:
        """Prevent the thread from saving from now on, and revoke the lease of this run."""
        with self._saving:
            self.fenced = True
        leases.revoke(self.store, self.job_id, self.token)

    def lose(self) -> None:
        """End the thread, because this run has lost its lease of the job."""
        self.fenced = True
        self.stop()

    def check(self) -> None:
        """Raise Fenced if this run must no longer deliver rows."""
        if self.fenced or time.monotonic() >= self.until:
            raise Fenced

    def save(self, progress: JobProgress, log: LogEntries | None = None) -> None:
        """Save the progress of the delivery and entries of the job's log, and clear the error of the job.

        Raises Fenced if this run must no longer save.
        """
        with self._saving:
            self.check()
            if not job_table.save(self.store, self.job_id, self.token, progress, log):
                self.fenced = True
                raise Fenced
            self.error = self._saved = ()

    def wait_for(self, error: Unavailable) -> None:
        """Remember the reason why the job is stuck, and log each new reason once. Nothing is saved in the database.

        Do nothing in a run that is stopping, because the job may already have a newer run.
        """
        if self.error != (error.message,) and not self.fenced and not self.stopping.is_set():
            if not self.error:
                self.failing_since = seconds_to_ms(time.time())
            self.error = (error.message,)
            _log.warning("job %s: %s", self.job_id, error.detail if isinstance(error, StateUnavailable) else error)

    def trouble(self, reason: str) -> None:
        """Save and log the reason why the job is stuck. A reason that was already saved is not saved again."""
        self.wait_for(Unavailable(reason))
        self.keep_error()

    def keep_error(self) -> None:
        """Save `error` in the database if it was not saved before.

        Raises StateUnavailable if the database cannot be written.
        """
        with self._saving:
            error = self.error
            if error is not None and error != self._saved and not self.fenced and not self.stopping.is_set():
                job_table.trouble(self.store, self.job_id, self.token, error)
                self._saved = error

    def recovered(self) -> None:
        """Clear the error of the job. The caller must have delivered all rows that were read so far."""
        with self._saving:
            if self.error != () and not self.fenced:
                job_table.trouble(self.store, self.job_id, self.token, ())
                self.error = self._saved = ()

    def keep_reached(self) -> None:
        """Save `reached`, the date up to which the job has read and delivered all events."""
        with self._saving:
            if not self.fenced:
                job_table.reach(self.store, self.job_id, self.token, self.reached)

    def end(self, status: JobStatus, *errors: str) -> None:
        """Save the final status of the job and its errors. A job that was stopped in the meantime stays unchanged."""
        with self._saving:
            if not self.fenced and not (errors and self.stopping.is_set()):
                job_table.end(self.store, self.job_id, self.token, status, errors)


Deliver = Callable[[StoredJob, JobRun], bool]
"""A function that delivers a job from its checkpoint.

The function returns True when the job is complete, and False when the run is stopped.
"""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs jobs. Each job runs in the thread that calls `work`.

    If a job still waits for its previous run after `waiting` seconds, the job reports the wait as its error.
    """

    deliver: Deliver
    waiting: float

    def work(self, run: JobRun, before: JobRun | None) -> None:
        """Run a job until the job is done or the run is stopped.

        `before` is the previous run of the job. The job begins when that run has ended. The job is tried again while
        the database or the events are unavailable.
        """
        failures = 0
        while not self._attempt(run, before):
            failures = failures + 1 if run.error else 1
            if run.fenced or run.stopping.wait(retry.delay(min(failures, MOST_DOUBLED))):
                break
        if run.fenced:
            _log.info("job %s: its thread has ended, some time after it was stopped or taken over", run.job_id)

    def _attempt(self, run: JobRun, before: JobRun | None) -> bool:
        """Run a job from its checkpoint until the job is done or the run is stopped.

        Return False if the run must try again.
        """
        try:
            while before is not None and not before.ended.wait(self.waiting):  # two runs would deliver rows twice
                if not run.stopping.is_set():
                    run.trouble("waiting for the destination to answer the job's previous run")
            run.keep_error()
            job = job_table.get(run.store, run.job_id)
            running = job is not None and job.status is JobStatus.RUNNING and not run.stopping.is_set()
            if job is not None and running and job.fence == run.token:
                run.check()
                self._run(job, run)
        except Unavailable as error:
            run.wait_for(error)
            return False
        except Fenced:  # try again, because the ended lease may be renewed if no other process took the job
            return False
        return True

    def _run(self, job: StoredJob, run: JobRun) -> None:
        try:
            if self.deliver(job, run):
                run.end(JobStatus.COMPLETED)
            else:
                run.keep_reached()
        except (Fenced, Unavailable):
            raise
        except SvcctlError as error:
            _log.warning("job %s (%s) ended with an error: %s", run.job_id, job.friendly_name, error.message)
            run.end(JobStatus.STOPPED, error.message)
        except Exception:
            _log.exception("job %s failed", run.job_id)
            run.end(JobStatus.STOPPED, "the service failed on this job; its log has the reason")
