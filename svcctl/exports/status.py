"""What an export has so far, read from its manifest, and whether its files are still as they were written."""

from __future__ import annotations

import posixpath
import shlex
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from svcctl.errors import IncompleteResult, NotFound, SvcctlError, UsageError
from svcctl.exports.export import folder_of, lock_of
from svcctl.exports.journal import sizes_of
from svcctl.exports.manifest import About, Damaged, Entry, Manifest, stored
from svcctl.exports.plan import KEPT
from svcctl.exports.refetch import all_refetched, stored_by
from svcctl.exports.state import State, States, directory_of
from svcctl.exports.windows import Target, Window
from svcctl.io.files import PART_SUFFIX, is_locked
from svcctl.storage import Storage
from svcctl.storage.local import Local
from svcctl.storage.targets import open_target


@dataclass(frozen=True, slots=True)
class Found:
    """An export that has run: where it goes, its manifest, and its state if it has one."""

    target: str
    storage: Storage
    manifest: Manifest
    state: State | None
    given: str
    """The target as a command in this directory names it; empty when it is unknown."""
    named: Window | None = None
    """If this is one file of an export: the range that gives the file its name again."""

    @property
    def per_window(self) -> bool:
        return self.pattern.per_window

    @property
    def per_run(self) -> bool:
        """Whether names depend on the run that writes them."""
        return self.pattern.per_run

    @property
    def pattern(self) -> Target:
        return Target(self.target, self.manifest.about.zone)

    @property
    def place(self) -> str:
        """The target as it is known in this directory."""
        return self.target if self.named is not None else self.given or self.target

    @property
    def is_running(self) -> bool:
        """Whether a run of this export has not ended, as far as local files tell."""
        if not self.given or "://" in self.given:
            return False
        return is_locked(Path(f"{lock_of(Target(self.given))}{PART_SUFFIX}"))

    @property
    def published(self) -> Collection[Entry]:
        """The files that have their names: not the parts of a run that has not ended."""
        return self.manifest.entries.values() if self.per_window else self.manifest.merged

    def named_by(self, entry: Entry) -> Window:
        """The range that gives a file its name again: it starts with the file's run if the name contains that."""
        if self.named is not None:
            return self.named
        if not (self.per_window and self.per_run):
            return entry.window
        starts = {window.start for window in self.manifest.entries if window.start <= entry.start}
        for start in sorted(starts, reverse=True):
            name = self.pattern.path(Window(start, entry.end), entry.window).removeprefix(self.pattern.folder)
            if f"/{entry.path}".endswith(f"/{name}"):  # its directory may be spelled in another way
                return Window(start, entry.end)
        return entry.window

    def gaps(self) -> list[Window]:
        """The ranges that runs were to export and did not."""
        gaps = []
        entries = sorted([*self.manifest.entries, *(entry.window for entry in self.manifest.merged)])
        for start, end in self.manifest.claimed:
            at = start
            for window in (one for one in entries if start <= one.start and one.end <= end):
                if window.start > at:
                    gaps.append(Window(at, window.start))
                at = max(at, window.end)
            if at < end:
                gaps.append(Window(at, end))
        return gaps

    def forgotten(self) -> list[Window]:
        """The ranges that the state has moved past but that the manifest does not have: an earlier manifest was lost.

        Ranges that a manifest leaves out because it has grown long do not count.
        """
        manifest, state = self.manifest, self.state
        if state is None or self.named is not None:
            return []
        if len(manifest.entries) + len(manifest.merged) >= KEPT:
            return []
        ranges, at = [], state.since
        for start, end in [*manifest.claimed, (state.until, state.until)]:
            if at < min(start, state.until):
                ranges.append(Window(at, min(start, state.until)))
            at = max(at, end)
        return ranges

    def strangers(self) -> list[str]:
        """The local files with a name of the pattern that are not in the manifest, so that nobody verifies them.

        If the manifest has grown long, they may be older than the files that it describes.
        """
        described = self.files()
        if "://" in self.target or self.named is not None or self.pattern.is_one_file or len(described) >= KEPT:
            return []
        known = {posixpath.normpath(entry.path) for entry in described}
        there = self.pattern.paths_like("" if self.state is None else self.state.directory)
        return [self.storage.address(path) for path in there if posixpath.normpath(path) not in known]

    def overlapping(self) -> list[Window]:
        """The ranges that more than one file of a pattern covers: their events are there more than once."""
        found, reached = [], 0
        for start, end in sorted((entry.start, entry.end) for entry in self.published if not entry.removed):
            if start < reached:
                found.append(Window(start, min(reached, end)))
            reached = max(reached, end)
        return found

    def is_past(self, window: Window) -> bool:
        """Whether the state has moved past this window, so that its next run does not fetch it again."""
        return self.state is not None and window.start < self.state.until

    def holdings(self) -> tuple[list[Entry], list[tuple[str, Entry]]]:
        """The entries that are there, each window once, and the lost ones: each with `no file`, or `damaged` in size.

        Files that were removed on purpose are in neither list. Damage that does not change the size is found only by
        hashing.
        """
        manifest = self.manifest
        starts = sorted(window.start for window in manifest.entries)

        def in_windows(merged: Entry) -> bool:
            """Whether windows describe the file, because it does not have its name yet or is being replaced."""
            at = bisect_left(starts, merged.start)
            return at < len(starts) and starts[at] < merged.end

        merged = [entry for entry in manifest.merged if not in_windows(entry)]
        entries = [*merged, *(entry for _, entry in sorted(manifest.entries.items()))]
        stored = {entry.path: entry for entry in entries if entry.path and entry.offset is None}
        sizes = sizes_of(self.storage, stored, distant="://" in self.target)
        gone = {*self.removed()}
        lost = [
            ("no file" if path not in sizes else "damaged", entry)
            for path, entry in stored.items()
            if sizes.get(path) != entry.bytes and entry not in gone
        ]
        gone.update(entry for _, entry in lost)
        return [entry for entry in entries if entry not in gone], lost

    def removed(self) -> list[Entry]:
        """The files that were removed on purpose and are not there again."""
        files = {entry.path: entry for entry in self.files() if entry.removed}
        sizes = sizes_of(self.storage, files, distant="://" in self.target)
        return [entry for path, entry in files.items() if path not in sizes]

    def gone(self) -> set[Entry]:
        """The files that are not there and were not removed on purpose."""
        return {entry for what, entry in self.holdings()[1] if what == "no file"}.intersection(self.published)

    def missing(self, lost: Sequence[tuple[str, Entry]]) -> int:
        """The number of windows that were not exported, are `forgotten`, or are in files that `holdings` calls lost."""
        length, zone = self.manifest.about.window, self.manifest.about.zone
        missed = [*self.gaps(), *self.forgotten(), *(entry.window for _, entry in lost)]
        return sum(window.count(length, zone) for window in missed)

    def files(self) -> list[Entry]:
        """The files that should be there: those of windows and of runs, and the parts of a run that has not ended.

        A window that is already in the merged file does not count until that file has its name.
        """
        manifest = self.manifest
        parts = [entry for _, entry in sorted(manifest.entries.items()) if entry.path and entry.offset is None]
        return [*manifest.merged, *parts]


