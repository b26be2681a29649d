"""The rows that a job has delivered, produced again from the log of its query steps.

A step returns the same rows in the same order each time it runs, if all events of the step are still in the table. The
log has an entry for each step with rows. This entry says how many rows of the step were delivered. If the step now
returns more or fewer rows, the delivery has a fault.

Steps without rows have no entry in the log. The check must prove that these steps still have no rows. So their events
are read together with the events of the next step that has an entry. This is possible under three conditions:
- The steps read events in the order of their arrival.
- The steps have the same range of dates.
- The rows do not depend on now().
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.api.destinations import TYPES
from svcctl.dates.epochs import from_ms
from svcctl.errors import SvcctlError, Unavailable
from svcctl.service import rendering
from svcctl.service.engines import Engines, Stream
from svcctl.service.jobs.checkpoint import Rest
from svcctl.service.jobs.step_log import StepEntry
from svcctl.service.language import Plan
from svcctl.service.queries.continuous import Steps
from svcctl.service.queries.schedule import Step, StepKind
from svcctl.service.rendering import DateStyle
from svcctl.service.rendering.rows import ARRAY, CSV, OBJECT, RowFormat
from svcctl.service.verification import DeliveryFinding, ExpectedRows, FaultKind, earliest, latest

REMOVED = "events of its range were removed since"


@dataclass
class Production:
    """Produces the rows of a job again, from `first` (included) to `sent` (not included).

    `whole` is true if all rows of the last query step were delivered. The function `stopped` returns True when the
    check is stopped.
    """

    engines: Engines
    job: Rest
    first: int
    sent: int
    whole: bool
    stopped: Callable[[], bool]
    faults: list[DeliveryFinding] = field(default_factory=list)
    """The faults of the delivery itself: a step has more or fewer rows than the job has delivered.

    Rows that were not delivered have no numbers of their own. In a fault, they are numbered as if they followed the
    last delivered row of the step.
    """
    first_date: int | None = None
    """The date of the first row in epoch milliseconds. It is None until this row is produced."""
    _stream: Stream | None = None
    _uses_now: bool | None = None

    def interrupt(self) -> None:
        """Ask the engine to stop soon. May be called from any thread.

        If a statement is just starting, the engine may miss the call.
        """
        if (stream := self._stream) is not None:
            stream.interrupt()

    def rows(self, entries: Iterable[StepEntry]) -> Iterator[ExpectedRows]:
        """Produce the rows in order and without a gap. `entries` are the log entries of the query steps.

        Raises Unavailable if the table cannot be read, or if events of the table are removed meanwhile.
        """
        try:
            steps = self._steps()
        except Unavailable:
            raise
        except SvcctlError as error:
            yield ExpectedRows(self.first, self.sent, reason=error.message)
            return
        before: StepEntry | None = None
        for entry, following in pairwise(chain(entries, [None])):
            if self.stopped():
                return
            if entry is not None and entry.step is not None:
                end, whole = (self.sent, self.whole) if following is None else (following.first, True)
                if end > max(self.first, entry.first):
                    step = self._joined(steps, before, entry.step)
                    yield from self._of_step(steps, step, entry.first, end, whole=whole)
                before = entry

    def header(self) -> bytes | None:
        """Return the line with which each file of the job begins. Return None for Kafka, or if the table is lost.

        Raises Unavailable if the table cannot be read.
        """
        if self.job.type == "kafka":
            return None
        try:
            return _row_format(self.job).head(self._steps().shape.columns)
        except Unavailable:
            raise
        except SvcctlError:
            return None

    def _steps(self) -> Steps:
        query = self.job.request
        return Steps(
            self.engines,
            query.asked,
            lambda: query.launched,
            launched=query.launched,
            repeatable=True,
            covered=query.covered,
            columns=query.columns,
        )

    def _joined(self, steps: Steps, before: StepEntry | None, step: Step) -> Step:
        """Return a copy of `step` that also reads the events of the preceding steps without rows.

        If the events cannot be read together, return `step` unchanged. `before` is the previous entry of the log.
        """
        if steps.schedule.kind is not StepKind.ARRIVALS or (before is None and step.first > 0):
            return step
        if before is None:
            covered = steps.schedule.covered
            since = None if covered is None else covered.until
            if covered is not None and covered.end is not None:
                return step
        else:
            assert before.step is not None
            since = before.step.until
            if (before.step.start, before.step.end) != (step.start, step.end):
                return step
        if since == step.since or self._depends_on_now(steps, step):
            return step
        return replace(step, since=since)

    def _depends_on_now(self, steps: Steps, step: Step) -> bool:
        """Whether the rows of a step depend on the value of now()."""
        if self._uses_now is None:
            self._uses_now = steps.plan(replace(step, now=0)).select != steps.plan(step).select
        return self._uses_now

    def _of_step(self, steps: Steps, step: Step, start: int, end: int, *, whole: bool) -> Iterator[ExpectedRows]:
        """Yield the rows of a step with numbers below `end`. The first row of the step has the number `start`.

        If `whole` is true, the job has delivered all rows of the step. Then the step should have no more rows, and each
        further row is a fault.
        """
        first = max(self.first, start)
        try:
            plan = steps.plan(step, dated=True)
            removed = self._has_removed(plan, step)
            if removed and not (whole and self._is_complete(plan, step, end - start)):
                yield ExpectedRows(first, end, reason=REMOVED)
                return
        except Unavailable:
            raise
        except SvcctlError as error:  # the table was replaced, moved or lost, or no longer fits the query
            yield ExpectedRows(first, end, reason=error.message)
            return
        at, extra, extra_dates = first, 0, list[int | None]()
        for lines, dates in self._batches(plan, step, self._expressions(plan), first - start):
            left, part_end = end - at, min(end, at + len(lines))
            if at == self.first and self.first_date is None:
                self.first_date = dates[0].as_py()
            if left > 0:
                yield ExpectedRows(at, part_end, lines.slice(0, left), dates.slice(0, left), exact=plan.by_event)
            elif not whole:
                break
            at = part_end
            if whole and len(lines) > left:
                extra += len(lines) - left
                limits = pc.min_max(dates.slice(left))
                extra_dates += [limits["min"].as_py(), limits["max"].as_py()]
        if self.stopped():
            return
        if not removed and self._has_removed(plan, step):
            raise Unavailable(f"events of table '{plan.table}' were removed meanwhile; check the job again")
        if extra:
            limits = earliest(*extra_dates), latest(*extra_dates)
            self.faults.append(DeliveryFinding(FaultKind.MISSING, end, end + extra, None, None, None, *limits))
        if at < end:
            self.faults.append(DeliveryFinding(FaultKind.FOREIGN, at, end))
            yield ExpectedRows(at, end, reason="its step has fewer rows")

    def _has_removed(self, plan: Plan, step: Step) -> bool:
        stored = self.engines.of(plan.table).stored
        return stored.has_removed(plan.table, step.since, step.until, from_ms(step.start).replace(tzinfo=None))

    def _is_complete(self, plan: Plan, step: Step, rows: int) -> bool:
        """Whether a step still has all of its rows after events were removed. `rows` is the expected number of rows.

        If a row of the step may come from several events, the result is False.
        """
        return plan.by_event and rows == sum(len(numbers) for (numbers,) in self._batches(plan, step, ["1"], 0))

    def _batches(self, plan: Plan, step: Step, expressions: list[str], skip: int) -> Iterator[list[pa.Array]]:
        """Yield the columns of each batch of a step's rows. Ends early when the check is stopped."""
        reader = self.engines.of(plan.table).reader
        with rendering.stream(reader, plan, expressions, since=step.since, until=step.until, skip=skip) as stream:
            self._stream = stream
            try:
                for batch in stream:
                    if self.stopped():
                        return
                    yield batch.columns
            except SvcctlError:
                if not self.stopped():
                    raise
            finally:
                self._stream = None

    def _expressions(self, plan: Plan) -> list[str]:
        asked = self.job.request.asked
        row = _row_format(self.job).text(plan.columns, DateStyle(asked.date_format, asked.zone))
        return [f"{row} AS line", f"epoch_ms(c{len(plan.columns)}) AS date"]


def _row_format(job: Rest) -> RowFormat:
    """Return the format of rows at the destination of a job. The page `help destinations` documents these formats."""
    if job.type != "kafka":
        return CSV
    [mode] = [parameter for parameter in TYPES[job.type].parameters if parameter.key == "mode"]
    return ARRAY if str(job.params.get("mode") or mode.default).lower() == "array" else OBJECT
