"""Continuous queries. A query is answered in steps, and each step is one plan that reads some of the events.

A query with a range in the past has a single step. A query without `to`, or with `to` in the future, has a step
whenever there are new results. If the query does not group, rows are returned soon after the events are stored. If the
query groups by periods, the groups of a period are returned when the period is closed. If the query groups in another
way, the groups are returned at `to`.

A query uses the columns that its table had at the first step. So `*` does not include columns that later loads add. If
a later load changes a column to a wider type, a job uses the new type from its next step on. A response ends with an
error instead, because the response has already stated the old type.

A period is closed `lag` seconds after its end. Events of the period that are stored after this moment are in no group.
`late_after` counts these late events if the events match the query.

The module `schedule` chooses the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from svcctl.dates.epochs import MILLISECOND, from_ms, seconds_to_ms, to_ms
from svcctl.errors import NotFound, ServiceError
from svcctl.service.engines import Engine, Engines, Mark, Reader
from svcctl.service.engines.table_rules import replaced, widened
from svcctl.service.language import Plan, QueryError, compile, parse, tree
from svcctl.service.language.types import Catalog
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import CoveredEvents, LateEvents, Schedule, Step, StepKind, next_step
from svcctl.service.settings import LAG_TIME

RANGE_GRACE = timedelta(seconds=2)
"""The time that a query waits after the end of its range.

Events of the range that are stored within this time are still included.
"""
LATE_MS = 2000
"""The minimum interval, in milliseconds, between two counts of late events.

