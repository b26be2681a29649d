"""A run of an export: which windows are missing, who fetches them, and what is published when.

    claim the target ─> fetch what the manifest lacks ─> write the merged file, or a file a window ─> move the state

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

from svcctl.errors import CredentialsError, IncompleteResult, Locked, SvcctlError, UsageError
from svcctl.exports.export import Export, Summary
from svcctl.exports.fetch import Fetched, Stopped, Task
from svcctl.exports.formats import Part
from svcctl.exports.manifest import About, Entry, Manifest
from svcctl.exports.merge import Damaged, Hashed, checked, sha256_of, write_head
from svcctl.exports.spool import Unstored
from svcctl.exports.windows import Window

AHEAD = 2
"""Windows handed out for each worker: while it works at one, the next one waits for it."""
ENDING_SECONDS = 2.0
"""How long a run that fails waits for the workers that are at a window."""
SAVING = 0.1
"""The share of the time that is spent on saving the manifest at most: with many windows it is saved less often."""

HOPELESS = (Unstored, UsageError, CredentialsError, Locked)
"""What fails one window fails all of them: these errors end a run that keeps going, too."""


class Run:
    """One run. `fetch` is called by `executor`'s workers; `stopping` tells those of this process to end.

    With `keep_going` a window that fails is left out and listed in the summary; otherwise its error ends the run.
    `done` is called with the windows that are through, of how many, and the entry of the last one unless it failed.
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
    ) -> None:
        self._export = export
        self._storage = export.storage
        self._fetch = fetch
        self._executor = executor
        self._workers = workers
        self._stopping = stopping
        self._keep_going = keep_going
        self._done = done
        self._tasks = export.tasks()
        self._manifest = Manifest(export.about)
        self._fetched = 0
        self._failed: dict[Window, SvcctlError] = {}
        self._damaged: set[Window] = set()
        self._replaced: dict[Window, Window] = {}
        self._saved = 0.0
        self._saving = 0.0

    def __call__(self) -> Summary:
        """Bring the target in place; the error of a window that cannot be had, unless `keep_going`."""
        if not self._export.windows:
            return Summary(0, 0, 0, 0, (), self._export.whole.end)
        with self._alone():
            return self._run()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other runs of this export out, as far as the storage has locks: local files do."""
        try:
            lock = self._storage.create(f"{self._export.folder}run", overwrite=True)
        except Locked:
            raise Locked(f"another run of the export to {self._export.target.text} is going on") from None
        with lock:
            yield

    def _run(self) -> Summary:
        self._open()
        try:
            if self._export.target.per_window:
                for _ in self._fetching(self._missing()):
                    pass
                self._save()
            elif not self._is_merged():
                self._merge()
        except BaseException:
            self._stopping.set()
            with suppress(SvcctlError):
                self._save()
            raise
        return self._summary()

    # What is there already

    def _open(self) -> None:
        """Read the manifest and claim the target: whatever is not this export's own is not overwritten."""
        export = self._export
        if self._storage.size(export.manifest) is not None:
            name = self._storage.address(export.manifest)
            try:
                text = b"".join(self._storage.read(export.manifest)).decode("utf-8", "replace")
                found = Manifest.from_text(text, name)
                if found.about.key != export.about.key:
                    raise UsageError(
                        f"{name} belongs to another export: {_difference(found.about, export.about)}",
                        hint="write to another path, or give --force to begin anew",
                    )
                self._manifest = found
            except UsageError:
                if not export.overwrite:
                    raise
        if export.overwrite:
            self._clear()
        self._refuse_what_is_not_ours()
        self._manifest = self._manifest.claiming(export.whole.start, export.whole.end)
        self._save()

    def _clear(self) -> None:
        """Forget what earlier runs did."""
        for name in list(self._storage.names(self._export.folder)):
            self._storage.remove(name)
        self._manifest = Manifest(self._export.about)

    def _refuse_what_is_not_ours(self) -> None:
        """UsageError when a file of the target exists that this export did not write, or wrote for a time outside."""
        export, storage = self._export, self._storage
        if export.overwrite:
            return
        if export.target.per_window:
            written = {entry.path: entry.window for entry in self._manifest.entries.values()}
            theirs = []
            for window, task in self._tasks.items():
                other = written.get(task.path)
                if other is not None and other in window:
                    self._replaced[window] = other
                elif other is not None or not self._manifest.claims(window):
                    theirs.append(task.path)
        else:
            theirs = [] if self._is_ours() else [export.path]
        for path in theirs:
            if storage.size(path) is not None:
                raise UsageError(
                    f"{storage.address(path)} exists", hint="give another name, or overwrite it with --force"
                )

    def _is_ours(self) -> bool:
        """Whether the merged file, if there is one, is of this export and of no time outside this run's."""
        merged = self._manifest.merged
        return merged is not None and merged.path == self._export.path and merged.window in self._export.whole

    def _missing(self) -> list[Task]:
        """The tasks whose part is not there as the manifest has it; the manifest forgets those."""
        there = self._manifest.entries
        missing = [task for window, task in self._tasks.items() if not self._is_there(there.get(window), task)]
        self._manifest = self._manifest.without(task.window for task in missing)
        return missing

    def _is_there(self, entry: Entry | None, task: Task) -> bool:
        if entry is None or (entry.path and entry.path != task.path):
            return False
        return not entry.path or self._is_whole(entry)

    def _is_whole(self, entry: Entry) -> bool:
        if self._storage.size(entry.path) != entry.bytes:
            return False
        if self._export.distant or not self._export.target.per_window:
            return True  # parts are hashed as they are merged
        return sha256_of(self._storage, entry.path) == entry.sha256

    def _is_merged(self) -> bool:
        """Whether the merged file is in place, by this run's range; parts that are left over are removed."""
        export, merged = self._export, self._manifest.merged
        if merged is None or (merged.start, merged.end, merged.path) != (
            export.whole.start,
            export.whole.end,
            export.path,
        ):
            return False
        if self._storage.size(merged.path) != merged.bytes:
            return False
        published = merged.attempts > 0
        if published and export.distant:
            return True
        if sha256_of(self._storage, merged.path) != merged.sha256:
            return False
        if not published:
            self._note_published()
        return True

    # Fetching

    def _fetching(self, tasks: Sequence[Task]) -> Iterator[Window]:
        """Fetch windows; yields each when its entry is in the manifest, or when it failed and the run keeps going."""
        waiting = iter(tasks)
        ended: SimpleQueue[tuple[Task, Future[Fetched]]] = SimpleQueue()
        handing = threading.Lock()
        handed = 0

        def hand_out(_: object = None) -> None:
            nonlocal handed
            with handing:
                task = None if self._stopping.is_set() else next(waiting, None)
                if task is None:
                    return
                handed += 1
                future = self._executor.submit(self._fetch, task)
            # What a worker has done is queued before it is given the next window.
            future.add_done_callback(lambda future: ended.put((task, future)))
            future.add_done_callback(hand_out)

        of, taken = len(self._tasks), 0
        self._done(of - len(tasks), of, None)
        for _ in range(AHEAD * self._workers):
            hand_out()
        try:
            while taken < len(tasks):
                with handing:
                    if self._stopping.is_set() and handed == taken:
                        raise Stopped
                task, future = ended.get()
                taken += 1
                try:
                    self._take(future.result())
                except SvcctlError as error:
                    if not self._keep_going or isinstance(error, HOPELESS):
                        raise _of_window(task.window, error) from None
                    self._failed[task.window] = error
                if time.monotonic() - self._saved > self._saving / SAVING:
                    self._save()
                self._done(of - len(tasks) + taken, of, self._manifest.entries.get(task.window))
                yield task.window
        finally:
            if taken < len(tasks):
                self._stopping.set()
                with handing:
                    left = handed - taken
                self._take_what_is_done(ended, left)

    def _take_what_is_done(self, ended: SimpleQueue[tuple[Task, Future[Fetched]]], left: int) -> None:
        """Note the windows that other workers complete while the run ends, so that the next one need not ask again."""
        deadline = time.monotonic() + ENDING_SECONDS
        for _ in range(left):
            try:
                _, future = ended.get(timeout=max(0.0, deadline - time.monotonic()))
                self._take(future.result())
            except Empty:
                return
            except Exception:  # the error that ends the run is on its way already
                continue

    def _take(self, fetched: Fetched) -> None:
        if self._manifest.head != fetched.head:
            if any(window in self._manifest.entries for window in self._tasks):
                raise IncompleteResult(
                    f"the columns are not those of the other windows: {fetched.head.strip()}",
                    hint="export the ranges before and after the change by themselves",
                )
            # Earlier runs had other columns. Files of windows have their own heading, but parts share one.
            whole = self._export.whole
            if not self._export.target.per_window:
                self._manifest = replace(self._manifest, entries={}, claimed=((whole.start, whole.end),))
            self._manifest = replace(self._manifest, head=fetched.head)
        window = fetched.entry.window
        self._manifest = self._manifest.without([self._replaced.get(window, window)]).having(fetched.entry)
        self._fetched += 1

    def _save(self) -> None:
        started = time.monotonic()
        with self._storage.create(self._export.manifest, overwrite=True) as sink:
            sink.write(self._manifest.to_text().encode())
            sink.complete()
        self._saved = time.monotonic()
        self._saving = self._saved - started

    # Merging

    def _merge(self) -> None:
        """Write the merged file while its windows arrive; parts that turn out to be damaged are fetched again."""
        overwrite = self._export.overwrite or self._is_ours()
        while True:
            try:
                with self._storage.create(self._export.path, overwrite=overwrite) as sink:
                    hashed = Hashed(sink)
                    self._write_merged(hashed)
                    if self._failed:
                        return  # the gaps are listed, and a file with gaps is not published
                    self._note_merged(hashed)
                    sink.complete()
                break
            except Damaged as error:
                if error.window in self._damaged:
                    raise IncompleteResult(f"the part of window {error.window} changes while it is read") from None
                self._damaged.add(error.window)
                self._manifest = self._manifest.without([error.window])
        self._note_published()

    def _write_merged(self, sink: Hashed) -> None:
        arriving = self._fetching(self._missing())

        def parts() -> Iterator[Part]:
            for window in self._export.windows:
                while window not in self._manifest.entries and window not in self._failed:
                    next(arriving)
                entry = self._manifest.entries.get(window)
                if entry is not None and entry.path and not self._failed:
                    yield partial(checked, self._storage, entry)

        pieces = parts()
        export = self._export
        while self._manifest.head is None and next(arriving, None) is not None:
            pass
        head = self._manifest.head
        if head is None:  # no window could be had, or there is none
            for _ in pieces:
                pass
            return
        if export.format.heading:
            write_head(head, export.compression, sink)
        try:
            export.format.merged(pieces, head, sink)
        except Damaged:
            for _ in arriving:
                pass  # what is being fetched is needed all the same
            raise

    def _note_merged(self, hashed: Hashed) -> None:
        """Note what the merged file will be: a rerun can tell whether it appeared, if this run ends in between."""
        whole = self._export.whole
        rows = sum(self._manifest.entries[window].rows for window in self._export.windows)
        merged = Entry(whole.start, whole.end, self._export.path, rows, hashed.bytes, hashed.hexdigest(), 0.0, 0)
        self._manifest = replace(self._manifest, merged=merged)
        self._save()

    def _note_published(self) -> None:
        """Remove the parts, then note that the merged file is in place: from then on nothing is left to do."""
        assert self._manifest.merged is not None
        for window, task in self._tasks.items():
            entry = self._manifest.entries.get(window)
            if entry is not None and entry.path:
                self._storage.remove(task.path)
        self._manifest = replace(self._manifest, merged=replace(self._manifest.merged, attempts=1))
        self._save()

    def _summary(self) -> Summary:
        there = [entry for window in self._export.windows if (entry := self._manifest.entries.get(window)) is not None]
        gaps = tuple(sorted(self._failed.items(), key=lambda item: item[0]))
        merged = None if gaps else self._manifest.merged
        return Summary(
            rows=sum(entry.rows for entry in there),
            bytes=sum(entry.bytes for entry in there) if merged is None else merged.bytes,
            windows=len(self._export.windows),
            fetched=self._fetched,
            gaps=gaps,
            until=self._until(gaps[0][0] if gaps else None),
        )

    def _until(self, gap: Window | None) -> int:
        whole = self._export.whole
        if gap is None:
            return whole.end
        return gap.start if self._export.target.per_window else whole.start


def _difference(one: About, other: About) -> str:
    """What two exports differ in, in words."""
    names = {
        "query": one.query != other.query,
        "format": one.format != other.format,
        "window": one.window != other.window,
        "service": one.service != other.service,
        "options": one.options != other.options,
    }
    return "another " + " and another ".join(name for name, differs in names.items() if differs)


def _of_window(window: Window, error: SvcctlError) -> SvcctlError:
    """The same error, which says the window it is about."""
    error.message = f"window {window}: {error.message}"
    error.args = (error.message,)
    return error
