"""How a job's rows get to its destination: which plans they come from, in what batches, and what is saved when.

A job runs one plan after another, as a continuous query does: rows in the order they are stored, groups every period
when the period is over, everything else once. Each plan is a Step, which holds all that decides its rows (positions,
window, the moment that now() is), so that after an interruption the same rows come again in the same order, and those
that were delivered are left out. Rows are numbered through all of a job's steps.

What is saved with each batch is how many rows were delivered, the step of the last one, and the destination's memo.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from time import monotonic
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from svcctl.api import destinations as api
from svcctl.api.dates import Range
from svcctl.errors import ServiceError, Unavailable
from svcctl.service import destinations
from svcctl.service.destinations import Destination, Memo
from svcctl.service.engines.duckdb import Engine, Stream
from svcctl.service.jobs.jobs import Job, Run
from svcctl.service.language import Plan, compile, parse, tree
from svcctl.service.queries.asked import AskedQuery
from svcctl.service.queries.continuous import GRACE, Buckets, Increments, Once, increments
from svcctl.service.rendering import Rendering

POLL_SECONDS = 0.5
"""How often a job that has delivered everything looks for new events."""
FIRST_DELAY, MAX_DELAY = 0.5, 30.0
"""Seconds until a destination that does not answer is tried again."""
PIECE_BYTES = 1 << 18
"""Rows are handed on in pieces of about this size, so that a stop is heard soon."""

FIRST_SECONDS = 3.0
"""How long the first rows after a connection wait at most: whether the destination takes them should show soon."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Connect(Protocol):
    """What makes a destination of a job's type, ID and parameters."""

    def __call__(self, type_: str, job_id: str, params: Mapping[str, Any], /, *, endless: bool) -> Destination: ...


def deliver(
    engine: Engine,
    clock: Callable[[], datetime],
    job: Job,
    run: Run,
    *,
    connect: Connect = destinations.destination,
) -> bool:
    """Deliver a job until it is complete, or stopped (False). ServiceError when its query cannot go on.

    While the destination does not answer, it is tried again and again, from what it has committed.
    """
    steps = Steps(engine, to_query(job.request), clock)
    delay = 0.0
    while not run.stopping.is_set():
        destination = connect(job.type, job.id, job.params, endless=steps.endless)
        delivery = _Delivery(engine, steps, job, run, destination)
        try:
            with closing(destination):
                return delivery.work()
        except Unavailable as error:
            run.trouble(_without_secrets(error.message, job.params))
        delay = FIRST_DELAY if delivery.job.sent > job.sent else min(max(delay * 2, FIRST_DELAY), MAX_DELAY)
        job = delivery.job
        run.generated = job.sent
        run.stopping.wait(delay)
    return False


def check(engine: Engine, asked: AskedQuery, now: datetime) -> api.Destination:
    """A query's destination, with the name that its type has here.

    QueryError, or ServiceError for type and parameters, when it could never be delivered.
    """
    assert asked.destination is not None
    increments(engine, asked, lambda: now)
    kind, params = destinations.known_type(asked.destination.type), asked.destination.params
    destinations.destination(kind, "", params, endless=asked.range.end is None)
    return api.Destination(kind, params)


def to_request(asked: AskedQuery, launched: datetime) -> dict[str, Any]:
    """A query as a job stores it."""
    end = asked.range.end
    return {
        "query": asked.query,
        "from": _ms(asked.range.start),
        "to": None if end is None else _ms(end),
        "zone": asked.zone.utcoffset(None) // timedelta(minutes=1),
        "dateFormat": asked.date_format,
        "skip": asked.skip,
        "limit": asked.limit,
        "launched": _ms(launched),
    }


@dataclass(frozen=True, slots=True)
class Request:
    """The query of a job, and when it was launched: what was the future then is waited for."""

    asked: AskedQuery
    launched: datetime


def to_query(request: Mapping[str, Any]) -> Request:
    """What `to_request` made."""
    window = Range(_moment(request["from"]), None if request["to"] is None else _moment(request["to"]))
    asked = AskedQuery(
        query=request["query"],
        range=window,
        mode="csv",
        date_format=request["dateFormat"],
        zone=timezone(timedelta(minutes=request["zone"])),
        skip=request["skip"],
        limit=request["limit"],
    )
    return Request(asked, _moment(request["launched"]))


