"""Loading files: every format, which column is the time, what is skipped, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from svcctl.errors import ServiceError, UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.formats import READERS
from svcctl.service.engines.duckdb.lake import LakeEngine
from svcctl.service.engines.lake import Lake
from svcctl.service.events import load as loading
from svcctl.service.events.load import LoadResult, Source, Wishes
from svcctl.service.events.readers import FILE_KINDS
from svcctl.service.language.types import Column, Type

CSV = (
    "timestamp,n,x,ok,text,code\n"
    '2026-01-02T10:00:00Z,1,1,true,"a, ""b""",007\n'
    "2026-01-02 12:00:00.5+02:00,-2,2.5,FALSE,,12\n"
    '2026-01-03,9007199254740993,3,true,"",1\n'
)
CSV_COLUMNS = (
    Column("eventdate", Type.TIMESTAMP),
    Column("n", Type.INT8),
    Column("x", Type.FLOAT8),
    Column("ok", Type.BOOL),
    Column("text", Type.STR),
    Column("code", Type.STR),
)
CSV_ROWS = [
    (datetime(2026, 1, 2, 10), 1, 1.0, True, 'a, "b"', "007"),
    (datetime(2026, 1, 2, 10, 0, 0, 500_000), -2, 2.5, False, None, "12"),
    (datetime(2026, 1, 3), 2**53 + 1, 3.0, True, "", "1"),
]


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        yield engine


def load(engine: DuckDBEngine, path: Path | list[Path], table: str, **wishes: Any) -> LoadResult:
    paths = path if isinstance(path, list) else [path]
    loaded = loading.load(engine, [Source(one, one.name) for one in paths], table, Wishes(**wishes))
    assert loaded is not None
    return loaded


def at(text: str) -> int:
    """Epoch milliseconds."""
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def written(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def rows(engine: DuckDBEngine, table: str) -> list[tuple[object, ...]]:
    with engine.statement(f'SELECT * FROM events."{table}"') as stream:
        return [tuple(row.values()) for batch in stream for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", CSV),
        ("a[1]*.csv.gz", CSV),
        ("it's", CSV),
        ("a.csv", CSV.replace("\n", "\r\n")),
        ("a.tsv", CSV.replace(", ", "; ").replace(",", "\t").replace("; ", ", ")),
        ("a.csv", CSV.replace(", ", "| ").replace(",", ";").replace("| ", ", ")),
        ("a.csv", CSV.replace(", ", "; ").replace(",", "\t").replace("; ", ", ")),
        ("a.csv", CSV.replace(", ", "; ").replace(",", "|").replace("; ", ", ")),
        ("piped", CSV.replace(", ", "; ").replace(",", "|").replace("; ", ", ")),
    ],
)
def test_csv_and_tsv_are_typed_over_the_whole_file(engine: DuckDBEngine, tmp_path: Path, name: str, text: str) -> None:
    assert load(engine, written(tmp_path, name, text), "web.log") == LoadResult(
        "web.log", CSV_COLUMNS, 3, oldest=at("2026-01-02T10:00:00"), newest=at("2026-01-03T00:00:00")
    )
    assert rows(engine, "web.log") == CSV_ROWS
    assert engine.table("web.log").ordered


def test_lines_of_csv_that_do_not_parse_are_counted_and_the_first_is_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    path = written(
        tmp_path, "a.csv", b"time,s\n2026-01-01,a\n2026-01-01\n2026-01-01,b,c\n2026-01-01,caf\xe9\n2026-01-01,d\n"
    )
    result = load(engine, path, "t")
    assert (result.rows, result.skipped) == (2, 3)
    assert result.first_skipped == "line 3: it has too few cells: '2026-01-01'"
    assert rows(engine, "t") == [(datetime(2026, 1, 1), "a"), (datetime(2026, 1, 1), "d")]


def test_rows_without_a_time_are_counted_and_the_first_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    result = load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-01,1\nsoon,2\n,3\n"), "t")
    day = at("2026-01-01T00:00:00")
    assert result == LoadResult(
        "t", (CSV_COLUMNS[0], Column("n", Type.INT8)), 1, 2, "line 3: time 'soon' is not a time", day, day
    )


@pytest.mark.parametrize("name", ["a.ndjson", "a.jsonl.gz", "events"])
def test_ndjson_keeps_names_and_leaves_nested_values_as_json(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    text = (
        '{"@timestamp":1700000000123,"N":1,"o":{"b":[1,2]},"mixed":1,"s":"x\\n"}\n'
        "{broken\n"
        "\n"
        '{"@timestamp":1700000001,"o":{"c":"é"},"mixed":"1","N":2.5,"new":true,"nil":null}\n'
        "[1]\n"
        '{"@timestamp":"2023-11-14T22:13:22Z"}'
    )
    result = load(engine, written(tmp_path, name, text), "t")
    assert (result.rows, result.skipped, result.first_skipped) == (3, 2, "line 2: '{broken' is not a JSON object")
    assert [f"{column.name} {column.type}" for column in result.columns] == [
        "eventdate timestamp",
        "N float8",
        "o str",
        "mixed str",
        "s str",
        "new bool",
        "nil str",
    ]
    by_name = {column.name: index for index, column in enumerate(result.columns)}
    found = [
        {name: row[index] for name, index in by_name.items() if row[index] is not None} for row in rows(engine, "t")
    ]
    assert found == [
        {
            "eventdate": datetime(2023, 11, 14, 22, 13, 20, 123_000),
            "N": 1.0,
            "o": '{"b":[1,2]}',
            "mixed": "1",
            "s": "x\n",
        },
        {"eventdate": datetime(2023, 11, 14, 22, 13, 21), "N": 2.5, "o": '{"c":"é"}', "mixed": "1", "new": True},
        {"eventdate": datetime(2023, 11, 14, 22, 13, 22)},
    ]


def test_an_object_without_members_is_counted(engine: DuckDBEngine, tmp_path: Path) -> None:
    result = load(engine, written(tmp_path, "a.ndjson", '{}\n{"time":"2026-01-02"}\n'), "t")
    assert (result.rows, result.skipped) == (1, 1)


def test_members_whose_names_differ_in_case_only_are_columns_of_their_own(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        '\ufeff{"time":"2026-01-01","n":1,"N":"a","o/~":{"x":1,"X":2},"O/~":3}\n'
        '{"time":"2026-01-02","n":2,"n":3,"":4}\n'
    )
    result = load(engine, written(tmp_path, "a.ndjson", text), "t")
    names = [column.name for column in result.columns]
    assert (result.rows, result.skipped, names) == (2, 0, ["eventdate", "n", "N_1", "o/~", "O/~_1", "column5"])
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 1, "a", '{"x":1,"X":2}', 3, None),
        (datetime(2026, 1, 2), 2, None, None, None, 4),
    ]


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


def test_the_digits_of_a_number_tell_its_unit(engine: DuckDBEngine, tmp_path: Path) -> None:
    numbers = {
        "1795154406": datetime(2026, 11, 20, 6, 0, 6),
        "1795154406718": datetime(2026, 11, 20, 6, 0, 6, 718_000),
        "1795154406718001": datetime(2026, 11, 20, 6, 0, 6, 718_000),
        "1795154406718001000": datetime(2026, 11, 20, 6, 0, 6, 718_000),
        "1700000000000000": datetime(2023, 11, 14, 22, 13, 20),
    }
    # beside another column, as text, and as JSON
    csv = "".join(f"{number},{number}\n" for number in numbers)
    load(engine, written(tmp_path, "a.csv", f"epoch,n\n{csv}"), "csv")
    load(engine, written(tmp_path, "b.csv", f"time,n\n2026-11-20,1\n{csv}"), "text")
    load(engine, written(tmp_path, "a.ndjson", "".join(f'{{"time":{number}}}\n' for number in numbers)), "json")
    assert [date for date, _ in rows(engine, "csv")] == sorted(numbers.values())
    assert [date for date, _ in rows(engine, "text")] == sorted([datetime(2026, 11, 20), *numbers.values()])
    assert rows(engine, "json") == [(date,) for date in sorted(numbers.values())]


def test_numbers_that_are_no_dates_in_any_unit_are_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", "time,n\n1e300,1\n"), "t", time_field="time")
    assert caught.value.message.endswith("a.csv could not be read: line 2: time '1e300' is not a time")


def test_text_that_begins_with_a_plus_is_no_number(engine: DuckDBEngine, tmp_path: Path) -> None:
    csv = 'time,phone,c\n2026-01-01,+49170123456,"+1,2"\n2026-01-01,+4930123,"1,5"\n2026-01-01,+49301234,"2,5"\n'
    result = load(engine, written(tmp_path, "a.csv", csv), "t")
    assert [column.type for column in result.columns] == [Type.TIMESTAMP, Type.STR, Type.STR]
    assert rows(engine, "t")[0][1:] == ("+49170123456", "+1,2")


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
    assert result.notes == (f"dates were read from two columns: {day} and {clock}",)


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
    said = "dates were read from the column Datum and all are at midnight; "
    assert load(engine, path, "t").notes == (
        f"{said}Start, Ende, a,b hold times of day: --time-field Datum,Start reads one of them, too",
    )
    assert load(engine, path, "chosen", time_field="Datum,a,b").notes == (
        "dates were read from two columns: Datum and a,b",
    )
    assert rows(engine, "chosen")[0][0] == datetime(2026, 11, 21, 12)
    one = written(tmp_path, "b.csv", '"a,b";Uhr\n21.11.2026;10:00\n')
    assert load(engine, one, "one", time_field="a,b").notes == (
        f"{said.replace('Datum', 'a,b')}Uhr holds times of day: --time-field a,b,Uhr reads both",
    )
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "c.csv", "Datum,Uhr\n2026-11-21,noon\n"), "t", time_field="Datum,Uhr")
    assert (caught.value.message, caught.value.hint) == (
        "column 'Uhr' of c.csv has values that are no times of day",
        "they are written as 10:00 or 10:00:00; --time-field Datum reads the days alone",
    )


