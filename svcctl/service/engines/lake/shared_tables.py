"""Tables in a shared folder, with the operations that read or sort rows.

DuckDB sorts the rows of a load, and the rows that are left after a trim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from svcctl.service.engines.duckdb.opening import MEMORY_LIMIT
from svcctl.service.engines.duckdb.scanner import FILE_TYPES, Scanner
from svcctl.service.engines.duckdb.statement import Statement
from svcctl.service.engines.duckdb.syntax import literal, quote
from svcctl.service.engines.duckdb.widening import is_lossy, widened
from svcctl.service.engines.lake.lake import Lake
from svcctl.service.engines.lake.layout import hidden
from svcctl.service.engines.lake.log import Action
from svcctl.service.engines.lake.snapshot import SORTED_ROWS, File, Snapshot, parts
from svcctl.service.engines.lake.upkeep import together
from svcctl.service.engines.lake.writer import CommitFiles
from svcctl.service.engines.table_rules import ColumnChange, unwidened
from svcctl.service.language.types import Column

ROWS_PER_BATCH = 1 << 16


class LakeTables(Lake):
    """Tables in a shared folder. At most about `sorted_rows` rows are sorted at once.

    The class Scanner describes the parameters `memory_limit` and `spill`.
    """

    def __init__(
        self,
        uri: str,
        environment: Mapping[str, str],
        *,
        lock_file: Path | None = None,
        memory_limit: str = MEMORY_LIMIT,
        spill: Path | None = None,
        sorted_rows: int = SORTED_ROWS,
    ) -> None:
        super().__init__(uri, environment, lock_file=lock_file)
        self.sorted_rows = sorted_rows
        self.scanner = Scanner(self, memory_limit=memory_limit, spill=spill)

    def close(self) -> None:
        self.scanner.close()

    def __enter__(self) -> LakeTables:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        if create is not None:
            with self.scanner.arranged(name, rows, create) as arranged:
                return self.make(name, create, _followed(arranged, go_on), replace=replace, id_=load_id)
        table = self.snapshot(name)
        if change is not None:
            change.check(name, table.columns)
        columns = table.columns if change is None else change.after
        with self.scanner.arranged(name, rows, columns) as arranged, CommitFiles(self.folder, name, columns) as old:
            rewritten = self._converted(table, change, old, go_on) if change is not None else []
            batches = _followed(arranged, go_on)
            added = self.extend(table, batches, change=change, rewritten=rewritten, id_=load_id)
            if added:
                old.keep()
            return added

    def _converted(
        self, table: Snapshot, change: ColumnChange, written: CommitFiles, go_on: Callable[[], None] | None
    ) -> list[Action]:
        """Rewrite all files of a table if a change widens columns or renames hidden columns.

        Returns the Delta actions that add the new files. For other changes, nothing is rewritten, and the result is
        empty. Raises UsageError if a value would change.
        """
        now = hidden(change.after)
        if not change.widened and now == table.hidden:
            return []
        for column, wider in change.widened:
            if (lossy := is_lossy(column, wider.type)) and (values := self.scanner.count(table, lossy, table.files)):
                raise unwidened(table.name, column, values)
        wider_types = {new.name: new.type for _, new in change.widened}
        values_of = [
            f"{widened(column, wider_types[column.name]) if column.name in wider_types else quote(column.name)} "
            f"AS {quote(column.name)}"
            for column in table.columns
        ]
        values_of += [f"NULL::{FILE_TYPES[column.type]} AS {quote(column.name)}" for column in change.added]
        numbers = zip((table.hidden.load, table.hidden.row), (now.load, now.row), strict=True)
        values_of += [f"{quote(old)} AS {quote(new)}" for old, new in numbers]
        self._copy(table, table.files, written, f"SELECT {', '.join(values_of)}", go_on=go_on)
        adds = written.adds()
        for action in adds:
            action["add"]["dataChange"] = True
        return adds

    def trim(self, name: str, *, most: int, since: datetime) -> int:
        table = self.snapshot(name)
        older = f"eventdate < {literal(since.isoformat())}::TIMESTAMP"
        rows = table.rows
        removed = max(rows - most, self.scanner.count(table, older, table.files))
        if removed <= 0:
            return rows
        load, row = quote(table.hidden.load), quote(table.hidden.row)
        last = f"SELECT {load}, {row} FROM {{}} ORDER BY 1, 2 LIMIT 1 OFFSET {removed - 1}"
        [(last_load, last_row)] = self.scanner.rows(table, table.files, last)
        left = f"{load} > {last_load} OR ({load} = {last_load} AND {row} > {last_row})"
        files = [file for file in table.files if file.loads[0] <= last_load]
        self.rewrite(table, files, left, cut=max(file.end for file in files))
        return rows - removed

    def remove_before(self, name: str, date: datetime) -> int:
        """Remove the events before a date.

        A file that also has later events is rewritten. No other file is read.
        """
        table = self.snapshot(name)
        older = [file for file in table.files if file.oldest < date]
        cut = [file for file in older if file.newest >= date]
        if not older:
            return 0
        left = f"eventdate >= {literal(date.isoformat())}::TIMESTAMP"
        removed = sum(file.rows for file in older) - (self.scanner.count(table, left, cut) if cut else 0)
        self.rewrite(table, cut, left, gone=[file for file in older if file.newest < date], cut=date)
        return removed

    def compact(self, name: str) -> tuple[int, int]:
        """Merge files that are small or have overlapping dates.

        Returns the number of merged files and the number of new files. Afterwards, queries can read the rows of the
        table in order without sorting.
        """
        table = self.snapshot(name)
        files = [file for group in together(table.files) for file in group]
        return len(files), self.rewrite(table, files) if files else 0

    def rewrite(
        self,
        table: Snapshot,
        files: Sequence[File],
        condition: str = "true",
        *,
        gone: Sequence[File] = (),
        cut: datetime | None = None,
    ) -> int:
        """Write the rows of files to new files, in order. Rows that do not meet the condition are left out.

        Returns the number of new files. The files in `files` are removed from the table. The files in `gone` are also
        removed, but none of their rows are written to new files. Each row that the table loses must be dated before
        `cut`.
        """
        with CommitFiles(self.folder, table.name, table.columns) as written:
            self._copy(table, files, written, "SELECT *", condition)
            adds = written.adds()
            old = [file.path for file in (*files, *gone)]
            self.exchange(table, old, adds, cut=cut)
            written.keep()
            return len(adds)

    def _copy(
        self,
        table: Snapshot,
        files: Sequence[File],
        written: CommitFiles,
        select: str,
        condition: str = "true",
        *,
        go_on: Callable[[], None] | None = None,
    ) -> None:
        """Write rows of some files in order. Only rows that meet the condition are written.

        `select` is a SELECT without FROM. The SELECT defines the columns of the rows that are written.
        """
        names = table.hidden
        order = f"ORDER BY {', '.join(map(quote, ('eventdate', names.load, names.row)))}"
        with self.scanner.scanning(table) as (cursor, source):
            selects = (
                f"{select} FROM (SELECT * FROM {source(part)} WHERE {condition} {'' if part.ordered else order})"
                for part in parts(files, self.sorted_rows)
            )
            with closing(Statement(cursor, selects, ROWS_PER_BATCH)) as statement:
                for batch in statement:
                    written.write(batch)
                    if go_on:
                        go_on()


def _followed(batches: Iterator[pa.RecordBatch], go_on: Callable[[], None] | None) -> Iterator[pa.RecordBatch]:
    """Yield all batches. Call `go_on` after the last batch."""
    yield from batches
    if go_on:
        go_on()
