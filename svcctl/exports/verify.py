"""Verify an export: what is damaged or missing, and the ranges to fetch again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from svcctl.errors import UsageError
from svcctl.exports.export import folder_of
from svcctl.exports.inventory import Inventory
from svcctl.exports.ownership import sizes_of
from svcctl.exports.record import Record, read, write
from svcctl.exports.run import alone
from svcctl.exports.windows import Window, moment

DAMAGED, MISSING, NOT_EXPORTED = "damaged", "missing", "not exported"


@dataclass(frozen=True, slots=True)
class LostRange:
    """A range that an export lacks: its file is DAMAGED or MISSING, or it has none and is NOT_EXPORTED.

    `window` is what to fetch again; `since` is where the lost range begins, which may be later.
    """

    kind: str
    window: Window
    since: int
    file: str | None = None
    """The address of the file."""

    @property
    def text(self) -> str:
        return f"{self.window} is not exported yet" if self.file is None else f"{self.file} is {self.kind}"


@dataclass
class HashProgress:
    """How many files were hashed so far, and how many bytes."""

    files: int = 0
    bytes: int = 0

    def add(self, count: int) -> None:
        self.bytes += count


def damage(found: Inventory, progress: HashProgress | None = None) -> Iterator[LostRange]:
    """Hash all files, and yield each damaged or missing one, and each range that is not exported."""
    progress = progress or HashProgress()
    replacing = found.record.replacing
    for entry in found.files():
        wanted = {entry.sha256}
        wanted.update(new.sha256 for new in replacing[:1] if new.path == entry.path)
        try:
            kind = None if found.storage.sha256(entry.path, progress.add) in wanted else DAMAGED
        except UsageError:
            kind = MISSING
        progress.files += 1
        if kind is not None:
            yield LostRange(kind, found.named_by(entry), entry.start, found.storage.address(entry.path))
    for gap in found.gaps():
        yield LostRange(NOT_EXPORTED, gap, gap.start)


def verified_until(record: Record, lost: Iterable[LostRange], date: int) -> int:
    """The epoch second up to which all is there, after a verify of the windows that ended after `date`.

    It is the start of the first lost range, else the end of what was exported. It stays if `date` leaves out windows
    that no verify has seen.
    """
    if not record.ranges or date > max(record.verified, record.ranges[0][0]):
        return record.verified
    return min([record.ranges[-1][1], *(one.since for one in lost)])


def remember(found: Inventory, verified: int) -> None:
    """Keep the date up to which an export was verified in its record. Locked while a run of the export goes on."""
    if verified == found.record.verified:
        return
    folder = folder_of(found.stored)
    with alone(found.storage, found.stored):
        write(found.storage, folder, replace(read(found.storage, folder) or found.record, verified=verified))


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
    return record.identity.count(entry.window for entry in gone), len(files)


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
