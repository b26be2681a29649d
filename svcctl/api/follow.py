"""A continuous query that is resumed when its connection breaks, and that delivers every row exactly once.

The module remembers the hashes of delivered rows. After a break, the query is sent again, and rows that were already
delivered are skipped.

At most MAX_REMEMBERED rows are remembered. If there are more rows, all rows of the oldest second are forgotten. After a
break, the query then starts after the forgotten seconds. If the service stores an event after the break, and the date
of the event is before the start of the query, the event is missed.

The newest second is the date of the newest row, but never later than the service's clock. If rows of the newest second
are forgotten, the query cannot be resumed. After a break, a query with a group always starts at the newest second.
Otherwise, a group with a late event could be delivered twice: first without this event, and then with it.

If a query has an end, the service closes the connection when the service's clock has passed this end. The result is
then complete. A connection that closes earlier counts as broken.

If the query has a limit in the request or at the end of its text, this module counts the rows of all connections until
the limit is reached. With any other limit or offset in the text, the query cannot be resumed. The client does not know
the text of a saved query. So a limit in a saved query applies to each connection separately.
"""

from __future__ import annotations

import heapq
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from svcctl.api import retry
from svcctl.api.columns import ResultColumn
from svcctl.api.query import QueryRequest, outline
from svcctl.dates.lengths import length_text
from svcctl.errors import IncompleteResult, ServiceError, TooManyRows, Unavailable, UnprovenEnd
from svcctl.words import counted, plural

if TYPE_CHECKING:
    from svcctl.api.client import Client

MAX_REMEMBERED = 200_000
"""The maximum number of delivered rows that are remembered, so that they are not delivered again."""
LATE_SECONDS = 60.0
"""The minimum number of seconds between two notes about late events."""
DATE_SECONDS = 1.0
"""The precision of the header Date, in seconds."""
QUIET_SECONDS = 1.0
"""The seconds to wait for another row after reconnecting.

If no row arrives in this time, the service has probably sent all events that were stored during the break.
"""


class Memory:
    """Counts how often each row was delivered.

    `most` is the maximum number of remembered rows. The rows with the oldest dates are forgotten first.
    """

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        self._most = most
        self._seconds: dict[int, Counter[int]] = {}
        self._order: list[int] = []
        """The keys of `_seconds`, as a heap."""
        self._rows = 0
        self._newest: int | None = None
        self._forgotten: int | None = None
        """The newest second with forgotten rows; None if no rows are forgotten."""

    def add(self, second: int, row: int, now: float) -> None:
        """Remember a row. `second` is the date of the row in epoch seconds, and `row` is the hash of the row.

        `now` is the service's time in epoch seconds.
        """
        present = min(second, int(now))
        self._newest = present if self._newest is None else max(self._newest, present)
        if self._forgotten is not None and second <= self._forgotten:
            return
        if second not in self._seconds:
            self._seconds[second] = Counter()
            heapq.heappush(self._order, second)
        self._seconds[second][row] += 1
        self._rows += 1
        while self._rows > self._most:
            self._forgotten = heapq.heappop(self._order)
            self._rows -= self._seconds.pop(self._forgotten).total()

    def resume(self, *, groups: bool = False) -> tuple[int | None, dict[int, Counter[int]]]:
        """Return the start of the query that is sent after a break, and the delivered rows that must be skipped.

        The start is in epoch seconds. For a query with `groups`, the start is the newest second. For other queries, the
        start is one second after the newest forgotten rows; None if no rows are forgotten. Raises IncompleteResult if
        rows of the newest second are forgotten.
        """
        if self._newest is not None and groups and (self._forgotten is None or self._forgotten < self._newest):
            return self._newest, self._copy()
        if self._forgotten is None:
            return None, self._copy()
        if self._newest is None or self._forgotten >= self._newest:
            raise IncompleteResult(
                f"the connection broke, and the query cannot be resumed: more than {self._most} rows have the date of "
                "the newest event, or a later date"
            )
        return self._forgotten + 1, self._copy()

    def _copy(self) -> dict[int, Counter[int]]:
        return {second: counts.copy() for second, counts in self._seconds.items()}


