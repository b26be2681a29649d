"""Runs: against the real service, through a proxy that breaks answers; what they leave is whole, or not there."""

from __future__ import annotations

import gzip
import json
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from support.exports import START, WINDOW, Exports, left
from support.scripted import Serve, http
from support.shells import Shell

from svcctl.errors import (
    CredentialsError,
    IncompleteResult,
    InternalError,
    Locked,
    SvcctlError,
    Unavailable,
    UsageError,
)
from svcctl.exports.export import Summary
from svcctl.exports.record import Record
from svcctl.exports.state import States
from svcctl.exports.verify import damage
from svcctl.exports.workers.dispatch import WINDOWS_PER_WORKER
from svcctl.exports.workers.fetch import Stopped
from svcctl.storage import GrowingObject, Sink
from svcctl.storage.local import LocalStorage

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a window that broke": (
        "window 2024-01-31 00:50:00 to 2024-01-31 01:00:00 UTC: the result is incomplete: the "
        "connection broke in the middle"
    ),
    "another export": "{folder}/all.csv belongs to another export: another query and another window (10m)",
    "a run that goes on": "another run of the export to {folder}/all.csv is going on",
    "a part that changes": "the part of window 2024-01-31 00:00:00 to 2024-01-31 00:10:00 UTC changed while it was "
    "read",
    "other columns": (
        "window 2024-01-31 00:10:00 to 2024-01-31 00:20:00 UTC: the columns differ from those of the other windows: a,c"
    ),
    "a file that holds more": "{file} already exists and holds {held}",
}


def query(shell: Shell, format: str) -> bytes:
    """What one query of the whole range prints."""
    done = shell("query", "from exported.events", "--from", str(START), "--to", "1h", "-f", format)
    assert done.returncode == 0, done.stderr
    return done.stdout.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("format", ["csv", "tsv", "ndjson"])
def test_the_merged_file_is_what_one_query_prints(exports: Exports, events: Shell, format: str) -> None:
    summary = exports(f"all.{format}")
    expected = query(events, format)
    assert (exports.folder / f"all.{format}").read_bytes() == expected
    assert (summary.rows, summary.bytes, summary.windows, summary.fetched) == (500, len(expected), 6, 6)
    assert (summary.gaps, summary.until) == ((), START + 3600)


def test_what_is_compressed_is_the_same(exports: Exports, events: Shell) -> None:
    exports("all.csv.gz")
    exports("all.ndjson.zst")
    import zstandard

    assert gzip.decompress((exports.folder / "all.csv.gz").read_bytes()) == query(events, "csv")
    with (exports.folder / "all.ndjson.zst").open("rb") as file:
        unpacked = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    assert unpacked == query(events, "ndjson")


def test_parquet_has_the_rows_and_types_of_the_csv(exports: Exports) -> None:
    import duckdb

    exports("all.csv")
    exports("all.parquet")
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        folder = exports.folder
        columns = database.execute(f"DESCRIBE SELECT * FROM '{folder}/all.parquet'").fetchall()
        assert [(name, kind) for name, kind, *_ in columns] == [
            ("eventdate", "TIMESTAMP WITH TIME ZONE"),
            ("n", "BIGINT"),
            ("name", "VARCHAR"),
            ("x", "DOUBLE"),
            ("ok", "BOOLEAN"),
        ]
        of_parquet = f"SELECT eventdate::TIMESTAMP, n, name, x, ok FROM '{folder}/all.parquet'"
        types = "{'eventdate': 'TIMESTAMP', 'n': 'BIGINT', 'name': 'VARCHAR', 'x': 'DOUBLE', 'ok': 'BOOLEAN'}"
        of_csv = (
            f"SELECT * FROM read_csv('{folder}/all.csv', columns = {types}, header = true, nullstr = '',"
            " allow_quoted_nulls = false)"
        )
        there, here = database.execute(of_parquet).fetchall(), database.execute(of_csv).fetchall()
        assert len(there) == 500
        assert there == here


