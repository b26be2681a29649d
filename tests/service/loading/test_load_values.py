"""Loads: columns, their types, and values that do not fit."""

from __future__ import annotations

import gzip
import json
import re
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import CSV, CSV_COLUMNS, CSV_ROWS, at, changes, first_skipped, load, rows, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Type
from svcctl.service.loading.outcome import Change, Skip


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
    result = load(engine, written(tmp_path, name, text), "web.log")
    ends = at("2026-01-02T10:00:00"), at("2026-01-03T00:00:00")
    assert (result.columns, result.rows, (result.oldest, result.newest)) == (CSV_COLUMNS, 3, ends)
    assert rows(engine, "web.log") == CSV_ROWS
    assert engine.table("web.log").ordered


def test_lines_of_csv_that_do_not_parse_are_counted_and_the_first_of_each_reason_is_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    path = written(
        tmp_path,
        "a.csv",
        b"time,s,t\n2026-01-01,a,1\n2026-01-01,b\n2026-01-01\n2026-01-01,b,c,d\n2026-01-01,caf\xe9,\n",
    )
    result = load(engine, path, "t")
    assert (result.rows, result.skipped, changes(result)) == (3, 2, {Change.SHORT: 2})
    assert [(skip.what, skip.count, skip.place) for skip in result.skips] == [
        (Skip.ENCODING, 1, "line 6"),
        (Skip.CELLS, 1, "line 5"),
    ]
    assert rows(engine, "t") == [(datetime(2026, 1, 1), *row) for row in (("a", 1), ("b", None), (None, None))]


@pytest.mark.parametrize("kind", ["csv", "ndjson", "log"])
def test_texts_that_stand_for_nothing_are_null(engine: DuckDBEngine, tmp_path: Path, kind: str) -> None:
    values = [(1, "a"), ("n/a", "-"), (3, "n/a b")]
    lines = {
        "csv": "time,n,s\n" + "".join(f"2026-01-01,{n},{s}\n" for n, s in values),
        "ndjson": "".join(json.dumps({"time": "2026-01-01", "n": n, "s": s}) + "\n" for n, s in values),
        "log": "".join(f'time=2026-01-01T00:00:00Z n={n} s="{s}"\n' for n, s in values),
    }
    path = written(tmp_path, f"a.{kind}", lines[kind])
    result = load(engine, path, "t", null=("n/a", "-"))
    assert [str(column.type) for column in result.columns] == ["timestamp", "int8", "str"]
    assert [row[1:] for row in rows(engine, "t")] == [(1, "a"), (None, None), (3, "n/a b")]
    if kind == "csv":
        pq.write_table(pa.table({"time": [datetime(2026, 1, 1)], "s": ["-"]}), tmp_path / "a.parquet")
        load(engine, tmp_path / "a.parquet", "p", null=("-",))
        assert rows(engine, "p") == [(datetime(2026, 1, 1), None)]


LATE = {
    "csv": ("time,n,s\n", "2026-01-01,1,\n", "2026-01-02,1.5,x\n"),
    "ndjson": ("", '{"time":"2026-01-01","n":1}\n', '{"time":"2026-01-02","n":1.5,"s":"x"}\n'),
    "log": ("", "time=2026-01-01T00:00:00Z n=1\n", "time=2026-01-02T00:00:00Z n=1.5 s=x\n"),
}


@pytest.mark.parametrize("kind", LATE)
def test_what_only_the_end_of_a_file_shows_decides_as_if_it_were_at_the_beginning(
    engine: DuckDBEngine, tmp_path: Path, kind: str
) -> None:
    heading, early, late = LATE[kind]
    result = load(engine, written(tmp_path, f"a.{kind}", heading + early * 40_000 + late), "t")
    assert [f"{column.name} {column.type}" for column in result.columns][1:] == ["n float8", "s str"]
    assert (result.rows, result.skipped, rows(engine, "t")[-1]) == (40_001, 0, (datetime(2026, 1, 2), 1.5, "x"))


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
    assert (result.rows, result.skipped, first_skipped(result)) == (3, 2, "line 2: '{broken' is not a JSON object")
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


def test_text_that_begins_with_a_plus_is_no_number(engine: DuckDBEngine, tmp_path: Path) -> None:
    csv = 'time,phone,c\n2026-01-01,+49170123456,"+1,2"\n2026-01-01,+4930123,"1,5"\n2026-01-01,+49301234,"2,5"\n'
    result = load(engine, written(tmp_path, "a.csv", csv), "t")
    assert [column.type for column in result.columns] == [Type.TIMESTAMP, Type.STR, Type.STR]
    assert rows(engine, "t")[0][1:] == ("+49170123456", "+1,2")


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
    assert first_skipped(result) == "line 1: h '18446744073709551615' is not int8"
    assert load(engine, path, "n", types={"h": "str"}, replace=True).skipped == 0


