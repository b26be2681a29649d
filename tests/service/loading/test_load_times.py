"""Loads: which column is the time of an event, how it is written, and in which zone."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import ANY, at, changes, columns, first_skipped, load, rows, told, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading.skips import Change


def test_rows_without_a_time_are_counted_and_the_first_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    result = load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-01,1\nsoon,2\n,3\n"), "t", max_skipped=ANY)
    day = at("2026-01-01T00:00:00")
    assert (columns(engine), result.rows, result.skipped) == (["n int8"], 1, 2)
    assert (result.oldest, result.newest) == (day, day)
    assert [told(skip) for skip in result.skips] == [
        "line 4: it has no time that can be read",
        "line 3: time 'soon' is not a time",
    ]


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.csv", "time,n\n2026-07-01 12:00:00,1\n2026-07-01T12:00:00+02:00,2\n", {}),
        ("a.csv", "time,n\n2026-07-01 12:00:00 +0200,1\n2026-07-01 05:30:00.0 -04:30,2\n", {}),
        ("a.csv", "time,n\n01/07/2026 12:00,1\n01/07/2026 12:00:00,2\n", {"time_format": "%d/%m"}),
        ("a.csv", "time,n\n07/01/2026 12:00 PM,1\n2026-07-01 12:00:00,2\n", {"time_format": "%m/%d"}),
        ("a.log", "07/01/2026 12:00:00 1\n07/01/2026 12:00 PM 2\n", {"time_format": "%m/%d"}),
        ("a.csv", "time,n\n12h 1.7.2026,1\n12h 1.7.2026,2\n", {"time_format": "%Hh %d.%m.%Y"}),
        ("a.ndjson", '{"time":"2026-07-01 12:00:00","n":1}\n{"time":1782900000,"n":2}\n', {}),
        ("a.log", "2026-07-01 12:00:00 1\n2026-07-01T12:00:00+02:00 2\n2026-07-01 12:00:00 +0200 3\n", {}),
        ("a.log", "Jul  1 2026 12:00:00 host 1\n2026-07-01T12:00:00.000000+02:00 host 2\n", {"format": "syslog"}),
    ],
)
def test_times_without_a_zone_are_in_the_one_that_is_given(
    engine: DuckDBEngine, tmp_path: Path, name: str, text: str, options: dict[str, str]
) -> None:
    result = load(engine, written(tmp_path, name, text), "t", time_zone="Europe/Berlin", **options)
    assert (result.skipped, result.changes) == (0, ())
    assert {row[0] for row in rows(engine, "t")} == {datetime(2026, 7, 1, 10)}


@pytest.mark.parametrize("word", ["", "UTC", "GMT"])
@pytest.mark.parametrize("offset", ["+05:30", "+0530", "-03:30", "+14:00"])
def test_an_offset_keeps_its_minutes_after_a_word(engine: DuckDBEngine, tmp_path: Path, word: str, offset: str) -> None:
    path = written(tmp_path, "a.csv", f"time,n\n2026-01-31 10:00:00 {word}{offset},1\n")
    load(engine, path, "t", strict=True)
    assert rows(engine, "t")[0][0] == datetime.fromisoformat(f"2026-01-31T10:00{offset}").astimezone(UTC).replace(
        tzinfo=None
    )


def test_times_of_parquet_without_a_zone_are_in_the_one_that_is_given(engine: DuckDBEngine, tmp_path: Path) -> None:
    noon = pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us"))
    ten = pa.array([datetime(2026, 7, 1, 10)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"time": noon, "other": ten}), tmp_path / "a.parquet")
    load(engine, tmp_path / "a.parquet", "t", time_zone="GMT+02:00", time_field="time")
    assert rows(engine, "t") == [(datetime(2026, 7, 1, 10), datetime(2026, 7, 1, 10))]


@pytest.mark.parametrize("name", ["epoch", "Epoch", "infinity", "today"])
def test_a_heading_may_begin_with_a_word_that_is_a_date(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    load(engine, written(tmp_path, "a.tsv", f"{name}\tv\n1795154406\t1\n"), "t", time_field=name)
    load(engine, written(tmp_path, "b.csv", f"{name},ts\nx,2026-11-20\n"), "u", time_field="ts")
    assert rows(engine, "t") == [(datetime(2026, 11, 20, 6, 0, 6), 1)]
    assert rows(engine, "u") == [(datetime(2026, 11, 20), "x")]


def test_events_before_1970_and_after_9999_are_skipped(engine: DuckDBEngine, tmp_path: Path) -> None:
    dates = [-62_135_596_800_000_001, -1, 0, 253_402_300_799_999_000, 253_402_300_800_000_000]
    pq.write_table(pa.table({"time": pa.array(dates, pa.timestamp("us"))}), tmp_path / "a.parquet")
    result = load(engine, tmp_path / "a.parquet", "t", max_skipped=ANY)
    assert (result.oldest, result.newest) == (0, 253_402_300_799_999)
    assert (result.skipped, first_skipped(result)) == (3, "row 1: time '0001-12-31 (BC) 23:59:59.999999' is not a time")
    text = "day;born\n31/12/1969;31/12/1969\n01/02/1970;1969-12-31\n"
    for order in ("%d/%m", "%d/%m/%Y"):
        path = written(tmp_path, "b.csv", text)
        result = load(engine, path, "b", time_field="day", replace=True, time_format=order)
        why = "line 2: day '31/12/1969' is before 1970, the first year of events"
        assert (result.rows, result.skipped, first_skipped(result)) == (1, 1, why)


@pytest.mark.parametrize(
    ("text", "options", "dates"),
    [
        ("date,time\n2026-11-01,12:03:04.5\n2026-11-01,9:03\n", {}, ["2026-11-01T09:03", "2026-11-01T12:03:04.5"]),
        ("date,time\n2026-11-01,12:03\n2026-11-02,\n", {}, ["2026-11-01T12:03", "2026-11-02"]),
        ("date,time\n2026-11-01,12:03\n", {"time_zone": "Europe/Berlin"}, ["2026-11-01T11:03"]),
        ("date,time\n20261121,12:03\n", {"time_format": "%Y%m%d"}, ["2026-11-21T12:03"]),
        ("date,time\n11/21/2026,12:03\n", {"time_format": "%m/%d"}, ["2026-11-21T12:03"]),
        (
            "date,time\n2026-11-01,n/a\n2026-11-01,24:00\n2026-11-21,12:03\n2026-11-22,12:04\n",
            {},
            ["2026-11-21T12:03", "2026-11-22T12:04"],
        ),
        ('Datum;a,b;Ende\n21.11.2026;10:00;11:00\n22.11.2026;"";\n', {}, ["2026-11-21T10", "2026-11-22"]),
        (None, {}, ["2026-11-01T12:03:04"]),
    ],
)
def test_a_day_beside_a_time_of_day_is_refused_and_read_with_both_names_or_with_one(
    engine: DuckDBEngine, tmp_path: Path, text: str | None, options: dict[str, str], dates: list[str]
) -> None:
    path, heading = written(tmp_path, "a.csv", text or ""), (text or "date,time\n").partition("\n")[0]
    if text is None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"date": [date(2026, 11, 1)], "time": [time(12, 3, 4)]}), path)
    day, clock = heading.split(";" if ";" in heading else ",")[:2]
    with pytest.raises(UsageError) as caught:
        load(engine, path, "t", **options)
    assert f"--time-field {day},{clock}" in (caught.value.hint or "")
    load(engine, path, "t", time_field=f"{day},{clock}", max_skipped=ANY, **options)
    assert [row[0] for row in rows(engine, "t")] == [datetime.fromisoformat(f"{date:0<10}") for date in dates]
    load(engine, path, "days", time_field=day, **options)
    assert {str(row[0])[11:] for row in rows(engine, "days")} == {"23:00:00" if "time_zone" in options else "00:00:00"}


def test_other_columns_are_no_times_of_day(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "date,time\n2026-11-01,noon\n2026-11-02,12:00\n2026-11-03,night\n"
    assert changes(load(engine, written(tmp_path, "a.csv", text), "t")) == {}
    result = load(engine, tmp_path / "a.csv", "u", time_field="date,time", max_skipped=ANY)
    assert (result.rows, first_skipped(result)) == (1, "line 2: time 'noon' is not a time")


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", "time,n\n2026-11-20 06:00:02 {},1\n"), ("a.log", "INFO 2026-11-20 06:00:02 {} up\n")],
)
def test_an_abbreviation_of_a_zone_is_refused_and_read_in_the_zone_that_is_given(
    engine: DuckDBEngine, tmp_path: Path, name: str, text: str
) -> None:
    head, _, line = text.rpartition("\n")[0].rpartition("\n")
    lines = [head, line.replace(" {}", ""), line.format("CST"), line.format("-06"), line.format("UTC"), ""]
    path = written(tmp_path, name, "\n".join(lines))
    with pytest.raises(UsageError, match="an abbreviation of a zone") as caught:
        load(engine, path, "t")
    assert caught.value.reason == "abbreviated-zone"
    assert load(engine, path, "t", time_zone="America/Chicago").skipped == 0
    assert [row[0] for row in rows(engine, "t")] == [datetime(2026, 11, 20, hour, 0, 2) for hour in (6, 12, 12, 12)]


def test_an_abbreviation_that_comes_late_is_not_read_as_any_zone(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "time\n" + "2026-11-20\n" * 1000 + "2026-11-20 06:00 CST\n")
    assert first_skipped(load(engine, path, "t")) == "line 1002: time '2026-11-20 06:00 CST' is not a time"


def test_times_without_a_zone_are_counted_unless_one_is_given(engine: DuckDBEngine, tmp_path: Path) -> None:
    times = ["2026-01-02", "2026-01-02 10:00", "31.01.2026 10:00", "2026-01-02T10:00Z", "2026-01-02 10:00 -05:00"]
    path = written(tmp_path, "a.csv", "\n".join(["time", *times, "1790768607", "1-Jan-2026", "4 Jan 2026 10:00 +0100"]))
    [zone] = load(engine, path, "t").changes
    assert (zone.what, zone.count, zone.place) == (Change.ZONE, 4, "line 2")
    assert load(engine, path, "u", time_zone="Asia/Tokyo").changes == ()
    log = written(tmp_path, "a.log", "2026-01-02 10:00:00Z a\n2026-01-02 10:00:00 b\n\tJan  2 10:00:00 c\n")
    assert [(one.count, one.place) for one in load(engine, log, "log").changes] == [(1, "line 2")]
    syslog = written(tmp_path, "b.log", "Nov 20 10:00:00 h a: x\n")
    assert [one.what for one in load(engine, syslog, "syslog").changes] == [Change.ZONE]


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson"])
def test_times_as_go_prints_them(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    times = ["2026-11-21 10:00:00 +0000 UTC", "2026-11-21 11:00:00.25 +0100 CET m=+0.000012"]
    text = "".join(["time,n\n", *(f"{time},1\n" for time in times)])
    if name == "a.ndjson":
        text = "".join(json.dumps({"time": time, "n": 1}) + "\n" for time in times)
    assert load(engine, written(tmp_path, name, text), "go").skipped == 0
    ten = datetime(2026, 11, 21, 10)
    assert [row[0] for row in rows(engine, "go")] == [ten, ten.replace(microsecond=250_000)]


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson", "a.log"])
@pytest.mark.parametrize(
    "dates", [["05/05/2026 10:00", "2026-02-03 10:00:00"], ["01/02/2026 10:00:00.5"], ["1/2/2026 9:00:00.5 PM"]]
)
def test_dates_with_slashes_are_refused_and_read_in_the_order_that_is_given(
    engine: DuckDBEngine, tmp_path: Path, name: str, dates: list[str]
) -> None:
    lines = {
        "a.csv": ["time", *dates],
        "a.ndjson": [json.dumps({"time": date}) for date in dates],
        "a.log": [f"INFO {date} up" for date in dates],
    }
    path = written(tmp_path, name, "\n".join(lines[name]))
    with pytest.raises(UsageError, match=rf"^dates of {name} such as '{dates[0]}' may have") as caught:
        load(engine, path, "t")
    assert "--time-format %d/%m if the day is first" in (caught.value.hint or "")
    for order, month in (("%d/%m", 2), ("%m/%d", 1)):
        assert load(engine, path, "u", time_format=order, replace=True).skipped == 0
        assert f"2026-0{month}" in {str(row[0])[:7] for row in rows(engine, "u")} or len(dates) > 1


def test_a_date_with_slashes_that_comes_late_is_skipped_and_counted(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "time\n" + "2026-11-20\n" * 1000 + "21/11/2026 06:00\n")
    assert first_skipped(load(engine, path, "t")) == "line 1002: time '21/11/2026 06:00' is not a time"
    assert load(engine, path, "u", time_format="%d/%m").rows == 1001


def test_the_format_of_times_tells_which_column_is_the_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "n,made,when,day\n7,2026-01-01,02/13/2026,20260213\n")
    assert load(engine, path, "t", time_format="%m/%d/%Y").oldest == at("2026-02-13T00:00:00")
    assert load(engine, path, "u", time_format="%Y%m%d").oldest == at("2026-02-13T00:00:00")
    assert columns(engine) == ["n int8", "made str", "day int8"]
    assert columns(engine, "u") == ["n int8", "made str", "when str"]


def test_the_order_of_dates_holds_for_other_columns_of_times(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "time,seen\n02/01/2026,02/13/2026\n")
    load(engine, path, "t", time_format="%m/%d", types={"seen": "timestamp"})
    assert rows(engine, "t") == [(datetime(2026, 2, 1), datetime(2026, 2, 13))]


def test_words_are_no_times_whatever_their_format(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "when,n\n01/02/2026,1\ninfinity,2\nepoch,3\n")
    loaded = load(engine, path, "t", time_field="when", time_format="%d/%m/%Y", max_skipped=ANY)
    assert (loaded.rows, loaded.skipped, first_skipped(loaded)) == (1, 2, "line 3: when 'infinity' is not a time")
    assert loaded.oldest == loaded.newest == at("2026-02-01T00:00:00")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_name_of_a_column_may_be_written_as_a_number_a_date_or_a_truth_value(
    engine: DuckDBEngine, tmp_path: Path, separator: str
) -> None:
    names = ["200", "1.50", "true", "2026-11-20", "2026-11-21 10:00", "null"]
    heading = separator.join(["time", *names])
    load(engine, written(tmp_path, "a.log", f"{heading}\n{separator.join(['2026-01-01', *'123456'])}\n"), "t")
    assert columns(engine) == [f"{name} int8" for name in names]
    assert rows(engine, "t") == [(datetime(2026, 1, 1), 1, 2, 3, 4, 5, 6)]


@pytest.mark.parametrize(
    ("header", "chosen", "is_said"),
    [
        ("ts,time,n", "time", False),
        ("Date,created", "Date", False),
        ("created,n,m", "created", True),
        ("time,n", "time", False),
        ("eventdate,time,n", "eventdate", False),
    ],
)
def test_the_time_is_found_by_name_or_because_only_one_column_is_a_time(
    engine: DuckDBEngine, tmp_path: Path, header: str, chosen: str, is_said: bool
) -> None:
    times = {name: f"2026-01-0{day}" for day, name in enumerate(["ts", "time", "Date", "created", "eventdate"], 1)}
    line = ",".join(times.get(name, "5") for name in header.split(","))
    path = written(tmp_path, "a.csv", f"{header}\n{line}\n")
    assert list(changes(load(engine, path, "t"))) == [Change.COLUMN] * is_said
    assert rows(engine, "t")[0][0] == datetime.fromisoformat(times[chosen])
    assert changes(load(engine, path, "named", time_field=chosen)) == {}


def test_epoch_seconds_may_have_a_decimal_comma(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", "time;n\n1767225600,5;1\n"), "t")
    assert rows(engine, "t") == [(datetime(2026, 1, 1, 0, 0, 0, 500_000), 1)]


def test_versions_are_no_times(engine: DuckDBEngine, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "first", ["sep=;\r\n", '"sep=;"\r\n', "SEP=;\r\n", "sep=;\r\n\r\n", "# a\r\n\r\nsep=;\r\n# b,c,d\r\n"]
)
def test_dates_with_the_name_of_the_month_behind_a_line_that_tells_the_separator(
    engine: DuckDBEngine, tmp_path: Path, first: str
) -> None:
    dates = ["1-Jan-2026", "02 Jan 2026 10:00", "03/Jan/2026:10:00:00 +0100", "Sun, 04 Jan 2026 10:00:00.5 GMT"]
    path = written(tmp_path, "a.csv", f"\ufeff{first}made;n\r\n" + "".join(f"{date};1\r\n" for date in dates))
    assert load(engine, path, "t", time_zone="Europe/Berlin").skipped == 0
    assert [str(row[0]) for row in rows(engine, "t")] == [
        *("2025-12-31 23:00:00", "2026-01-02 09:00:00", "2026-01-03 09:00:00", "2026-01-04 10:00:00.500000")
    ]


@pytest.mark.parametrize(
    ("text", "is_finer"),
    [
        ("2026-09-30T11:43:27.135934Z", True),
        ("2026-09-30 11:43:27.135999999", True),
        ("1790768607.135934", True),
        ("1790768607135934000", True),
        ("2026-09-30T11:43:27.135000Z", False),
        ("1790768607.135", False),
        ("1790768607135", False),
    ],
)
def test_times_that_are_finer_than_a_millisecond_are_counted(
    engine: DuckDBEngine, tmp_path: Path, text: str, is_finer: bool
) -> None:
    result = load(engine, written(tmp_path, "a.csv", f"time,n\n2026-09-30 12:00,0\n{text},1\n"), "t")
    assert changes(result) == ({Change.FINER: 1} if is_finer else {})
    assert rows(engine, "t")[0] == (datetime(2026, 9, 30, 11, 43, 27, 135000), 1)


def test_a_column_of_finer_times_that_is_not_the_date_is_counted_too(engine: DuckDBEngine, tmp_path: Path) -> None:
    finer = pa.array([1_790_768_607_135_934_001], pa.timestamp("ns"))
    table = pa.table({"time": pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us")), "seen": finer})
    pq.write_table(table, tmp_path / "a.parquet")
    assert changes(load(engine, tmp_path / "a.parquet", "t", time_field="time")) == {Change.FINER: 1}


MOMENTS = ["1970-01-01T00:00:00.001", "1972-03-01T00:00:00", "2026-11-20T06:00:06.718", "9999-12-31T23:59:59.999"]


@pytest.mark.parametrize("kind", ["ndjson", "json"])
def test_events_that_a_service_wrote_as_json_have_the_same_times(
    engine: DuckDBEngine, tmp_path: Path, kind: str
) -> None:
    dates = [at(moment.partition(".")[0]) + int(moment.partition(".")[2] or 0) for moment in MOMENTS]
    events = [json.dumps({"eventdate": date, "seen": date}) for date in dates]
    text = "\n".join(events) + "\n"
    if kind == "json":
        text = '{"success":true,"msg":"","status":0,"object":[\n' + ",\n".join(events) + "\n]}\n"
    load(engine, written(tmp_path, f"a.{kind}", text), "t", strict=True, types={"seen": "timestamp"})
    assert rows(engine, "t") == [(datetime.fromisoformat(moment),) * 2 for moment in MOMENTS]


@pytest.mark.parametrize(
    ("unit", "number"),
    [
        ("epoch", "68256000"),
        ("epoch_ms", "68256000000"),
        ("epoch_us", "68256000000000"),
        ("epoch_ns", "68256000000000000"),
        ("spreadsheet", "26359"),
        ("spreadsheet", "26359.0"),
        ("%Y%m%d", "19720301"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.ndjson", "a.log"])
def test_a_number_is_read_in_the_unit_that_is_named(
    engine: DuckDBEngine, tmp_path: Path, name: str, unit: str, number: str
) -> None:
    text = {"a.csv": f"ts,n\n{number},1\n", "a.ndjson": f'{{"ts":"{number}"}}\n', "a.log": f"{number} up\n"}[name]
    assert load(engine, written(tmp_path, name, text), "t", time_format=unit).oldest == at("1972-03-01T00:00:00")


def test_a_few_implausible_numbers_are_skipped_and_many_are_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    for few, is_refused in ((1, False), (2, True)):
        path = written(tmp_path, "a.csv", "ts\n" + "1763719200\n" * (10 - few) + "5\n" * few)
        if is_refused:
            with pytest.raises(UsageError, match="are not epochs"):
                load(engine, path, "t")
        else:
            assert load(engine, path, "t").skipped == few


@pytest.mark.parametrize(
    ("day", "clock", "time_format", "hour", "minute"),
    [
        ("2026-01-31", "9", "%F %H", 9, 0),
        ("2026-01-31", "915", "%Y-%m-%d %H%M", 9, 15),
        ("2026-01-31", "0915", "%Y-%m-%d %H%M", 9, 15),
        ("31.01.2026", "5", "%d.%m.%Y %H%M", 0, 5),
        ("20260131", "915", "%Y%m%d %H%M%S", 0, 9),
        ("1/31/2026", "9:15 PM", "%m/%d/%Y %I:%M %p", 21, 15),
    ],
)
def test_a_format_describes_days_and_times_of_day(
    engine: DuckDBEngine, tmp_path: Path, day: str, clock: str, time_format: str, hour: int, minute: int
) -> None:
    path = written(tmp_path, "a.csv", f"day,clock\n{day},{clock}\n{day},n/a\n")
    load(engine, path, "t", time_field="day,clock", time_format=time_format, max_skipped=ANY)
    assert [f"{row[0]:%F %R}" for row in rows(engine, "t")] == [f"2026-01-31 {hour:02}:{minute:02}"]
    if clock.isdigit():
        path.write_text(path.read_text().replace("n/a", ""))
        with pytest.raises(UsageError, match=f"such as '{int(clock) if clock[0] != '0' else clock}' may be hours"):
            load(engine, path, "t", time_field="day,clock", time_format="%Y%m%d" if day.isdigit() else None)


def test_days_that_may_be_digits_are_refused_with_their_format(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "day,clock\n081109,203610\n")
    with pytest.raises(UsageError) as caught:
        load(engine, path, "t", time_field="day,clock")
    assert (caught.value.reason, caught.value.data) == ("unclear-numbers", {"spelled": "%y%m%d"})
    load(engine, path, "t", time_field="day,clock", time_format="%y%m%d")
    assert rows(engine, "t")[0][0] == datetime(2008, 11, 9, 20, 36, 10)


def test_days_of_six_digits_are_refused_unless_they_may_be_times_of_day(engine: DuckDBEngine, tmp_path: Path) -> None:
    for digits, data in (("240131", {"spelled": "%y%m%d"}), ("101112", {"clock": "time"})):
        with pytest.raises(UsageError) as caught:
            load(engine, written(tmp_path, "a.csv", f"time,n\n{digits},1\n"), "t")
        assert caught.value.data == data


def test_a_number_beyond_all_years_of_the_named_unit_is_no_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "time,n\n133541000000000000,1\n")
    with pytest.raises(UsageError, match=r"line 2: time '133541000000000000' is not a time$"):
        load(engine, path, "t", time_format="epoch")


@pytest.mark.parametrize("time_format", ["%H:%M:%S", "%I:%M %p", "%Y %H"])
def test_a_format_of_times_of_day_without_a_day_is_refused(
    engine: DuckDBEngine, tmp_path: Path, time_format: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.log", "10:00:00 up\n"), "t", time_format=time_format)
    assert caught.value.reason == "time-without-day"


@pytest.mark.parametrize("fraction", ["", ".25", ",250", ".250000", ".250000000"])
@pytest.mark.parametrize("time_format", ["%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d o'clock %m %Y %I:%M:%S %p"])
def test_a_fraction_may_follow_the_seconds_of_a_format(
    engine: DuckDBEngine, tmp_path: Path, time_format: str, fraction: str
) -> None:
    time = datetime(2026, 1, 31, 10).strftime(time_format.replace("%S", f"%S{fraction}"))
    for name, text in (("a.log", f"{time} up\n"), ("a.csv", f'time,n\n"{time}",up\n')):
        load(engine, written(tmp_path, name, text), "t", time_format=time_format, strict=True, replace=True)
        at = datetime(2026, 1, 31, 10, 0, 0, 250_000 if fraction else 0)
        assert [(row[0], row[1]) for row in rows(engine, "t")] == [(at, "up")]


@pytest.mark.parametrize(
    ("time_format", "time"),
    [
        ("%Y/%m/%d %H:%M:%S%z", "2026/01/31 10:00:00Z"),
        ("%Y/%m/%d %H:%M:%S %z", "2026/01/31 11:00:00.000000000 +01:00"),
        ("%FT%T", "2026-01-31T10:00:00"),
        ("%D %R", "01/31/26 10:00"),
        ("%e %B %Y, %R", "31 January 2026, 10:00"),
    ],
)
def test_a_format_may_have_further_codes(engine: DuckDBEngine, tmp_path: Path, time_format: str, time: str) -> None:
    for name, text in (("a.log", f"{time} up\n"), ("a.csv", f'time,n\n"{time}",up\n')):
        load(engine, written(tmp_path, name, text), "t", time_format=time_format, strict=True, replace=True)
        assert rows(engine, "t") == [(datetime(2026, 1, 31, 10), "up")]


def test_days_and_times_of_day_may_be_digits(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "day,clock\n20260131,91500\n")
    load(engine, path, "t", time_field="day,clock", time_format="%Y%m%d")
    assert rows(engine, "t") == [(datetime(2026, 1, 31, 9, 15), 91500)]
