"""Fetch one window: request it, check the answer while it is written to the window's part, and retry if that may help.

A worker fetches a window, in a thread here or in another process: a Task says all about it and can be sent there.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING

from svcctl.api import retry
from svcctl.api.query import selecting
from svcctl.errors import IncompleteResult, SvcctlError, Unavailable
from svcctl.exports.formats import FORMATS, Format
from svcctl.exports.record import Entry
from svcctl.exports.windows import Window
from svcctl.exports.workers.pace import Pace
from svcctl.exports.workers.spool import Unstored
from svcctl.io.compression import COMPRESSIONS, Compressed
from svcctl.io.losses import Losses

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.api.query import QueryRequest
    from svcctl.dates.zones import Zone
    from svcctl.io.compression import Sink
    from svcctl.storage import Storage


class _MoreColumns(Exception):
    """An answer has all columns that are kept, and others, which are `names`."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names


class Stopped(Exception):
    """The export stops, so this window was not fetched."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a record says of a window that is fetched only to compare it, or (`replaces`) to replace what differs.

    Fewer rows than there were replace nothing unless `fewer` is set.
    """

    rows: int
    sha256: str
    replaces: bool
    fewer: bool

    def gives_way(self, rows: int, sha256: str) -> bool:
        """Whether these rows and bytes are to be stored."""
        return self.replaces and sha256 != self.sha256 and (self.fewer or rows >= self.rows)


@dataclass(frozen=True, slots=True)
class Task:
    """A window to fetch. `request` is that of the whole export; its range is replaced by the window's.

    `path` is where the part goes in the storage, compressed as `compression` says (an ending, "" for none). A `whole`
    part is a file of its own, heading included; one that is not whole leaves out the heading and is not made for a
    window without events: it is a `part_of` a merged file. The rows of a `plain` query are those of any parts of the
    window, in order. `zone` is that of the dates in the answers, None if none is requested. Of a query for all columns,
    `columns` are those to keep, empty before any are known; it is None for a query that names its columns.
    """

    window: Window
    request: QueryRequest
    format: str
    path: str
    compression: str = ""
    part_of: str | None = None
    retries: int = 4
    plain: bool = False
    known: Known | None = None
    zone: Zone | None = None
    columns: tuple[str, ...] | None = None

    @property
    def whole(self) -> bool:
        return self.part_of is None

    def spans(self) -> tuple[Window, ...]:
        """The ranges to request, in order: a service writes all dates of an answer with one offset."""
        if self.zone is None or not self.plain:
            return (self.window,)
        return tuple(Window(*span) for span in self.zone.spans(self.window.start, self.window.end))


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a task: the entry for the record, and the head that all windows must share."""

    entry: Entry
    head: str
    seconds: float
    attempts: int
    losses: Losses = field(default_factory=Losses)
    columns: tuple[str, ...] = ()
    """The columns of a query for all columns, if the answer names them."""
    left_out: tuple[str, ...] = ()
    """The columns that the table has gained since the first window, which are not in the part."""


@dataclass
class Progress:
    """What all workers of a process have done so far. Rows and bytes are counted as they arrive."""

    rows: int = 0
    bytes: int = 0
    retries: int = 0
    trouble: SvcctlError | None = None
    """Why the last attempt at a window failed; None once a later attempt has succeeded."""
    columns: tuple[str, ...] = ()
    """The columns of the first window of a query for all columns."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, rows: int = 0, bytes: int = 0, retries: int = 0) -> None:
        with self._lock:
            self.rows += rows
            self.bytes += bytes
            self.retries += retries