class Follow:
    """A continuous query over several connections. Entering the `with` block opens the first connection.

    The method `rows` yields the rows until the request's `to` has passed. `request` must ask for the format
    json/simple/compact, and its dates must be epoch seconds. `reader` has the same meaning as in Client.query. `notify`
    is called with a text about every break, every new connection, and every new reason for a failed attempt to connect.
    `advice` returns a hint about an error. Any error other than a broken connection is raised.
    """

    def __init__(
        self,
        client: Client,
        request: QueryRequest,
        *,
        reader: int | None = None,
        notify: Callable[[str], None],
        advice: Callable[[Unavailable], str | None] = attrgetter("hint"),
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._request = request
        self._reader = reader
        self._notify = notify
        self._advice = advice
        self._sleep = sleep
        self._clock = clock
        self._ahead = 0.0
        """The number of seconds by which the service's clock is ahead of this machine's clock."""
        self._memory = Memory()
        self._left_out = request.skip or 0
        """The number of rows that must still be skipped, because the request has a `skip`."""
        self._undated: str | None = None
        """An eventdate that is not a date, as JSON; None if every eventdate was a date."""
        self._connection = ExitStack()
        self._arriving: Iterator[tuple[Any, ...]] = iter(())
        self._first: int | None = None
        """The second at which the current connection resumes the query, in epoch seconds.

        The value is None if the current connection begins at the start of the original request.
        Rows with earlier dates are skipped.
        """
        self._delivered: Mapping[int, Counter[int]] = {}
        """The rows of earlier connections that the current connection has not sent again yet."""
        self._failures = 0
        """The number of consecutive failed attempts to connect.

        A short connection without a new row counts as a failed attempt, too. A connection is short if it lasted for
        less time than the delay before it.
        """
        self._delay = 0.0
        """The delay before the latest attempt to connect, in seconds."""
        self._answered: float | None = None
        """The time at which the service answered the latest attempt; None if the service did not answer."""
        self._limit, self._recounted = _limits(request)
        self._groups = outline(request.query or "").has("group")
        self.columns: Sequence[ResultColumn] = ()
        self.row_count = 0
        self._late, self._late_before = 0, 0
        """The number of events that arrived too late to be counted in a group of the query.

        `_late` counts the events of the current connection. `_late_before` counts those of all earlier connections.
        """
        self._late_noted, self._late_noted_at = 0, -math.inf
        self._lag = 0.0
        self._since: str | None = None
        """The time at which the connection broke, as text; None while no rows are missing."""
        self._again = 0.0
        """The time at which the latest row arrived on the new connection after a break.

        Before its first row arrives, the value is the time of the reconnection. Before the reconnection, it is 0.
        """
        self._behind = 0.0
        """The time of the latest reconnection, in epoch seconds of the service's clock."""

    def __enter__(self) -> Self:
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._note_late()

    @property
    def broken(self) -> IncompleteResult | None:
        """The error to raise if reading ends now; None if no rows are missing.

        After a break, rows are missing until a new connection has sent all events that were stored during the break.
        """
        if self._since is None or self.row_count == self._limit or 0 < self._again <= self._clock() - QUIET_SECONDS:
            return None
        missing = f"not all events since {self._since} have arrived"
        why = missing if self._again else f"there has been no connection since {self._since}"
        return IncompleteResult(f"the result is incomplete: {why}")

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as they arrive, until a limit or the end of the time range is reached."""
        while self.row_count != self._limit:
            try:
                for row in self._new_rows():
                    if self.row_count == self._client.guard.max_rows:
                        raise self._client.guard.too_many_rows()
                    self.row_count += 1
                    self._failures = 0
                    yield row
                    if self.row_count == self._limit:
                        return
                if "limit" in self._recounted:
                    return
                if self._has_ended:
                    self._since = None
                    return
                reason = "the service closed the connection"
                if self._request.query is None:
                    reason += ", perhaps at a limit in the saved query"
            except (IncompleteResult, Unavailable) as error:
                if isinstance(error, TooManyRows) or (isinstance(error, UnprovenEnd) and self._has_ended):
                    raise  # every new connection would end with this error
                reason = error.message
            self._reconnect(reason)

    @property
    def _has_ended(self) -> bool:
        """Whether the service's clock may have passed the end of the query's time range."""
        end = self._request.to
        return isinstance(end, int | float) and self._clock() + self._ahead + DATE_SECONDS >= end

    def _new_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the current connection that no earlier connection has delivered."""
        at = next((index for index, column in enumerate(self.columns) if column.name == "eventdate"), None)
        for row in self._arriving:
            if self._since is not None and at is not None:
                self._catch_up(row[at])
            if at is not None and not self._is_new(row[at], row):
                continue
            if self._left_out:
                self._left_out -= 1
                continue
            yield row

    def _catch_up(self, date: Any) -> None:
        """Note that a row has arrived after reconnecting.

        If the date of the row is at or after the time of the reconnection, all missing rows have arrived.
        """
        self._again = self._clock()
        if isinstance(date, int | float) and date >= self._behind * 1000:
            self._since = None

    def _is_new(self, date: Any, row: tuple[Any, ...]) -> bool:
        """Return whether a row is new: no earlier connection has delivered it. A new row is remembered."""
        if isinstance(date, bool) or not isinstance(date, int | float) or not math.isfinite(date):
            self._undated = json.dumps(date)
            return True
        second = int(date // 1000)
        if self._first is not None and second < self._first:
            return False
        value = hash(repr(row))  # lists in a row have no hash, and the hashes of -1 and -2 are equal
        delivered = self._delivered.get(second)
        if delivered is not None and delivered[value] > 0:
            delivered[value] -= 1
            return False
        self._memory.add(second, value, self._clock() + self._ahead)
        return True

    def _connect(self, *, once: bool = False) -> None:
        # The limit and the skipped rows are counted here over all connections, so they are not sent to the service.
        request = replace(self._request, limit=None, skip=None)
        self._first, self._delivered = self._memory.resume(groups=self._groups)
        if self._first is not None:
            assert not isinstance(request.from_, str)
            request = replace(request, from_=max(self._first, request.from_))
        self._connection.close()
        self._late, self._late_before = 0, self._late_before + self._late
        self._answered = None
        query = self._client.query(request, once=once, reader=self._reader, late=self._came_late, counts=False)
        answer = self._connection.enter_context(query)
        self._answered = self._clock()
        self._ahead = 0.0 if answer.date is None else answer.date - self._clock()
        self._arriving = answer.rows()
        if not self.columns:
            self.columns = answer.columns
        elif answer.columns != self.columns:
            self._arriving = map(self._same_columns(answer.columns), self._arriving)

    def _same_columns(self, now: Sequence[ResultColumn]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """Return a function that reduces a row to the columns of the first connection.

        `now` contains the columns of the current connection. Raises ServiceError if a column of the first connection is
        missing or has another type.
        """
        places = [now.index(column) for column in self.columns if column in now]
        if len(places) < len(self.columns):
            gone = next(column.name for column in self.columns if column not in now)
            raise ServiceError(
                f"the column {gone} of the answer was removed or has a new type, so the query cannot be resumed"
            )
        return lambda row: tuple(row[place] for place in places)

    def _came_late(self, count: int, lag: float) -> None:
        """Note the number of late events that the service reports.

        `lag` is the maximum number of seconds by which an event may be late and still count in a group.
        """
        self._late, self._lag = count, lag
        if self._clock() >= self._late_noted_at + LATE_SECONDS:
            self._note_late()

    def _note_late(self) -> None:
        count = self._late_before + self._late
        if count == self._late_noted:
            return
        self._late_noted, self._late_noted_at = count, self._clock()
        late = counted(count, "late event is", "late events are")
        lag = length_text(self._lag)
        self._notify(
            f"{late} in no group: stored more than {lag} after the end of {plural(count, 'its', 'their')} period"
        )

    def _reconnect(self, reason: str) -> None:
        if "eventdate" not in [column.name for column in self.columns]:
            raise IncompleteResult(f"{reason}, and a query without the column eventdate cannot be resumed")
        if self._undated is not None:
            raise IncompleteResult(
                f"{reason}, and the query cannot be resumed, because an eventdate is {self._undated}"
            )
        if self._recounted:
            raise IncompleteResult(f"{reason}, and a query with {' and '.join(self._recounted)} cannot be resumed")
        self._since = self._since or f"{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d %H:%M:%S} UTC"
        self._again = 0.0
        last_note: tuple[str, str | None] | None = None
        hint, least = None, 0.0
        while True:
            if self._answered is not None and self._clock() - self._answered >= self._delay:
                self._failures = 0
            self._failures += 1
            self._delay = max(least, retry.delay(self._failures))
            if (reason, hint) != last_note:  # one note for a long outage is enough
                self._notify(f"{reason}; reconnecting in {length_text(round(self._delay, 1))}")
                if hint is not None:
                    self._notify(hint)
            self._sleep(self._delay)
            last_note, least = (reason, hint), 0.0
            try:
                self._connect(once=True)
            except Unavailable as error:
                if not retry.is_passing(error):
                    raise
                reason, hint, least = error.message, self._advice(error), error.retry_after or 0.0
            except IncompleteResult as error:
                reason, hint = error.message, None
            else:
                self._again = self._clock()
                self._behind = self._again + self._ahead
                self._notify("reconnected")
                return


def _limits(request: QueryRequest) -> tuple[int | None, list[str]]:
    """Return the limit for all connections together, and the keywords that prevent resuming the query.

    The limit is the smaller of the request's limit and a limit at the end of the query's text; None if there is
    neither. The keywords are `limit` and `offset`, if the text contains them in other places.
    """
    limits = [] if request.limit is None else [request.limit]
    removing = ("where", "group", "limit", "offset")
    clauses = [clause for clause in outline(request.query or "").clauses if clause.keyword in removing]
    if clauses and clauses[-1].keyword == "limit" and (count := clauses.pop().number) is not None:
        limits.append(count)
    return min(limits, default=None), sorted({clause.keyword for clause in clauses} & {"limit", "offset"})
