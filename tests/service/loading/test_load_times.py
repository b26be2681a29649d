"""Loads: which column is the time of an event, how it is written, and in which zone."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import AMBIGUOUS, CSV_COLUMNS, at, load, rows, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Type
from svcctl.service.loading.load import LoadResult


def test_rows_without_a_time_are_counted_and_the_first_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    result = load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-01,1\nsoon,2\n,3\n"), "t")
    day = at("2026-01-01T00:00:00")
    assert result == LoadResult(
        "t", (CSV_COLUMNS[0], Column("n", Type.INT8)), 1, 2, "line 3: time 'soon' is not a time", day, day
    )


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.csv", "time,n\n2026-07-01 12:00:00,1\n2026-07-01T12:00:00+02:00,2\n", {}),
        ("a.csv", "time,n\n2026-07-01 12:00:00 +0200,1\n2026-07-01 05:30:00.0 -04:30,2\n", {}),
        ("a.csv", "time,n\n01/07/2026 12:00,1\n01/07/2026 12:00:00,2\n", {}),
        ("a.csv", "time,n\n12h 1.7.2026,1\n12h 1.7.2026,2\n", {"time_format": "HH'h' d.M.yyyy"}),
        ("a.ndjson", '{"time":"2026-07-01 12:00:00","n":1}\n{"time":1782900000,"n":2}\n', {}),
        ("a.log", "2026-07-01 12:00:00 1\n2026-07-01T12:00:00+02:00 2\n2026-07-01 12:00:00 +0200 3\n", {}),
        ("a.log", "Jul  1 2026 12:00:00 host 1\n2026-07-01T12:00:00.000000+02:00 host 2\n", {"format": "syslog"}),
    ],
)
def test_times_without_a_zone_are_in_the_one_that_is_given(
    engine: DuckDBEngine, tmp_path: Path, name: str, text: str, options: dict[str, str]
) -> None:
    assert load(engine, written(tmp_path, name, text), "t", zone="Europe/Berlin", **options).skipped == 0
    assert {row[0] for row in rows(engine, "t")} == {datetime(2026, 7, 1, 10)}


def test_times_of_parquet_without_a_zone_are_in_the_one_that_is_given(engine: DuckDBEngine, tmp_path: Path) -> None:
    noon = pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us"))
    ten = pa.array([datetime(2026, 7, 1, 10)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"time": noon, "other": ten}), tmp_path / "a.parquet")
    load(engine, tmp_path / "a.parquet", "t", zone="GMT+02:00", time_field="time")
    assert rows(engine, "t") == [(datetime(2026, 7, 1, 10), datetime(2026, 7, 1, 10))]


def test_numbers_that_are_no_dates_in_any_unit_are_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", "time,n\n1e300,1\n"), "t", time_field="time")
    assert caught.value.message.endswith("a.csv could not be read: line 2: time '1e300' is not a time")


@pytest.mark.parametrize("name", ["epoch", "Epoch", "infinity", "today"])
def test_a_heading_may_begin_with_a_word_that_is_a_date(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    load(engine, written(tmp_path, "a.tsv", f"{name}\tv\n1795154406\t1\n"), "t", time_field=name)
    load(engine, written(tmp_path, "b.csv", f"{name},ts\nx,2026-11-20\n"), "u", time_field="ts")
    assert rows(engine, "t") == [(datetime(2026, 11, 20, 6, 0, 6), 1)]
    assert rows(engine, "u") == [(datetime(2026, 11, 20), "x")]


def test_dates_before_1970_and_after_9999_are_skipped_for_no_query_reaches_them(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    dates = [-62_135_596_800_000_001, -1, 0, 253_402_300_799_999_000, 253_402_300_800_000_000]
    pq.write_table(pa.table({"time": pa.array(dates, pa.timestamp("us"))}), tmp_path / "a.parquet")
    result = load(engine, tmp_path / "a.parquet", "t")
    assert (result.oldest, result.newest) == (0, 253_402_300_799_999)
    assert (result.skipped, result.first_skipped) == (3, "row 1: time '0001-12-31 (BC) 23:59:59.999999' is not a time")
    text = "day;born\n31/12/1969;31/12/1969\n01/02/1970;1969-12-31\n"
    for wishes in ({}, {"time_format": "dd/MM/yyyy"}):
        result = load(engine, written(tmp_path, "b.csv", text), "b", time_field="day", replace=True, **wishes)
        why = "line 2: day '31/12/1969' is before 1970, where no query begins"
        assert (result.rows, result.skipped, result.first_skipped) == (1, 1, why)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "wishes", "dates"),
    [
        ("date,time\n2026-11-01,12:03:04.5\n2026-11-01,9:03\n", {}, ["2026-11-01T09:03", "2026-11-01T12:03:04.5"]),
        ("date,time\n2026-11-01,12:03\nx,11:00\n2026-11-02,\n", {}, ["2026-11-01T12:03", "2026-11-02"]),
        ("date,time\n2026-11-01,12:03\n", {"zone": "Europe/Berlin"}, ["2026-11-01T11:03"]),
        ("startDate,startTime\n21/11/2026,12:03\n", {}, ["2026-11-21T12:03"]),
        ("date,time\n11/21/2026,12:03\n", {"time_format": "MM/dd/yyyy"}, ["2026-11-21T12:03"]),
        ("date,time\n20261121,12:03\n", {"time_format": "yyyyMMdd"}, ["2026-11-21T12:03"]),
        ("Datum,Uhrzeit\n21.11.2026,10:00:00\n22.11.2026,\n", {}, ["2026-11-21T10", "2026-11-22"]),
        ('Tag,um\n2026-11-21,10:00\n2026-11-22,""\n', {"time_format": "yyyy-MM-dd"}, ["2026-11-21T10", "2026-11-22"]),
        ("Datum,Start\n21.11.2026,10:00:00\n", {"time_field": "Datum,Start"}, ["2026-11-21T10"]),
    ],
)
def test_a_day_and_a_time_of_day_are_one_date(
    engine: DuckDBEngine, tmp_path: Path, text: str, wishes: dict[str, str], dates: list[str]
) -> None:
    day, clock = text.partition("\n")[0].split(",")
    result = load(engine, written(tmp_path, "a.csv", text), "t", **wishes)
    assert [date for date, _ in rows(engine, "t")] == [datetime.fromisoformat(f"{date:0<10}") for date in dates]
    (note,) = result.notes
    assert f"{day} and {clock}" in note


@pytest.mark.parametrize(
    "text",
    ["date,duration\n2026-11-01,00:03:04\n", "date,time\n2026-11-01T00:00Z,12:03\n", "date,time\n2026-11-01,noon\n"],
)
def test_other_columns_are_no_times_of_day(engine: DuckDBEngine, tmp_path: Path, text: str) -> None:
    assert load(engine, written(tmp_path, "a.csv", text), "t").notes == ()
    assert rows(engine, "t")[0][0] == datetime(2026, 11, 1)


def test_days_beside_several_columns_of_times_are_at_midnight_which_is_told(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    path = written(tmp_path, "a.csv", 'Datum;Start;Ende;"a,b"\n21.11.2026;10:00;11:00:00.5;12:00\n')
    (note,) = load(engine, path, "t").notes
    assert ("midnight" in note, "--time-field Datum,Start" in note) == (True, True)
    assert rows(engine, "t")[0][0] == datetime(2026, 11, 21)
    load(engine, path, "chosen", time_field="Datum,a,b")
    assert rows(engine, "chosen")[0][0] == datetime(2026, 11, 21, 12)
    one = written(tmp_path, "b.csv", '"a,b";Uhr\n21.11.2026;10:00\n')
    (note,) = load(engine, one, "one", time_field="a,b").notes
    assert "--time-field a,b,Uhr" in note
    with pytest.raises(UsageError, match="'Uhr'"):
        load(engine, written(tmp_path, "c.csv", "Datum,Uhr\n2026-11-21,noon\n"), "t", time_field="Datum,Uhr")


def test_the_day_of_a_parquet_file_has_the_time_of_day_beside_it(engine: DuckDBEngine, tmp_path: Path) -> None:
    days, clocks = pa.array([date(2026, 11, 1)]), pa.array([time(12, 3, 4)])
    pq.write_table(pa.table({"date": days, "time": clocks}), tmp_path / "a.parquet")
    load(engine, tmp_path / "a.parquet", "t")
    assert rows(engine, "t") == [(datetime(2026, 11, 1, 12, 3, 4), "12:03:04")]


def test_a_day_with_the_month_first_beside_a_time_of_day_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", "date,time\n11/21/2026,12:03\n"), "t")
    assert "--time-format 'MM/dd/yyyy'" in (caught.value.hint or "")


@pytest.mark.parametrize("wishes", [{}, {"time_format": "HH:mm:ss"}])
def test_a_time_of_day_without_a_day_is_told_as_such(
    engine: DuckDBEngine, tmp_path: Path, wishes: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match=r"line 2: time '10:00:01' has no day$"):
        load(engine, written(tmp_path, "a.csv", "time,n\n10:00:01,1\n"), "a", **wishes)


def test_a_line_without_a_time_is_shown_by_itself(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 1: 'hello' is not a line with a time$"):
        load(engine, written(tmp_path, "a.log", "hello\nworld\n"), "a", format="log")


def test_a_zone_that_means_several_is_not_read_which_a_note_says(engine: DuckDBEngine, tmp_path: Path) -> None:
    first = "2026-11-20 06:00:01 UTCP up\n"
    log = written(tmp_path, "a.log", f"{first}2026-11-20 06:00:02 CST [1] up\n")
    (note,) = load(engine, log, "t").notes
    assert "CST" in note
    assert rows(engine, "t") == [
        (datetime(2026, 11, 20, 6, 0, 1), "UTCP up"),
        (datetime(2026, 11, 20, 6, 0, 2), "CST [1] up"),
    ]
    assert load(engine, log, "t", zone="America/Chicago").notes == ()
    late = written(tmp_path, "late.log", f"{first * 9}2026-11-20 06:00:02 CST [1] up\n")
    assert load(engine, late, "late").notes == (note,)
    words = written(tmp_path, "words.log", "INFO 2026-11-20 06:00:02 CST up\n")
    assert load(engine, words, "words").notes == (note,)


def test_a_zone_of_csv_that_means_several_is_read_as_one_which_a_note_says(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    dates = ["2026-11-20 06:00:00 EST", *["2026-11-20 06:00:00"] * 9, "2026-11-20 06:00:00 CST", "2026-11-20 06:00 BST"]
    notes = load(engine, written(tmp_path, "a.csv", "\n".join(["time", *dates])), "t", zone="Europe/Berlin").notes
    assert [("CST" in note, "BST" in note) for note in notes] == [(True, False), (False, True)]
    assert [row[0] for row in rows(engine, "t")] == [datetime(2026, 11, 20, hour) for hour in (0, *[5] * 9, 11, 12)]


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson"])
def test_times_as_go_prints_them(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    times = ["2026-11-21 10:00:00 +0000 UTC", "2026-11-21 11:00:00.25 +0100 CET m=+0.000012"]
    text = "".join(["time,n\n", *(f"{time},1\n" for time in times)])
    if name == "a.ndjson":
        text = "".join(json.dumps({"time": time, "n": 1}) + "\n" for time in times)
    assert load(engine, written(tmp_path, name, text), "go").skipped == 0
    assert [row[0] for row in rows(engine, "go")] == [
        datetime(2026, 11, 21, 10),
        datetime(2026, 11, 21, 10, 0, 0, 250_000),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dates", "notes"),
    [
        (["05/05/2026 10:00", "01/02/2026 10:00", "2026-02-03"], [AMBIGUOUS.format("01/02/2026 10:00", " HH:mm")]),
        (["1/2/2026"], [AMBIGUOUS.format("1/2/2026", "")]),
        (["01/02/2026 1:00:00"], [AMBIGUOUS.format("01/02/2026 1:00:00", " HH:mm:ss")]),
        (["01/02/2026 10:00:00.123"], [AMBIGUOUS.format("01/02/2026 10:00:00.123", " HH:mm:ss.SSS")]),
        (["01/02/2026 10:00:00.123456"], [AMBIGUOUS.format("01/02/2026 10:00:00.123456", " HH:mm:ss.SSSSSS")]),
        (["01/02/2026", "05/05/2026", "13/02/2026"], []),
        (["05/05/2026", "2026-01-02", "2026/01/02 10:00"], []),
        (["01/02/2026 10:00 PM", "2026-01-02"], []),
    ],
)
def test_dates_whose_order_the_file_does_not_show_have_a_note(
    engine: DuckDBEngine, tmp_path: Path, dates: list[str], notes: list[str]
) -> None:
    result = load(engine, written(tmp_path, "a.csv", "\n".join(["time", *dates])), "t")
    skipped = sum(date.endswith("PM") for date in dates)
    told = [note for note in result.notes if not note.startswith("times are kept to the millisecond")]
    assert (result.rows, result.skipped, told) == (len(dates) - skipped, skipped, notes)


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson"])
@pytest.mark.parametrize(
    ("before", "half", "pattern"), [(0, "", "/yyyy HH:mm"), (5000, "", "/yyyy HH:mm"), (0, " PM", "/yyyy hh:mm a")]
)
def test_a_file_with_a_date_that_has_the_month_first_is_refused_and_loads_with_the_format(
    engine: DuckDBEngine, tmp_path: Path, name: str, before: int, half: str, pattern: str
) -> None:
    dates = ["01/02/2026 10:00"] * before + [f"02/13/2026 10:00{half}", f"01/02/2026 10:00{half}"]
    lines = ["time", *dates] if name == "a.csv" else [json.dumps({"time": date}) for date in dates]
    path = written(tmp_path, name, "\n".join(lines))
    with pytest.raises(UsageError) as caught:
        load(engine, path, "t")
    line = lines.index(lines[-2]) + 1
    assert f" line {line}: time '02/13/2026 10:00{half}' " in caught.value.message
    assert f"--time-format 'MM/dd{pattern}'" in (caught.value.hint or "")
    assert list(engine.tables()) == []
    result = load(engine, path, "t", time_format=f"MM/dd{pattern}")
    assert (result.skipped, result.notes, result.newest) == (0, (), at(f"2026-02-13T{22 if half else 10}:00:00"))


def test_the_format_of_times_tells_which_column_is_the_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "n,made,when,day\n7,2026-01-01,02/13/2026,20260213\n")
    assert load(engine, path, "t", time_format="MM/dd/yyyy").oldest == at("2026-02-13T00:00:00")
    assert load(engine, path, "u", time_format="yyyyMMdd").oldest == at("2026-02-13T00:00:00")
    assert [column.name for column in engine.table("t").columns] == ["eventdate", "n", "made", "day"]
    assert [column.name for column in engine.table("u").columns] == ["eventdate", "n", "made", "when"]


def test_words_are_no_times_whatever_their_format(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "when,n\n01/02/2026,1\ninfinity,2\nepoch,3\n")
    loaded = load(engine, path, "t", time_field="when", time_format="dd/MM/yyyy")
    assert (loaded.rows, loaded.skipped, loaded.first_skipped) == (1, 2, "line 3: when 'infinity' is not a time")
    assert loaded.oldest == loaded.newest == at("2026-02-01T00:00:00")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_name_of_a_column_may_be_written_as_a_number_a_date_or_a_truth_value(
    engine: DuckDBEngine, tmp_path: Path, separator: str
) -> None:
    names = ["200", "1.50", "true", "2026-11-20", "2026-11-21 10:00", "null"]
    heading = separator.join(["time", *names])
    load(engine, written(tmp_path, "a.log", f"{heading}\n{separator.join(['2026-01-01', *'123456'])}\n"), "t")
    assert [column.name for column in engine.table("t").columns] == ["eventdate", *names]
    assert rows(engine, "t") == [(datetime(2026, 1, 1), 1, 2, 3, 4, 5, 6)]


@pytest.mark.parametrize(
    ("header", "chosen", "words"),
    [
        ("ts,time,n", "time", ["column time, not from ts", "--types ts=timestamp"]),
        ("Date,created", "Date", ["column Date, not from created", "--types created=timestamp"]),
        ("created,n,m", "created", ["column created"]),
        ("time,n", "time", []),
        ("eventdate,time,n", "eventdate", ["--types time=timestamp"]),
    ],
)
def test_the_time_is_found_by_name_or_because_only_one_column_is_a_time(
    engine: DuckDBEngine, tmp_path: Path, header: str, chosen: str, words: list[str]
) -> None:
    times = {name: f"2026-01-0{day}" for day, name in enumerate(["ts", "time", "Date", "created", "eventdate"], 1)}
    path = written(
        tmp_path, "a.csv", header + "\n" + ",".join(times.get(name, "5") for name in header.split(",")) + "\n"
    )
    notes = load(engine, path, "t").notes
    assert [word in note for word, note in zip(words, notes, strict=True)] == [True] * len(words)
    assert rows(engine, "t")[0][0] == datetime.fromisoformat(times[chosen])
    others = tuple(note for note in notes if "--types" in note)
    assert load(engine, path, "named", time_field=chosen).notes == others


def test_versions_are_no_times(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "host,release,seen\nw1,5.10.1,2026-11-22 10:00\nw2,6.1,never\n")
    with pytest.raises(UsageError, match="'never' in line 3"):
        load(engine, path, "t")
    by_chance = "host,said\nw1,2026-11-22 10:00\nw2,up\nw3,down\n"  # one text that is a time makes no column of times
    for text in (by_chance, "host,release\nw1,5.10.1\nw2,6.1\n"):
        with pytest.raises(UsageError, match="it is not clear which"):
            load(engine, written(tmp_path, "c.csv", text), "t")
    whole = written(tmp_path, "b.csv", "host,release,seen\nw1,5.10.1,2026-11-22 10:00\n")
    load(engine, whole, "t")
    assert rows(engine, "t") == [(datetime(2026, 11, 22, 10), "w1", "5.10.1")]


def test_the_journal_and_csv_with_dots_in_its_dates_have_a_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    journal = {"__REALTIME_TIMESTAMP": "1769853600250000", "__MONOTONIC_TIMESTAMP": "12", "MESSAGE": "up"}
    load(engine, written(tmp_path, "a.json", json.dumps(journal)), "journal")
    assert rows(engine, "journal") == [(datetime(2026, 1, 31, 10, 0, 0, 250_000), "12", "up")]
    load(engine, written(tmp_path, "a.csv", "Tag;n\n31.01.2026 10:00;1\n01.02.2026;2\n"), "dots")
    assert rows(engine, "dots") == [(datetime(2026, 1, 31, 10), 1), (datetime(2026, 2, 1), 2)]


def test_dates_with_the_name_of_the_month_behind_a_line_that_tells_the_separator(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    dates = ["1-Jan-2026", "02 Jan 2026 10:00", "03/Jan/2026:10:00:00 +0100", "Sun, 04 Jan 2026 10:00:00.5 GMT"]
    path = written(tmp_path, "a.csv", "\ufeffsep=;\r\nmade;n\r\n" + "".join(f"{date};1\r\n" for date in dates))
    assert load(engine, path, "t", zone="Europe/Berlin").skipped == 0
    assert rows(engine, "t") == [
        (datetime(2025, 12, 31, 23), 1),
        (datetime(2026, 1, 2, 9), 1),
        (datetime(2026, 1, 3, 9), 1),
        (datetime(2026, 1, 4, 10, 0, 0, 500_000), 1),
    ]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("2026-09-30T11:43:27.135934Z", "2026-09-30 11:43:27.135934 of eventdate is 2026-09-30 11:43:27.135"),
        ("2026-09-30 11:43:27.135999999", "2026-09-30 11:43:27.135999 of eventdate is 2026-09-30 11:43:27.135"),
        ("1790768607.135934", "2026-09-30 11:43:27.135934 of eventdate is 2026-09-30 11:43:27.135"),
        ("1790768607135934000", "2026-09-30 11:43:27.135934 of eventdate is 2026-09-30 11:43:27.135"),
        ("2026-09-30T11:43:27.135000Z", None),
        ("1790768607.135", None),
        ("1790768607135", None),
    ],
)
def test_times_that_are_finer_than_a_millisecond_are_told(
    engine: DuckDBEngine, tmp_path: Path, text: str, note: str | None
) -> None:
    loaded = load(engine, written(tmp_path, "a.csv", f"time,n\n{text},1\n"), "t")
    assert loaded.notes == (() if note is None else (f"times are kept to the millisecond: {note}",))
    assert rows(engine, "t") == [(datetime(2026, 9, 30, 11, 43, 27, 135000), 1)]


def test_a_column_of_finer_times_that_is_not_the_date_is_told_too(engine: DuckDBEngine, tmp_path: Path) -> None:
    finer = pa.array([1_790_768_607_135_934_001], pa.timestamp("ns"))
    table = pa.table({"time": pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us")), "seen": finer})
    pq.write_table(table, tmp_path / "a.parquet")
    [note] = [note for note in load(engine, tmp_path / "a.parquet", "t", time_field="time").notes if "kept" in note]
    assert note.endswith(" of seen is 2026-09-30 11:43:27.135")
