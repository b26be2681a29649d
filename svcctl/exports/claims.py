"""What an export may write: names that are free or its own, and the ranges that its runs claim.

A file is replaced only by one that covers all of its time. So the first and the last window of a run are extended to
what an earlier run has of them: the same command resumes, though `--from 1h` has moved on meanwhile. No event is in two
files of a pattern: a file whose time is covered by another file is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from svcctl.exports.manifest import Entry, union
from svcctl.exports.windows import Target, Window, around

if TYPE_CHECKING:
    from svcctl.exports.export import Export

Ranges = tuple[tuple[int, int], ...]


def claimed_by(export: Export, earlier: Ranges, there: Iterable[Entry]) -> Ranges:
    """The ranges that the runs of an export, this one included, are to export; what is missing of them is a gap.

    The runs of a state follow each other, so all of them count. Without a state, a killed run may never be repeated, so
    only what is there of earlier runs counts. If all runs write one file, only this run counts.
    """
    if export.target.is_one_file:
        earlier = ()
    elif export.kept is None:
        earlier = tuple((entry.start, entry.end) for entry in there)
    return union([*earlier, *((window.start, window.end) for window in export.windows)])


def widened(export: Export, entries: Mapping[Window, Entry], claimed: Ranges) -> Export:
    """The export with its first and last window extended to what is there of them already."""
    if not export.target.per_window:
        return export
    windows = list(export.windows)
    paths = export.target.paths(export.whole, windows, export.about.window)
    for at in {0, len(windows) - 1}:
        window = windows[at]
        for other in _others(export, window, paths[window], entries.values(), claimed):
            if _touch(window, other):
                windows[at] = Window(min(window.start, other.start), max(window.end, other.end))
    return export if windows == list(export.windows) else replace(export, windows=tuple(windows))


def covered(target: Target, entries: Iterable[Entry]) -> list[tuple[Entry, Entry]]:
    """The files whose time is covered by another file of the same pattern, each with that file.

    None if names depend on the run: then each run has its own files.
    """
    if target.per_run or not target.per_window:
        return []
    found: list[tuple[Entry, Entry]] = []
    longest: Entry | None = None
    for entry in sorted(entries, key=lambda entry: (entry.start, -entry.end)):
        if longest is not None and entry.window in longest.window:
            found.append((entry, longest))
        else:
            longest = entry
    return found


def _others(export: Export, window: Window, path: str, entries: Collection[Entry], claimed: Ranges) -> Iterator[Window]:
    """What an earlier run wrote of a window: what it noted, or what it claimed if it was killed before it noted it."""
    full = around(window.start, export.about.window, export.target.zone)
    if any(entry.path == path for entry in entries):
        claimed = ()
    for entry in entries:
        if entry.window in full and (entry.path == path or _overlap(export, window, entry.window)):
            yield entry.window
    claims = [Window(max(full.start, first), min(full.end, last)) for first, last in claimed]
    longer = [claim for claim in claims if claim.start < claim.end and claim not in window]
    if longer and export.storage.size(path) is not None:
        yield from longer


def _overlap(export: Export, one: Window, other: Window) -> bool:
    return not export.target.per_run and one.start < other.end and other.start < one.end


def _touch(one: Window, other: Window) -> bool:
    return one.start <= other.end and other.start <= one.end
