"""Loading files: every format, which column is the time, what is skipped, and what is refused."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.files import READERS
from svcctl.service.events.load import LoadResult, load
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
    ],
)
def test_csv_and_tsv_are_typed_over_the_whole_file(engine: DuckDBEngine, tmp_path: Path, name: str, text: str) -> None:
    assert load(engine, written(tmp_path, name, text), "web.log") == LoadResult("web.log", CSV_COLUMNS, 3, 0, None)
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
    assert result.first_skipped == "line 3: Expected Number of Columns: 2 Found: 1"
    assert rows(engine, "t") == [(datetime(2026, 1, 1), "a"), (datetime(2026, 1, 1), "d")]


def test_rows_without_a_time_are_counted_and_the_first_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    result = load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-01,1\nsoon,2\n,3\n"), "t")
    assert result == LoadResult("t", (CSV_COLUMNS[0], Column("n", Type.INT8)), 1, 2, "row 2")


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
    assert (result.rows, result.skipped, result.first_skipped) == (3, 2, "line 2")
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
    assert (result.rows, result.skipped, result.first_skipped) == (3, 1, "line 3")
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


def test_log_lines_that_begin_with_a_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        "2026-01-02 10:11:12 status installed foo:amd64 1.2\n"
        "    a second line\n"
        "2026-01-02T10:11:13,250+01:00 ünïcode\r\n"
    )
    result = load(engine, written(tmp_path, "dpkg.log.gz", text), "dpkg")
    assert (result.rows, result.skipped, result.first_skipped) == (2, 1, "line 2")
    assert rows(engine, "dpkg") == [
        (datetime(2026, 1, 2, 9, 11, 13, 250_000), "ünïcode"),
        (datetime(2026, 1, 2, 10, 11, 12), "status installed foo:amd64 1.2"),
    ]


def test_an_existing_table_takes_what_fits_and_counts_the_rest(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", [CSV_COLUMNS[0], Column("ip", Type.IP4), Column("n", Type.INT4), Column("absent", Type.STR)])
    text = "time,ip,n\n2026-01-01,192.0.2.1,1\n2026-01-01,192.0.2.256,2\n2026-01-01,10.0.0.1,1.5\n2026-01-02,,3\n"
    result = load(engine, written(tmp_path, "a.csv", text), "t")
    assert (result.rows, result.skipped, result.first_skipped) == (2, 2, "row 2")
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 0xC0000201, 1, None),
        (datetime(2026, 1, 2), None, 3, None),
    ]


def test_older_events_go_to_the_end_of_an_existing_table(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-02,1\n"), "t")
    load(engine, written(tmp_path, "b.csv", "time,n\n2026-01-01,2\n"), "t")
    assert rows(engine, "t") == [(datetime(2026, 1, 2), 1), (datetime(2026, 1, 1), 2)]
    assert not engine.table("t").ordered


@pytest.mark.parametrize(
    ("header", "chosen"),
    [("ts,time,n", "time"), ("Date,created,n", "Date"), ("created,n,m", "created"), ("eventdate,time,n", "eventdate")],
)
def test_the_time_is_found_by_name_or_because_only_one_column_is_a_time(
    engine: DuckDBEngine, tmp_path: Path, header: str, chosen: str
) -> None:
    times = {name: f"2026-01-0{day}" for day, name in enumerate(["ts", "time", "Date", "created", "eventdate"], 1)}
    path = written(
        tmp_path, "a.csv", header + "\n" + ",".join(times.get(name, "5") for name in header.split(",")) + "\n"
    )
    load(engine, path, "t")
    assert rows(engine, "t")[0][0] == datetime.fromisoformat(times[chosen])


@pytest.mark.parametrize(
    ("text", "options", "message", "hint"),
    [
        ("a,b\n1,2\n", {}, "it is not clear which column of a.csv is the time", "name it with --time-field: a, b"),
        ("a,b\n1,2\n", {"time_field": "c"}, "a.csv has no column 'c'", "its columns are a, b"),
        (
            "a,b\nx,2\n",
            {"time_field": "a"},
            "no time could be read in 'a' of a.csv",
            "name the column that holds it with --time-field",
        ),
        (
            "eventdate,b\n2026-01-01,2\n",
            {"time_field": "b"},
            "a.csv has a column eventdate, so 'b' cannot take its place",
            None,
        ),
        ("", {}, "a.csv is empty", None),
        (
            "a,b\n1,2\n",
            {"format": "yaml"},
            "unknown format 'yaml'",
            "formats are csv, tsv, ndjson, parquet, access, log",
        ),
        ("a,b\n1,2\n", {"format": "ndjson"}, "a.csv has no line that is a JSON object", None),
        ("time,new\n2026-01-01,2\n", {"table": "there"}, "table 'there' has no column 'new'", "it has eventdate"),
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
    with pytest.raises(UsageError, match="No such file or directory"):
        load(engine, tmp_path / "nope.csv", "t")


def test_every_kind_of_file_has_a_reader() -> None:
    assert list(FILE_KINDS) == list(READERS)
