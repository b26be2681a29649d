"""The batches in which a job delivers its rows, and the progress that is saved with each batch.

With each batch a job saves the number of rows that were delivered, their latest date, and a checkpoint: the step of the
last row and the memo of the destination. The log of the job gets an entry for each step with rows, and for each file.
If the destination `repeats`, the job also saves the rows of the batch before the commit. A job that is interrupted
during the commit first delivers the same batch again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import monotonic

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.service.destinations import JobDestination, Memo
from svcctl.service.jobs.checkpoint import Batch, Checkpoint, JobProgress
from svcctl.service.jobs.runner import JobRun
from svcctl.service.jobs.step_log import FileEntry, LogEntries, StepEntry
from svcctl.service.queries.schedule import LateEvents, Step

POLL_SECONDS = 0.5
"""How often a job that has delivered everything looks for new events."""
MAX_POLLS = 600
"""The most looks for new events while a batch waits for its commit. Each look may add a step to the batch, and the
checkpoint holds these steps."""
FIRST_SECONDS = 3.0
"""The longest wait for the commit of the first rows after connecting, so that a refusal shows soon."""


class SavedProgress:
    """The last saved progress of a delivery. Its run shows how many more rows were read."""

    def __init__(
        self,
        progress: JobProgress,
        run: JobRun,
        keep: Callable[[JobProgress, LogEntries], None],
        job_id: str,
        *,
        uncounted: int = 0,
    ) -> None:
        """`keep` writes progress to the state, and entries to the log of the job `job_id`. The first `uncounted` rows
        belong to the continued job and were delivered before: the run does not count them as generated."""
        self.progress = progress
        self.run = run
        self._keep = keep
        self._job_id = job_id
        self._uncounted = uncounted

    def save(self, progress: JobProgress, steps: Iterable[StepEntry] = (), files: Iterable[FileEntry] = ()) -> None:
        """Save the progress with entries of the log. Fenced when nothing more may be saved."""
        self._keep(progress, LogEntries(self._job_id, tuple(steps), tuple(files)))
        self.progress = progress

    def show_generated(self, rows: int) -> None:
        """Show how many rows were read so far, delivered or not."""
        self.run.generated = rows - self._uncounted


@dataclass
class _Open:
    """The batch that waits for its commit: the moment of its first row, by the monotonic clock, and its steps."""

    since: float = 0.0
    steps: list[Step] = field(default_factory=list)


class DeliveryBatches:
    """The rows that are written to a destination, batch by batch."""

    def __init__(self, destination: JobDestination, saved: SavedProgress) -> None:
        checkpoint = saved.progress.checkpoint
        self.written = saved.progress.sent
        """The number of rows written so far, including those of the open batch."""
        self.step = checkpoint.step
        """The last step that was read to its end, or whose rows were written in part."""
        self.late: LateEvents | None = checkpoint.late
        """The events that came too late for their groups; they are saved with the next progress."""
        self._destination = destination
        self._saved = saved
        self._date = saved.progress.last_datetime
        self._open = _Open()
        self._patience = min(destination.patience, FIRST_SECONDS)

    @property
    def uncommitted(self) -> int:
        """The number of rows in the open batch."""
        return self.written - self._saved.progress.sent

    @property
    def room(self) -> int:
        """How many more bytes the open batch takes."""
        return max(0, self._destination.room())

    @property
    def pause(self) -> float:
        """The seconds until the job looks for new events again."""
        return max(POLL_SECONDS, self._patience / MAX_POLLS) if self._destination.repeats else POLL_SECONDS

    def connect(self, head: bytes) -> None:
        """Open the destination, and save the number of rows it has; `head` is the beginning of each file."""
        self.written = self._destination.open(self.written, self._saved.progress.checkpoint.memo, head)
        self._saved.show_generated(self.written)
        if self.uncommitted > 0:
            self._save(self._destination.memo)

    def begin(self, step: Step) -> None:
        """Note the step of the next row. If the destination `counts`, save the step and begin a new batch."""
        if self._destination.counts and step != self.step:
            self.commit()
            self.step = step
            memo = self._destination.memo
            self._save(memo, [StepEntry(step.first, step, memo.get("offset"))])
        if self.uncommitted == 0:
            self._open = _Open(monotonic())
        if not self._open.steps or self._open.steps[-1] != step:
            self._open.steps.append(step)
        self.step = step

    def write(self, lines: pa.StringArray, dates: pa.Int64Array) -> None:
        """Write rows of the current step; `dates` are the dates of the rows in epoch milliseconds."""
        self._destination.write(lines, self.written, dates)
        self.written += len(lines)
        self._saved.show_generated(self.written)
        self._date = max(self._date, pc.max(dates).as_py() or 0)

    def commit_in_time(self) -> None:
        """Commit if the rows of the open batch have waited long enough."""
        if self.uncommitted > 0 and monotonic() - self._open.since >= self._patience:
            self.commit()

    def commit(self) -> None:
        """Deliver the rows of the open batch, if it has any, and save the progress."""
        if self.uncommitted <= 0:
            return
        self._saved.run.check()
        if self._destination.repeats and (progress := self._with_batch()) != self._saved.progress:
            self._saved.save(progress)
        prepared = self._saved.progress.checkpoint.memo
        hashes = tuple(prepared.get("sha256", ()))
        files = [FileEntry(prepared["parts"], self._saved.progress.sent, self.written, hashes)] if hashes else []
        memo = self._destination.commit()
        steps = [StepEntry(step.first, step) for step in self._open.steps] if self._destination.repeats else []
        self._save(memo, steps, files)
        self._patience = self._destination.patience

    def save_late(self) -> None:
        """Save the number of late events and the last step, if that number has changed and all rows are committed."""
        saved = self._saved.progress.checkpoint.late
        if self.late is not None and self.late.count != (saved.count if saved else 0) and self.uncommitted == 0:
            self._save_again()

    def save_step(self) -> None:
        """Save the last step that was read, even if it had no rows: a job that continues this one begins after that
        step."""
        if self.step is not None and self.step != self._saved.progress.checkpoint.step and self.uncommitted == 0:
            self._save_again()

    def complete(self, step: Step, end: int) -> None:
        """Save that all events up to `end`, in epoch milliseconds, are read, and that `step` was the last step."""
        self.step = step
        self._date = max(self._date, end)
        self._save_again()

    def _save_again(self) -> None:
        self._save(self._saved.progress.checkpoint.memo)

    def _save(self, memo: Memo, steps: Iterable[StepEntry] = (), files: Iterable[FileEntry] = ()) -> None:
        """Save all written rows as delivered, with the memo of the destination and entries of the log."""
        assert self.step is not None
        progress = JobProgress(self.written, self._date, Checkpoint(self.step, memo, late=self.late))
        self._saved.save(progress, steps, files)

    def _with_batch(self) -> JobProgress:
        """The saved progress with the batch of the next commit and the memo of its preparation.

        The batch includes the last step even if this step has no rows, because it has closed periods: later events of
        these periods count as late.
        """
        assert self.step is not None
        checkpoint = self._saved.progress.checkpoint
        memo = {**checkpoint.memo, **self._destination.prepare()}
        batch = Batch(self.written, tuple(dict.fromkeys((*self._open.steps, self.step))))
        return replace(self._saved.progress, saved=replace(checkpoint, memo=memo, batch=batch, late=self.late))
