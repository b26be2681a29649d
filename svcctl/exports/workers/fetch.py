"""The work of a worker: request a time window, check and store the answer, and retry if a retry may help.

A task describes the window. A task can be sent to a worker in another process.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from svcctl.api import retry
from svcctl.api.query import selecting
from svcctl.errors import IncompleteResult, SvcctlError, Unavailable
from svcctl.exports.formats import FORMATS, ExportFormat, Look, members
from svcctl.exports.record import ExportedFile
from svcctl.exports.windows import Window
from svcctl.exports.workers.pace import Pace
from svcctl.exports.workers.split import Split, Unsplittable, object_edges, text_edges
from svcctl.exports.workers.spool import Unstored
from svcctl.io.compression import COMPRESSIONS
from svcctl.io.losses import Losses

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.api.query import QueryRequest
    from svcctl.api.response import QueryResponse
    from svcctl.dates.zones import Zone
    from svcctl.storage import Sink, Storage

TOGETHER = 16
"""The number of files that are completed together if an answer is split into the files of several windows."""


class _MoreColumns(Exception):
    """Raised if an answer has all `columns` of the export, and also the new columns `new`."""

    def __init__(self, columns: tuple[str, ...], new: tuple[str, ...]) -> None:
        super().__init__(columns, new)
        self.columns = columns
        self.new = new


class Stopped(Exception):
    """Raised if the run ends before the window is fetched."""


@dataclass(frozen=True, slots=True)
class Known:
    """The recorded number of rows and the recorded hash of a window that is fetched again for a comparison.

    If `replaces` is true, fetched rows with another hash replace the stored rows. If `fewer` is false, a smaller number
    of rows never replaces the stored rows.
    """

    rows: int
    sha256: str
    replaces: bool
    fewer: bool

    def gives_way(self, rows: int, sha256: str) -> bool:
        """Return whether the fetched rows replace the stored rows. `rows` and `sha256` describe the fetched rows."""
        return self.replaces and sha256 != self.sha256 and (self.fewer or rows >= self.rows)


@dataclass(frozen=True, slots=True)
class Task:
    """A task for a worker: the request for a time window, and the path at which the rows are stored.

    `request` is the request for the whole export, but the worker requests only the range `window`. `path` is the path
    of the file with the rows of the window, which is called a part. `compression` is the ending of the compression,
    such as ".gz". Without compression, `compression` is "". `part_of` is the path of the merged file that will contain
    the rows. A part for a merged file has no heading, and a window without events has no part. If `part_of` is None,
    the part is a complete file with a heading.

    If `plain` is true, the window may be requested in several shorter ranges. Together, the answers then have the same
    rows as the answer for the whole window. `zone` is the time zone of the dates in the rows. `zone` is None if no
    zone is requested. `columns` is None for a query that names its columns. If the query asks for all columns,
    `columns` has the columns to keep. `columns` is empty until these columns are known.
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
    parts: tuple[Task, ...] = ()
    """The tasks of several windows, if the answer is split into the files of these windows.

    The tuple is empty if the answer is stored in one file at `path`.
    """

    @property
    def whole(self) -> bool:
        return self.part_of is None

    def spans(self) -> tuple[Window, ...]:
        """Return the ranges to request, in order.

        If `plain` is false or `zone` is None, the window is requested as one range. Otherwise there is a range for each
        UTC offset that the zone has during the window, because all dates in an answer have the same offset.
        """
        if self.zone is None or not self.plain:
            return (self.window,)
        return tuple(Window(*span) for span in self.zone.spans(self.window.start, self.window.end))

    def goes_on_in(self, other: Task) -> bool:
        """Return whether the window of `other` can be requested together with the window of this task.

        There must be no gap between the windows, and all dates in them must have the same UTC offset.
        """
        if self.window.end != other.window.start or self.zone != other.zone:
            return False
        return self.zone is None or len(self.zone.spans(self.window.start, other.window.end)) == 1


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a task.

    `entries` are the entries for the record of the export. `head` is the heading of csv and tsv, or the columns of
    parquet. `seconds` is the duration of the task, and `attempts` is the number of attempts.
    """

    entries: tuple[ExportedFile, ...]
    head: str
    seconds: float
    attempts: int
    received: int = 0
    """The size of the answer in bytes."""
    losses: Losses = field(default_factory=Losses)
    columns: tuple[str, ...] = ()
    """The columns of the answer, if the query asks for all columns. For other queries, the tuple is empty."""
    left_out: tuple[str, ...] = ()
    """Columns that the queried table got after the first window was fetched. They are not in the stored rows."""

    @property
    def entry(self) -> ExportedFile:
        """The entry of a result that has exactly one entry."""
        (entry,) = self.entries
        return entry


@dataclass
class Progress:
    """The progress of all workers of a process.

    `bytes` is the number of stored bytes. `rows` is the number of rows of completed tasks.
    """

    rows: int = 0
    bytes: int = 0
    retries: int = 0
    trouble: SvcctlError | None = None
    """The error of the last attempt. It is None if the last attempt succeeded."""
    columns: tuple[str, ...] = ()
    """The columns of the first window, if the query asks for all columns. For other queries, the tuple is empty."""
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
    """Fetch the window of a task, with as many retries as the task allows. `client` must not retry requests itself.

    If the service refuses a request with the header Retry-After, all workers wait for the time in this header. Such a
    refusal does not count as a retry while other windows make progress, see RequestTurns. After any other failure, only
    this worker waits. It waits `delay(number)` seconds, where `number` is the number of such failures so far.

    Raises the error of the last attempt. Raises Stopped if `stopping` is set.
    """
    started = time.monotonic()
    turns = pace.turns()
    failures = refusals = 0
    for number in count(1):
        if not pace.wait(stopping):
            raise Stopped
        if task.columns == ():
            task = replace(task, columns=progress.columns)
        attempt = _Attempt(task, client, storage, progress, stopping)
        try:
            with turns:
                entries = attempt()
        except SvcctlError as error:
            progress.add(bytes=-attempt.stored)
            if isinstance(error, (Unstored, Unsplittable)) or not retry.is_passing(error):
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
            progress.add(rows=attempt.rows)
            progress.columns = progress.columns or attempt.columns
            return Fetched(
                entries,
                attempt.head,
                round(time.monotonic() - started, 3),
                number,
                attempt.received,
                attempt.losses,
                attempt.columns,
                attempt.left_out,
            )
    raise AssertionError("an attempt returns or raises in the end")


class _Attempt:
    """An attempt to carry out a task. It sends the requests, and stores the rows of the answer in one or more files."""

    def __init__(
        self, task: Task, client: Client, storage: Storage, progress: Progress, stopping: threading.Event
    ) -> None:
        self._task = task
        self._format = FORMATS[task.format]
        self._client = client
        self._storage = storage
        self._progress = progress
        self._stopping = stopping
        self.head = ""
        self.rows = self.received = 0
        self.stored = 0
        """The number of bytes that this attempt has stored."""
        self.losses = Losses()
        self.columns: tuple[str, ...] = ()
        self.left_out: tuple[str, ...] = ()

    def __call__(self) -> tuple[ExportedFile, ...]:
        """Send the requests and store the rows. Return the entries for the record of the export."""
        return self._split() if self._task.parts else (self._whole(),)

    def check(self) -> None:
        """Raise Stopped if the run is ending."""
        if self._stopping.is_set():
            raise Stopped

    def store(self, sink: Sink, data: bytes | memoryview) -> None:
        """Write bytes to the file `sink`, and count them. Raises Stopped if the run is ending."""
        self.check()
        with _storing():
            sink.write(data)
        self.stored += len(data)
        self._progress.add(bytes=len(data))

    def _whole(self) -> ExportedFile:
        """Write all rows of the task to one file, while the rows arrive."""
        task = self._task
        with _Part(task, self._storage, self) as part:
            self._answered(lambda answer, look: self._format.part(answer, part, task.whole, self.losses, look))
            part.end()
            has_part = task.whole or self.rows > 0
            if has_part and (task.known is None or task.known.gives_way(self.rows, part.sha256)):
                with _storing():
                    part.sink.complete()
        return part.entry(self.rows, has_part=has_part)

    def _split(self) -> tuple[ExportedFile, ...]:
        """Write the files of several windows after all rows of these windows have arrived."""
        task, heading = self._task, self._format.heading
        windows = [part.window for part in task.parts]
        edges = text_edges(windows, task.zone, task.request.date_format) if heading else object_edges(windows)
        with Split(edges, self.check) as split:

            def write(answer: QueryResponse, look: Look | None) -> str:
                first = None if heading or look is None else lambda row: look(members(row))
                return self._format.part(answer, split.begin(answer, first), False, self.losses, look)

            self._answered(write)
            files = zip(task.parts, split.files(), strict=True)
            groups = iter(lambda: list(islice(files, TOGETHER)), [])
            return tuple(chain.from_iterable(map(self._files, groups)))

    def _files(self, group: Sequence[tuple[Task, tuple[int, Iterator[bytes]]]]) -> list[ExportedFile]:
        """Write the files of several windows, each with the heading. All files are completed together."""
        parts, entries = [], []
        with ExitStack() as stack:
            for task, (rows, pieces) in group:
                part = stack.enter_context(_Part(task, self._storage, self))
                part.write(self.head.encode("utf-8", "surrogateescape") + next(pieces, b""))
                for piece in pieces:
                    part.write(piece)
                part.end()
                parts.append(part.sink)
                entries.append(part.entry(rows))
            with _storing():
                self._storage.complete_all(parts)
        return entries

    def _answered(self, write: Callable[[QueryResponse, Look | None], str]) -> None:
        """Send the requests of the task, and write the rows with `write`.

        If columns were added to the table since the first window, the requests are sent again, now only for the old
        columns. No row of the first answer is stored.
        """
        try:
            self._written(write, self._task.request.query)
        except _MoreColumns as error:
            self.left_out = error.new
            assert self._task.request.query is not None
            self._written(write, selecting(self._task.request.query, error.columns))

    def _written(self, write: Callable[[QueryResponse, Look | None], str], query: str | None) -> None:
        task = self._task

        def look(names: tuple[str, ...]) -> None:
            columns = task.columns or self.columns or names
            new = tuple(name for name in names if name not in columns)
            if new and {*columns} <= {*names} and query == task.request.query:
                raise _MoreColumns(columns, new)
            self.columns = names

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
        with self._client.query_spans(requests) as answer:
            self.head = write(answer, None if task.columns is None else look)
            self.rows = answer.row_count or 0
            self.received = answer.bytes


class _Part:
    """The file with the rows of a window, while the file is written. Use this class in `with`.

    The stored bytes are counted and hashed.
    """

    def __init__(self, task: Task, storage: Storage, attempt: _Attempt) -> None:
        self._task = task
        self._attempt = attempt
        self._compressor = COMPRESSIONS[task.compression]() if task.compression else None
        self._digest = hashlib.sha256()
        self._bytes = 0
        self.sink = storage.create(task.path, overwrite=True, part_of=task.part_of)

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, *_: object) -> None:
        self.sink.abandon()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes | memoryview, /) -> None:
        if self._compressor is not None:
            data = self._compressor.compress(data)
        if data:
            self._store(data)

    def end(self) -> None:
        """Write the rest of the compressed data."""
        if self._compressor is not None:
            self._store(self._compressor.flush())

    def _store(self, data: bytes | memoryview) -> None:
        self._attempt.store(self.sink, data)
        self._digest.update(data)
        self._bytes += len(data)

    def entry(self, rows: int, *, has_part: bool = True) -> ExportedFile:
        """Return the entry of the window for the record. If `has_part` is false, the entry has no file."""
        window = self._task.window
        stored = (self._task.path, rows, self._bytes, self.sha256) if has_part else ("", rows, 0, "")
        return ExportedFile(window.start, window.end, *stored, int(time.time()))


@contextmanager
def _storing() -> Iterator[None]:
    """Turn an IncompleteResult of the storage into Unstored, which is never retried."""
    try:
        yield
    except IncompleteResult as error:
        raise Unstored(error.message, hint=error.hint) from None


def check(request: QueryRequest, format: ExportFormat, client: Client) -> None:
    """Check the query and the credentials with a request for an empty range.

    Raises the error of the service if the service refuses the request.
    """
    with client.query(replace(request, to=request.from_)) as answer:
        format.part(answer, BytesIO(), False, Losses())


Fetch = Callable[[Task], Fetched]
"""A function that fetches the window of a task. It is the function `fetch` with all other arguments bound."""
