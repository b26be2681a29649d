"""The schedule of a query, and the choice of its next step. The result of `next_step` depends only on its arguments.

A Step contains every value that affects the rows of the step, so a step can be repeated. A response keeps its last step
in memory. A job saves its last step. The rows of all steps of a query are numbered together. `skip` and `limit` count
the rows of all steps together.

A Mark is a position in a table: the end of the table at some moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from svcctl.dates.epochs import seconds_to_ms
from svcctl.service.settings import LAG_TIME

if TYPE_CHECKING:
    from svcctl.service.engines import Mark

LAG_MS = seconds_to_ms(LAG_TIME.default_value)
"""The default value of `lag`: the milliseconds for which a period stays open after its end."""


class StepKind(StrEnum):
    ONCE = "once"
    """The query has a single step over the whole range."""
    ARRIVALS = "arrivals"
    """Each step has the rows that were stored since the previous step. Rows with old dates are included."""
    BUCKETS = "buckets"
    """Each step has the groups of the periods that were closed since the previous step."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The values that determine the steps of a query. Moments are in epoch milliseconds, and durations in milliseconds.

    The last step runs at the moment `due`. If `due` is None, the query never ends. `period` is the length of the
    periods by which the query groups. A period stays open for `lag` after its end.
    """

    kind: StepKind
    start: int
    end: int | None
    due: int | None
    skip: int = 0
    limit: int | None = None
    period: int = 0
    lag: int = LAG_MS
    covered: CoveredEvents | None = None
    """The events that the query leaves out because it continues a job.

    The value is None if the query continues no job.
    """

    def over(self, step: Step | None, rows: int) -> bool:
        """Return whether `step` is the last step of the query.

        `rows` is the number of rows that the query has returned so far.
        """
        return rows == self.limit or (step is not None and step.last)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a query.

    A step reads the rows between the positions `since` and `until` in the table, with dates from `start` to `end`.

    Moments are in epoch milliseconds. `first` is the number of the step's first row, counted from 0 through all steps.
    The step leaves out `skip` rows before its first row. If `since` is None, the step begins with the first row of the
    table. If `until` is None, the step reads all rows that are stored when the step runs. `now` is the value of now()
    in the query. `last` is True for the last step of the query.
    """

    first: int
    skip: int
    since: Mark | None
    until: Mark | None
    start: int
    end: int | None
    now: int
    last: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Step:
        return cls(**source)


@dataclass(frozen=True, slots=True)
class LateEvents:
    """The number of late events that were stored before the position `until`.

    A late event is in no group, because its period was already closed when the event was stored.
    """

    count: int
    until: Mark | None


@dataclass(frozen=True, slots=True)
class CoveredEvents:
    """The events that a job has read. A query that continues the job leaves these events out.

    The job has read all events before the position `since` in the table. Between the positions `since` and `until`, the
    job has read the events dated before `end` (epoch milliseconds). If `end` is None, both positions are the same.
    """

    since: Mark | None
    until: Mark | None
    end: int | None


def covered_after(before: CoveredEvents | None, step: Step) -> CoveredEvents:
    """Return the events that a job has read when `step` has ended.

    `before` has the events that the job has left out, because an earlier job had already read these events.
    """
    if step.end is None:
        return CoveredEvents(step.until, step.until, None)
    return CoveredEvents(before.since if before else None, step.until, step.end)


def next_step(schedule: Schedule, before: Step | None, rows: int, now: int, mark: Mark | None) -> Step | None:
    """Return the step after `before`, at the moment `now`. Return None if there is nothing new or the query is over.

    `rows` is the number of rows that the query has returned so far. `mark` is the position of the present end of the
    table.
    """
    if schedule.over(before, rows):
        return None
    last = schedule.due is not None and now >= schedule.due
    covered = schedule.covered
    first = schedule.start if covered is None or covered.end is None else covered.end
    reached = first if before is None or before.end is None else before.end
    end = schedule.end
    match schedule.kind:
        case StepKind.ONCE:
            news = False
        case StepKind.ARRIVALS:
            news = before is None or mark != before.until
        case StepKind.BUCKETS:
            if not last:
                closed = now - schedule.lag
                end = closed - closed % schedule.period
            news = end is not None and end > reached
    if not (news or last):
        return None
    since = covered.since if covered is not None and schedule.kind is StepKind.BUCKETS else None
    if before is None and covered is not None and schedule.kind is StepKind.ARRIVALS:
        if covered.end is not None and (end is None or covered.end < end):
            # First read the events that were already stored when the earlier job ended, but have later dates than the
            # earlier job has read.
            return Step(rows, 0, covered.since, covered.until, covered.end, end, now, last=False)
        return Step(rows, 0, covered.until, mark, schedule.start, end, now, last)
    if before is None:
        return Step(rows, schedule.skip, since, mark, first, end, now, last)
    if before.skip and rows == before.first:
        # All rows of the step were skipped. The step is repeated with a later end, so that nobody has to count the
        # skipped rows.
        return replace(before, until=mark, end=end, now=now, last=last)
    if schedule.kind is StepKind.ARRIVALS:
        return Step(rows, 0, before.until, mark, schedule.start, end, now, last)
    return Step(rows, 0, since, mark, reached, end, now, last)
