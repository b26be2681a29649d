"""Reconcile: events that arrive late come into the files, with faults and kills, and nothing else is fetched."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from support.exports import START, WINDOW, WINDOWS, Exports, contents, left
from support.shells import Shell

from svcctl.api import own_service
from svcctl.api.client import Client
from svcctl.api.loads import LoadOptions
from svcctl.errors import IncompleteResult, SvcctlError, Unavailable
from svcctl.exports.export import Export
from svcctl.exports.reconcile import Reconcile, WindowDifference, export_of
from svcctl.exports.record import ExportedFile, Record
from svcctl.exports.run import locked
from svcctl.exports.state import States
from svcctl.exports.verify import damage
from svcctl.exports.windows import Window
from svcctl.exports.workers.dispatch import Crew
from svcctl.exports.workers.fetch import Progress, fetch
from svcctl.exports.workers.pace import Pace
from svcctl.storage import Sink
from svcctl.storage.local import LocalStorage

NAMES = ("all.csv", "all.csv.gz", "all.ndjson", "all.parquet", "{start:%H%M}.csv", "{from:%H%M}.tsv.gz")
GROUPED = " group every 10m by n % 3 as kind select count() as c"
QUICK = ("503", "cut", "reset", "error in stream")


class Killed(BaseException):
    """The end of a process, as far as one of its threads can tell."""


class Mortal(LocalStorage):
    """Files of a process that is killed as it completes one of them, before or after."""

    def __init__(self, lives: int, *, after: bool) -> None:
        super().__init__()
        self._lives = lives
        self._after = after

    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        if self._lives < 0:
            raise Killed
        sink = super().create(name, overwrite=overwrite, part_of=part_of)
        complete = sink.complete

        def die() -> None:
            self._lives -= 1
            if self._lives >= 0 or self._after:
                complete()
            if self._lives < 0:
                raise Killed

        sink.complete = die  # type: ignore[method-assign]
        return sink


@dataclass
class Late:
    """An export of a table, and the events that arrive in it after that."""

    exports: Exports
    client: Client
    table: str
    name: str
    query: str = ""
    number: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def target(self) -> str:
        return f"{self.exports.folder}/{self.name}"

    def arrive(self, *windows: int) -> None:
        """Load an event into each of these windows."""
        lines = []
        for window in windows:
            self.number += 1
            at = START + window * WINDOW + self.number * 7 % WINDOW
            lines.append(json.dumps({"eventdate": at * 1000, "n": self.number}) + "\n")
        file = self.exports.folder.parent / f"{self.table}.ndjson"
        file.write_text("".join(lines))
        options = LoadOptions(time_field="eventdate", format="ndjson")
        own_service.load(self.client, [(str(file), file.name)], self.table, options)
        self.exports.proxy.forget()

    def export(self, folder: Path | None = None) -> None:
        exports = self.exports if folder is None else replace(self.exports, folder=folder)
        assert exports(self.name, query=f"from {self.table}{self.query}").gaps == ()

    def reconcile(self, storage: LocalStorage | None = None, **options: Any) -> tuple[list[WindowDifference], bool]:
        """What differed, and whether all windows were fetched; the requests are kept in `asked`."""
        deep, end = options.pop("deep", False), options.pop("end", START + WINDOW * WINDOWS)
        self.exports.proxy.asked.clear()
        record = Record.find(self.target, States(self.exports.folder / "states"), {})
        export: Export = export_of(record, {}, 0)
        export = export if storage is None else replace(export, storage=storage)
        stopping = threading.Event()
        with (
            Client(self.exports.proxy.url, self.exports.signature, retries=0) as client,
            ThreadPoolExecutor(2) as pool,
            locked(record.storage, record.target),
        ):
            work = partial(
                fetch,
                client=client,
                storage=export.storage,
                pace=Pace(),
                progress=Progress(),
                stopping=stopping,
                delay=lambda failures: 0.0,
            )
            run = Reconcile(export, Crew(work, pool, 2, stopping), list[str]().append, **options)
            try:
                gaps = run(0, end, client, deep=deep)
            finally:
                self.asked = [json.loads(body) for body in self.exports.proxy.asked]
        return run.differences, not gaps

    def fetched(self) -> set[Window]:
        """The windows that the last reconcile has asked for, without the counts."""
        return {Window(body["from"], body["to"]) for body in self.asked if "count() as n" not in body["query"]}

    def is_equal(self, folder: Path) -> bool:
        """Whether the files are those of a new export, and as the record says."""
        folder.mkdir(parents=True, exist_ok=True)
        self.export(folder)
        record = Record.find(self.target, States(self.exports.folder / "states"), {})
        return contents(self.exports.folder) == contents(folder) and list(damage(record)) == []


@pytest.fixture
def late(exports: Exports, events: Shell, tmp_path: Path) -> Iterator[Late]:
    service = str(events.home / "data" / "service.sock")
    table = f"late.t{uuid4().hex}"
    (tmp_path / "out").mkdir()
    with Client("http://localhost", exports.signature, socket=service) as client:
        yield Late(replace(exports, folder=tmp_path / "out"), client, table, "all.csv")


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_replaced_keep_their_permissions(late: Late, name: str) -> None:
    late.name = name
    late.arrive(*range(WINDOWS))
    late.export()
    files = [late.exports.folder / file for file in left(late.exports.folder)]
    for file in files:
        file.chmod(0o640)
    late.arrive(2, 4)
    assert len(late.reconcile()[0]) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o640}


@pytest.mark.parametrize("name", NAMES)
def test_only_the_windows_that_differ_are_fetched_again(late: Late, tmp_path: Path, name: str) -> None:
    late.name = name
    late.arrive(*range(WINDOWS))
    late.export()
    assert late.reconcile() == ([], True)
    assert len(late.asked) == 1
    late.arrive(2, 2, 4)
    changed = {Window(START + at * WINDOW, START + (at + 1) * WINDOW) for at in (2, 4)}
    dry, _ = late.reconcile(dry=True)
    assert [(one.entry.window, one.entry.rows, one.rows) for one in dry] == [
        (window, 1, now) for window, now in zip(sorted(changed), (3, 2), strict=True)
    ]
    assert late.fetched() == set()
    differences, _ = late.reconcile()
    assert {(one.entry.window, one.rows) for one in differences} == {(one.entry.window, one.rows) for one in dry}
    if not name.endswith("parquet"):  # which is fetched whole
        assert late.fetched() == changed
    assert late.reconcile()[0] == []
    assert late.is_equal(tmp_path / "new")
    late.arrive(4)
    assert [one.times for one in late.reconcile()[0]] == [2]


def test_thirty_days_of_hours_without_a_change_take_one_request(late: Late) -> None:
    late.name, hours = "{start:%FT%H}.csv", range(0, 30 * 24, 7)
    late.arrive(*(6 * hour for hour in hours))
    end = START + 30 * 24 * 3600
    export = late.exports.export(late.name, query=f"from {late.table}", end=end, window=3600)
    entries = {
        window: ExportedFile(
            window.start, window.end, late.exports.folder.name, (window.start - START) // 3600 in hours, 0, "", 1
        )
        for window in export.windows
    }
    Record(export.storage, export.target, export.identity, "", entries, ranges=((START, end),)).save()
    assert late.reconcile(end=end) == ([], True)
    assert (len(entries), len(late.asked)) == (720, 1)
    late.arrive(6 * 7)
    assert [one.rows for one in late.reconcile(end=end, dry=True)[0]] == [2]


def breaks(random: Random, share: float, body: bytes) -> str | None:
    """A fault for a share of the answers."""
    return random.choice(QUICK) if random.random() < share else None


def late_events(late: Late, seed: int, folder: Path) -> None:
    """Exports, late events, and reconciles with faults and kills, until one is whole."""
    random = Random(seed)
    late.name = random.choice(NAMES)
    late.query = random.choice(("", "", " where n > 2", GROUPED if late.name.endswith("csv") else ""))
    late.arrive(*(random.randrange(WINDOWS) for _ in range(8)), *range(WINDOWS))
    late.export()
    for _ in range(random.choice((1, 2))):
        windows = [random.randrange(WINDOWS) for _ in range(random.choice((0, 1, 3)))]
        if windows:
            late.arrive(*windows)
        touched = {Window(START + at * WINDOW, START + (at + 1) * WINDOW) for at in windows}
        for attempt in range(8):
            faulty = attempt < random.choice((0, 2, 5))
            share = 0.4 if faulty else 0.0
            late.exports.proxy.choose = partial(breaks, random, share)
            storage = Mortal(random.randrange(6), after=random.random() < 0.5) if faulty else None
            try:
                _, whole = late.reconcile(storage)
            except (Killed, Unavailable, IncompleteResult):
                whole = False
            except SvcctlError:
                assert faulty, f"seed {seed}"
                whole = False
            if late.query != GROUPED and not late.name.endswith("parquet"):
                unneeded = [one for one in late.fetched() if not any(window in one for window in touched)]
                assert unneeded == [], f"seed {seed}: not only what changed was fetched"
            if whole:
                break
        assert whole, f"seed {seed}"
        late.exports.proxy.choose = lambda body: None
        assert late.is_equal(folder / f"new{late.number}"), f"seed {seed}"


@pytest.mark.parametrize("seed", [0])
def test_after_reconcile_the_files_equal_the_service(late: Late, tmp_path: Path, seed: int) -> None:
    late_events(late, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1000 + int(os.environ.get("SVCCTL_TEST_SEEDS", "20"))))
def test_after_reconcile_the_files_equal_the_service_however_often(late: Late, tmp_path: Path, seed: int) -> None:
    late_events(late, seed, tmp_path)


def test_windows_with_fewer_rows_stay_unless_that_is_allowed(late: Late) -> None:
    late.name = "{start:%H%M}.csv"
    late.arrive(*range(WINDOWS), 3)
    late.export()
    own_service.drop(late.client, late.table)
    late.number = 0
    late.arrive(*range(WINDOWS))
    before = contents(late.exports.folder)
    for deep in (False, True):
        differences, _ = late.reconcile(deep=deep)
        assert [(one.rows, one.fewer) for one in differences if one.entry.rows == 2] == [(1, True)]
        assert contents(late.exports.folder)["0030.csv"] == before["0030.csv"]
    assert [one.fewer for one in late.reconcile(fewer=True)[0]] == [False]
    assert late.reconcile()[0] == []
