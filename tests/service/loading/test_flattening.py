"""Loads of nested JSON and of structs of parquet: which objects become columns, and which stay text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import NOW, changes, columns, load, rows, undisturbed, written

from svcctl.api.loads import LoadOptions
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading import load as loading
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.limits import LoadLimits
from svcctl.service.loading.skips import Change

TIME = "2026-01-02T10:00:00Z"


def text(*objects: object) -> str:
    """Lines of ndjson, with a time in each object; texts are lines without their time and braces."""
    members = (one if isinstance(one, str) else json.dumps(one)[1:-1] for one in objects)
    return "".join(f'{{"time":"{TIME}",{one}}}\n' for one in members)


def stored(engine: DuckDBEngine, table: str = "t") -> list[tuple[object, ...]]:
    """The rows of a table without their times."""
    return [row[1:] for row in rows(engine, table)]


def named(result: Any, change: Change = Change.JSON) -> tuple[str, ...]:
    """The columns that a note of a change names."""
    return tuple(name for one in result.changes if one.what == change for name in one.fields)


CASES: dict[str, tuple[list[object], list[str], list[tuple[object, ...]], tuple[str, ...]]] = {
    "objects": (
        [
            {"a": 1, "req": {"status": 200, "hdr": {"host": "x", "n": [1, {"b": 2.5}]}, "ok": True}, "z": 1.5},
            {"req": {"hdr": {"host": "é\n"}, "status": 404}, "z": None},
        ],
        ["a int8", "req.status int8", "req.hdr.host str", "req.hdr.n str", "req.ok bool", "z float8"],
        [(1, 200, "x", '[1,{"b":2.5}]', True, 1.5), (None, 404, "é\n", None, None, None)],
        ("req.hdr.n",),
    ),
    "values and objects": (
        [{"err": {"code": 5}}, {"err": "boom"}, {"err": None}, {"err": ["x"]}, {"err": {}}],
        ["err str", "err.code int8"],
        [(None, 5), ("boom", None), (None, None), ('["x"]', None), (None, None)],
        ("err",),
    ),
    "numbers and objects": (
        [{"err": {"code": 5}}, {"err": 7}, {"err": 1.5}],
        ["err float8", "err.code int8"],
        [(None, 5), (7.0, None), (1.5, None)],
        (),
    ),
    "numbers, texts and objects": (
        [{"err": {"code": 5}}, {"err": 7}, {"err": 8}, {"err": "x"}],
        ["err str", "err.code int8"],
        [(None, 5), ("7", None), ("8", None), ("x", None)],
        (),
    ),
    "a name with dots comes before the members of an object": (
        [{"req": {"status": 1, "a": {"b": 6}, "a.b": 5}, "req.status": 2}],
        ["req.status_1 int8", "req.a.b_1 int8", "req.a.b int8", "req.status int8"],
        [(1, 6, 5, 2)],
        (),
    ),
    "empty objects": (
        [{"o": {}, "p": {}, "q": None}, {"p": {"a": 1}, "q": {"b": None}}],
        ["o str", "p.a int8", "q.b str"],
        [("{}", None, None), (None, 1, None)],
        ("o",),
    ),
    "of two members with one name the first": (
        ['"o":{"a":1,"a":2},"p":{"a":1},"p":{"a":2},"d":1,"d":"x"'],
        ["o.a int8", "p.a int8", "d str"],
        [(1, 1, "1")],
        (),
    ),
    "names that differ in case only": (
        [{"o": {"a": 1, "A": {"x": 2}, "É": 3, "é": 4}, "O": {"a": 5, "z": 6}}],
        ["o.a int8", "o.A.x int8", "o.É int8", "o.é_1 int8", "O.a_1 int8", "O.z int8"],
        [(1, 2, 3, 4, 5, 6)],
        (),
    ),
    "odd names": (
        [{"": {"": 1, "b c": 2}, "o~/": {"a/b": 3, "it's\"": 4}, "(line)": {"x": 5}, "m": {"eventdate": 6}}],
        [
            *("column1.column0 int8", "column1.b c int8", "o~/.a/b int8", "o~/.it's\" int8", "(line).x int8"),
            "m.eventdate int8",
        ],
        [(1, 2, 3, 4, 5, 6)],
        (),
    ),
    "beyond the depth": (
        [{"a": {"b": {"c": {"d": {"e": {"f": 1}}, "g": 2}}}}],
        ["a.b.c.d.e str", "a.b.c.g int8"],
        [('{"f":1}', 2)],
        ("a.b.c.d.e",),
    ),
    "beyond the number of columns": (
        [{"big": {f"k{at}": at for at in range(201)}, "o": {"a": {"b": 1}}}],
        ["big str", "o.a.b int8"],
        [(json.dumps({f"k{at}": at for at in range(201)}, separators=(",", ":")), 1)],
        ("big",),
    ),
}


@pytest.mark.parametrize("name", ["a.ndjson", "a.json"])
@pytest.mark.parametrize("case", CASES)
def test_members_of_objects_become_columns(engine: DuckDBEngine, tmp_path: Path, case: str, name: str) -> None:
    objects, expected, values, noted = CASES[case]
    lines = text(*objects)
    if name == "a.json":
        lines = f"[{','.join(lines.splitlines())}]"
    result = load(engine, written(tmp_path, name, lines), "t")
    assert (columns(engine), stored(engine), named(result)) == (expected, values, noted)
    assert (result.skipped, result.nulls) == (0, ())


def test_numbers_that_are_text_are_noted_but_for_objects_with_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    lines = text({"e": {"c": 5}, "f": 1}, {"e": 7, "f": 2}, {"e": 8, "f": "x"}, {"e": "x"})
    result = load(engine, written(tmp_path, "a.ndjson", lines), "t")
    assert (changes(result), named(result, Change.TEXT)) == ({Change.TEXT: 2}, ("e", "f"))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"depth": 1}, ["o str", "p str"]),
        ({"depth": 2}, ["o.a int8", "o.b str", "p.d int8"]),
        ({"nested_columns": 1}, ["o str", "p.d int8"]),
        ({"nested_columns": 3}, ["o.a int8", "o.b.c int8", "p.d int8"]),
    ],
)
def test_limits_say_how_deep_objects_become_columns_and_how_many(
    engine: DuckDBEngine, tmp_path: Path, limits: dict[str, int], expected: list[str]
) -> None:
    path = written(tmp_path, "a.ndjson", text({"o": {"a": 1, "b": {"c": 2}}, "p": {"d": 3}}))
    limited = LoadLimits(**limits)
    loading.load(engine, [Source(path, "a")], "t", LoadOptions(), undisturbed, limits=limited, clock=lambda: NOW)
    assert columns(engine) == expected


def test_an_object_that_is_text_in_one_file_is_so_in_all_of_them(engine: DuckDBEngine, tmp_path: Path) -> None:
    small = written(tmp_path, "a.ndjson", text({"m": {"a": 1}, "o": {"a": 2}}))
    large = written(tmp_path, "b.ndjson", text({"m": {f"k{at}": at for at in range(201)}, "o": {"b": 3}}))
    load(engine, [small, large], "t")
    assert columns(engine) == ["m str", "o.a int8", "o.b int8"]
    assert [row[1:] for row in stored(engine)] == [(2, None), (None, 3)]


@pytest.mark.parametrize(
    ("late", "expected", "last"),
    [
        ({"o": {"a": 1}, "n": {"x": 1}}, ["o.a int8", "n int8", "n.x int8"], (1, None, 1)),
        ({"o": {"a": 1.5, "b": "x"}}, ["o.a float8", "o.b str", "n int8"], (1.5, "x", None)),
        ({"o": ["x"]}, ["o str", "o.a int8", "n int8"], ('["x"]', None, None)),
        ({"o": {}, "n": None}, ["o.a int8", "n int8"], (None, None)),
    ],
)
def test_the_end_of_a_file_decides_as_the_beginning_does(
    engine: DuckDBEngine, tmp_path: Path, late: dict[str, Any], expected: list[str], last: tuple[object, ...]
) -> None:
    lines = text({"o": {"a": 1}, "n": 1}) * 30_000 + text(late).replace("01-02", "01-03")
    result = load(engine, written(tmp_path, "a.ndjson", lines), "t")
    assert (result.rows, columns(engine), stored(engine)[-1]) == (30_001, expected, last)


FIRST = {"req": {"status": 200, "hdr": {"host": "x"}}, "err": "a", "n": 1}


@pytest.mark.parametrize(
    ("added", "values"),
    [
        ({"req": {"status": 404, "hdr": {"host": "y"}}}, (404, "y", None, None)),
        ({"req.status": 404}, (404, None, None, None)),
        ({"req": {}, "n": 2}, (None, None, None, 2)),
        ({"err": {"code": 1}, "req": {"hdr": {}}}, (None, None, '{"code":1}', None)),
    ],
)
def test_events_that_are_added_become_the_columns_of_the_table(
    engine: DuckDBEngine, tmp_path: Path, added: dict[str, Any], values: tuple[object, ...]
) -> None:
    load(engine, written(tmp_path, "a.ndjson", text(FIRST)), "t")
    load(engine, written(tmp_path, "b.ndjson", text(added).replace("01-02", "01-03")), "t")
    assert columns(engine) == ["req.status int8", "req.hdr.host str", "err str", "n int8"]
    assert stored(engine)[-1] == values


@pytest.mark.parametrize(
    ("added", "unknown"), [({"req": {"new": 1}}, "req.new"), ({"req": 5}, "req"), ({"n": {"a": 1}}, "n.a")]
)
def test_members_that_the_table_lacks_are_added_unless_columns_are_fixed(
    engine: DuckDBEngine, tmp_path: Path, added: dict[str, Any], unknown: str
) -> None:
    load(engine, written(tmp_path, "a.ndjson", text(FIRST)), "t")
    with pytest.raises(UsageError, match=f"no column '{unknown}'$"):
        load(engine, written(tmp_path, "b.ndjson", text(added)), "t", fixed_columns=True)
    load(engine, written(tmp_path, "b.ndjson", text(added)), "t")
    assert columns(engine)[-1] == f"{unknown} int8"


@pytest.mark.parametrize(
    ("types", "expected", "values"),
    [
        ({"req.status": "int4"}, ["req.status int4"], (200,)),
        ({"req": "str"}, ["req str"], ('{"status":"200"}',)),
    ],
)
def test_types_name_members_or_keep_an_object_as_text(
    engine: DuckDBEngine, tmp_path: Path, types: dict[str, str], expected: list[str], values: tuple[object, ...]
) -> None:
    load(engine, written(tmp_path, "a.ndjson", text({"req": {"status": "200"}})), "t", types=types)
    assert (columns(engine), stored(engine)) == (expected, [values])


DATE = {"$date": TIME}
NOTED = {Change.COLUMN: 1}


@pytest.mark.parametrize(
    ("event", "options", "left", "noted"),
    [
        ({"a": {"time": "2020-01-01"}, "@timestamp": TIME}, {}, ["a.time str"], {}),
        ({"t": DATE, "n": 1}, {}, ["n int8"], NOTED),
        ({"t": DATE, "u": DATE}, {"time_field": "u.$date"}, ["t.$date str"], NOTED),
        ({"t.$date": TIME, "t": {"$date": 1}}, {"time_field": "t.$date"}, ["t.$date_1 int8"], NOTED),
        ({"a": {"b": {"time": TIME}, "c": TIME}, "n": 1}, {}, ["a.b.time str", "n int8"], NOTED),
        ({"a": {"time": 1767348000, "id": 7}}, {}, ["a.id int8"], NOTED),
        ({"a": {"day": "2026-01-02", "clock": "10:00:00"}}, {"time_field": "a.day,a.clock"}, ["a.clock str"], {}),
    ],
)
def test_the_time_may_be_inside_an_object(
    engine: DuckDBEngine,
    tmp_path: Path,
    event: dict[str, Any],
    options: dict[str, str],
    left: list[str],
    noted: dict[Change, int],
) -> None:
    result = load(engine, written(tmp_path, "a.ndjson", json.dumps(event)), "t", **options)
    assert ([row[0] for row in rows(engine, "t")], columns(engine)) == ([datetime(2026, 1, 2, 10)], left)
    assert changes(result) == (noted if not options else {})


def test_of_several_times_inside_objects_the_user_names_one(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.ndjson", json.dumps({"a": {"time": TIME}, "b": {"time": TIME}}))
    with pytest.raises(UsageError) as caught:
        load(engine, path, "t")
    assert "a.time, b.time" in (caught.value.hint or "")


def test_the_time_may_be_inside_an_object_that_is_text_in_the_table(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.ndjson", text({"meta": "x"})), "t")
    path = written(tmp_path, "b.ndjson", json.dumps({"meta": {"at": {"time": 1767434400}, "n": 1}}))
    load(engine, path, "t", time_field="meta.at.time")
    assert rows(engine, "t")[1] == (datetime(2026, 1, 3, 10), '{"at":{"time":1767434400},"n":1}')


@pytest.mark.parametrize(("name", "depth"), [("a.parquet", 5), ("b.parquet", 2)])
def test_structs_of_parquet_become_columns(engine: DuckDBEngine, tmp_path: Path, name: str, depth: int) -> None:
    table = pa.table(
        {
            "time": [datetime(2026, 1, 2)] * 2,
            "req": [{"size": 2**63, "hdr": {"x.y": "n/a", "f": float("nan")}}, None],
            "tags": [[{"a": 1}], None],
        },
        schema=pa.schema(
            {
                "time": pa.timestamp("us"),
                "req": pa.struct(
                    {"size": pa.uint64(), "hdr": pa.struct({"x.y": pa.string(), "f": pa.float64()})}.items()
                ),
                "tags": pa.list_(pa.struct({"a": pa.int64()}.items())),
            }.items()
        ),
    )
    pq.write_table(table, path := tmp_path / name)
    limits = LoadLimits(depth=depth)
    options = LoadOptions(null=("n/a",), time_zone="UTC")
    result = loading.load(engine, [Source(path, name)], "t", options, undisturbed, limits=limits, clock=lambda: NOW)
    assert result is not None
    inside = {5: ["req.hdr.x.y str", "req.hdr.f float8"], 2: ["req.hdr str"]}[depth]
    values = {5: (None, None), 2: ('{"x.y":"n/a","f":NaN}',)}[depth]
    assert columns(engine) == ["req.size str", *inside, "tags str"]
    assert stored(engine) == [(str(2**63), *values, '[{"a":1}]'), (None, *[None] * len(values), None)]
    assert named(result) == ("tags",) if depth == 5 else ("req.hdr", "tags")


NAMES = [
    "a",
    "A",
    "b",
    "",
    "a.b",
    "b c",
    "é",
    "É",
    "time",
    "eventdate",
    "column0",
    "a_1",
    "(line)",
    "x/y",
    "~",
    '"',
    "'",
]


def random_value(random: Random, values: Iterator[int], depth: int) -> object:
    """An object, an array, null, or a number or text that no other value is equal to."""
    kind, value = random.random(), next(values)
    if kind < 0.4 and depth < 7:
        return {name: random_value(random, values, depth + 1) for name in random.sample(NAMES, random.randint(0, 3))}
    if kind < 0.5 and depth < 7:
        return [random_value(random, values, depth + 1) for _ in range(random.randint(0, 2))]
    return random.choice([value, value + 0.5, f"s{value}", None])


def scalars(value: object) -> Iterator[str]:
    """The texts and numbers inside a value; a text that begins with a bracket is JSON."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        value = json.loads(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        yield from (scalar for inner in value for scalar in scalars(inner))
    elif value is not None:
        yield str(value).removesuffix(".0")


@pytest.mark.parametrize(("seed", "depth", "most"), [(1, 5, 200), (2, 2, 200), (3, 7, 60), (4, 4, 5)])
def test_nothing_of_an_object_is_lost(engine: DuckDBEngine, tmp_path: Path, seed: int, depth: int, most: int) -> None:
    random, values = Random(seed), iter(range(10_000))
    objects = [
        {name: random_value(random, values, 1) for name in random.sample(NAMES[:8], random.randint(1, 5))}
        for _ in range(8)
    ]
    lines = text(*({"id": f"id{at}"} | one for at, one in enumerate(objects)))
    source = Source(written(tmp_path, "a.ndjson", lines), "a")
    limits = LoadLimits(depth=depth, nested_columns=most)
    options = LoadOptions(strict=True, time_field="time")
    loading.load(engine, [source], "t", options, undisturbed, limits=limits, clock=lambda: NOW)
    rows_by_id = {row[0]: row[1:] for row in stored(engine)}
    for at, one in enumerate(objects):
        assert Counter(scalars(list(rows_by_id[f"id{at}"]))) == Counter(scalars(one))
