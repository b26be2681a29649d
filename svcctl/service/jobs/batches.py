"""The batches in which a job delivers its rows, and the progress that is saved after each batch.

A job runs its query in steps. Each step reads a part of the events. After each batch, the job saves its progress: the
number of delivered rows, the latest date of these rows, and a checkpoint. The checkpoint has the query step of the last
row, and the memo. The memo is JSON that the destination needs to continue. The log of the job gets an entry for each
step with rows, and for each file that the destination writes.

For some destinations, the attribute `repeats` is true. Before each commit to such a destination, the job saves which
rows the batch has. If the job is interrupted during the commit, it delivers the same batch again after its restart.
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
"""The minimum number of seconds between two searches for new events."""
MAX_POLLS = 600
"""The maximum number of searches for new events while a batch waits for its commit.

Each search may add a query step to the batch. The checkpoint stores all steps of the batch, so this limit keeps the
checkpoint small.
"""
FIRST_SECONDS = 3.0
"""The maximum number of seconds that the rows of the first batch wait for their commit.

This time is short, so that a refusal by the destination is noticed soon.
"""


class SavedProgress:
    """The last saved progress of a delivery, and the function that saves new progress."""

    def __init__(
        self,
        progress: JobProgress,
        run: JobRun,
        keep: Callable[[JobProgress, LogEntries], None],
        job_id: str,
        *,
        uncounted: int = 0,
    ) -> None:
        """Begin with `progress`, which is already saved.

        `keep` is the function that writes new progress to the database, and new entries to the log of the job `job_id`.
        An earlier job has delivered the first `uncounted` rows. These rows do not count as rows that this run has read.
        """
        self.progress = progress
        self.run = run
        self._keep = keep
        self._job_id = job_id
        self._uncounted = uncounted

    def save(self, progress: JobProgress, steps: Iterable[StepEntry] = (), files: Iterable[FileEntry] = ()) -> None:
        """Save the progress, and add entries to the job's log. Raises Fenced if this run must no longer save."""
        self._keep(progress, LogEntries(self._job_id, tuple(steps), tuple(files)))
        self.progress = progress

    def show_generated(self, rows: int) -> None:
        """Set the number of rows that the run has read so far. `rows` includes rows that are not yet delivered."""
        self.run.generated = rows - self._uncounted


@dataclass
class _Open:
    """The batch that waits for its commit.

    `since` is the moment at which the first row of the batch was written, by the monotonic clock. `steps` are the query
    steps that have returned the rows of the batch.
    """

    since: float = 0.0
    steps: list[Step] = field(default_factory=list)


class DeliveryBatches:
    """Writes rows to a destination in batches, and saves the progress after each batch."""

    def __init__(self, destination: JobDestination, saved: SavedProgress) -> None:
        checkpoint = saved.progress.checkpoint
        self.written = saved.progress.sent
        """The number of rows written so far, including the rows that wait for their commit."""
        self.step = checkpoint.step
        """The most recent query step.

        It changes when the first rows of a step are written, or when a step without rows was read to its end.
        """
        self.late: LateEvents | None = checkpoint.late
        """The number of events that arrived too late for their groups. The number is saved with the next progress."""
        self._destination = destination
        self._saved = saved
        self._date = saved.progress.last_datetime
        self._open = _Open()
        self._patience = min(destination.patience, FIRST_SECONDS)

    @property
    def uncommitted(self) -> int:
        """The number of rows that were written and wait for their commit."""
        return self.written - self._saved.progress.sent

    @property
    def room(self) -> int:
        """The number of bytes that still fit into the current batch."""
        return max(0, self._destination.room())

    @property
    def pause(self) -> float:
        """The number of seconds until the job looks for new events again."""
        return max(POLL_SECONDS, self._patience / MAX_POLLS) if self._destination.repeats else POLL_SECONDS

    def connect(self, head: bytes) -> None:
        """Open the destination. If it already has more rows than the saved progress says, save the higher number.

        `head` has the bytes with which each file at the destination begins.
        """
        self.written = self._destination.open(self.written, self._saved.progress.checkpoint.memo, head)
        self._saved.show_generated(self.written)
        if self.uncommitted > 0:
            self._save(self._destination.memo)

    def begin(self, step: Step) -> None:
        """Begin to write rows of the query step `step`.

        If the destination's attribute `counts` is true, the destination counts the rows that it already has. For such
        a destination, a batch has rows of only one step. So the current batch is committed before a new step begins,
        and the new step is saved.
        """
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
        """Write rows of the current query step. `dates` has the date of each row in epoch milliseconds."""
        self._destination.write(lines, self.written, dates)
        self.written += len(lines)
        self._saved.show_generated(self.written)
        self._date = max(self._date, pc.max(dates).as_py() or 0)

    def commit_in_time(self) -> None:
        """Commit the current batch if its first row has waited for the maximum time."""
        if self.uncommitted > 0 and monotonic() - self._open.since >= self._patience:
            self.commit()

    def commit(self) -> None:
        """Commit the current batch at the destination and save the progress. Do nothing if the batch has no rows."""
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
        """Save the number of events that arrived too late for their groups, and the most recent query step.

        Do nothing if the number has not changed since the last save, or if rows wait for their commit.
        """
        saved = self._saved.progress.checkpoint.late
        if self.late is not None and self.late.count != (saved.count if saved else 0) and self.uncommitted == 0:
            self._save_again()

    def save_step(self) -> None:
        """Save the query step that was read most recently, even if the step had no rows.

        Do nothing while rows wait for their commit. A new job that continues this job begins after the saved step.
        """
        if self.step is not None and self.step != self._saved.progress.checkpoint.step and self.uncommitted == 0:
            self._save_again()

    def complete(self, step: Step, end: int) -> None:
        """Save that the query step `step` is done, and that all events up to `end` (epoch milliseconds) were read."""
        self.step = step
        self._date = max(self._date, end)
        self._save_again()

    def _save_again(self) -> None:
        self._save(self._saved.progress.checkpoint.memo)

    def _save(self, memo: Memo, steps: Iterable[StepEntry] = (), files: Iterable[FileEntry] = ()) -> None:
        """Save that all written rows are delivered, and add entries to the log.

        `memo` is data that the destination needs to continue, such as the number of its next file.
        """
        assert self.step is not None
        progress = JobProgress(self.written, self._date, Checkpoint(self.step, memo, late=self.late))
        self._saved.save(progress, steps, files)

    def _with_batch(self) -> JobProgress:
        """Prepare the next commit, and return the progress to save before the commit.

        The result is the saved progress, to which the batch and the destination's new memo are added. The steps of the
        batch include the last query step, even if this step has no rows.
        """
        assert self.step is not None
        checkpoint = self._saved.progress.checkpoint
        memo = {**checkpoint.memo, **self._destination.prepare()}
        batch = Batch(self.written, tuple(dict.fromkeys((*self._open.steps, self.step))))
        return replace(self._saved.progress, saved=replace(checkpoint, memo=memo, batch=batch, late=self.late))
