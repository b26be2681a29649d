"""The comparison of an export with its service. Time windows with changed events are fetched again.

    compare by counts, or by fetching ─> fetch the changed windows ─> replace their files, or rewrite the merged file

If each window has its own file, the files of changed windows are replaced. A merged file is rewritten from the bytes of
the old file and the new rows of the changed windows. The hash of the new file is saved in the record before the new
file replaces the old file. If a reconcile is killed, a later command can tell by this hash whether the file
was replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING

from svcctl.api.query import QueryRequest, counting, outline
from svcctl.errors import IncompleteResult, SvcctlError
from svcctl.exports.export import Export, Order
from svcctl.exports.merge import DamagedPart, Hashed, checked
from svcctl.exports.open_record import SAVE_INTERVAL_SECONDS, OpenRecord
from svcctl.exports.plan import plan
from svcctl.exports.record import ExportedFile, Record
from svcctl.exports.run import ExportRun
from svcctl.exports.windows import Window
from svcctl.exports.workers.dispatch import Crew, Failures
from svcctl.exports.workers.fetch import Fetched, Known
from svcctl.io.losses import Losses

if TYPE_CHECKING:
    from svcctl.api.client import Client

LEAST_PERIOD = 60
"""The minimum period, in seconds, for counting the rows of all windows with one query.

