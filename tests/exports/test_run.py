"""Runs: against the real service, through a proxy that breaks answers; what they leave is whole, or not there."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable

import pytest
from support.exports import START, Exports, left
from support.shells import Shell

from svcctl.errors import IncompleteResult, Locked, SvcctlError, UsageError


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
    assert sorted(path.name for path in (exports.folder / ".all.csv.export").iterdir()) == ["manifest.json"]


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
    assert caught.value.message == (
        "window 2024-01-31 00:50:00 to 2024-01-31 01:00:00 UTC: "
        "the result is incomplete: the connection broke in the middle"
    )
    assert left(exports.folder) == []
    exports.proxy.choose = lambda body: None
    asked = exports.windows_asked()
    summary = exports("all.csv", workers=1)
    assert (summary.fetched, exports.windows_asked() - asked) == (1, 1)
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


def test_keeping_going_names_the_gaps_and_publishes_no_file_with_one(exports: Exports) -> None:
    exports.proxy.choose = broken(600, 2400)
    summary = exports("all.csv", keep_going=True)
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


def test_a_service_that_cuts_its_answers_is_asked_in_halves(exports: Exports, events: Shell) -> None:
    for format in ("csv", "ndjson"):
        exports(f"all.{format}", most=9)
        assert (exports.folder / f"all.{format}").read_bytes() == query(events, format)
    exports("all.parquet", most=9)
    exports("plain.parquet")
    from pyarrow import parquet

    assert parquet.read_table(exports.folder / "all.parquet") == parquet.read_table(exports.folder / "plain.parquet")


def test_a_second_with_more_rows_than_the_service_gives_is_an_error(exports: Exports) -> None:
    with pytest.raises(IncompleteResult) as caught:
        exports("all.csv", most=1, workers=1, retries=3)
    assert caught.value.message == (
        "window 2024-01-31 00:00:00 to 2024-01-31 00:10:00 UTC: "
        "the second from 2024-01-31 00:00:00 to 2024-01-31 00:00:01 UTC has 1 rows or more: the service cuts them at 1"
    )
    assert left(exports.folder) == []


def test_a_file_that_is_not_ours_is_not_overwritten(exports: Exports) -> None:
    for name, path in (("all.csv", "all.csv"), ("day/{start:%H%M}.csv", "day/0030.csv")):
        file = exports.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
        with pytest.raises(UsageError) as caught:
            exports(name)
        assert (caught.value.message, file.read_text()) == (f"{file} exists", "mine")
        exports(name, overwrite=True)
        assert file.read_text().startswith("eventdate,n,name,x,ok\n")


def test_the_manifest_of_another_export_is_refused(exports: Exports) -> None:
    exports("all.csv")
    with pytest.raises(UsageError) as caught:
        exports("all.csv", query="from exported.events where ok", window=300)
    assert caught.value.message == (
        f"{exports.folder}/.all.csv.export/manifest.json belongs to another export: another query and another window"
    )


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"version": 1}'])
def test_a_damaged_manifest_is_refused_and_force_begins_anew(exports: Exports, events: Shell, damage: str) -> None:
    exports("all.csv")
    manifest = exports.folder / ".all.csv.export" / "manifest.json"
    manifest.write_text(damage)
    with pytest.raises(UsageError) as caught:
        exports("all.csv")
    assert caught.value.message == f"manifest {manifest} is damaged"
    exports("all.csv", overwrite=True)
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


def test_damaged_files_are_fetched_again(exports: Exports, events: Shell) -> None:
    exports("day/{start:%H%M}.csv")
    file = exports.folder / "day" / "0010.csv"
    good = file.read_bytes()
    for damage in (good[:-1], good.replace(b"1", b"2")):
        file.write_bytes(damage)
        assert exports("day/{start:%H%M}.csv").fetched == 1
        assert file.read_bytes() == good
    file.unlink()
    assert exports("day/{start:%H%M}.csv").fetched == 1
    assert file.read_bytes() == good


def test_damaged_parts_are_fetched_again_before_they_are_merged(exports: Exports, events: Shell) -> None:
    exports.proxy.choose = broken(3000)
    with pytest.raises(IncompleteResult):
        exports("all.csv", workers=1)
    exports.proxy.choose = lambda body: None
    part = min((exports.folder / ".all.csv.export").glob("2*.csv"))
    part.write_bytes(part.read_bytes().replace(b"1", b"2"))
    exports("all.csv")
    assert (exports.folder / "all.csv").read_bytes() == query(events, "csv")


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
    assert caught.value.message == f"another run of the export to {exports.folder}/all.csv is going on"
    assert left(exports.folder) == ["all.csv"]