def find(name: str, states: States, environment: Mapping[str, str]) -> Found:
    """The export of a state, or the one that goes to a path. NotFound when there is neither; IncompleteResult when the
    manifest of a state is gone.
    """
    state = states.load(name) if name in states.names() else next((state for _, state in states.writing(name)), None)
    target = name if state is None else state.target
    storage, path = open_target(target, environment)
    given = target if state is None else state.given
    if state is not None and given != target:
        storage = Local(Path(state.directory))
    manifest = stored_by(state, storage, folder_of(Target(path)))
    if manifest is None and state is not None:
        if state.since != state.until:
            raise _emptied(name, state)
        claimed = () if state.due is None else ((state.until, state.due),)
        about = About("", "", state.window, "") if state.about is None else About(**state.about)
        manifest = Manifest(about, claimed=claimed)
    if manifest is None and (one := _one_file(target, states, environment)) is not None:
        return one
    if manifest is None and (state_named := name.rstrip("/")) != name and state_named in states.names():
        return find(state_named, states, environment)  # a shell completes to a folder of the same name
    if manifest is None and (there := _undescribed(target)):
        raise NotFound(
            f"no manifest of an export describes {there}: whether it is whole cannot be told",
            hint="if an export wrote it, its command with --force exports it again",
        )
    if manifest is None:
        known, inside = ", ".join(states.names()), ", ".join(_exports_in(target))
        raise NotFound(
            f"no export goes to '{target}', and no state has that name",
            hint=(f"exports to this folder are: {inside}" if inside else "give the path as it was given to -o")
            + (f"; the states are: {known}" if known else ""),
        )
    return Found(target, storage, manifest, state, given)


