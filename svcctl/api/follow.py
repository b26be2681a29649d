"""A continuous query that survives its connections: every row once, even when connections break.

The rows of the last seconds are remembered by hash. After a break the query is sent again from the oldest remembered
second, and rows that were delivered before are left out, so rows of the same moment are neither lost nor repeated. Only
events that are stored during a break with older dates can be missed.

A service closes the connection when a limit in the query's text is reached, but proxies and restarts close connections
too. So a limit at the end of the text is counted here, over all connections, as the request's own limit is; with any
other limit or offset in the text, a query cannot be resumed. The text of a saved query is not known here, so it is
always sent again: a limit in it counts for each connection.
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
"""Seconds before the newest event that are requested again, because events arrive a little out of order."""
MAX_REMEMBERED = 200_000
"""Rows remembered at most; with more rows, fewer seconds are requested again."""


class Memory:
    """How often each row of the last seconds was delivered."""

    def __init__(self) -> None:
        self._seconds: dict[int, Counter[int]] = {}
        self._rows = 0
        self._newest = 0
        self._forgotten = -1
        """The newest second of which some rows are not remembered."""

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
        """The second from which to request rows, and the rows since then to leave out; None before the first row.

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
    """The rows of a continuous query over its connections; `with` opens the first one.

    `request` must be in json/simple/compact and start at epoch seconds, so that it means the same when sent again.
    `notify` gets a note of every break and every new connection. Errors other than a broken connection end it.
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
        """The first second that this connection was asked for; older rows are parts of groups delivered before."""
        self._delivered: Mapping[int, Counter[int]] = {}
        self._failures = 0
        """Failures since the last row."""
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
        """The rows of this connection that no earlier one delivered."""
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
        # The limit counts over all connections, so the service does not get it.
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
            self._notify(f"{reason}; reconnecting in {delay:.1f} s")
            self._sleep(delay)
            try:
                self._connect()
            except (IncompleteResult, Unavailable) as error:
                reason = error.message
            else:
                self._notify("reconnected")
                return


def _limits(request: QueryRequest) -> tuple[int | None, list[str]]:
    """The limit over all connections, and those of limit and offset in the text that would count anew for each one."""
    limits = [] if request.limit is None else [request.limit]
    removing = ("where", "group", "limit", "offset")
    clauses = [clause for clause in outline(request.query or "").clauses if clause.keyword in removing]
    if clauses and clauses[-1].keyword == "limit" and (count := clauses.pop().count) is not None:
        limits.append(count)
    return min(limits, default=None), sorted({clause.keyword for clause in clauses} & {"limit", "offset"})
