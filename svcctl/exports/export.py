"""The classes for an export: the order of the user, the plan of a run, and the summary of a run."""

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
    """The query, the target, the range and the options that a user gives for an export.

    Dates are epoch seconds, and lengths are in seconds. `service` is the base URL without credentials. `zone` is the
    time zone of the dates in the rows, of the windows, and of the dates in file names. If `zone` is None, UTC is used.
    `settled` is a date before which no more events will arrive. If `settled` is set, a run contains only windows that
    end at or before this date.

    `incremental` is true if each run continues where the previous run ended. `state` is the name of the saved state of
    the export. `until` is the date up to which earlier runs have exported, according to this state. `until` is None
    before the first run.
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
    """The plan of a run.

    `whole` is the range of the run, and `windows` are the time windows of this range. `storage` holds the files, and
    `target` names the files in this storage. `distant` is true if the storage is a server. A run checks existing files
    on a server only by their sizes, not by their hashes. `notes` are texts for the user. `columns` are the columns of
    the first windows, see `Record`. If the export has a saved state, its record file lists at most `kept_windows`
    windows of earlier runs.
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
        """The request for the whole range. The time zone is given as the UTC offset at the start of the range."""
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
        """The path of the folder for the record and the unfinished files of the export. The path ends with a slash."""
        return folder_of(self.target)

    @property
    def record_path(self) -> str:
        """The path of the record file, which lists the exported windows."""
        return path_of(self.target)

    @property
    def growing(self) -> str:
        """The temporary path of the merged file while it is incomplete."""
        return f"{self.folder}merged"

    @property
    def path(self) -> str:
        """The path of the merged file."""
        return self.target.path(self.whole)

    def part(self, window: Window) -> str:
        """Return the path of a window's part. A part is a file with the rows of one window."""
        return self.parts((window,))[window]

    def parts(self, windows: Iterable[Window]) -> dict[Window, str]:
        """Return the path of each window's part. A part is a file with the rows of one window.

        A path may contain the UTC offset of the dates, such as +0100.
        """
        zone, folder = self.file_zone(self.whole), self.folder
        offset = "" if zone is None or zone == self.identity.time_zone else f"{EPOCH.astimezone(zone.clocks):%z}"
        return {window: f"{folder}{window.name}{offset}.{self.format.name}{self.compression}" for window in windows}

    def file_zone(self, file: Window) -> Zone | None:
        """Return the time zone of the dates in a file. Return None if no zone is requested.

        `file` is the range of dates that the file covers. In the date format iso, each date contains its own UTC
        offset. In other formats, all dates of a file have the UTC offset of the zone at the start of the range.
        """
        zone = self.identity.time_zone
        return zone if zone is None or self.identity.date_format == "iso" else zone.fixed(file.start)

    def tasks(self) -> dict[Window, Task]:
        """Return the task of each window. A task has everything that a worker needs to fetch the window."""
        per_window, task = self.target.per_window, self.task
        paths = self.target.paths(self.whole, self.windows) if per_window else self.parts(self.windows)
        return {
            window: replace(task, window=window, path=path, zone=self.file_zone(window) if per_window else task.zone)
            for window, path in paths.items()
        }

    @property
    def joins_windows(self) -> bool:
        """Whether one request may fetch several windows.

        The condition depends on the target:
        - If each window has its own file, the dates of the rows must show to which window each row belongs.
        - If all windows go into a merged file, no time zone may be requested. In a time zone, windows may have
          different UTC offsets.
        """
        if self.target.per_window:
            return self.format.joins and is_dated(self.order.query) and self.whole in SPLIT_RANGE
        return self.identity.time_zone is None

    def joined(self, tasks: Sequence[Task]) -> Task:
        """Return one task that fetches the windows of several tasks. There must be no gap between the windows."""
        window = Window(tasks[0].window.start, tasks[-1].window.end)
        if self.target.per_window:
            return replace(tasks[0], window=window, path="", parts=tuple(tasks))
        return replace(tasks[0], window=window, path=self.part(window))

    @property
    def task(self) -> Task:
        """A task that fetches the whole range. The task of each window is a changed copy of this task."""
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
    """The result of a run. `rows`, `bytes` and `windows` are the totals for the whole range.

    `fetched` is the number of windows that this run fetched. `gaps` are the missing windows, each with its error.
    `until` is the epoch second up to which the export is finished. Without gaps, `until` is the end of the range. With
    gaps and a file for each window, `until` is the start of the first gap. With gaps and a merged file, `until` is the
    start of the range, because a merged file with a gap is not published.

    `idle` is true if there was nothing to do. `replaced` has a text about each old file or record that the run
    replaced. `files` are the addresses of the finished files.
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