def test_a_pattern_makes_a_file_for_each_window_with_a_heading_even_where_there_are_no_events(exports: Exports) -> None:
    exports("day/{start:%H%M}.csv")
    assert left(exports.folder) == ["day", *(f"day/00{ten}0.csv" for ten in range(6))]
    assert (exports.folder / "day/0020.csv").read_text() == "eventdate,n,name,x,ok\n"
    texts = [(exports.folder / f"day/00{ten}0.csv").read_text().split("\n")[0] for ten in range(6)]
    assert set(texts) == {"eventdate,n,name,x,ok"}


def test_a_second_run_asks_for_nothing(exports: Exports) -> None:
    for name in ("all.csv", "day/{start:%H%M}.csv"):
        exports(name)
        before = exports.windows_asked()
        again = exports(name)
        assert (again.rows, again.fetched, exports.windows_asked()) == (500, 0, before)


def test_the_parts_are_gone_when_the_file_is_there(exports: Exports) -> None:
    exports("all.csv")
    assert sorted(path.name for path in (exports.folder / ".all.csv.export").iterdir()) == ["record.json"]


def broken(*starts: int, fault: str = "cut") -> Callable[[bytes], str | None]:
    """Chooses a fault for the windows that start so many seconds after START."""
    wanted = {START + start for start in starts}
    return lambda body: fault if json.loads(body or b"{}").get("from") in wanted else None


def test_a_run_that_fails_leaves_nothing_and_the_next_one_asks_only_for_what_is_missing(
    exports: Exports, events: Shell
) -> None:
    exports.proxy.choose = broken(3000)
    with pytest.raises(IncompleteResult) as caught:
        exports("all.csv", workers=1)
    assert caught.value.message == WORDS["a window that broke"]
    assert left(exports.folder) == []
    exports.proxy.choose = lambda body: None
    asked = exports.windows_asked()
    summary = exports("all.csv", workers=1)
    assert (summary.fetched, exports.windows_asked() - asked) == (1, 1)
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


def test_keeping_going_names_the_gaps_and_publishes_no_file_with_one(exports: Exports) -> None:
    exports.proxy.choose = broken(600, 2400)
    summary = exports("all.csv", stops=False)
    assert [str(window) for window, _ in summary.gaps] == [
        "2024-01-31 00:10:00 to 2024-01-31 00:20:00 UTC",
        "2024-01-31 00:40:00 to 2024-01-31 00:50:00 UTC",
    ]
    assert (summary.until, left(exports.folder)) == (START, [])


def test_a_window_is_asked_for_again_as_often_as_is_allowed(exports: Exports, events: Shell) -> None:
    failures = {START + 600: 2}

    def choose(body: bytes) -> str | None:
        start = json.loads(body)["from"]
        failures[start] = failures.get(start, 0) - 1
        return "503" if failures[start] >= 0 else None

    exports.proxy.choose = choose
    exports("all.csv", retries=2)
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")
    assert exports.progress.retries == 2


def test_a_refusal_is_not_asked_again(exports: Exports) -> None:
    with pytest.raises(SvcctlError) as caught:
        exports("all.csv", query="from exported.nothing", retries=5, workers=1)
    assert "no table 'exported.nothing'" in caught.value.message
    assert set(exports.proxy.asked.values()) == {1}


def test_a_file_that_is_not_ours_is_not_overwritten(exports: Exports) -> None:
    for name, path in (("all.csv", "all.csv"), ("day/{start:%H%M}.csv", "day/0030.csv")):
        file = exports.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
        with pytest.raises(UsageError) as caught:
            exports(name)
        assert (caught.value.message, file.read_text()) == (f"{file} already exists", "mine")
        exports(name, overwrite=True)
        assert file.read_text().startswith("eventdate,n,name,x,ok\n")


