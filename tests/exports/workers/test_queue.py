"""Windows that one request fetches: fewer requests, the same file, and errors that are about one window."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from svcctl.dates.zones import named_zone
from svcctl.errors import IncompleteResult, UsageError
from svcctl.exports.export import Export, Order, Summary
from svcctl.exports.plan import plan
from svcctl.exports.record import ExportedFile, Record
from svcctl.exports.run import ExportRun, opened
from svcctl.exports.state import States
from svcctl.exports.windows import Window, WindowGrid
from svcctl.exports.workers.dispatch import Crew
from svcctl.exports.workers.fetch import Fetched, Task
from svcctl.exports.workers.queue import SPLIT_BYTES, Queue

SEED, RUNS = 1, 5
LENGTH = 10
WINDOWS = 160
START = 1_706_659_200


def export(folder: Path, first: int = 0, last: int = WINDOWS, name: str = "all.ndjson", **changes: Any) -> Export:
    order = Order("from x", f"{folder}/{name}", first * LENGTH, last * LENGTH, LENGTH, "https://events.example.com")
    return plan(replace(order, **changes), {})


def rows(window: Window) -> bytes:
    """An event a second, but none in every third window."""
    return b"".join(b"%d\n" % second for second in range(window.start, window.end) if second // LENGTH % 3)


class Service:
    """Fetches windows from memory: all but those that are broken, and none that is longer than `longest`."""

    def __init__(self, export: Export, broken: Collection[int] = (), longest: int = 3600) -> None:
        self.asked: list[Window] = []
        self._export = export
        self._broken = broken
        self._longest = longest

    def __call__(self, task: Task) -> Fetched:
        window = task.window
        self.asked.append(window)
        if window.end - window.start > self._longest:
            raise IncompleteResult("the range is too long")
        if any(second // LENGTH in self._broken for second in range(window.start, window.end)):
            raise IncompleteResult("a window is broken")
        data = rows(window)
        if data:
            with self._export.storage.create(task.path, overwrite=True) as sink:
                sink.write(data)
                sink.complete()
        digest = hashlib.sha256(data).hexdigest()
        entry = ExportedFile(
            window.start, window.end, task.path if data else "", data.count(b"\n"), len(data), digest, 1
        )
        return Fetched((entry,), "", 0.0, 1)


def run(export: Export, service: Service, *, stops: bool = True) -> Summary:
    with ThreadPoolExecutor(2) as pool, opened(export) as record:
        crew = Crew(service, pool, 2, threading.Event())
        return ExportRun(record, crew, lambda windows, of, fetched: None, stops=stops)()


def whole(first: int = 0, last: int = WINDOWS) -> bytes:
    return rows(Window(first * LENGTH, last * LENGTH))


def test_short_windows_are_asked_for_together_and_the_file_is_the_same(tmp_path: Path) -> None:
    asked = export(tmp_path)
    service = Service(asked)
    summary = run(asked, service)
    assert (tmp_path / "all.ndjson").read_bytes() == whole()
    assert len(service.asked) <= WINDOWS * 3 / 4
    assert sum(map(WindowGrid(LENGTH).count, service.asked)) == WINDOWS
    assert (summary.windows, summary.fetched, summary.rows) == (WINDOWS, WINDOWS, whole().count(b"\n"))
    again = Service(asked)
    assert run(asked, again).idle
    assert again.asked == []


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "all.csv", "zone": named_zone("Europe/Madrid")},
        {"name": "{start:%H%M%S}.ndjson"},
        {"name": "{start:%H%M%S}.parquet", "start": START, "end": START + 3600},
        {"name": "{start:%H%M%S}.csv", "start": START, "end": START + 3600, "query": "from x select a"},
    ],
    ids=["a zone", "files of windows before 2001", "parquet", "no dates"],
)
def test_windows_whose_bytes_depend_on_how_they_are_cut_are_asked_for_one_by_one(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert not export(tmp_path, **changes).joins_windows


def test_a_window_that_cannot_be_had_is_a_gap_by_itself(tmp_path: Path) -> None:
    asked = export(tmp_path)
    summary = run(asked, Service(asked, broken={50, 131}), stops=False)
    assert [window.start // LENGTH for window, _ in summary.gaps] == [50, 131]
    healthy = Service(asked)
    assert run(asked, healthy).fetched == 2
    assert [window.start // LENGTH for window in healthy.asked] == [50, 131]
    assert (tmp_path / "all.ndjson").read_bytes() == whole()


def test_a_service_that_answers_short_ranges_only_is_asked_for_those(tmp_path: Path) -> None:
    asked = export(tmp_path)
    assert run(asked, Service(asked, longest=LENGTH)).gaps == ()
    assert (tmp_path / "all.ndjson").read_bytes() == whole()


def test_a_request_takes_more_windows_while_it_is_quick_and_few_of_those_that_are_left(tmp_path: Path) -> None:
    asked = export(tmp_path)

    def fetched(seconds: float) -> Fetched:
        return Fetched((ExportedFile(0, LENGTH, "part", 1, 1, "", 1),), "", seconds, 1)

    for seconds, expected in ((0.1, 2), (0.6, 1), (3.0, 1)):
        queue = Queue(asked.tasks().values(), 2, asked.joined)
        queue.learn(queue.next(), fetched(seconds))
        assert len(queue.next()) == expected, seconds
    queue = Queue(asked.tasks().values(), 2, asked.joined)
    counts = []
    while some := queue.next():
        queue.learn(some, fetched(0.0))
        counts.append(len(some))
    assert (counts[:5], max(counts), sum(counts)) == ([1, 2, 4, 8, 9], 9, WINDOWS)


@pytest.mark.parametrize("date_format", [None, "iso"])
def test_windows_whose_dates_have_other_offsets_are_not_split_from_one_answer(
    tmp_path: Path, date_format: str | None
) -> None:
    change = 1_711_846_800
    """2024-03-31 01:00 UTC, when the clocks of Madrid change."""
    asked = export(
        tmp_path,
        name="{start:%H%M%S}.csv",
        zone=named_zone("Europe/Madrid"),
        date_format=date_format,
        start=change - 80 * LENGTH,
        end=change + 80 * LENGTH,
    )
    assert asked.joins_windows
    queue = Queue(asked.tasks().values(), 2, asked.joined)
    ends = []
    while some := queue.next():
        ends.append(some[-1].window.end)
        assert {task.spans()[0] for task in some} == {task.window for task in some}
        assert queue.joined(some).spans() == (Window(some[0].window.start, some[-1].window.end),)
        queue.learn(some, Fetched((ExportedFile(0, LENGTH, "part", 1, 1, "", 1),), "", 0.0, 1))
    assert change in ends
    assert len(ends) < WINDOWS / 2


def test_an_answer_that_is_held_until_its_end_is_kept_small(tmp_path: Path) -> None:
    asked = export(tmp_path, name="{start:%H%M%S}.ndjson", start=START, end=START + WINDOWS * LENGTH)
    for received, expected in ((SPLIT_BYTES // 2, 2), (SPLIT_BYTES, 1), (2 * SPLIT_BYTES, 1)):
        queue = Queue(asked.tasks().values(), 2, asked.joined)
        queue.learn(queue.next(), Fetched((ExportedFile(0, LENGTH, "part", 1, 1, "", 1),), "", 0.0, 1, received))
        assert len(queue.next()) == expected, received


def test_runs_that_end_anywhere_and_have_other_ranges_make_the_same_file(tmp_path: Path) -> None:
    random = Random(SEED)
    for number in range(RUNS):
        folder = tmp_path / str(number)
        for _ in range(random.randrange(4)):
            first, last = sorted(random.sample(range(WINDOWS + 1), 2))
            asked = export(folder, first, last, overwrite=False)
            broken = set(random.sample(range(WINDOWS), random.choice((0, 2, 120))))
            with suppress(IncompleteResult, UsageError):  # a window is broken, or the file is that of another range
                run(asked, Service(asked, broken), stops=random.random() < 0.5)
        asked = export(folder, overwrite=(folder / "all.ndjson").exists())
        assert run(asked, Service(asked)).gaps == ()
        assert (folder / "all.ndjson").read_bytes() == whole(), f"run {number}"
        record = Record.find(f"{folder}/all.ndjson", States(tmp_path), {})
        assert (record.gaps(), record.holdings()[0]) == ([], [*record.merged])
