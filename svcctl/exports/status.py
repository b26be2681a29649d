"""What an export has so far, as its record says, and which of its files are there."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from svcctl.errors import NotFound, SvcctlError, UsageError
from svcctl.exports.claim import sizes_of
from svcctl.exports.export import folder_of, lock_of
from svcctl.exports.record import NAME, Damaged, Entry, Record, read, read_for
from svcctl.exports.state import State, States, directory_of
from svcctl.exports.windows import Target, Window
from svcctl.io.files import PART_SUFFIX, is_locked
from svcctl.storage import Storage
from svcctl.storage.local import Local
from svcctl.storage.targets import open_target


@dataclass(frozen=True, slots=True)
class Found:
    """An export that has run: where it goes, its record, and its state, with its name, if it has one."""

    target: str
    storage: Storage
    stored: Target
    """The target by its name in the storage."""
    record: Record
    state: State | None = None
    name: str | None = None
    one: Window | None = None
    """If this is one file of an export: the range that gives the file its name again."""
    file: str = ""
    """If this is one file of an export: its path."""

    @property
    def place(self) -> str:
        """The target, or the one file, as it is known in this directory."""
        return self.file or self.given

    @property
    def pattern(self) -> Target:
        return Target(self.target, self.record.about.zone)

    @property
    def given(self) -> str:
        """The target as a command in this directory names it."""
        return self.target if self.state is None else self.state.given

    @property
    def is_distant(self) -> bool:
        return "://" in self.target

    @property
    def is_running(self) -> bool:
        """Whether a run of this export has not ended, as far as local files tell."""
        return not self.is_distant and is_locked(Path(f"{lock_of(Target(self.given))}{PART_SUFFIX}"))

    @property
    def published(self) -> Collection[Entry]:
        """The files that have their names: not the parts of a run that has not ended."""
        return self.record.entries.values() if self.pattern.per_window else self.record.merged

    def named_by(self, entry: Entry) -> Window:
        """The range that gives a file its name again: it starts with the file's run if the name contains that."""
        if self.one is not None:
            return self.one
        if not (self.pattern.per_window and self.pattern.per_run):
            return entry.window
        starts = {window.start for window in self.record.entries if window.start <= entry.start}
        for start in sorted(starts, reverse=True):
            name = self.pattern.path(Window(start, entry.end), entry.window).removeprefix(self.pattern.folder)
            if f"/{entry.path}".endswith(f"/{name}"):  # its directory may be spelled in another way
                return Window(start, entry.end)
        return entry.window

    def later(self, date: int) -> Found:
        """The same export without what ended by a date."""
        return replace(self, record=self.record.later(date))

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

    def overlapping(self) -> list[Window]:
        """The ranges that more than one file of a pattern covers: their events are there more than once."""
        found, reached = [], 0
        for start, end in sorted((entry.start, entry.end) for entry in self.published):
            if start < reached:
                found.append(Window(start, min(reached, end)))
            reached = max(reached, end)
        return found

    def is_past(self, window: Window) -> bool:
        """Whether the next run of the export's state, or of none, does not fetch this window again."""
        return self.state is None or window.start < self.state.until

    def holdings(self) -> tuple[list[Entry], list[tuple[str, Entry]]]:
        """The entries that are there, each window once, and the lost ones: each with `no file`, or `damaged` in size.

        Damage that does not change the size is found only by hashing.
        """
        record = self.record
        starts = sorted(window.start for window in record.entries)

        def in_windows(merged: Entry) -> bool:
            """Whether windows describe the file, because it does not have its name yet or is being replaced."""
            at = bisect_left(starts, merged.start)
            return at < len(starts) and starts[at] < merged.end

        merged = [entry for entry in record.merged if not in_windows(entry)]
        entries = [*merged, *(entry for _, entry in sorted(record.entries.items()))]
        stored = {entry.path: entry for entry in entries if entry.is_file}
        sizes = sizes_of(self.storage, stored, distant=self.is_distant)
        lost = [
            ("no file" if path not in sizes else "damaged", entry)
            for path, entry in stored.items()
            if sizes.get(path) != entry.bytes
        ]
        gone = {entry for _, entry in lost}
        return [entry for entry in entries if entry not in gone], lost

    def missing(self, lost: Sequence[tuple[str, Entry]]) -> int:
        """The number of windows that were not exported, or are in files that `holdings` calls lost."""
        length, zone = self.record.about.window, self.record.about.zone
        missed = [*self.gaps(), *(entry.window for _, entry in lost)]
        return sum(window.count(length, zone) for window in missed)

    def files(self) -> list[Entry]:
        """The files that should be there: those of windows and of runs, and the parts of a run that has not ended.

        A window that is already in the merged file does not count until that file has its name.
        """
        return [*self.record.merged, *(entry for _, entry in sorted(self.record.entries.items()) if entry.is_file)]