def test_the_day_of_a_parquet_file_has_the_time_of_day_beside_it(engine: DuckDBEngine, tmp_path: Path) -> None:
    days, clocks = pa.array([date(2026, 11, 1)]), pa.array([time(12, 3, 4)])
    pq.write_table(pa.table({"date": days, "time": clocks}), tmp_path / "a.parquet")
    load(engine, tmp_path / "a.parquet", "t")
    assert rows(engine, "t") == [(datetime(2026, 11, 1, 12, 3, 4), "12:03:04")]


def test_a_day_with_the_month_first_beside_a_time_of_day_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", "date,time\n11/21/2026,12:03\n"), "t")
    assert caught.value.hint == "give --time-format 'MM/dd/yyyy'; 'dd/MM/yyyy' skips such lines"


def test_numbers_that_int8_cannot_hold_are_kept_as_text(engine: DuckDBEngine, tmp_path: Path) -> None:
    days = pa.array([datetime(2026, 1, 1), datetime(2026, 1, 2)])
    numbers = pa.array([2**64 - 1, 7], pa.uint64())
    pq.write_table(pa.table({"time": days, "h": numbers, "n": pa.array([1, 2], pa.uint64())}), tmp_path / "a.parquet")
    result = load(engine, tmp_path / "a.parquet", "t")
    assert [column.type for column in result.columns] == [Type.TIMESTAMP, Type.STR, Type.INT8]
    assert [row[1:] for row in rows(engine, "t")] == [("18446744073709551615", 1), ("7", 2)]
    load(engine, tmp_path / "a.parquet", "f", types={"h": "float8"})
    assert [row[1] for row in rows(engine, "f")] == [2.0**64, 7.0]

    path = written(tmp_path, "a.ndjson", f'{{"time":"2026-01-01","h":{2**64 - 1}}}\n{{"time":"2026-01-02","h":7}}\n')
    result = load(engine, path, "n")
    assert result.first_skipped == "line 1: h '18446744073709551615' is not int8"
    assert result.notes == ("--types h=str keeps such values",)
    assert load(engine, path, "n", types={"h": "str"}, replace=True).skipped == 0


def test_numbers_of_parquet_that_are_none_become_null(engine: DuckDBEngine, tmp_path: Path) -> None:
    days = pa.array([datetime(2026, 1, day) for day in range(1, 5)])
    floats = {"x y": pa.array([1.5, float("nan"), float("-inf"), None]), "z": pa.array([1.0, 2.0, 3.0, 4.0])}
    pq.write_table(pa.table({"time": days, **floats}), tmp_path / "a.parquet")
    assert load(engine, tmp_path / "a.parquet", "t").notes == ("NaN and infinite values of x y were read as null",)
    assert [row[1:] for row in rows(engine, "t")] == [(1.5, 1.0), (None, 2.0), (None, 3.0), (None, 4.0)]


def test_a_value_that_does_not_fit_the_table_leads_to_a_type_that_holds_it(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-01,1\n"), "t")
    path = written(tmp_path, "b.csv", "time,n\n2026-01-01,1.5\n")
    with pytest.raises(UsageError) as caught:
        load(engine, path, "t")
    assert caught.value.message == "b.csv could not be read: line 2: n '1.5' is not int8"
    assert caught.value.hint == (
        "load into another table, or change n to float8 and load again: "
        "svcctl -p local query 'from t' --from 1970-01-01 -f parquet -o t.parquet && "
        "svcctl service load t.parquet -t t --replace --strict --types n=float8"
    )
    load(engine, path, "t", types={"n": "float8"}, replace=True)
    with pytest.raises(UsageError) as caught:
        load(engine, path, "u", types={"n": "int8"})
    assert caught.value.hint == "read it as another type, such as with --types n=float8"


@pytest.mark.parametrize(
    ("encoding", "mark", "named"),
    [("utf-16le", "\ufeff", "utf-16"), ("utf-16be", "\ufeff", "utf-16"), ("utf-16le", "", "utf-16le")],
)
def test_utf_16_is_named_with_what_converts_it(
    engine: DuckDBEngine, tmp_path: Path, encoding: str, mark: str, named: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", f"{mark}time,n\n2026-01-01,1\n".encode(encoding)), "t")
    assert caught.value.message == f"a.csv is text in {named.upper()}, not in UTF-8"
    assert caught.value.hint == f"convert it: iconv -f {named} -t utf-8 FILE | svcctl service load - -t …"


def test_a_file_without_a_value_in_a_column_has_no_say_in_its_type(engine: DuckDBEngine, tmp_path: Path) -> None:
    texts = {
        "a.csv": "time,n\n",
        "b.csv": "time,n,s\n2026-01-01,,\n",
        "c.ndjson": '{"time":"2026-01-02","n":null}\n',
        "d.csv": "time,n\n2026-01-03,1.5\n",
    }
    result = load(engine, [written(tmp_path, name, text) for name, text in texts.items()], "t")
    assert [column.type for column in result.columns] == [Type.TIMESTAMP, Type.FLOAT8, Type.STR]
    assert [row[1] for row in rows(engine, "t")] == [None, None, 1.5]


def test_a_file_with_nothing_but_a_heading_is_named_among_others(engine: DuckDBEngine, tmp_path: Path) -> None:
    heading, other = written(tmp_path, "a.csv", "time,n\n"), written(tmp_path, "b.csv", "time,n\n2026-01-01,1\n")
    assert load(engine, [heading, other], "t").empty == ("a.csv",)


def test_numbers_without_an_end_are_not_float8(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "time,f\n2026-01-01,1.5\n2026-01-01,inf\n2026-01-01,nan\n2026-01-01,1e999\n2026-01-01,\n"
    result = load(engine, written(tmp_path, "a.csv", text), "t", types={"f": "float8"})
    assert (result.rows, result.skipped, result.first_skipped) == (2, 3, "line 3: f 'inf' is not float8")
    assert [row[1] for row in rows(engine, "t")] == [1.5, None]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "time,s\n" + "2026-01-01,a\n" * 3 + f"2026-01-01,{'x' * (1 << 24)}\n2026-01-01,b\n"),
        ("a.csv", "time,s\n" + "2026-01-01,a\n" * 3 + f'2026-01-01,"{"x" * (1 << 24)}\n2026-01-01,b\n'),
        ("a.ndjson", '{"time":"2026-01-01"}\n' * 4 + f'{{"s":"{"x" * (1 << 24)}"}}\n'),
        ("a.log", "2026-01-01 00:00:00 a\n" * 4 + f"2026-01-01 00:00:00 {'x' * (1 << 24)}\n"),
    ],
)
def test_of_a_line_that_is_too_long_the_others_are_loaded(
    engine: DuckDBEngine, tmp_path: Path, name: str, text: str
) -> None:
    result = load(engine, written(tmp_path, name, text), "t")
    assert (result.rows, result.skipped, result.first_skipped) == (4, 1, "line 5: it is longer than 16 MiB")


