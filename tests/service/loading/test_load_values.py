"""Loads: columns, their types, and values that do not fit."""

from __future__ import annotations

import gzip
import json
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import (
    ANY,
    CSV,
    CSV_COLUMNS,
    CSV_ROWS,
    at,
    changes,
    columns,
    first_skipped,
    load,
    rows,
    told,
    written,
)

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Type
from svcctl.service.loading.skips import Aside, Change, Skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a[1]*.csv.gz", CSV),
        ("it's", CSV),
        ("a.csv", CSV.replace("\n", "\r\n")),
        ("a.tsv", CSV.replace(", ", "; ").replace(",", "\t").replace("; ", ", ")),
        ("a.csv", CSV.replace(", ", "| ").replace(",", ";").replace("| ", ", ")),
        ("piped", CSV.replace(", ", "; ").replace(",", "|").replace("; ", ", ")),
    ],
)
def test_csv_and_tsv_are_typed_over_the_whole_file(engine: DuckDBEngine, tmp_path: Path, name: str, text: str) -> None:
    result = load(engine, written(tmp_path, name, text), "web.log")
    ends = at("2026-01-02T10:00:00"), at("2026-01-03T00:00:00")
    assert (engine.table("web.log").columns, result.rows) == (CSV_COLUMNS, 3)
    assert (rows(engine, "web.log"), (result.oldest, result.newest)) == (CSV_ROWS, ends)
    assert engine.table("web.log").ordered


def test_lines_of_csv_that_do_not_parse_are_counted_and_the_first_of_each_reason_is_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    text = b"time,s,t\n2026-01-01,a,1\n2026-01-01,b\n2026-01-01\n2026-01-01,b,c,d\n2026-01-01,caf\xe9,\n"
    result = load(engine, written(tmp_path, "a.csv", text), "t", max_skipped=ANY)
    assert (result.rows, result.skipped, changes(result)) == (3, 2, {Change.SHORT: 2})
    found = [(skip.what, skip.count, skip.place) for skip in result.skips]
    assert found == [(Skip.ENCODING, 1, "line 6"), (Skip.CELLS, 1, "line 5")]
    assert [row[1:] for row in rows(engine, "t")] == [("a", 1), ("b", None), (None, None)]


@pytest.mark.parametrize("kind", ["csv", "ndjson", "log", "parquet"])
def test_texts_that_stand_for_nothing_are_null(engine: DuckDBEngine, tmp_path: Path, kind: str) -> None:
    values = [(1, "a"), ("n/a", "ø"), (3, "n/a b")]
    lines = {
        "csv": "time,n,s\n" + "".join(f"2026-01-01,{n},{s}\n" for n, s in values),
        "ndjson": "".join(
            json.dumps({"time": "2026-01-01", "n": n, "s": s}, ensure_ascii=False) + "\n" for n, s in values
        ),
        "log": "".join(f'time=2026-01-01T00:00:00Z n={n} s="{s}"\n' for n, s in values),
    }
    path = written(tmp_path, f"a.{kind}", lines.get(kind, ""))
    if kind == "parquet":
        texts = {"n": [1, None, 3], "s": [text for _, text in values]}
        pq.write_table(pa.table({"time": [datetime(2026, 1, 1)] * 3, **texts}), path)
    load(engine, path, "t", null=("n/a", "ø"))
    assert columns(engine) == ["n int8", "s str"]
    assert [row[1:] for row in rows(engine, "t")] == [(1, "a"), (None, None), (3, "n/a b")]


LATE = {
    "a.csv": ("time,n,s\n", "2026-01-01,1,\n", "2026-01-02,1.5,x\n"),
    "a.ndjson": ("", '{"time":"2026-01-01","n":1}\n', '{"time":"2026-01-02","n":1.5,"s":"x"}\n'),
    "a.log": ("", "time=2026-01-01T00:00:00Z n=1\n", "time=2026-01-02T00:00:00Z n=1.5 s=x\n"),
}


@pytest.mark.parametrize("name", LATE)
def test_what_only_the_end_of_a_file_shows_decides_as_if_it_were_at_the_beginning(
    engine: DuckDBEngine, tmp_path: Path, name: str
) -> None:
    heading, early, late = LATE[name]
    result = load(engine, written(tmp_path, name, heading + early * 40_000 + late), "t")
    assert columns(engine) == ["n float8", "s str"]
    assert (result.rows + result.skipped, rows(engine, "t")[-1]) == (40_001, (datetime(2026, 1, 2), 1.5, "x"))