def find(name: str, states: States, environment: Mapping[str, str]) -> Found:
    """The export of a state, or the one that goes to a path.

    NotFound when there is neither; UsageError when the record of a state is missing, damaged or not that of the state.
    """
    known = (name, states.need(name)) if name in states.names() else states.writing(name)
    if known is not None:
        label, state = known
        storage, path = open_target(state.target, environment)
        if state.given != state.target:
            storage = Local(Path(state.directory))
        stored = Target(path)
        record = read_for(label, state.until, storage, folder_of(stored))
        return Found(state.target, storage, stored, record, state, label)
    storage, path = open_target(name, environment)
    stored = Target(path)
    if (found := read(storage, folder_of(stored))) is not None:
        return Found(name, storage, stored, found)
    if "://" not in name and not Path(name).is_dir() and (one := _one_file(name, states, environment)) is not None:
        return one
    if name.rstrip("/") in states.names():
        return find(name.rstrip("/"), states, environment)  # a shell completes to a folder of the same name
    known_states, inside = ", ".join(states.names()), ", ".join(_exports_in(name))
    raise NotFound(
        f"no export goes to '{name}', and no state has that name",
        hint=(f"exports to this folder are: {inside}" if inside else "give the path as it was given to -o")
        + (f"; the states are: {known_states}" if known_states else ""),
    )


def _exports_in(folder: str) -> Iterator[str]:
    """The targets of the exports to a local folder, as a shell reads them."""
    found = [] if "://" in folder or not folder else sorted(Path(folder).glob(f".*.export/{NAME}"))
    for path in found:
        with suppress(SvcctlError):
            record = read(Local(), f"{path.parent}/")
            if record is not None:
                yield shlex.quote(_pattern(path.parent.parent, record.target, folder))


def _one_file(path: str, states: States, environment: Mapping[str, str]) -> Found | None:
    """A local file that an export wrote among others, as if it were an export by itself; it may be missing."""
    wanted = Path(directory_of(path), path)
    damaged: UsageError | None = None
    for described in (found for folder in wanted.parents for found in folder.glob(f".*.export/{NAME}")):
        try:
            record = read(Local(), f"{described.parent}/")
        except Damaged as error:
            damaged = error
            continue
        except SvcctlError:  # what is wrong with another export is no concern of this one
            continue
        if record is not None and (entry := _entry_of(record, str(wanted))) is not None:
            whole = find(_pattern(described.parent.parent, record.target, path), states, environment)
            alone = {entry.window: replace(entry, path=path)}
            ranges = ((entry.start, entry.end),)
            record = replace(record, entries=alone, merged=(), inside=(), ranges=ranges)
            return replace(whole, storage=Local(), record=record, one=whole.named_by(entry), file=path)
    if damaged is not None and wanted.is_file():
        raise damaged
    return None


def _pattern(folder: Path, target: str, path: str) -> str:
    """The target of an export to a folder, spelled as the path of one of its files is."""
    if (here := directory_of(path)) and folder.is_relative_to(here):
        folder = folder.relative_to(here)
    return f"{folder / 'x'}".removesuffix("x").replace("%", "%%") + target


def _entry_of(record: Record, path: str) -> Entry | None:
    """The entry of the file at an absolute path; its own path begins where the export ran."""
    for entry in (*record.entries.values(), *record.merged):
        if entry.is_file and path.endswith(f"/{entry.path.removeprefix('/')}"):
            return entry
    return None
