"""A run of an export: it finds the missing time windows, lets workers fetch them, and publishes the files.

    lock the target ─> fetch the missing windows ─> write the merged file, or a file per window
                    ─> save the start of the next run in the export's state

A run may be killed at any moment, and the next run continues its work. Three rules make this possible:
- A part, which is a file with the rows of a window, gets its name only when it is complete.
- Until the merged file is complete, the record of the export names only existing parts.
- A part is removed only after its rows are in the merged file.

If a window fails, the other windows are still fetched. The next run fetches only the missing windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial

from svcctl.errors import IncompleteResult, Locked, SvcctlError, UsageError
from svcctl.exports.export import Export, Summary
from svcctl.exports.formats import Part
from svcctl.exports.merge import DamagedPart, MergedFile, checked, heading_of, merged_file
from svcctl.exports.open_record import OpenRecord
from svcctl.exports.ownership import claim
from svcctl.exports.record import folder_of
from svcctl.exports.windows import Target, Window
from svcctl.exports.workers.dispatch import Crew, Failures
from svcctl.exports.workers.fetch import Fetched, Task
from svcctl.storage import Storage


@contextmanager
def locked(storage: Storage, target: Target) -> Iterator[None]:
    """Hold the lock of a target during a block.

    The lock is a file that stays open for writing until the block ends. Only a local target can be locked. Raises
    Locked if another run holds the lock.
    """
    try:
        lock = storage.create(f"{folder_of(target)}run", overwrite=True)
    except Locked:
        raise Locked(f"another run of the export to {target.text} is going on") from None
    except UsageError as error:  # the user knows the target, but not its hidden folder
        error.add_note(f"a run keeps its lock and its parts next to {storage.address(target.text)}")
        raise
    try:
        with lock:
            yield
    finally:
        storage.remove_folder(folder_of(target))
        storage.remove_made_folders()


@contextmanager
def opened(export: Export) -> Iterator[OpenRecord]:
    """Lock the target of an export, and open its record for a run."""
    with locked(export.storage, export.target):
        record = claim(export)
        record.open()
        yield record


class ExportRun:
    """A run of an export. If `stops` is true, the first failed window ends the run.

    `report` is called before the first request and after each request. Its arguments are the number of finished
    windows, the number of all windows, and the result of the request. Before the first request, and after a failed
    request, the result is None.
    """

    def __init__(
        self, record: OpenRecord, crew: Crew, report: Callable[[int, int, Fetched | None], None], *, stops: bool = False
    ) -> None:
        self._record = record
        self._export = record.export
        self._crew = crew
        self._report = report
        self._tasks = self._export.tasks()
        self._failures = Failures(stops=stops)
        self._fetched = 0
        self._damaged: set[Window] = set()

    def __call__(self) -> Summary:
        """Export all windows, and return the summary of the run. If an error ends the run early, raise this error."""
        idle = False
        try:
            if self._export.target.per_window:
                missing = self._record.missing(self._tasks)
                idle = not missing
                for _ in self._fetching(missing):
                    pass
                self._record.note_columns()
                self._record.save()
            elif not self._export.order.overwrite and self._record.is_merged():
                idle = True
            else:
                self._merge()
        except BaseException:
            self._crew.stopping.set()
            self._record.interrupt()
            raise
        return self._summary(idle)

    # Fetching

    def _fetching(self, tasks: Sequence[Task]) -> Iterator[None]:
        """Fetch the windows of tasks.

        Yields after each request. By then, the windows of the request are in the record, or have failed.
        """
        total, finished = len(self._tasks), len(self._tasks) - len(tasks)
        self._report(finished, total, None)
        joined = self._export.joined if self._export.joins_windows else None
        with closing(self._crew.fetching(tasks, self._take, joined)) as outcomes:
            for request, outcome in outcomes:
                finished += len(request)
                if isinstance(outcome, SvcctlError):
                    self._failures.add(request[0].window, outcome)
                    self._report(finished, total, None)
                else:
                    self._failures.end_row()
                    self._record.save_if_due()
                    self._report(finished, total, outcome)
                yield

    def _take(self, fetched: Fetched, windows: int) -> None:
        self._record.take(fetched)
        self._fetched += windows

    # Merging

    def _merge(self) -> None:
        """Write the merged file while its windows arrive. A damaged window is fetched again, but only once."""
        earlier = self._record.earlier
        overwrite = self._export.order.overwrite or (earlier is not None and earlier.window in self._export.whole)
        while True:
            try:
                with merged_file(self._export, self._record, overwrite=overwrite) as file:
                    self._write_merged(file)
                    if self._failures.gaps:
                        self._record.save()
                        return  # a file with gaps is not published
                    file.publish()
                break
            except DamagedPart as error:
                if error.window in self._damaged:
                    raise IncompleteResult(f"the part of window {error.window} changed while it was read") from None
                self._damaged.add(error.window)
                self._record.drop(error.window)
        self._record.note_published()

    def _write_merged(self, file: MergedFile) -> None:
        export, record = self._export, self._record
        arriving = self._fetching(record.missing(self._tasks))
        pieces = self._parts(file, arriving)
        if record.head is None:
            next((None for _ in arriving if record.head is not None), None)
        if record.head is None:  # all windows failed, or there are no windows
            for _ in pieces:
                pass
            return
        if not file.bytes:
            file.write(heading_of(export, record.head))
        try:
            export.format.merged(pieces, record.head, file)
        except DamagedPart:
            for _ in arriving:
                pass  # wait for the windows that are being fetched, because the next attempt uses them
            raise

    def _parts(self, file: MergedFile, arriving: Iterator[None]) -> Iterator[Part]:
        """Yield a reader for the stored rows of each window, in order, as soon as the window was fetched.

        After a failed window, nothing is yielded.
        """
        export, record, gaps = self._export, self._record, self._failures.gaps
        for window in record.windows():
            while (entry := record.at(window)) is None and window not in gaps:
                next(arriving)
            offset = file.bytes
            if entry is not None and entry.is_file and not gaps:
                yield partial(checked, export.storage, entry)
                file.note_moved(entry, offset)

    # The result

    def _summary(self, idle: bool) -> Summary:
        export, entries, merged = self._export, self._record.inside(), self._record.merged
        if merged is not None and merged.when:
            entries = [merged]
        gaps = tuple(sorted(self._failures.gaps.items(), key=lambda item: item[0]))
        until = export.whole.end
        files = [] if gaps else [export.path]
        if gaps:
            until = gaps[0][0].start if export.target.per_window else export.whole.start
        if export.target.per_window:
            files = [task.path for window, task in self._tasks.items() if window not in self._failures.gaps]
        return Summary(
            rows=sum(entry.rows for entry in entries),
            bytes=sum(entry.bytes for entry in entries),
            windows=len(export.windows),
            fetched=self._fetched,
            gaps=gaps,
            until=until,
            idle=idle,
            replaced=tuple(self._record.replaced),
            files=tuple(map(export.storage.address, files)),
        )
