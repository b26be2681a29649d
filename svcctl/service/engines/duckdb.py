"""Stored events in one DuckDB file: which tables there are, how events get in, and how a query's rows come out.

Tables live in the schema `events`, each under its dotted name as one identifier. `main.stored` remembers for each
whether its rows lie in eventdate order, because then a plan can scan instead of sort. The file belongs to one process;
DuckDB's own lock sees to that.

A statement that reaches `stream` was written by the query compiler, but it is not trusted with the machine: files,
extensions, settings and Python variables are out of its reach from the moment the file is open. What needs files
(loading them) reads them elsewhere and hands over Arrow batches.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from svcctl.errors import Locked, NotFound, ServiceError, SvcctlError, UsageError
from svcctl.service.language.types import Column, Table, Type

SCHEMA = "events"

SQL_TYPES = {
    Type.TIMESTAMP: "TIMESTAMP",
    Type.STR: "VARCHAR",
    Type.INT4: "INTEGER",
    Type.INT8: "BIGINT",
    Type.FLOAT8: "DOUBLE",
    Type.BOOL: "BOOLEAN",
    Type.IP4: "UINTEGER",
}
TYPES = {sql: type_ for type_, sql in SQL_TYPES.items()}

ROWS_PER_BATCH = 8192
"""Lines of 100 to 400 bytes make chunks of 1 to 3 MB: large enough for the wire, small beside the memory limit."""

_TABLE_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*", re.ASCII)

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "true",
}
# The file is attached under a name of ours, because a file events.db would else be a catalog `events` and make the
# schema's name ambiguous. After that no file can be reached; only what each connection sets for itself stays open.
_OPEN = f"""
    ATTACH {{path}} AS store;
    SET GLOBAL TimeZone='UTC';
    SET enable_external_access=false;
    SET allowed_configs=['enable_progress_bar', 'schema', 'search_path'];
    SET lock_configuration=true;
    USE store;
    CREATE SCHEMA IF NOT EXISTS {SCHEMA};
    CREATE TABLE IF NOT EXISTS main.stored (name VARCHAR PRIMARY KEY, ordered BOOLEAN NOT NULL)
"""
_CONNECT = "USE store; SET enable_progress_bar=false"


def quote(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def check_table_name(name: str) -> str:
    """The same name, or UsageError: tables are named by letters, digits and _ in parts joined by dots."""
    if not _TABLE_NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot name a table", hint="use letters, digits and _ in parts joined by dots, as in web.access"
        )
    return name


@contextmanager
def explained() -> Iterator[None]:
    """DuckDB's errors, and those that Arrow passes on from it, as a ServiceError of one line."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise ServiceError(
            "the query needs more memory than the service may use", code=500, hint="narrow the range or group by less"
        ) from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise ServiceError(first_line(error), code=500) from None


def first_line(error: BaseException) -> str:
    """What DuckDB says went wrong, without its class and without the statement it quotes below."""
    line = str(error).partition("\n")[0]
    return re.sub(r"^(?:[A-Z][A-Za-z ]+ Error: )+", "", line) or type(error).__name__


