"""The engines that the suites run on, by name. `plain` has only the methods of the protocol, and so tests it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet
from sqlglot import exp

from support.shells import TESTED
from support.spark import shared
from svcctl.errors import ServiceError, SvcctlError, UsageError
from svcctl.service.engines import ARROW, ROWS_PER_BATCH, Engine, Engines, Extent, Mark, by_bytes
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.dialect import DuckDBDialect
from svcctl.service.engines.duckdb.lake_reader import LakeReader
from svcctl.service.engines.duckdb.syntax import SQL_TYPES, quote
from svcctl.service.engines.duckdb.widening import is_lossy, widened
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.engines.spark import Server, SparkConnection, SparkReader
from svcctl.service.engines.table_rules import (
    AlreadyLoaded,
    ColumnChange,
    UnknownTable,
    check_table,
    replaced,
    unwidened,
)
from svcctl.service.http.access_log import TABLE as ACCESS_TABLE
from svcctl.service.language.dialect import Dialect, write
from svcctl.service.language.types import Column, Plan, Table, Type


class PlainDialect(DuckDBDialect):
    """A dialect with addresses as int8, and with positions in a column, as in tables of shared files."""

    ip4 = exp.DType.BIGINT

    def position(self) -> exp.Expr:
        return exp.column("(position)", table="t", quoted=True)


class PlainEngine:
    """Tables in memory. Each append makes a version, and a mark is the name of a version. Tables are not ordered."""

    dialect: Dialect = PlainDialect()

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._tables: dict[str, Table] = {}
        self._versions: dict[str, int] = {}
        self._begun: dict[str, int] = {}
        self._loads: set[tuple[str, str]] = set()
        self._removed: dict[str, list[tuple[int, datetime]]] = {}
        """The version of a table when rows were removed, and their latest date."""

    def check(self) -> None: ...

    def tables(self) -> Mapping[str, Table]:
        return self._tables

    def table(self, name: str) -> Table:
        if name not in self._tables:
            raise UnknownTable(name, self._tables)
        return self._tables[name]

    def everywhere(self, name: str) -> bool:
        return False

    def newest(self, name: str) -> datetime | None:
        self.table(name)
        [(newest,)] = self._connection.cursor().execute(f"SELECT max(eventdate) FROM {quote(name)}").fetchall()
        return cast("datetime | None", newest)

    def events(self, name: str) -> int:
        return self.extent(name).events

    def extent(self, name: str) -> Extent:
        self.table(name)
        extent = f"SELECT count(*), min(eventdate), max(eventdate) FROM {quote(name)}"
        [(events, oldest, newest)] = self._connection.cursor().execute(extent).fetchall()
        return Extent(events, oldest, newest, bytes=None)

    def mark(self, name: str) -> Mark:
        self.table(name)
        return f"v{self._versions[name]}"

    def check_mark(self, name: str, mark: Mark) -> None:
        if int(str(mark)[1:]) < self._begun.get(name, 0):
            raise replaced(name)

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        check_table(name, columns, self._tables)
        empty = pa.schema([(column.name, _stored(column.type)) for column in columns]).empty_table()
        empty = empty.append_column("(position)", pa.array([], pa.int64())).append_column(
            "(version)", pa.array([], pa.int64())
        )
        cursor = self._connection.cursor()
        cursor.register("empty", empty)
        cursor.execute(f"CREATE TABLE {quote(name)} AS FROM empty")
        self._versions[name] = self._begun.setdefault(name, 0)
        self._tables[name] = Table(name, tuple(columns))
        return self._tables[name]

    def drop(self, name: str) -> None:
        self.table(name)
        self._connection.cursor().execute(f"DROP TABLE {quote(name)}")
        self._begun[name] = self._versions[name] + 1
        self._removed.pop(name, None)
        self._loads = {(table, load_id) for table, load_id in self._loads if table != name}
        del self._tables[name]

    def append(
        self,
        name: str,
        rows: pa.RecordBatchReader,
        *,
        create: Sequence[Column] | None = None,
        replace: bool = False,
        change: ColumnChange | None = None,
        load_id: str | None = None,
        go_on: Callable[[], None] | None = None,
    ) -> int:
        if load_id is not None and self.has_load(name, load_id):
            raise AlreadyLoaded(name, load_id)
        if create is not None:
            check_table(name, create, self._tables, replace=replace)
        columns = self.table(name).columns if create is None else create
        if change is not None:
            self._check_change(name, change)
            columns = change.after
        unknown = [given for given in rows.schema.names if given not in {column.name for column in columns}]
        if unknown:
            raise UsageError(f"table '{name}' has no column {', '.join(map(repr, unknown))}")
        try:
            given = rows.read_all()
            stored = pa.table(
                [
                    given[column.name].cast(pa.timestamp("ms"), safe=False).cast(_stored(column.type))
                    if column.type is Type.TIMESTAMP and column.name in given.schema.names
                    else given[column.name].cast(_stored(column.type))
                    if column.name in given.schema.names
                    else pa.nulls(len(given), _stored(column.type))
                    for column in columns
                ],
                [column.name for column in columns],
            ).sort_by("eventdate")
        except (pa.ArrowException, OSError) as error:
            raise ServiceError(str(error), code=500) from None
        if stored["eventdate"].null_count:
            raise ServiceError("a row has no eventdate", code=500)
        if go_on:
            go_on()
        if create is not None:
            if replace and name in self._tables:
                self.drop(name)
            self.create(name, create)
        if change is not None:
            self._change(name, change)
        cursor = self._connection.cursor()
        cursor.register("incoming", stored)
        end = f'SELECT coalesce(max("(position)"), 0) FROM {quote(name)}'
        cursor.execute(
            f'INSERT INTO {quote(name)} BY NAME SELECT *, ({end}) + row_number() OVER () AS "(position)", '
            f'{self._versions[name] + 1} AS "(version)" '
            "FROM incoming"
        )
        self._versions[name] += 1
        if load_id is not None:
            self._loads.add((name, load_id))
        return len(stored)

    def _check_change(self, name: str, change: ColumnChange) -> None:
        change.check(name, self.table(name).columns)
        for column, wider in change.widened:
            if lossy := is_lossy(column, wider.type):
                count = f"SELECT count(*) FROM {quote(name)} WHERE {lossy}"
                [(values,)] = self._connection.cursor().execute(count).fetchall()
                if values:
                    raise unwidened(name, column, values)

    def _change(self, name: str, change: ColumnChange) -> None:
        cursor, table = self._connection.cursor(), self.table(name)
        for column in change.added:
            type_ = SQL_TYPES[Type.INT8 if column.type is Type.IP4 else column.type]
            cursor.execute(f"ALTER TABLE {quote(name)} ADD COLUMN {quote(column.name)} {type_}")
        for column, wider in change.widened:
            values = f"TYPE {SQL_TYPES[wider.type]} USING {widened(column, wider.type)}"
            cursor.execute(f"ALTER TABLE {quote(name)} ALTER COLUMN {quote(wider.name)} {values}")
        self._tables[name] = Table(name, change.after, added=table.added + len(change.added))

    def has_load(self, name: str, load_id: str) -> bool:
        return (name, load_id) in self._loads

    def trim(self, name: str, *, most: int, since: datetime) -> int:
        self.table(name)
        cursor, table = self._connection.cursor(), quote(name)
        counted = cursor.execute(f"SELECT count(*), count_if(eventdate < ?) FROM {table}", [since]).fetchall()
        [(rows, older)] = counted
        removed = max(rows - most, older, 0)
        first = f'SELECT "(position)" FROM {table} ORDER BY "(position)" LIMIT {removed}'
        self._delete(name, f'"(position)" IN ({first})')
        return int(rows - removed)

    def remove_before(self, name: str, date: datetime) -> int:
        self.table(name)
        return self._delete(name, f"eventdate < '{date.isoformat()}'")

    def _delete(self, name: str, condition: str) -> int:
        cursor, table = self._connection.cursor(), quote(name)
        [(newest,)] = cursor.execute(f"SELECT max(eventdate) FROM {table} WHERE {condition}").fetchall()
        if newest is not None:
            self._removed.setdefault(name, []).append((self._versions[name], newest))
        [(removed,)] = cursor.execute(f"DELETE FROM {table} WHERE {condition}").fetchall()
        return int(removed)

    def has_removed(self, name: str, since: Mark | None, until: Mark | None, start: datetime) -> bool:
        self.table(name)
        for mark in (since, until):
            if mark is not None:
                self.check_mark(name, mark)
        last = 0 if until is None else int(str(until)[1:])
        return any(version >= last and newest >= start for version, newest in self._removed.get(name, []))

    @contextmanager
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> Iterator[PlainStream]:
        for mark in (since, until):
            if mark is not None:
                self.check_mark(plan.table, mark)
        first = 0 if since is None else int(str(since)[1:])
        last = self._versions[plan.table] if until is None else int(str(until)[1:])
        select = plan.select.copy()
        version = exp.column("(version)", quoted=True)
        within = exp.select("*").from_(exp.to_table(quote(plan.table), dialect="duckdb"))
        within = within.where(version > first).where(version.copy() <= last)
        node = next(node for node in select.find_all(exp.Table))
        node.replace(within.subquery("t"))
        types = [ARROW[column.type] for column in plan.columns] + [ARROW[Type.TIMESTAMP]] * plan.dated
        cursor = self._connection.cursor()
        try:
            yield PlainStream(cursor, write(select, self.dialect), types, rows_per_batch)
        finally:
            cursor.close()

    def close(self) -> None:
        self._connection.close()


class PlainStream:
    def __init__(
        self, connection: duckdb.DuckDBPyConnection, sql: str, types: Sequence[pa.DataType], rows_per_batch: int
    ) -> None:
        self._connection, self._sql, self._types, self._rows = connection, sql, types, rows_per_batch
        self._stopped: SvcctlError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            self._check()
            reader = self._connection.sql(self._sql).to_arrow_reader(self._rows)
            names = [str(index) for index in range(len(self._types))]
            for batch in reader:
                self._check()
                arrays = [column.cast(type_) for column, type_ in zip(batch.columns, self._types, strict=True)]
                if batch.num_rows:
                    yield from by_bytes(pa.RecordBatch.from_arrays(arrays, names))
            self._check()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise (self._stopped or ServiceError(str(error), code=500)) from None

    def _check(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    def interrupt(self, reason: SvcctlError | None = None) -> None:
        self._stopped = self._stopped or reason or ServiceError("the query was interrupted", code=503)
        self._connection.interrupt()


def _stored(type_: Type) -> pa.DataType:
    return pa.int64() if type_ is Type.IP4 else ARROW[type_]


def new_lake(uri: str, environment: Mapping[str, str] | None = None, **options: Any) -> LakeTables:
    """A shared folder, which is made if it does not exist."""
    lake = LakeTables(uri, environment or {}, **options)
    lake.folder.create()
    return lake


@contextmanager
def own_folder() -> Iterator[LakeTables]:
    """A folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="svcctl-lake-") as directory, new_lake(directory) as lake:
        yield lake


