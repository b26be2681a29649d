"""How a job's rows get to its destination: in which batches, and what is saved when.

A job runs the steps of its query one after another. A step returns the same rows in the same order each time it runs,
so after an interruption the job runs its step again and leaves out the rows that were delivered. Rows are numbered
through all steps of a job.

With each batch a job saves the number of rows that were delivered, their latest date, and a checkpoint: the step of the
last row and the memo of the destination. For a destination that `repeats`, it saves before the commit which rows the
batch has; if it is interrupted then, the batch is made again with the same rows before anything else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.api import destinations as api
from svcctl.api import retry
from svcctl.dates.epochs import from_ms
from svcctl.errors import ServiceError, Unavailable
from svcctl.service import rendering
from svcctl.service.allowed_hosts import EVERYTHING, AllowedHosts
from svcctl.service.destinations import Destination, Memo, kinds
from svcctl.service.engines import Engines
from svcctl.service.jobs.checkpoint import Batch, Checkpoint, Rest, StoredQuery
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.runner import Run
from svcctl.service.language import Plan, parse
from svcctl.service.queries.continuous import Steps, period_of
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import Covered, Step, covered
from svcctl.service.rendering import Dates, arrow
from svcctl.service.settings import LAG
from svcctl.service.state.database import StateUnavailable
from svcctl.words import is_secret, json_text, mask_urls

POLL_SECONDS = 0.5
"""How often a job that has delivered everything looks for new events."""
PIECE_BYTES = 1 << 18
"""Rows go to the destination in pieces of about this size, so that a stop takes effect soon."""
POLLS = 600
"""The most times that a job looks for new events while a batch waits for its commit: each look may add a step to the
batch, and the steps of a batch are saved."""
FIRST_SECONDS = 3.0
"""The longest that the first rows after connecting wait for their commit, so that a refusal shows soon."""


class Connect(Protocol):
    """Makes the destination of a job from its type, ID and parameters."""

    def __call__(self, type_: str, job_id: str, params: Mapping[str, Any], /, *, endless: bool) -> Destination: ...


def deliver(
    engines: Engines,
    clock: Callable[[], datetime],
    job: StoredJob,
    run: Run,
    *,
    lag: float = LAG.read({}),
    connect: Connect = kinds.destination,
) -> bool:
    """Deliver a job until it is complete (True) or stopped (False). ServiceError when its query fails.

    A period of its groups is closed `lag` seconds after its end. While the destination does not answer, the delivery is
    retried from the last commit. Unavailable when the state or the query's table cannot be reached: then only the
    stored job tells what was saved last.
    """
    if (rest := Rest.from_json(job.checkpoint)) is not None:
        before = replace(job, id=rest.job_id, type=rest.type, params=rest.params, request=rest.request)
        before = replace(before, sent=rest.sent, last_datetime=rest.last_datetime, checkpoint=rest.checkpoint)

        def keep_rest(sent: int, date: int, checkpoint: Mapping[str, Any]) -> None:
            left = replace(rest, sent=sent, last_datetime=date, checkpoint=checkpoint)
            run.save(0, max(date, job.last_datetime), left.to_json())

        end = _deliver(engines, clock, before, run, keep_rest, lag, connect, only_step=True)
        if end is None:
            return False
        memo = Checkpoint.from_json(end.checkpoint).memo
        memo = kinds.handed_on(memo, (rest.type, rest.params), (job.type, job.params))
        job = replace(job, last_datetime=end.last_datetime, checkpoint=Checkpoint(None, memo).to_json())
        run.save(0, job.last_datetime, job.checkpoint)
        run.generated = 0
    return _deliver(engines, clock, job, run, run.save, lag, connect) is not None


Save = Callable[[int, int, Mapping[str, Any]], None]
"""Saves the progress of a delivery: the rows that were delivered, their latest date, and the checkpoint."""


def _deliver(
    engines: Engines,
    clock: Callable[[], datetime],
    job: StoredJob,
    run: Run,
    save: Save,
    lag: float,
    connect: Connect,
    *,
    only_step: bool = False,
) -> StoredJob | None:
    """Deliver a job, or `only_step` which it had begun, and return it as it is then; None when it was stopped."""
    query = StoredQuery.from_json(job.request)
    if query.mark is not None:
        table = parse(query.asked.query).table
        engines.of(table).stored.check_mark(table, query.mark)
    launched, covered = query.launched, query.covered
    steps = Steps(engines, query.asked, clock, launched=launched, lag=lag, repeatable=True, covered=covered)
    failures, already = 0, job.sent if only_step else 0
    if only_step and _is_whole(engines, steps, job):
        return job
    while not run.stopping.is_set():
        destination = connect(job.type, job.id, job.params, endless=steps.endless)
        delivery = _Delivery(engines, query.asked, steps, job, run, destination, save)
        delivery.only_step, delivery.already = only_step, already
        try:
            with closing(destination):
                return delivery.job if delivery.work() else None
        except StateUnavailable:
            raise
        except Unavailable as error:
            run.accepted = 0
            about = f"job {job.id}, which this one continues: " if only_step else ""
            run.trouble(about + _without_secrets(error.message, job.params))
        failures = 1 if delivery.job.sent > job.sent else failures + 1
        job = delivery.job
        run.generated = job.sent - already
        run.stopping.wait(retry.delay(failures))
    return None


def _is_whole(engines: Engines, steps: Steps, job: StoredJob) -> bool:
    """Whether all rows of the step that a job had begun are delivered; its destination need not answer then."""
    saved = Checkpoint.from_json(job.checkpoint)
    if saved.step is None or saved.batch is not None:
        return saved.batch is None
    step, plan = saved.step, steps.plan(saved.step)
    reader, skip = engines.of(plan.table).reader, job.sent - step.first
    with rendering.stream(reader, plan, ["1"], since=step.since, until=step.until, skip=skip) as stream:
        return not any(batch.num_rows for batch in stream)


def follow(before: StoredJob, after: StoredJob) -> StoredJob:
    """The job `after`, which was just launched, as one that continues `before` where that was stopped.

    It reads what `before` has not read. If both read one table, that is known by its marks, else by its last date.
    """
    query, old = StoredQuery.from_json(after.request), StoredQuery.from_json(before.request)
    rest = Rest.from_json(before.checkpoint)
    if rest is None and before.checkpoint:
        rest = Rest(
            *(before.id, before.type, before.params, before.request, before.sent),
            *(before.last_datetime, before.checkpoint),
        )
    done, start = old.covered, old.asked.range.start
    if rest is not None and rest.job_id == before.id:
        saved = Checkpoint.from_json(rest.checkpoint)
        step = saved.batch.steps[-1] if saved.batch else saved.step
        done = covered(done, step) if step is not None else done
    if parse(old.asked.query).table != parse(query.asked.query).table:
        done, start = None, max(start, from_ms(before.last_datetime))
    asked = replace(query.asked, range=replace(query.asked.range, start=start))
    _check_kinds(old, query, done)
    return replace(
        after,
        request=StoredQuery(asked, query.launched, done, query.mark).to_json(),
        checkpoint={} if rest is None else rest.to_json(),
        last_datetime=before.last_datetime,
    )


def _check_kinds(old: StoredQuery, new: StoredQuery, done: Covered | None) -> None:
    """ServiceError when groups would begin in the middle of what a query of single events has read."""
    before, after = (period_of(parse(one.asked.query)) for one in (old, new))
    if done is not None and done.end is not None and before is None and after is not None:
        raise ServiceError("a query of groups cannot continue one of single events that has an end")


def check(engines: Engines, asked: AskedQuery, now: datetime, allowed: AllowedHosts = EVERYTHING) -> api.Destination:
    """Check that a query can be delivered, and return its destination with the known names of its type and parameters.

    QueryError names what is wrong with the query, ServiceError what is wrong with the type or a parameter, or
    the host that the service may not connect to.
    """
    assert asked.destination is not None
    Steps(engines, asked, lambda: now, launched=now)
    kind = kinds.known_type(asked.destination.type)
    params = {api.known_key(kind, key): value for key, value in asked.destination.params.items()}
    kinds.check(kind, params, endless=asked.range.end is None, allowed=allowed)
    return api.Destination(kind, params)


class _Delivery:
    """One attempt to deliver a job, from its last commit until it is complete or stopped, or the destination fails."""

    def __init__(
        self,
        engines: Engines,
        asked: AskedQuery,
        steps: Steps,
        job: StoredJob,
        run: Run,
        destination: Destination,
        save: Save,
    ) -> None:
        self.job = job
        """The job as it was last saved."""
        self.only_step = False
        """Whether the delivery ends with the step that was begun."""
        self.already = 0
        """The rows that do not count as generated by this run's job, since they are of the one that it continues."""
        self._keep = save
        self._engines = engines
        self._steps = steps
        self._run = run
        self._destination = destination
        self._dates = Dates(asked.date_format, asked.zone)
        saved = Checkpoint.from_json(job.checkpoint) if job.checkpoint else None
        self._step = saved.step if saved else None
        self._memo: Memo = saved.memo if saved else {}
        self._batch = saved.batch if saved else None
        self._saved_late = self._late = saved.late if saved else None
        self._steps_of_batch: list[Step] = []
        self._written = job.sent
        self._date = job.last_datetime
        self._since = 0.0
        self._patience = min(destination.patience, FIRST_SECONDS)

    def work(self) -> bool:
        """Deliver the job until it is complete (True) or stopped (False)."""
        head = self._destination.rows.head(self._steps.shape.columns)
        self._written = self._destination.open(self.job.sent, self._memo, head)
        self._run.generated = self._written - self.already
        if self._written > self.job.sent:
            self._save(self._destination.memo)
        if self._batch is not None and not self._repeat(self._batch):
            return False
        step = due = self._step
        while True:
            if due is not None:
                step = due
                self._read(step)
                if not self._run.stopping.is_set():
                    self._step = step
            self._reach(step)
            if self._run.stopping.is_set():
                self._commit()
                self._save_step()
                return False
            if self.only_step:
                self._commit()
                return True
            if self._steps.over(step, self._written):
                self._commit()
                self._complete(step)
                return True
            due = self._steps.next(step, self._written)
            self._late = self._steps.late_after(step, due, self._written, self._late)
            self._note_late()
            if due is None:
                if self._written == self.job.sent:
                    self._run.recovered()
                waits = max(POLL_SECONDS, self._patience / POLLS) if self._destination.repeats else POLL_SECONDS
                self._run.stopping.wait(waits)
                self._commit_in_time()

    def _repeat(self, batch: Batch) -> bool:
        """Deliver the batch whose commit was begun before, with the same rows; False when the run is stopped."""
        for step in batch.steps:
            self._read(step)
            if self._run.stopping.is_set():
                return False
            self._step = step
        self._batch = None
        self._commit()
        return True

    def _read(self, step: Step) -> None:
        """Deliver the rows of a step, except those that were delivered before."""
        plan = self._steps.plan(step, dated=True)
        with rendering.stream(
            self._engines.of(plan.table).reader,
            plan,
            self._expressions(plan),
            since=step.since,
            until=step.until,
            skip=self._written - step.first,
        ) as stream:
            self._run.interrupt = stream.interrupt
            try:
                if not self._run.stopping.is_set():
                    for batch in stream:
                        self._hand_on(step, *batch.columns)
                        if self._batch is not None and self._written == self._batch.end:
                            break
            except ServiceError:
                if not self._run.stopping.is_set():
                    raise
            finally:
                self._run.interrupt = None

    def _note_late(self) -> None:
        """Show how many events came late; save that number, with its step, when all rows are committed."""
        late, saved = self._late, self._saved_late
        if late is None:
            return
        self._run.late = late.count
        if late.count != (saved.count if saved else 0) and self._written == self.job.sent:
            self._save(self._memo)

    def _reach(self, step: Step | None) -> None:
        """Note how far the job came, when the destination has all rows up to there, and when they are committed."""
        if self._run.stopping.is_set():
            return
        reached = self._steps.reached(step)
        if not self._run.error:  # after a failure only a commit proves that the destination takes rows
            self._run.accepted = max(self._run.accepted, reached)
        if self._written == self.job.sent:
            self._run.reached = max(self._run.reached, reached)

    def _expressions(self, plan: Plan) -> list[str]:
        """The SQL of each row's text, in the format of the destination, and of its date."""
        row = self._destination.rows.text(plan.columns, self._dates)
        return [f"{row} AS line", f"epoch_ms(c{len(plan.columns)}) AS date"]

    def _hand_on(self, step: Step, lines: pa.StringArray, dates: pa.Int64Array) -> None:
        """Write rows to the destination in pieces, each as large as the room that is left in the batch."""
        bounds = arrow.offsets(lines)
        at, stop = 0, len(lines)
        if self._batch is not None:
            stop = min(stop, self._batch.end - self._written)
        while at < stop and not self._run.stopping.is_set():
            room = PIECE_BYTES if self._batch is not None else max(0, min(self._destination.room(), PIECE_BYTES))
            end = min(stop, bisect_right(bounds, bounds[at] + room, lo=at) - 1)
            if end == at and self._written > self.job.sent and self._batch is None:
                self._commit()
                continue
            end = max(end, at + 1)
            self._begin(step)
            piece = dates.slice(at, end - at)
            self._destination.write(lines.slice(at, end - at), self._written, piece)
            self._written += end - at
            self._run.generated = self._written - self.already
            self._date = max(self._date, pc.max(piece).as_py() or 0)
            self._commit_in_time()
            at = end

    def _begin(self, step: Step) -> None:
        """Note the step of the next row. For a destination that `counts`, save it and begin a new batch."""
        if self._destination.counts and step != self._step:
            self._commit()
            self._step = step
            self._save(self._destination.memo)
        if self._written == self.job.sent:
            self._since = monotonic()
            self._steps_of_batch = []
        if not self._steps_of_batch or self._steps_of_batch[-1] != step:
            self._steps_of_batch.append(step)
        self._step = step

    def _commit_in_time(self) -> None:
        waited = self._batch is None and self._written > self.job.sent
        if waited and monotonic() - self._since >= self._patience:
            self._commit()

    def _commit(self) -> None:
        if self._written > self.job.sent:
            self._run.check()
            if self._destination.repeats:
                self._save_batch()
            self._save(self._destination.commit())
            self._patience = self._destination.patience

    def _save_batch(self) -> None:
        """Save which rows the next commit has, and the memo of its preparation, beside what is committed so far.

        The last step may have no rows, but it has closed periods: events are counted as late by it.
        """
        assert self._step is not None
        steps = dict.fromkeys((*self._steps_of_batch, self._step))
        before = Checkpoint.from_json(self.job.checkpoint) if self.job.checkpoint else Checkpoint(None, self._memo)
        memo = {**before.memo, **self._destination.prepare()}
        batch = Batch(self._written, tuple(steps))
        after = replace(before, memo=memo, batch=batch, late=self._late)
        if after == before:
            return
        checkpoint = after.to_json()
        self._keep(self.job.sent, self.job.last_datetime, checkpoint)
        self.job = replace(self.job, checkpoint=checkpoint)

    def _save(self, memo: Memo) -> None:
        assert self._step is not None
        self._memo = memo
        self._saved_late = self._late
        checkpoint = Checkpoint(self._step, memo, late=self._late).to_json()
        self.job = replace(self.job, sent=self._written, last_datetime=self._date, checkpoint=checkpoint)
        self._keep(self._written, self._date, checkpoint)

    def _save_step(self) -> None:
        """Save the last step that was read, also when no row of it was delivered: a job that continues this one begins
        behind it."""
        saved = Checkpoint.from_json(self.job.checkpoint).step if self.job.checkpoint else None
        if self._step is not None and self._step != saved and self._written == self.job.sent:
            self._save(self._memo)

    def _complete(self, step: Step | None) -> None:
        """If the job reached `to`, and not just its limit, `to` becomes its last date."""
        end = self._steps.schedule.end
        if step is not None and step.last and end is not None:
            self._step = step
            self._date = max(self._date, end)
            self._save(self._memo)


def _without_secrets(text: str, params: Mapping[str, Any]) -> str:
    """A destination's error without the secrets among its parameters, and without those in URLs."""
    for key, value in params.items():
        if is_secret(key) and value:
            text = api.without_secret(text, json_text(value))
    return mask_urls(text)
