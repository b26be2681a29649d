"""Stored events in one DuckDB file: its tables, how events are added, and how plans read them.

Tables live in the schema `events`, each under its dotted name as one identifier. `main.stored` remembers for each
whether its rows lie in eventdate order, because then a plan can scan instead of sort. The file belongs to one process;
DuckDB's own lock sees to that.

Statements are written by the query compiler, but they are not trusted: once the file is open, they cannot reach files,
extensions, settings or Python variables. Loading reads files elsewhere (`files.py`) and passes Arrow batches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from svcctl.errors import NotFound, UsageError
from svcctl.service.engines import ROWS_PER_BATCH, Mark, check_table
from svcctl.service.engines.duckdb.dialect import POSITION, DuckDBDialect
from svcctl.service.engines.duckdb.opening import SCHEMA, open_file, readable
from svcctl.service.engines.duckdb.statement import Statement, explained
from svcctl.service.engines.duckdb.text import SQL_TYPES, TYPES, quote
from svcctl.service.language.dialect import write
from svcctl.service.language.types import Column, Plan, Table, Type

ROWID = "rowid"
"""DuckDB's pseudo-column of positions. No row is deleted where it is, so it numbers them from 0."""
_TRIMMED = "SELECT coalesce(max(rows), 0) FROM main.trimmed WHERE name = ?"
"""How many rows were removed before the first row of a table."""
_CONNECT = "USE store; SET enable_progress_bar=false"


