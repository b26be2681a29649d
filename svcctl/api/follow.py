"""A continuous query that outlives its connections: every row once, whatever breaks in between.

The rows of the last seconds are remembered by hash. After a break the query is asked again from the oldest remembered
second, and what was delivered before is left out, so rows that share a moment are neither lost nor repeated. Events
that are stored during a break with dates older than that are the one thing that can be missed.

A service closes the connection when a limit in the query's text is reached, but proxies and restarts close connections
too. So a limit at the end of the text is counted here, over all connections, as the request's own limit is; with any
other limit or offset in the text, a query cannot be resumed. The text of a saved query is not known here, so it is
always asked again: a limit in it counts for each connection.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

from svcctl.api import backoff
from svcctl.api.client import Client
from svcctl.api.models import Column
from svcctl.api.outline import outline
from svcctl.api.query import QueryRequest
from svcctl.errors import IncompleteResult, Unavailable

OVERLAP = 10
"""Seconds before the newest event that are asked for again: events arrive a little out of order."""
MAX_REMEMBERED = 200_000
"""Rows remembered; where they are more, fewer seconds are asked for again."""


class Memory:
    """How often each row of the last seconds was delivered."""

    def __init__(self) -> None:
        self._seconds: dict[int, Counter[int]] = {}
        self._rows = 0
        self._newest = 0
        self._forgotten = -1
        """The newest second of which not every row is remembered."""

    def add(self, second: int, row: tuple[Any, ...]) -> None:
        self._newest = max(self._newest, second)
        if second <= self._forgotten:
            return
        self._seconds.setdefault(second, Counter())[hash(row)] += 1
        self._rows += 1
        while min(self._seconds) < self._newest - OVERLAP or self._rows > MAX_REMEMBERED:
            oldest = min(self._seconds)
            self._rows -= self._seconds.pop(oldest).total()
            self._forgotten = max(self._forgotten, oldest)
            if not self._seconds:
                break

    def resume(self) -> tuple[int, dict[int, Counter[int]]] | None:
        """The second to ask from and the rows to leave out from there on; None before the first row.

        IncompleteResult when a single second held more rows than can be remembered.
        """
        if not self._newest:
            return None
        if self._forgotten >= self._newest:
            raise IncompleteResult(
                f"the connection broke in a second of more than {MAX_REMEMBERED} rows: it cannot be resumed"
            )
        first = max(self._newest - OVERLAP, self._forgotten + 1)
        return first, {second: counts.copy() for second, counts in self._seconds.items() if second >= first}


class Follow:
    """The rows of a continuous query, connection after connection; used in `with`, which opens the first.

    `request` must be in json/simple/compact and start at epoch seconds, so that it means the same when asked again.
    `notify` is told of every break and every return. Errors other than a broken connection end it.
    """

    def __init__(
        self,
        client: Client,
        request: QueryRequest,
        *,
        notify: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._request = request
        self._notify = notify
        self._sleep = sleep
        self._memory = Memory()
        self._connection = ExitStack()
        self._arriving: Iterator[tuple[Any, ...]] = iter(())
        self._first = 0
        """The second from which this connection was asked; older rows of it are parts of groups delivered before."""
        self._delivered: Mapping[int, Counter[int]] = {}
        self._failures = 0
        """Breaks since the last row."""
        self._limit, self._recounted = _limits(request)
        self.columns: Sequence[Column] = ()
        self.row_count = 0

    def __enter__(self) -> Self:
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows as they arrive, until a limit is reached."""
        while self.row_count != self._limit:
            try:
                for row in self._new_rows():
                    self.row_count += 1
                    self._failures = 0
                    yield row
                    if self.row_count == self._limit:
                        return
                if "limit" in self._recounted:
                    return
                reason = "the service closed the connection"
                if self._request.query is None:
                    reason += ", perhaps at a limit in the saved query"
            except (IncompleteResult, Unavailable) as error:
                reason = error.message
            self._reconnect(reason)

    def _new_rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of this connection that none before it delivered."""
        at = next((index for index, column in enumerate(self.columns) if column.name == "eventdate"), None)
        for row in self._arriving:
            if at is not None and row[at] is not None:
                second = row[at] // 1000
                if second < self._first:
                    continue
                before = self._delivered.get(second)
                if before is not None and before[hash(row)] > 0:
                    before[hash(row)] -= 1
                    continue
                self._memory.add(second, row)
            yield row

    def _connect(self) -> None:
        # The limit counts over all connections, so it is kept here.
        request = replace(self._request, limit=None)
        if resumed := self._memory.resume():
            self._first, self._delivered = resumed
            request = replace(request, from_=max(self._first, int(request.from_)), skip=None)
        self._connection.close()
        answer = self._connection.enter_context(self._client.query(request))
        self._arriving = answer.rows()
        self.columns = answer.columns

    def _reconnect(self, reason: str) -> None:
        if "eventdate" not in [column.name for column in self.columns]:
            raise IncompleteResult(f"{reason}, and without eventdate among its columns the query cannot be resumed")
        if self._recounted:
            raise IncompleteResult(
                f"{reason}, and with {' and '.join(self._recounted)} in it the query cannot be resumed"
            )
        while True:
            self._failures += 1
            delay = backoff.delay(self._failures)
            self._notify(f"{reason}; asking again in {delay:.1f} s")
            self._sleep(delay)
            try:
                self._connect()
            except (IncompleteResult, Unavailable) as error:
                reason = error.message
            else:
                self._notify("connected again")
                return


def _limits(request: QueryRequest) -> tuple[int | None, list[str]]:
    """The limit over all connections, and which of limit and offset in the text would count anew for each of them."""
    limits = [] if request.limit is None else [request.limit]
    removing = ("where", "group", "limit", "offset")
    clauses = [clause for clause in outline(request.query or "").clauses if clause.keyword in removing]
    if clauses and clauses[-1].keyword == "limit" and (count := clauses.pop().count) is not None:
        limits.append(count)
    return min(limits, default=None), sorted({clause.keyword for clause in clauses} & {"limit", "offset"})
