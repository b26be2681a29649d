"""A run with its workers: threads of this process or of a cluster; and the progress that it shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from svcctl.dates.lengths import rough_text
from svcctl.exports.cluster import Connect, cluster, fetch_there
from svcctl.exports.export import Export, Summary
from svcctl.exports.fetch import Fetch, Progress, fetch
from svcctl.exports.manifest import Entry
from svcctl.exports.pace import Pace
from svcctl.exports.run import Run
from svcctl.exports.spool import Memory, held_bytes
from svcctl.io.time_limit import without_signals
from svcctl.words import counted, size_text

if TYPE_CHECKING:
    from svcctl.api.client import Client


@dataclass
class Going:
    """The progress of a run. `clock` is monotonic, in seconds."""

    progress: Progress = field(default_factory=Progress)
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    of: int = 0
    _before: int | None = None
    """The number of windows that were there before the run."""

    def __post_init__(self) -> None:
        self._started = self.clock()

    @property
    def seconds(self) -> float:
        return self.clock() - self._started

    def take(self, done: int, of: int) -> None:
        if self._before is None:
            self._before = done
        self.done, self.of = done, of

    @property
    def fetched(self) -> int:
        """The number of windows that this run has fetched."""
        return self.done - (self._before or 0)

    def line(self) -> str:
        """The progress in one line."""
        if not self.of:
            return "looking for what is there already"
        progress, seconds = self.progress, max(self.seconds, 0.001)
        parts = [
            f"{self.done} of {self.of} windows",
            f"{progress.rows / seconds:,.0f} rows/s",
            f"{size_text(progress.bytes / seconds)}/s",
        ]
        if progress.retries:
            parts.append(counted(progress.retries, "retry"))
        if self.fetched and self.done < self.of:
            parts.append(f"{rough_text(seconds / self.fetched * (self.of - self.done))} left")
        return ", ".join(parts)


@dataclass(frozen=True)
class Workers:
    """The workers that fetch the windows; `connect` makes their client, and they share `per_second` requests a second.

    With a `scheduler` they are its workers, each with a client that `connect_there` makes; `target` is then the one
    that was asked for, as each machine has to open it.
    """

    connect: Callable[[], Client]
    connect_there: Connect
    target: str
    count: int | None = None
    per_second: float | None = None
    scheduler: str | None = None

    @contextmanager
    def working(
        self, export: Export, progress: Progress, stopping: threading.Event
    ) -> Iterator[tuple[Executor, int, Fetch]]:
        if self.scheduler is None:
            count = self.count or 4
            fetch_here = partial(
                fetch,
                client=self.connect(),
                storage=export.storage,
                pace=Pace(self.per_second),
                progress=progress,
                stopping=stopping,
                memory=Memory(held_bytes(count)),
            )
            pool = ThreadPoolExecutor(count, "window", without_signals)
            try:
                yield pool, count, fetch_here
            finally:
                stopping.set()
                # A worker that waits for the service would hold up the end of a run that failed.
                pool.shutdown(wait=False, cancel_futures=True)
            return
        with cluster(self.scheduler) as (executor, threads, processes):
            share = self.per_second and self.per_second / processes
            away = partial(fetch_there, target=self.target, connect=self.connect_there, per_second=share)
            yield executor, self.count or threads, away


def perform(
    export: Export,
    workers: Workers,
    going: Going,
    fetched: Callable[[Entry], None],
    changed: Callable[[str, str], None],
    *,
    keep_going: bool,
) -> Summary:
    """Run an export; `fetched` is called with each window that is fetched, `changed` is that of Journal."""
    stopping = threading.Event()

    def take(done: int, of: int, entry: Entry | None) -> None:
        if entry is not None:
            fetched(entry)
            if workers.scheduler is not None:  # the workers' own counts are elsewhere
                going.progress.add(rows=entry.rows, bytes=entry.bytes, retries=entry.attempts - 1)
        going.take(done, of)

    with workers.working(export, going.progress, stopping) as (executor, count, work):
        return Run(export, work, executor, count, stopping, keep_going=keep_going, done=take, changed=changed)()
