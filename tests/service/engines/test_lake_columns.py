"""Tables in a shared folder whose columns a load changes: other processes, other tools and other stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from support.engines import new_lake
from support.events import batches, store
from support.places import Place, hdfs, local, s3

from svcctl.errors import UsageError
from svcctl.service.engines import Mark
from svcctl.service.engines.duckdb.lake_reader import LakeReader
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.engines.table_rules import ColumnChange, ColumnsChanged
from svcctl.service.language import Column, Plan, Type, compile, parse

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT4))
FIRST = datetime(2024, 1, 1)
X = Column("x", Type.STR)


def opened(place: Place) -> LakeTables:
    return new_lake(f"{place.target}/tables", place.environment)


def at(hour: float) -> datetime:
    return FIRST + timedelta(hours=hour)


def add(lake: LakeTables, *events: tuple[float, int]) -> None:
    store(lake, "t", COLUMNS, [(at(hour), n) for hour, n in events])


def change_to(lake: LakeTables, *columns: Column) -> ColumnChange:
    """The change by which table t gets these columns, or other types of its own."""
    before, new = lake.table("t").columns, {column.name: column for column in columns}
    after = [new.pop(column.name, column) for column in before]
    return ColumnChange(before, (*after, *new.values()))


def stored(lake: LakeTables, change: ColumnChange, *event: object, **options: Any) -> None:
    lake.append("t", batches(change.after, [event]), change=change, **options)


def planned(lake: LakeTables, query: str) -> Plan:
    start, now = datetime(2023, 1, 1, tzinfo=UTC), datetime(2024, 5, 6, tzinfo=UTC)
    return compile(
        parse(query), {"t": lake.table("t")}, dialect=LakeReader(lake).dialect, start=start, end=None, now=now
    )


def rows(lake: LakeTables, query: str, since: Mark | None = None) -> list[tuple[object, ...]]:
    with LakeReader(lake).stream(planned(lake, query), since=since) as stream:
        return [row for batch in stream for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[LakeTables]:
    with opened(local(tmp_path)) as lake:
        yield lake


@pytest.mark.parametrize("name", ["day", "_load", "_ROW"])
def test_a_new_column_with_the_name_of_a_hidden_one_gives_that_another_name(lake: LakeTables, name: str) -> None:
    add(lake, (0, 0), (5, 5))
    mark = lake.mark("t")
    stored(lake, change_to(lake, Column(name, Type.STR)), at(1), 1, "a")
    read = f"from t select n, `{name}` as x"
    assert rows(lake, read) == [(0, None), (1, "a"), (5, None)]
    assert rows(lake, read, since=mark) == [(1, "a")]
    assert lake.compact("t") == (2, 1)
    add(lake, (6, 6))
    assert rows(lake, read) == [(0, None), (1, "a"), (5, None), (6, None)]


STORES: Mapping[str, Callable[[Any], Place]] = {"tmp_path": local, "ceph_peer": s3, "hdfs_peer": hdfs}


@pytest.mark.parametrize("peer", STORES)
def test_changed_columns_are_the_same_for_every_process_on_every_store(
    peer: str, request: pytest.FixtureRequest
) -> None:
    place = STORES[peer](request.getfixturevalue(peer))
    with opened(place) as here, opened(place) as there:
        add(here, (0, 0), (30, 30))
        assert rows(there, "from t select n") == [(0,), (30,)]
        mark = there.mark("t")
        stored(here, change_to(here, X), at(1), 1, "a")
        assert rows(there, "from t select n, x") == [(0, None), (1, "a"), (30, None)]
        stored(there, change_to(there, Column("n", Type.FLOAT8)), at(2), 0.5, None)
        expected = [(0.0, None), (1.0, "a"), (0.5, None), (30.0, None)]
        assert rows(here, "from t select n, x") == expected
        assert rows(here, "from t select n", since=mark) == [(1.0,), (0.5,)]
        here.compact("t")
        assert rows(there, "from t select n, x") == expected
        here.checkpoint("t")
        with opened(place) as fresh:
            assert (fresh.table("t"), fresh.mark("t")) == (there.table("t"), there.mark("t"))
            assert rows(fresh, "from t select n, x") == expected


def test_other_tools_read_changed_columns_and_an_older_version_stays_as_it_was(
    lake: LakeTables, tmp_path: Path
) -> None:
    add(lake, (0, 0))
    older = deltalake.DeltaTable(f"{tmp_path}/tables/t")
    stored(lake, change_to(lake, X), at(1), 1, "a")
    stored(lake, change_to(lake, Column("n", Type.STR)), at(2), "b", None)
    newer = deltalake.DeltaTable(f"{tmp_path}/tables/t").to_pyarrow_table().select(["n", "x"])
    assert sorted(newer.to_pylist(), key=lambda row: row["n"]) == [
        {"n": "0", "x": None},
        {"n": "1", "x": "a"},
        {"n": "b", "x": None},
    ]
    assert older.to_pyarrow_table().select(["n"]).to_pylist() == [{"n": 0}]
    older.update_incremental()
    assert older.to_pyarrow_table().num_rows == 3


def test_a_column_that_another_tool_has_added_stays_and_is_not_taken(lake: LakeTables, tmp_path: Path) -> None:
    add(lake, (0, 0))
    table = deltalake.DeltaTable(f"{tmp_path}/tables/t")
    table.alter.add_columns(deltalake.Field("X", deltalake.schema.PrimitiveType("integer"), nullable=True))
    with pytest.raises(UsageError, match=r"^another tool has added a column 'x' to table 't'$"):
        stored(lake, change_to(lake, X), at(1), 1, "a")
    stored(lake, change_to(lake, Column("y", Type.STR)), at(1), 1, "a")
    table.update_incremental()
    assert [field.name for field in table.schema().fields] == ["eventdate", "n", "y", "_load", "_row", "day", "X"]
    assert rows(lake, "from t select n, y") == [(0, None), (1, "a")]


@pytest.mark.parametrize("widens", [False, True])
def test_a_change_of_columns_while_another_process_stores_rows(
    lake: LakeTables, tmp_path: Path, *, widens: bool
) -> None:
    """To widen a column all files are written again, so that a load in between must not be lost."""
    add(lake, (0, 0))
    change = change_to(lake, X, *[Column("n", Type.FLOAT8)] * widens)

    def storing() -> Iterator[pa.RecordBatch]:
        yield from batches(change.after, [(at(2), 2, "a")])
        with opened(local(tmp_path)) as other:
            add(other, (1, 1))

    reader = pa.RecordBatchReader.from_batches(batches(change.after, []).schema, storing())
    with pytest.raises(ColumnsChanged) if widens else nullcontext():
        lake.append("t", reader, change=change)
    assert rows(lake, "from t select n") == ([(0,), (1,)] if widens else [(0,), (1,), (2,)])
    assert len(list(tmp_path.rglob("*.parquet"))) == len(lake.snapshot("t").files)


@pytest.mark.parametrize("column", [X, Column("n", Type.FLOAT8), Column("day", Type.STR)])
def test_rows_that_are_stored_while_another_process_changes_columns(
    lake: LakeTables, tmp_path: Path, column: Column
) -> None:
    add(lake, (0, 0))

    def storing() -> Iterator[pa.RecordBatch]:
        yield from batches(COLUMNS, [(at(2), 2)])
        with opened(local(tmp_path)) as other:
            change = change_to(other, column)
            stored(other, change, at(1), 1, *["a"] * (len(change.after) - 2))

    reader = pa.RecordBatchReader.from_batches(batches(COLUMNS, []).schema, storing())
    fits = column is X
    with nullcontext() if fits else pytest.raises(ColumnsChanged):
        lake.append("t", reader)
    assert rows(lake, "from t select n") == ([(0,), (1,), (2,)] if fits else [(0,), (1,)])


def test_processes_that_add_columns_at_once_while_queries_run(lake: LakeTables, tmp_path: Path) -> None:
    add(lake, (0, 0))
    count = 8

    def load(number: int) -> None:
        column = Column(f"x{number % 4}", Type.STR)
        with opened(local(tmp_path)) as tables:
            while True:
                change = change_to(tables, column)
                event: Mapping[str, object] = {"eventdate": at(number), "n": number, column.name: "a"}
                try:
                    if change.after == change.before:
                        return _plain(tables, change.before, event)
                    return stored(tables, change, *(event.get(column.name) for column in change.after))
                except ColumnsChanged:
                    continue

    def _plain(tables: LakeTables, columns: Sequence[Column], event: Mapping[str, object]) -> None:
        tables.append("t", batches(columns, [[event.get(column.name) for column in columns]]))

    with ThreadPoolExecutor(4) as threads:
        loads = [threads.submit(load, number + 1) for number in range(count)]
        counts = [len(rows(lake, "from t")) for _ in range(20)]
        for done in loads:
            done.result()
    assert counts == sorted(counts)
    assert rows(lake, "from t select n") == [(n,) for n in range(count + 1)]
    assert {column.name for column in lake.table("t").columns[2:]} == {"x0", "x1", "x2", "x3"}
    assert lake.table("t").added == 4
    for number in range(4):
        assert rows(lake, f"from t where x{number} = 'a' group select count() as n") == [(2,)]
