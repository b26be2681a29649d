"""Ownership: which files are an export's own. A claim says what a run may write, and what of earlier runs stays.

A file is replaced only by one of the same export: a file of a window by that of the same window, and a merged file by
one that covers all of its time. The record says which files are the export's own.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from svcctl.errors import UsageError
from svcctl.exports.identity import difference
from svcctl.exports.record import (
    PROFILE,
    STARTS_OVER,
    DamagedRecord,
    ExportedFile,
    Record,
    read,
    read_for,
    union,
)
from svcctl.exports.windows import Window
from svcctl.storage import exists

if TYPE_CHECKING:
    from svcctl.exports.export import Export
    from svcctl.storage import Storage

MAX_SINGLE_SIZES = 8
"""The most objects on a server whose sizes are requested one by one; the sizes of more come from one listing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The export of a run, and its record at the start.

    `notes` name what is not described any more. `new` says that there was no record of this export.
    """

    export: Export
    record: Record
    notes: tuple[str, ...] = ()
    new: bool = False


def claim(export: Export) -> Claim:
    """Claim a run's range. UsageError when the record, or a file of the target, is not this export's own.

    Parts of a merged file whose dates have another offset than this run's are fetched again.
    """
    made = _anew(export) if export.order.overwrite else _continued(export)
    record = made.record
    if not export.target.per_window:
        paths = export.parts(record.entries)
        parts = {window: part for window, part in record.entries.items() if part.path in ("", paths[window])}
        record = replace(record, entries=parts)
    there = [*record.entries.values(), *record.merged]
    record = replace(record, ranges=_ranges(export, record.ranges, there))
    if export.order.state is not None:
        record = _without_the_oldest(export, record)
    return replace(made, record=record, export=replace(export, columns=record.columns))


def _continued(export: Export) -> Claim:
    """The claim of a run that keeps what earlier runs have."""
    record = _found(export)
    if record is not None and record.identity.key != export.identity.key:
        if not record.is_empty or (export.order.until is not None and not export.order.incremental):
            raise _another(export, record)
        record = None  # that export never had anything
    new = record is None
    record = record or Record(export.identity)
    _refuse_files_of_others(export, record)
    return Claim(export, record, new=new)


def _anew(export: Export) -> Claim:
    """The claim of a run that fetches all of its range again: the files of earlier runs outside of it stay."""
    address = export.storage.address(export.record)
    try:
        record = _found(export)
    except DamagedRecord:
        if export.order.until is not None:
            raise
        return Claim(export, Record(export.identity), notes=(f"{address}, which was damaged",), new=True)
    if record is None:
        return Claim(export, Record(export.identity), new=True)
    if record.identity.key != export.identity.key:
        if export.order.until is not None and not record.is_empty:
            raise _another(export, record)
        return Claim(export, Record(export.identity), notes=(f"{address}, which described another export",), new=True)
    names = {task.path for task in export.tasks().values()} if export.target.per_window else {export.path}

    def stays(entry: ExportedFile) -> bool:
        apart = entry.end <= export.whole.start or export.whole.end <= entry.start
        return apart and entry.path not in names and not export.target.is_one_file

    entries = {window: entry for window, entry in record.entries.items() if stays(entry)}
    merged = tuple(filter(stays, record.merged))
    files = {file.path for file in merged}
    inside = tuple(entry for entry in record.inside if entry.path in files)
    head = record.head if entries else None
    columns = record.columns if entries or merged else ()
    return Claim(export, replace(record, head=head, entries=entries, merged=merged, inside=inside, columns=columns))


def _found(export: Export) -> Record | None:
    if export.order.state is not None and export.order.until is not None:
        return read_for(export.order.state, export.order.until, export.storage, export.folder).settled(export.storage)
    found = read(export.storage, export.folder)
    return None if found is None else found.settled(export.storage)


def _another(export: Export, found: Record) -> UsageError:
    target = export.storage.address(export.target.text)
    words, changes = difference(found.identity, export.identity)
    message = f"{target} belongs to another export: {words}"
    if found.identity.service != export.identity.service:
        return UsageError(message, hint=f"write to another path, or {PROFILE}")
    advice = "give --force to start over"
    if (state := export.order.state) is not None and export.order.until is not None:
        advice = STARTS_OVER.format(state=state)
    return UsageError(message, hint=f"give {changes}, write to another path, or {advice}")


def _refuse_files_of_others(export: Export, record: Record) -> None:
    """UsageError for a file of the target that another export wrote, or this one for a time outside the window."""
    theirs: dict[str, Window | None] = {}
    if export.target.per_window:
        written = {entry.path: entry.window for entry in record.entries.values()}
        for window, path in export.target.paths(export.whole, export.windows).items():
            other = written.get(path)
            if other != window and (other is not None or not _claims(record.ranges, window)):
                theirs[path] = other
    else:
        merged = next((file for file in record.merged if file.path == export.path), None)
        if merged is None or merged.window not in export.whole:
            theirs[export.path] = None if merged is None else merged.window
    for path in sizes_of(export.storage, theirs, distant=export.distant):
        raise exists(export.storage.address(path), theirs[path])


def _claims(ranges: Iterable[tuple[int, int]], window: Window) -> bool:
    """Whether a run, finished or not, was to export this window."""
    return any(start < window.end and window.start < end for start, end in ranges)


def _ranges(
    export: Export, earlier: Iterable[tuple[int, int]], there: Iterable[ExportedFile]
) -> tuple[tuple[int, int], ...]:
    """The ranges that the runs of an export, this one included, are to export; what is missing of them is a gap.

    The runs of a state follow each other, so all of them count. Without a state, a killed run may never be repeated, so
    only what is there of earlier runs counts. If all runs write one file, only this run counts.
    """
    if export.target.is_one_file:
        earlier = ()
    elif export.order.state is None:
        earlier = ((entry.start, entry.end) for entry in there)
    return union([*earlier, (export.whole.start, export.whole.end)])


def _without_the_oldest(export: Export, record: Record) -> Record:
    """The record with at most as many windows before this run as it keeps."""
    past = [entry.end for entry in (*record.entries.values(), *record.inside) if entry.end <= export.whole.start]
    return record if len(past) <= export.kept else record.later(sorted(past)[-export.kept - 1])


def sizes_of(storage: Storage, names: Collection[str], *, distant: bool) -> Mapping[str, int]:
    """The sizes of those objects that are there."""
    plain = all(posixpath.normpath(name) == name for name in names)
    if distant and len(names) > MAX_SINGLE_SIZES and plain:
        wanted = frozenset(names)
        folder = posixpath.commonprefix(list(names)).rpartition("/")[0]
        return {name: size for name, size in storage.sizes(folder) if name in wanted}
    return {name: size for name in names if (size := storage.size(name)) is not None}