def test_numbers_of_parquet_that_are_none_become_null(engine: DuckDBEngine, tmp_path: Path) -> None:
    days = pa.array([datetime(2026, 1, day) for day in range(1, 5)])
    floats = {"x y": pa.array([1.5, float("nan"), float("-inf"), None]), "z": pa.array([1.0, 2.0, 3.0, 4.0])}
    pq.write_table(pa.table({"time": days, **floats}), tmp_path / "a.parquet")
    [found] = [one for one in load(engine, tmp_path / "a.parquet", "t").changes if one.what is not Change.ZONE]
    assert (found.what, found.count, found.place) == (Change.INFINITE, 2, "row 2")
    assert [row[1:] for row in rows(engine, "t")] == [(1.5, 1.0), (None, 2.0), (None, 3.0), (None, 4.0)]


def test_a_value_that_does_not_fit_the_table_leads_to_a_type_that_holds_it(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-01,1\n"), "t")
    path = written(tmp_path, "b.csv", "time,n\n2026-01-01,1.5\n")
    with pytest.raises(UsageError) as caught:
        load(engine, path, "t")
    assert "line 2: n '1.5' is not int8" in caught.value.message
    assert "--types n=float8" in (caught.value.hint or "")
    load(engine, path, "t", types={"n": "float8"}, replace=True)
    with pytest.raises(UsageError) as caught:
        load(engine, path, "u", types={"n": "int8"})
    assert "--types n=float8" in (caught.value.hint or "")


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
    assert (result.rows, result.skipped, first_skipped(result)) == (2, 3, "line 3: f 'inf' is not float8")
    assert [row[1] for row in rows(engine, "t")] == [1.5, None]


@pytest.mark.parametrize(
    ("separator", "values", "place", "count"),
    [
        (",", "1 2 n/a 4", "line 4", 1),
        (",", "1 2.5 - " * 10, "line 4", 10),
        (",", "7.0 x", "line 3", 1),
        (",", "5 x y", None, 0),
        (",", "12345 01234 54321", None, 0),  # kept as it is written
        (",", "a b c", None, 0),
        (",", "1,234 12 999", "line 2", 1),
        (",", "1,234.5.6 1,234", "line 2", 1),
        (";", "1,500 3 10,50 n/a", "line 5", 1),
        (";", "1,500 2,000 1", "line 2", 2),
        (";", "10,50 a b", None, 0),
    ],
)
def test_a_few_values_that_make_text_of_numbers_are_counted_with_the_first(
    engine: DuckDBEngine, tmp_path: Path, separator: str, values: str, place: str | None, count: int
) -> None:
    lines = "".join(f'2026-01-01{separator}"{value}"\n' for value in values.split())
    file = written(tmp_path, "a.csv", f"time{separator}n\n{lines}")
    result = load(engine, file, "t")
    found = [one for one in result.changes if one.what is Change.TEXT]
    assert (result.columns[1].type, [one.place for one in found]) == (Type.STR, [] if place is None else [place])
    assert sum(one.count for one in found) == count
    assert [row[1] for row in rows(engine, "t")] == values.split()
    assert changes(load(engine, file, "t")) == {}  # the table has it so already


@pytest.mark.parametrize(
    ("separator", "values", "type_", "numbers", "place"),
    [
        (",", "1,234.50 2,000.00 7", Type.FLOAT8, [1234.5, 2000.0, 7.0], "line 2"),
        (",", "17 1,234 -12,345,678", Type.INT8, [17, 1234, -12345678], "line 4"),
        (",", "0.25 999 1,234.5", Type.FLOAT8, [0.25, 999.0, 1234.5], "line 4"),
        (";", "1.234,50 -99,90 7", Type.FLOAT8, [1234.5, -99.9, 7.0], "line 2"),
        ("\t", "2,000 0,125 7", Type.FLOAT8, [2.0, 0.125, 7.0], "line 3"),
    ],
)
def test_commas_whose_meaning_is_clear_are_read(
    engine: DuckDBEngine, tmp_path: Path, separator: str, values: str, type_: Type, numbers: list[float], place: str
) -> None:
    lines = "".join(f'2026-01-01{separator}"{value}"\n' for value in values.split())
    file = written(tmp_path, "a.csv", f"time{separator}n (net)\n{lines}")
    result = load(engine, file, "t")
    [found] = [one for one in result.changes if one.what is Change.COMMAS]
    assert (result.columns[1].type, found.place, found.fields) == (type_, place, ("n (net)",))
    assert [row[1] for row in rows(engine, "t")] == numbers
    kept = load(engine, file, "kept", types={"n (net)": "str"})
    assert ([row[1] for row in rows(engine, "kept")], changes(kept)) == (values.split(), {})
    plain = written(tmp_path, "b.csv", f"time{separator}n (net)\n2026-01-02{separator}5\n")
    assert load(engine, [plain, file], "both").columns[1].type == type_


@pytest.mark.parametrize(("separator", "number"), [(",", 1234.0), (";", 1.234)])
def test_commas_whose_meaning_is_not_clear_are_read_where_the_type_is_named(
    engine: DuckDBEngine, tmp_path: Path, separator: str, number: float
) -> None:
    path = written(tmp_path, "a.csv", f'time{separator}n\n2026-01-01{separator}"1,234"\n')
    assert load(engine, path, "t").columns[1].type is Type.STR
    load(engine, path, "numbers", types={"n": "float8"})
    assert rows(engine, "numbers") == [(datetime(2026, 1, 1), number)]


def test_text_is_kept_as_it_is_written_where_its_type_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "time,price\n2026-01-01,1.50\n2026-01-01,2\n")
    load(engine, path, "t", types={"price": "str"})
    assert [row[1] for row in rows(engine, "t")] == ["1.50", "2"]


