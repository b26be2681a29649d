"""The inventory of an export: what it has so far, as its record says, and which of its files are there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from svcctl.errors import NotFound
from svcctl.exports.export import folder_of
from svcctl.exports.ownership import sizes_of
from svcctl.exports.record import ExportedFile, Record, read, read_for
from svcctl.exports.state import State, States
from svcctl.exports.windows import Target, Window
from svcctl.storage import Storage
from svcctl.storage.targets import open_target
from svcctl.words import choices


@dataclass(frozen=True, slots=True)
class Inventory:
    """An export that has run: where it goes, its record, and its state, with its name, if it has one."""

    target: str
    storage: Storage
    stored: Target
    """The target by its name in the storage."""
    record: Record
    state: State | None = None
    name: str | None = None

    @property
    def pattern(self) -> Target:
        return Target(self.target, self.record.identity.clocks)

    def named_by(self, entry: ExportedFile) -> Window:
        """The range that gives a file its name again: it starts with the file's run if the name contains that."""
        if not (self.pattern.per_window and self.pattern.per_run):
            return entry.window
        starts = {window.start for window in self.record.entries if window.start <= entry.start}
        for start in sorted(starts, reverse=True):
            name = self.pattern.path(Window(start, entry.end), entry.window).removeprefix(self.pattern.folder)
            if f"/{entry.path}".endswith(f"/{name}"):  # its directory may be spelled in another way
                return Window(start, entry.end)
        return entry.window

    def gaps(self) -> list[Window]:
        """The ranges that runs were to export and did not."""
        gaps = []
        windows = sorted([*self.record.entries, *(entry.window for entry in self.record.merged)])
        for start, end in self.record.ranges:
            at = start
            for window in windows:
                if window.end > at and window.start < end:
                    if window.start > at:
                        gaps.append(Window(at, window.start))
                    at = window.end
            if at < end:
                gaps.append(Window(at, end))
        return gaps

    def is_past(self, window: Window) -> bool:
        """Whether the next run of the export's state, or of none, does not fetch this window again."""
        return self.state is None or window.start < self.state.until

    def holdings(self) -> tuple[list[ExportedFile], list[tuple[str, ExportedFile]]]:
        """The entries that are there, each window once, and the lost ones: each with `no file`, or `damaged` in size.

        Damage that does not change the size is found only by hashing.
        """
        record = self.record
        starts = sorted(window.start for window in record.entries)

        def in_windows(merged: ExportedFile) -> bool:
            """Whether windows describe the file, because it does not have its name yet or is being replaced."""
            at = bisect_left(starts, merged.start)
            return at < len(starts) and starts[at] < merged.end

        merged = [entry for entry in record.merged if not in_windows(entry)]
        entries = [*merged, *(entry for _, entry in sorted(record.entries.items()))]
        stored = {entry.path: entry for entry in entries if entry.is_file}
        sizes = sizes_of(self.storage, stored, distant="://" in self.target)
        lost = [
            ("no file" if path not in sizes else "damaged", entry)
            for path, entry in stored.items()
            if sizes.get(path) != entry.bytes
        ]
        missing = {entry for _, entry in lost}
        return [entry for entry in entries if entry not in missing], lost

    def missing(self, lost: Sequence[tuple[str, ExportedFile]]) -> int:
        """The number of windows that were not exported, or are in files that `holdings` calls lost."""
        return self.record.identity.count([*self.gaps(), *(entry.window for _, entry in lost)])

    def verified(self, lost: Sequence[tuple[str, ExportedFile]] = ()) -> int:
        """The epoch second up to which a verify has found all there, 0 if none has.

        It is not after a gap, or after the start of a file that `holdings` calls lost, that has come up since.
        """
        gaps = [*(gap.start for gap in self.gaps()), *(entry.start for _, entry in lost)]
        return min([self.record.verified, *gaps, *(end for _, end in self.record.ranges[-1:])])

    def files(self) -> list[ExportedFile]:
        """The files that should be there: those of windows and of runs, and the parts of a run that has not ended.

        A window that is already in the merged file does not count until that file has its name.
        """
        return [*self.record.merged, *(entry for _, entry in sorted(self.record.entries.items()) if entry.is_file)]


def find(name: str, states: States, environment: Mapping[str, str]) -> Inventory:
    """The inventory of a state's export, or of the one that goes to a path.

    NotFound when there is neither; UsageError when the record of a state is missing, damaged or not that of the state.
    """
    known = (name, states.need(name)) if name in states.names() else states.writing(name)
    target = name if known is None else known[1].target
    storage, path = open_target(target, environment)
    stored = Target(path)
    if known is not None:
        label, state = known
        record = read_for(label, state.until, storage, folder_of(stored))
        return Inventory(target, storage, stored, record, state, label)
    if (found := read(storage, folder_of(stored))) is not None:
        return Inventory(target, storage, stored, found)
    names = choices(states.names())
    raise NotFound(
        f"no export goes to '{name}', and no state has that name",
        hint="give the path as it was given to -o" + (f"; the states are: {names}" if names else ""),
    )
