"""A claim: what a run may write, and what of earlier runs stays.

A file is replaced only by one of the same export that covers all of its time. So the first and the last window of a run
are extended to what an earlier run has of them: the same command resumes, though `--from 1h` has moved on meanwhile. No
event is in two files of a pattern: a file whose time is covered by another file is removed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from svcctl.errors import UsageError
from svcctl.exports.record import (
    Damaged,
    Entry,
    OfAnotherService,
    Record,
    difference,
    read,
    read_for,
    union,
)
from svcctl.exports.windows import Target, Window, around, moment
from svcctl.storage import exists
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.exports.export import Export
    from svcctl.storage import Storage

FEW = 8
"""The most objects on a server whose sizes are requested one by one; the sizes of more come from one listing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The export of a run, whose first and last window may cover more than was asked for, and its record at the start.

    `replaces` are the shorter windows of earlier runs that this run's windows replace. `notes` name what is not
    described any more. `new` says that there was no record of this export.
    """

    export: Export
    record: Record
    replaces: Mapping[Window, Window] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    new: bool = False


def claim(export: Export) -> Claim:
    """Claim a run's range. UsageError when the record, or a file of the target, is not this export's own."""
    made = _anew(export) if export.overwrite else _continued(export)
    export, record = made.export, made.record
    there = [*record.entries.values(), *record.merged]
    record = replace(record, ranges=_ranges(export, record.ranges, there), target=export.target.rest)
    if export.state is not None:
        record = _without_the_oldest(export, record)
    return replace(made, record=record)


def _continued(export: Export) -> Claim:
    """The claim of a run that keeps what earlier runs have."""
    record = _found(export)
    if record is not None and record.about.key != export.about.key:
        if not record.is_empty or (export.until is not None and not export.incremental):
            raise _another(export, record)
        record = None  # that export never had anything
    new = record is None
    record = record or Record(export.about)
    export = _widened(export, record.entries, record.ranges)
    return Claim(export, record, _replaced(export, record), new=new)


def _anew(export: Export) -> Claim:
    """The claim of a run that fetches all of its range again: the files of earlier runs outside of it stay."""
    try:
        record = _found(export)
    except Damaged:
        if export.until is not None:
            raise
        note = f"{export.storage.address(export.record)}, which was damaged: it describes this run only"
        return Claim(export, Record(export.about), notes=(note,), new=True)
    if record is None:
        return Claim(export, Record(export.about), new=True)
    if record.about.key != export.about.key:
        if export.until is not None and not record.is_empty:
            raise _another(export, record)
        return Claim(export, Record(export.about), notes=_left(export, record), new=True)
    export = _widened(export, record.entries, ())
    names = _names(export)
    windows = [Entry(window.start, window.end, "", 0, 0, "", 0) for window in export.windows]
    double = {entry.window for entry, _ in covered(export.target, [*record.entries.values(), *windows])}

    def stays(entry: Entry) -> bool:
        apart = entry.end <= export.whole.start or export.whole.end <= entry.start or entry.window in double
        return apart and entry.path not in names and not export.target.is_one_file

    entries = {window: entry for window, entry in record.entries.items() if stays(entry)}
    merged = tuple(filter(stays, record.merged))
    files = {file.path for file in merged}
    inside = tuple(entry for entry in record.inside if entry.path in files)
    head = record.head if entries else None
    return Claim(export, replace(record, head=head, entries=entries, merged=merged, inside=inside))


def _found(export: Export) -> Record | None:
    if export.state is not None and export.until is not None:
        return read_for(export.state, export.until, export.storage, export.folder).settled(export.storage)
    found = read(export.storage, export.folder)
    return None if found is None else found.settled(export.storage)


def _another(export: Export, found: Record) -> UsageError:
    target = export.storage.address(export.target.text)
    message = f"{target} belongs to another export: {difference(found.about, export.about)}"
    other = "write to another path, or"
    if export.incremental and export.until is not None:
        other = f"write to another path, with another name to --state and --from {moment(export.until)}, or"
    if (service := found.about.service) != export.about.service:
        return OfAnotherService(message, service=service, other=f"{other} ")
    if export.state is not None and export.until is not None:
        end = f"first end the state '{export.state}', which writes to this one, with 'svcctl export rm {export.state}'"
        return UsageError(message, hint=f"{other} {end}, and then give --force")
    return UsageError(message, hint=f"{other} give --force to begin anew")


def _left(export: Export, found: Record) -> tuple[str, ...]:
    """The files of another export that this one does not replace, and that no record describes any more."""
    entries = found.entries.values() if export.target.per_window else found.merged
    left = sizes_of(
        export.storage, {entry.path for entry in entries if entry.path} - _names(export), distant=export.distant
    )
    if not left:
        return ()
    others = counted(len(left), "other file of it stays, and is", "other files of it stay, and are")
    record = export.storage.address(export.record)
    return (f"{record}, which described another export: {others} not verified any more",)


def _names(export: Export) -> set[str]:
    """The names of a run's files."""
    return {task.path for task in export.tasks().values()} if export.target.per_window else {export.path}