def test_numbers_that_are_strings_in_json_stay_text_unless_their_type_is_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    lines = '{"time":"2026-01-01","v":200,"w":1.5}\n{"time":"2026-01-01","v":"404","w":"2"}\n'
    file = written(tmp_path, "a.ndjson", lines)
    [found] = [one for one in load(engine, file, "t").changes if one.what is Change.TEXT]
    assert (found.count, found.place, found.value, found.fields) == (1, "line 2", "404", ("v", "w"))
    assert "--types v=int8,w=float8" in found.sentence
    load(engine, file, "numbers", types={"v": "int8", "w": "float8"})
    assert [row[1:] for row in rows(engine, "numbers")] == [(200, 1.5), (404, 2.0)]


def test_a_folder_gives_parquet_no_column(engine: DuckDBEngine, tmp_path: Path) -> None:
    folder = tmp_path / "dt=2026-01-01"
    folder.mkdir()
    pq.write_table(pa.table({"eventdate": [datetime(2026, 1, 1)], "n": [1]}), folder / "a.parquet")
    result = load(engine, folder / "a.parquet", "t")
    assert [column.name for column in result.columns] == ["eventdate", "n"]


def test_a_value_that_makes_text_of_numbers_in_json_is_counted(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = ",".join(f'{{"time": "2026-01-01", "n": {value}, "s": "x"}}' for value in ("1", '"n/a"', "2.5", "null"))
    for name, place in (("a.json", "element 2"), ("a.ndjson", "line 2")):
        text = f"[{rows}]" if name == "a.json" else rows.replace("},", "}\n")
        result = load(engine, written(tmp_path, name, text), name.replace(".", "_"))
        [found] = [one for one in result.changes if one.what is Change.TEXT]
        assert (found.value, found.place, found.count, found.remedy) == ("n/a", place, 1, "n=float8")


def test_a_file_whose_texts_make_text_of_another_files_numbers_is_told(engine: DuckDBEngine, tmp_path: Path) -> None:
    texts = {"a": "2026-01-01,1.5\n2026-01-02,2\n", "b": "2026-01-03,\n", "c": "2026-01-04,abc\n"}
    files = [written(tmp_path, f"{name}.csv", f"time,n\n{text}") for name, text in texts.items()]
    for ordered in (files, files[::-1]):
        [found] = [one for one in load(engine, ordered, "t", replace=True).changes if one.what is Change.MIXED]
        assert (found.place, found.fields, found.remedy) == ("c.csv", ("n",), "n=float8")


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_the_values_that_make_text_of_many_columns_are_one_finding(
    engine: DuckDBEngine, tmp_path: Path, kind: str
) -> None:
    names = ["time", *(f"n{at}" for at in range(20))]
    values = [["2026-01-01", *[value] * 20] for value in ("1", "2", "n/a", "4")]
    objects = "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in values)
    lines = "".join(f"{','.join(row)}\n" for row in (names, *values))
    text = lines if kind == "csv" else re.sub(r'"(\d)"', r"\1", objects)
    [found] = [one for one in load(engine, written(tmp_path, f"a.{kind}", text), "t").changes if one.fields]
    assert (found.what, found.count, found.value, len(found.fields)) == (Change.TEXT, 1, "n/a", 20)
    assert "n0, n1, n2 and 17 more" in found.sentence


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


def test_what_stands_in_quotes_in_a_heading_does_not_separate_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", 'time,"a|b|c"\n2026-01-01,1\n'), "t")
    assert [column.name for column in engine.table("t").columns] == ["eventdate", "a|b|c"]
