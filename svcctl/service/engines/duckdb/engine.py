"""The engine that stores events in one DuckDB file. It makes tables, loads events and runs plans.

Tables are in the schema `events`. The dotted name of a table is one identifier in this schema. `main.stored` records
whether the rows of each table are stored in the order of eventdate. If so, a plan need not sort the rows. `main.loaded`
has the IDs of each table's loads. `main.grown` has the number of columns that loads have added to each table. Only one
process can open the file, because DuckDB locks it.

The SQL statements of plans come from the query compiler and are not trusted. Once the file is open, statements cannot
access other files, extensions, settings or Python variables. Other modules read files with events, and pass the
events to this module as Arrow batches.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from svcctl.errors import ServiceError, UsageError
from svcctl.service.engines import ROWS_PER_BATCH, Extent, Mark
from svcctl.service.engines.duckdb import long_texts, positions
from svcctl.service.engines.duckdb.date_order import Arriving
from svcctl.service.engines.duckdb.dialect import POSITION, DuckDBDialect
from svcctl.service.engines.duckdb.interruption import interruptible
from svcctl.service.engines.duckdb.opening import (
    MAX_GROUP_VALUES,
    MEMORY_LIMIT,
    ROW_GROUP_SIZE,
    SCHEMA,
    open_file,
    readable,
)
from svcctl.service.engines.duckdb.reading import Reading, Selects
from svcctl.service.engines.duckdb.statement import VECTOR_ROWS, Statement, translated
from svcctl.service.engines.duckdb.syntax import ARRIVED, SQL_TYPES, TYPES, quote
from svcctl.service.engines.duckdb.widening import is_lossy, widened
from svcctl.service.engines.duckdb.windows import SORTED_ROWS, windowed
from svcctl.service.engines.table_rules import AlreadyLoaded, ColumnChange, UnknownTable, check_table, unwidened
from svcctl.service.language.dialect import write
from svcctl.service.language.types import Column, Plan, Table, Type

ROWID = "rowid"
"""DuckDB's pseudo-column of row numbers.

Row numbers begin at 0 and have no gaps, because the whole table is rewritten when rows are deleted.
"""
_WITHIN = f"eventdate >= ? AND eventdate < ? AND {ROWID} >= ? AND {ROWID} < ?"
BLOCK_BYTES = 1 << 18
"""The size of DuckDB's storage blocks, in bytes. The size of a table is a multiple of this size."""
_WIDTHS = {Type.TIMESTAMP: 8, Type.INT8: 8, Type.FLOAT8: 8, Type.INT4: 4, Type.IP4: 4, Type.BOOL: 1}
"""The number of bytes of a value, for each type with a fixed size. Texts have no fixed size."""
_RUNS = """
    SELECT min(row)::BIGINT, count(*)::BIGINT FROM (
        SELECT row, row - row_number() OVER () AS run
        FROM (SELECT eventdate, row_number() OVER () - 1 AS row FROM {relation}) WHERE eventdate < ?
    ) GROUP BY run ORDER BY 1
"""
"""SQL that returns the rows dated before a given date, as runs of consecutive row numbers.

There is at most one run for each load, because the rows of each load are sorted.
"""
FIRST_ROWS, MANY_ROWS = VECTOR_ROWS, 200 * VECTOR_ROWS
"""FIRST_ROWS is the number of rows that a separate statement reads first, so that a client gets these rows early.

Only plans that read more than MANY_ROWS rows have such a separate statement.
"""
_CONNECT = "USE store; SET enable_progress_bar=false"