@pytest.mark.parametrize("name", ["a.ndjson", "a.jsonl.gz", "events"])
def test_ndjson_keeps_names_and_leaves_arrays_as_json(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    text = (
        '{"@timestamp":1700000000123,"N":1,"o":{"b":[1,2]},"mixed":1,"s":"x\\n"}\n'
        "{broken\n\n"
        '{"@timestamp":1700000001000,"o":{"c":"é"},"mixed":"1","N":2.5,"new":true,"nil":null}\n'
        "[1]\n{}\n"
        '{"@timestamp":"2023-11-14T22:13:22Z"}'
    )
    result = load(engine, written(tmp_path, name, text), "t", format="ndjson", max_skipped=ANY)
    assert [(one.what, one.count) for one in result.asides] == [(Aside.BLANK, 1)]
    said = "line 2: '{broken' is not an entry of the format ndjson"
    assert (result.rows, result.skipped, first_skipped(result)) == (3, 3, said)
    assert columns(engine) == ["N float8", "o.b str", "o.c str", "mixed str", "s str", "new bool", "nil str"]
    second = datetime(2023, 11, 14, 22, 13, 20, 123_000)
    assert rows(engine, "t") == [
        (second, 1.0, "[1,2]", None, "1", "x\n", None, None),
        (second.replace(second=21, microsecond=0), 2.5, None, "é", "1", None, True, None),
        (second.replace(second=22, microsecond=0), *[None] * 7),
    ]


def test_members_whose_names_differ_in_case_only_are_columns_of_their_own(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        '\ufeff{"time":"2026-01-01","n":1,"N":"a","o/~":{"x":1,"X":2},"O/~":3}\n'
        '{"time":"2026-01-02","n":2,"n":3,"":4}\n'
    )
    result = load(engine, written(tmp_path, "a.ndjson", text), "t")
    assert (result.skipped, columns(engine)) == (
        0,
        ["n int8", "N_1 str", "o/~.x int8", "o/~.X_1 int8", "O/~ int8", "column5 int8"],
    )
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 1, "a", 1, 2, 3, None),
        (datetime(2026, 1, 2), 2, None, None, None, None, 4),
    ]


@pytest.mark.parametrize(
    ("name", "heading", "row"),
    [
        ("a.csv", "epoch,n\n", "{0},{0}\n"),
        ("b.csv", "time,n\n2026-11-20,1\n", "{0},{0}\n"),
        ("a.ndjson", "", '{{"time":{0}}}\n'),
    ],
)
def test_the_unit_of_numbers_is_that_in_which_they_are_plausible(
    engine: DuckDBEngine, tmp_path: Path, name: str, heading: str, row: str
) -> None:
    for digits in ("", "718", "718001", "718001000"):
        numbers = "".join(row.format(f"{seconds}{digits}") for seconds in (1795154406, 1700000000))
        load(engine, written(tmp_path, name, heading + numbers), "t", replace=True)
        ms = 718_000 if digits else 0
        dates = [datetime(2023, 11, 14, 22, 13, 20, ms), datetime(2026, 11, 20, 6, 0, 6, ms)]
        if name == "b.csv":
            dates.insert(1, datetime(2026, 11, 20))
        assert [date for date, *_ in rows(engine, "t")] == dates


def test_numbers_that_int8_cannot_hold_are_kept_as_text(engine: DuckDBEngine, tmp_path: Path) -> None:
    days = pa.array([datetime(2026, 1, 1), datetime(2026, 1, 2)])
    numbers = pa.array([2**64 - 1, 7], pa.uint64())
    pq.write_table(pa.table({"time": days, "h": numbers, "n": pa.array([1, 2], pa.uint64())}), tmp_path / "a.parquet")
    load(engine, tmp_path / "a.parquet", "t")
    assert columns(engine) == ["h str", "n int8"]
    assert [row[1:] for row in rows(engine, "t")] == [("18446744073709551615", 1), ("7", 2)]
    load(engine, tmp_path / "a.parquet", "f", types={"h": "float8"})
    assert [row[1] for row in rows(engine, "f")] == [2.0**64, 7.0]

    decimals = {
        "d": pa.array([Decimal(2**53 + 1), Decimal(-7)], pa.decimal128(38, 0)),
        "e": pa.array([Decimal(10**20), None], pa.decimal128(38, 0)),
        "o": pa.array([{"d": Decimal(-(2**63) + 1)}, None], pa.struct({"d": pa.decimal128(19, 0)})),
    }
    pq.write_table(pa.table({"time": days, **decimals}), tmp_path / "b.parquet")
    load(engine, tmp_path / "b.parquet", "d")
    assert columns(engine, "d") == ["d int8", "e str", "o.d int8"]
    assert [row[1:] for row in rows(engine, "d")] == [(2**53 + 1, str(10**20), -(2**63) + 1), (-7, None, None)]

    for other in (7, -7):
        text = f'{{"time":"2026-01-01","h":{2**64 - 1}}}\n{{"time":"2026-01-02","h":{other}}}\n'
        path = written(tmp_path, "a.ndjson", text)
        [null] = load(engine, path, "n", replace=True).nulls
        assert (told(null), null.fields) == ("line 1: '18446744073709551615' is not int8", ("h",))
        assert [row[1] for row in rows(engine, "n")] == [None, other]
        assert load(engine, path, "n", types={"h": "str"}, replace=True).nulls == ()


