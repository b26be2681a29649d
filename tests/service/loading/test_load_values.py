"""Loads: columns, their types, and values that do not fit."""

from __future__ import annotations

import gzip
import json
import re
from datetime import datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import CSV, CSV_COLUMNS, CSV_ROWS, at, load, rows, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Type
from svcctl.service.loading import load as loading
from svcctl.service.loading.load import LoadResult, Source, Wishes


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
    assert result.first_skipped == "line 1: h '18446744073709551615' is not int8"
    (note,) = result.notes
    assert "--types h=str" in note
    assert load(engine, path, "n", types={"h": "str"}, replace=True).skipped == 0


def test_numbers_of_parquet_that_are_none_become_null(engine: DuckDBEngine, tmp_path: Path) -> None:
    days = pa.array([datetime(2026, 1, day) for day in range(1, 5)])
    floats = {"x y": pa.array([1.5, float("nan"), float("-inf"), None]), "z": pa.array([1.0, 2.0, 3.0, 4.0])}
    pq.write_table(pa.table({"time": days, **floats}), tmp_path / "a.parquet")
    (note,) = load(engine, tmp_path / "a.parquet", "t").notes
    assert " x y " in note
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
    assert (result.rows, result.skipped, result.first_skipped) == (2, 3, "line 3: f 'inf' is not float8")
    assert [row[1] for row in rows(engine, "t")] == [1.5, None]


@pytest.mark.slow
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


@pytest.mark.slow
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
    (note,) = load(engine, written(tmp_path, "a.csv", f"time,sum\n{lines}"), "t").notes
    assert 'float8(replaceall(replaceall(sum, ".", ""), ",", "."))' in note


@pytest.mark.slow
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
        assert numbers in (caught.value.hint or "")


@pytest.mark.slow
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
    notes = load(engine, file, "t").notes
    assert [re.findall(r"--types (\S+)", note) for note in notes] == [["v=int8"], ["w=float8"]]
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


def test_a_folder_gives_parquet_no_column(engine: DuckDBEngine, tmp_path: Path) -> None:
    folder = tmp_path / "dt=2026-01-01"
    folder.mkdir()
    pq.write_table(pa.table({"eventdate": [datetime(2026, 1, 1)], "n": [1]}), folder / "a.parquet")
    result = load(engine, folder / "a.parquet", "t")
    assert [column.name for column in result.columns] == ["eventdate", "n"]


@pytest.mark.slow
@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_where_no_comma_separates_cells(
    engine: DuckDBEngine, tmp_path: Path, separator: str
) -> None:
    lines = ("time;sum;kg;n", "2026-01-01;1.234,50;2,000;1.234", "2026-01-02;-99,90;0,125;2.345", "2026-01-03;7;;3.456")
    file = written(tmp_path, "a.csv", "\n".join(lines).replace(";", separator))
    result = load(engine, file, "t")
    assert [re.findall(r"--types (\S+)", note) for note in result.notes] == [["sum=str"], ["n=str"]]
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
        (note,) = result.notes
        assert f"'n/a' in {place}" in note
        assert "--types n=float8" in note


def test_a_file_whose_texts_make_text_of_another_files_numbers_is_told(engine: DuckDBEngine, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    texts = ("2026-01-01,1.5\n2026-01-02,2\n", "2026-01-03,\n", "2026-01-04,abc\n")
    files = [
        Source(written(tmp_path, f"{name}.csv", f"time,n\n{text}"), f"{name}.csv")
        for name, text in zip(names, texts, strict=True)
    ]
    for ordered in (files, files[::-1]):
        result = loading.load(engine, ordered, "t", Wishes(replace=True), lambda: None)
        assert result is not None
        (note,) = result.notes
        assert "c.csv" in note


@pytest.mark.slow
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
        *notes, last = result.notes
        assert all(f"'n/a' in {place}" in note for note in notes)
        assert (len(result.notes), "17 more columns" in last) == ((4, True) if count > 1 else (1, False))
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


def test_what_stands_in_quotes_in_a_heading_does_not_separate_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", 'time,"a|b|c"\n2026-01-01,1\n'), "t")
    assert [column.name for column in engine.table("t").columns] == ["eventdate", "a|b|c"]