class DuckDBEngine(Reading):
    """One file of events. If `path` is None, the events are in memory.

    Reads run in parallel. Only one write runs at a time. `memory_limit` is the maximum memory of DuckDB. If sorting
    or grouping needs more memory, DuckDB uses files in the folder `spill`. By default, this folder is next to the file
    of events. About `sorted_rows` rows are sorted at once. A load holds at most `group_values` values in memory at
    once. `nanoseconds` returns the present time in epoch nanoseconds.
    """

    dialect = DuckDBDialect()

    def __init__(
        self,
        path: Path | None = None,
        *,
        memory_limit: str = MEMORY_LIMIT,
        spill: Path | None = None,
        sorted_rows: int = SORTED_ROWS,
        group_values: int = MAX_GROUP_VALUES,
        nanoseconds: Callable[[], int] = time.time_ns,
    ) -> None:
        self._sorted_rows = sorted_rows
        self._group_values = group_values
        with readable(path):
            self._connection = open_file(path, memory_limit=memory_limit, spill=spill)
            self._tables = self._read_tables(self._connection)
            self.identity = str(self._one(self._connection, "SELECT identity FROM main.identity"))
            """The identity of the file. A copy of the file has the same identity."""
        self.writes = 0
        """The number of changes to the file since it was opened."""
        self._nanoseconds = nanoseconds
        self._writing = threading.Lock()
        self._described = True
        """Whether `_tables`, the list of tables, stays correct after the current write.

        If not, the list is read again after the write.
        """
        self._latest: dict[str, int] = {}
        """A cache of the latest eventdate of some tables, in epoch milliseconds."""

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self) -> None:
        """Check that the tables can be read. This is always so while the file of this engine is open."""

    def tables(self) -> Mapping[str, Table]:
        """Return the stored tables, keyed by name.

        If no table has changed since the previous call, the result is the same object as before.
        """
        return self._tables

    def table(self, name: str) -> Table:
        if name not in self._tables:
            raise UnknownTable(name, self._tables)
        return self._tables[name]

    def everywhere(self, name: str) -> bool:
        return False

    def newest(self, name: str) -> datetime | None:
        """Return the latest eventdate of a table, in UTC and without a zone. Return None if the table is empty."""
        with self._cursor() as cursor:
            newest: datetime | None = self._one(cursor, f"SELECT max(eventdate) FROM {_relation(self.table(name))}")
            return newest

    def events(self, name: str) -> int:
        with self._cursor() as cursor:
            events: int = self._one(cursor, f"SELECT count(*) FROM {_relation(self.table(name))}")
            return events

    def extent(self, name: str) -> Extent:
        table = self.table(name)
        relation = _relation(table)
        with self._cursor() as cursor:
            extent = f"SELECT count(*), min(eventdate), max(eventdate) FROM {relation}"
            [(events, oldest, newest)] = cursor.execute(extent).fetchall()
            blocks = "SELECT count(DISTINCT block_id) FILTER (block_id >= 0) FROM pragma_storage_info(?)"
            size = self._one(cursor, blocks, [f"store.{relation}"]) * BLOCK_BYTES
            # The most recent rows are not in blocks yet. They are in DuckDB's write-ahead log, which is small.
            return Extent(events, oldest, newest, size or self._one(cursor, _size(table)))

    def mark(self, name: str) -> int:
        with self._cursor() as cursor:
            return positions.end(cursor, name, _relation(self.table(name)))

    def check_mark(self, name: str, mark: Mark) -> None:
        with self._cursor() as cursor:
            positions.rows(cursor, name, _relation(self.table(name)), [mark])

    def ends(self) -> dict[str, tuple[int, int]]:
        """Return two numbers for each table: the position after its last event, and the number of its events.

        The position after the last event decreases only if the file loses events.
        """
        with self._cursor() as cursor:
            return {
                name: (
                    positions.end(cursor, name, _relation(table)),
                    self._one(cursor, f"SELECT count(*) FROM {_relation(table)}"),
                )
                for name, table in self._tables.items()
            }

    def settle_losses(self, ends: Mapping[str, int]) -> dict[str, int]:
        """Return the tables that have lost events since an earlier time, each with its number of lost positions.

        `ends` has the position after the last event of each table at the earlier time. Marks that come after a lost
        event become invalid. They stay invalid after later loads. Dropped tables are not in the result.
        """
        losses = {}
        with self._write() as cursor:
            for name, end in ends.items():
                table = self._tables.get(name)
                relation = None if table is None else _relation(table)
                if lost := positions.missing(cursor, name, relation, end):
                    losses[name] = lost
                    if relation is not None and positions.end(cursor, name, relation) < end:
                        positions.skip(cursor, name, relation, self._nanoseconds())
        if losses:
            with self._cursor() as cursor:
                cursor.execute("FORCE CHECKPOINT store")  # so that no change is logged after the damaged part
        return losses

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        """Make an empty table.

        Raises UsageError if the name or the columns are not allowed, or if the table exists.
        """
        with self._write() as cursor:
            self._create(cursor, name, columns)
        return self._tables[name]

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
        with self._write() as cursor:
            if load_id is not None and _has_load(cursor, name, load_id):
                raise AlreadyLoaded(name, load_id)
            table = self.table(name) if create is None else self._create(cursor, name, create, replace=replace)
            if change is not None:
                with interruptible(cursor, go_on) if go_on else nullcontext():
                    table = self._change(cursor, table, change)
            relation = _relation(table)
            arriving = Arriving(rows)
            cursor.register("incoming", arriving.reader())
            names = rows.schema.names
            unknown = [column for column in names if column not in {column.name for column in table.columns}]
            if unknown:
                raise UsageError(
                    f"table '{name}' has no column {', '.join(map(repr, unknown))}",
                    hint=f"it has {', '.join(column.name for column in table.columns)}",
                )
            columns = [column for column in table.columns if column.name in names]
            last = self._latest.pop(name, None)
            if last is None and create is None:
                last = self._one(cursor, f"SELECT epoch_ms(max(eventdate)) FROM {relation}")
            # Only a new table can still be sorted after its rows were stored.
            as_they_come = create is not None and arriving.in_order
            source = "incoming" if as_they_come else _sorted("incoming")
            insert = (
                f"INSERT INTO {relation} ({', '.join(quote(column.name) for column in columns)}) "
                f"SELECT {', '.join(map(_as_stored, columns))} FROM {source}"
            )

            def check() -> None:
                if go_on:
                    go_on()
                    self._check_values(arriving.count, len(table.columns))

            with interruptible(cursor, check) if go_on else nullcontext():
                added: int = self._one(cursor, insert)
                if as_they_come and not arriving.in_order:
                    _rewrite(cursor, table, _sorted(relation))
            if arriving.dates is not None:
                self._latest[name] = arriving.dates[1] if last is None else max(last, arriving.dates[1])
            if table.ordered and added and last is not None and (arriving.dates is None or arriving.dates[0] < last):
                self._described = False
                cursor.execute("UPDATE main.stored SET ordered = false WHERE name = ?", [name])
            if load_id is not None:
                cursor.execute("INSERT INTO main.loaded VALUES (?, ?)", [name, load_id])
            check()
        return added

    def _change(self, cursor: duckdb.DuckDBPyConnection, table: Table, change: ColumnChange) -> Table:
        """Add columns to a table and widen other columns, as `change` says. Raises the errors of `ColumnChange.check`.

        Raises UsageError if a stored value would change.
        """
        change.check(table.name, table.columns)
        self._described = False
        relation = _relation(table)
        for column in change.added:
            cursor.execute(f"ALTER TABLE {relation} ADD COLUMN {quote(column.name)} {SQL_TYPES[column.type]}")
        for old, new in change.widened:
            if (lossy := is_lossy(old, new.type)) and (
                values := self._one(cursor, f"SELECT count(*) FROM {relation} WHERE {lossy}")
            ):
                raise unwidened(table.name, old, values)
            cursor.execute(
                f"ALTER TABLE {relation} ALTER COLUMN {quote(new.name)} TYPE {SQL_TYPES[new.type]} "
                f"USING {widened(old, new.type)}"
            )
        added = table.added + len(change.added)
        cursor.execute("INSERT OR REPLACE INTO main.grown VALUES (?, ?)", [table.name, added])
        return replace(table, columns=change.after, added=added)

    def _check_values(self, rows: int, columns: int) -> None:
        """Raise ServiceError if a load would hold more than `group_values` values in memory at once.

        A load holds at most one row group in memory. So if a full row group of the table has at most `group_values`
        values, the load may have any number of rows.
        """
        most = self._group_values // columns
        if min(rows, ROW_GROUP_SIZE) > most:
            raise ServiceError(
                f"a load of {columns:,} columns needs too much memory with more than {most:,} rows",
                code=422,
                hint=f"nothing was changed; load at most {most:,} rows at a time, or leave out columns",
            )

    def has_load(self, name: str, load_id: str) -> bool:
        with self._cursor() as cursor:
            return _has_load(cursor, name, load_id)

    def drop(self, name: str) -> None:
        with self._write() as cursor:
            self._drop(cursor, name)
            cursor.execute("DELETE FROM main.stored WHERE name = ?", [name])

    def _drop(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        relation = _relation(self.table(name))
        positions.drop(cursor, name, relation)
        self._described = False
        self._latest.pop(name, None)
        cursor.execute(f"DROP TABLE {relation}")
        cursor.execute("DELETE FROM main.loaded WHERE name = ?", [name])
        cursor.execute("DELETE FROM main.grown WHERE name = ?", [name])

    def trim(self, name: str, *, most: int, since: datetime) -> int:
        relation = _relation(self.table(name))
        with self._write() as cursor:
            rows: int = self._one(cursor, f"SELECT count(*) FROM {relation}")
            older: int = self._one(cursor, f"SELECT count(*) FROM {relation} WHERE eventdate < ?", [since])
            removed = max(rows - most, older)
            if removed <= 0:
                return rows
            newest = self._one(cursor, f"SELECT max(eventdate) FROM (SELECT eventdate FROM {relation} LIMIT {removed})")
            # The table is rewritten, because DuckDB would choose the positions of the rows after a DELETE.
            _rewrite(cursor, self.table(name), f"{relation} OFFSET {removed}")
            self._latest.pop(name, None)
            positions.remove(cursor, name, [(0, removed)], newest)
            return rows - removed

    def remove_before(self, name: str, date: datetime) -> int:
        relation = _relation(self.table(name))
        with self._write() as cursor:
            runs = cursor.execute(_RUNS.format(relation=relation), [date]).fetchall()
            if runs:
                newest = self._one(cursor, f"SELECT max(eventdate) FROM {relation} WHERE eventdate < ?", [date])
                _rewrite(cursor, self.table(name), f"{relation} WHERE NOT eventdate < '{date.isoformat()}'::TIMESTAMP")
                self._latest.pop(name, None)
                positions.remove(cursor, name, runs, newest)
            return sum(count for _, count in runs)

    def has_removed(self, name: str, since: Mark | None, until: Mark | None, start: datetime) -> bool:
        with self._cursor() as cursor:
            positions.rows(cursor, name, _relation(self.table(name)), (since, until))
            first, last = (None if mark is None else int(mark) for mark in (since, until))
            return positions.has_removed(cursor, name, first, last, start)

    @contextmanager
    def _reading(
        self, plan: Plan, since: Mark | None, until: Mark | None
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, Selects]]:
        """Yield a connection for a plan, and the statements to run on the connection.

        The statements are stopped at the end of the `with` block. One transaction converts the marks and runs all
        statements, so that no write comes in between.
        """
        cursor = self._open_cursor()
        try:
            with translated():
                cursor.execute("BEGIN TRANSACTION")
                first, last = positions.rows(cursor, plan.table, _relation(self.table(plan.table)), (since, until))
                selects = self._selects(cursor, plan, first, last)
            yield cursor, selects
        finally:
            cursor.close()

    @contextmanager
    def statement(self, select: str, rows_per_batch: int = ROWS_PER_BATCH) -> Iterator[Statement]:
        """Run a SELECT in DuckDB's SQL, and read its rows while it runs.

        The SELECT is stopped at the end of the `with` block.
        """
        statement = Statement(self._open_cursor(), [select], rows_per_batch)
        try:
            yield statement
        finally:
            statement.close()

    def _selects(self, cursor: duckdb.DuckDBPyConnection, plan: Plan, since: int | None, until: int | None) -> Selects:
        """Return one or more SELECTs. Together, the SELECTs return the plan's rows between two row numbers."""
        if (sliced := self._sliced(cursor, plan, since, until)) is not None:
            return sliced
        if self._in_windows(plan):
            select, within = self._over_rows(plan, since, until)
            events = self._between(cursor, plan) if since is None or until is None else until - since
            return Selects(list(windowed(cursor, select, within, events, self._sorted_rows)))
        second = self._second_part(cursor, plan, since, until)
        parts = [(since, until)] if second is None else [(since, second), (second, until)]
        return Selects([write(self._over_rows(plan, *part)[0], self.dialect) for part in parts])

    def _second_part(
        self, cursor: duckdb.DuckDBPyConnection, plan: Plan, since: int | None, until: int | None
    ) -> int | None:
        """Return the row number at which a plan is split, so that its first rows are returned early.

        The first part reads FIRST_ROWS rows. Return None if the plan reads at most MANY_ROWS rows, or cannot be split.
        """
        table = self.table(plan.table)
        if not (plan.by_event and table.ordered) or plan.selective or _has_rowid(table):
            return None
        rows = [0 if since is None else since, sys.maxsize if until is None else until]
        following = cursor.execute(
            f"SELECT {ROWID} FROM {_relation(table)} WHERE {_WITHIN} LIMIT 1 OFFSET {MANY_ROWS}",
            [plan.start or datetime.min, plan.end or datetime.max, *rows],
        ).fetchall()
        # In an ordered table, the rows of a range of dates are adjacent.
        return following[0][0] - MANY_ROWS + FIRST_ROWS if following else None

    def _over_rows(self, plan: Plan, since: int | None, until: int | None) -> tuple[exp.Select, exp.Select]:
        """Return the plan's SELECT over the rows between two row numbers.

        Also return the part of this SELECT that reads the table.
        """
        select = plan.select.copy()
        source = next(node for node in select.find_all(exp.Table))
        within = source.parent_select
        assert within is not None
        for compare, mark in ((exp.GTE, since), (exp.LT, until)):
            if mark is not None:
                within.where(compare(this=self.dialect.position(), expression=exp.Literal.number(mark)), copy=False)
        source.set("db", exp.to_identifier(SCHEMA, quoted=True))
        if _has_rowid(self.table(plan.table)):
            # a column with the name rowid hides DuckDB's row numbers, so row_number() is used
            source.set("alias", None)
            rows = exp.select("*", f'row_number() OVER () - 1 AS "{POSITION}"', dialect="duckdb").from_(source.copy())
            source.replace(rows.subquery(exp.to_identifier("t", quoted=True)))
        else:
            for column in within.find_all(exp.Column):
                if column.name == POSITION:
                    column.set("this", exp.to_identifier(ROWID, quoted=True))
        if since is not None or until is not None:
            for limit in select.find_all(exp.Limit):
                # in a SELECT between two row numbers, DuckDB 2.0 fails on a literal limit after a sort
                limit.set("expression", exp.Subquery(this=exp.Select(expressions=[limit.expression])))
        return select, within

    def _sliced(
        self, cursor: duckdb.DuckDBPyConnection, plan: Plan, since: int | None, until: int | None
    ) -> Selects | None:
        """Return SELECTs that each read a slice of a table with long texts.

        Return None if the table has no long texts, or if slices are not possible for the plan or the table.
        """
        table, select = self.table(plan.table), plan.select.copy()
        limit, offset = (
            int(clause.expression.this) if (clause := select.args.pop(key, None)) is not None else None
            for key in ("limit", "offset")
        )
        whole = replace(plan, select=select)
        read = {column.name for column in select.find_all(exp.Column)}
        texts = [column.name for column in table.columns if column.type is Type.STR and column.name in read]
        if not whole.by_event or _has_rowid(table):
            return None
        relation = f"store.{_relation(table)}"
        groups = long_texts.groups(cursor, relation, texts)
        if not groups:
            return None
        dates = [plan.start or datetime.min, plan.end or datetime.max]
        rows = [since or 0, sum(group.rows for group in groups) if until is None else until]
        part = f"{relation} WHERE {_WITHIN}"
        if table.ordered:
            [(first, last)] = cursor.execute(f"SELECT min({ROWID}), max({ROWID}) FROM {part}", dates + rows).fetchall()
            parts = long_texts.ranges(groups, first or 0, 0 if last is None else last + 1)
        else:
            order = cursor.execute(f"SELECT {ROWID} FROM {part} ORDER BY eventdate, {ROWID}", dates + rows)
            parts = long_texts.of_rows(groups, [row for (row,) in order.fetchall()])
        skip = offset or 0
        return Selects(self._over(select, relation, parts), skip, None if limit is None else skip + limit)

    def _over(self, select: exp.Select, relation: str, parts: Iterable[str]) -> Iterator[str]:
        """Yield one SELECT for each item of `parts`. An item is a condition that selects rows of the table."""
        source = next(node for node in select.find_all(exp.Table))
        name = quote(f"rows-{uuid.uuid4().hex}")  # no query can contain this name
        source.set("this", exp.to_identifier(name[1:-1], quoted=True))
        text = write(select, self.dialect)
        for part in parts:
            rows = f"(SELECT *, {ROWID} AS {quote(POSITION)} FROM {relation} WHERE {part})"
            yield text.replace(name, rows)

    def _in_windows(self, plan: Plan) -> bool:
        """Whether a plan must sort events, and is therefore split into windows of dates."""
        return plan.by_event and not self.table(plan.table).ordered

    def _between(self, cursor: duckdb.DuckDBPyConnection, plan: Plan) -> int:
        """Return the number of events in a plan's range of dates."""
        end = datetime.max if plan.end is None else plan.end
        count = f"SELECT count(*) FROM {_relation(self.table(plan.table))} WHERE eventdate >= ? AND eventdate < ?"
        events: int = self._one(cursor, count, [plan.start or datetime.min, end])
        return events

    def _create(
        self, cursor: duckdb.DuckDBPyConnection, name: str, columns: Sequence[Column], *, replace: bool = False
    ) -> Table:
        check_table(name, columns, self._tables, replace=replace)
        if replace and name in self._tables:
            self._drop(cursor, name)
        table = Table(name, tuple(columns), ordered=True)
        self._described = False
        cursor.execute(_create_sql(_relation(table), columns))
        positions.begin(cursor, name, self._nanoseconds())
        cursor.execute("INSERT OR REPLACE INTO main.stored VALUES (?, true)", [name])
        return table

    def _open_cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute(_CONNECT)
        return cursor

    @contextmanager
    def _cursor(self, work: str = "query") -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._open_cursor()
        try:
            with translated(work):
                yield cursor
        finally:
            cursor.close()

    @contextmanager
    def _write(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Run the `with` block in a transaction.

        If the block has changed the list of tables, read the list again afterwards.
        """
        with self._writing, self._cursor("load") as cursor:
            self._described = True
            cursor.execute("BEGIN")
            try:
                yield cursor
                cursor.execute("COMMIT")
                self.writes += 1
            except BaseException:
                self._latest.clear()
                # A failed COMMIT has already rolled back. DuckDB then refuses another ROLLBACK.
                with _ignoring_no_transaction():
                    cursor.execute("ROLLBACK")
                raise
            if not self._described:
                self._tables = self._read_tables(cursor)

    @staticmethod
    def _one(cursor: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()) -> Any:
        [(value,)] = cursor.execute(sql, list(values)).fetchall()
        return value

    @staticmethod
    def _read_tables(cursor: duckdb.DuckDBPyConnection) -> Mapping[str, Table]:
        rows = cursor.execute(
            "SELECT s.name, s.ordered, coalesce(g.added, 0), c.column_name, c.data_type FROM main.stored s "
            "LEFT JOIN main.grown g ON g.name = s.name "
            "JOIN duckdb_columns() c ON c.schema_name = ? AND c.table_name = s.name ORDER BY s.name, c.column_index",
            [SCHEMA],
        ).fetchall()
        columns: dict[tuple[str, bool, int], list[Column]] = {}
        for name, ordered, added, column, sql_type in rows:
            columns.setdefault((name, ordered, added), []).append(Column(column, TYPES[sql_type]))
        tables = (Table(name, tuple(of), ordered, added) for (name, ordered, added), of in columns.items())
        return MappingProxyType({table.name: table for table in tables})


@contextmanager
def _ignoring_no_transaction() -> Iterator[None]:
    try:
        yield
    except duckdb.TransactionException:
        return


def _has_load(cursor: duckdb.DuckDBPyConnection, name: str, load_id: str) -> bool:
    return bool(cursor.execute("SELECT 1 FROM main.loaded WHERE name = ? AND id = ?", [name, load_id]).fetchall())


def _relation(table: Table) -> str:
    return f"{SCHEMA}.{quote(table.name)}"


def _size(table: Table) -> str:
    """Return SQL for the number of bytes of a table's values. The result of the SQL is null for an empty table."""
    fixed = sum(_WIDTHS.get(column.type, 0) for column in table.columns)
    texts = [f"coalesce(sum(strlen({quote(column.name)})), 0)" for column in table.columns if column.type is Type.STR]
    return f"SELECT nullif({' + '.join([f'count(*) * {fixed}', *texts])}, 0)::BIGINT FROM {_relation(table)}"


def _has_rowid(table: Table) -> bool:
    """Whether the table has a column with the name `rowid`. Such a column hides DuckDB's row numbers."""
    return any(column.name.casefold() == ROWID for column in table.columns)


def _sorted(relation: str) -> str:
    """Return SQL for the rows of a relation in order of date.

    Rows with the same date keep their order. DuckDB's own sort does not guarantee this.
    """
    return f'(SELECT *, row_number() OVER () AS "{ARRIVED}" FROM {relation}) ORDER BY eventdate, "{ARRIVED}"'


def _rewrite(cursor: duckdb.DuckDBPyConnection, table: Table, rows: str) -> None:
    """Replace the contents of a table by some rows of the table, or by all its rows in another order.

    `rows` is SQL that selects these rows: the text that follows FROM in a SELECT.
    """
    relation, new = _relation(table), f"{SCHEMA}.{quote('(new)')}"
    columns = ", ".join(quote(column.name) for column in table.columns)
    cursor.execute(_create_sql(new, table.columns))
    cursor.execute(f"INSERT INTO {new} SELECT {columns} FROM {rows}")
    cursor.execute(f"DROP TABLE {relation}")
    cursor.execute(f"ALTER TABLE {new} RENAME TO {quote(table.name)}")


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