def fetch(
    task: Task,
    client: Client,
    storage: Storage,
    pace: Pace,
    progress: Progress,
    stopping: threading.Event,
    delay: Callable[[int], float] = retry.delay,
) -> Fetched:
    """Fetch a window, with as many retries as its task allows. `client` retries nothing by itself.

    A refusal that says when to come back counts as a retry only while no other window gets on (see `Turns`). `delay`
    gives the seconds to wait after a number of failures, unless the service says how long to wait.

    Raises the last attempt's error: of the service, the network, the answer or the storage. Raises Stopped when
    `stopping` is set meanwhile.
    """
    started = time.monotonic()
    turns = pace.turns()
    failures = refusals = 0
    for attempt in count(1):
        if not pace.wait(stopping):
            raise Stopped
        part = _Part(progress, stopping)
        if task.columns == ():
            task = replace(task, columns=progress.columns)
        try:
            with turns:
                head = _attempt(task, client, storage, part)
        except SvcctlError as error:
            progress.add(bytes=-part.bytes)
            if isinstance(error, Unstored) or not retry.is_passing(error):
                raise
            pause = error.retry_after if isinstance(error, Unavailable) else None
            if pause is None:
                failures += 1
            else:
                refusals = turns.refused()
            if failures + refusals > task.retries:
                raise
            progress.trouble = error
            progress.add(retries=1)
            if pause is not None:
                pace.hold(pause)
            elif stopping.wait(delay(failures)):
                raise Stopped from None
        else:
            progress.trouble = None
            progress.add(rows=part.rows)
            made = task.whole or part.rows > 0
            entry = Entry(
                task.window.start,
                task.window.end,
                task.path if made else "",
                part.rows,
                part.bytes if made else 0,
                part.sha256 if made else "",
                int(time.time()),
            )
            seconds = round(time.monotonic() - started, 3)
            progress.columns = progress.columns or part.columns
            return Fetched(entry, head, seconds, attempt, part.losses, part.columns, part.left_out)
    raise AssertionError("an attempt returns or raises in the end")


class _Part:
    """The sink of one attempt: counts and hashes the bytes as they are stored."""

    def __init__(self, progress: Progress, stopping: threading.Event) -> None:
        self._progress = progress
        self._stopping = stopping
        self._sink: Sink | None = None
        self._digest = hashlib.sha256()
        self.rows = 0
        self.bytes = 0
        self.losses = Losses()
        self.columns: tuple[str, ...] = ()
        self.left_out: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def to(self, sink: Sink) -> _Part:
        self._sink = sink
        return self

    def write(self, data: bytes | memoryview, /) -> None:
        if self._stopping.is_set():
            raise Stopped
        assert self._sink is not None
        with _storing():
            self._sink.write(data)
        self._digest.update(data)
        self.bytes += len(data)
        self._progress.add(bytes=len(data))


def _attempt(task: Task, client: Client, storage: Storage, part: _Part) -> str:
    """One attempt at a window; returns its head."""
    with storage.create(task.path, overwrite=True, part_of=task.part_of) as sink:
        part.to(sink)
        if task.compression:
            compressed = Compressed(part, COMPRESSIONS[task.compression]())
            head = _answered(task, client, part, compressed)
            compressed.end()
        else:
            head = _answered(task, client, part, part)
        if (task.whole or part.rows) and (task.known is None or task.known.gives_way(part.rows, part.sha256)):
            with _storing():
                sink.complete()
    return head


@contextmanager
def _storing() -> Iterator[None]:
    """Mark errors of the storage: a retry would not help against them, as it may against those of the answer."""
    try:
        yield
    except IncompleteResult as error:
        raise Unstored(error.message, hint=error.hint) from None


def _answered(task: Task, client: Client, part: _Part, sink: Sink) -> str:
    """Send the window's requests and write their rows; returns the head of the answer.

    If the table has gained columns, they are sent again for the columns to keep, before a row is written.
    """
    try:
        return _written(task, client, part, sink, task.request.query)
    except _MoreColumns as error:
        part.left_out = error.names
        assert task.request.query is not None
        query = selecting(task.request.query, task.columns or ())
        return _written(task, client, part, sink, query)


def _written(task: Task, client: Client, part: _Part, sink: Sink, query: str | None) -> str:
    def look(names: tuple[str, ...]) -> None:
        kept = task.columns or names
        more = tuple(name for name in names if name not in kept)
        if more and {*kept} <= {*names} and query == task.request.query:
            raise _MoreColumns(more)
        part.columns = names

    requests = [
        replace(
            task.request,
            query=query,
            from_=span.start,
            to=span.end,
            time_zone=task.zone.offset_name(span.start) if task.zone else None,
        )
        for span in task.spans()
    ]
    with client.query_spans(requests) as answer:
        looked = None if task.columns is None else look
        head = FORMATS[task.format].part(answer, sink, task.whole, part.losses, looked)
        part.rows = answer.row_count or 0
    return head


def check(request: QueryRequest, format: Format, client: Client) -> None:
    """Request an empty range, to raise what the service says about the query or the credentials."""
    with client.query(replace(request, to=request.from_)) as answer:
        format.part(answer, BytesIO(), False, Losses())


Fetch = Callable[[Task], Fetched]
"""Fetches a window: `fetch` with all but its task filled in."""
