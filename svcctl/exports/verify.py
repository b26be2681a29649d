"""The verification of an export: it finds damaged and missing files, and the ranges that must be fetched again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from svcctl.errors import UsageError
from svcctl.exports.record import Record, sizes_of
from svcctl.exports.run import locked
from svcctl.exports.windows import Window, moment

DAMAGED, MISSING, NOT_EXPORTED = "damaged", "missing", "not exported"


@dataclass(frozen=True, slots=True)
class LostRange:
    """A range of dates with a damaged file, or without a file.

    `kind` is DAMAGED or MISSING for an exported file, and NOT_EXPORTED for a range that was not exported. `window` is
    the range that must be fetched again. `since` is the epoch second at which the lost range starts. `window` may start
    before `since`, but only if the name of the file contains the start of a run's range.
    """

    kind: str
    window: Window
    since: int
    file: str | None = None
    """The address of the file. It is None for a range that was not exported."""

    @property
    def text(self) -> str:
        return f"{self.window} is not exported yet" if self.file is None else f"{self.file} is {self.kind}"


@dataclass
class HashProgress:
    """The progress of a verification: the numbers of files and bytes that were hashed so far."""

    files: int = 0
    bytes: int = 0

    def add(self, count: int) -> None:
        self.bytes += count


def damage(record: Record, progress: HashProgress | None = None) -> Iterator[LostRange]:
    """Hash all files of an export. Yields the damaged and missing files, and then the ranges that were not exported."""
    progress = progress or HashProgress()
    for entry in record.files():
        hashes = {entry.sha256}
        hashes.update(file.sha256 for file in record.replacing[:1] if file.path == entry.path)
        try:
            kind = None if record.storage.sha256(entry.path, progress.add) in hashes else DAMAGED
        except UsageError:
            kind = MISSING
        progress.files += 1
        if kind is not None:
            yield LostRange(kind, record.naming_range(entry), entry.start, record.storage.address(entry.path))
    for gap in record.gaps():
        yield LostRange(NOT_EXPORTED, gap, gap.start)


def verified_until(record: Record, losses: Iterable[LostRange], date: int) -> int:
    """Return the epoch second up to which all windows are known to be undamaged after a verification.

    The verification has checked only the windows that end after `date`, and has found the lost ranges `losses`. If
    `date` is after both `record.verified` and the start of the export, some windows before `date` are unchecked. The
    result is then `record.verified`, unchanged. Otherwise the result is the start of the first lost range. If no range
    is lost, the result is the end of the export.
    """
    if not record.ranges or date > max(record.verified, record.ranges[0][0]):
        return record.verified
    return min([record.ranges[-1][1], *(loss.since for loss in losses)])


def remember(record: Record, verified: int) -> None:
    """Save `verified` in the record of an export: the epoch second up to which the export is verified.

    Raises Locked if a run of the export is in progress.
    """
    if verified == record.verified:
        return
    with locked(record.storage, record.target):
        current = Record.read(record.storage, record.target) or record
        replace(current, verified=verified).save()


def keep(record: Record, date: int) -> tuple[int, int]:
    """Remove from the record all windows that end at or before `date`, in epoch seconds. Their files are not removed.

    Returns the number of removed windows, and the number of their files that still exist. Raises UsageError if the date
    is after the end of the export, or if all runs write the same file.
    """
    if record.target.is_one_file:
        raise UsageError(f"{record.output} is one file, and no part of it can be dropped", hint="leave out --keep")
    end = max((end for _, end in record.ranges), default=record.since)
    if date > end:
        raise UsageError(f"{moment(date)} is after the end of the export, {moment(end)}")
    with locked(record.storage, record.target):
        current = Record.read(record.storage, record.target) or record
        current.later(date).save()
    dropped = [entry for entry in (*current.entries.values(), *current.merged) if entry.end <= date]
    paths = [entry.path for entry in dropped if entry.is_file]
    files = sizes_of(record.storage, paths, distant=record.is_distant)
    return current.identity.count(entry.window for entry in dropped), len(files)


def ranges_to_fetch(record: Record, past: Sequence[Window]) -> list[Window]:
    """Return the ranges that must be exported again to replace lost windows.

    `past` has the lost windows that no later run will fetch.
    """
    if record.target.is_one_file:
        return [Window(start, end) for start, end in record.ranges]
    if record.target.per_run:  # only the entry of a file gives the range of its run
        files = {record.naming_range(entry) for entry in record.files()}
        return [window for window in past if window in files]
    return list(_spans(past, record.ranges))


def _spans(lost: Sequence[Window], ranges: Sequence[tuple[int, int]]) -> Iterator[Window]:
    """Yield, for each exported range with lost windows, the range from the first to the last lost window."""
    for start, end in ranges:
        inside = [window for window in lost if start <= window.start < end]
        if inside:
            yield Window(min(window.start for window in inside), max(window.end for window in inside))
