"""Limits the number of open queries and the work on these queries, and chooses which query runs next.

The owner of a query is a domain or a reseller. The work on a query is done in pieces. One piece makes the plan, and
each further piece makes a batch of rows. The service has a limited number of places for pieces. A running piece takes a
place. Between two pieces, a query has no place. So a client that reads slowly takes no places from other clients.

- A free place goes to the owner that has the fewest places. Among the queries of this owner, the place goes to the
  query that has waited longest. If a query has already run, up to HANDICAP seconds are subtracted from its waiting
  time, so that new queries come first.
- A piece that takes longer than LONG_PIECE_SECONDS is long. A long piece leaves its place and takes one of the places
  for long pieces. The number of places for long pieces is half the number of other places. One owner gets at most half
  of the places for long pieces. If the owner cannot get a place for long pieces, the piece is interrupted. The piece
  starts again when the owner gets a place for long pieces. A piece that cannot be interrupted continues in any case,
  even beyond these limits.
- An owner may have only a limited number of open queries. Waiting queries count as open, and so do queries with clients
  that read slowly. A query above the limit is refused with HTTP status 429.

Outside of the event loop, only `load`, `domains`, `api_keys` and `end` may be called.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar

from svcctl.errors import ServiceError, SvcctlError
from svcctl.service.accounts.accounts import Owner

LONG_PIECE_SECONDS = 1.0
"""A piece of work that takes more than this number of seconds is long."""
HANDICAP = 0.25
"""The maximum number of seconds that are subtracted from the waiting time of a query that has already run."""
INTERRUPT_SECONDS = 0.1
"""The interval, in seconds, at which an interrupt is repeated. An engine that is starting may miss an interrupt."""
TOO_MANY_REQUESTS = 429
"""The HTTP status of the response if a query is refused because too many queries are open."""

T = TypeVar("T")
Interrupt = Callable[[SvcctlError], None]
"""A function that stops a running piece of work. The work then raises the error that was passed to the function."""


class QueryTurns:
    """The limits and the open queries of a service.

    The service works on at most `places` short pieces of work at once, and on half as many long pieces. A piece of work
    is long if it takes more than `slice_seconds`. Each owner may have at most `share` open queries.
    """

    def __init__(
        self, executor: Executor, *, places: int, share: int, slice_seconds: float = LONG_PIECE_SECONDS
    ) -> None:
        self._executor = executor
        self._slice = slice_seconds
        self._short = _Places(places, places)
        self._long = _Places(max(1, places // 2), max(1, places // 4))
        self._share = share
        self._open: set[OpenQuery] = set()

    def open(self, owner: Owner, key: str | None = None) -> OpenQuery:
        """Begin a query of an owner. `key` is the API key of the request.

        Raises ServiceError 429 if the owner has too many open queries.
        """
        count = sum(query.owner == owner for query in self._open)
        if count >= self._share:
            raise ServiceError(
                f"{count} queries are already open, which is the maximum",
                code=TOO_MANY_REQUESTS,
                reason="service-busy",
                hint="try again when one of them has ended",
            )
        query = OpenQuery(self, owner, key)
        self._open.add(query)
        return query

    def load(self) -> Mapping[str, int]:
        """Count the running, the waiting and the idle queries. An idle query waits for its client or for new events.

        This method may be called from any thread.
        """
        counts = Counter(query.state for query in self._open.copy())
        return {state: counts[state] for state in ("running", "waiting", "idle")}

    def domains(self) -> Collection[int]:
        """Return the domains that have open queries. This method may be called from any thread."""
        return {query.owner.domain for query in self._open.copy() if query.owner.domain is not None}

    def api_keys(self) -> Collection[str]:
        """Return the API keys that have open queries. This method may be called from any thread."""
        return {query.key for query in self._open.copy() if query.key is not None}

    def end(self, domains: Mapping[int, SvcctlError], keys: Mapping[str, SvcctlError]) -> None:
        """End the open queries of some domains and API keys. The mappings give the error for each domain and each key.

        This method may be called from any thread.
        """
        for query in self._open.copy():
            reason = None if query.owner.domain is None else domains.get(query.owner.domain)
            reason = reason or (None if query.key is None else keys.get(query.key))
            if reason is not None:
                query.end(reason)


class OpenQuery:
    """An open query. A query is open from its acceptance until the end of the response."""

    def __init__(self, turns: QueryTurns, owner: Owner, key: str | None = None) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self.owner = owner
        self.key = key
        self.ended: asyncio.Future[SvcctlError] = self._loop.create_future()
        """A future that is done as soon as the query must end early. Its result is the error that ends the query."""
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """A future that is done as soon as all work on the query has ended."""
        self.waiting = False
        self._used = 0.0
        self._since: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._turns._open.discard(self)
        if not self.closed.done():
            self.closed.set_result(None)

    def end(self, reason: SvcctlError) -> None:
        """Ask the query to end with an error. This method may be called from any thread."""
        self._loop.call_soon_threadsafe(self._end, reason)

    def _end(self, reason: SvcctlError) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)

    @property
    def state(self) -> str:
        """The state of the query: running, waiting or idle. An idle query waits for its client or for new events."""
        return "running" if self._since is not None else "waiting" if self.waiting else "idle"

    @property
    def seconds(self) -> float:
        """The number of seconds that the engine has worked on the query."""
        return self._used + (0.0 if self._since is None else monotonic() - self._since)

    async def run(self, work: Callable[..., T], *arguments: Any, interrupt: Interrupt | None = None) -> T:
        """Wait until the query may run, do a piece of work in a thread, and return the result of the work.

        With `interrupt`, a long piece of work may be interrupted. The interrupted work later starts again from its
        beginning.
        """
        if self.ended.done():
            raise self.ended.result()
        turns = self._turns
        places = turns._short
        while True:
            await self._take(places)
            self._since = monotonic()
            try:
                running = asyncio.get_running_loop().run_in_executor(turns._executor, work, *arguments)
                given_up = False
                if places is turns._short:
                    await asyncio.wait({running}, timeout=turns._slice)
                    if not running.done():
                        given_up = interrupt is not None and not turns._long.has_room(self.owner)
                        if given_up and interrupt is not None:
                            await _interrupt_until_done(running, interrupt)
                        else:
                            places.leave(self.owner)
                            places = turns._long
                            places.enter(self.owner)
                if not given_up:
                    return await running
            finally:
                self._used, self._since = self.seconds, None
                places.leave(self.owner)
            places = turns._long

    async def _take(self, places: _Places) -> None:
        self.waiting = True
        try:
            await places.take(self.owner, monotonic() + min(self._used, HANDICAP))
        finally:
            self.waiting = False


async def _interrupt_until_done(running: asyncio.Future[Any], interrupt: Interrupt) -> None:
    """Interrupt work until it ends.

    The result or the error of the work is dropped, because the work will start again.
    """
    while not running.done():
        interrupt(ServiceError("the query was interrupted to be run again"))
        await asyncio.wait({running}, timeout=INTERRUPT_SECONDS)
    running.exception()


@dataclass(eq=False)
class _Waiter:
    owner: Owner
    due: float
    turn: asyncio.Future[None]


@dataclass
class _Places:
    """The places for pieces of work. A piece of work takes a place while it runs.

    One object has the places for short work, and another object has the places for long work. `number` is the number of
    places. `share` is the maximum number of places that one owner may take.
    """

    number: int
    share: int
    _taken: Counter[Owner] = field(default_factory=Counter)
    _queue: list[_Waiter] = field(default_factory=list)

    def has_room(self, owner: Owner) -> bool:
        return self._taken.total() < self.number and self._taken[owner] < self.share

    async def take(self, owner: Owner, due: float) -> None:
        """Wait for a free place, and take the place.

        A free place goes to the waiting owner with the fewest places. If several queries of this owner wait, the place
        goes to the query with the lowest `due`, a moment of the monotonic clock.
        """
        waiting = _Waiter(owner, due, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._fill()
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting in self._queue:
                self._queue.remove(waiting)
            elif not waiting.turn.cancelled():
                self.leave(owner)
            raise

    def enter(self, owner: Owner) -> None:
        """Take a place, even if no place is free."""
        self._taken[owner] += 1

    def leave(self, owner: Owner) -> None:
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        self._fill()

    def _fill(self) -> None:
        while able := [waiting for waiting in self._queue if self.has_room(waiting.owner)]:
            chosen = min(able, key=lambda waiting: (self._taken[waiting.owner], waiting.due))
            self._queue.remove(chosen)
            if not chosen.turn.cancelled():
                self.enter(chosen.owner)
                chosen.turn.set_result(None)
