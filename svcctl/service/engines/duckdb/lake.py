"""The embedded engine over tables in a shared folder: DuckDB reads only the files that a query may need.

DuckDB opens local files itself; for other folders Arrow reads the files. A long answer begins at once and is not held
in memory: rows of files in order of date are not sorted again, and others are sorted in small parts.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import reduce
from operator import and_
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
from sqlglot import exp

from svcctl.errors import ServiceError, Unavailable
from svcctl.service.engines import Extent, Mark
from svcctl.service.engines.duckdb.dialect import POSITION, DuckDBDialect
from svcctl.service.engines.duckdb.opening import open_reader
from svcctl.service.engines.duckdb.reading import Reading, Selects
from svcctl.service.engines.duckdb.sorting import arranged
from svcctl.service.engines.duckdb.statement import Statement, translated
from svcctl.service.engines.duckdb.text import literal, quote
from svcctl.service.engines.lake import Lake, layout
from svcctl.service.engines.lake.snapshot import SORTED_ROWS, File, Loads, Part, Snapshot, parts, whole
from svcctl.service.engines.lake.upkeep import together
from svcctl.service.engines.lake.writer import Files
from svcctl.service.language.dialect import write
from svcctl.service.language.types import Column, Plan, Table, Type

ROWS_PER_BATCH = 1 << 16
Window = tuple[datetime | None, datetime | None]
"""The range of events that are read, in UTC and without a zone."""
_REGISTERED = "files"
_FILES_FAILED = re.compile(rf"reading the stream registered as '{_REGISTERED}\d+' failed: ")
_DAMAGED = re.compile(r"^(?:No magic bytes found at end of file|File) '(.*)'(?:$| too small to be a Parquet file)")
_MISSING = re.compile(r'^No files found that match the pattern "(.*)"')
"""DuckDB's message about a local file that is missing."""


