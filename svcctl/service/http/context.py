"""The objects that all routes use: the parts of a running service, its limits, and its counters."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import anyio

from svcctl.service.accounts.keys import KeyUses
from svcctl.service.disk import Disk
from svcctl.service.engines import Engines
from svcctl.service.hosts.allowed_hosts import EVERYTHING, AllowedHosts
from svcctl.service.loading.limits import LoadLimits
from svcctl.service.queries.concurrency import LONG_PIECE_SECONDS, QueryTurns
from svcctl.service.queries.temporary_tables import TemporaryTables
from svcctl.service.settings import LAG_TIME, LINE_END, OPEN_QUERIES, PADDING_TIME, QUERY_PLACES, QUERY_TIME
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.events_record import EventsRecord, Loss
from svcctl.service.state.store import Store

T = TypeVar("T")

LARGE_BODIES = 16


METHODS = frozenset(("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"))


@dataclass
class Counts:
    """Counters since the start of the service.

    `answers` is the number of answers by method and HTTP status. `bytes` is the total size of the bodies of all
    answers. `late` is the number of events that arrived too late for the groups of a query. Only the event loop uses
    this class, so no lock is needed.
    """

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    bytes: int = 0
    late: int = 0

    def answer(self, method: str, status: int) -> None:
        """Count an answer when it begins.

        All unknown methods are counted together, because clients can send any number of different methods.
        """
        self.answers[method if method in METHODS else "other", status] += 1


@dataclass
class Service:
    """The parts and the limits of a running service."""

    engines: Engines
    store: Store
    executor: Executor
    clock: Callable[[], float] = time.time
    query_seconds: float = QUERY_TIME.default_value
    """The maximum number of seconds that the engine may work on a query, or on one step of a continuous query.

    The time in which the client reads the answer does not count.
    """
    padding_seconds: float = PADDING_TIME.default_value
    """The number of seconds without data after which the service sends padding, so that the client does not give up."""
    lag_seconds: float = LAG_TIME.default_value
    """The number of seconds that a continuous query waits for late events after the end of a period."""
    load_limits: LoadLimits = field(default_factory=LoadLimits)
    places: int = QUERY_PLACES.default_value
    share: int = OPEN_QUERIES.default_value
    slice_seconds: float = LONG_PIECE_SECONDS
    """The number of seconds after which a piece of work counts as long.

    The service has fewer places for long pieces than for short pieces. See the class `QueryTurns`, which also
    describes `places` and `share`.
    """
    line_end: str = LINE_END.default_value
    """The line ending of answers in csv and other formats with lines: lf or crlf."""
    allowed: AllowedHosts = EVERYTHING
    """The hosts that jobs may deliver to."""
    address: str | None = None
    """The host and port of the service's TCP socket. It is None if the service listens only on its Unix socket."""
    foreground: bool = False
    """Whether the service runs in the foreground and logs to stderr instead of its log file."""
    live: frozenset[str] = frozenset()
    """The names of the tables that the service itself fills. Users may not load events into these tables or drop them.
    """
    uses: Mapping[str, str] = field(default_factory=dict)
    """The locations that the service uses outside its own directory.

    The keys are `folder` (the shared folder of the tables), `state` (the database) and `engine` (the query engine).
    """
    record: EventsRecord | None = None
    """The saved positions at which the tables ended. The service compares these positions to notice lost events.

    `record` is None if the events are in memory.
    """
    disk: Disk | None = None
    """The disk that has the service's own files."""
    stop: Callable[[], None] | None = None
    """A function that ends the process. It is None if no request may stop the service."""
    started: float = field(default_factory=time.time)
    loads: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    """The results of the most recent loads. The key of a result is the ID that the client chose for the load."""
    temporary_tables: TemporaryTables = field(default_factory=TemporaryTables)
    counts: Counts = field(default_factory=Counts)
    large_bodies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_BODIES))
    """A semaphore that is held while a large body is read. At most LARGE_BODIES large bodies are read at the same time.
    """
    turns: QueryTurns = field(init=False)
    key_uses: KeyUses = field(init=False)

    def __post_init__(self) -> None:
        self.key_uses = KeyUses(self.store)
        self.turns = QueryTurns(self.executor, places=self.places, share=self.share, slice_seconds=self.slice_seconds)

    @property
    def loss(self) -> Loss | None:
        """The loss of events that is not yet confirmed. It is None if there is no such loss."""
        return None if self.record is None else self.record.loss

    def record_events(self) -> None:
        """Record where each table ends, so that the next start of the service can notice lost events.

        If the database cannot be written, nothing is recorded until the next call.
        """
        if self.record is not None:
            with suppress(StateUnavailable):
                self.record.record()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    async def look(self, read: Callable[..., T], *arguments: Any) -> T:
        """Call the function `read`, which reads the database, and return its result.

        If the database is on a server, `read` runs in a thread, so that the service can answer other requests
        meanwhile.
        """
        if not self.store.shared:
            return read(*arguments)
        return await anyio.to_thread.run_sync(partial(read, *arguments))

    def run(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Run the function `work` in a thread. The work begins at once, because only queries take turns."""
        return asyncio.get_running_loop().run_in_executor(self.executor, work, *arguments)
