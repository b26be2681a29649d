"""The engine: tables, order, streams, errors, and what a statement cannot reach."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from support.events import selected

from svcctl.errors import Locked, NotFound, ServiceError, SvcctlError, UsageError
from svcctl.service.engines import Mark
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.engine import MANY_ROWS
from svcctl.service.engines.duckdb.opening import ROW_GROUP_SIZE
from svcctl.service.engines.duckdb.windows import windowed
from svcctl.service.language import Plan, compile, parse
from svcctl.service.language.types import Column, Table, Type

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
COUNTING = "SELECT TIMESTAMP '2024-01-01' + to_seconds(i) AS eventdate, i AS n FROM range({}, {}) r(i)"


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        yield engine


def numbers(engine: DuckDBEngine, select: str, rows_per_batch: int = 2048) -> list[int]:
    with engine.statement(select, rows_per_batch) as stream:
        return [n for batch in stream for n in batch.column(0).to_pylist()]


def failure(engine: DuckDBEngine, select: str) -> SvcctlError:
    with pytest.raises(SvcctlError) as caught, engine.statement(select) as stream:
        for _ in stream:
            pass
    return caught.value


def test_a_new_table_is_listed_with_its_columns_and_is_ordered(engine: DuckDBEngine) -> None:
    columns = tuple(
        Column(name, type_) for name, type_ in [("eventdate", Type.TIMESTAMP), *((t.value, t) for t in Type)]
    )
    columns = tuple(column for column in columns if column.name != "timestamp")
    engine.create("demo.web.data", columns)
    assert dict(engine.tables()) == {"demo.web.data": Table("demo.web.data", columns, ordered=True)}


def test_rows_are_stored_in_eventdate_order_whatever_order_they_come_in(engine: DuckDBEngine) -> None:
    engine.create("t", COLUMNS)
    assert engine.append("t", selected(COUNTING.format(0, 5) + " ORDER BY i DESC")) == 5
    assert numbers(engine, "SELECT n FROM events.t") == [0, 1, 2, 3, 4]
    assert engine.newest("t") == datetime(2024, 1, 1, 0, 0, 4)


@pytest.mark.parametrize(("row", "comes_at"), [(5, 5), (99_999, 0), (0, 100), (70_000, 80_000), (0, 99_999)])
def test_a_new_table_is_in_order_wherever_a_row_comes_too_late(engine: DuckDBEngine, row: int, comes_at: int) -> None:
    """Rows in order are stored without a sort; the first that is not may come after some are stored."""
    in_order = [datetime(2024, 1, 1) + timedelta(milliseconds=n) for n in range(100_000)]
    dates = in_order.copy()
    dates.insert(comes_at, dates.pop(row))
    rows = pa.table({"eventdate": pa.array(dates, pa.timestamp("us")), "n": list(range(len(dates)))})
    batches = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=8192))
    assert engine.append("t", batches, create=COLUMNS) == 100_000
    with engine.statement("SELECT eventdate FROM events.t") as stored:
        assert pa.chunked_array([batch.column(0) for batch in stored]).to_pylist() == in_order
    assert engine.events("t") == 100_000
    assert list(engine.tables()) == ["t"]


def test_a_table_stays_ordered_until_older_rows_come(engine: DuckDBEngine) -> None:
    engine.create("t", COLUMNS)
    engine.append("t", selected(COUNTING.format(5, 10)))
    engine.append("t", selected(COUNTING.format(9, 12)))
    assert engine.table("t").ordered
    engine.append("t", selected(COUNTING.format(0, 3)))
    assert not engine.table("t").ordered
    assert numbers(engine, "SELECT n FROM events.t") == [5, 6, 7, 8, 9, 9, 10, 11, 0, 1, 2]


def test_tables_and_their_order_survive_a_restart(tmp_path: Path) -> None:
    with DuckDBEngine(tmp_path / "new" / "events.db") as engine:
        for name in ("sorted", "mixed"):
            engine.create(name, COLUMNS)
            engine.append(name, selected(COUNTING.format(5, 10)))
        engine.append("mixed", selected(COUNTING.format(0, 3)))
    with DuckDBEngine(tmp_path / "new" / "events.db") as engine:
        assert {name: table.ordered for name, table in engine.tables().items()} == {"mixed": False, "sorted": True}


def test_columns_go_by_name_and_missing_ones_are_null(engine: DuckDBEngine) -> None:
    engine.create("t", COLUMNS)
    batch = pa.table({"eventdate": pa.array([datetime(2024, 1, 1, 0, 0, 0, 123_999)], pa.timestamp("us"))})
    assert engine.append("t", batch.to_reader()) == 1
    with engine.statement("SELECT * FROM events.t") as stream:
        assert [batch.to_pylist() for batch in stream] == [
            [{"eventdate": datetime(2024, 1, 1, 0, 0, 0, 123_000), "n": None}]
        ]


def test_unknown_columns_are_refused_and_leave_nothing(engine: DuckDBEngine) -> None:
    engine.create("t", COLUMNS)
    with pytest.raises(UsageError) as caught:
        engine.append("t", selected("SELECT now()::TIMESTAMP AS eventdate, 1 AS other"))
    assert "'other'" in caught.value.message
    assert "eventdate, n" in (caught.value.hint or "")
    assert engine.newest("t") is None


def test_an_append_that_fails_midway_leaves_neither_rows_nor_the_table_it_made(engine: DuckDBEngine) -> None:
    broken = "SELECT CASE WHEN i < 9000 THEN now()::TIMESTAMP END AS eventdate, i AS n FROM range(9001) r(i)"
    with pytest.raises(ServiceError):
        engine.append("t", selected(broken), create=COLUMNS)
    assert dict(engine.tables()) == {}
    engine.create("t", COLUMNS)
    with pytest.raises(ServiceError) as caught:
        engine.append("t", selected(broken))
    assert "t.eventdate" in caught.value.message
    assert numbers(engine, "SELECT count(*) FROM events.t") == [0]


def test_a_table_that_is_not_there_is_not_found(engine: DuckDBEngine) -> None:
    with pytest.raises(NotFound, match="no table 'nope'"):
        engine.append("nope", selected("SELECT 1"))


def test_a_plain_scan_comes_in_stored_order_though_threads_share_it(engine: DuckDBEngine) -> None:
    engine.create("t", COLUMNS)
    engine.append("t", selected(COUNTING.format(0, 600_000)))
    assert numbers(engine, "SELECT n FROM events.t") == list(range(600_000))
    even = numbers(
        engine, "SELECT line::BIGINT FROM (SELECT concat(n, '') AS line FROM (SELECT n FROM events.t WHERE n % 2 = 0))"
    )
    assert even == list(range(0, 600_000, 2))


def test_an_order_inside_survives_a_select_around_it(engine: DuckDBEngine) -> None:
    engine.create("t", COLUMNS)
    engine.append("t", selected(COUNTING.format(0, 300_000)))
    backwards = numbers(engine, "SELECT c0 + 0 FROM (SELECT n FROM events.t ORDER BY n DESC) AS plan(c0)")
    assert backwards == list(range(299_999, -1, -1))


def test_rows_come_while_the_statement_runs(engine: DuckDBEngine) -> None:
    with engine.statement("SELECT i FROM range(1000000000000) r(i)", 1000) as stream:
        first = next(iter(stream))
    assert first.column(0).to_pylist()[:3] == [0, 1, 2]


@pytest.mark.slow
def test_a_sort_larger_than_the_memory_goes_through_the_disk(tmp_path: Path) -> None:
    with DuckDBEngine(memory_limit="60MB", spill=tmp_path) as engine:
        ordered = "SELECT repeat('x', 80) || hash(i) AS s FROM range(1500000) r(i) ORDER BY s LIMIT 1400000"
        assert numbers(engine, f"SELECT count(s) FROM ({ordered})") == [1_400_000]


def planned(engine: DuckDBEngine, query: str) -> Plan:
    start, now = datetime(2023, 1, 1, tzinfo=UTC), datetime(2024, 5, 6, tzinfo=UTC)
    return compile(parse(query), engine.tables(), dialect=engine.dialect, start=start, end=None, now=now)


def test_the_first_rows_of_many_come_before_later_ones_are_computed(engine: DuckDBEngine) -> None:
    """Row 5000 fails: a plan that reads fewer than MANY_ROWS is one statement, which fails before its first row."""
    engine.append("t", selected(COUNTING.format(0, MANY_ROWS + 2)), create=COLUMNS)
    failing = ["CASE WHEN c0 = 5000 THEN error('row 5000') ELSE c0 END"]

    def first_row(query: str, since: Mark | None = None) -> object:
        with engine.render(planned(engine, query), failing, since=since) as rows:
            return next(iter(rows)).column(0)[0].as_py()

    assert first_row("from t select n") == 0
    with pytest.raises(ServiceError, match="row 5000"):
        first_row("from t where n >= 4000 select n")
    with pytest.raises(ServiceError, match="row 5000"):
        first_row("from t select n", since=int(engine.mark("t")) - MANY_ROWS + 100)


@pytest.mark.parametrize(("query", "step"), [("from t select n", 1), ("from t where n % 3 = 0 select n", 3)])
def test_a_plan_that_is_read_in_two_parts_has_each_row_once(engine: DuckDBEngine, query: str, step: int) -> None:
    count = MANY_ROWS + 20_000
    engine.append("t", selected(COUNTING.format(0, count)), create=COLUMNS)
    begin = int(engine.mark("t")) - count
    for first, end in ((0, count), (9_000, count), (0, count - 1), (9_000, count - 5_000), (count, count)):
        since, until = begin + first if first else None, begin + end if end < count else None
        with engine.stream(planned(engine, query), since=since, until=until) as stream:
            rows = [n for batch in stream for n in batch.column(0).to_pylist()]
        assert rows == list(range(first, end, step)), (first, end)


@pytest.mark.parametrize("column", ["n", "rowid"])
def test_events_that_are_sorted_window_by_window_come_as_in_one_sort(column: str) -> None:
    load = (
        f"SELECT TIMESTAMP '2024-01-01' + to_seconds(i * 7919 % 5000) AS eventdate, i AS {column} FROM range({{}}) r(i)"
    )
    query = f"from t select {column} as n"
    expected = sorted(range(15_000), key=lambda n: n * 7919 % 5000)
    with DuckDBEngine(sorted_rows=1000) as engine:

        def answer(query: str, since: Mark | None = None, until: Mark | None = None) -> list[int]:
            with engine.stream(planned(engine, query), since=since, until=until) as stream:
                return [n for batch in stream for n in batch.column(0).to_pylist()]

        engine.append("t", selected(load.format("0, 6000")), create=(COLUMNS[0], Column(column, Type.INT8)))
        engine.append("t", selected(load.format("6000, 12000")))
        mark = engine.mark("t")
        engine.append("t", selected(load.format("12000, 15000")))
        assert answer(query) == expected
        assert answer(query, until=mark) == [n for n in expected if n < 12_000]
        assert answer(query, since=mark) == [n for n in expected if n >= 12_000]
        assert answer(f"from t where {column} % 3 = 0 select {column} as n") == [n for n in expected if n % 3 == 0]
        assert answer(f"from t select {column} as n offset 5 limit 20") == expected[5:25]
        assert answer("from t group select count() as n") == [15_000]


def test_a_window_has_about_as_many_events_as_are_sorted_at_once() -> None:
    events = "SELECT TIMESTAMP '2024-01-01' + to_seconds(i * 7919 % 5000) AS eventdate FROM range(15000) r(i)"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE events AS {events}")
        select = sqlglot.parse_one("SELECT epoch(t.eventdate) FROM events AS t WHERE true ORDER BY 1", read="duckdb")
        assert isinstance(select, sqlglot.exp.Select)
        texts = list(windowed(connection, select, select, 15_000, sorted_rows=1000))
        counts = [len(connection.execute(text).fetchall()) for text in texts]
    assert (len(counts), sum(counts)) == (15, 15_000)
    assert max(counts) < 1010


@pytest.mark.slow
def test_an_answer_of_loads_that_overlap_is_not_held(tmp_path: Path) -> None:
    nowhere = tmp_path / "spill"
    nowhere.touch()
    with DuckDBEngine(tmp_path / "events.duckdb") as engine:
        for first in range(4):
            date = f"TIMESTAMP '2024-01-01' + to_milliseconds(i * 80 + {first})"
            rows = selected(f"SELECT {date} AS eventdate, i AS n FROM range(1000000) r(i)")
            engine.append("t", rows, create=None if first else COLUMNS)
    with (
        DuckDBEngine(tmp_path / "events.duckdb", memory_limit="128MB", spill=nowhere) as engine,
        engine.stream(planned(engine, "from t select n")) as stream,
    ):
        assert sum(batch.num_rows for batch in stream) == 4_000_000


@pytest.mark.parametrize(
    ("rows", "values", "is_stored"),
    [(1000, 2000, True), (1001, 2000, False), (ROW_GROUP_SIZE + 1, 2 * ROW_GROUP_SIZE, True)],
    ids=["as many", "one more", "more than a row group"],
)
def test_a_load_of_too_many_values_at_once_is_refused(rows: int, values: int, is_stored: bool) -> None:
    with DuckDBEngine(group_values=values) as engine:
        dates = "TIMESTAMP '2024-01-01' AS eventdate, i::BIGINT AS n"
        incoming = selected(f"SELECT {dates} FROM range({rows}) r(i)")
        if is_stored:
            assert engine.append("t", incoming, create=COLUMNS, go_on=lambda: None) == rows
            return
        with pytest.raises(ServiceError, match=r"a load of 2 columns needs .* with more than 1,000 rows") as caught:
            engine.append("t", incoming, create=COLUMNS, go_on=lambda: None)
        assert caught.value.code == 422
        assert engine.tables() == {}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "length"), [(1000, 100_000), (100, 2_000_000)])
def test_a_load_that_needs_too_much_memory_says_so_and_changes_nothing(tmp_path: Path, rows: int, length: int) -> None:
    columns = (COLUMNS[0], Column("s", Type.STR))
    text = f"SELECT TIMESTAMP '2024-01-01' AS eventdate, repeat('x', {length}) AS s FROM range({rows})"
    with DuckDBEngine(tmp_path / "events.duckdb", memory_limit="10MB") as engine:
        with pytest.raises(ServiceError) as caught:
            engine.append("t", selected(text), create=columns)
        assert (caught.value.message, caught.value.hint) == (
            "the load needs more memory than the service may use",
            "nothing was changed; load fewer events at a time",
        )
        assert engine.tables() == {}


def test_an_interrupt_from_another_thread_ends_a_stream(engine: DuckDBEngine) -> None:
    with engine.statement("SELECT i FROM range(1000000000000) r(i)", 1000) as stream:
        batches = iter(stream)
        next(batches)
        thread = threading.Thread(target=stream.interrupt)
        thread.start()
        thread.join()
        with pytest.raises(ServiceError, match="the query was interrupted") as caught:
            next(batches)
    assert caught.value.code == 503


def test_an_interrupt_before_the_start_is_not_forgotten(engine: DuckDBEngine) -> None:
    with engine.statement("SELECT 1") as stream:
        stream.interrupt()
        with pytest.raises(ServiceError, match="the query was interrupted"):
            list(stream)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT nope FROM range(3)", 'Referenced column "nope" not found in FROM clause!'),
        ("SELECT CASE WHEN i = 90000 THEN error('boom') ELSE 'x' END FROM range(100000) r(i)", "boom"),
        ("SELECT (i::VARCHAR || 'x')::INTEGER FROM range(3) r(i)", "Could not convert string '0x' to INT32"),
    ],
)
def test_errors_are_one_line_without_the_statement(engine: DuckDBEngine, select: str, message: str) -> None:
    error = failure(engine, select)
    assert isinstance(error, ServiceError)
    assert (error.message, error.code) == (message, None)


secret = pa.table({"a": [1]})


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "ATTACH '{path}/other.db'",
        "COPY (SELECT 1) TO '{path}/out.csv'",
        "INSTALL httpfs",
        "SET enable_external_access=true",
        "SET memory_limit='100GB'",
        "SELECT * FROM secret",
    ],
)
def test_a_statement_cannot_reach_files_extensions_settings_or_variables(
    engine: DuckDBEngine, tmp_path: Path, statement: str
) -> None:
    failure(engine, statement.format(path=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    path.write_bytes(b"x" * 5000)
    with pytest.raises(
        UsageError, match=r"^cannot open .*events\.db: The file .* is not a valid DuckDB database file!$"
    ):
        DuckDBEngine(path)


OPEN_AND_APPEND = """
import sys
from pathlib import Path
import duckdb
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Type
engine = DuckDBEngine(Path(sys.argv[1]))
engine.create("t", [Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)])
for turn in range(1000000):
    engine.append("t", duckdb.sql(f"SELECT TIMESTAMP '2024-01-01' + to_seconds(i) AS eventdate, i AS n "
                                  f"FROM range({turn} * 1000, {turn} * 1000 + 1000) r(i)").to_arrow_reader())
    print(turn, flush=True)
"""


@pytest.mark.slow
def test_another_process_is_told_of_the_lock_and_a_kill_loses_nothing_that_was_done(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with subprocess.Popen([sys.executable, "-c", OPEN_AND_APPEND, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for turn in range(5):
            assert process.stdout.readline() == b"%d\n" % turn
        with pytest.raises(Locked) as caught:
            DuckDBEngine(path)
        process.send_signal(signal.SIGKILL)
        done = 5 + len(process.stdout.readlines())
    assert caught.value.message == f"{path} is in use by another process"
    with DuckDBEngine(path) as engine:
        rows = numbers(engine, "SELECT n FROM events.t")
        assert engine.table("t").ordered
    assert len(rows) in (done * 1000, done * 1000 + 1000)
    assert rows == list(range(len(rows)))