def _replaced(export: Export, record: Record) -> Mapping[Window, Window]:
    """The shorter windows that this run's files replace.

    UsageError for a file of the target that another export wrote, or this one for a time outside the window.
    """
    theirs: dict[str, Window | None] = {}
    replaces: dict[Window, Window] = {}
    if export.target.per_window:
        written = {entry.path: entry.window for entry in record.entries.values()}
        for window, task in export.tasks().items():
            other = written.get(task.path)
            if other is not None and other in window:
                replaces[window] = other
            elif other is not None or not _claims(record.ranges, window):
                theirs[task.path] = other
    else:
        merged = next((file for file in record.merged if file.path == export.path), None)
        if merged is None or merged.window not in export.whole:
            theirs[export.path] = None if merged is None else merged.window
    for path in sizes_of(export.storage, theirs, distant=export.distant):
        raise exists(export.storage.address(path), theirs[path])
    return replaces


def _claims(ranges: Iterable[tuple[int, int]], window: Window) -> bool:
    """Whether a run, finished or not, was to export some of this window."""
    return any(start < window.end and window.start < end for start, end in ranges)


def _ranges(export: Export, earlier: Iterable[tuple[int, int]], there: Iterable[Entry]) -> tuple[tuple[int, int], ...]:
    """The ranges that the runs of an export, this one included, are to export; what is missing of them is a gap.

    The runs of a state follow each other, so all of them count. Without a state, a killed run may never be repeated, so
    only what is there of earlier runs counts. If all runs write one file, only this run counts.
    """
    if export.target.is_one_file:
        earlier = ()
    elif export.state is None:
        earlier = ((entry.start, entry.end) for entry in there)
    own = [(export.whole.start, export.whole.end), *((window.start, window.end) for window in export.windows)]
    return union([*earlier, *own])


def _without_the_oldest(export: Export, record: Record) -> Record:
    """The record with at most as many windows before this run as it keeps."""
    past = [entry.end for entry in (*record.entries.values(), *record.inside) if entry.end <= export.whole.start]
    return record if len(past) <= export.kept else record.later(sorted(past)[-export.kept - 1])


def _widened(export: Export, entries: Mapping[Window, Entry], claimed: tuple[tuple[int, int], ...]) -> Export:
    """The export with its first and last window extended to what is there of them already."""
    if not (export.target.per_window and export.windows):
        return export
    windows = list(export.windows)
    paths = export.target.paths(export.whole, windows, export.about.window)
    for at in {0, len(windows) - 1}:
        window = windows[at]
        for other in _others(export, window, paths[window], entries.values(), claimed):
            if window.start <= other.end and other.start <= window.end:
                windows[at] = Window(min(window.start, other.start), max(window.end, other.end))
    return export if windows == list(export.windows) else replace(export, windows=tuple(windows))


def _others(
    export: Export, window: Window, path: str, entries: Collection[Entry], claimed: tuple[tuple[int, int], ...]
) -> Iterator[Window]:
    """What an earlier run wrote of a window: what it noted, or what it claimed if it was killed before it noted it."""
    full = around(window.start, export.about.window, export.target.zone)
    if any(entry.path == path for entry in entries):
        claimed = ()
    for entry in entries:
        overlaps = not export.target.per_run and window.start < entry.end and entry.start < window.end
        if entry.window in full and (entry.path == path or overlaps):
            yield entry.window
    claims = [Window(max(full.start, first), min(full.end, last)) for first, last in claimed]
    longer = [claim for claim in claims if claim.start < claim.end and claim not in window]
    if longer and export.storage.size(path) is not None:
        yield from longer


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


def sizes_of(storage: Storage, names: Collection[str], *, distant: bool) -> Mapping[str, int]:
    """The sizes of those objects that are there."""
    plain = all(posixpath.normpath(name) == name for name in names)
    if distant and len(names) > FEW and plain:
        wanted = frozenset(names)
        folder = posixpath.commonprefix(list(names)).rpartition("/")[0]
        return {name: size for name, size in storage.sizes(folder) if name in wanted}
    return {name: size for name in names if (size := storage.size(name)) is not None}
