"""Reads and sorts the rows of files in a shared folder. DuckDB opens only the files that a query needs.

DuckDB itself opens files on a local disk. In other folders, Arrow opens the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import reduce
from operator import and_
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads

from svcctl.errors import ServiceError, Unavailable
from svcctl.service.engines.duckdb.opening import MEMORY_LIMIT, open_reader
from svcctl.service.engines.duckdb.sorting import arranged
from svcctl.service.engines.duckdb.statement import Cause, StatementFailed, translated
from svcctl.service.engines.duckdb.syntax import SQL_TYPES, literal, quote
from svcctl.service.engines.lake import Lake, layout
from svcctl.service.engines.lake.snapshot import NO_LOAD, File, Loads, Snapshot, SnapshotPart, whole
from svcctl.service.language.types import Column, Type

ROWS_PER_BATCH = 1 << 16
Window = tuple[datetime | None, datetime | None]
"""The range of dates to read: its start and its exclusive end, in UTC and without a zone. None means no limit."""
Source = Callable[[SnapshotPart], str]
_REGISTERED = "files"
FILE_TYPES = {**SQL_TYPES, Type.IP4: SQL_TYPES[Type.INT8]}
"""The DuckDB type of a column in the files of a shared table, for each type of the query language."""


class Scanner:
    """A DuckDB database that reads the files of a folder.

    `memory_limit` is the maximum memory of DuckDB. If sorting or grouping needs more memory, DuckDB uses files in the
    folder `spill`.
    """

    def __init__(self, lake: Lake, *, memory_limit: str = MEMORY_LIMIT, spill: Path | None = None) -> None:
        self._lake = lake
        self._connection = open_reader(lake.folder.local, memory_limit=memory_limit, spill=spill)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def arranged(
        self, name: str, rows: pa.RecordBatchReader, columns: Sequence[Column] | None = None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """Yield rows with the columns and types of a table, in order of eventdate.

        `columns` are the columns of a new table. If `columns` is None, the columns of the existing table are used.
        Raises the errors of `Tables.append`.
        """
        with closing(self._cursor()) as sorter:
            yield arranged(rows, name, columns or self._lake.snapshot(name).columns, sorter)

    @contextmanager
    def scanning(
        self,
        table: Snapshot,
        loads: Loads | None = None,
        columns: Sequence[Column] | None = None,
        window: Window = (None, None),
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, Source]]:
        """Yield a connection, and a function that returns a subquery for the rows of a SnapshotPart.

        With `loads`, the subquery returns only the rows of these loads. The subquery may leave out columns that are not
        in `columns`, and rows with dates outside `window`. A subquery is valid until the next call of the function.
        """
        cursor = self._cursor()
        schema = layout.file_schema(table.columns)
        names = [column.name for column in (table.columns if columns is None else columns)]

        def source(part: SnapshotPart) -> str:
            if self._lake.folder.local is not None and part.files:
                rows = self._files(table, part, names)
            else:
                rows = _REGISTERED
                cursor.register(rows, self._scanner(table, part, schema, [*names, *schema.names[-2:]], window))
            if loads is not None and not loads.have_all(part.files):
                rows = _of_loads(rows, table.hidden.load, loads)
            return rows

        try:
            with _reachable(table.name, self._lake.folder.table_uri(table.name)), translated():
                yield cursor, source
        finally:
            cursor.close()

    def _files(self, table: Snapshot, part: SnapshotPart, names: Sequence[str]) -> str:
        """Return SQL that reads the columns `names` from the files of a part. DuckDB opens these files.

        A column that is not in a file is null.
        """
        listed = ", ".join(literal(f"{self._lake.folder.local}/{table.name}/{file.path}") for file in part.files)
        selection = {"eventdate", *names, table.hidden.load, table.hidden.row}
        columns = ", ".join(
            f"{name}: {{name: {name}, type: '{type_}', default_value: NULL}}"
            for name, type_ in ((literal(name), type_) for name, type_ in _file_types(table) if name in selection)
        )
        rows = f"read_parquet([{listed}], hive_partitioning=false, schema=MAP {{{columns}}})"
        bounds = [f"eventdate >= {_date(part.start)}"] if part.start is not None else []
        bounds += [f"eventdate < {_date(part.end)}"] if part.end is not None else []
        return f"(SELECT * FROM {rows} WHERE {' AND '.join(bounds)})" if bounds else rows

    def _scanner(
        self, table: Snapshot, part: SnapshotPart, schema: pa.Schema, names: Sequence[str], window: Window
    ) -> _Scan:
        """Return a scan that reads the rows from the files of a part. Arrow opens these files."""
        format_, filesystem = pads.ParquetFileFormat(), self._lake.filesystem(table.name)
        fragments = [format_.make_fragment(file.path, filesystem) for file in part.files]
        dataset = pads.FileSystemDataset(fragments, schema, format_, filesystem)
        date = pads.field("eventdate")
        bounds = [date >= start for start in (window[0], part.start) if start is not None]
        bounds += [date < end for end in (window[1], part.end) if end is not None]
        # By default, Arrow reads so far ahead that most of a large result is in memory.
        ahead = {"batch_size": ROWS_PER_BATCH, "batch_readahead": 4, "fragment_readahead": 1}
        return _Scan(dataset.scanner(columns=list(names), filter=reduce(and_, bounds) if bounds else None, **ahead))

    def count(self, table: Snapshot, condition: str, files: Sequence[File]) -> int:
        [(count,)] = self.rows(table, files, f"SELECT count(*) FROM {{}} WHERE {condition}")
        return int(count)

    def rows(self, table: Snapshot, files: Sequence[File], select: str) -> list[tuple[int, ...]]:
        with self.scanning(table) as (cursor, source):
            return cursor.execute(select.format(source(whole(files)))).fetchall()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute("SET enable_progress_bar=false")
        return cursor


class _Scan:
    """Rows that Arrow reads for DuckDB. Each statement reads the rows again.

    This object is registered with DuckDB in place of Arrow's Scanner, because a registered Scanner can cause a
    deadlock. A registered Scanner holds Python's global lock. A thread of Arrow that wants to report an error waits for
    this lock.
    """

    def __init__(self, scanner: pads.Scanner) -> None:
        self._scanner = scanner

    def __arrow_c_schema__(self) -> object:
        return self._scanner.projected_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = self._scanner.to_batches()
        return pa.RecordBatchReader.from_batches(self._scanner.projected_schema, batches).__arrow_c_stream__()


@contextmanager
def _reachable(name: str, uri: str) -> Iterator[None]:
    """Turn errors of DuckDB about the files of a table into errors of svcctl.

    Raises ServiceError if a file is damaged, and Unavailable if a file is missing or cannot be read.
    """
    try:
        yield
    except StatementFailed as error:
        match error.cause:
            case Cause.DAMAGED:
                raise ServiceError(f"cannot read table '{name}': {error.file} is damaged", code=500) from None
            case Cause.MISSING:
                raise Unavailable(f"cannot read table '{name}': {error.file} is missing") from None
            case Cause.FAILED | Cause.UNREAD:
                raise Unavailable(f"cannot read table '{name}' in {uri}: {error.message}") from None
        raise


def _file_types(table: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the names of the columns in a table's files, and their types in DuckDB."""
    for column in table.columns:
        yield column.name, FILE_TYPES[column.type]
    for name in (table.hidden.load, table.hidden.row):
        yield name, FILE_TYPES[Type.INT8]


def _date(date: datetime) -> str:
    return f"{literal(date.isoformat())}::TIMESTAMP"


def _of_loads(rows: str, column: str, loads: Loads) -> str:
    """Return SQL for a subquery that returns only the rows of the given loads."""
    numbers = ", ".join(map(str, sorted(loads.numbers))) or "NULL"
    load = f"coalesce({quote(column)}, {NO_LOAD})"
    return f"(SELECT * FROM {rows} WHERE {load} {'NOT IN' if loads.excluded else 'IN'} ({numbers}))"