class LakeEngine(Reading):
    """Tables in a shared folder. About `sorted_rows` are sorted at once.

    `memory_limit` is the most memory of DuckDB; sorts and groups that need more use files in `spill`.
    """

    dialect = DuckDBDialect()

    def __init__(
        self, lake: Lake, *, memory_limit: str = "1GB", spill: Path | None = None, sorted_rows: int = SORTED_ROWS
    ) -> None:
        self.lake = lake
        self._sorted_rows = sorted_rows
        self._connection = open_reader(lake.folder.local, memory_limit=memory_limit, spill=spill)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> LakeEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self) -> None:
        self.lake.folder.require()

    def tables(self) -> Mapping[str, Table]:
        return self.lake.tables()

    def table(self, name: str) -> Table:
        found = self.lake.snapshot(name)
        return Table(name, found.columns)

    def everywhere(self, name: str) -> bool:
        return True

    def newest(self, name: str) -> datetime | None:
        return self.lake.snapshot(name).newest

    def events(self, name: str) -> int:
        return self.lake.snapshot(name).rows

    def extent(self, name: str) -> Extent:
        found = self.lake.snapshot(name)
        return Extent(found.rows, found.oldest, found.newest, found.bytes or None)

    def mark(self, name: str) -> Mark:
        return self.lake.mark(name)

    def check_mark(self, name: str, mark: Mark) -> None:
        self.lake.check_mark(name, mark)

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        return self.lake.create(name, columns)

    def append(
        self,
        name: str,
        rows: pa.RecordBatchReader,
        *,
        create: Sequence[Column] | None = None,
        replace: bool = False,
        load_id: str | None = None,
        go_on: Callable[[], None] = lambda: None,
    ) -> int:
        with self.arranged(name, rows, create) as arranged:
            batches = _followed(arranged, go_on)
            if create is not None:
                return self.lake.make(name, create, batches, replace=replace, id_=load_id)
            return self.lake.append(name, batches, id_=load_id)

    def has_load(self, name: str, load_id: str) -> bool:
        return self.lake.has_load(name, load_id)

    @contextmanager
    def arranged(
        self, name: str, rows: pa.RecordBatchReader, columns: Sequence[Column] | None = None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """Rows in the types and order of a table. `columns` are those of a new table. Raises the errors of `append`."""
        with closing(self._cursor()) as sorter:
            yield arranged(rows, name, columns or self.lake.snapshot(name).columns, sorter)

    def drop(self, name: str) -> None:
        self.lake.drop(name)

    def trim(self, name: str, *, most: int, since: datetime) -> int:
        table = self.lake.snapshot(name)
        older = f"eventdate < {literal(since.isoformat())}::TIMESTAMP"
        rows = table.rows
        removed = max(rows - most, self._count(table, older, table.files))
        if removed <= 0:
            return rows
        load, row = quote(table.hidden.load), quote(table.hidden.row)
        last = f"SELECT {load}, {row} FROM {{}} ORDER BY 1, 2 LIMIT 1 OFFSET {removed - 1}"
        [(last_load, last_row)] = self._rows(table, table.files, last)
        left = f"{load} > {last_load} OR ({load} = {last_load} AND {row} > {last_row})"
        self.rewrite(table, [file for file in table.files if file.loads[0] <= last_load], left)
        return rows - removed

    def remove_before(self, name: str, date: datetime) -> int:
        """Remove files of older events without reading them, and rewrite files with older and later events."""
        table = self.lake.snapshot(name)
        older = [file for file in table.files if file.oldest < date]
        cut = [file for file in older if file.newest >= date]
        if not older:
            return 0
        left = f"eventdate >= {literal(date.isoformat())}::TIMESTAMP"
        removed = sum(file.rows for file in older) - (self._count(table, left, cut) if cut else 0)
        self.rewrite(table, cut, left, gone=[file for file in older if file.newest < date])
        return removed

    def compact(self, name: str) -> tuple[int, int]:
        """Merge files that are small, or whose dates overlap. Returns how many were merged, and how many were made.

        Afterwards the files of the table are in order, so that queries need not sort them.
        """
        table = self.lake.snapshot(name)
        files = [file for group in together(table.files) for file in group]
        return len(files), self.rewrite(table, files) if files else 0

    def rewrite(
        self, table: Snapshot, files: Sequence[File], condition: str | None = None, *, gone: Sequence[File] = ()
    ) -> int:
        """Write the rows of files, or those that meet a condition, to new files in order. Returns how many were made.

        The files in `gone` are removed from the table with their rows.
        """
        names = table.hidden
        order = f"ORDER BY {', '.join(map(quote, ('eventdate', names.load, names.row)))}"
        read = parts(files, self._sorted_rows)
        with (
            Files(self.lake.folder, table.name, table.columns) as written,
            self._scanning(table, read) as (cursor, sources),
        ):
            selects = [
                f"SELECT * FROM {source} WHERE {condition or 'true'} {'' if part.ordered else order}"
                for part, source in zip(read, sources, strict=True)
            ]
            with closing(Statement(cursor, selects, ROWS_PER_BATCH)) as statement:
                for batch in statement:
                    written.write(batch)
            adds = written.adds()
            old = [file.path for file in (*files, *gone)]
            self.lake.rewrite(table, old, adds, keeps_rows=condition is None)
            written.keep()
            return len(adds)

    @contextmanager
    def _reading(
        self, plan: Plan, since: Mark | None, until: Mark | None
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, Selects]]:
        table = self.lake.snapshot(plan.table)
        loads = self.lake.between(table, since, until)
        files = table.within(plan.start, plan.end, loads)
        columns = _read_by(plan, table)
        read = parts(files, self._sorted_rows) if plan.by_event else [whole(files)]
        with self._scanning(table, read, loads, columns, (plan.start, plan.end)) as (cursor, sources):
            # The name stands for the list of files, which may be long; it is random, so no query contains it.
            name = quote(f"source-{uuid.uuid4().hex}")
            kinds = {part.ordered for part in read}
            texts = {ordered: self._text(plan, table, name, columns, ordered=ordered) for ordered in kinds}
            selects = [texts[part.ordered].replace(name, source) for part, source in zip(read, sources, strict=True)]
            yield cursor, Selects(selects)

    def _text(self, plan: Plan, table: Snapshot, source: str, read: Sequence[Column], *, ordered: bool) -> str:
        """The plan's SELECT over `source`, without ORDER BY if the rows of `source` are ordered."""
        select = plan.select.copy()
        node = next(node for node in select.find_all(exp.Table))
        within = node.parent_select
        assert within is not None
        if ordered:
            _drop_order(within)
        position = table.hidden.row
        for column in within.find_all(exp.Column):
            if column.name == POSITION:
                column.set("this", exp.to_identifier(position, quoted=True))
        stand_in = f"rows-{uuid.uuid4().hex}"
        node.set("this", exp.to_identifier(stand_in, quoted=True))
        columns = ", ".join(f"{_as_read(column)} AS {quote(column.name)}" for column in read)
        place = f"{quote(table.hidden.load)}::HUGEINT * {1 << 40} + {quote(position)} AS {quote(position)}"
        return write(select, self.dialect).replace(quote(stand_in), f"(SELECT {columns}, {place} FROM {source})")

    @contextmanager
    def _scanning(
        self,
        table: Snapshot,
        read: Sequence[Part],
        loads: Loads | None = None,
        columns: Sequence[Column] | None = None,
        window: Window = (None, None),
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, Sequence[str]]]:
        """A connection, and the rows of each part as a subquery, without rows of other loads.

        A subquery may lack columns that are not in `columns`, and rows outside the window.
        """
        cursor = self._cursor()
        try:
            with _reachable(table.name, self.lake.folder.table_uri(table.name)), translated():
                schema = layout.file_schema(table.columns)
                names = [column.name for column in (table.columns if columns is None else columns)]
                sources = []
                for index, part in enumerate(read):
                    if self.lake.folder.local is not None and part.files:
                        rows = self._files(table, part)
                    else:
                        rows = f"{_REGISTERED}{index}"
                        cursor.register(rows, self._scanner(table, part, schema, [*names, *schema.names[-2:]], window))
                    if loads is not None and not loads.have_all(part.files):
                        rows = _of_loads(rows, table.hidden.load, loads)
                    sources.append(rows)
                yield cursor, sources
        finally:
            cursor.close()

    def _files(self, table: Snapshot, part: Part) -> str:
        """SQL for the rows of a part, whose files DuckDB opens."""
        listed = ", ".join(literal(f"{self.lake.folder.local}/{table.name}/{file.path}") for file in part.files)
        rows = f"read_parquet([{listed}], hive_partitioning=false)"
        if part.start is None or part.end is None:
            return rows
        first, last = (literal(date.isoformat()) for date in (part.start, part.end))
        return f"(SELECT * FROM {rows} WHERE eventdate >= {first}::TIMESTAMP AND eventdate < {last}::TIMESTAMP)"

    def _scanner(self, table: Snapshot, part: Part, schema: pa.Schema, names: Sequence[str], window: Window) -> _Scan:
        """A scan of the rows of a part, whose files Arrow opens."""
        format_, filesystem = pads.ParquetFileFormat(), self.lake.filesystem(table.name)
        fragments = [format_.make_fragment(file.path, filesystem) for file in part.files]
        dataset = pads.FileSystemDataset(fragments, schema, format_, filesystem)
        date = pads.field("eventdate")
        bounds = [date >= start for start in (window[0], part.start) if start is not None]
        bounds += [date < end for end in (window[1], part.end) if end is not None]
        # By default, Arrow reads so far ahead that it holds most of a large answer.
        ahead = {"batch_size": ROWS_PER_BATCH, "batch_readahead": 4, "fragment_readahead": 1}
        return _Scan(dataset.scanner(columns=list(names), filter=reduce(and_, bounds) if bounds else None, **ahead))

    def _count(self, table: Snapshot, condition: str, files: Sequence[File]) -> int:
        [(count,)] = self._rows(table, files, f"SELECT count(*) FROM {{}} WHERE {condition}")
        return int(count)

    def _rows(self, table: Snapshot, files: Sequence[File], select: str) -> list[tuple[int, ...]]:
        with self._scanning(table, [whole(files)]) as (cursor, [source]):
            return cursor.execute(select.format(source)).fetchall()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute("SET enable_progress_bar=false")
        return cursor


