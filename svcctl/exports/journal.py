"""The manifest of a run while it changes: read, compared with what is stored, and saved as windows arrive.

A manifest is saved before anything that it no longer names is removed, and after everything that it names is there. So
whatever ends a run, the manifest on the disk names only what is there.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from svcctl.errors import IncompleteResult, SvcctlError, UsageError
from svcctl.exports.claims import claimed_by, covered, widened
from svcctl.exports.manifest import Entry, Manifest, difference, store, stored, union
from svcctl.exports.refetch import THAT_PROFILE, OfAnotherService
from svcctl.storage import exists
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.exports.export import Export
    from svcctl.exports.fetch import Fetched, Task
    from svcctl.exports.windows import Window
    from svcctl.storage import Storage

SAVING = 0.05
"""The largest share of the time that is spent on saving: with many windows, the manifest is saved less often."""
SECONDS = 0.2
"""The shortest time between two savings."""
FEW = 8
"""The most objects on a server whose sizes are requested one by one; the sizes of more come from one listing."""


class Journal:
    """The entries of an export as a run changes them. `clock` is monotonic, in seconds.

    `changed` is called with the columns of earlier runs and those of this run, if they differ.
    """

    def __init__(
        self,
        export: Export,
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[str, str], None] = lambda before, now: None,
    ) -> None:
        self._export = export
        self._storage = export.storage
        self._clock = clock
        self._changed = changed
        self.head: str | None = None
        self.entries: dict[Window, Entry] = {}
        self.held: dict[Window, Fetched] = {}
        """The windows that are only in memory."""
        self._heads: dict[Window, str] = {}
        """The heads of the windows that this run has fetched."""
        self._joined: dict[int, Window] = {}
        """The ranges of several windows that were fetched as one, by their start."""
        self._merged: dict[str, Entry] = {}
        self._claimed: tuple[tuple[int, int], ...] = ()
        self._replaced: dict[Window, Window] = {}
        self.replaced: list[str] = []
        """The files whose content is replaced, each with what it held."""
        self._moved: list[str] = []
        self._new = True
        self._saved = self._saving = 0.0

    # What is there already

    def open(self) -> Export:
        """Read the manifest and claim the target: whatever is not this export's own is not overwritten.

        Returns the export of this run, whose first and last window may cover more than was asked for.
        """
        self.check()
        self._claim()
        if self._export.kept is not None:
            self._forget_the_oldest(self._export.kept)
        self.save()
        if self._export.overwrite:
            self._remove_leftovers()
        return self._export

    def check(self) -> None:
        """Read the manifest; UsageError when it, or a file of the target, is not this export's own."""
        if self._export.overwrite:
            self._begin_anew()
            return
        self._read()
        self._export = widened(self._export, self.entries, self._claimed)
        self._find_joined()
        self._refuse_what_is_not_ours(self._export.tasks())

    def _claim(self) -> None:
        there = [*self.entries.values(), *self._merged.values()]
        self._claimed = claimed_by(self._export, self._claimed, there)

    def _read(self) -> None:
        found = stored(self._storage, self._export.folder)
        if found is None:
            return
        if found.about.key != self._export.about.key:
            if not found.entries and not found.merged:
                return  # that export never had anything
            raise self._of_another(found)
        self._adopt(found)

    def _of_another(self, found: Manifest) -> UsageError:
        target = self._storage.address(self._export.target.text)
        message = f"{target} belongs to another export: {difference(found.about, self._export.about)}"
        other = "write to another path, or"
        if (service := found.about.service) != self._export.about.service:
            return OfAnotherService(message, hint=f"{other} give {THAT_PROFILE}", service=service)
        if (name := self._export.owner) is not None:
            end = f"first end the state '{name}', which writes to this one, with 'svcctl export rm {name}'"
            return UsageError(message, hint=f"{other} {end}, and then give --force")
        return UsageError(message, hint=f"{other} give --force to begin anew")

    def _adopt(self, found: Manifest) -> None:
        self.head = found.head
        self.entries = dict(found.entries)
        self._merged = {entry.path: entry for entry in found.merged}
        self._claimed = found.claimed
        self._new = False

    def _find_joined(self) -> None:
        """Find the entries that cover several windows of this run."""
        export = self._export
        if export.target.per_window:
            return
        windows = frozenset(export.windows)
        starts, ends = {window.start for window in windows}, {window.end for window in windows}
        for window in self.entries:
            if window.start in starts and window.end in ends and window not in windows:
                self._joined[window.start] = window

    def piece(self, window: Window) -> Window:
        """The range that was fetched as one and begins with this window; the window itself if it was fetched alone."""
        union = self._joined.get(window.start)
        return window if union is None or not self.has(union) else union

    def pieces(self) -> Iterator[Window]:
        """The windows of this run in order; several that were fetched as one come as one."""
        reached = self._export.windows[0].start
        for window in self._export.windows:
            if window.start >= reached:
                piece = self.piece(window)
                reached = piece.end
                yield piece

    def _begin_anew(self) -> None:
        """Forget what earlier runs did in this run's time or under its names, and everything another export did.

        UsageError for a state's manifest that is damaged or another export's: without it, the files of earlier runs
        would be unknown.
        """
        export = self._export
        try:
            found = stored(self._storage, export.folder)
        except UsageError:
            if export.kept is not None:
                raise
            self.replaced.append(
                f"{self._storage.address(export.manifest)}, which was damaged: it describes this run only"
            )
            found = None
        if found is None:
            return
        if found.about.key != export.about.key:
            if export.owner is not None and (found.entries or found.merged):
                raise self._of_another(found)
            self._note_left(found)
            return
        self._adopt(found)
        self._export = export = widened(export, self.entries, ())
        names = self._names()
        new = [Entry(window.start, window.end, "", 0, 0, "", 0.0, 0) for window in export.windows]
        double = {entry.window for entry, _ in covered(export.target, [*self.entries.values(), *new])}

        def stays(entry: Entry) -> bool:
            apart = entry.end <= export.whole.start or export.whole.end <= entry.start or entry.window in double
            return apart and entry.path not in names and not export.target.is_one_file

        self.entries = {window: entry for window, entry in self.entries.items() if stays(entry)}
        self._merged = {path: entry for path, entry in self._merged.items() if stays(entry)}
        if not self.entries:
            self.head = None

    def _names(self) -> set[str]:
        """The names of this run's files."""
        export = self._export
        return {task.path for task in export.tasks().values()} if export.target.per_window else {export.path}

    def _note_left(self, found: Manifest) -> None:
        """Note the files of another export that this one does not replace, and that no manifest describes any more."""
        entries = found.entries.values() if self._export.target.per_window else found.merged
        if left := self._sizes({entry.path for entry in entries if entry.path} - self._names()):
            others = counted(len(left), "other file of it stays, and is", "other files of it stay, and are")
            manifest = self._storage.address(self._export.manifest)
            self.replaced.append(f"{manifest}, which described another export: {others} not verified any more")

    def _refuse_what_is_not_ours(self, tasks: Mapping[Window, Task]) -> None:
        """UsageError for a file of the target that another export wrote, or this one for a time outside the window."""
        theirs: dict[str, Window | None] = {}
        if self._export.target.per_window:
            written = {entry.path: entry.window for entry in self.entries.values()}
            for window, task in tasks.items():
                other = written.get(task.path)
                if other is not None and other in window:
                    self._replaced[window] = other
                elif other is not None or not self._claims(window):
                    theirs[task.path] = other
        elif not self.is_ours():
            merged = self._merged.get(self._export.path)
            theirs[self._export.path] = None if merged is None else merged.window
        for path in self._sizes(theirs):
            raise exists(self._storage.address(path), theirs[path])

    def _forget_the_oldest(self, kept: int) -> None:
        """Keep at most `kept` windows and files of the time before this run."""
        past = [*self.entries.values(), *self._merged.values()]
        old = sorted((entry for entry in past if entry.end <= self._export.whole.start), key=lambda entry: entry.start)
        if len(old) <= kept:
            return
        since = old[len(old) - kept - 1].end
        self.entries = {window: entry for window, entry in self.entries.items() if window.start >= since}
        self._merged = {path: entry for path, entry in self._merged.items() if entry.start >= since}
        self._claimed = tuple((max(start, since), end) for start, end in self._claimed if end > since)

    def _claims(self, window: Window) -> bool:
        """Whether a run, finished or not, was to export some of this window."""
        return any(start < window.end and window.start < end for start, end in self._claimed)

    def is_ours(self) -> bool:
        """Whether this export wrote the merged file, for no time outside this run's range."""
        merged = self._merged.get(self._export.path)
        return merged is not None and merged.window in self._export.whole

    @property
    def merged(self) -> Entry | None:
        """The merged file if its range is that of this run."""
        merged = self._merged.get(self._export.path)
        return merged if merged is not None and merged.window == self._export.whole else None

    def is_merged(self) -> bool:
        """Whether the merged file is in place, with this run's range; parts that are left over are removed."""
        merged = self.merged
        if merged is None or self._storage.size(merged.path) != merged.bytes:
            return False
        published = merged.attempts > 0
        if published and self._export.distant:
            return True
        if self._storage.sha256(merged.path) != merged.sha256:
            return False
        if not published:
            self.note_published()
        return True

    def missing(self, tasks: Mapping[Window, Task]) -> list[Task]:
        """The tasks whose part is not there as the manifest describes it; their entries are removed."""
        known = {piece: entry for piece in self.pieces() if (entry := self.entries.get(piece)) is not None}
        sizes = self._sizes([entry.path for entry in known.values() if entry.path and entry.offset is None])
        there = [
            piece
            for piece, entry in known.items()
            if self._is_there(entry, tasks[piece].path if piece in tasks else self._export.part(piece), sizes)
        ]
        changed = known.keys() - there
        if self._export.target.per_window:
            paths = [known[piece].path for piece in sorted(changed) if known[piece].path == tasks[piece].path]
            self._note_changed(*(path for path in paths if path in sizes))
        self.forget(changed)
        covered = iter(there)
        piece = next(covered, None)
        missing = []
        for window, task in tasks.items():
            while piece is not None and piece.end <= window.start:
                piece = next(covered, None)
            if piece is None or window not in piece:
                missing.append(task)
        return missing

    def _is_there(self, entry: Entry, path: str, sizes: Mapping[str, int]) -> bool:
        if not entry.path or entry.offset is not None:
            return True
        if entry.path != path or sizes.get(entry.path) != entry.bytes:
            return False
        if self._export.distant or not self._export.target.per_window:
            return True  # parts are hashed as they are merged
        return self._storage.sha256(entry.path) == entry.sha256

    def _sizes(self, names: Collection[str]) -> Mapping[str, int]:
        """The sizes of those objects that are there."""
        return sizes_of(self._storage, names, distant=self._export.distant)

    # What the run does

    def has(self, window: Window) -> bool:
        return window in self.entries or window in self.held

    def entry(self, window: Window) -> Entry | None:
        """The entry of a window, wherever its bytes are."""
        fetched = self.held.get(window)
        return self.entries.get(window) if fetched is None else fetched.entry

    def take(self, fetched: Fetched, others: Iterable[Window]) -> None:
        """Note a fetched window. IncompleteResult when it has other columns than the rest of its file."""
        if self._export.target.per_window:
            self._heads[fetched.entry.window] = fetched.head
        elif self.head != fetched.head:
            if any(self.has(self.piece(window)) for window in others):
                columns = self._export.format.columns(fetched.head)
                raise IncompleteResult(
                    f"the columns are not those of the other windows: {columns}",
                    hint="export the ranges before and after the change by themselves",
                )
            # Earlier runs had other columns, and the parts of a file share one heading.
            self.entries.clear()
            files = [*self._merged.values()]
            whole = self._export.whole
            self._claimed = union([(whole.start, whole.end), *((file.start, file.end) for file in files)])
            if self.head is not None and not self._export.target.is_one_file:
                self._changed(*map(self._export.format.columns, (self.head, fetched.head)))
            self.head = fetched.head
        window = fetched.entry.window
        self._joined[window.start] = window
        if fetched.held is not None:
            self.held[window] = fetched
            return
        before = self._replaced.get(window, window)
        if before != window:
            self._note_longer(fetched.entry.path, before)
        self.entries.pop(before, None)
        self.entries[window] = fetched.entry

    def forget(self, windows: Iterable[Window]) -> None:
        for window in windows:
            self.entries.pop(window, None)

    def move(self, entry: Entry) -> None:
        """Note that a window is in the merged file; its part, if it has one, is removed once the note is saved."""
        if self.held.pop(entry.window, None) is None:
            self._moved.append(entry.path)
        self.entries[entry.window] = entry
        self.save_if_due()

    def tell_columns(self) -> None:
        """Report each change of columns from file to file once, in the order of time and not of arrival."""
        told = {self.head}
        for _, head in sorted(self._heads.items()):
            if self.head is not None and head not in told:
                self._changed(*map(self._export.format.columns, (self.head, head)))
            told.add(head)
            self.head = head
        self._heads.clear()

    def settle(self) -> None:
        """Store what is only in memory, since this run does not merge it."""
        while self.held:
            window, fetched = self.held.popitem()
            assert fetched.held is not None
            fetched.held.store()
            self.entries[window] = replace(fetched.entry, sha256=fetched.held.sha256)

    def note_merged(self, size: int, sha256: str) -> None:
        """Note the size and the hash that the merged file will have."""
        whole, path = self._export.whole, self._export.path
        rows = sum(self.entries[window].rows for window in self.pieces())
        self._merged[path] = Entry(whole.start, whole.end, path, rows, size, sha256, 0.0, 0)
        self.save()

    def note_replaced(self) -> None:
        """Note what the merged file replaces."""
        merged = self._merged.get(self._export.path)
        if merged is None or not merged.attempts or self._storage.size(merged.path) is None:
            return
        if merged.window == self._export.whole:
            self._note_changed(merged.path)
        else:
            self._note_longer(merged.path, merged.window)

    def _note_changed(self, *paths: str) -> None:
        self.replaced += [f"{self._storage.address(path)}, which was not as it was exported" for path in paths]

    def _note_longer(self, path: str, before: Window, by: str = "") -> None:
        self.replaced.append(f"{self._storage.address(path)}, which held {before}{by}")

    def note_published(self) -> None:
        """Remove the parts, then note that the merged file is in place: from then on nothing is left to do."""
        path = self._export.path
        every = self._export.kept is None  # without a state, nobody may ever ask for the other parts again
        done = [window for window in self.entries if every or window in self._export.whole]
        self._storage.remove(*filter(None, [self.entries.pop(window).path for window in done]))
        with suppress(SvcctlError):  # the file is whole, whatever is left beside it
            self._remove_leftovers()
        self._merged[path] = replace(self._merged[path], attempts=1)
        self._claim()
        self.save()

    def _remove_leftovers(self) -> None:
        """Remove what killed runs stored without noting it."""
        folder = self._export.folder
        named = {self._export.manifest, *(entry.path for entry in self.entries.values())}
        self._storage.remove(*[name for name in self._storage.names(folder) if name not in named])
        self._storage.remove_unfinished(folder)

    def save_if_due(self) -> None:
        """Save, unless the last time was too recent."""
        if self._clock() - self._saved > max(self._saving / SAVING, SECONDS):
            self.save()

    def save(self) -> None:
        started = self._clock()
        self._write()
        double = [
            (entry, other)
            for entry, other in covered(self._export.target, self.entries.values())
            if self._storage.size(other.path) == other.bytes
        ]
        if double:
            for entry, other in double:
                self._storage.remove(entry.path)
                self.forget([entry.window])
                self._note_longer(entry.path, entry.window, f", with {self._storage.address(other.path)}")
            self._write()
        self._saved = self._clock()
        self._saving = self._saved - started

    def _write(self) -> None:
        target, merged = self._export.target, tuple(self._merged.values())
        manifest = Manifest(self._export.about, self.head, self.entries, merged, self._claimed, target.rest)
        store(self._storage, self._export.folder, manifest)
        moved, self._moved = self._moved, []
        self._storage.remove(*moved)

    def close(self) -> None:
        """Remove the manifest of a run that exported nothing."""
        if self._new and not self.entries and not self._merged:
            self._storage.remove(self._export.manifest)


def sizes_of(storage: Storage, names: Collection[str], *, distant: bool) -> Mapping[str, int]:
    """The sizes of those objects that are there."""
    plain = all(posixpath.normpath(name) == name for name in names)
    if distant and len(names) > FEW and plain:
        wanted = frozenset(names)
        folder = posixpath.commonprefix(list(names)).rpartition("/")[0]
        return {name: size for name, size in storage.sizes(folder) if name in wanted}
    return {name: size for name in names if (size := storage.size(name)) is not None}