def _emptied(name: str, state: State) -> SvcctlError:
    """The error for a state without a manifest: its folder is missing, alone or with the files that it described."""
    known = "a state" if name == state.target else f"the state '{name}'"
    writes = f"{known} writes to '{state.given}'"
    target = Target(state.target)
    there = [] if "://" in state.target else target.paths_like(state.directory)
    folder = folder_of(Target(state.given))
    gone = f"where all files are gone, and the folder that describes them: {folder}"
    if there or "://" in state.target:
        gone = f"where the folder that describes its files is gone: {folder}"
    return IncompleteResult(f"{writes}, {gone}", hint=all_refetched(target, state))


def _exports_in(folder: str) -> Iterator[str]:
    """The targets of the exports to a local folder, as a shell reads them."""
    found = [] if "://" in folder or not folder else sorted(Path(folder).glob(".*.export/manifest.json"))
    for path in found:
        with suppress(SvcctlError):
            manifest = stored(Local(), f"{path.parent}/")
            if manifest is not None:
                yield shlex.quote(_pattern(path.parent.parent, manifest.target, folder))


def _undescribed(target: str) -> str:
    """The local file of a path, or the first file of a pattern, that has no manifest; empty if there is no file."""
    if "://" in target or Path(target).is_dir():
        return ""
    return next(iter(Target(target).paths_like("")), "")


def _one_file(path: str, states: States, environment: Mapping[str, str]) -> Found | None:
    """A local file that an export wrote among others, as if it were an export by itself; it may be missing."""
    if "://" in path or Path(path).is_dir():
        return None
    wanted = Path(directory_of(path), path)
    damaged: list[Damaged] = []
    for described in (found for folder in wanted.parents for found in folder.glob(".*.export/manifest.json")):
        with suppress(SvcctlError):  # what is wrong with another export is no concern of this one
            try:
                manifest = stored(Local(), f"{described.parent}/")
            except Damaged as error:
                damaged.append(error)
                continue
            if manifest is not None and (entry := _entry_of(manifest, str(wanted))) is not None:
                state = _state_at(described.parent, states)
                given = _pattern(described.parent.parent, manifest.target, path)
                named = Found(given, Local(), manifest, state, given).named_by(entry)
                alone = {entry.window: replace(entry, path=path)}
                claimed = ((entry.start, entry.end),)
                manifest = replace(manifest, entries=alone, merged=(), claimed=claimed)
                return Found(path, Local(), manifest, state, given, named)
    if damaged and wanted.is_file():
        raise damaged[0]
    return _of_state(wanted, states, environment)


def _of_state(wanted: Path, states: States, environment: Mapping[str, str]) -> Found | None:
    """The export of the state whose pattern gives this file its name, if any; no manifest describes the file."""
    for name in states.names():
        with suppress(UsageError):  # what is wrong with another state is no concern of this export
            state = states.load(name)
            if state is None or "://" in state.target:
                continue
            like = Target(state.target).paths_like(state.directory)
            if wanted in (Path(state.directory, one).absolute() for one in like):
                return find(name, states, environment)
    return None


def _pattern(folder: Path, target: str, path: str) -> str:
    """The target of an export to a folder, spelled as the path of one of its files is."""
    if (here := directory_of(path)) and folder.is_relative_to(here):
        folder = folder.relative_to(here)
    return f"{folder / 'x'}".removesuffix("x").replace("%", "%%") + target


def _state_at(folder: Path, states: States) -> State | None:
    """The state of the export whose manifest is in a local folder, if it has one."""
    for name in states.names():
        with suppress(UsageError):  # what is wrong with another state is no concern of this export
            state = states.load(name)
            if state is None or "://" in state.target:
                continue
            if Path(state.directory, folder_of(Target(state.target))).absolute() == folder:
                return state
    return None


def _entry_of(manifest: Manifest, path: str) -> Entry | None:
    """The entry of the file at an absolute path; its own path begins where the export ran."""
    for entry in (*manifest.entries.values(), *manifest.merged):
        if entry.path and entry.offset is None and path.endswith(f"/{entry.path.removeprefix('/')}"):
            return entry
    return None


def damage(found: Found) -> Iterator[tuple[str, Window]]:
    """What is wrong, and in which range, for each file that is not as it was written and each missing range."""
    removed = {*found.removed()}
    for entry in found.files():
        if entry in removed:
            continue
        address = found.storage.address(entry.path)
        try:
            if found.storage.sha256(entry.path) != entry.sha256:
                yield f"{address} is damaged", found.named_by(entry)
        except UsageError:
            yield f"{address} is missing", found.named_by(entry)
    for gap in found.gaps():
        yield f"{gap} is not exported yet", gap
    for gap in found.forgotten():
        yield f"{gap} was exported, but the manifest does not have its files any more", gap
