"""The delivery of a job's rows from its query to its destination.

A job runs its query in steps, one after another. Each step reads a part of the events. A step returns the same rows in
the same order each time it runs. So after an interruption, the job runs the interrupted step again, and skips the rows
that are already delivered. The rows of all steps of a job are numbered consecutively. The module `batches` writes the
rows to the destination, and saves the job's progress.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from svcctl.api import destinations as api
from svcctl.api import retry
from svcctl.errors import ServiceError, Unavailable
from svcctl.service import rendering
from svcctl.service.destinations import JobDestination, kinds
from svcctl.service.engines import Engines
from svcctl.service.hosts.allowed_hosts import EVERYTHING, AllowedHosts
from svcctl.service.jobs.batches import DeliveryBatches, SavedProgress
from svcctl.service.jobs.checkpoint import Batch, Checkpoint, JobProgress, Rest
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.runner import JobRun
from svcctl.service.jobs.step_log import LogEntries, StepEntry
from svcctl.service.language import Plan, parse
from svcctl.service.queries.continuous import Steps
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import Step
from svcctl.service.rendering import DateStyle, arrow
from svcctl.service.rendering.rows import RowFormat
from svcctl.service.settings import LAG_TIME
from svcctl.service.state.database import StateUnavailable

PIECE_BYTES = 1 << 18
"""The approximate size, in bytes, of the pieces in which rows go to the destination.