class _Scan:
    """Rows that Arrow reads, to be registered in DuckDB; they are read again each time.

    A Scanner must not be registered itself: it holds Python's lock while it starts to read. If a file cannot be read, a
    thread of Arrow waits for that lock to report the error: a deadlock. Iterating over its batches releases the lock.
    """

    def __init__(self, scanner: pads.Scanner) -> None:
        self._scanner = scanner

    def __arrow_c_schema__(self) -> object:
        return self._scanner.projected_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = self._scanner.to_batches()
        return pa.RecordBatchReader.from_batches(self._scanner.projected_schema, batches).__arrow_c_stream__()


def _followed(batches: Iterator[pa.RecordBatch], go_on: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """Pass batches through, and call `go_on` after the last one."""
    yield from batches
    go_on()


def _read_by(plan: Plan, table: Snapshot) -> list[Column]:
    """The columns of a table that a plan may read."""
    used = {column.name for column in plan.select.find_all(exp.Column)}
    return [column for column in table.columns if column.name in used]


@contextmanager
def _reachable(name: str, uri: str) -> Iterator[None]:
    """Raise Unavailable when files cannot be read, so that a job tries again, ServiceError when a file is damaged."""
    try:
        yield
    except ServiceError as error:
        reason = _FILES_FAILED.sub("", error.message)
        if damaged := _DAMAGED.search(reason):
            raise ServiceError(f"cannot read table '{name}': {damaged[1]} is damaged", code=500) from None
        if missing := _MISSING.search(reason):
            raise Unavailable(f"cannot read table '{name}': {missing[1]} is not there") from None
        if error.code == 500 or _FILES_FAILED.search(error.message):
            raise Unavailable(f"cannot read table '{name}' in {uri}: {reason}") from None
        raise


def _of_loads(rows: str, column: str, loads: Loads) -> str:
    """A subquery for those of the rows that belong to the loads."""
    numbers = ", ".join(map(str, sorted(loads.numbers))) or "NULL"
    return f"(SELECT * FROM {rows} WHERE {quote(column)} {'NOT IN' if loads.excluded else 'IN'} ({numbers}))"


def _as_read(column: Column) -> str:
    return f"{quote(column.name)}::UINTEGER" if column.type is Type.IP4 else quote(column.name)


def _drop_order(within: exp.Select) -> None:
    """Remove ORDER BY eventdate and position from the plan: its source returns the rows in this order."""
    select: exp.Expression | None = within
    name = POSITION
    while isinstance(select, exp.Select):
        order = select.args.get("order")
        if order is not None:
            keys = order.expressions
            if len(keys) == 2 and isinstance(keys[1].this, exp.Column) and keys[1].this.name == name:
                select.set("order", None)
            return
        carried = [item for item in select.expressions if isinstance(item, exp.Alias)]
        aliases = [item.alias for item in carried if isinstance(item.this, exp.Column) and item.this.name == name]
        if not aliases:
            return
        name, select = aliases[0], select.parent_select
