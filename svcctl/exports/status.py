"""What an export has so far, read from its manifest; and whether its files are still what they were."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from svcctl.errors import NotFound, UsageError
from svcctl.exports.export import folder_of
from svcctl.exports.journal import sizes_of
from svcctl.exports.manifest import Entry, Manifest, stored
from svcctl.exports.state import State, States
from svcctl.exports.windows import Target, Window
from svcctl.storage import Storage
from svcctl.storage.targets import open_target


@dataclass(frozen=True, slots=True)
class Found:
    """An export that has run: where it goes, its manifest, and its state if it has one."""

    target: str
    storage: Storage
    manifest: Manifest
    state: State | None

    @property
    def per_window(self) -> bool:
        return Target(self.target).per_window

    def gaps(self) -> list[Window]:
        """The ranges that runs were to export and have not."""
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

    def is_past(self, window: Window) -> bool:
        """Whether the state has moved past this window, so that its next run does not fetch it again."""
        return self.state is not None and window.start < self.state.until

    def holdings(self) -> tuple[list[Entry], list[Entry]]:
        """What is there, each window once, and what was there and has no file any more."""
        manifest = self.manifest
        starts = sorted(window.start for window in manifest.entries)

        def in_windows(merged: Entry) -> bool:
            """A file that has not got its name yet, or that is being replaced, is described by its windows."""
            at = bisect_left(starts, merged.start)
            return at < len(starts) and starts[at] < merged.end

        merged = [entry for entry in manifest.merged if not in_windows(entry)]
        entries = [*merged, *(entry for _, entry in sorted(manifest.entries.items()))]
        stored = {entry.path for entry in entries if entry.path and entry.offset is None}
        sizes = sizes_of(self.storage, stored, distant="://" in self.target)
        gone = stored - sizes.keys()
        return (
            [entry for entry in entries if entry.path not in gone or entry.offset is not None],
            [entry for entry in entries if entry.path in gone and entry.offset is None],
        )

    def files(self) -> list[Entry]:
        """The files that should be there: those of windows and of runs, and the parts of a run that has not ended.

        A window that is in a merged file already is not one of them until that file has its name.
        """
        manifest = self.manifest
        parts = [entry for _, entry in sorted(manifest.entries.items()) if entry.path and entry.offset is None]
        return [*manifest.merged, *parts]


def find(name: str, states: States, environment: Mapping[str, str]) -> Found:
    """The export of a state, or the one that goes to a path. NotFound when there is neither."""
    state = states.load(name) if name in states.names() else states.that_writes(name)
    target = name if state is None else state.target
    storage, path = open_target(target, environment)
    manifest = stored(storage, folder_of(Target(path)))
    if manifest is None:
        known = ", ".join(states.names())
        raise NotFound(
            f"no export goes to '{target}', and no state has that name",
            hint="give the path as it was given to -o" + (f"; the states are: {known}" if known else ""),
        )
    return Found(target, storage, manifest, state)


def damage(found: Found) -> Iterator[tuple[str, Window]]:
    """What is wrong with each file that is not what was written, and each range that is missing; and which range."""
    for entry in found.files():
        address = found.storage.address(entry.path)
        try:
            if found.storage.sha256(entry.path) != entry.sha256:
                yield f"{address} is damaged", entry.window
        except UsageError:
            yield f"{address} is missing", entry.window
    for gap in found.gaps():
        yield f"{gap} is not exported yet", gap