class Stream:
    """The rows of one statement as Arrow batches, read once; `interrupt` may be called from any thread."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str, rows_per_batch: int) -> None:
        self._connection = connection
        self._rows_per_batch = rows_per_batch
        self._stopped: SvcctlError | None = None
        self._reader: pa.RecordBatchReader | None = None
        with explained():
            self._relation = connection.sql(sql)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        # The statement starts here and not sooner: a sort can take long before its first row, and by now the caller
        # holds the object to interrupt.
        while True:
            try:
                if self._stopped is not None:
                    raise self._stopped
                with explained():
                    if self._reader is None:
                        self._reader = self._relation.to_arrow_reader(self._rows_per_batch)
                    batch = self._reader.read_next_batch()
            except StopIteration:
                return
            except ServiceError as error:
                raise (self._stopped or error) from None
            if batch.num_rows:
                yield batch

    def interrupt(self, reason: SvcctlError | None = None) -> None:
        """Make the iteration raise `reason`, soon and from wherever it is."""
        self._stopped = self._stopped or reason or ServiceError("the query was interrupted", code=503)
        self._connection.interrupt()

    def close(self) -> None:
        """Stop whatever still runs."""
        if self._reader is not None:
            self._reader.close()
        self._connection.close()


class Engine:
    """One file of events (or memory, for `path` None). Reads run side by side; one writer at a time.

    `memory_limit` is what DuckDB may hold; sorts and groups beyond it go to `spill`, by default beside the file.
    """

    def __init__(self, path: Path | None = None, *, memory_limit: str = "1GB", spill: Path | None = None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(f"{path}.tmp") if path else Path(tempfile.gettempdir()) / f"svcctl-{os.getpid()}.tmp"
        quoted = str(path or ":memory:").replace("'", "''")
        settings = _SETTINGS | {"memory_limit": memory_limit, "temp_directory": str(spill or beside)}
        try:
            self._connection = duckdb.connect(":memory:", config=settings)
            self._connection.execute(_OPEN.format(path=f"'{quoted}'"))
        except duckdb.IOException as error:
            if "Could not set lock" in str(error):
                raise Locked(
                    f"{path} is in use by another process", hint="stop it with 'svcctl service stop', or wait for it"
                ) from None
            raise UsageError(f"cannot open {path}: {first_line(error)}") from None
        except duckdb.Error as error:
            raise UsageError(f"cannot open {path}: {first_line(error)}") from None
        self._writing = threading.Lock()
        self._tables = self._read_tables(self._connection)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Engine:
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

    def size(self, name: str) -> int:
        """How many rows a table holds; the next one stored gets this position."""
        with self._cursor() as cursor:
            rows: int = self._one(cursor, f"SELECT count(*) FROM {_relation(self.table(name))}")
            return rows

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        """A new, empty table. UsageError when its name or columns cannot be used or the table is already there."""
        with self._write() as cursor:
            self._create(cursor, name, columns)
        return self._tables[name]

    def append(self, name: str, source: str | pa.RecordBatchReader, *, create: Sequence[Column] | None = None) -> int:
        """Add the rows of a SELECT or of Arrow batches, sorted by eventdate, all or none; how many there were.

        Columns go by name; those the source lacks become null, those the table lacks are a UsageError. Timestamps
        are cut to milliseconds. With `create` the table is made first, and only stays if the rows do.
        """
        with self._write() as cursor:
            table = self.table(name) if create is None else self._create(cursor, name, create)
            relation = _relation(table)
            if isinstance(source, str):
                names, origin = cursor.sql(source).columns, f"({source})"
            else:
                names, origin = source.schema.names, "incoming"
                cursor.register("incoming", source)
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
            rows: int = self._one(
                cursor,
                f"INSERT INTO {relation} ({', '.join(quote(column.name) for column in given)}) "
                f"SELECT {', '.join(map(_as_stored, given))} FROM {origin} ORDER BY eventdate",
            )
            if table.ordered and last and self._one(cursor, later, [last]) - before < rows:
                cursor.execute("UPDATE main.stored SET ordered = false WHERE name = ?", [name])
        return rows

    @contextmanager
    def stream(self, select: str | exp.Expression, rows_per_batch: int = ROWS_PER_BATCH) -> Iterator[Stream]:
        """Run one SELECT and read its rows while it runs.

        Leaving the block stops it. A plan of an ordered table comes in stored order, and the order of a plan survives
        being wrapped in another SELECT (`preserve_insertion_order`). ServiceError when the statement cannot run, fails,
        or is stopped.
        """
        sql = select if isinstance(select, str) else select.sql(dialect="duckdb")
        stream = Stream(self._open_cursor(), sql, rows_per_batch)
        try:
            yield stream
        finally:
            stream.close()

    def _create(self, cursor: duckdb.DuckDBPyConnection, name: str, columns: Sequence[Column]) -> Table:
        check_table_name(name)
        if Column("eventdate", Type.TIMESTAMP) not in columns:
            raise UsageError(f"table '{name}' needs a column eventdate of type timestamp")
        # DuckDB's identifiers are the same in any case, so names that differ by case only cannot both exist.
        if len({column.name.casefold() for column in columns}) < len(columns):
            raise UsageError(f"table '{name}' would have two columns of the same name")
        for other in self._tables:
            if other.casefold() == name.casefold():
                raise UsageError(f"table '{other}' is already there")
        table = Table(name, tuple(columns), (SCHEMA, name), ordered=True)
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
        """A transaction: all of the block or nothing of it, and the catalog as it is afterwards."""
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
        return MappingProxyType(
            {name: Table(name, tuple(of), (SCHEMA, name), ordered) for (name, ordered), of in columns.items()}
        )


@contextmanager
def _ignoring_no_transaction() -> Iterator[None]:
    try:
        yield
    except duckdb.TransactionException:
        return


def _relation(table: Table) -> str:
    return ".".join(quote(part) for part in table.relation)


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
