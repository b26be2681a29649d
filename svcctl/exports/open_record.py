"""The record of an export, while a run changes the record.

The record has an entry for each exported time window. A window goes through the stages below. The arrows are methods
of OpenRecord. A part is a file whose rows will be copied to the merged file.

    missing ─ take ─> file of its window, or part with the rows of one or several windows (`is_file`)
                      part ─ move ─> inside the merged file while this file grows (`offset`)
                                     note_published ─> `inside` the complete merged file

The saved record names only existing files, even if a run is killed. For this reason, a file is written before its name
is saved in the record. A file is removed only after its name was removed from the saved record. There is one exception:
if the merged file is complete, its parts are removed before the record is saved. If the run is killed at this moment,
`is_merged` completes the work in the next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from svcctl.errors import IncompleteResult, SvcctlError
from svcctl.exports.record import ExportedFile, Record, sizes_of, union

if TYPE_CHECKING:
    from svcctl.exports.export import Export
    from svcctl.exports.windows import Window
    from svcctl.exports.workers.fetch import Fetched, Task

SAVE_SHARE = 0.02
"""The maximum share of a run's time that is spent on saving the record."""
SAVE_INTERVAL_SECONDS = 0.2
"""The minimum number of seconds between two saves of the record."""


class OpenRecord:
    """The record of an export, which a run changes and saves. The record lists the exported windows.

    `replaced` has a text about each old record that the run replaces. `new` is true if the target had no record of this
    export. `clock` returns a monotonic time in seconds.
    """

    def __init__(
        self,
        export: Export,
        record: Record,
        *,
        replaced: Iterable[str] = (),
        new: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.export = export
        self._storage = export.storage
        self._clock = clock
        self._record = record
        self._new = new
        self.head = record.head
        self.entries = {entry.start: entry for entry in record.entries.values()}
        """The entries of the record, by the start of their time windows in epoch seconds."""
        self._ends = frozenset(window.end for window in self.export.windows)
        self.replaced = [*replaced]
        """A text about each old file or record that this run replaces."""
        self.column_changes: list[tuple[str, str]] = []
        """A pair for each change of the columns from one file to the next: the old columns and the new columns."""
        self.left_out: dict[str, None] = {}
        """Columns that the queried table got after the first windows were fetched. They are not in the files."""
        self._columns = record.columns
        self._heads: dict[Window, str] = {}
        """The heading of csv and tsv, or the columns of parquet, for each window that this run has fetched."""
        self._moved: list[str] = []
        self._saved = self._saving = 0.0

    def open(self) -> None:
        """Save the record, which includes the range of this run. With --force, also remove leftovers of killed runs."""
        self.save()
        if self.export.order.overwrite:
            self._remove_leftovers()

    # Entries

    def at(self, window: Window) -> ExportedFile | None:
        """Return the record's entry that begins at the start of a window. Return None if there is no such entry.

        An entry may cover several windows that were fetched together. If no window of this run ends where the entry
        ends, None is returned.
        """
        entry = self.entries.get(window.start)
        return entry if entry is not None and entry.end in self._ends else None

    def windows(self) -> Iterator[Window]:
        """Yield the windows of this run in order.

        If several windows were fetched together, only the first of these windows is yielded.
        """
        reached = self.export.whole.start
        for window in self.export.windows:
            if window.start >= reached:
                yield window
                reached = (self.at(window) or window).end

    def inside(self) -> list[ExportedFile]:
        """Return the record's entries for the windows of this run, in order."""
        return [entry for window in self.windows() if (entry := self.at(window)) is not None]

    @property
    def earlier(self) -> ExportedFile | None:
        """The record's entry for the merged file at the path `export.path`. It is None if there is no such entry.

        The file may cover another range than this run.
        """
        return next((file for file in self._record.merged if file.path == self.export.path), None)

    @property
    def merged(self) -> ExportedFile | None:
        """The same entry as `earlier`, if the file covers exactly the range of this run. Otherwise None."""
        merged = self.earlier
        return merged if merged is not None and merged.window == self.export.whole else None

    def is_merged(self) -> bool:
        """Return whether the complete merged file of this run's range exists.

        If an earlier run was killed after it completed the file, this call completes the work of that run. It marks the
        file as published in the record, and removes the files of single windows.
        """
        merged = self.merged
        if merged is None or self._storage.size(merged.path) != merged.bytes:
            return False
        published = merged.when > 0
        if published and self.export.distant:
            return True
        if self._storage.sha256(merged.path) != merged.sha256:
            return False
        if not published:
            self.note_published()
        return True

    def missing(self, tasks: Mapping[Window, Task]) -> list[Task]:
        """Return the tasks of the windows that must be fetched.

        Such a window has no entry in the record, or its file is missing or has changed. The entries of missing and
        changed files are dropped from the record.
        """
        entries = self.inside()
        paths = [entry.path for entry in entries if entry.is_file]
        sizes = sizes_of(self._storage, paths, distant=self.export.distant)
        for entry in entries:
            path = tasks[entry.window].path if entry.window in tasks else self.export.part(entry.window)
            if not self._is_there(entry, path, sizes):
                if self.export.target.per_window and entry.path == path and path in sizes:
                    self._note_changed(path)
                self.drop(entry.window)
        return [tasks[window] for window in self.windows() if self.at(window) is None]

    def _is_there(self, entry: ExportedFile, path: str, sizes: Mapping[str, int]) -> bool:
        if not entry.is_file:
            return True
        if entry.path != path or sizes.get(entry.path) != entry.bytes:
            return False
        if self.export.distant or not self.export.target.per_window:
            return True  # parts are hashed when they are merged
        return self._storage.sha256(entry.path) == entry.sha256

    # Changes by the run

    def take(self, fetched: Fetched) -> None:
        """Add fetched windows to the record.

        Raises IncompleteResult if the columns differ from the columns of other windows in the same file.
        """
        if self.export.target.per_window:
            self._heads |= {entry.window: fetched.head for entry in fetched.entries}
        elif self.head != fetched.head:
            self._begin_with(fetched.head)
        self.entries |= {entry.start: entry for entry in fetched.entries}
        self._columns = self._columns or fetched.columns
        self.left_out |= dict.fromkeys(fetched.left_out)

    def _begin_with(self, head: str) -> None:
        """Begin the merged file with the columns of `head`.

        All windows of a merged file must have the same columns. So windows of earlier runs are dropped from the record.
        Raises IncompleteResult if windows of this run were already fetched with other columns.
        """
        columns = self.export.format.columns
        if self.inside():
            raise IncompleteResult(
                f"the columns differ from those of the other windows: {columns(head)}",
                hint="export the ranges before and after the change separately",
            )
        self.entries.clear()
        self._claim_files()
        if self.head is not None and not self.export.target.is_one_file:
            self.column_changes.append((columns(self.head), columns(head)))
        self.head = head

    def _claim_files(self) -> None:
        """Set `ranges` of the record to the range of this run and the ranges of merged files.

        These are the ranges that the files of the export should cover. The caller has removed the entries of other
        windows from the record.
        """
        whole = self.export.whole
        files = ((file.start, file.end) for file in self._record.merged)
        self._record = replace(self._record, ranges=union([(whole.start, whole.end), *files]))

    def drop(self, *windows: Window) -> None:
        for window in windows:
            self.entries.pop(window.start, None)

    def move(self, entry: ExportedFile) -> None:
        """Replace the entry of a window after its rows were copied to the merged file.

        The window's separate file is removed after the next save of the record.
        """
        self._moved.append(entry.path)
        self.entries[entry.start] = entry
        self.save_if_due()

    def note_merged(self, size: int, sha256: str) -> None:
        """Save the size and the hash of the merged file in the record, before the file gets its final name.

        If the merged file replaces an older file, a text about the older file is added to `replaced`.
        """
        path, whole, before = self.export.path, self.export.whole, self.earlier
        if before is not None and before.when and self._storage.size(path) is not None:
            if before.window == whole:
                self._note_changed(path)
            else:
                self.replaced.append(f"{self._storage.address(path)}, which held {before.window}")
        file = ExportedFile(whole.start, whole.end, path, sum(entry.rows for entry in self.inside()), size, sha256, 0)
        self._replace_file(file, self._record.inside)
        self.save()

    def note_published(self) -> None:
        """Save in the record that the merged file is published, and remove the files of its windows."""
        path, merged = self.export.path, self.merged
        assert merged is not None
        stateless = self.export.order.state is None  # perhaps no later run uses the other parts
        inside = self.inside()
        starts = [start for start, entry in self.entries.items() if stateless or entry.window in self.export.whole]
        self._storage.remove(*filter(None, [self.entries.pop(start).path for start in starts]))
        with suppress(SvcctlError):  # leftovers do not harm the complete file
            self._remove_leftovers()
        lines = [replace(entry, path=path, offset=None) for entry in inside]
        others = [entry for entry in self._record.inside if entry.path != path]
        self._replace_file(replace(merged, when=int(time.time())), (*others, *lines))
        if stateless:
            self._claim_files()
        self.save()

    def _replace_file(self, file: ExportedFile, inside: tuple[ExportedFile, ...]) -> None:
        merged = (*(other for other in self._record.merged if other.path != file.path), file)
        self._record = replace(self._record, merged=merged, inside=inside)

    def _note_changed(self, *paths: str) -> None:
        self.replaced += [f"{self._storage.address(path)}, which had changed since its export" for path in paths]

    def note_columns(self) -> None:
        """Add to `column_changes` each change of the columns from one window to the next, in order.

        If the new columns are the columns of an earlier window, the change is not added.
        """
        reported = {self.head}
        for _, head in sorted(self._heads.items()):
            if self.head is not None and head not in reported:
                columns = self.export.format.columns
                self.column_changes.append((columns(self.head), columns(head)))
            reported.add(head)
            self.head = head
        self._heads.clear()

    # The record on the disk

    def save_if_due(self) -> None:
        """Save the record if enough time has passed since the last save."""
        if self._clock() - self._saved > max(self._saving / SAVE_SHARE, SAVE_INTERVAL_SECONDS):
            self.save()

    def save(self) -> None:
        """Save the record, and then remove the separate files of windows that are now in the merged file."""
        started = self._clock()
        entries = {entry.window: entry for entry in self.entries.values()}
        self._record = replace(self._record, head=self.head, entries=entries, columns=self._columns)
        self._record.save()
        moved, self._moved = self._moved, []
        self._storage.remove(*moved)
        self._saved = self._clock()
        self._saving = self._saved - started

    def _remove_leftovers(self) -> None:
        """Remove the files of killed runs from the folder of the record. Files with an entry in the record are kept."""
        folder = self.export.folder
        named = {self.export.record_path, *(entry.path for entry in self.entries.values())}
        self._storage.remove(*[name for name in self._storage.names(folder) if name not in named])
        self._storage.remove_unfinished(folder)

    def interrupt(self) -> None:
        """Save the record of a run that was interrupted by an error.

        If the record is new, and no window was stored, the record is then removed. With --state, it is kept.
        """
        with suppress(SvcctlError):
            self.note_columns()
            self.save()
            if self._new and self.export.order.state is None and not self._has_windows():
                self._storage.remove(self.export.record_path)

    def _has_windows(self) -> bool:
        """Return whether a window was stored. The record may lack a file that was completed while the run ended."""
        export = self.export
        if self.entries or self._record.merged:
            return True
        if export.order.overwrite or not export.target.per_window:
            return False  # with --force, the files may belong to others
        paths = [task.path for task in export.tasks().values()]
        return bool(sizes_of(self._storage, paths, distant=export.distant))