Late events are events that are stored after their period was closed. When another period is closed, late events are
counted at once, even within this interval.
"""


class Steps:
    """The steps of a query, and the plan of each step on the engine that has the query's table.

    `launched` is the moment of the request. If the range ends after this moment, the last step waits for the end of the
    range. `complete` is true if the table gets no more events. The query then does not wait for the end of the range.

    If the query is `repeatable`, a step returns the same rows in the same order each time the step runs. A period is
    closed `lag` seconds after its end. If the query continues a job, the query leaves out the events in `covered`,
    which the job has read.

    `columns` are the names of the columns that the table had at the first step. If `columns` is None, the query uses
    the table's present columns. The constructor raises QueryError if the query cannot run, or if the query needs an end
    and has none.
    """

    def __init__(
        self,
        engines: Engines,
        request: AskedQuery,
        clock: Callable[[], datetime],
        *,
        launched: datetime,
        lag: float = LAG_TIME.default_value,
        repeatable: bool = False,
        complete: bool = False,
        covered: CoveredEvents | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.columns = columns
        """The names of the table's columns that the query can use. The value is None until the table is found."""
        self._repeatable = repeatable
        self._engines = engines
        self._clock = clock
        self._zone = request.zone
        self._query, self.schedule = _schedule_of(
            parse(request.query), request, launched, seconds_to_ms(lag), covered, complete=complete
        )
        self._looked = 0
        self._last: Step | None = None
        """The step that the last call of `next` returned, or the argument `before` if the call returned None."""
        self._mark: Mark | None = None
        """The position of the end of the table at the last call of `next`."""
        self._counted = 0
        self._marked = repeatable or self.schedule.kind is not StepKind.ONCE
        self._launched = to_ms(launched)
        self._planned: tuple[tuple[Step, bool, int], Plan, Catalog] | None = None
        start, end = self.schedule.start, self.schedule.end
        # If the range is over, this is the only step of the query, so its plan is made only once.
        first = Step(0, self.schedule.skip, None, None, start, end, self._launched, self._at_once)
        self.shape = self.plan(first)
        """The plan of the first step. Every step has the same table and columns."""

    @property
    def _engine(self) -> Engine:
        """The engine that has the query's table now. The table may move to another engine between two steps."""
        return self._engines.of(self._query.table)

    @property
    def reader(self) -> Reader:
        """The object that reads the query's table."""
        return self._engine.reader

    @property
    def _at_once(self) -> bool:
        """Whether the range of the query was already over at the time of the request."""
        return (
            self.schedule.kind is StepKind.ONCE
            and self.schedule.due is not None
            and self.schedule.due <= self._launched
        )

    @property
    def endless(self) -> bool:
        return self.schedule.end is None

    def over(self, step: Step | None, rows: int) -> bool:
        """Return whether `step` is the last step of the query.

        `rows` is the number of rows that the query has returned so far.
        """
        return self.schedule.over(step, rows)

    def next(self, before: Step | None, rows: int) -> Step | None:
        """Return the step after `before`. Return None if there is nothing new.

        `rows` is the number of rows that the query has returned so far.
        """
        # Read the clock first and the end of the table afterwards. The last step must have all rows that are stored
        # before the moment `due`.
        now = self._launched if self._at_once else to_ms(self._clock())
        mark = self._engine.stored.mark(self._query.table) if self._marked else None
        read = self.schedule.covered if before is None else before
        if read is not None and read.until is not None and read.until != mark:
            self._engine.stored.check_mark(self._query.table, read.until)
        self._looked, self._mark = now, mark
        step = next_step(self.schedule, before, rows, now, mark)
        self._last = before if step is None else step
        return step

    def late_after(
        self, before: Step | None, step: Step | None, rows: int, late: LateEvents | None
    ) -> LateEvents | None:
        """Count the late events up to now. Return None before the first period is closed.

        A late event was stored after its period was closed. Call this method after `next(before, rows)` has returned
        `step`. `late` is the result of the previous call. Events are counted when a period is closed, and otherwise
        at most once in LATE_MS.
        """
        if self.schedule.kind is not StepKind.BUCKETS or before is None or (before.skip and rows == before.first):
            # If all rows of a step are skipped, the step is repeated with a later end, and closes no period.
            return late
        late = late or LateEvents(0, before.until)
        if self._mark == late.until or (step is None and self._looked < self._counted + LATE_MS):
            return late
        self._counted = self._looked
        return LateEvents(late.count + self._count(before, late.until, self._mark), self._mark)

    def _count(self, before: Step, since: Mark | None, until: Mark | None) -> int:
        """Count the late events that were stored between two positions.

        Late events are dated before the end of the step `before`, so their periods are already closed.
        """
        assert before.end is not None
        plan = compile(
            _count_query(self._query),
            self._with_first_columns(self._tables()),
            dialect=self._engine.reader.dialect,
            start=from_ms(self.schedule.start),
            end=from_ms(before.end),
            now=from_ms(before.now),
            zone=self._zone,
        )
        with self._engine.reader.stream(plan, since=since, until=until) as stream:
            return sum(sum(batch.column(0).to_pylist()) for batch in stream)

    def read_up_to(self, step: Step | None) -> int:
        """Return the moment up to which the query has read all events, in epoch milliseconds.

        `step` is the last step that was read. The result is 0 if the moment is unknown.
        - If the query groups by periods, the moment is the end of `step`.
        - If the query returns rows in several steps, the moment is the time of the last call of `next`, but at most the
          end of the range. If this call returned a later step than `step`, the moment is unknown.
        - If the query has a single step, the moment is unknown.
        """
        match self.schedule.kind:
            case StepKind.ARRIVALS if step != self._last:
                return 0
            case StepKind.ARRIVALS:
                return self._looked if self.schedule.end is None else min(self._looked, self.schedule.end)
            case StepKind.BUCKETS:
                return 0 if step is None or step.end is None else step.end
        return 0

    def plan(self, step: Step, *, dated: bool = False) -> Plan:
        """Compile the plan of a step. With `dated`, the plan has an additional column with the date of each row.

        Raises ServiceError if the table was replaced by a table with other columns. If the type of a column has changed
        since the previous step, a `repeatable` query uses the new type, and any other query raises ServiceError.
        """
        tables = self._tables()
        key = step, dated, id(tables)  # a write may have changed the columns or the order of a table
        if self._planned is not None and self._planned[0] == key:
            return self._planned[1]
        limit = self.schedule.limit
        plan = compile(
            self._query,
            self._with_first_columns(tables),
            dialect=self._engine.reader.dialect,
            start=from_ms(step.start),
            end=None if step.end is None else from_ms(step.end),
            now=from_ms(step.now),
            zone=self._zone,
            skip=step.skip,
            limit=None if limit is None else limit - step.first,
            dated=dated,
        )
        if self._planned is not None and (before := self._planned[1].columns) != plan.columns:
            if [column.name for column in before] != [column.name for column in plan.columns]:
                raise replaced(self._query.table)
            if not self._repeatable:
                raise widened(self._query.table)
        self._planned = key, plan, tables
        return plan

    def _with_first_columns(self, tables: Catalog) -> Catalog:
        """Return the catalog without the columns that were added to the query's table after the first step."""
        table = tables.get(self._query.table)
        if table is None:
            return tables
        if self.columns is None:
            self.columns = [column.name for column in table.columns]
        names = {*self.columns}
        return {
            **tables,
            table.name: replace(table, columns=tuple(column for column in table.columns if column.name in names)),
        }

    def _tables(self) -> Catalog:
        """Return the tables of the engine that has the query's table.

        If this engine has lost the table, return the tables of all engines. Raises Unavailable if the query's table
        cannot be read.
        """
        name = self._query.table
        tables = self._engine.stored.tables()
        if name in tables:
            return tables
        tables = self._engines.tables()
        try:
            return {**tables, name: self._engines.table(name)}
        except NotFound:
            return tables