def test_a_load_ends_when_it_may_not_go_on(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", CSV)
    for most in range(100):
        left = iter(range(most))

        def go_on(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise ServiceError("enough")

        try:
            loading.load(engine, [Source(path, path.name)], "t", Wishes(), go_on)
        except ServiceError as error:
            assert str(error) == "enough"  # noqa: PT017
            assert "t" not in engine.tables()
        else:
            assert most > 3
            break


TIMES = st.sampled_from(["2026-01-02", "2026-01-02T03:04:05Z", "1700000000", "01/02/2026 03:04", "never", ""])
TEXTS = st.text(st.sampled_from("aA\"',;:{}[]\\ \t\0é\ud83d\ude00-1.eE"), max_size=6)
ENTRIES: dict[str, st.SearchStrategy[str]] = {
    "csv": st.builds(
        "{},{},{}".format,
        TIMES,
        TEXTS.map(lambda text: text.replace('"', "")),
        st.sampled_from(["1", "1.5", "x", '"a ""b"""', '"a"b']),
    ),
    "ndjson": st.one_of(
        st.builds(
            lambda time, name, value: json.dumps({"time": time, name: value}),
            TIMES,
            TEXTS,
            st.recursive(st.none() | st.integers() | st.floats() | TEXTS, lambda one: st.lists(one, max_size=2)),
        ),
        TEXTS,
    ),
    "log": st.builds("{}{}".format, st.sampled_from(["2026-01-02 03:04:05 ", "2026-13-02 03:04:05 "]), TEXTS),
    "access": st.builds('h - - [{}] "GET {}" 200 -'.format, st.sampled_from(["02/Jan/2026:03:04:05 +0000", ""]), TEXTS),
    "syslog": st.builds("{} host {}".format, st.sampled_from(["Feb  2 03:04:05", "Feb 31 03:04:05", "<1>1"]), TEXTS),
    "logfmt": st.builds('time={} s="{}" n={}'.format, TIMES, TEXTS, TEXTS),
}
INTERNAL = re.compile(r"DuckDB|Error:|LINE \d|Exception|FROM |SELECT|CAST")


@pytest.mark.parametrize("kind", ENTRIES)
def test_whatever_a_file_holds_every_line_is_loaded_or_counted(tmp_path: Path, kind: str) -> None:
    @seed(1)
    @settings(max_examples=10, database=None, deadline=None, phases=[Phase.generate])
    @given(st.lists(ENTRIES[kind], min_size=1, max_size=20), st.sampled_from(["\n", "\r\n"]))
    def every_line(entries: list[str], end: str) -> None:
        text = "".join(entry.encode("utf-8", "replace").decode() + end for entry in entries)
        path = written(tmp_path, "a", ("time,s,n" + end if kind == "csv" else "") + text)
        with DuckDBEngine() as engine:
            refused = ""
            try:
                result = load(engine, path, "t", format=kind, time_field=None if FILE_KINDS[kind].pattern else "time")
            except UsageError as error:
                refused = error.message
            assert not INTERNAL.search(refused or result.first_skipped or "")
            if refused:
                return
            lines = [line for line in text.replace("\r\n", "\n").split("\n") if line]
            held = rows(engine, "t") if result.rows else []
            inside = sum(str(value).count("\n") for row in held for value in row)
            assert result.rows + result.skipped + inside == len(lines)

    every_line()


@pytest.mark.parametrize(
    ("values", "odd", "number"),
    [
        ("1 2 n/a 4", "'n/a' in line 4", "int8"),
        ("1 2.5 - " * 10, "'-' in line 4 and 9 other values", "float8"),
        ("7.0 x", "'x' in line 3", "float8"),
        ("5 12ab", None, ""),
        ("5 x y", None, ""),
        ("1 2.5 " * 10 + "- x", "'-' in line 22 and 1 other value", "float8"),
        ("12345 01234 54321", None, ""),  # kept as it is written
        ("a b c", None, ""),
    ],
)
def test_a_few_values_that_make_text_of_numbers_are_told(
    engine: DuckDBEngine, tmp_path: Path, values: str, odd: str | None, number: str
) -> None:
    lines = "".join(f"2026-01-01,{value}\n" for value in values.split())
    file = written(tmp_path, "a.csv", f"time,n\n{lines}")
    result = load(engine, file, "t")
    note = (
        f"n is text, not numbers, because of {odd}; in a query, {number}(n) is null there; "
        f"--types n={number} skips such lines"
    )
    assert (result.columns[1].type, result.notes) == (Type.STR, () if odd is None else (note,))
    assert load(engine, file, "t").notes == ()  # the table has it so already


def test_lines_of_key_and_value_get_a_column_for_each_key(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        'level=info ts=2026-01-02T10:00:00Z msg="it began" status=200 dur=1 code=007\n'
        'level=warn ts=2026-01-02T10:00:01Z msg="a \\"b\\" c=d\\n" status= user="" dur=2.5\n'
        "goroutine 1 [running]:\n"
        "level=error ts=2026-01-02T10:00:02Z msg=boom status=500 Level=x level=again\n"
    )
    result = load(engine, written(tmp_path, "app.log", text), "t")
    assert [(column.name, str(column.type)) for column in result.columns] == [
        *(("eventdate", "timestamp"), ("level", "str"), ("msg", "str"), ("status", "int8"), ("dur", "float8")),
        *(("code", "str"), ("user", "str"), ("Level_1", "str")),
    ]
    at = [datetime(2026, 1, 2, 10, 0, second) for second in range(3)]
    assert rows(engine, "t") == [
        (at[0], "info", "it began", 200, 1.0, "007", None, None),
        (at[1], "warn", 'a "b" c=d\n', None, 2.5, None, "", None),
        (at[2], "error", "boom", 500, None, None, None, "x"),
    ]
    assert (result.skipped, result.first_skipped) == (1, "line 3: 'goroutine 1 [running]:' is not a line of key=value")


@pytest.mark.parametrize(
    ("separator", "values", "note"),
    [
        (";", "1,500 3 10,50 n/a", "'10,50' in line 4"),
        (",", "1 " * 30 + "-0,125", "'-0,125' in line 32"),
        (";", "1,500 2,000", None),  # thousands
        (";", "1,500,000 2,5,1", None),
        (";", "10,50 a b", None),
    ],
)
def test_numbers_with_a_decimal_comma_are_told_with_what_makes_numbers_of_them(
    engine: DuckDBEngine, tmp_path: Path, separator: str, values: str, note: str | None
) -> None:
    lines = "".join(f'2026-01-01{separator}"{value}"\n' for value in values.split())
    result = load(engine, written(tmp_path, "a.csv", f"time{separator}kg (net)\n{lines}"), "t")
    said = (
        f"kg (net) is text, not numbers, because of decimal commas such as {note}; "
        'in a query, float8(replaceall(`kg (net)`, ",", ".")) makes numbers of it'
    )
    assert (result.columns[1].type, result.notes) == (Type.STR, () if note is None else (said,))


def test_dots_between_thousands_are_told_with_what_takes_them_away(engine: DuckDBEngine, tmp_path: Path) -> None:
    lines = "".join(f'2026-01-01,"{value}"\n' for value in ("1.234,50", "99,90", "7,5"))
    assert load(engine, written(tmp_path, "a.csv", f"time,sum\n{lines}"), "t").notes == (
        "sum is text, not numbers, because of decimal commas such as '1.234,50' in line 2; "
        'in a query, float8(replaceall(replaceall(sum, ".", ""), ",", ".")) makes numbers of it',
    )


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ("1,234 12 999", "'1,234' in line 2"),
        ("0.5 1,234 1234.5 -20,000", "'1,234' in line 3"),
        ("1,234 n/a", None),
        ("1,23,456 1,234", None),
        ("1,234.5.6 1,234", None),
    ],
)
def test_commas_that_may_separate_thousands_are_told_with_what_takes_them_away(
    engine: DuckDBEngine, tmp_path: Path, values: str, note: str | None
) -> None:
    lines = "".join(f'2026-01-01,"{value}"\n' for value in values.split())
    file = written(tmp_path, "a.csv", f"time,n\n{lines}")
    result = load(engine, file, "t")
    numbers = 'in a query, float8(replaceall(n, ",", "")) makes numbers of it'
    said = f"n is text, not numbers, because of commas between thousands such as {note}; {numbers}"
    assert (result.columns[1].type, result.notes) == (Type.STR, () if note is None else (said,))
    if note is not None:
        only = written(tmp_path, "b.csv", 'time,n\n2026-01-01,"1,234"\n')
        with pytest.raises(UsageError) as caught:
            load(engine, only, "numbers", types={"n": "float8"})
        assert (caught.value.message, caught.value.hint) == (
            "b.csv could not be read: line 2: n '1,234' is not float8",
            f"load it as text, without --types; {numbers}",
        )


@pytest.mark.parametrize(
    ("values", "type_", "numbers", "first"),
    [
        ("1,234.50 2,000.00 7", Type.FLOAT8, [1234.5, 2000.0, 7.0], "'1,234.50' in line 2 is 1234.5"),
        ("17 1,234 -12,345,678", Type.INT8, [17, 1234, -12345678], "'-12,345,678' in line 4 is -12345678"),
        ("0.25 999 1,234.5", Type.FLOAT8, [0.25, 999.0, 1234.5], "'1,234.5' in line 4 is 1234.5"),
    ],
)
def test_commas_that_cannot_be_decimal_are_read(
    engine: DuckDBEngine, tmp_path: Path, values: str, type_: Type, numbers: list[float], first: str
) -> None:
    lines = "".join(f'2026-01-01,"{value}"\n' for value in values.split())
    file = written(tmp_path, "a.csv", f"time,n (net)\n{lines}")
    result = load(engine, file, "t")
    note = f"commas between thousands were read in n (net): {first}; --types 'n (net)=str' keeps the text"
    assert (result.columns[1].type, result.notes) == (type_, (note,))
    assert [row[1] for row in rows(engine, "t")] == numbers
    kept = load(engine, file, "kept", types={"n (net)": "str"})
    assert ([row[1] for row in rows(engine, "kept")], kept.notes) == (values.split(), ())
    plain = written(tmp_path, "b.csv", "time,n (net)\n2026-01-02,5\n")
    assert load(engine, [plain, file], "both").columns[1].type == type_


def test_numbers_that_are_strings_in_json_are_told_with_what_reads_them(engine: DuckDBEngine, tmp_path: Path) -> None:
    lines = '{"time":"2026-01-01","v":200,"w":1.5}\n{"time":"2026-01-01","v":"404","w":"2"}\n'
    file = written(tmp_path, "a.ndjson", lines)
    assert load(engine, file, "t").notes == (
        'v is text, not numbers, because of strings such as "404" in line 2; --types v=int8 makes numbers of them',
        'w is text, not numbers, because of strings such as "2" in line 2; --types w=float8 makes numbers of them',
    )
    load(engine, file, "numbers", types={"v": "int8", "w": "float8"})
    assert [row[1:] for row in rows(engine, "numbers")] == [(200, 1.5), (404, 2.0)]


