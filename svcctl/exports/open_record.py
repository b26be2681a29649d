"""The record of an export while a run holds it open, and the life of each window in it.

    missing ─ take ─> file of its window, or part of one or several windows (`is_file`)
                      part ─ move ─> inside the merged file while that grows (`offset`)
                                     note_published ─> `inside` the merged file, which has its name

The record is saved after the files that it names exist, and before files are removed that it no longer names. So the
record on the disk names only existing files, however a run ends.
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
"""The largest share of a run's time for saving the record. Longer records are saved less often."""
SAVE_INTERVAL_SECONDS = 0.2
"""The shortest time between two saves."""


class OpenRecord:
    """The record of an export, which a run changes and saves. `clock` is monotonic, in seconds.

    `replaced` are the records that the run replaces, in words. `new` says that the target had no record of this export.
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
        """The entries by the start of their windows."""
        self._ends = frozenset(window.end for window in self.export.windows)
        self.replaced = [*replaced]
        """The replaced files and records, each with a description of the old content."""
        self.column_changes: list[tuple[str, str]] = []
        """The changes of columns from file to file: the old and the new columns."""
        self.left_out: dict[str, None] = {}
        """The columns that the table has gained since the first windows; files leave them out."""
        self._columns = record.columns
        self._heads: dict[Window, str] = {}
        """The heads of the windows that this run has fetched."""
        self._moved: list[str] = []
        self._saved = self._saving = 0.0

    def open(self) -> None:
        """Save the claimed range. A run that starts over also removes the leftovers of killed runs."""
        self.save()
        if self.export.order.overwrite:
            self._remove_leftovers()

    # Entries

    def at(self, window: Window) -> ExportedFile | None:
        """The entry that begins with a window of this run. It may cover several windows that were fetched together."""
        entry = self.entries.get(window.start)
        return entry if entry is not None and entry.end in self._ends else None

    def windows(self) -> Iterator[Window]:
        """The windows of this run in order; of windows that were fetched together, only the first."""
        reached = self.export.whole.start
        for window in self.export.windows:
            if window.start >= reached:
                yield window
                reached = (self.at(window) or window).end

    def inside(self) -> list[ExportedFile]:
        """The entries of this run, in order."""
        return [entry for window in self.windows() if (entry := self.at(window)) is not None]

    @property
    def earlier(self) -> ExportedFile | None:
        """The merged file with the name of this run's file, over any range."""
        return next((file for file in self._record.merged if file.path == self.export.path), None)

    @property
    def merged(self) -> ExportedFile | None:
        """The merged file with the name and the range of this run's file."""
        merged = self.earlier
        return merged if merged is not None and merged.window == self.export.whole else None

    def is_merged(self) -> bool:
        """Whether the merged file exists with this run's range.

        Also completes a run that was killed after the file got its name: it notes the file and removes the parts.
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
        """The tasks without a part or file that matches the record. Drops the entries of those that do not match."""
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
            return True  # merging hashes the parts
        return self._storage.sha256(entry.path) == entry.sha256

    # Changes by the run

    def take(self, fetched: Fetched) -> None:
        """Note the fetched windows. IncompleteResult when they have other columns than the rest of their file."""
        if self.export.target.per_window:
            self._heads |= {entry.window: fetched.head for entry in fetched.entries}
        elif self.head != fetched.head:
            self._begin_with(fetched.head)
        self.entries |= {entry.start: entry for entry in fetched.entries}
        self._columns = self._columns or fetched.columns
        self.left_out |= dict.fromkeys(fetched.left_out)

    def _begin_with(self, head: str) -> None:
        """Begin the merged file with new columns, and drop the parts of earlier runs. All parts share one heading."""
        columns = self.export.format.columns
        if self.inside():
            raise IncompleteResult(
                f"the columns differ from those of the other windows: {columns(head)}",
                hint="export the ranges before and after the change by themselves",
            )
        self.entries.clear()
        self._claim_files()
        if self.head is not None and not self.export.target.is_one_file:
            self.column_changes.append((columns(self.head), columns(head)))
        self.head = head

    def _claim_files(self) -> None:
        """Reduce the ranges to those of this run and of merged files, because the parts of other runs are gone."""
        whole = self.export.whole
        files = ((file.start, file.end) for file in self._record.merged)
        self._record = replace(self._record, ranges=union([(whole.start, whole.end), *files]))

    def drop(self, *windows: Window) -> None:
        for window in windows:
            self.entries.pop(window.start, None)

    def move(self, entry: ExportedFile) -> None:
        """Note that a window is in the growing file. Its part is removed after the record is saved."""
        self._moved.append(entry.path)
        self.entries[entry.start] = entry
        self.save_if_due()

    def note_merged(self, size: int, sha256: str) -> None:
        """Note the size and hash of the merged file, before it gets its name, and the file that it replaces."""
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
        """Remove the parts, then note that the merged file has its name. The export is then complete."""
        path, merged = self.export.path, self.merged
        assert merged is not None
        stateless = self.export.order.state is None  # no later run may ever use the other parts
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
        """Note each change of columns from file to file once, in the order of the windows."""
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
        """Save the record, unless it was saved a moment ago."""
        if self._clock() - self._saved > max(self._saving / SAVE_SHARE, SAVE_INTERVAL_SECONDS):
            self.save()

    def save(self) -> None:
        """Save the record, then remove the parts that moved into the growing file."""
        started = self._clock()
        entries = {entry.window: entry for entry in self.entries.values()}
        self._record = replace(self._record, head=self.head, entries=entries, columns=self._columns)
        self._record.save()
        moved, self._moved = self._moved, []
        self._storage.remove(*moved)
        self._saved = self._clock()
        self._saving = self._saved - started

    def _remove_leftovers(self) -> None:
        """Remove the parts of killed runs that are not in the record."""
        folder = self.export.folder
        named = {self.export.record_path, *(entry.path for entry in self.entries.values())}
        self._storage.remove(*[name for name in self._storage.names(folder) if name not in named])
        self._storage.remove_unfinished(folder)

    def interrupt(self) -> None:
        """Save the record of a failed run. Without a state, a new and empty record is removed instead."""
        with suppress(SvcctlError):
            self.note_columns()
            self.save()
            if self._new and self.export.order.state is None and not self.entries and not self._record.merged:
                self._storage.remove(self.export.record_path)
