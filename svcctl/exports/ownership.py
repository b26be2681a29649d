"""Ownership: the files that a run may replace, and the files that it must not replace.

A file with a single time window is replaced only by the same window of the same export. A merged file is replaced only
by a file of the same export that covers the whole range of the old file. The record, a file next to the target, says
which files belong to which export.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from svcctl.errors import UsageError
from svcctl.exports.open_record import OpenRecord
from svcctl.exports.record import PROFILE, STARTS_OVER, DamagedRecord, ExportedFile, Record, sizes_of, union
from svcctl.exports.windows import Window
from svcctl.storage import exists

if TYPE_CHECKING:
    from svcctl.exports.export import Export


def claim(export: Export) -> OpenRecord:
    """Return the record of an export, with the range of this run added. The record is not saved yet.

    All dates of a merged file may need the same UTC offset, see `Export.file_zone`. In this case, windows that were
    fetched with another offset than this run uses are removed from the record. Raises UsageError if the record is
    damaged, or if the record or a file of the target belongs to another export.
    """
    record, replaced = _starting_over(export) if export.order.overwrite else (_continued(export), ())
    new = record is None
    record = record or Record(export.storage, export.target, export.identity)
    if not export.order.overwrite:
        _refuse_files_of_others(export, record)
    if not export.target.per_window:
        paths = export.parts(record.entries)
        parts = {window: part for window, part in record.entries.items() if part.path in ("", paths[window])}
        record = replace(record, entries=parts)
    record = replace(record, ranges=_ranges(export, record))
    if export.order.state is not None:
        record = _without_the_oldest(export, record)
    return OpenRecord(replace(export, columns=record.columns), record, replaced=replaced, new=new)


def _continued(export: Export) -> Record | None:
    """Return the record for a run that keeps all windows of earlier runs. Return None if there is no earlier run.

    Raises UsageError if the record belongs to another export.
    """
    record = _read(export)
    if record is None or record.identity.key == export.identity.key:
        return record
    if not record.is_empty or (export.order.until is not None and not export.order.incremental):
        raise _another(export, record)
    return None  # the other export has no files


def _starting_over(export: Export) -> tuple[Record | None, tuple[str, ...]]:
    """Return the record for a run with --force, and a text about each old record that the run replaces.

    Such a run fetches its whole range again. The record keeps the files of earlier runs that lie outside of this range.
    The record is None if no old record can be used.
    """
    address = export.storage.address(export.record_path)
    try:
        record = _read(export)
    except DamagedRecord:
        if export.order.until is not None:
            raise
        return None, (f"{address}, which was damaged",)
    if record is None:
        return None, ()
    if record.identity.key != export.identity.key:
        if export.order.until is not None and not record.is_empty:
            raise _another(export, record)
        return None, (f"{address}, which described another export",)
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
    return replace(record, head=head, entries=entries, merged=merged, inside=inside, columns=columns), ()


def _read(export: Export) -> Record | None:
    """Return the record of the target. Return None if there is no record.

    Raises UsageError if the record is damaged, or does not match the saved state of the export.
    """
    order, storage, target = export.order, export.storage, export.target
    if order.state is not None and order.until is not None:
        return Record.of_state(order.state, order.until, storage, target).settled()
    record = Record.read(storage, target)
    return None if record is None else record.settled()


def _another(export: Export, record: Record) -> UsageError:
    """Return the error for a target to which another export already writes."""
    target = export.storage.address(export.target.text)
    differences, options = record.identity.difference(export.identity)
    message = f"{target} belongs to another export: {differences}"
    if record.identity.service != export.identity.service:
        return UsageError(message, hint=f"write to another path, or {PROFILE}")
    advice = "give --force to start over"
    if (state := export.order.state) is not None and export.order.until is not None:
        advice = STARTS_OVER.format(state=state)
    return UsageError(message, hint=f"give {options}, write to another path, or {advice}")


def _refuse_files_of_others(export: Export, record: Record) -> None:
    """Raise UsageError if the run would replace a file that it must not replace."""
    foreign: dict[str, Window | None] = {}
    if export.target.per_window:
        owners = {entry.path: entry.window for entry in record.entries.values()}
        for window, path in export.target.paths(export.whole, export.windows).items():
            owner = owners.get(path)
            if owner != window and (owner is not None or not _overlaps(record.ranges, window)):
                foreign[path] = owner
    else:
        merged = next((file for file in record.merged if file.path == export.path), None)
        if merged is None or merged.window not in export.whole:
            foreign[export.path] = None if merged is None else merged.window
    for path in sizes_of(export.storage, foreign, distant=export.distant):
        raise exists(export.storage.address(path), foreign[path])


def _overlaps(ranges: Iterable[tuple[int, int]], window: Window) -> bool:
    """Return whether at least one of the ranges overlaps the window."""
    return any(start < window.end and window.start < end for start, end in ranges)


def _ranges(export: Export, record: Record) -> tuple[tuple[int, int], ...]:
    """Return the ranges that the files of the export should cover. They include the range of this run.

    If a window in these ranges has no entry in the record, the window is a gap. There are three cases for earlier runs:
    - With a saved state, the ranges of all earlier runs are included, because each run continues the previous run.
    - Without a state, only the ranges of existing entries are included, because the user may decide not to repeat a
      killed run.
    - If all runs write the same file, no ranges of earlier runs are included.
    """
    earlier = record.ranges
    if export.target.is_one_file:
        earlier = ()
    elif export.order.state is None:
        earlier = tuple((entry.start, entry.end) for entry in (*record.entries.values(), *record.merged))
    return union([*earlier, (export.whole.start, export.whole.end)])


def _without_the_oldest(export: Export, record: Record) -> Record:
    """Return the record with at most `export.kept_windows` windows of earlier runs. The oldest windows are left out."""
    ends = [entry.end for entry in (*record.entries.values(), *record.inside) if entry.end <= export.whole.start]
    return record if len(ends) <= export.kept_windows else record.later(sorted(ends)[-export.kept_windows - 1])