@dataclass(frozen=True, slots=True)
class Step:
    """One plan of a job. Moments are in epoch milliseconds; `end` is None for a window without one.

    `first` rows of the job come before it. `skip` rows of its own are left out, because the query has an offset.
    """

    first: int
    skip: int
    stored: tuple[int, int]
    start: int
    end: int | None
    now: int
    last: bool

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Step:
        return cls(**{**source, "stored": tuple(source["stored"])})


class Steps:
    """The plans of a job: which comes after which, and what each is in SQL."""

    def __init__(self, engine: Engine, request: Request, clock: Callable[[], datetime]) -> None:
        self._engine = engine
        self._clock = clock
        self._asked = asked = request.asked
        self._launched = request.launched
        self._query = parse(asked.query)
        self._kind: Increments = increments(engine, asked, lambda: request.launched)
        self.shape = self._kind.shape
        self._skip, self._limit = asked.skip, asked.limit
        self._period = max(
            (timedelta(seconds=group.every or 0) for group in self._query.clauses if isinstance(group, tree.Group)),
            default=timedelta(),
        )
        if not isinstance(self._kind, Once):
            # The bounds stand last, or `increments` would have refused the query: so they count over all steps.
            clauses = self._query.clauses
            self._skip += sum(clause.count for clause in clauses if isinstance(clause, tree.Offset))
            limits = [max(0, clause.count - asked.skip) for clause in clauses if isinstance(clause, tree.Limit)]
            self._limit = min([*limits, *([] if asked.limit is None else [asked.limit])], default=None)
            kept = tuple(clause for clause in clauses if not isinstance(clause, tree.Limit | tree.Offset))
            self._query = replace(self._query, clauses=kept)

    @property
    def endless(self) -> bool:
        return self._asked.range.end is None

    @property
    def end(self) -> int | None:
        return None if self._asked.range.end is None else _ms(self._asked.range.end)

    def over(self, step: Step | None, rows: int) -> bool:
        """Whether no step comes after this one, when the job has had so many rows."""
        return (step is not None and step.last) or rows == self._limit

    def next(self, before: Step | None, rows: int) -> Step | None:
        """The step after `before`, when the job has had `rows` rows; None while there is nothing to do."""
        now, end = self._clock(), self._asked.range.end
        over = end is not None and now >= (end if end <= self._launched else end + GRACE)
        stored = self._engine.size(self._query.table)
        start = self._asked.range.start
        step = Step(rows, self._skip, (0, stored), _ms(start), self.end, _ms(now), over)
        if isinstance(self._kind, Once):
            return step if over else None
        closed = start
        if isinstance(self._kind, Buckets):
            closed = end if over and end is not None else (now - GRACE) - (now - GRACE - _EPOCH) % self._period
            step = replace(step, end=_ms(closed))
        if isinstance(self._kind, Buckets):
            news = closed > (start if before is None else _moment(before.end or 0))
        else:
            news = stored > (0 if before is None else before.stored[1])
        if before is None or not (news or over):
            return step if news or over else None
        if before.skip and rows == before.first:
            # A step that only skipped is begun again and reaches further, so that nobody has to count what it skipped.
            return replace(step, skip=before.skip, start=before.start, stored=(before.stored[0], stored))
        if isinstance(self._kind, Buckets):
            return replace(step, skip=0, start=before.end or before.start)
        return replace(step, skip=0, stored=(before.stored[1], stored))

    def plan(self, step: Step) -> Plan:
        return compile(
            self._query,
            self._engine.tables(),
            start=_moment(step.start),
            end=None if step.end is None else _moment(step.end),
            now=_moment(step.now),
            zone=self._asked.zone,
            skip=step.skip,
            limit=None if self._limit is None else self._limit - step.first,
            arrived=step.stored,
            dated=True,
        )

    def rendering(self) -> Rendering:
        return Rendering("", 0, self.shape.table, date_format=self._asked.date_format, zone=self._asked.zone)