def test_the_record_of_another_export_is_refused(exports: Exports) -> None:
    exports("all.csv")
    with pytest.raises(UsageError) as caught:
        exports("all.csv", query="from exported.events where ok", window=300)
    assert caught.value.message == WORDS["another export"].format(folder=exports.folder)


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"version": 1}'])
def test_a_damaged_record_is_refused_and_force_begins_anew(exports: Exports, events: Shell, damage: str) -> None:
    exports("all.csv")
    record = exports.folder / ".all.csv.export" / "record.json"
    record.write_text(damage)
    with pytest.raises(UsageError) as caught:
        exports("all.csv")
    assert str(record) in caught.value.message
    exports("all.csv", overwrite=True)
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


def test_damaged_files_are_fetched_again(exports: Exports, events: Shell) -> None:
    exports("day/{start:%H%M}.csv")
    file = exports.folder / "day" / "0010.csv"
    good = file.read_bytes()
    for bad in (good[:-1], good.replace(b"1", b"2")):
        file.write_bytes(bad)
        assert exports("day/{start:%H%M}.csv").fetched == 1
        assert file.read_bytes() == good
    file.unlink()
    assert exports("day/{start:%H%M}.csv").fetched == 1
    assert file.read_bytes() == good


def test_damaged_parts_are_fetched_again_before_they_are_merged(exports: Exports, events: Shell) -> None:
    exports.proxy.choose = broken(0)
    exports("all.csv", stops=False)
    exports.proxy.choose = lambda body: None
    part = min((exports.folder / ".all.csv.export").glob("2*.csv"))
    part.write_bytes(part.read_bytes().replace(b"1", b"2"))
    assert exports("all.csv").fetched == 2
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


@pytest.mark.parametrize("name", ["all.csv", "all.ndjson", "all.csv.gz"])
def test_a_merged_file_that_was_damaged_while_it_grew_is_resumed_before_the_damage(exports: Exports, name: str) -> None:
    exports(f"whole/{name}")
    whole = (exports.folder / "whole" / name).read_bytes()
    exports.proxy.choose = broken(3000)
    with pytest.raises(IncompleteResult):
        exports(name, workers=1)
    exports.proxy.choose = lambda body: None
    growing = exports.folder / f".{name}.export" / "merged.part"
    written = growing.read_bytes()
    assert whole.startswith(written)
    growing.write_bytes(written[:-1] + b"?")
    assert exports(name).fetched == 2
    assert (exports.folder / name).read_bytes() == whole


@pytest.mark.parametrize(
    ("damage", "fetched"),
    [
        (lambda data: data + b"the beginning of a window", 1),
        (lambda data: data[:-1], 2),
        (lambda data: b"?" + data[1:], 5),
        (lambda data: b"", 5),
    ],
)
def test_what_a_killed_run_or_a_failing_machine_leaves_of_the_merged_file_is_checked(
    exports: Exports, events: Shell, damage: Callable[[bytes], bytes], fetched: int
) -> None:
    exports.proxy.choose = broken(3000)
    with pytest.raises(IncompleteResult):
        exports("all.csv", workers=1)
    exports.proxy.choose = lambda body: None
    growing = exports.folder / ".all.csv.export" / "merged.part"
    growing.write_bytes(damage(growing.read_bytes()))
    assert exports("all.csv").fetched == fetched
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


def test_a_merged_file_that_has_begun_elsewhere_is_taken_apart(exports: Exports) -> None:
    exports.proxy.choose = broken(3000)
    with pytest.raises(IncompleteResult):
        exports("all.csv", workers=1)
    exports.proxy.choose = lambda body: None
    asked = exports.windows_asked()
    summary = exports("all.csv", start=START + WINDOW)
    assert (summary.fetched, exports.windows_asked() - asked) == (1, 1)
    exports("other.csv", start=START + WINDOW)
    assert (exports.folder / "all.csv").read_bytes() == (exports.folder / "other.csv").read_bytes()


def test_a_second_run_at_the_same_time_is_kept_out(exports: Exports) -> None:
    began, go_on = threading.Event(), threading.Event()

    def choose(body: bytes) -> str | None:
        began.set()
        go_on.wait(30)
        return None

    exports.proxy.choose = choose
    first = threading.Thread(target=exports, args=("all.csv",))
    first.start()
    began.wait(30)
    try:
        with pytest.raises(Locked) as caught:
            exports("all.csv")
    finally:
        go_on.set()
        first.join()
    assert caught.value.message == WORDS["a run that goes on"].format(folder=exports.folder)
    assert left(exports.folder) == ["all.csv"]


