"""Queries whose range is not over: the plans they run one after another as events arrive.

A query without `to`, or with one in the future, is answered in increments. Rows are delivered as they are stored (by
their position in the table, so that a late event is not missed); groups every period when the period is over; other
groups when `to` is reached. `limit` and `offset` count over the whole answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

import pyarrow as pa

from svcctl.service.engines.duckdb import Engine
from svcctl.service.language import Plan, QueryError, compile, parse, tree
from svcctl.service.queries.asked import AskedQuery

GRACE = timedelta(seconds=2)
"""How long after its end a window is still open for events that are stored late."""


class Increments(Protocol):
    """`poll` gives the next plan to run, or None while there is nothing to do; `done` says that none will come."""

    done: bool
    shape: Plan
    """A plan with the columns and the table of all of them."""

    def poll(self) -> Plan | None: ...
    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...


def increments(engine: Engine, asked: AskedQuery, clock: Callable[[], datetime]) -> Increments:
    """How a query is answered. QueryError when the query cannot run, or cannot run without an end."""
    query = parse(asked.query)
    end = asked.range.end
    if end is not None and end <= clock():
        return Once(engine, query, asked, clock)
    groups = [clause for clause in query.clauses if isinstance(clause, tree.Group)]
    if not groups:
        return Arrivals(engine, query, asked, clock)
    if len(groups) == 1 and groups[0].every is not None:
        return Buckets(engine, query, asked, clock, timedelta(seconds=groups[0].every))
    if end is None:
        raise QueryError(
            "a query without an end cannot group like this: the groups would never be complete",
            groups[-1].at,
            hint="group once, with every, or give the query a to",
        )
    return Once(engine, query, asked, clock, due=end + GRACE)


class Once:
    """The whole answer by one plan, at once or when its range is over."""

    def __init__(
        self,
        engine: Engine,
        query: tree.Query,
        asked: AskedQuery,
        clock: Callable[[], datetime],
        due: datetime | None = None,
    ) -> None:
        self.done = False
        self._due = due
        self._clock = clock
        self._make = partial(_plan, engine, query, asked, clock, skip=asked.skip, limit=asked.limit)
        self.shape = self._make()

    def poll(self) -> Plan | None:
        if self.done or (self._due is not None and self._clock() < self._due):
            return None
        self.done = True
        return self.shape if self._due is None else self._make()

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch


class _Counted:
    """What increments of a live query share: a skip and a limit that count over all of them."""

    def __init__(self, engine: Engine, query: tree.Query, asked: AskedQuery, clock: Callable[[], datetime]) -> None:
        self.done = False
        self._engine = engine
        self._asked = asked
        self._clock = clock
        clauses, limit, skip = _without_bounds(query)
        self._query = replace(query, clauses=clauses)
        self._skip = skip + asked.skip
        limits = [
            bound for bound in (None if limit is None else max(0, limit - asked.skip), asked.limit) if bound is not None
        ]
        self._left = min(limits) if limits else None
        self.done = self._left == 0

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that skip and limit let through."""
        skipped = min(self._skip, batch.num_rows)
        self._skip -= skipped
        taken = batch.slice(skipped, self._left)
        if self._left is not None:
            self._left -= taken.num_rows
            self.done = self.done or self._left == 0
        return taken


class Arrivals(_Counted):
    """Rows as they are stored."""

    def __init__(self, engine: Engine, query: tree.Query, asked: AskedQuery, clock: Callable[[], datetime]) -> None:
        super().__init__(engine, query, asked, clock)
        self._seen = 0
        self.shape = self._plan((0, 0))

    def poll(self) -> Plan | None:
        if self.done:
            return None
        end = self._asked.range.end
        over = end is not None and self._clock() >= end + GRACE
        stored = self._engine.size(self._query.table)
        self.done = over
        if stored == self._seen:
            return None
        plan = self._plan((self._seen, stored))
        self._seen = stored
        return plan

    def _plan(self, arrived: tuple[int, int]) -> Plan:
        return _plan(self._engine, self._query, self._asked, self._clock, arrived=arrived)


class Buckets(_Counted):
    """Groups of a period, each when its period is over."""

    def __init__(
        self,
        engine: Engine,
        query: tree.Query,
        asked: AskedQuery,
        clock: Callable[[], datetime],
        period: timedelta,
    ) -> None:
        super().__init__(engine, query, asked, clock)
        self._period = period
        self._from = asked.range.start
        self.shape = self._plan(self._from)

    def poll(self) -> Plan | None:
        if self.done:
            return None
        now, end = self._clock() - GRACE, self._asked.range.end
        over = end is not None and now >= end
        closed = end if over and end is not None else now - (now - datetime.fromtimestamp(0, UTC)) % self._period
        self.done = over
        if closed <= self._from:
            return None
        plan = self._plan(closed)
        self._from = closed
        return plan

    def _plan(self, until: datetime) -> Plan:
        window = replace(self._asked.range, start=self._from, end=until)
        return _plan(self._engine, self._query, replace(self._asked, range=window), self._clock)


def _plan(
    engine: Engine,
    query: tree.Query,
    asked: AskedQuery,
    clock: Callable[[], datetime],
    *,
    skip: int = 0,
    limit: int | None = None,
    arrived: tuple[int, int] | None = None,
) -> Plan:
    return compile(
        query,
        engine.tables(),
        start=asked.range.start,
        end=asked.range.end,
        now=clock(),
        zone=asked.zone,
        skip=skip,
        limit=limit,
        arrived=arrived,
    )


def _without_bounds(query: tree.Query) -> tuple[tuple[tree.Clause, ...], int | None, int]:
    """The clauses without the limits and offsets at their end, and what those come to: (clauses, limit, offset)."""
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
            raise QueryError("in a query that goes on, limit and offset stand last", clause.at)
    return tuple(clauses), limit, offset