@contextmanager
def _on_duckdb() -> Iterator[Engine]:
    with DuckDBEngine() as both:
        yield Engine(both, both)


@contextmanager
def _plain() -> Iterator[Engine]:
    with closing(PlainEngine()) as both:
        yield Engine(both, both)


@contextmanager
def _on_lake() -> Iterator[Engine]:
    with own_folder() as lake:
        yield Engine(lake, LakeReader(lake))


@contextmanager
def on_connect(uri: str, **options: Any) -> Iterator[Engine]:
    """Tables in a folder, with queries that run on a server of Spark Connect."""
    with own_folder() as lake, closing(SparkReader(lake, SparkConnection(Server(uri)), **options)) as reader:
        yield Engine(lake, reader)


ENGINES: Mapping[str, Callable[[], AbstractContextManager[Engine]]] = {
    "duckdb": _on_duckdb,
    "plain": _plain,
    "lake": _on_lake,
}
"""The engines that run in this process."""
EVERY_ENGINE: Mapping[str, Callable[[], AbstractContextManager[Engine]]] = {
    **ENGINES,
    "sail": lambda: on_connect(shared("sail")),
    "spark": lambda: on_connect(shared("spark")),
}


@contextmanager
def chosen_engine(events: Path | None = None) -> Iterator[Engines]:
    """The engine of TESTED. With all but duckdb, the tables about the service itself are in a DuckDB of their own.

    This DuckDB is the file `events`, or in memory for None.
    """
    with ExitStack() as stack:
        own = stack.enter_context(DuckDBEngine(events))
        shared = None if TESTED == "duckdb" else stack.enter_context(EVERY_ENGINE[TESTED]())
        yield Engines(Engine(own, own), shared, (ACCESS_TABLE,))


def engines_of(stored: DuckDBEngine | LakeTables) -> Engines:
    """The engines of a service that has these tables only, and reads them in DuckDB."""
    return Engines(Engine(stored, LakeReader(stored) if isinstance(stored, LakeTables) else stored))


def rows_of_engines(*slow: str) -> list[ParameterSet]:
    """The names of EVERY_ENGINE as parameters. Engines on Spark Connect, and those in `slow`, are marked slow."""
    slow = ("sail", "spark", *slow)
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in slow), id=name) for name in EVERY_ENGINE]