A stop takes effect between two pieces, so small pieces let a job stop soon.
"""


class Connect(Protocol):
    """A function that makes the destination of a job from the destination's type, the job's ID, and the parameters."""

    def __call__(self, type_: str, job_id: str, params: Mapping[str, Any], /, *, endless: bool) -> JobDestination: ...


def deliver(
    engines: Engines,
    clock: Callable[[], datetime],
    job: StoredJob,
    run: JobRun,
    *,
    lag: float = LAG_TIME.default_value,
    connect: Connect = kinds.destination,
) -> bool:
    """Deliver the rows of a job. Return True when the job is complete, and False when the job is stopped.

    A query may group events by periods of time. After the end of a period, such a query waits `lag` seconds for late
    events, and then closes the period. While the destination does not answer, the delivery is retried from the last
    commit.

    Raises ServiceError when the query fails. Raises Unavailable when the database of the service or the query's table
    cannot be reached. After Unavailable, the caller must read the stored job again, because only the stored job has the
    last saved progress.
    """
    rest = job.rest
    if (before := rest.progress.before) is not None:

        def save_before(progress: JobProgress, log: LogEntries) -> None:
            latest = max(progress.last_datetime, rest.progress.last_datetime)
            run.save(JobProgress(0, latest, before=replace(before, progress=progress)), log)

        end = _deliver(engines, clock, before, run, save_before, lag, connect, only_step=True)
        if end is None:
            return False
        memo = kinds.inherited_memo(end.checkpoint.memo, (before.type, before.params), (job.type, job.params))
        rest = replace(rest, progress=JobProgress(0, end.last_datetime, Checkpoint(memo=memo)))
        end_entry = StepEntry(end.sent, None, end.checkpoint.memo.get("offset"))
        run.save(rest.progress, LogEntries(before.job_id, steps=(end_entry,)))
        run.generated = 0
    return _deliver(engines, clock, rest, run, run.save, lag, connect) is not None


def _deliver(
    engines: Engines,
    clock: Callable[[], datetime],
    rest: Rest,
    run: JobRun,
    save: Callable[[JobProgress, LogEntries], None],
    lag: float,
    connect: Connect,
    *,
    only_step: bool = False,
) -> JobProgress | None:
    """Deliver the rest of a job. With `only_step`, deliver only the rest of the query step that the job had begun.

    Returns the last progress. Returns None if the run was stopped.
    """
    query = rest.request
    if query.mark is not None:
        table = parse(query.asked.query).table
        engines.of(table).stored.check_mark(table, query.mark)
    steps = Steps(
        engines,
        query.asked,
        clock,
        launched=query.launched,
        lag=lag,
        repeatable=True,
        covered=query.covered,
        columns=query.columns,
    )
    if only_step and _is_whole(engines, steps, rest.progress):
        return rest.progress
    saved = SavedProgress(rest.progress, run, save, rest.job_id, uncounted=rest.progress.sent if only_step else 0)
    failures = 0
    while not run.stopping.is_set():
        sent = saved.progress.sent
        destination = connect(rest.type, rest.job_id, rest.params, endless=steps.endless)
        dates = DateStyle(query.asked.date_format, query.asked.zone)
        attempt = _Attempt(engines, steps, run, DeliveryBatches(destination, saved), destination.rows, dates, only_step)
        try:
            with closing(destination):
                return saved.progress if attempt.deliver(saved.progress.checkpoint) else None
        except StateUnavailable:
            raise
        except Unavailable as error:
            run.accepted = 0
            about = f"job {rest.job_id}, which this one continues: " if only_step else ""
            run.trouble(about + api.without_secrets(error.message, rest.params))
        failures = 1 if saved.progress.sent > sent else failures + 1
        saved.show_generated(saved.progress.sent)
        run.stopping.wait(retry.delay(failures))
    return None


def _is_whole(engines: Engines, steps: Steps, progress: JobProgress) -> bool:
    """Whether all rows of a job's last query step are delivered.

    If so, the job can end this step without a connection to the destination.
    """
    step, batch = progress.checkpoint.step, progress.checkpoint.batch
    if step is None or batch is not None:
        return batch is None
    plan = steps.plan(step)
    reader, skip = engines.of(plan.table).reader, progress.sent - step.first
    with rendering.stream(reader, plan, ["1"], since=step.since, until=step.until, skip=skip) as stream:
        return not any(rows.num_rows for rows in stream)


def check(engines: Engines, asked: AskedQuery, now: datetime, allowed: AllowedHosts = EVERYTHING) -> api.Destination:
    """Check that the rows of a query can be delivered, and return the query's destination.

    In the returned destination, the type and the keys of the parameters have their standard spelling. Raises QueryError
    for an invalid query. Raises ServiceError for an unknown type, an invalid parameter, or a host to which the service
    may not connect.
    """
    assert asked.destination is not None
    Steps(engines, asked, lambda: now, launched=now)
    kind = kinds.known_type(asked.destination.type)
    params = {api.known_key(kind, key): value for key, value in asked.destination.params.items()}
    kinds.check(kind, params, endless=asked.range.end is None, allowed=allowed)
    return api.Destination(kind, params)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt to deliver a job from its last commit.

    The attempt ends when the job is complete, when the job is stopped, or when the destination fails.
    """

    engines: Engines
    steps: Steps
    run: JobRun
    batches: DeliveryBatches
    rows: RowFormat
    """The format of the rows at the destination."""
    dates: DateStyle
    only_step: bool
    """Whether the attempt delivers only the query step that the job had begun."""

    def deliver(self, checkpoint: Checkpoint) -> bool:
        """Deliver the job from `checkpoint`. Return True when the job is complete, and False when it is stopped."""
        self.batches.connect(self.rows.head(self.steps.shape.columns))
        if checkpoint.batch is not None and not self._repeat(checkpoint.batch):
            return False
        step = due = self.batches.step
        while True:
            if due is not None:
                step = due
                self._read(step)
                if not self.run.stopping.is_set():
                    self.batches.step = step
            self._reach(step)
            if self.run.stopping.is_set():
                self.batches.commit()
                self.batches.save_step()
                return False
            if self.only_step:
                self.batches.commit()
                return True
            if self.steps.over(step, self.batches.written):
                self.batches.commit()
                self._complete(step)
                return True
            due = self._look(step)
            if due is None:
                if self.batches.uncommitted == 0:
                    self.run.recovered()
                self.run.stopping.wait(self.batches.pause)
                self.batches.commit_in_time()

    def _repeat(self, batch: Batch) -> bool:
        """Deliver the batch of an interrupted commit again, with the same rows. Return False if the run is stopped."""
        for step in batch.steps:
            self._read(step, batch.end)
            if self.run.stopping.is_set():
                return False
            self.batches.step = step
        self.batches.commit()
        return True

    def _look(self, step: Step | None) -> Step | None:
        """Return the query step after `step`, or None if the next step cannot run yet.

        Also save the number of events that arrived too late for their groups.
        """
        due = self.steps.next(step, self.batches.written)
        late = self.batches.late = self.steps.late_after(step, due, self.batches.written, self.batches.late)
        if late is not None:
            self.run.late = late.count
            self.batches.save_late()
        return due

    def _read(self, step: Step, end: int | None = None) -> None:
        """Deliver the rows of a query step, except the rows that were delivered before.

        With `end`, deliver only the rows with numbers below `end`. The caller then commits these rows as one batch.
        """
        plan = self.steps.plan(step, dated=True)
        with rendering.stream(
            self.engines.of(plan.table).reader,
            plan,
            self._expressions(plan),
            since=step.since,
            until=step.until,
            skip=self.batches.written - step.first,
        ) as stream:
            self.run.interrupt = stream.interrupt
            try:
                if not self.run.stopping.is_set():
                    for rows in stream:
                        self._hand_on(step, *rows.columns, end=end)
                        if self.batches.written == end:
                            break
            except ServiceError:
                if not self.run.stopping.is_set():
                    raise
            finally:
                self.run.interrupt = None

    def _reach(self, step: Step | None) -> None:
        """Set the dates `accepted` and `reached` of the run.

        All events up to `accepted` are written to the destination. All events up to `reached` are also committed.

        `step` is the last query step that was read.
        """
        if self.run.stopping.is_set():
            return
        reached = self.steps.read_up_to(step)
        if not self.run.error:  # after a failure only a commit proves that the destination takes rows
            self.run.accepted = max(self.run.accepted, reached)
        if self.batches.uncommitted == 0:
            self.run.reached = max(self.run.reached, reached)

    def _expressions(self, plan: Plan) -> list[str]:
        """Return two SQL expressions: the text of a row in the destination's format, and the date of the row."""
        row = self.rows.text(plan.columns, self.dates)
        return [f"{row} AS line", f"epoch_ms(c{len(plan.columns)}) AS date"]

    def _hand_on(self, step: Step, lines: pa.StringArray, dates: pa.Int64Array, *, end: int | None) -> None:
        """Write rows to the destination, in pieces that fit into the current batch.

        With `end`, write all rows with numbers below `end` to the current batch, even if the batch gets larger than
        usual.
        """
        bounds = arrow.offsets(lines)
        at = 0
        stop = len(lines) if end is None else min(len(lines), end - self.batches.written)
        while at < stop and not self.run.stopping.is_set():
            room = PIECE_BYTES if end is not None else min(self.batches.room, PIECE_BYTES)
            piece_end = min(stop, bisect_right(bounds, bounds[at] + room, lo=at) - 1)
            if piece_end == at and self.batches.uncommitted > 0 and end is None:
                self.batches.commit()
                continue
            count = max(1, piece_end - at)
            self.batches.begin(step)
            self.batches.write(lines.slice(at, count), dates.slice(at, count))
            if end is None:
                self.batches.commit_in_time()
            at += count

    def _complete(self, step: Step | None) -> None:
        """Save the end of the query's range as the last date of the job, if the job has read all events of the range.

        A job that ends earlier, because it has delivered its maximum number of rows, keeps its last date.
        """
        end = self.steps.schedule.end
        if step is not None and step.last and end is not None:
            self.batches.complete(step, end)
