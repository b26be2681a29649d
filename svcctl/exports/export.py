"""The order of a user, the export that is planned for the order, and the summary of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from svcctl.api.query import ALL_COLUMNS, QueryRequest, answer, is_dated, outline
from svcctl.dates.epochs import EPOCH
from svcctl.errors import SvcctlError
from svcctl.exports.formats import ExportFormat
from svcctl.exports.identity import Identity
from svcctl.exports.record import folder_of, path_of
from svcctl.exports.windows import Target, Window
from svcctl.exports.workers.fetch import Task
from svcctl.exports.workers.split import SPLIT_RANGE

if TYPE_CHECKING:
    from svcctl.dates.zones import Zone
    from svcctl.storage import Storage


@dataclass(frozen=True, slots=True)
class Order:
    """An order: the query, the target, the range and the options that a user gave.

    Dates are epoch seconds, lengths are in seconds. `service` is the base URL without credentials. `zone` is the time
    zone of three things: the dates in the rows, the windows, and the dates in file names; None for UTC. Events before
    the date `settled` no longer arrive, so a run ends with the last whole window before this date.

    `incremental` says that each run starts at the end of the last run. `state` is the name of the state that writes to
    the target. `until` is the end of the last run of this state; None before the first run.
    """

    query: str
    target: str
    start: int
    end: int
    window: int
    service: str
    format: str | None = None
    date_format: str | None = None
    zone: Zone | None = None
    retries: int = 4
    overwrite: bool = False
    settled: int | None = None
    incremental: bool = False
    state: str | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """The plan of a run of an order. The range of the run is `whole`, and it is cut into `windows`.

    `storage` holds the files, and `target` is the target by its name in that storage. `distant` says that the storage
    is a server. A rerun then compares sizes instead of hashes, to save transfers. `notes` are notes for the user. The
    record of a state keeps at most `kept_windows` windows of earlier runs. `columns` are the columns in the record.
    """

    order: Order
    identity: Identity
    format: ExportFormat
    compression: str
    target: Target
    whole: Window
    windows: Sequence[Window]
    storage: Storage
    distant: bool = False
    notes: tuple[str, ...] = ()
    kept_windows: int = 10_000
    columns: tuple[str, ...] = ()

    @property
    def request(self) -> QueryRequest:
        """The request for the whole range. Its time zone is the offset at the start of the range."""
        order, whole, zone = self.order, self.whole, self.identity.time_zone
        return QueryRequest(
            whole.start,
            whole.end,
            order.query,
            mode=self.format.mode,
            date_format=order.date_format,
            time_zone=zone.offset_name(whole.start) if zone else None,
        )

    @property
    def folder(self) -> str:
        """The folder of the record and the parts, with a slash at its end."""
        return folder_of(self.target)

    @property
    def record_path(self) -> str:
        """The path of the record."""
        return path_of(self.target)

    @property
    def growing(self) -> str:
        """The path at which the merged file grows, before it gets its name."""
        return f"{self.folder}merged"

    @property
    def path(self) -> str:
        """The path of the merged file."""
        return self.target.path(self.whole)

    def part(self, window: Window) -> str:
        """Return the path of the part of a window."""
        return self.parts((window,))[window]

    def parts(self, windows: Iterable[Window]) -> dict[Window, str]:
        """Return the path of the part of each window.

        If the offset of the zone changes, the dates of a merged file are all written with the offset at its start. The
        names of the parts then contain this offset, because a merged file with another offset needs other parts.
        """
        zone, folder = self.file_zone(self.whole), self.folder
        offset = "" if zone is None or zone == self.identity.time_zone else f"{EPOCH.astimezone(zone.clocks):%z}"
        return {window: f"{folder}{window.name}{offset}.{self.format.name}{self.compression}" for window in windows}

    def file_zone(self, file: Window) -> Zone | None:
        """Return the zone of the dates in a file that covers the range `file`; None if no zone is requested.

        In the date format iso, each date contains its own offset. In other formats, all dates of a file have the offset
        that the zone has at the start of the file.
        """
        zone = self.identity.time_zone
        return zone if zone is None or self.identity.date_format == "iso" else zone.fixed(file.start)

    def tasks(self) -> dict[Window, Task]:
        """Return the task of each window."""
        per_window, task = self.target.per_window, self.task
        paths = self.target.paths(self.whole, self.windows) if per_window else self.parts(self.windows)
        return {
            window: replace(task, window=window, path=path, zone=self.file_zone(window) if per_window else task.zone)
            for window, path in paths.items()
        }

    @property
    def joins_windows(self) -> bool:
        """Whether one request may fetch several windows.

        If each window has its own file, the rows of the answer are assigned to windows by their dates. With a merged
        file, windows may have different offsets, so several windows are fetched by one request only if no zone is
        requested.
        """
        if self.target.per_window:
            return self.format.joins and is_dated(self.order.query) and self.whole in SPLIT_RANGE
        return self.identity.time_zone is None

    def joined(self, tasks: Sequence[Task]) -> Task:
        """Return one task for the windows of several tasks. The windows must follow each other without a gap."""
        window = Window(tasks[0].window.start, tasks[-1].window.end)
        if self.target.per_window:
            return replace(tasks[0], window=window, path="", parts=tuple(tasks))
        return replace(tasks[0], window=window, path=self.part(window))

    @property
    def task(self) -> Task:
        """A task for the whole range. The tasks of windows are made from this task."""
        return Task(
            self.whole,
            self.request,
            self.format.name,
            "",
            self.compression,
            part_of=None if self.target.per_window else self.path,
            retries=self.order.retries,
            zone=self.file_zone(self.whole),
            plain=outline(self.order.query).is_plain,
            columns=self.columns if ALL_COLUMNS in answer(self.order.query) else None,
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run. `rows`, `bytes` and `windows` are totals of the range.

    `fetched` is the number of windows that this run fetched. `gaps` are the missing windows, each with its error.
    `until` is the epoch second up to which the export is finished: the start of the first gap, or the end of the range
    without a gap. A merged file with a gap is not published, so `until` is then the start of the range. `idle` says
    that there was nothing to do. `replaced` has a text for each finished file that the run replaced, with a description
    of the old content. `files` are the addresses of the finished files.
    """

    rows: int
    bytes: int
    windows: int
    fetched: int
    gaps: tuple[tuple[Window, SvcctlError], ...]
    until: int
    idle: bool = False
    replaced: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """The number of windows that earlier runs fetched."""
        return max(0, self.windows - self.fetched - len(self.gaps))
