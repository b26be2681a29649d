"""Loads that change the columns of their table: new columns, wider types, and the limit of added columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.engines import new_lake
from support.events import batches
from support.loads import CSV_COLUMNS, load, rows, undisturbed, written

from svcctl.api.loads import LoadOptions
from svcctl.errors import ServiceError, UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.table_rules import ColumnChange
from svcctl.service.language.types import Column, Type
from svcctl.service.loading import load as loading
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.growth import wider_type
from svcctl.service.loading.limits import MAX_FIELDS, LoadLimits

DAY = datetime(2026, 1, 1)
N = CSV_COLUMNS[:2]
"""eventdate and n int8."""


def columns(engine: DuckDBEngine) -> list[str]:
    return [f"{column.name} {column.type}" for column in engine.table("t").columns]


def limited(engine: DuckDBEngine, most: int, *paths: Path, **options: Any) -> Any:
    sources, limits = [Source(path, path.name) for path in paths], LoadLimits(added_columns=most)
    return loading.load(engine, sources, "t", LoadOptions(**options), undisturbed, limits=limits)


def parquet(path: Path) -> Path:
    pq.write_table(pa.table({"eventdate": [DAY], "new": pa.array([1.5])}), path)
    return path


FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "csv": (lambda path: written(path, "a.csv", "time,new\n2026-01-01,1.5\n"), "new float8"),
    "tsv": (lambda path: written(path, "a.tsv", "time\tnew\n2026-01-01\t1.5\n"), "new float8"),
    "ndjson": (lambda path: written(path, "a.ndjson", '{"time":"2026-01-01","new":true}\n'), "new bool"),
    "json": (lambda path: written(path, "a.json", '[{"time":"2026-01-01","new":7}]\n'), "new int8"),
    "parquet": (lambda path: parquet(path / "a.parquet"), "new float8"),
    "logfmt": (lambda path: written(path, "a.log", "time=2026-01-01T00:00:00Z new=7\n" * 3), "new int8"),
    "fields": (lambda path: written(path, "a.log", "#Fields: date new\n2026-01-01 7\n"), "new int8"),
    "log": (lambda path: written(path, "a.log", "2026-01-01 00:00:00 hello\n" * 3), "message str"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_field_that_the_table_lacks_adds_a_column(engine: DuckDBEngine, tmp_path: Path, kind: str) -> None:
    make, column = FILES[kind]
    engine.append("t", batches(N, [(datetime(2025, 1, 1), 7)]), create=N)
    result = load(engine, make(tmp_path), "t", format=kind)
    assert (result.added, columns(engine)) == ((column,), ["eventdate timestamp", "n int8", column])
    old, *new = rows(engine, "t")
    assert (old[1:], {row[0] for row in new}, {row[1] for row in new}) == ((7, None), {DAY}, {None})
    assert all(row[2] is not None for row in new)
    assert load(engine, make(tmp_path), "t", format=kind).added == ()


def test_fields_after_those_of_an_access_log_add_the_column_rest(engine: DuckDBEngine, tmp_path: Path) -> None:
    line = '10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5'
    load(engine, written(tmp_path, "a.log", f"{line}\n" * 3), "t")
    assert load(engine, written(tmp_path, "b.log", f"{line}\n{line} 0.25\n" * 3), "t").added == ("rest str",)
    assert [row[-1] for row in rows(engine, "t")] == [None] * 3 + [None, "0.25"] * 3


def test_the_types_of_new_columns_are_those_of_all_files_or_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", N)
    files = [written(tmp_path, f"{at}.csv", f"time,a,ip\n2026-01-0{at},{a},10.0.0.1\n") for at, a in ((1, 1), (2, 1.5))]
    result = load(engine, files, "t", types={"ip": "ip4"})
    assert result.added == ("a float8", "ip ip4")
    assert [row[2:] for row in rows(engine, "t")] == [(1.0, 0x0A000001), (1.5, 0x0A000001)]


def test_a_column_without_a_value_is_added_when_a_value_shows_its_type(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", N)
    empty = written(tmp_path, "a.csv", "time,n,a,b\n2026-01-01,1,,\n")
    assert load(engine, empty, "t", types={"b": "int4"}).added == ("b int4",)
    assert load(engine, written(tmp_path, "a.ndjson", '{"time":"2026-01-01","a":null}\n'), "t").added == ()
    assert load(engine, written(tmp_path, "b.csv", "time,n,a,b\n2026-01-01,1,0.5,2\n"), "t").added == ("a float8",)


def test_a_load_that_fails_late_adds_no_column(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", N)
    text = "time,n,a\n" + "2026-01-01,1,x\n" * 5000 + "soon,1,x\n" * 5000
    with pytest.raises(UsageError):
        load(engine, written(tmp_path, "a.csv", text), "t")

    def give_up() -> None:
        raise ServiceError("gone")

    source = Source(written(tmp_path, "b.csv", "time,n,a\n2026-01-01,1,x\n"), "b.csv")
    with pytest.raises(ServiceError, match=r"^gone$"):
        loading.load(engine, [source], "t", LoadOptions(), give_up)
    assert (columns(engine), rows(engine, "t")) == (["eventdate timestamp", "n int8"], [])


@pytest.mark.parametrize(
    ("before", "text", "wish", "widened", "values"),
    [
        ("1", "1.5", "float8", "d from int8 to float8", [1.0, 1.5]),
        ("1", "007", "str", "d from int8 to str", ["1", "007"]),
        ("0.5", "n/a", "str", "d from float8 to str", ["0.5", "n/a"]),
        ("true", "maybe", "str", "d from bool to str", ["true", "maybe"]),
    ],
)
def test_a_named_type_widens_a_column(
    engine: DuckDBEngine, tmp_path: Path, before: str, text: str, wish: str, widened: str, values: list[object]
) -> None:
    load(engine, written(tmp_path, "a.csv", f"time,d\n2026-01-01,{before}\n"), "t")
    later = written(tmp_path, "b.csv", f"time,d\n2026-01-02,{text}\n")
    assert load(engine, later, "t", types={"d": wish}).widened == (widened,)
    assert [row[1] for row in rows(engine, "t")] == values
    assert load(engine, later, "t", types={"d": wish}).widened == ()


def test_addresses_and_dates_become_text_as_queries_write_them(engine: DuckDBEngine, tmp_path: Path) -> None:
    first = written(tmp_path, "a.csv", "time,ip,seen\n2026-01-01,10.0.0.1,2026-01-02 03:04:05\n")
    load(engine, first, "t", types={"ip": "ip4", "seen": "timestamp"})
    later = written(tmp_path, "b.csv", "time,ip,seen\n2026-01-02,none,soon\n")
    load(engine, later, "t", types={"ip": "str", "seen": "str"})
    assert [row[1:] for row in rows(engine, "t")] == [("10.0.0.1", "2026-01-02 03:04:05.000"), ("none", "soon")]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("N", {}, "column 'N' differs from column 'n' of table 't' only in case"),
    ("n", {"types": {"n": "int4"}}, "column 'n' of table 't' is already int8, not int4"),
    ("n", {"types": {"n": "bool"}}, "column 'n' of table 't' is already int8, not bool"),
    ("n", {"types": {"n": "float8"}, "fixed_columns": True}, "column 'n' of table 't' is already int8, not float8"),
    ("n", {"types": {"n": "float8"}}, "column 'n' of table 't' has 1 value that float8 cannot hold exactly"),
    (
        "a,b,c",
        {},
        "the load would add 3 columns to table 't', but loads may add at most 2 in all, and have already added 0",
    ),
]


@pytest.mark.parametrize(("names", "options", "message"), REFUSED)
def test_a_change_that_is_refused_leaves_the_table(
    engine: DuckDBEngine, tmp_path: Path, names: str, options: dict[str, Any], message: str
) -> None:
    engine.append("t", batches(N, [(DAY, 2**53 + 1)]), create=N)
    text = f"time,{names}\n2026-01-01{',1' * len(names.split(','))}\n"
    with pytest.raises(UsageError) as caught:
        limited(engine, 2, written(tmp_path, "a.csv", text), **options)
    assert (caught.value.message, columns(engine)) == (message, ["eventdate timestamp", "n int8"])
    assert rows(engine, "t") == [(DAY, 2**53 + 1)]


def test_members_of_json_beyond_the_limit_stay_json_text(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", N)
    event = {"time": "2026-01-01", "n": 1, "a": 1, "b": True, "c": {"d": [1, None]}, 'e"': 'x"y', "f": 0.5, "g": None}
    text = json.dumps(event) + '\n{"time":"2026-01-02","a":2}\n'
    result = limited(engine, 2, written(tmp_path, "a.ndjson", text))
    assert (result.added, result.left) == (("a int8", "b bool", "rest str"), ("c.d", 'e"', "f"))
    first, second = rows(engine, "t")
    assert (first[:4], json.loads(str(first[4]))) == ((DAY, 1, 1, True), {"c.d": [1, None], 'e"': 'x"y', "f": 0.5})
    assert second[2:] == (2, None, None)
    again = limited(engine, 2, written(tmp_path, "b.ndjson", '{"time":"2026-01-03","h":1}\n'))
    assert (again.added, again.left, rows(engine, "t")[-1][-1]) == ((), ("h",), '{"h":1}')
    for text in (
        '{"time":"2026-01-03","h":1,"rest":2}\n',
        '{"time":"2026-01-03","z":1}\n{"time":"2026-01-03","rest":2}\n',
    ):
        with pytest.raises(UsageError):
            limited(engine, 2, written(tmp_path, "c.ndjson", text))


def test_a_table_has_a_limited_number_of_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    wide = (N[0], *(Column(f"c{at}", Type.BOOL) for at in range(MAX_FIELDS - 1)))
    engine.create("t", wide)
    with pytest.raises(UsageError):
        limited(engine, 5000, written(tmp_path, "a.csv", "time,new\n2026-01-01,1\n"))
    with pytest.raises(
        UsageError, match=r"^table 't' would have 1,001 columns, more than the 1,000 that a table can have$"
    ):
        limited(engine, 5000, written(tmp_path, "a.ndjson", '{"time":"2026-01-01","new":1}\n'))
    halves = [
        written(
            tmp_path,
            f"{half}.csv",
            "time," + ",".join(f"{half}{at}" for at in range(600)) + "\n2026-01-01" + ",1" * 600,
        )
        for half in "ab"
    ]
    with pytest.raises(
        UsageError, match=r"^table 't' would have 1,201 columns, more than the 1,000 that a table can have$"
    ):
        limited(engine, 5000, *halves, replace=True)


def test_a_load_whose_table_gains_columns_meanwhile_begins_again(tmp_path: Path) -> None:
    path = written(tmp_path, "a.ndjson", '{"time":"2026-01-01","a":1}\n')

    class Meanwhile(DuckDBEngine):
        others: Iterator[str] = iter(("a", "b"))

        def append(self, name: str, *arguments: Any, **options: Any) -> int:
            if column := next(self.others, None):
                before = self.table("t").columns
                change = ColumnChange(before, (*before, Column(column, Type.STR)))
                super().append("t", batches(before, []), change=change)
            return super().append(name, *arguments, **options)

    with Meanwhile() as engine:
        engine.create("t", N)
        load(engine, path, "t")
        assert columns(engine) == ["eventdate timestamp", "n int8", "a str", "b str"]
        assert rows(engine, "t") == [(DAY, None, "1", None)]


def test_a_shared_table_gains_and_widens_columns(tmp_path: Path) -> None:
    with new_lake(str(tmp_path / "tables")) as lake:
        for name, text, types in (
            ("a.csv", "time,n\n2026-01-01,1\n", {}),
            ("b.csv", "time,n,m\n2026-01-02,0.5,x\n", {"n": "float8"}),
        ):
            loading.load(
                lake, [Source(written(tmp_path, name, text), name)], "t", LoadOptions(types=types), undisturbed
            )
        assert [f"{one.name} {one.type}" for one in lake.table("t").columns[1:]] == ["n float8", "m str"]
        assert (lake.table("t").added, lake.events("t")) == (1, 2)


@pytest.mark.parametrize(
    ("held", "value", "wider"),
    [
        (Type.INT4, "3000000000", Type.INT8),
        (Type.INT4, "1.5", Type.FLOAT8),
        (Type.INT8, "1.5", Type.FLOAT8),
        (Type.INT8, "n/a", Type.STR),
        (Type.FLOAT8, "1,5", Type.STR),
        (Type.STR, "x", None),
    ],
)
def test_the_wider_type_for_a_value_is_the_narrowest(held: Type, value: str, wider: Type | None) -> None:
    assert wider_type(held, value) is wider


def test_names_that_differ_in_case_between_files_are_refused_with_both(engine: DuckDBEngine, tmp_path: Path) -> None:
    files = [written(tmp_path, "a.csv", "time,n\n2026-01-01,1\n"), written(tmp_path, "b.csv", "time,N\n2026-01-02,2\n")]
    with pytest.raises(UsageError, match="differs from column 'n'"):
        load(engine, files, "t")