class DuckDBEngine:
    """One file of events (or memory, for `path` None). Reads run side by side; one writer at a time.

    `memory_limit` is what DuckDB may hold; sorts and groups beyond it go to `spill`, by default beside the file.
    """

    dialect = DuckDBDialect()

    def __init__(self, path: Path | None = None, *, memory_limit: str = "1GB", spill: Path | None = None) -> None:
        with readable(path):
            self._connection = open_file(path, memory_limit=memory_limit, spill=spill)
            self._tables = self._read_tables(self._connection)
        self._writing = threading.Lock()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tables(self) -> Mapping[str, Table]:
        """The stored tables by name, as of the last write."""
        return self._tables

    def table(self, name: str) -> Table:
        """One table; NotFound when it is not stored."""
        if name not in self._tables:
            raise NotFound(f"no table '{name}'")
        return self._tables[name]

    def newest(self, name: str) -> datetime | None:
        """The latest eventdate of a table, without a zone and in UTC; None when it is empty."""
        with self._cursor() as cursor:
            newest: datetime | None = self._one(cursor, f"SELECT max(eventdate) FROM {_relation(self.table(name))}")
            return newest

    def mark(self, name: str) -> int:
        # Rows are added behind the others and removed before them, so this is the position of the next one.
        rows = f"SELECT count(*) FROM {_relation(self.table(name))}"
        with self._cursor() as cursor:
            position: int = self._one(cursor, f"SELECT ({rows}) + ({_TRIMMED})", [name])
            return position

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        """A new, empty table. UsageError when its name or columns cannot be used or the table is already there."""
        with self._write() as cursor:
            self._create(cursor, name, columns)
        return self._tables[name]

    def append(self, name: str, rows: pa.RecordBatchReader, *, create: Sequence[Column] | None = None) -> int:
        with self._write() as cursor:
            table = self.table(name) if create is None else self._create(cursor, name, create)
            relation = _relation(table)
            cursor.register("incoming", rows)
            names = rows.schema.names
            unknown = [given for given in names if given not in {column.name for column in table.columns}]
            if unknown:
                raise UsageError(
                    f"table '{name}' has no column {', '.join(map(repr, unknown))}",
                    hint=f"it has {', '.join(column.name for column in table.columns)}",
                )
            given = [column for column in table.columns if column.name in names]
            last = self._one(cursor, f"SELECT max(eventdate) FROM {relation}")
            later = f"SELECT count(*) FROM {relation} WHERE eventdate >= ?"
            before = self._one(cursor, later, [last]) if last else 0
            added: int = self._one(
                cursor,
                f"INSERT INTO {relation} ({', '.join(quote(column.name) for column in given)}) "
                f"SELECT {', '.join(map(_as_stored, given))} FROM incoming ORDER BY eventdate",
            )
            if table.ordered and last and self._one(cursor, later, [last]) - before < added:
                cursor.execute("UPDATE main.stored SET ordered = false WHERE name = ?", [name])
        return added

    def trim(self, name: str, *, most: int, since: datetime) -> int:
        relation = _relation(self.table(name))
        with self._write() as cursor:
            rows: int = self._one(cursor, f"SELECT count(*) FROM {relation}")
            older: int = self._one(cursor, f"SELECT count(*) FROM {relation} WHERE eventdate < ?", [since])
            removed = max(rows - most, older)
            if removed <= 0:
                return rows
            # Written anew: the positions of rows after a DELETE would be DuckDB's choice.
            kept = f"{SCHEMA}.{quote('(kept)')}"
            cursor.execute(_create_sql(kept, self.table(name).columns))
            cursor.execute(f"INSERT INTO {kept} SELECT * FROM {relation} OFFSET {removed}")
            cursor.execute(f"DROP TABLE {relation}")
            cursor.execute(f"ALTER TABLE {kept} RENAME TO {quote(name)}")
            trimmed = self._one(cursor, _TRIMMED, [name]) + removed
            cursor.execute("INSERT OR REPLACE INTO main.trimmed VALUES (?, ?)", [name, trimmed])
            return rows - removed

    @contextmanager
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> Iterator[Statement]:
        with (
            self._reading(plan, since, until) as (cursor, text),
            closing(Statement(cursor, text, rows_per_batch)) as statement,
        ):
            yield statement

    @contextmanager
    def render(
        self,
        plan: Plan,
        expressions: Sequence[str],
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        skip: int = 0,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> Iterator[Statement]:
        """Like `stream`, but with expressions over the plan's columns, called c0, c1 …, without the first `skip` rows.

        One statement does both, which is what makes this engine fast.
        """
        # The plan's own names cannot be used: DuckDB does not tell names apart that differ only in case.
        names = ", ".join(f"c{index}" for index in range(plan.width))
        with self._reading(plan, since, until) as (cursor, text):
            rows = f"SELECT * FROM ({text}) OFFSET {skip}" if skip else text
            select = f"SELECT {', '.join(expressions)} FROM ({rows}) AS plan({names})"
            with closing(Statement(cursor, select, rows_per_batch)) as statement:
                yield statement

    @contextmanager
    def _reading(
        self, plan: Plan, since: Mark | None, until: Mark | None
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
        """A connection for a plan, and the plan's SELECT. Leaving the block stops what runs on it.

        Marks are positions in the table as it was when it had all of its rows, so they are read in the transaction in
        which the plan will run: a table may be trimmed at any moment.
        """
        cursor = self._open_cursor()
        try:
            trimmed = 0
            if since is not None or until is not None:
                with explained():
                    cursor.execute("BEGIN TRANSACTION")
                    [(trimmed,)] = cursor.execute(_TRIMMED, [plan.table]).fetchall()
            moved = (None if mark is None else max(0, int(mark) - trimmed) for mark in (since, until))
            yield cursor, self._text(plan, *moved)
        finally:
            cursor.close()

    @contextmanager
    def statement(self, select: str, rows_per_batch: int = ROWS_PER_BATCH) -> Iterator[Statement]:
        """Run a SELECT of DuckDB's SQL and read its rows while it runs; leaving the block stops it.

        A plan of an ordered table comes in stored order, and the order of a plan survives being wrapped in another
        SELECT (`preserve_insertion_order`).
        """
        statement = Statement(self._open_cursor(), select, rows_per_batch)
        try:
            yield statement
        finally:
            statement.close()

    def _text(self, plan: Plan, since: int | None, until: int | None) -> str:
        """The plan's SELECT, over the rows between two positions."""
        select = plan.select.copy()
        source = next(node for node in select.find_all(exp.Table))
        within = source.parent_select
        assert within is not None
        for compare, mark in ((exp.GTE, since), (exp.LT, until)):
            if mark is not None:
                within.where(compare(this=self.dialect.position(), expression=exp.Literal.number(mark)), copy=False)
        source.set("db", exp.to_identifier(SCHEMA, quoted=True))
        if any(column.name.casefold() == ROWID for column in self.table(plan.table).columns):
            # such a column hides DuckDB's own, so the rows are counted
            source.set("alias", None)
            rows = exp.select("*", f'row_number() OVER () - 1 AS "{POSITION}"', dialect="duckdb").from_(source.copy())
            source.replace(rows.subquery(exp.to_identifier("t", quoted=True)))
        else:
            for column in within.find_all(exp.Column):
                if column.name == POSITION:
                    column.set("this", exp.to_identifier(ROWID, quoted=True))
        if since is not None or until is not None:
            for limit in select.find_all(exp.Limit):
                # DuckDB 2.0 fails on a literal limit after a sort of rows between two rowids
                limit.set("expression", exp.Subquery(this=exp.Select(expressions=[limit.expression])))
        return write(select, self.dialect)

    def _create(self, cursor: duckdb.DuckDBPyConnection, name: str, columns: Sequence[Column]) -> Table:
        check_table(name, columns, self._tables)
        table = Table(name, tuple(columns), ordered=True)
        cursor.execute(_create_sql(_relation(table), columns))
        cursor.execute("INSERT INTO main.stored VALUES (?, true)", [name])
        return table

    def _open_cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute(_CONNECT)
        return cursor

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._open_cursor()
        try:
            with explained():
                yield cursor
        finally:
            cursor.close()

    @contextmanager
    def _write(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Run the block in a transaction, and read the catalog again afterwards."""
        with self._writing, self._cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                # A failed COMMIT has rolled back already, and DuckDB then refuses another ROLLBACK.
                with _ignoring_no_transaction():
                    cursor.execute("ROLLBACK")
                raise
            self._tables = self._read_tables(cursor)

    @staticmethod
    def _one(cursor: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()) -> Any:
        row = cursor.execute(sql, list(values)).fetchone()
        assert row is not None
        return row[0]

    @staticmethod
    def _read_tables(cursor: duckdb.DuckDBPyConnection) -> Mapping[str, Table]:
        rows = cursor.execute(
            "SELECT s.name, s.ordered, c.column_name, c.data_type FROM main.stored s "
            "JOIN duckdb_columns() c ON c.schema_name = ? AND c.table_name = s.name ORDER BY s.name, c.column_index",
            [SCHEMA],
        ).fetchall()
        columns: dict[tuple[str, bool], list[Column]] = {}
        for name, ordered, column, sql_type in rows:
            columns.setdefault((name, ordered), []).append(Column(column, TYPES[sql_type]))
        return MappingProxyType({name: Table(name, tuple(of), ordered) for (name, ordered), of in columns.items()})


@contextmanager
def _ignoring_no_transaction() -> Iterator[None]:
    try:
        yield
    except duckdb.TransactionException:
        return


def _relation(table: Table) -> str:
    return f"{SCHEMA}.{quote(table.name)}"


def _create_sql(relation: str, columns: Sequence[Column]) -> str:
    definitions = (
        f"{quote(column.name)} {SQL_TYPES[column.type]}{' NOT NULL' if column.name == 'eventdate' else ''}"
        for column in columns
    )
    return f"CREATE TABLE {relation} ({', '.join(definitions)})"


def _as_stored(column: Column) -> str:
    if column.type is Type.TIMESTAMP:
        return f"make_timestamp(epoch_us({quote(column.name)}::TIMESTAMP) // 1000 * 1000)"
    return f"{quote(column.name)}::{SQL_TYPES[column.type]}"