def test_the_hints_to_a_load_with_an_id_say_that_other_ids_are_forgotten(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", "time,a\n2026-01-01,1\n"), "t")
    forgets = "(the table forgets the IDs of its loads): svcctl -p local query 'from t' --from 1970-01-01"
    for text, hint in (
        ("time,a,b\n2026-01-02,1,2\n", f"make this one anew with its events and the file {forgets}"),
        ("time,a\n2026-01-02,1.5\n", f"change a to float8 and load again {forgets}"),
    ):
        source = Source(written(tmp_path, "b.csv", text), "b.csv")
        with pytest.raises(UsageError) as caught:
            loading.load(engine, [source], "t", Wishes(strict=True), load_id="21")
        assert hint in (caught.value.hint or "")
        assert (" --id 21" in (caught.value.hint or "")) == ("FILE" in (caught.value.hint or ""))


def test_csv_of_which_no_line_is_utf_8_is_told_before_anything_else(engine: DuckDBEngine, tmp_path: Path) -> None:
    latin = "Datum;Zeit;Kunde\n10.11.2026;10:15;Müller\n11.11.2026;10:20;Jäger\n".encode("latin-1")
    file = written(tmp_path, "a.csv", latin)
    for wished in (None, "Datum,Zeit", "Kunde"):
        with pytest.raises(UsageError) as caught:
            load(engine, file, "t", time_field=wished)
        assert (caught.value.message, caught.value.hint) == (
            "no line of a.csv could be read: it is not UTF-8, as in '10.11.2026;10:15;M\N{REPLACEMENT CHARACTER}ller'",
            "convert the text to UTF-8: iconv -f latin1 -t utf-8 FILE | svcctl service load - -t …",
        )


def test_a_file_of_nul_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    files = [written(tmp_path, "a.csv", "time\n2026-01-01\n"), written(tmp_path, "b.csv", b"\0" * 100)]
    with pytest.raises(UsageError) as caught:
        load(engine, files, "t")
    assert caught.value.message == "the first line of b.csv has the character NUL: it is not a text file in UTF-8"


def test_a_folder_gives_parquet_no_column(engine: DuckDBEngine, tmp_path: Path) -> None:
    folder = tmp_path / "dt=2026-01-01"
    folder.mkdir()
    pq.write_table(pa.table({"eventdate": [datetime(2026, 1, 1)], "n": [1]}), folder / "a.parquet")
    result = load(engine, folder / "a.parquet", "t")
    assert [column.name for column in result.columns] == ["eventdate", "n"]


def test_a_table_is_made_anew_with_a_further_column_as_the_hint_says(engine: DuckDBEngine, tmp_path: Path) -> None:
    old = tmp_path / "t.parquet"
    pq.write_table(pa.table({"eventdate": [datetime(2026, 1, 1, tzinfo=UTC)], "n": [1]}), old)
    load(engine, old, "t")
    new = written(tmp_path, "new.csv", "n,sent,made,extra\n2,2026-01-05,01/02/2026,7\n")
    wishes = {"time_field": "made", "time_format": "MM/dd/yyyy", "zone": "America/New_York", "types": {"extra": "str"}}
    with pytest.raises(UsageError) as caught:
        load(engine, new, "t", **wishes)
    assert (caught.value.message, caught.value.hint) == (
        "table 't' has no column 'sent', 'extra'",
        "it has eventdate, n; load into another table, or make this one anew with its events and the file: "
        "svcctl -p local query 'from t' --from 1970-01-01 -f parquet -o t.parquet && "
        "svcctl service load t.parquet FILE -t t --replace --time-field made --time-format MM/dd/yyyy "
        "--time-zone America/New_York --types extra=str",
    )
    with pytest.raises(UsageError) as caught:
        load(engine, new, "t", **wishes, format="csv")
    assert caught.value.hint == "it has eventdate, n; load into another table"
    load(engine, [old, new], "t", replace=True, **wishes)
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 1, None, None),
        (datetime(2026, 1, 2, 5), 2, "2026-01-05", "7"),
    ]
    other = written(tmp_path, "u.csv", "eventdate,n\n2026-01-01,1\n")
    with pytest.raises(UsageError) as caught:
        load(engine, [old, other], "t", time_field="maed")
    assert (caught.value.message, caught.value.hint) == (
        "no file has a column 'maed'",
        "leave out --time-field: all have eventdate",
    )


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_where_no_comma_separates_cells(
    engine: DuckDBEngine, tmp_path: Path, separator: str
) -> None:
    lines = ("time;sum;kg;n", "2026-01-01;1.234,50;2,000;1.234", "2026-01-02;-99,90;0,125;2.345", "2026-01-03;7;;3.456")
    file = written(tmp_path, "a.csv", "\n".join(lines).replace(";", separator))
    result = load(engine, file, "t")
    assert result.notes == (
        "decimal commas were read in sum, kg: '1.234,50' in line 2 is 1234.5; --types sum=str keeps the text",
        "'1.234' of n in line 2 is 1.234; if dots separate thousands there, --types n=str keeps the text",
    )
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 1234.5, 2.0, 1.234),
        (datetime(2026, 1, 2), -99.9, 0.125, 2.345),
        (datetime(2026, 1, 3), 7.0, None, 3.456),
    ]
    epochs = written(tmp_path, "b.csv", f"time{separator}n\n1767225600,5{separator}1\n")
    load(engine, epochs, "epochs")
    assert rows(engine, "epochs") == [(datetime(2026, 1, 1, 0, 0, 0, 500_000), 1)]
    kept = load(engine, file, "kept", types=dict.fromkeys(("sum", "kg", "n"), "str"))
    assert ([row[1:] for row in rows(engine, "kept")], kept.notes) == (
        [("1.234,50", "2,000", "1.234"), ("-99,90", "0,125", "2.345"), ("7", None, "3.456")],
        (),
    )
    fractions = written(tmp_path, "c.csv", f"time{separator}a{separator}b\n2026-01-01{separator}1,5{separator}1.25\n")
    assert len(load(engine, fractions, "fractions").notes) == 1


def test_a_value_that_makes_text_of_numbers_in_json_is_told(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = ",".join(f'{{"time": "2026-01-01", "n": {value}, "s": "x"}}' for value in ("1", '"n/a"', "2.5", "null"))
    whole = written(tmp_path, "whole.ndjson", rows.replace("2.5", "2").replace("},", "}\n"))
    assert "--types n=int8 skips" in load(engine, whole, "whole").notes[0]
    for name, place in (("a.json", "element 2"), ("a.ndjson", "line 2")):
        text = f"[{rows}]" if name == "a.json" else rows.replace("},", "}\n")
        result = load(engine, written(tmp_path, name, text), name.replace(".", "_"))
        assert result.notes == (
            f"n is text, not numbers, because of 'n/a' in {place}; in a query, float8(n) is null there; "
            "--types n=float8 skips such lines",
        )


def test_lines_that_begin_with_a_time_of_the_epoch_are_those_of_a_log(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "s.log", "1769853600.5 GET /x\n at 10\n1769853601 GET /y\n"), "s")
    load(engine, written(tmp_path, "ms.txt", "1769853600123: a b\n"), "ms")
    first = datetime(2026, 1, 31, 10)
    assert rows(engine, "s") == [
        (first.replace(microsecond=500_000), "GET /x\n at 10"),
        (first.replace(second=1), "GET /y"),
    ]
    assert rows(engine, "ms") == [(first.replace(microsecond=123_000), "a b")]
    for text in ("1769853600\n1769853601\n", "17698536001 a\n"):
        with pytest.raises(UsageError, match=r"^the format of n.log is not clear$"):
            load(engine, written(tmp_path, "n.log", text), "n")


@pytest.mark.parametrize("wishes", [{}, {"time_format": "HH:mm:ss"}])
def test_a_time_of_day_without_a_day_is_told_as_such(
    engine: DuckDBEngine, tmp_path: Path, wishes: dict[str, str]
) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", "time,n\n10:00:01,1\n"), "a", **wishes)
    assert (caught.value.message, caught.value.hint) == (
        "a.csv could not be read: line 2: time '10:00:01' has no day",
        "name the column of the day too, as in --time-field DATE,TIME; without one, write it before each time",
    )