The query divides the time into equal periods, and counts the rows of each period. The length of a period is the
greatest common divisor of the start and end times of all windows. If this length is less than LEAST_PERIOD, each window
is counted with a query of its own.
"""


@dataclass(frozen=True, slots=True)
class WindowDifference:
    """A time window in which the rows at the service differ from the exported rows.

    `entry` is the old entry of the window in the record of the export. `rows` is the number of rows at the service now.
    `file` is the address of the window's file. `times` is the number of times that a reconcile has replaced the window,
    including this time. If `fewer` is true, the window keeps its old rows, because the service has fewer rows than the
    file.
    """

    entry: ExportedFile
    rows: int
    file: str
    times: int
    fewer: bool


def export_of(record: Record, environment: Mapping[str, str], retries: int) -> Export:
    """Return the export that a record describes. The range of the export is empty."""
    identity = record.identity
    order = Order(
        identity.query,
        record.output,
        0,
        0,
        identity.window,
        identity.service,
        format=identity.format.partition(".")[0],
        date_format=identity.date_format,
        zone=identity.window_zone or identity.time_zone,
        retries=retries,
        state=record.name,
        until=None if record.state is None else record.state.until,
    )
    return replace(
        plan(order, environment),
        storage=record.storage,
        target=record.target,
        identity=identity,
        columns=record.columns,
    )


def counts(export: Export, entries: Sequence[ExportedFile], client: Client) -> dict[Window, int]:
    """Return the number of rows that the service has in each window.

    All windows are counted with one query if possible, see LEAST_PERIOD.
    """
    period = gcd(*(edge for entry in entries for edge in (entry.start, entry.end)))
    if period < LEAST_PERIOD:
        return {entry.window: sum(_grouped(export, entry.window, "", client).values()) for entry in entries}
    whole = Window(min(entry.start for entry in entries), max(entry.end for entry in entries))
    rows = _grouped(export, whole, f"every {period}s", client)
    return {
        entry.window: sum(rows.get(start, 0) for start in range(entry.start, entry.end, period)) for entry in entries
    }


def _grouped(export: Export, window: Window, every: str, client: Client) -> dict[int, int]:
    """Return the number of rows of each period, by the start of the period in epoch seconds.

    `every` is the clause of the query that sets the period, such as `every 60s`. If `every` is empty, the result
    has only the key 0, with the number of rows in the whole window.
    """
    query = counting(export.identity.query, every)
    request = QueryRequest(window.start, window.end, query, mode="json/simple/compact")
    with client.query(request) as answer:
        return {int(row[0]) // 1000 if every else 0: int(row[-1]) for row in answer.rows()}


class Reconcile:
    """Compares an export with its service, and replaces changed windows.

    The caller must hold the lock of the target. With `dry`, the windows are compared, but not replaced. With `fewer`, a
    window is replaced even if the service now has fewer rows than the file. `note` is called with each text for the
    user.
    """

    def __init__(
        self, export: Export, crew: Crew, note: Callable[[str], None], *, dry: bool = False, fewer: bool = False
    ) -> None:
        self._export = export
        self._storage = export.storage
        self._crew = crew
        self._tell = note
        self._dry = dry
        self._fewer = fewer
        record = Record.read(export.storage, export.target)
        if record is None:
            raise IncompleteResult(f"the record {export.storage.address(export.record_path)} has vanished")
        self.record: Record = record.settled()
        """The record of the export. It includes the windows that have been replaced so far."""
        self._failures = Failures(stops=False)
        self._saved = 0.0
        self.differences: list[WindowDifference] = []
        self.losses = Losses()
        """Counts of the values in replaced windows that the file format could not hold."""
        self.left_out: dict[str, None] = {}
        """Columns that the queried table got after the first windows were fetched. They are not in the files."""

    def entries(self, start: int, end: int) -> list[ExportedFile]:
        """Return the record's entries of finished windows that overlap a range, in order."""
        record = self.record
        entries = record.entries.values() if self._export.target.per_window else record.inside
        inside = (entry for entry in entries if entry.start < end and start < entry.end)
        return sorted(inside, key=lambda entry: entry.window)

    def __call__(self, start: int, end: int, client: Client, *, deep: bool) -> Mapping[Window, SvcctlError]:
        """Compare the windows that overlap a range, and replace the changed windows.

        With `deep`, or if the query groups events, the rows are fetched and compared by their hashes. Otherwise only
        the numbers of rows are compared. Returns the failed windows with their errors.
        """
        entries = self.entries(start, end)
        by_counts = not deep and not outline(self.record.identity.query).has("group")
        if by_counts and entries:
            rows = counts(self._export, entries, client)
            changed = [entry for entry in entries if rows[entry.window] != entry.rows]
            staying = [entry for entry in changed if self._stays(entry, rows[entry.window])]
            for entry in staying:
                self._note(entry, rows[entry.window])
            entries = [entry for entry in changed if entry not in staying]
        if self._export.target.per_window:
            self._replace_files(entries)
        else:
            for path in dict.fromkeys(entry.path for entry in entries):
                self._replace_merged(path, [entry for entry in entries if entry.path == path])
        return self._failures.gaps

    def _stays(self, entry: ExportedFile, rows: int) -> bool:
        """Return whether the old rows of a changed window are kept. `rows` is the number of rows at the service."""
        return self._dry or (rows < entry.rows and not self._fewer)

    def _note(self, entry: ExportedFile, rows: int) -> None:
        fewer = rows < entry.rows and not self._fewer
        times = len(entry.changes) + (not fewer and not self._dry)
        self.differences.append(WindowDifference(entry, rows, self._storage.address(entry.path), times, fewer))

    def _fetched(self, entries: Sequence[ExportedFile], *, replaces: bool) -> Generator[tuple[ExportedFile, Fetched]]:
        """Fetch windows and compare them by their hashes.

        Yields the old entry and the new result of each changed window that must be replaced. A changed window that is
        not replaced is not yielded, but added to the list `self.differences`.
        """
        export = self._export
        task, per_window = export.task, export.target.per_window
        files = {file.path: file.window for file in self.record.merged}
        tasks = [
            replace(
                task,
                window=entry.window,
                path=entry.path if per_window else export.part(entry.window),
                part_of=None if per_window else entry.path,
                zone=export.file_zone(files.get(entry.path, entry.window)),
                known=Known(entry.rows, entry.sha256, replaces and not self._dry, self._fewer),
            )
            for entry in entries
        ]
        before = {entry.window: entry for entry in entries}
        with closing(self._crew.fetching(tasks, lambda fetched, windows: None)) as outcomes:
            for (task,), outcome in outcomes:
                if isinstance(outcome, SvcctlError):
                    self._failures.add(task.window, outcome)
                    continue
                self._failures.end_row()
                self.left_out |= dict.fromkeys(outcome.left_out)
                entry, new = before[task.window], outcome.entry
                if new.sha256 == entry.sha256:
                    continue
                if self._stays(entry, new.rows):
                    self._note(entry, new.rows)
                else:
                    self.losses.add(outcome.losses)
                    changes = (*entry.changes, (new.when, entry.rows, new.rows))
                    yield entry, replace(outcome, entries=(replace(new, changes=changes),))

    def _replace_files(self, entries: Sequence[ExportedFile]) -> None:
        """Replace the files of changed windows."""
        current = dict(self.record.entries)
        try:
            with closing(self._fetched(entries, replaces=True)) as replaced:
                for entry, fetched in replaced:
                    current[entry.window] = fetched.entry
                    self._note(entry, fetched.entry.rows)
                    if time.monotonic() - self._saved > SAVE_INTERVAL_SECONDS:
                        self._save(replace(self.record, entries=dict(current)))
        finally:
            if current != self.record.entries:
                self._save(replace(self.record, entries=current))

    def _save(self, record: Record) -> None:
        self.record = record
        record.save()
        self._saved = time.monotonic()

    # Merged files

    def _replace_merged(self, path: str, entries: Sequence[ExportedFile]) -> None:
        """Rewrite a merged file if at least one of its windows has changed.

        All windows are fetched again if the file is a parquet file or if its columns have changed.
        """
        (file,) = (file for file in self.record.merged if file.path == path)
        outside = {
            window: entry
            for window, entry in self.record.entries.items()
            if window.end <= file.start or file.end <= window.start
        }
        if len(outside) < len(self.record.entries):
            if self._export.target.is_one_file and self.record.ranges != ((file.start, file.end),):
                address = self._storage.address(path)
                raise IncompleteResult(
                    f"a run that replaces {address} has not ended", hint="run the export again first"
                )
            self.record = replace(self.record, entries=outside)  # drops entries of a killed reconcile
        joins, gaps = self._export.format.joins, len(self._failures.gaps)
        changed = list(self._fetched(entries, replaces=joins))
        if not changed or len(self._failures.gaps) > gaps:
            self._remove_parts(changed)
            return  # the failed windows are reported, and the next reconcile compares the file again
        if joins and all(fetched.head == self.record.head for _, fetched in changed):
            try:
                self._splice(file, {entry.window: fetched.entry for entry, fetched in changed})
            except DamagedPart as error:
                raise IncompleteResult(f"the part of window {error.window} changed while it was read") from None
        else:
            self._fetch_whole(file, [fetched.entry for _, fetched in changed])
        for entry, fetched in changed:
            self._note(entry, fetched.entry.rows)
        self._remove_parts(changed)

    def _remove_parts(self, changed: Sequence[tuple[ExportedFile, Fetched]]) -> None:
        self._storage.remove(*(fetched.entry.path for _, fetched in changed if fetched.entry.path))

    def _splice(self, file: ExportedFile, changed: Mapping[Window, ExportedFile]) -> None:
        """Rewrite a merged file, with new bytes for the windows in `changed`. All other bytes come from the old file.

        Raises IncompleteResult if the old file has changed since its export.
        """
        path = file.path
        inside = sorted((entry for entry in self.record.inside if entry.path == path), key=lambda entry: entry.window)
        if self._storage.sha256(path) != file.sha256:
            address = self._storage.address(path)
            raise IncompleteResult(f"{address} has changed since its export", hint="export it again, then reconcile it")
        old = _Slices(self._storage.read(path))
        with self._storage.create(path, overwrite=True) as sink:
            hashed = Hashed(sink)
            for piece in old.take(file.bytes - sum(entry.bytes for entry in inside)):  # the heading
                hashed.write(piece)
            for entry in inside:
                if (new := changed.get(entry.window)) is None:
                    for piece in old.take(entry.bytes):
                        hashed.write(piece)
                else:
                    for _ in old.take(entry.bytes):
                        pass
                    for data in checked(self._storage, new) if new.path else ():
                        hashed.write(data)
            rows = file.rows + sum(entry.rows for entry in changed.values())
            rows -= sum(entry.rows for entry in inside if entry.window in changed)
            spliced = replace(file, rows=rows, bytes=hashed.bytes, sha256=hashed.sha256, when=int(time.time()))
            windows = (replace(entry, path=path) for entry in changed.values())
            self._save(replace(self.record, replacing=(spliced, *windows)))
            sink.complete()
        self._save(self.record.replaced())

    def _fetch_whole(self, file: ExportedFile, changed: Sequence[ExportedFile]) -> None:
        """Fetch all windows of a merged file again."""
        self._tell(
            f"{self._storage.address(file.path)} is fetched again as a whole: its windows cannot be replaced one by one"
        )
        export = self._export
        windows = export.identity.grid.cut(file.start, file.end)
        order = replace(export.order, overwrite=True)
        opened = OpenRecord(replace(export, order=order, whole=file.window, windows=windows), self.record)
        opened.open()
        ExportRun(opened, self._crew, lambda finished, total, fetched: None, stops=True)()
        record = Record.read(self._storage, export.target)
        assert record is not None

        def with_changes(entry: ExportedFile) -> ExportedFile:
            if entry.path != file.path:
                return entry
            overlapping = (new for new in changed if new.start < entry.end and entry.start < new.end)
            return replace(entry, changes=next((new.changes for new in overlapping), entry.changes))

        self._save(replace(record, inside=tuple(map(with_changes, record.inside))))


class _Slices:
    """A reader that takes slices of any length from the bytes of a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def take(self, size: int) -> Iterator[memoryview]:
        """Yield the next `size` bytes in pieces. If the file ends earlier, yield the rest of its bytes."""
        while size > 0:
            if not self._rest:
                self._rest = memoryview(next(self._pieces, b""))
            if not self._rest:
                return
            piece, self._rest = self._rest[:size], self._rest[size:]
            size -= len(piece)
            yield piece