class _Delivery:
    """One way from a job's last commit to its end, to a stop, or to a failure of the destination."""

    def __init__(self, engine: Engine, steps: Steps, job: Job, run: Run, destination: Destination) -> None:
        self.job = job
        """As it was last saved."""
        self._engine = engine
        self._steps = steps
        self._run = run
        self._destination = destination
        self._encoder = destination.lines(steps.shape.columns, steps.rendering())
        self._step = Step.from_json(job.checkpoint["step"]) if job.checkpoint else None
        self._written = job.sent
        self._date = job.last_datetime
        self._since = 0.0
        self._patience = min(destination.patience, FIRST_SECONDS)

    def work(self) -> bool:
        """True when all of the job is delivered."""
        memo = self.job.checkpoint.get("memo", {})
        self._written = self._run.generated = self._destination.open(self.job.sent, memo, self._encoder.head())
        if self._written > self.job.sent:
            self._save(self._destination.memo)
        step = due = self._step
        while True:
            if due is not None:
                step = due
                self._read(step)
            if self._run.stopping.is_set():
                self._commit()
                return False
            if self._steps.over(step, self._written):
                self._commit()
                self._complete(step)
                return True
            due = self._steps.next(step, self._written)
            if due is None:
                self._run.stopping.wait(POLL_SECONDS)
                self._commit_in_time()

    def _read(self, step: Step) -> None:
        """Hand on the rows of a step, but for those that were before."""
        with self._engine.stream(self._sql(self._steps.plan(step), self._written - step.first)) as stream:
            self._run.interrupt = partial(_interrupt, stream)
            try:
                if not self._run.stopping.is_set():
                    for batch in stream:
                        self._hand_on(step, *batch.columns)
            except ServiceError:
                if not self._run.stopping.is_set():
                    raise
            finally:
                self._run.interrupt = None

    def _sql(self, plan: Plan, done: int) -> str:
        """Each row as the destination takes it, and its date."""
        names = ", ".join(f"c{index}" for index in range(len(plan.columns)))
        rows = f"SELECT * FROM ({plan.sql('duckdb')}) OFFSET {done}" if done else plan.sql("duckdb")
        row = ", ".join(self._encoder.row())
        return f"SELECT concat({row}) AS line, epoch_ms(date) AS date FROM ({rows}) AS plan({names}, date)"

    def _hand_on(self, step: Step, lines: pa.StringArray, dates: pa.Int64Array) -> None:
        """Rows in pieces, each as large as the batch at the destination still takes."""
        bounds = memoryview(lines.buffers()[1]).cast("i")[lines.offset : lines.offset + len(lines) + 1]
        at = 0
        while at < len(lines) and not self._run.stopping.is_set():
            room = max(0, min(self._destination.room(), PIECE_BYTES))
            end = bisect_right(bounds, bounds[at] + room, lo=at) - 1
            if end == at and self._written > self.job.sent:
                self._commit()
                continue
            end = max(end, at + 1)
            self._begin(step)
            self._destination.write(lines.slice(at, end - at), self._written)
            self._written += end - at
            self._run.generated = self._written
            self._date = max(self._date, pc.max(dates.slice(at, end - at)).as_py() or 0)
            self._commit_in_time()
            at = end

    def _begin(self, step: Step) -> None:
        """Before a row: note whose it is; where the destination counts rows, in the store and in a batch of its own."""
        if self._destination.counts and step != self._step:
            self._commit()
            self._step = step
            self._save(self._destination.memo)
        if self._written == self.job.sent:
            self._since = monotonic()
        self._step = step

    def _commit_in_time(self) -> None:
        if self._written > self.job.sent and monotonic() - self._since >= self._patience:
            self._commit()

    def _commit(self) -> None:
        if self._written > self.job.sent:
            self._save(self._destination.commit())
            self._patience = self._destination.patience

    def _save(self, memo: Memo) -> None:
        assert self._step is not None
        checkpoint = {"step": asdict(self._step), "memo": memo}
        self.job = replace(self.job, sent=self._written, last_datetime=self._date, checkpoint=checkpoint)
        self._run.save(self._written, self._date, checkpoint)

    def _complete(self, step: Step | None) -> None:
        """The job has reached its end, and not only its limit: then that is the last moment it stands for."""
        if step is not None and step.last and self._steps.end is not None:
            self._step = step
            self._date = max(self._date, self._steps.end)
            self._save(self.job.checkpoint.get("memo", {}))


def _interrupt(stream: Stream) -> None:
    with suppress(duckdb.Error):  # it may have ended in this moment
        stream.interrupt()


def _without_secrets(text: str, params: Mapping[str, Any]) -> str:
    for key, value in params.items():
        if api.is_secret(key) and value:
            text = text.replace(str(value), api.REDACTED)
    return text


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
