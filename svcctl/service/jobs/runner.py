"""The thread that runs a job: its retries, its saves, and its end.

A job whose query fails stops. While its state, events or destination are unavailable, a job waits and tries again.
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
"""The number of seconds after which a job that waits for its previous run says so in its `error`."""
MOST_DOUBLED = 4
"""After this number of failures in a row, the delay before the next attempt stops doubling, at 4 s."""

_log = logging.getLogger("svcctl.service")


class Fenced(Exception):
    """The run was stopped, or another process runs the job now: this run may deliver and save nothing more."""


@dataclass
class JobRun:
    """The thread that runs a job. It saves the job's progress in the store, and ends when `stopping` is set.

    After `fence`, or when its lease has ended, the thread must commit nothing to the destination, and the store refuses
    its saves.
    """

    job_id: str
    store: Store
    token: int = 0
    """The fence number of the lease."""
    until: float = math.inf
    """The moment of the monotonic clock from which another process may run the job."""
    generated: int = 0
    """The number of rows read so far, whether they are delivered or not."""
    reached: int = 0
    """The date, in epoch milliseconds, up to which all events are read and all matching events are delivered. This date
    is shown, and checked before events of a table are removed. The checkpoint alone decides where a job continues."""
    accepted: int = 0
    """The date, in epoch milliseconds, up to which the destination has all events, including the events of a batch that
    waits for its commit; 0 when the destination has refused or lost a batch. This date only serves to show the lag."""
    late: int | None = None
    """The number of events that came after their period was closed; None for a query without periods."""
    stopping: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    interrupt: Callable[[], None] | None = None
    """Interrupts the engine; the delivery sets it while a query runs."""
    fenced: bool = False
    error: tuple[str, ...] | None = None
    """The reason why the job is stuck, which is set even while the state cannot be written; empty if the job is not
    stuck. It is None at first, and the job then shows the error that an earlier run has saved."""
    failing_since: int | None = None
    """The moment, in epoch milliseconds, at which the job last began to fail; None if it has not failed in this run."""
    thread: threading.Thread = field(default_factory=threading.Thread)
    _saved: tuple[str, ...] | None = None
    """The error that this run saved last."""
    _saving: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Ask the thread to end after it has delivered the rows that it has read."""
        self.stopping.set()
        if (interrupt := self.interrupt) is not None:
            interrupt()

    def fence(self) -> None:
        """Keep the thread from saving anything after this call has returned."""
        with self._saving:
            self.fenced = True
        leases.revoke(self.store, self.job_id, self.token)

    def lose(self) -> None:
        """End the thread, since another process runs the job."""
        self.fenced = True
        self.stop()

    def check(self) -> None:
        """Raise Fenced when nothing more may be delivered."""
        if self.fenced or time.monotonic() >= self.until:
            raise Fenced

    def save(self, progress: JobProgress, log: LogEntries | None = None) -> None:
        """Save the progress of the delivery with entries of the log, and clear the error of the job.

        Raises Fenced when nothing more may be saved.
        """
        with self._saving:
            self.check()
            if not job_table.save(self.store, self.job_id, self.token, progress, log):
                self.fenced = True
                raise Fenced
            self.error = self._saved = ()

    def wait_for(self, error: Unavailable) -> None:
        """Remember the reason why the job is stuck, and log each new reason once. `keep_error` saves the reason.

        In a run that is stopping, nothing happens, because the job may have been started again and have a newer run.
        """
        if self.error != (error.message,) and not self.fenced and not self.stopping.is_set():
            if not self.error:
                self.failing_since = seconds_to_ms(time.time())
            self.error = (error.message,)
            _log.warning("job %s: %s", self.job_id, error.detail if isinstance(error, StateUnavailable) else error)

    def trouble(self, reason: str) -> None:
        """Save and log why the job is stuck, once for each new reason."""
        self.wait_for(Unavailable(reason))
        self.keep_error()

    def keep_error(self) -> None:
        """Save the error that is in memory, unless it is already saved.

        Raises StateUnavailable while the state cannot be written.
        """
        with self._saving:
            error = self.error
            if error is not None and error != self._saved and not self.fenced and not self.stopping.is_set():
                job_table.trouble(self.store, self.job_id, self.token, error)
                self._saved = error

    def recovered(self) -> None:
        """Clear the error of the job, because it has delivered all rows up to now."""
        with self._saving:
            if self.error != () and not self.fenced:
                job_table.trouble(self.store, self.job_id, self.token, ())
                self.error = self._saved = ()

    def keep_reached(self) -> None:
        """Save the date up to which the job has read and delivered all events."""
        with self._saving:
            if not self.fenced:
                job_table.reach(self.store, self.job_id, self.token, self.reached)

    def end(self, status: JobStatus, *errors: str) -> None:
        """Save the final state of the job. A job that was stopped in the meantime stays stopped, and gets no error."""
        with self._saving:
            if not self.fenced and not (errors and self.stopping.is_set()):
                job_table.end(self.store, self.job_id, self.token, status, errors)


Deliver = Callable[[StoredJob, JobRun], bool]
"""A function that delivers a job from its checkpoint.

It returns True when the job is complete, and False when its run is stopped.
"""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs jobs, each in the thread that calls `work`.

    A job that waits for its previous run for more than `waiting` seconds reports this as its error.
    """

    deliver: Deliver
    waiting: float

    def work(self, run: JobRun, before: JobRun | None) -> None:
        """Run a job until the job or the run ends. Try again while the state or the events are unavailable.

        The job begins when its previous run, `before`, has ended.
        """
        failures = 0
        while not self._attempt(run, before):
            failures = failures + 1 if run.error else 1
            if run.fenced or run.stopping.wait(retry.delay(min(failures, MOST_DOUBLED))):
                break
        if run.fenced:
            _log.info("job %s: its thread has ended, some time after it was stopped or taken over", run.job_id)

    def _attempt(self, run: JobRun, before: JobRun | None) -> bool:
        """Run a job from its checkpoint until the job or the run ends. Return False if the run must try again."""
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
        except Fenced:  # a lease that has ended is renewed later if no other process took the job
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