def test_numbers_of_parquet_that_are_none_become_null(engine: DuckDBEngine, tmp_path: Path) -> None:
    days = pa.array([datetime(2026, 1, day) for day in range(1, 5)])
    floats = {"x y": pa.array([1.5, float("nan"), float("-inf"), None]), "z": pa.array([1.0, 2.0, 3.0, 4.0])}
    pq.write_table(pa.table({"time": days, **floats}), tmp_path / "a.parquet")
    assert changes(load(engine, tmp_path / "a.parquet", "t")) == {Change.INFINITE: 2}
    assert [row[1:] for row in rows(engine, "t")] == [(1.5, 1.0), (None, 2.0), (None, 3.0), (None, 4.0)]


def test_numbers_of_json_that_are_none_become_null(engine: DuckDBEngine, tmp_path: Path) -> None:
    numbers = ("1.5", "NaN", "-Infinity", "1e400", "null")
    path = written(tmp_path, "a.ndjson", "".join(f'{{"time":"2026-01-01","n":{number}}}\n' for number in numbers))
    assert changes(load(engine, path, "t")) == {Change.INFINITE: 3}
    assert [row[1] for row in rows(engine, "t")] == [1.5, None, None, None, None]


def test_of_a_name_that_occurs_twice_the_first_value_is_loaded_and_the_row_is_counted(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    members = (
        '"n":1,"o":{"a":2}',
        '"n":3,"o":{"a":4},"n":5',
        '"n":6,"o":{"a":7,"b":null,"a":8}',
        '"N":9,"n":10,"o":{}',
    )
    path = written(tmp_path, "a.ndjson", "".join(f'{{"time":"2026-01-01",{member}}}\n' for member in members))
    loaded = load(engine, path, "t")
    assert changes(loaded) == {Change.REPEATED: 2}
    assert loaded.changes[-1].place == "line 2"
    assert [row[1:3] for row in rows(engine, "t")] == [(1, 2), (3, 4), (6, 7), (10, None)]


def test_decimals_that_float8_may_round_are_counted(engine: DuckDBEngine, tmp_path: Path) -> None:
    days = pa.array([datetime(2026, 1, day) for day in (1, 2, 3)])
    columns = {
        "a": (["1.5", "1234567.123456", "0"], pa.decimal128(38, 18)),
        "b": (["12345678901234567.5", "-0.1", "2"], pa.decimal128(20, 2)),
        "c": (["0.1234567890123456", "1", "-1"], pa.decimal128(18, 17)),
    }
    decimals = {name: pa.array(list(map(Decimal, texts)), type_) for name, (texts, type_) in columns.items()}
    pq.write_table(pa.table({"time": days, **decimals}), tmp_path / "a.parquet")
    loaded = load(engine, tmp_path / "a.parquet", "t")
    assert (changes(loaded), loaded.changes[-1].place) == ({Change.ROUNDED: 1}, "row 1")
    assert [row[1:] for row in rows(engine, "t")][1:] == [(1234567.123456, -0.1, 1.0), (0.0, 2.0, -1.0)]
    assert changes(load(engine, tmp_path / "a.parquet", "u", types={"b": "str", "c": "str"})) == {}
    assert rows(engine, "u")[0][2:] == ("12345678901234567.50", "0.12345678901234560")


def test_whole_numbers_that_float8_may_round_are_counted(engine: DuckDBEngine, tmp_path: Path) -> None:
    numbers = ("1.5", "9007199254740991", "9007199254740993", "-12345678901234567890", "1e+300", "1" * 23, "1.5e+19")
    path = written(tmp_path, "a.ndjson", "".join(f'{{"time":"2026-01-01","n":{number}}}\n' for number in numbers))
    loaded = load(engine, path, "t")
    assert changes(loaded) == {Change.ROUNDED: 3}
    assert loaded.changes[-1].place == "line 3"
    load(engine, path, "u", types={"n": "str"})
    assert [row[1] for row in rows(engine, "u")] == list(numbers)


def test_a_value_that_does_not_fit_the_table_leads_to_a_type_that_holds_it(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-01,1\n"), "t")
    path = written(tmp_path, "b.csv", "time,n\n2026-01-01,1.5\n")
    with pytest.raises(UsageError, match=r"line 2: n '1.5' is not int8"):
        load(engine, path, "t", strict=True)
    load(engine, path, "t", types={"n": "float8"}, replace=True)
    assert rows(engine, "t") == [(datetime(2026, 1, 1), 1.5)]


def test_a_file_without_a_value_in_a_column_has_no_say_in_its_type(engine: DuckDBEngine, tmp_path: Path) -> None:
    texts = {
        "a.csv": "time,n\n",
        "b.csv": "time,n,s\n2026-01-01,,\n",
        "c.ndjson": '{"time":"2026-01-02","n":null}\n',
        "d.csv": "time,n\n2026-01-03,1.5\n",
    }
    result = load(engine, [written(tmp_path, name, text) for name, text in texts.items()], "t")
    assert (columns(engine), result.empty) == (["n float8", "s str"], ("a.csv",))
    assert [row[1] for row in rows(engine, "t")] == [None, None, 1.5]


def test_numbers_without_an_end_are_not_float8(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "time,f\n2026-01-01,1.5\n2026-01-01,inf\n2026-01-01,nan\n2026-01-01,1e999\n2026-01-01,\n"
    result = load(engine, written(tmp_path, "a.csv", text), "t", types={"f": "float8"})
    [null] = result.nulls
    assert (result.rows, result.skipped, null.count, told(null)) == (5, 0, 3, "line 3: 'inf' is not float8")
    assert [row[1] for row in rows(engine, "t")] == [1.5, None, None, None, None]


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ("1.5 1e+300 -2.5E-300 5e-324 1.7976931348623157e+308", "float8"),
        ("1.5 1e400", "str"),
        ("1.5 1e-400", "str"),
        ("1.5 1e1000", "str"),
    ],
)
def test_numbers_with_an_exponent_are_float8_if_float8_has_them(
    engine: DuckDBEngine, tmp_path: Path, values: str, type_: str
) -> None:
    text = "".join(f"2026-01-01,{value}\n" for value in values.split())
    load(engine, written(tmp_path, "a.csv", f"time,n\n{text}"), "t")
    assert columns(engine) == [f"n {type_}"]
    assert [float(str(row[1])) for row in rows(engine, "t")] == list(map(float, values.split()))


@pytest.mark.parametrize(
    ("separator", "values", "place", "count"),
    [
        (",", "1 2 n/a 4", "line 4", 1),
        (",", "1 1e400 1e-120", "line 3", 1),
        (",", "1 2.5 - " * 10, "line 4", 10),
        (",", "7.0 x", "line 3", 1),
        (",", "5 x y", None, 0),
        (",", "12345 01234 54321", None, 0),  # kept as it is written
        (",", "10.0.0.1 10.0.0.2", None, 0),
        (",", "a b c", None, 0),
        (",", "1,234 12 999", "line 2", 1),
        (";", "1,500 3 10,50 n/a", "line 2", 3),
        (";", "10,50 a b", None, 0),
    ],
)
def test_a_few_values_that_make_text_of_numbers_are_counted_with_the_first(
    engine: DuckDBEngine, tmp_path: Path, separator: str, values: str, place: str | None, count: int
) -> None:
    lines = "".join(f'2026-01-01{separator}"{value}"\n' for value in values.split())
    file = written(tmp_path, "a.csv", f"time{separator}n\n{lines}")
    found = [one for one in load(engine, file, "t").changes if one.what is Change.TEXT]
    assert (columns(engine), [one.place for one in found]) == (["n str"], [] if place is None else [place])
    assert sum(one.count for one in found) == count
    assert [row[1] for row in rows(engine, "t")] == values.split()
    assert changes(load(engine, file, "t")) == {}  # the table has it so already


@pytest.mark.parametrize(
    ("separator", "values", "type_", "numbers"),
    [
        (",", "1,234.50 2,000 7 1.5,0", Type.FLOAT8, [1234.5, 2000.0, 7.0]),
        (",", "17 1,234 -12,345,678 1,2", Type.INT8, [17, 1234, -12345678]),
        (",", "1,700 17 1_2", Type.INT8, [1700, 17]),
        (";", "1.234,50 -99,90 7 1,2,3", Type.FLOAT8, [1234.5, -99.9, 7.0]),
        ("\t", "2,000 0,125 7 x", Type.FLOAT8, [2.0, 0.125, 7.0]),
    ],
)
def test_commas_in_numbers_are_read_where_the_type_is_named(
    engine: DuckDBEngine, tmp_path: Path, separator: str, values: str, type_: Type, numbers: list[float]
) -> None:
    lines = "".join(f'2026-01-01{separator}"{value}"\n' for value in values.split())
    file = written(tmp_path, "a.csv", f"time{separator}n (net)\n{lines}")
    assert changes(load(engine, file, "t")) == {Change.TEXT: sum(not one.isdigit() for one in values.split())}
    assert columns(engine) == ["n (net) str"]
    result = load(engine, file, "t", types={"n (net)": str(type_)}, replace=True)
    assert ([row[1] for row in rows(engine, "t")], result.nulls[0].count) == ([*numbers, None], 1)


def test_text_is_kept_as_it_is_written_where_it_is_no_number_or_its_type_is_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    path = written(tmp_path, "a.csv", "time,price,phone\n2026-01-01,1.50,+4917\n2026-01-01,2,+49301234\n")
    load(engine, path, "t", types={"price": "str"})
    assert [row[1:] for row in rows(engine, "t")] == [("1.50", "+4917"), ("2", "+49301234")]


@pytest.mark.parametrize("kind", ["csv", "ndjson", "json"])
def test_the_values_that_make_text_of_many_columns_are_one_finding(
    engine: DuckDBEngine, tmp_path: Path, kind: str
) -> None:
    names = ["time", *(f"n{at}" for at in range(20))]
    values = [["2026-01-01", *[value] * 20] for value in ("1", "2", "n/a", "4")]
    objects = "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in values)
    lines = "".join(f"{','.join(row)}\n" for row in (names, *values))
    text = lines if kind == "csv" else re.sub(r'"(\d)"', r"\1", objects)
    [found] = [one for one in load(engine, written(tmp_path, f"a.{kind}", text), "t").changes if one.fields]
    assert (found.what, found.count, len(found.fields)) == (Change.TEXT, 1, 20)
    assert "n0, n1, n2, n3, n4 and 15 more" in found.sentence


def test_numbers_that_are_strings_in_json_stay_text_unless_their_type_is_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    lines = '{"time":"2026-01-01","v":200,"w":1.5}\n{"time":"2026-01-01","v":"404","w":"2"}\n'
    file = written(tmp_path, "a.ndjson", lines)
    assert changes(load(engine, file, "t")) == {Change.TEXT: 1}
    load(engine, file, "numbers", types={"v": "int8", "w": "float8"})
    assert [row[1:] for row in rows(engine, "numbers")] == [(200, 1.5), (404, 2.0)]


def test_a_column_of_parquet_that_is_no_text_becomes_whole_numbers(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = pa.table({"time": [datetime(2026, 1, 1)] * 2, "ok": [True, False], "x": [2.0, 1.5]})
    pq.write_table(table, path := tmp_path / "a.parquet")
    load(engine, path, "t", types={"ok": "int4", "x": "int8"})
    assert [row[1:] for row in rows(engine, "t")] == [(1, 2), (0, None)]


def test_a_folder_gives_parquet_no_column_and_parquet_types_become_ours(engine: DuckDBEngine, tmp_path: Path) -> None:
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
    (folder := tmp_path / "dt=2026-01-01").mkdir()
    pq.write_table(table, folder / "a.parquet")
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress((folder / "a.parquet").read_bytes()))
    for path in (folder / "a.parquet", tmp_path / "b.parquet.gz"):
        load(engine, path, "t", replace=True)
        assert columns(engine) == ["i16 int4", "u32 int8", "u64 int8", "f float8", "list str", "s str"]
        row = (datetime(2026, 1, 1, 0, 0, 0, 1000), -1, 2**32 - 1, 2**63 - 1, 1.5, "[1,null]", "x")
        assert rows(engine, "t") == [row]


def test_what_stands_in_quotes_in_a_heading_does_not_separate_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", 'time,"a|b|c"\n2026-01-01,1\n'), "t")
    assert engine.table("t").columns == (CSV_COLUMNS[0], Column("a|b|c", Type.INT8))
