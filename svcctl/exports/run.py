"""A run of an export: find the missing windows, hand them to workers, and publish the files.

    claim the target ─> fetch what is missing ─> write the merged file, or a file for each window ─> move the state

The manifest and the parts of an export are in a folder beside its target, `.<target>.export`. Whatever ends a run, a
part appears under its name whole or not at all, the manifest names only parts that are there, and the merged file gets
its name before its parts are removed. So a rerun resumes, whenever the run before it ended.

A file is replaced only by one of the same export that covers all of its time; any other file is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue

from svcctl.errors import CredentialsError, IncompleteResult, Locked, SvcctlError, Unavailable, UsageError
from svcctl.exports.export import Export, Summary, folder_of, lock_of
from svcctl.exports.fetch import Fetched, Stopped, Task
from svcctl.exports.formats import Part
from svcctl.exports.journal import Journal
from svcctl.exports.manifest import Entry
from svcctl.exports.merge import Damaged, Merging, checked, heading_of, merging
from svcctl.exports.spool import Unstored, held_bytes
from svcctl.exports.stride import Stride
from svcctl.exports.windows import Target, Window
from svcctl.storage import Storage

AHEAD = 2
"""Windows handed out for each worker: while it fetches one, the next one waits."""
ENDING_SECONDS = 2.0
"""Seconds that a failing run waits for the workers that are fetching a window."""
HOPELESS = (Unstored, UsageError, CredentialsError, Locked)
"""Errors that every window would meet, such as a mistake in the query: they end a run even with `keep_going`."""


@contextmanager
def alone(storage: Storage, target: Target) -> Iterator[None]:
    """Keep other runs of an export out, as far as the storage has locks: local files do."""
    lock_name = lock_of(target)
    try:
        lock = storage.create(lock_name, overwrite=True)
    except Locked:
        raise Locked(f"another run of the export to {target.text} is going on") from None
    except (UsageError, Unavailable) as error:  # the user knows the target, not the folder beside it
        message = error.message.replace(storage.address(lock_name), storage.address(target.text))
        raise type(error)(message, hint=error.hint) from None
    try:
        with lock:
            yield
    finally:
        storage.remove_folder(folder_of(target))
        storage.remove_made_folders()


class Run:
    """One run. `fetch` is called by `executor`'s workers; `stopping` tells those of this process to end.

    With `keep_going` a window that fails is left out and listed in the summary; otherwise its error ends the run.
    `done` is called with the number of finished windows, the number of all, and the entry of the last one unless it
    failed; `changed` is that of Journal.
    """

    def __init__(
        self,
        export: Export,
        fetch: Callable[[Task], Fetched],
        executor: Executor,
        workers: int,
        stopping: threading.Event,
        *,
        keep_going: bool = False,
        done: Callable[[int, int, Entry | None], None] = lambda windows, of, entry: None,
        changed: Callable[[str, str], None] = lambda before, now: None,
    ) -> None:
        self._export = export
        self._storage = export.storage
        self._fetch = fetch
        self._executor = executor
        self._workers = workers
        self._stopping = stopping
        self._keep_going = keep_going
        self._done = done
        self._tasks: dict[Window, Task] = {}
        self._journal = Journal(export, changed=changed)
        self._fetched = 0
        self._idle = False
        self._failed: dict[Window, SvcctlError] = {}
        self._damaged: set[Window] = set()

    def __call__(self) -> Summary:
        """Export all windows; raises the error of a window that cannot be fetched, unless `keep_going`."""
        if not self._export.windows:
            return Summary(0, 0, 0, 0, (), self._export.whole.end)
        with alone(self._storage, self._export.target):
            return self._run()

    def _run(self) -> Summary:
        self._export = self._journal.open()
        self._tasks = self._export.tasks()
        try:
            if self._export.target.per_window:
                missing = self._journal.missing(self._tasks)
                self._idle = not missing
                for _ in self._fetching(missing):
                    pass
                self._journal.tell_columns()
                self._journal.save()
            elif self._journal.is_merged():
                self._idle = True
            else:
                self._merge()
        except BaseException:
            self._stopping.set()
            with suppress(SvcctlError):
                self._journal.settle()
            with suppress(SvcctlError):
                self._journal.tell_columns()
                self._journal.save()
                self._journal.close()
            raise
        return self._summary()

    # Fetching

    def _fetching(self, tasks: Sequence[Task]) -> Iterator[Window]:
        """Fetch windows; yields each when its entry is in the manifest, or when it failed and the run keeps going."""
        part = self._export.part if self._export.joins_windows else None
        stride = Stride(tasks, self._workers, part, held_bytes(self._workers) // (self._workers + 2))
        ended: SimpleQueue[tuple[Sequence[Task], Future[Fetched]]] = SimpleQueue()
        handing = threading.Lock()
        working = 0

        def hand_out(before: Future[Fetched] | None = None) -> None:
            nonlocal working
            if before is not None and _fails_all(before):
                return  # the run is about to end
            with handing:
                some = None if self._stopping.is_set() else stride.next()
                if some is None:
                    return
                working += 1
                future = self._executor.submit(self._fetch, stride.combined(some))
            # What a worker has done is queued before it is given the next window.
            future.add_done_callback(lambda future: ended.put((some, future)))
            future.add_done_callback(hand_out)

        of, taken = len(self._tasks), 0
        self._done(of - len(tasks), of, None)
        for _ in range(AHEAD * self._workers):
            hand_out()
        try:
            while taken < len(tasks):
                with handing:
                    if self._stopping.is_set() and not working:
                        raise Stopped
                some, future = ended.get()
                with handing:
                    working -= 1
                entry = None
                try:
                    entry = self._take(future.result(), len(some))
                    stride.learn(entry, len(some))
                except SvcctlError as error:
                    if not _is_hopeless(error) and stride.split(some):
                        for _ in some:
                            hand_out()
                        continue
                    self._give_up(some[0].window, error)
                taken += len(some)
                self._journal.save_if_due()
                self._done(of - len(tasks) + taken, of, entry)
                yield some[0].window
        finally:
            if taken < len(tasks):
                self._stopping.set()
                with handing:
                    left = working
                self._take_what_is_done(ended, left)

    def _give_up(self, window: Window, error: SvcctlError) -> None:
        """Leave a failed window out, or raise its error, which ends the run."""
        if _is_hopeless(error):
            raise error from None
        if not self._keep_going:
            raise _of_window(window, error) from None
        self._failed[window] = error

    def _take_what_is_done(self, ended: SimpleQueue[tuple[Sequence[Task], Future[Fetched]]], left: int) -> None:
        """Note the windows that workers complete while the run ends, so that the next run need not fetch them again."""
        deadline = time.monotonic() + ENDING_SECONDS
        for _ in range(left):
            try:
                some, future = ended.get(timeout=max(0.0, deadline - time.monotonic()))
                self._take(future.result(), len(some))
            except Empty:
                return
            except Exception:  # the error that ends the run has been raised already
                continue

    def _take(self, fetched: Fetched, windows: int) -> Entry:
        self._journal.take(fetched, self._tasks)
        self._fetched += windows
        return fetched.entry

    # Merging

    def _merge(self) -> None:
        """Write the merged file while its windows arrive; parts that turn out to be damaged are fetched again."""
        overwrite = self._export.overwrite or self._journal.is_ours()
        while True:
            try:
                with merging(self._export, self._journal, overwrite=overwrite) as file:
                    self._write_merged(file)
                    if self._failed:
                        self._journal.save()
                        return  # the gaps are listed, and a file with gaps is not published
                    self._journal.note_replaced()
                    file.publish()
                break
            except Damaged as error:
                if error.window in self._damaged:
                    raise IncompleteResult(f"the part of window {error.window} changes while it is read") from None
                self._damaged.add(error.window)
                self._journal.forget([error.window])
        self._journal.note_published()

    def _write_merged(self, file: Merging) -> None:
        export, journal = self._export, self._journal
        missing = journal.missing(self._tasks)
        arriving = self._fetching([replace(task, hold=True) for task in missing] if file.grows else missing)

        def parts() -> Iterator[Part]:
            reached = export.whole.start
            for planned in export.windows:
                if planned.start < reached:
                    continue  # it was fetched together with the ones before
                while not journal.has(window := journal.piece(planned)) and planned not in self._failed:
                    next(arriving)
                reached = window.end
                if self._failed:
                    journal.settle()
                    continue
                offset = file.bytes
                if (fetched := journal.held.get(window)) is not None and fetched.held is not None:
                    yield fetched.held.pieces
                    file.moved(fetched.entry, offset)
                elif (entry := journal.entries[window]).path and entry.offset is None:
                    yield partial(checked, export.storage, entry)
                    file.moved(entry, offset)

        pieces = parts()
        while journal.head is None and next(arriving, None) is not None:
            pass
        if journal.head is None:  # no window could be fetched, or there is none
            for _ in pieces:
                pass
            return
        if not file.bytes:
            file.write(heading_of(export, journal.head))
        try:
            export.format.merged(pieces, journal.head, file)
        except Damaged:
            for _ in arriving:
                pass  # the windows that are being fetched are needed all the same
            raise

    def _summary(self) -> Summary:
        entries, merged = self._journal.entries, self._journal.merged
        there = [entry for window in self._journal.pieces() if (entry := entries.get(window)) is not None]
        if merged is not None and merged.attempts:
            there = [merged]
        gaps = tuple(sorted(self._failed.items(), key=lambda item: item[0]))
        return Summary(
            rows=sum(entry.rows for entry in there),
            bytes=sum(entry.bytes for entry in there),
            windows=len(self._export.windows),
            fetched=self._fetched,
            gaps=gaps,
            until=self._until(gaps[0][0] if gaps else None),
            idle=self._idle,
            replaced=tuple(self._journal.replaced),
            files=tuple(map(self._storage.address, self._files())),
        )

    def _files(self) -> list[str]:
        if self._export.target.per_window:
            return [task.path for window, task in self._tasks.items() if window not in self._failed]
        return [] if self._failed else [self._export.path]

    def _until(self, gap: Window | None) -> int:
        whole = self._export.whole
        if gap is None:
            return whole.end
        return gap.start if self._export.target.per_window else whole.start


def _fails_all(future: Future[Fetched]) -> bool:
    error = None if future.cancelled() else future.exception()
    return isinstance(error, SvcctlError) and _is_hopeless(error)


def _is_hopeless(error: SvcctlError) -> bool:
    return isinstance(error, HOPELESS) or getattr(error, "place", None) is not None


def _of_window(window: Window, error: SvcctlError) -> SvcctlError:
    """The same error with the window in its message."""
    error.message = f"window {window}: {error.message}"
    error.args = (error.message,)
    return error
