"""What is exported, and where to: as a user orders it, as it is planned, and the summary of a run.

The record and the parts of an export are in a folder beside its target, `.<target>.export`.
"""

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
    """What a user wants exported. Dates are epoch seconds, lengths are in seconds.

    With `settled`, the moment before which no more events arrive, a run ends with the last whole window before that.
    `service` is the base URL, without credentials. `incremental` says that each run starts where the last one ended.
    `state` is the state whose runs write to the target, and `until` where it ends, None before its first run.
    `zone` is that of the dates in the answers, and of windows and names; None: UTC.
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
    """What is exported, and where to: an order, over the range `whole`, which `windows` cover.

    `storage` holds the target, whose names are relative to it. `distant` says that reading an object back costs a
    transfer: then a rerun compares sizes instead of hashes. The record of a state describes at most `kept` windows of
    earlier runs. `notes` are what the user should know about the windows. `columns` are those of the record.
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
    kept: int = 10_000
    columns: tuple[str, ...] = ()

    @property
    def request(self) -> QueryRequest:
        """The request for the whole range, with the offset at its start."""
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
        """The name of the merged file while it grows."""
        return f"{self.folder}merged"

    @property
    def path(self) -> str:
        """The merged file of this run."""
        return self.target.path(self.whole)

    def part(self, window: Window) -> str:
        """The part that holds a window until it is in the merged file."""
        return self.parts((window,))[window]

    def parts(self, windows: Iterable[Window]) -> dict[Window, str]:
        """The parts that hold windows until they are in the merged file. If that has one offset of several, the names
        contain the offset: a file that begins at another offset has other parts."""
        zone, folder = self.file_zone(self.whole), self.folder
        offset = "" if zone is None or zone == self.identity.time_zone else f"{EPOCH.astimezone(zone.clocks):%z}"
        return {window: f"{folder}{window.name}{offset}.{self.format.name}{self.compression}" for window in windows}

    def file_zone(self, file: Window) -> Zone | None:
        """The zone of the dates in a file over a range; None if none is requested.

        Only dates in iso contain their offset. All others of a file have the offset that the zone has at its start.
        """
        zone = self.identity.time_zone
        return zone if zone is None or self.identity.date_format == "iso" else zone.fixed(file.start)

    def tasks(self) -> dict[Window, Task]:
        """The task of each window."""
        per_window, task = self.target.per_window, self.task
        paths = self.target.paths(self.whole, self.windows) if per_window else self.parts(self.windows)
        return {
            window: replace(task, window=window, path=path, zone=self.file_zone(window) if per_window else task.zone)
            for window, path in paths.items()
        }

    @property
    def joins_windows(self) -> bool:
        """Whether one request may fetch several windows. The rows in its answer go into the files of windows by their
        dates; in a merged file, windows of a zone may have offsets of their own.
        """
        if self.target.per_window:
            return self.format.joins and is_dated(self.order.query) and self.whole in SPLIT_RANGE
        return self.identity.time_zone is None

    def joined(self, tasks: Sequence[Task]) -> Task:
        """One task that fetches the windows of several, each of which begins where the one before it ends."""
        window = Window(tasks[0].window.start, tasks[-1].window.end)
        if self.target.per_window:
            return replace(tasks[0], window=window, path="", parts=tuple(tasks))
        return replace(tasks[0], window=window, path=self.part(window))

    @property
    def task(self) -> Task:
        """The part that all tasks share; a file of a window has a zone of its own."""
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
    """The result of a run: totals over all windows of the range, and what this run did for them.

    `gaps` are the windows that are missing, each with its error; `until` is the end of what is in place without a gap
    before it: a merged file with a gap is not in place at all. `idle` says that everything was in place before the run.
    `replaced` are the finished files that were replaced, each with what it was; `files` are those that are in place.
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
        """The windows that earlier runs fetched."""
        return max(0, self.windows - self.fetched - len(self.gaps))
