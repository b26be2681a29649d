"""Verify an export: what is damaged or missing, and the ranges to fetch again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from svcctl.errors import UsageError
from svcctl.exports.export import folder_of
from svcctl.exports.inventory import Inventory
from svcctl.exports.ownership import sizes_of
from svcctl.exports.record import read, write
from svcctl.exports.run import alone
from svcctl.exports.windows import Window, moment


def damage(found: Inventory) -> Iterator[tuple[str, Window, bool]]:
    """What is wrong, in which range, and whether a file is gone, for each damaged or lost file and missing range."""
    replacing = found.record.replacing
    for entry in found.files():
        address = found.storage.address(entry.path)
        wanted = {entry.sha256}
        wanted.update(new.sha256 for new in replacing[:1] if new.path == entry.path)
        try:
            if found.storage.sha256(entry.path) not in wanted:
                yield f"{address} is damaged", found.named_by(entry), False
        except UsageError:
            yield f"{address} is missing", found.named_by(entry), True
    for gap in found.gaps():
        yield f"{gap} is not exported yet", gap, False


def keep(found: Inventory, date: int) -> tuple[int, int]:
    """Remove from the record what ended by a date; returns how many windows that is, and how many of their files exist.

    UsageError for a date after all that was exported, and for an export that is one file.
    """
    if found.pattern.is_one_file:
        raise UsageError(f"{found.target} is one file, which is kept whole", hint="leave out --keep")
    end = max((end for _, end in found.record.ranges), default=found.record.since)
    if date > end:
        raise UsageError(f"{moment(date)} is after all that was exported, which ends at {moment(end)}")
    folder = folder_of(found.stored)
    with alone(found.storage, found.stored):
        record = read(found.storage, folder) or found.record
        write(found.storage, folder, record.later(date))
    gone = [entry for entry in (*record.entries.values(), *record.merged) if entry.end <= date]
    files = sizes_of(found.storage, [entry.path for entry in gone if entry.is_file], distant="://" in found.target)
    return record.about.count(entry.window for entry in gone), len(files)


def ranges_to_fetch(found: Inventory, past: Sequence[Window]) -> list[Window]:
    """The ranges that an export must be asked for, one after the other, to fetch windows that its next run does not."""
    if found.pattern.is_one_file:
        return [Window(start, end) for start, end in found.record.ranges]
    if found.pattern.per_run:  # each file has a range of its own, and a run that left no file is unknown
        files = {found.named_by(entry) for entry in found.files()}
        return [window for window in past if window in files]
    return list(_spans(past, found.record.ranges))


def _spans(lost: Sequence[Window], claimed: Sequence[tuple[int, int]]) -> Iterator[Window]:
    """One range around all losses in each exported range, so that one command fetches them."""
    for start, end in claimed:
        inside = [one for one in lost if start <= one.start < end]
        if inside:
            yield Window(min(one.start for one in inside), max(one.end for one in inside))