def test_a_line_without_a_time_is_shown_by_itself(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 1: 'hello' is not a line with a time$"):
        load(engine, written(tmp_path, "a.log", "hello\nworld\n"), "a", format="log")


def test_a_file_whose_texts_make_text_of_another_files_numbers_is_told(engine: DuckDBEngine, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    texts = ("2026-01-01,1.5\n2026-01-02,2\n", "2026-01-03,\n", "2026-01-04,abc\n")
    files = [
        Source(written(tmp_path, f"{name}.csv", f"time,n\n{text}"), f"{name}.csv")
        for name, text in zip(names, texts, strict=True)
    ]
    why = "its values in c.csv; in a query, float8(n) is null there; --types n=float8 takes lines with numbers only"
    for ordered in (files, files[::-1]):
        result = loading.load(engine, ordered, "t", Wishes(replace=True), lambda: None)
        assert result is not None
        assert result.notes == (f"n is text, not numbers, because of {why}",)


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_the_values_that_make_text_of_many_columns_are_found_in_one_pass(
    engine: DuckDBEngine, tmp_path: Path, kind: str
) -> None:
    calls = []
    for count in (1, 20):
        names = ["time", *(f"n ({at})" for at in range(count))]
        values = [["2026-01-01", *[value] * count] for value in ("1", "2", "n/a", "4")]
        objects = "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in values)
        lines = "".join(f"{','.join(row)}\n" for row in (names, *values))
        text = lines if kind == "csv" else re.sub(r'"(\d)"', r"\1", objects)
        seen: list[int] = []
        file = Source(written(tmp_path, f"{count}.{kind}", text), "x")
        result = loading.load(engine, [file], f"t{count}", Wishes(), partial(seen.append, 1))
        place = "line 4" if kind == "csv" else "line 3"
        assert result is not None
        more = "17 more columns are text, not numbers, because of a few values: n (3), n (4), n (5) and 14 more"
        assert result.notes == (
            *(
                f"{name} is text, not numbers, because of 'n/a' in {place}; in a query, "
                f"int8(`{name}`) is null there; --types '{name}=int8' skips such lines"
                for name in names[1:4]
            ),
            *([more] if count > 1 else []),
        )
        calls.append(len(seen))
    assert calls[0] == calls[1]


def test_parquet_types_become_ours(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([datetime(2026, 1, 1, 0, 0, 0, 1999)], pa.timestamp("us")),
            "i16": pa.array([-1], pa.int16()),
            "u32": pa.array([2**32 - 1], pa.uint32()),
            "u64": pa.array([2**63 - 1], pa.uint64()),
            "f": pa.array([1.5], pa.float32()),
            "list": pa.array([[1, None]], pa.list_(pa.int32())),
            "s": pa.array(["x"]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    assert load(engine, tmp_path / "b.parquet.gz", "packed").rows == table.num_rows
    assert [column.type for column in load(engine, tmp_path / "a.parquet", "t").columns] == [
        Type.TIMESTAMP,
        Type.INT4,
        Type.INT8,
        Type.INT8,
        Type.FLOAT8,
        Type.STR,
        Type.STR,
    ]
    assert rows(engine, "t") == [(datetime(2026, 1, 1, 0, 0, 0, 1000), -1, 2**32 - 1, 2**63 - 1, 1.5, "[1,null]", "x")]


def test_access_logs_common_and_combined(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        '192.0.2.1 - ada [10/Oct/2025:13:55:36 -0700] "GET /a?b=1 HTTP/1.0" 200 2326 "https://example.com/" '
        '"curl/8, \\"x\\""\n'
        '2001:db8::1 - - [10/Oct/2025:20:55:37 +0000] "POST /a b HTTP/1.1" 404 -\n'
        "noise\n"
        '192.0.2.2 - - [10/Oct/2025:20:55:38 +0000] "-" 408 0 "-" "-"\n'
    )
    result = load(engine, written(tmp_path, "access.log", text), "web.access")
    assert (result.rows, result.skipped, result.first_skipped) == (
        3,
        1,
        "line 3: 'noise' is not a line of an access log",
    )
    assert [column.name for column in result.columns] == [
        "eventdate",
        "clientIp",
        "user",
        "method",
        "uri",
        "protocol",
        "statusCode",
        "bytes",
        "referralUri",
        "userAgent",
    ]
    at = datetime(2025, 10, 10, 20, 55, 36)
    assert rows(engine, "web.access") == [
        (at, "192.0.2.1", "ada", "GET", "/a?b=1", "HTTP/1.0", 200, 2326, "https://example.com/", 'curl/8, \\"x\\"'),
        (at.replace(second=37), "2001:db8::1", None, "POST", "/a b", "HTTP/1.1", 404, None, None, None),
        (at.replace(second=38), "192.0.2.2", None, None, None, None, 408, 0, None, None),
    ]


@pytest.mark.parametrize("rest", ["", ' "-" "curl/8"'])
def test_the_address_of_an_access_log_has_no_brackets_and_no_port(
    engine: DuckDBEngine, tmp_path: Path, rest: str
) -> None:
    hosts = ("[::1]:54321", "[2001:db8::1]", "::ffff:192.0.2.1", "192.0.2.1:8080", "192.0.2.1", "web-1.example:80", "-")
    request = '- - [10/Oct/2025:20:55:37 +0000] "GET / HTTP/1.1" 200 -'
    text = "".join(f"{host} {request}{rest}\n" for host in hosts)
    assert load(engine, written(tmp_path, "access.log", text), "web.access").rows == len(hosts)
    assert [row[1] for row in rows(engine, "web.access")] == [
        *("::1", "2001:db8::1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1", "web-1.example:80", "-"),
    ]


def test_an_access_log_of_several_servers_keeps_the_server(engine: DuckDBEngine, tmp_path: Path) -> None:
    line = 'shop.example:443 192.0.2.1 - - [10/Oct/2025:20:55:37 +0000] "GET / HTTP/1.1" 200 9 "-" "curl/8"\n'
    assert load(engine, written(tmp_path, "other.log", line), "web").skipped == 0
    (row,) = rows(engine, "web")
    at = datetime(2025, 10, 10, 20, 55, 37)
    assert row[:9] == (at, "shop.example:443", "192.0.2.1", None, "GET", "/", "HTTP/1.1", 200, 9)


def test_log_lines_that_begin_with_a_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "no time\n2026-01-02 10:11:12 status installed foo:amd64 1.2\n2026-01-02T10:11:13,250+01:00 ünïcode\r\n"
    result = load(engine, written(tmp_path, "dpkg.log.gz", text), "dpkg", format="log")
    assert (result.rows, result.skipped, result.first_skipped) == (
        2,
        1,
        "line 1: 'no time' is not a line with a time",
    )
    assert rows(engine, "dpkg") == [
        (datetime(2026, 1, 2, 9, 11, 13, 250_000), "ünïcode"),
        (datetime(2026, 1, 2, 10, 11, 12), "status installed foo:amd64 1.2"),
    ]


def test_the_error_log_of_a_web_server_is_a_log(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        '2026/01/31 10:00:00 [error] 1234#0: *5 open() "/x" failed, client: 10.0.0.1, server: _\n'
        "2026/01/31 10:00:01 [emerg] 1234#0: bind() failed\n  and why\n"
    )
    assert load(engine, written(tmp_path, "error.log", text), "web.errors").skipped == 0
    assert rows(engine, "web.errors") == [
        (datetime(2026, 1, 31, 10), '[error] 1234#0: *5 open() "/x" failed, client: 10.0.0.1, server: _'),
        (datetime(2026, 1, 31, 10, 0, 1), "[emerg] 1234#0: bind() failed\n  and why"),
    ]


def test_the_time_of_a_log_line_may_be_in_brackets(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        "[2026-01-31 10:00:00] live.ERROR: it failed\n[stacktrace]\n#0 main.php(1)\n"
        "[2026-01-31T10:00:00.250000+00:00] live.INFO: done []\n[2026-01-31 11:00:01 +0100] [7] [INFO] Booting\n"
    )
    assert load(engine, written(tmp_path, "live.log", text), "live").skipped == 0
    assert rows(engine, "live") == [
        (datetime(2026, 1, 31, 10), "live.ERROR: it failed\n[stacktrace]\n#0 main.php(1)"),
        (datetime(2026, 1, 31, 10, 0, 0, 250_000), "live.INFO: done []"),
        (datetime(2026, 1, 31, 10, 0, 1), "[7] [INFO] Booting"),
    ]


def test_the_time_of_a_log_line_may_name_a_zone(engine: DuckDBEngine, tmp_path: Path) -> None:
    zones = {"UTC": 6, "GMT": 6, "Z": 6, "CET": 5, "CEST": 4, "EDT": 10, "America/New_York": 11, "-03": 9}
    text = "".join(f"2026-11-20 06:00:01.5 {zone} [1] LOG: {zone}\n" for zone in zones)
    result = load(engine, written(tmp_path, "z.log", f"{text}[2026-11-20 06:00:00 EST] [1]\n"), "z", zone="Asia/Tokyo")
    assert (result.skipped, result.notes) == (0, ())
    assert rows(engine, "z") == sorted(
        [
            *((datetime(2026, 11, 20, hour, 0, 1, 500_000), f"[1] LOG: {zone}") for zone, hour in zones.items()),
            (datetime(2026, 11, 20, 11), "[1]"),
        ],
        key=lambda row: row[0],
    )


def test_a_zone_that_means_several_is_not_read_which_a_note_says(engine: DuckDBEngine, tmp_path: Path) -> None:
    first = "2026-11-20 06:00:01 UTCP up\n"
    log = written(tmp_path, "a.log", f"{first}2026-11-20 06:00:02 CST [1] up\n")
    note = "the zone CST, which names several, was not read; give --time-zone"
    assert load(engine, log, "t").notes == (note,)
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
    assert notes == tuple(
        f"the zone {zone}, which names several, was read so that '{date} {zone}' is 2026-11-20 {hour}:00:00 in UTC; "
        f"for another one, write its offset: sed 's/ {zone}/+HH:MM/' FILE | svcctl service load - -t …"
        for zone, date, hour in [("CST", "2026-11-20 06:00:00", 12), ("BST", "2026-11-20 06:00", "00")]
    )


def test_the_time_of_a_log_line_may_be_that_of_c_and_brackets_may_hold_more(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    text = (
        "[Sat Jan 31 10:00:00 2026] [notice] Apache configured\n  and running\n"
        "[Sat Jan 31 10:00:00.123456 2026] [core:error] [pid 7] no file\nSun Feb  1 10:00:00 2026 plain\n"
        "[2026-02-02 10:00:00 ERROR] foo\n"
    )
    result = load(engine, written(tmp_path, "error.log", text), "errors", zone="Europe/Berlin")
    assert (result.rows, result.skipped) == (4, 0)
    assert rows(engine, "errors") == [
        (datetime(2026, 1, 31, 9), "[notice] Apache configured\n  and running"),
        (datetime(2026, 1, 31, 9, 0, 0, 123_000), "[core:error] [pid 7] no file"),
        (datetime(2026, 2, 1, 9), "plain"),
        (datetime(2026, 2, 2, 9), "[ERROR] foo"),
    ]


@pytest.mark.parametrize("format", [None, "log"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("update-alternatives {}: run with --all", "update-alternatives run with --all"),
        ("[pid 12] {} up", "[pid 12] up"),
        ("INFO {},250 up, 2", "INFO up, 2"),
        ("INFO:root:{} up", "INFO:root:up"),
        ("[INFO] [{}] up", "[INFO] up"),
        ("[I {} main] up", "[I main] up"),
        ("[I {}] up", "[I] up"),
        ('time="{}" INFO up', "INFO up"),
        ("level=info ts={} n=1", "level=info n=1"),
        ("(12) ({}) up", "(12) up"),
        ("7:M {named} * up", "7:M * up"),
        ("{named} up", "up"),
        ('192.0.2.1 - ada [{access} +0000] "GET /" 1.5', '192.0.2.1 - ada "GET /" 1.5'),
        ("INFO {interface} up", "INFO up"),
    ],
)
def test_the_time_of_a_log_line_may_have_words_before_it(
    engine: DuckDBEngine, tmp_path: Path, line: str, message: str, format: str | None
) -> None:
    lines = [
        line.format(at, named=f"{at:%d %b %Y %H:%M:%S.250}", access=f"{at:%d/%b/%Y:%X}", interface=f"{at:%d/%m/%Y %X}")
        for at in (datetime(2026, 1, 31, 10), datetime(2026, 1, 31, 10, 0, 1))
    ]
    more = "\nwhich is no entry of 2026-01-30 10:00:00 and\n  2026-01-30 10:00:00 neither"
    result = load(
        engine, written(tmp_path, "app.log", f"{lines[0]}{more}\n{lines[1]}"), "app", format=format, strict=True
    )
    assert (result.oldest or 0) // 1000 == at("2026-01-31T10:00:00") // 1000
    assert [row[1] for row in rows(engine, "app")] == [f"{message}{more}", message]


def test_the_lines_of_a_log_may_begin_with_blanks(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "    INFO 2026-01-31 10:00:00 up\n  and away\n CRITICAL 2026-01-31 10:00:01 down\n"
    load(engine, written(tmp_path, "a.log", text), "t")
    assert [row[1] for row in rows(engine, "t")] == ["INFO up\n  and away", "CRITICAL down"]


@pytest.mark.parametrize("options", [{}, {"format": "log"}, {"time_format": "yyyy-MM-dd  HH:mm:ss"}])
def test_a_log_may_have_two_blanks_between_date_and_time_and_no_text_behind_it(
    engine: DuckDBEngine, tmp_path: Path, options: dict[str, Any]
) -> None:
    text = "\nStart-Date: 2026-01-31  10:00:00\nInstall: a:amd64 (1, 2)\nEnd-Date: 2026-01-31  10:00:01\n"
    load(engine, written(tmp_path, "history.log", text), "apt", **options)
    assert rows(engine, "apt") == [
        (datetime(2026, 1, 31, 10), "Start-Date: Install: a:amd64 (1, 2)"),
        (datetime(2026, 1, 31, 10, 0, 1), "End-Date: "),
    ]


OTHER_LOGS = {
    "squid": "1769853600.123    100 10.0.0.1 TCP_MISS/200 1234 GET http://a/ - DIRECT/1.2.3.4 text/html\n",
    "auditd": 'type=CWD msg=audit(1769853600.123:456): cwd="/root"\n',
}
AFTERWARDS = {
    "squid": (100, "10.0.0.1", "TCP_MISS/200", 1234, "GET", "http://a/", "-", "DIRECT/1.2.3.4", "text/html"),
    "auditd": ("CWD", 456, "/root"),
}


@pytest.mark.parametrize("name", OTHER_LOGS)
def test_a_known_log_that_is_not_read_is_refused_with_what_makes_it_readable(
    engine: DuckDBEngine, tmp_path: Path, name: str
) -> None:
    path = written(tmp_path, "a.log", OTHER_LOGS[name])
    with pytest.raises(UsageError, match=f"^a\\.log is a log of {name}, which is not read as it is$") as caught:
        load(engine, path, "t")
    command, _, loading = (caught.value.hint or "").partition(" | svcctl service load - ")
    text = subprocess.run(["sh", "-c", command.replace("FILE", str(path))], capture_output=True, check=True).stdout
    format = "tsv" if loading.startswith("-f tsv") else None
    load(engine, written(tmp_path, "b", text), "t", format=format)
    assert rows(engine, "t") == [(datetime(2026, 1, 31, 10, 0, 0, 123_000), *AFTERWARDS[name])]


ANSWER = "the answer of a query as one document"
UNREAD = {
    "a.json": (b'{"success":true,"msg":"","status":0,"cid":"1","object":[\n{"eventdate":0,"n":1}\n]}\n', ANSWER),
    "b.ndjson": (b'{"m":{"n":{"type":"int4","index":0}},"metadata":[{"name":"n"}],"d":[[1]]}\n', ANSWER),
    "c.xml": (b'<?xml version="1.0" encoding="UTF-8"?>\n<events>\n</events>\n', "a document of XML"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_an_answer_that_is_one_document_is_refused_whole(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    content, what = UNREAD[name]
    (tmp_path / name).write_bytes(content)
    for format in (None, "json") if what == ANSWER else (None,):
        with pytest.raises(UsageError) as caught:
            load(engine, tmp_path / name, "t", format=format)
        assert str(caught.value) == f"{name} is {what}, which is not read as it is"
    assert "t" not in engine.tables()


@pytest.mark.parametrize(
    ("name", "why", "other"),
    [
        ("nightly.group", "group is a word of the query language", "nightly.group_"),
        ("2026.orders", "2026 begins with a digit", "t2026.orders"),
    ],
)
def test_a_name_that_a_query_cannot_read_is_refused_for_a_new_table(
    engine: DuckDBEngine, tmp_path: Path, name: str, why: str, other: str
) -> None:
    path = written(tmp_path, "a.csv", CSV)
    with pytest.raises(UsageError) as caught:
        load(engine, path, name)
    assert str(caught.value) == f"'{name}' cannot name a table: {why}"
    assert caught.value.hint == f"use another name, such as {other}"
    engine.create(name, CSV_COLUMNS)
    assert load(engine, path, name).rows == 3


def _tar(text: bytes) -> bytes:
    with tarfile.open(fileobj=(packed := io.BytesIO()), mode="w:gz") as archive:
        entry = tarfile.TarInfo("access.log")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


PACKED: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "a.log.bz2": (bz2.compress, "packed with bzip2", "unpack it: bzcat FILE | svcctl service load - -t …"),
    "a.log.xz": (lzma.compress, "packed with xz", "unpack it: xzcat FILE | svcctl service load - -t …"),
    "a.tgz": (_tar, "a tar archive", "unpack it with 'tar -xf FILE', and load the files in it"),
    "a.xlsx": (lambda _: b"PK\x03\x04\x14\n", "a spreadsheet or another zip archive", "save it as csv, or unpack it"),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("format", [None, "log"])
def test_a_file_that_is_packed_otherwise_is_refused_with_what_unpacks_it(
    engine: DuckDBEngine, tmp_path: Path, name: str, format: str | None
) -> None:
    pack, what, hint = PACKED[name]
    (tmp_path / name).write_bytes(pack(b"2026-01-31 10:00:00 a\n"))
    with pytest.raises(UsageError) as caught:
        load(engine, tmp_path / name, "t", format=format)
    assert (str(caught.value), caught.value.hint) == (f"{name} is {what}, which is not read as it is", hint)


def test_a_comment_that_names_a_time_begins_no_log_unless_it_is_one(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "slow", "# Time: 2026-01-31 10:00:00\n# Time: 2026-01-31 10:00:01\nSELECT 1;\n")
    with pytest.raises(UsageError, match=r"^the format of slow is not clear$"):
        load(engine, path, "t")
    load(engine, path, "t", format="log")
    assert [row[1] for row in rows(engine, "t")] == ["# Time: ", "# Time: SELECT 1;"]


@pytest.mark.parametrize("format", [None, "log"])
def test_the_time_of_a_log_line_may_begin_with_the_day(
    engine: DuckDBEngine, tmp_path: Path, format: str | None
) -> None:
    text = "05/11/2026 10:00 one\n  more of one\n[21/11/2026 10:00:01.5]  2, two\n"
    result = load(engine, written(tmp_path, "app.log", text), "app", format=format, zone="Europe/Berlin", strict=True)
    assert rows(engine, "app") == [
        (datetime(2026, 11, 5, 9), "one\n  more of one"),
        (datetime(2026, 11, 21, 9, 0, 1, 500_000), "2, two"),
    ]
    assert result.notes == ()
    american = written(tmp_path, "us.log", "05/11/2026 10:00:00 one\n11/21/2026 10:00:00 two\n")
    with pytest.raises(UsageError) as caught:
        load(engine, american, "us", format=format)
    assert (caught.value.message, caught.value.hint) == (
        "us.log could not be read: line 2: eventdate '11/21/2026 10:00:00' has the month first, and such dates are "
        "read as day/month",
        "give --time-format 'MM/dd/yyyy HH:mm:ss'; 'dd/MM/yyyy HH:mm:ss' skips such lines",
    )
    with pytest.raises(UsageError, match=r"is not (clear|a line with a time)"):
        load(engine, written(tmp_path, "pm.log", "05/11/2026 10:00:00 PM one\n"), "pm", format=format)


@pytest.mark.parametrize(
    ("time_format", "line"),
    [
        ("dd.MM.yyyy HH:mm:ss", "31.01.2026 10:00:00"),
        ("d-MMM-yyyy h:mm a", "[31-Jan-2026 10:00 AM]"),
        ("%Y%m%d %H%M%S", "20260131 100000"),
        ("yyyy/MM/dd HH:mm:ss.SSS XX", "2026/01/31 11:00:00.000 +0100"),
    ],
)
def test_a_format_tells_the_time_at_the_beginning_of_log_lines(
    engine: DuckDBEngine, tmp_path: Path, time_format: str, line: str
) -> None:
    text = f"{line} one\n  more of one\n{line} 2, two\n"
    result = load(engine, written(tmp_path, "app.log", text), "app", time_format=time_format, strict=True)
    assert result.rows == 2
    assert rows(engine, "app") == [
        (datetime(2026, 1, 31, 10), "one\n  more of one"),
        (datetime(2026, 1, 31, 10), "2, two"),
    ]
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "b.log", "2026 x\n"), "app", time_format=time_format, format="log")
    assert caught.value.message == "b.log could not be read: line 1: '2026 x' is not a line with a time"


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


AMBIGUOUS = "dates such as '{}' were read as day/month; as month/day they are read with --time-format 'MM/dd/yyyy{}'"


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
    assert (result.rows, result.skipped, list(result.notes)) == (len(dates) - skipped, skipped, notes)


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
    assert (caught.value.message, caught.value.hint) == (
        f"{name} could not be read: line {line}: time '02/13/2026 10:00{half}' has the month first, and such dates "
        "are read as day/month",
        f"give --time-format 'MM/dd{pattern}'; 'dd/MM{pattern}' skips such lines",
    )
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


def test_an_existing_table_takes_what_fits_and_counts_the_rest(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", [CSV_COLUMNS[0], Column("ip", Type.IP4), Column("n", Type.INT4), Column("absent", Type.STR)])
    text = "time,ip,n\n2026-01-01,192.0.2.1,1\n2026-01-01,192.0.2.256,2\n2026-01-01,10.0.0.1,1.5\n2026-01-02,,3\n"
    result = load(engine, written(tmp_path, "a.csv", text), "t")
    assert (result.rows, result.skipped, result.first_skipped) == (2, 2, "line 3: ip '192.0.2.256' is not ip4")
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 0xC0000201, 1, None),
        (datetime(2026, 1, 2), None, 3, None),
    ]


def test_a_table_that_another_load_makes_meanwhile_takes_what_fits(tmp_path: Path) -> None:
    first, second = (written(tmp_path, f"{n}.csv", f"timestamp,n\n2026-01-02,{n}\n") for n in ("1.5", "2"))
    with LakeEngine(Lake(str(tmp_path / "tables"), {})) as engine:

        def go_on() -> None:
            if "t" not in engine.tables():
                loading.load(engine, [Source(first, "first")], "t", Wishes())

        loaded = loading.load(engine, [Source(second, "second")], "t", Wishes(), go_on)
        assert loaded is not None
        assert (loaded.rows, loaded.before, loaded.columns[1]) == (1, 1, Column("n", Type.FLOAT8))


def test_older_events_go_to_the_end_of_an_existing_table(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-02,1\n"), "t")
    load(engine, written(tmp_path, "b.csv", "time,n\n2026-01-01,2\n"), "t")
    assert rows(engine, "t") == [(datetime(2026, 1, 2), 1), (datetime(2026, 1, 1), 2)]
    assert not engine.table("t").ordered


def test_what_stands_in_quotes_in_a_heading_does_not_separate_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", 'time,"a|b|c"\n2026-01-01,1\n'), "t")
    assert [column.name for column in engine.table("t").columns] == ["eventdate", "a|b|c"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_name_of_a_column_may_be_written_as_a_number_a_date_or_a_truth_value(
    engine: DuckDBEngine, tmp_path: Path, separator: str
) -> None:
    names = ["200", "1.50", "true", "2026-11-20", "2026-11-21 10:00", "null"]
    heading = separator.join(["time", *names])
    load(engine, written(tmp_path, "a.log", f"{heading}\n{separator.join(['2026-01-01', *'123456'])}\n"), "t")
    assert [column.name for column in engine.table("t").columns] == ["eventdate", *names]
    assert rows(engine, "t") == [(datetime(2026, 1, 1), 1, 2, 3, 4, 5, 6)]


def will_be_text(name: str) -> str:
    return f"{name} is text; --types {name}=timestamp makes times of it"


@pytest.mark.parametrize(
    ("header", "chosen", "notes"),
    [
        ("ts,time,n", "time", ["dates were read from the column time, not from ts", will_be_text("ts")]),
        ("Date,created", "Date", ["dates were read from the column Date, not from created", will_be_text("created")]),
        ("created,n,m", "created", ["dates were read from the column created"]),
        ("time,n", "time", []),
        ("eventdate,time,n", "eventdate", [will_be_text("time")]),
    ],
)
def test_the_time_is_found_by_name_or_because_only_one_column_is_a_time(
    engine: DuckDBEngine, tmp_path: Path, header: str, chosen: str, notes: list[str]
) -> None:
    times = {name: f"2026-01-0{day}" for day, name in enumerate(["ts", "time", "Date", "created", "eventdate"], 1)}
    path = written(
        tmp_path, "a.csv", header + "\n" + ",".join(times.get(name, "5") for name in header.split(",")) + "\n"
    )
    assert list(load(engine, path, "t").notes) == notes
    assert rows(engine, "t")[0][0] == datetime.fromisoformat(times[chosen])
    others = [note for note in notes if "--types" in note]
    assert list(load(engine, path, "named", time_field=chosen).notes) == others


def test_versions_are_no_times(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "host,release,seen\nw1,5.10.1,2026-11-22 10:00\nw2,6.1,never\n")
    with pytest.raises(UsageError) as caught:
        load(engine, path, "t")
    assert caught.value.message == (
        "each event needs a time, and the column seen of a.csv has times and others: 'never' in line 3 is not read as "
        "one"
    )
    text = "host,said\nw1,2026-11-22 10:00\nw2,up\nw3,down\n"  # a text that happens to be a time is no column of times
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "d.csv", text), "t")
    assert caught.value.hint == "name it with --time-field: host, said; if none has it, add a column of times"
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "c.csv", "host,release\nw1,5.10.1\nw2,6.1\n"), "t")
    assert caught.value.hint == "name it with --time-field: host, release; if none has it, add a column of times"
    whole = written(tmp_path, "b.csv", "host,release,seen\nw1,5.10.1,2026-11-22 10:00\n")
    assert load(engine, whole, "t").notes == ("dates were read from the column seen",)


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
    assert load(engine, path, "t", zone="Europe/Berlin").notes == ("dates were read from the column made",)
    assert rows(engine, "t") == [
        (datetime(2025, 12, 31, 23), 1),
        (datetime(2026, 1, 2, 9), 1),
        (datetime(2026, 1, 3, 9), 1),
        (datetime(2026, 1, 4, 10, 0, 0, 500_000), 1),
    ]


@pytest.mark.parametrize(
    ("text", "options", "message", "hint"),
    [
        (
            "a,b\n1,2\n",
            {},
            "each event needs a time, and it is not clear which column of a.csv has it",
            "name it with --time-field: a, b; if none has it, add a column of times",
        ),
        (
            "n,made,seen,name\n1,2026-01-31,2026-02-01,a\n",
            {},
            "each event needs a time, and it is not clear which column of a.csv has it",
            "name one of those with times with --time-field: made, seen",
        ),
        (
            "n,made,seen\n1,01/31/2026 10:00,02/13/2026 10:00\n",
            {},
            "each event needs a time, and it is not clear which column of a.csv has it",
            "name one of those with times with --time-field: made, seen",
        ),
        (
            "n,made\n1,01/31/2026 10:00 PM\n",
            {},
            "a.csv could not be read: line 2: made '01/31/2026 10:00 PM' has the month first, and such dates are read "
            "as day/month",
            "give --time-format 'MM/dd/yyyy hh:mm a'; 'dd/MM/yyyy hh:mm a' skips such lines",
        ),
        (
            "# made by x, on y\ntime,v\n2026-01-01,2\n",
            {},
            "a.csv begins with a comment, not with the names of its columns: '# made by x'",
            "leave the comments out: grep -v '^#' FILE | svcctl service load - -t …",
        ),
        (
            "Report of November\n\ntime,v\n2026-01-01,2\n",
            {},
            "a.csv begins with a title, not with the names of its columns: 'Report of November'",
            "begin with the line of the names, the Nth: tail -n +N FILE | svcctl service load - -t …",
        ),
        *(
            (
                text,
                options,
                f"the first line of a.csv looks like data: '{name}'; it must name the columns",
                "put a line of names before it: (echo time,…; cat FILE) | svcctl service load - -t …",
            )
            for name, text, options in (
                ("2026-11-21 10:00", "2026-11-21 10:00,ann,5\n2026-11-21 11:00,bob,7\n", {}),
                ("21/11/2026 10:00:00", "ann;21/11/2026 10:00:00\nbob;21/11/2026 11:00:00\n", {}),
                ("20261121", "ann\t20261121\nbob\t20261122\n", {"time_format": "yyyyMMdd"}),
                ("1763719200", "1763719200,ann\n1763719300,bob\n", {}),
                ("2026-11-21 10:00", "2026-11-21 10:00,5\n2026-11-21 11:00,7\n", {"time_field": "time"}),
                ("2026-11-21 10:00", "2026-11-21 10:00,ann", {}),
                ("11/22/2026 10:00", "11/22/2026 10:00,5\n", {}),
                ("11/22/2026 10:00", "11/22/2026 10:00,5\n11/22/2026 10:01,6\n", {}),
                ("Nov 22 2026 10:00:00", "Nov 22 2026 10:00:00,5\n", {}),
                ("Nov 22 2026 10:00:00", "Nov 22 2026 10:00:00,5\nNov 22 2026 10:01:00,6\n", {}),
            )
        ),
        (
            "#id,b\n1,2\n",
            {},
            "each event needs a time, and it is not clear which column of a.csv has it",
            "name it with --time-field: #id, b; if none has it, add a column of times",
        ),
        ("a,b\n1,2\n", {"time_field": "c"}, "a.csv has no column 'c'", "its columns are a, b"),
        *(
            (
                f"id,when\n1,2026-11-20T10:00:00+02:00\n2,\n3,{other}\n",
                {},
                "each event needs a time, and the column when of a.csv has times and others: "
                f"'{other}' in line 4 is not read as one",
                f"{hint}; or name another column with --time-field: id, when",
            )
            for other, hint in (
                ("11/21/2026 10:00 PM", "write all in one way"),
                ("n/a", "--time-field when skips such lines"),
            )
        ),
        (
            "a,b\nx,2\n",
            {"time_field": "a"},
            "a.csv could not be read: line 2: a 'x' is not a time",
            "describe how it is written with --time-format, such as 'dd/MM/yyyy HH:mm:ss'",
        ),
        (
            "time,b\nx,2\n",
            {"time_format": "dd/MM"},
            "a.csv could not be read: line 2: time 'x' is not a time",
            "it is not written as in --time-format 'dd/MM'",
        ),
        (
            "time,b\nx,2\n",
            {},
            "a.csv could not be read: line 2: time 'x' is not a time",
            "describe how it is written with --time-format, such as 'dd/MM/yyyy HH:mm:ss', or name another field with "
            "--time-field",
        ),
        (
            "eventdate,b\n2026-01-01,2\n",
            {"time_field": "b"},
            "a.csv has a column eventdate, so 'b' cannot take its place",
            None,
        ),
        ("", {}, "no events in a.csv, and not even a heading", "nothing was changed"),
        ("a,b\n", {"replace": True}, "no events in a.csv", "nothing was changed"),
        (
            "web1,2026-01-01\n",
            {},
            "the first line of a.csv looks like data: '2026-01-01'; it must name the columns",
            "put a line of names before it: (echo time,…; cat FILE) | svcctl service load - -t …",
        ),
        (
            "a,b\n1,2\n",
            {"format": "yaml"},
            "unknown format 'yaml'",
            "formats are csv, tsv, ndjson, json, parquet, access, log, syslog, logfmt",
        ),
        ("a,b\n1,2\n", {"format": "ndjson"}, "a.csv has no line that is a JSON object", None),
        (
            "time,new\n2026-01-01,2\n",
            {"table": "there"},
            "table 'there' has no column 'new'",
            "it has eventdate; load into another table, or make this one anew with its events and the file: "
            "svcctl -p local query 'from there' --from 1970-01-01 -f parquet -o there.parquet && "
            "svcctl service load there.parquet FILE -t there --replace",
        ),
        ("time\n2026-01-01\n", {"table": "no table"}, "'no table' cannot name a table", None),
    ],
)
def test_what_cannot_be_loaded_is_refused_and_leaves_nothing(
    engine: DuckDBEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: dict[str, str],
    message: str,
    hint: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    engine.create("there", CSV_COLUMNS[:1])
    written(tmp_path, "a.csv", text)
    with pytest.raises(UsageError) as caught:
        load(engine, Path("a.csv"), **({"table": "t"} | options))
    assert caught.value.message == message
    if "cannot name" not in message:
        assert caught.value.hint == hint
    assert list(engine.tables()) == ["there"]
    assert rows(engine, "there") == []


def test_a_file_that_is_not_there_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot read nope.csv: No such file or directory$"):
        load(engine, tmp_path / "nope.csv", "t")


def test_every_kind_of_file_has_a_reader() -> None:
    assert list(FILE_KINDS) == list(READERS)


TABLES = {
    "csv": b"eventdate,n\n" + b"".join(b"2026-01-02 10:00:%02d,%d\n" % (n % 60, n * n) for n in range(5000)),
    "tsv": b"eventdate\tn\n" + b"".join(b"2026-01-02 10:00:%02d\t%d\n" % (n % 60, n * n) for n in range(5000)),
    "ndjson": b"".join(b'{"eventdate":"2026-01-02 10:00:%02d","n":%d}\n' % (n % 60, n * n) for n in range(5000)),
    "log": b"".join(b"2026-01-02 10:00:%02d number %d\n" % (n % 60, n * n) for n in range(5000)),
}
CODECS = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}
HARM: dict[str, Callable[[bytes], bytes]] = {
    "cut in the middle": lambda data: data[: len(data) // 2],
    "cut by a byte": lambda data: data[:-1],
    "another check sum": lambda data: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:],
    "another last byte": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "a bit flipped": lambda data: (
        data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]
    ),
    "garbage behind": lambda data: data + b"garbage",
}


@pytest.mark.parametrize("ending", CODECS)
@pytest.mark.parametrize("kind", TABLES)
def test_of_a_packed_file_everything_is_loaded_or_nothing(
    engine: DuckDBEngine, tmp_path: Path, kind: str, ending: str
) -> None:
    path = tmp_path / f"a.{kind}{ending}"
    whole = CODECS[ending](TABLES[kind])
    for what, harm in HARM.items():
        path.write_bytes(harm(whole))
        with pytest.raises(UsageError) as caught:
            load(engine, path, "t", format=kind)
        assert caught.value.message.startswith(f"{path.name} is damaged or cut off: "), what
        assert caught.value.hint == "nothing of it was loaded; copy or download the file again"
        assert "t" not in engine.tables()
    path.write_bytes(whole)
    assert load(engine, path, "t", format=kind).rows == 5000
    path.write_bytes(CODECS[ending](TABLES[kind][:40_004]) + CODECS[ending](TABLES[kind][40_004:]))
    assert load(engine, path, "two", format=kind).rows == 5000


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_parquet_file_whose_pages_fail_their_check_sums_is_not_loaded(
    engine: DuckDBEngine, tmp_path: Path, ending: str
) -> None:
    table = pa.table({"eventdate": pa.array([datetime(2026, 1, 2)] * 50_000), "n": list(range(50_000))})
    pq.write_table(table, tmp_path / "a.parquet", write_page_checksum=True, compression="none", use_dictionary=False)
    whole = (tmp_path / "a.parquet").read_bytes()
    path = tmp_path / f"b.parquet{ending}"
    path.write_bytes(CODECS.get(ending, bytes)(HARM["a bit flipped"](whole)))
    with pytest.raises(UsageError, match="is damaged or cut off: could not verify page integrity"):
        load(engine, path, "t")
    assert "t" not in engine.tables()
    path.write_bytes(CODECS.get(ending, bytes)(whole))
    assert load(engine, path, "t").rows == 50_000


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/dev/zero", "it is not a regular file"),
        ("/", "it is not a regular file"),
        ("/" + "x" * 300, "File name too long"),
    ],
)
def test_what_is_no_file_is_refused(engine: DuckDBEngine, name: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, Path(name), "t", format="csv")
    assert caught.value.message == f"cannot read {Path(name).name}: {why}"