@pytest.mark.timeout(30)
def test_a_damaged_part_does_not_hold_up_the_windows_behind_it(exports: Exports, events: Shell) -> None:
    exports.proxy.choose = broken(0, 1800, 2400)
    exports("all.csv", workers=1, stops=False)
    exports.proxy.choose = lambda body: None
    part = min((exports.folder / ".all.csv.export").glob("2*.csv"))
    part.write_bytes(part.read_bytes().replace(b"1", b"2"))
    exports("all.csv", workers=1)
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


class Rotten(LocalStorage):
    """A disk that reads other bytes than were written."""

    def read(self, name: str) -> Iterator[bytes]:
        for piece in super().read(name):
            yield piece if "json" in name else piece.replace(b"1", b"2")


@pytest.mark.timeout(30)
def test_a_disk_that_reads_wrong_bytes_is_an_error(exports: Exports) -> None:
    with pytest.raises(IncompleteResult) as caught:
        exports.run(replace(exports.export("all.csv"), storage=Rotten()))
    assert caught.value.message == WORDS["a part that changes"]
    assert left(exports.folder) == []


def test_a_range_without_windows_leaves_nothing(exports: Exports) -> None:
    summary = exports("all.csv", end=START)
    assert summary == Summary(0, 0, 0, 0, (), START)
    assert list(exports.folder.iterdir()) == []


class Killed(BaseException):
    """The end of a process, as far as one of its threads can tell."""


class Deadly(LocalStorage):
    """Files during whose completion the process is killed: before the name is there, or after."""

    def __init__(self, *, after: bool) -> None:
        super().__init__()
        self.after = after

    def grow(self, name: str, part: str, *, overwrite: bool) -> GrowingObject | None:
        sink = super().grow(name, part, overwrite=overwrite)
        assert sink is not None
        complete = sink.complete

        def die() -> None:
            if self.after:
                complete()
            raise Killed

        sink.complete = die  # type: ignore[method-assign]
        return sink