def _schedule_of(
    query: tree.Query,
    request: AskedQuery,
    launched: datetime,
    lag: int,
    covered: CoveredEvents | None,
    *,
    complete: bool,
) -> tuple[tree.Query, Schedule]:
    """Return the query that each step runs, and the schedule of the steps.

    If there are several steps, the limits and offsets are moved from the query to the schedule, because they count the
    rows of all steps together.
    """
    start, end = to_ms(request.range.start), request.range.end
    over = end is not None and (complete or end <= launched)
    due = None if end is None else min(to_ms(end), to_ms(launched)) if over else to_ms(end) + RANGE_GRACE // MILLISECOND
    once = Schedule(
        StepKind.ONCE, start, None if end is None else to_ms(end), due, request.skip, request.limit, covered=covered
    )
    if over and covered is None:
        return query, once
    groups = [clause for clause in query.clauses if isinstance(clause, tree.Group)]
    seconds = period_of(query)
    if groups and seconds is None:
        if end is None:
            raise QueryError(
                "a query without an end cannot group like this: the groups would never be complete",
                groups[-1].at,
                hint="group once, with every, or give the query an end",
                reason="endless-groups",
            )
        if request.continues is not None:
            raise QueryError("groups over the whole range cannot continue another query", groups[-1].at)
        return query, once
    query, limit, offset = _without_bounds(query)
    if request.continues is not None and offset + request.skip:
        raise ServiceError("a query that leaves out rows cannot continue another one")
    limits = [] if limit is None else [max(0, limit - request.skip)]
    limits += [] if request.limit is None else [request.limit]
    schedule = replace(once, kind=StepKind.ARRIVALS, skip=offset + request.skip, limit=min(limits, default=None))
    if seconds is not None:
        schedule = replace(schedule, kind=StepKind.BUCKETS, period=seconds * 1000, lag=lag)
    return query, schedule


def period_of(query: tree.Query) -> int | None:
    """Return the length, in seconds, of the periods by which a query groups.

    Return None if the query does not group by periods.
    """
    groups = [clause for clause in query.clauses if isinstance(clause, tree.Group)]
    return groups[0].every if len(groups) == 1 else None


def _count_query(query: tree.Query) -> tree.Query:
    """Return a query that counts the events that `query` would put into groups."""
    at = next(at for at, clause in enumerate(query.clauses) if isinstance(clause, tree.Group))
    whole = (tree.Group(None, ()), tree.Select((tree.Item(tree.Call("count", ())),)))
    return replace(query, clauses=(*query.clauses[:at], *whole))


def _without_bounds(query: tree.Query) -> tuple[tree.Query, int | None, int]:
    """Remove the limits and offsets at the end of a query. Return the shorter query, a limit and an offset.

    The limit is the lowest of the removed limits, or None. The offset is the sum of the removed offsets. Raises
    QueryError if a limit or an offset is elsewhere in the query.
    """
    clauses = list(query.clauses)
    limit: int | None = None
    offset = 0
    while clauses:
        match clauses[-1]:
            case tree.Offset(count):
                offset += count
            case tree.Limit(count):
                limit = count if limit is None else min(limit, count)
            case _:
                break
        clauses.pop()
    for clause in clauses:
        if isinstance(clause, tree.Limit | tree.Offset):
            raise QueryError("in a continuous query, limit and offset must come last", clause.at)
    return replace(query, clauses=tuple(clauses)), limit, offset