@pytest.mark.parametrize("distant", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_merged_file_of_the_same_size_is_not_taken_for_the_new_one(
    exports: Exports, serve: Serve, distant: bool, after: bool
) -> None:
    def answer(value: str) -> bytes:
        return http("200 OK", f"a\n{value}\n", "Content-Type: text/csv")

    exports.url = serve(answer("2"), answer("3")).url
    file = exports.folder / "all.csv"
    exports("all.csv", start=START - 1, end=START + WINDOW, workers=1)
    assert file.read_text() == "a\n2\n3\n"
    exports.url = serve(answer("5"), answer("6")).url
    export = replace(exports.export("all.csv", start=START - 2, end=START + WINDOW), distant=distant)
    with pytest.raises(Killed):
        exports.run(replace(export, storage=Deadly(after=after)), workers=1)
    summary = exports.run(export)
    assert (summary.fetched, file.read_text()) == (0, "a\n5\n6\n")
    assert sorted(path.name for path in (exports.folder / ".all.csv.export").iterdir()) == ["record.json"]


def test_the_windows_of_a_file_share_their_columns_and_other_files_may_have_others(
    exports: Exports, serve: Serve
) -> None:
    old = http("200 OK", "a,b\n1,2\n", "Content-Type: text/csv")
    new = http("200 OK", "a,c\n1,3\n", "Content-Type: text/csv")
    exports.url = serve(old, new).url
    with pytest.raises(IncompleteResult) as caught:
        exports("all.csv", workers=1, end=START + 2 * WINDOW)
    assert caught.value.message == WORDS["other columns"]
    name = "{start:%H%M}.csv"
    exports.url = serve(old, new, new).url
    exports(name, end=START + WINDOW)
    exports(name, start=START + WINDOW, end=START + 3 * WINDOW)
    assert exports.changes == [("a,b", "a,c")]
    texts = [(exports.folder / f"00{ten}0.csv").read_text() for ten in range(3)]
    assert texts == ["a,b\n1,2\n", "a,c\n1,3\n", "a,c\n1,3\n"]
    assert exports(name, end=START + 3 * WINDOW).fetched == 0


def test_columns_that_change_between_the_files_of_one_run_are_told_once_in_the_order_of_time(
    exports: Exports, serve: Serve
) -> None:
    old, new = (http("200 OK", text, "Content-Type: text/csv") for text in ("a,b\n1,2\n", "a,c\n1,3\n"))
    failed = http("400 No", '{"msg":"no","status":400}')
    name = "{start:%H%M}.csv"
    exports.url = serve(old, new, old, new, new).url
    assert exports(name, workers=1, end=START + 4 * WINDOW).fetched == 4
    assert exports.changes == [("a,b", "a,c")]
    texts = [(exports.folder / f"00{ten}0.csv").read_text() for ten in range(4)]
    assert texts == ["a,b\n1,2\n", "a,c\n1,3\n", "a,b\n1,2\n", "a,c\n1,3\n"]
    exports(name, start=START + 4 * WINDOW, end=START + 5 * WINDOW)
    assert exports.changes == []
    exports.url = serve(old, failed).url
    with pytest.raises(SvcctlError):
        exports(name, workers=1, start=START + 5 * WINDOW, end=START + 7 * WINDOW)
    assert exports.changes == [("a,c", "a,b")]


def test_a_part_with_other_columns_is_never_merged(exports: Exports, serve: Serve) -> None:
    old = http("200 OK", "a,b\n1,2\n", "Content-Type: text/csv")
    new = http("200 OK", "a,c\n1,3\n", "Content-Type: text/csv")
    failed = http("400 No", '{"msg":"no","status":400}')
    name = "{from:%H%M}.csv"
    exports.url = serve(old, failed, new).url
    with pytest.raises(SvcctlError):
        exports(name, workers=1, end=START + 2 * WINDOW)
    exports(name, start=START + 2 * WINDOW, end=START + 3 * WINDOW)
    exports.url = serve(new).url
    assert exports(name, workers=1, end=START + 2 * WINDOW).fetched == 2
    assert (exports.folder / "0000.csv").read_text() == "a,c\n1,3\n1,3\n"


def test_a_file_is_replaced_by_one_of_more_time_and_never_by_one_of_less(exports: Exports, events: Shell) -> None:
    def run(start: int, end: int) -> Summary:
        return exports("all.csv", window=3600, start=START + start, end=START + end)

    run(0, 1500)
    run(0, 3000)
    file = exports.folder / "all.csv"
    content = file.read_bytes()
    for start, end in ((0, 1500), (1500, 3600), (3000, 3600)):
        with pytest.raises(UsageError) as caught:
            run(start, end)
        held = "2024-01-31 00:00:00 to 2024-01-31 00:50:00 UTC"
        assert (caught.value.message, file.read_bytes()) == (
            WORDS["a file that holds more"].format(file=file, held=held),
            content,
        )
    assert run(0, 3000).fetched == 0
    run(0, 3600)
    assert file.read_bytes() == query(events, "csv")


def test_a_file_of_a_pattern_has_all_of_its_window_wherever_a_run_begins_or_ends(
    exports: Exports, events: Shell
) -> None:
    def run(start: int, end: int) -> tuple[int, tuple[str, ...]]:
        summary = exports("{start:%H}.csv", window=3600, start=START + start, end=START + end)
        return summary.fetched, summary.replaced

    file = exports.folder / "00.csv"
    assert [run(10, 3000), run(0, 1500), run(1500, 3000), run(40, 3600)] == [(1, ()), (0, ()), (0, ()), (0, ())]
    assert file.read_bytes() == query(events, "csv")
    file.write_text("mine")
    assert run(0, 3600) == (1, (f"{file}, which had changed since its export",))
    assert file.read_bytes() == query(events, "csv")


def test_an_export_in_weeks_from_thursday_continues_with_them(exports: Exports) -> None:
    week, name = 7 * 86_400, "{start:%F}.csv"
    new = exports.export(name, window=week)
    identity = replace(new.identity, window_origin=0)
    before = replace(new, identity=identity, whole=identity.grid.around(START), windows=(identity.grid.around(START),))
    assert exports.run(before).files == (str(exports.folder / "2024-01-25.csv"),)
    exports.proxy.asked.clear()
    later = exports(name, window=week, end=START + week)
    assert (later.windows, later.fetched, later.rows) == (2, 1, 500)
    assert left(exports.folder) == ["2024-01-25.csv", "2024-02-01.csv"]
    assert exports.windows_asked() == 1


def test_windows_of_files_that_have_not_ended_are_left_out(exports: Exports) -> None:
    for settled, windows in ((1799, 2), (1800, 3), (599, 0)):
        export = exports.export("{start:%H%M}.csv", start=START + 5, end=START + 1700, settled=START + settled)
        assert [window.start for window in export.windows] == [START + 600 * number for number in range(windows)]
    assert not exports.export("{start:%H%M}.csv", start=START + 5, end=START + 5).windows


@pytest.mark.parametrize("force", [False, True])
def test_no_event_is_in_two_files_of_a_pattern_when_runs_begin_and_end_anywhere(
    exports: Exports, events: Shell, force: bool
) -> None:
    name = "{start:%H%M%S}.csv"

    def run(start: int, end: int, overwrite: bool = False) -> tuple[int, tuple[str, ...]]:
        summary = exports(name, start=START + start, end=START + end, overwrite=overwrite)
        return summary.fetched, summary.replaced

    assert run(605, 1200) == (1, ())
    assert run(665, 1200) == (0, ())  # a relative start has moved on
    assert run(1200, 1500) == (1, ())
    assert run(0, 3600, force) == (6 if force else 4, ())
    assert run(665, 1200, force) == (int(force), ())
    assert left(exports.folder) == [f"00{ten}000.csv" for ten in range(6)]
    rows = b"".join((exports.folder / file).read_bytes().partition(b"\n")[2] for file in left(exports.folder))
    assert rows == query(events, "csv").partition(b"\n")[2]
    record = Record.find(str(exports.folder / name), States(exports.folder / "states"), {})
    assert (len(record.files()), list(damage(record)), record.gaps()) == (6, [], [])


@pytest.mark.parametrize("noted", [True, False])
def test_a_killed_run_of_a_pattern_is_resumed_when_a_relative_start_has_moved_on(exports: Exports, noted: bool) -> None:
    name = "{start:%H%M}.csv"
    exports.proxy.choose = broken(600, 1200, 1800, 2400)
    with pytest.raises(IncompleteResult):
        exports(name, workers=1, start=START + 5, end=START + 3000)
    if not noted:  # as after kill -9
        record = Record.find(str(exports.folder / name), States(exports.folder / "states"), {})
        replace(record, entries={}).save()
    exports.proxy.choose = lambda body: None
    assert exports(name, start=START + 40, end=START + 3040).fetched == 6 - noted
    record = Record.find(str(exports.folder / name), States(exports.folder / "states"), {})
    assert (record.ranges, list(damage(record))) == (((START, START + 3600),), [])


@pytest.mark.parametrize("name", ["{from:%d}.csv", "{from:%d}/{start:%H%M}.csv", "{start:%d%H%M}.csv"])
def test_a_killed_run_of_another_day_leaves_nothing_that_the_next_one_misses(exports: Exports, name: str) -> None:
    exports.proxy.choose = broken(600)
    with pytest.raises(IncompleteResult):
        exports(name, workers=1)
    exports.proxy.choose = lambda body: None
    exports(name, start=START + 86_400, end=START + 86_400 + 1200)
    record = Record.find(str(exports.folder / name), States(exports.folder / "states"), {})
    assert (list(damage(record)), record.gaps()) == ([], [])
    exports(name)
    assert len(list(exports.folder.glob("**/.*.export/*"))) == 1


def test_a_file_that_appears_during_a_run_is_not_overwritten(exports: Exports) -> None:
    file = exports.folder / "all.csv"

    def choose(body: bytes) -> None:
        file.write_text("mine")

    exports.proxy.choose = choose
    with pytest.raises(UsageError) as caught:
        exports("all.csv")
    assert (caught.value.message, file.read_text()) == (f"{file} already exists", "mine")


def test_what_fails_every_window_ends_a_run_that_keeps_going(exports: Exports, serve: Serve) -> None:
    script = serve(http("401 No", '{"msg":"unknown key"}', "Content-Type: application/json"))
    exports.url = script.url
    with pytest.raises(CredentialsError):
        exports("all.csv", stops=False, workers=1)
    assert len(script.requests) <= WINDOWS_PER_WORKER


@pytest.mark.timeout(30)
def test_a_run_that_is_told_to_stop_stops(exports: Exports) -> None:
    stopping = threading.Event()

    def choose(body: bytes) -> None:
        stopping.set()

    exports.proxy.choose = choose
    with pytest.raises(Stopped):
        exports.run(exports.export("all.csv"), workers=1, stopping=stopping)
    assert left(exports.folder) == []


def test_targets_that_look_alike_have_records_of_their_own(exports: Exports) -> None:
    exports("{start:%H%M}.csv")
    file = exports.folder / "00:30.csv"
    file.write_text("mine")
    with pytest.raises(UsageError) as caught:
        exports("{start:%H:%M}.csv")
    assert (caught.value.message, file.read_text()) == (f"{file} already exists", "mine")


@pytest.mark.parametrize("name", ["out/{start:%H%M}.csv", "out/{from:%H%M}.csv"])
def test_the_record_of_a_state_forgets_the_oldest_files(exports: Exports, name: str) -> None:
    for number in range(5):
        start = START + number * WINDOW
        exports.run(replace(exports.export(name, start=start, end=start + WINDOW, state="s"), kept_windows=3))
    record = Record.find(str(exports.folder / name), States(exports.folder / "states"), {})
    assert [entry.window.start for entry in record.files()] == [START + number * WINDOW for number in range(1, 5)]
    assert (record.gaps(), list(damage(record))) == ([], [])
    assert len(left(exports.folder / "out")) == 5


def test_each_file_of_a_run_is_verified(exports: Exports) -> None:
    name = "{from:%H%M}.csv"
    for number in range(3):
        exports(name, start=START + number * WINDOW, end=START + (number + 1) * WINDOW)
    record = Record.find(str(exports.folder / name), States(exports.folder / "states"), {})
    assert list(damage(record)) == []
    first, second = exports.folder / "0000.csv", exports.folder / "0010.csv"
    first.write_text("mine")
    second.unlink()
    assert [lost.text for lost in damage(record)] == [f"{first} is damaged", f"{second} is missing"]


def test_a_run_that_is_refused_leaves_nothing(exports: Exports) -> None:
    (exports.folder / "all.csv").write_text("mine")
    with pytest.raises(UsageError):
        exports("all.csv")
    with pytest.raises(SvcctlError):
        exports("other.csv", query="from exported.nothing")
    assert [path.name for path in exports.folder.iterdir()] == ["all.csv"]
    assert exports("other.csv").rows == 500


@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz", "all.parquet"])
def test_a_file_is_whole_by_itself_whatever_a_killed_run_of_an_earlier_start_left(exports: Exports, name: str) -> None:
    exports.proxy.choose = broken(3000)
    with pytest.raises(IncompleteResult):
        exports(name, workers=1)
    exports.proxy.choose = lambda body: None
    folder = exports.folder / f".{name}.export"
    (folder / f"unnoted.{name.partition('.')[2]}").write_text("whole")
    (folder / "20240131T000000Z-20240131T001000Z.parquet.part").write_text("half")
    exports(name, start=START + 3)
    record = Record.find(str(exports.folder / name), States(exports.folder / "states"), {})
    assert (list(damage(record)), len(record.files())) == ([], 1)
    assert record.ranges == ((START + 3, START + WINDOW * 6),)
    assert [path.name for path in folder.iterdir()] == ["record.json"]


class Counting(LocalStorage):
    """A storage that counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def size(self, name: str) -> int | None:
        self.asked += 1
        return super().size(name)


@pytest.mark.slow
def test_the_sizes_on_a_server_come_from_one_listing(exports: Exports) -> None:
    name = "day/{start:%H%M%S}.csv"
    exports(name, window=60)
    storage = Counting()
    again = replace(exports.export(name, window=60), storage=storage, distant=True)
    assert (exports.run(again).fetched, storage.asked) == (0, 1)
    (exports.folder / "day" / "003000.csv").unlink()
    assert exports.run(again).fetched == 1


@pytest.mark.parametrize("fault", ["503", "500", "error in stream"])
def test_windows_that_fail_do_not_stop_the_others_and_the_next_run_fetches_only_those(
    exports: Exports, fault: str
) -> None:
    exports.proxy.choose = broken(0, 1200, 1800, 3000, fault=fault)
    assert exports("day/{start:%H%M}.csv", stops=False, workers=1).fetched == 2
    exports.proxy.choose = lambda body: None
    asked = exports.windows_asked()
    assert exports("day/{start:%H%M}.csv", stops=False).fetched == 4
    assert exports.windows_asked() - asked == 4


@pytest.mark.parametrize(
    ("faults", "kind"),
    [(["503"] * 5, Unavailable), (["503", "cut", *["503"] * 3], IncompleteResult), (["500"] * 5, InternalError)],
)
def test_five_windows_in_a_row_that_fail_end_a_run(
    exports: Exports, faults: list[str], kind: type[SvcctlError]
) -> None:
    row = iter([None, *faults])
    exports.proxy.choose = lambda body: next(row, "503")
    with pytest.raises(kind) as caught:
        exports("all.csv", stops=False, workers=1, window=300)
    assert "5 windows in a row" in caught.value.message


class Watched(LocalStorage):
    """Files whose permissions are noted while they are written, and when they have their names."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.modes: dict[str, int] = {}
        """The widest permissions of each file of an export's folder, and of each part."""

    def note(self) -> None:
        for path in self._folder.rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file():
                    name = path.name
                    self.modes[name] = self.modes.get(name, 0) | stat.S_IMODE(path.stat().st_mode)

    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        sink = super().create(name, overwrite=overwrite, part_of=part_of)
        self.note()
        return sink

    def read(self, name: str) -> Iterator[bytes]:
        self.note()
        return super().read(name)


@pytest.mark.parametrize("name", ["all.csv", "all.parquet", "all.ndjson.gz", "{start:%M}.csv", "{from:%H}.csv"])
def test_a_private_file_is_private_while_it_is_replaced_and_after(exports: Exports, name: str) -> None:
    exports(name)
    files = left(exports.folder)
    for file in files:
        (exports.folder / file).chmod(0o600)
    storage = Watched(exports.folder)
    exports.run(replace(exports.export(name, overwrite=True), storage=storage))
    storage.note()
    own = {"record.json", "record.json.part", "run.part"}  # these have no rows
    assert {name: oct(mode) for name, mode in storage.modes.items() if name not in own and mode & 0o077} == {}
    assert left(exports.folder) == files
    assert len(storage.modes) > len(files) + 1


@pytest.mark.parametrize("size", [247, 248, 250, 251, 255])
@pytest.mark.parametrize("pattern", ["", "{start:%M}", "{from:%M}"])
def test_the_files_of_an_export_may_have_the_longest_names(exports: Exports, pattern: str, size: int) -> None:
    stem = "n" * (size - (6 if pattern else 4))
    exports(f"{stem}{pattern}.csv")
    assert exports(f"{stem}{pattern}.csv").idle
    assert {len(name) for name in left(exports.folder)} == {size}


def test_exports_to_long_names_keep_their_records_apart(exports: Exports) -> None:
    for end in "ab":
        exports(f"{'n' * 250}{end}.csv")
    assert all(exports(f"{'n' * 250}{end}.csv").idle for end in "ab")
