"""Reads files as tables of a separate DuckDB, because the DuckDB that stores events has no access to files.

Text is read as the table `lines`, which has the number and the text of each entry. For csv, the table has the number
and the cells of each row. The table either has only the first rows of the file (the head), or streams the whole file.
So a large file needs little memory. Bytes that are not UTF-8 are replaced in log lines and in ndjson. A csv row with
such bytes is skipped.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from svcctl.api.loads import LoadOptions
from svcctl.errors import UsageError
from svcctl.io.temporary import temporary
from svcctl.service.engines.duckdb.interruption import interruptible
from svcctl.service.engines.duckdb.row_groups import combined
from svcctl.service.engines.duckdb.statement import Cause, StatementFailed, first_line
from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.loading import csv, decompression, events_member, field_names, lines, parquet
from svcctl.service.loading.decompression import Source, codec, opened
from svcctl.service.loading.kinds import OWN_JSON, FileKind
from svcctl.service.loading.limits import LoadWatch
from svcctl.service.loading.nesting import without_deep
from svcctl.service.loading.skips import LONGEST_LINE, NOTHING_CHANGED, Aside, Tally, shown
from svcctl.words import size_text

HEAD_ROWS = 10_000
"""The maximum number of rows in the head of a file. The head is the beginning of the file."""
ROWS_PER_BATCH = 2048
ROWS_OF_KNOWN_WIDTH = 8192
BATCH_BYTES = 1 << 22
"""ROWS_PER_BATCH, ROWS_OF_KNOWN_WIDTH and BATCH_BYTES limit how much is read at once.

The limit is ROWS_PER_BATCH rows. For parquet, the limit is ROWS_OF_KNOWN_WIDTH rows, because the size of these rows is
known before they are read. If rows are wide, the limit is about BATCH_BYTES bytes.
"""
_CELL_BYTES = 8
"""The minimum size, in bytes, of a csv cell in a batch."""
LONG_SQL = 50_000
_FOR_LONG_SQL = "SET disabled_optimizers='common_subexpressions'; SET threads=1"
_FOR_SHORT_SQL = "RESET disabled_optimizers; RESET threads"
"""DuckDB's settings: _FOR_LONG_SQL for statements of more than LONG_SQL characters, else _FOR_SHORT_SQL.

For a long statement, DuckDB's search for common subexpressions takes minutes, and each thread needs much memory.
"""
_HEAD_BLOCK = 1 << 20
_OWN_JSON = re.compile(OWN_JSON.removesuffix(r"\s*$").encode())
_ANSWER_END_BYTES = 1024
"""The maximum number of bytes from the closing brace of a JSON answer to the end of the file."""
_LARGEST_CHECKED = 1 << 24


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of a known kind. `contents` is the path that DuckDB reads, and `heading` is the heading of csv.

    `width` is the size of the widest rows of parquet in bytes, or the minimum size of a csv row in bytes. `is_array` is
    true for JSON that is one array. `events_in` is the member of ndjson that has the events. If the events of a JSON
    document are in a member of its objects, `left_out` has the names of the other members.
    """

    source: Source
    kind: FileKind
    contents: Path
    heading: csv.CsvHeading | None = None
    width: int = 1
    is_array: bool = False
    events_in: str | None = None
    left_out: str = ""

    @property
    def is_parquet(self) -> bool:
        return self.kind.name == "parquet"

    @property
    def newest(self) -> datetime:
        """The latest possible time of an event in the file: one day after the last change of the file.

        The additional day allows for clocks that differ.
        """
        return datetime.fromtimestamp(self.source.path.stat().st_mtime, UTC) + timedelta(days=1)

    @property
    def names(self) -> Sequence[str]:
        """The names in the heading of csv."""
        return self.heading.names if self.heading else ()

    @property
    def has_commas_between_cells(self) -> bool:
        return self.heading is not None and self.heading.shape.separator == ","

    @property
    def table(self) -> str:
        """SQL for the rows of the file, as a table of DuckDB. The rows of parquet have row numbers."""
        if self.is_parquet:
            return f"read_parquet({self.literal}, hive_partitioning=false, file_row_number=true)"
        return "lines"

    @property
    def unit(self) -> str:
        """The word for a row in messages, such as `line`."""
        return {"json": "element", "parquet": "row"}.get(self.kind.name, "line")

    @property
    def literal(self) -> str:
        """The path as an SQL string. Special characters are escaped, because DuckDB takes a path as a pattern."""
        return literal(glob.escape(str(self.contents)))


class FileReader:
    """Reads files, one after the other, with its own DuckDB."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, spill: Path, watch: LoadWatch) -> None:
        self.connection = connection
        self._spill = spill
        self._watch = watch
        self._opened = 0
        self._failure: Exception | None = None
        self._registered: object = None

    def open(self, source: Source, kind: FileKind, head: bytes, options: LoadOptions) -> KnownFile:
        """Open a file of a known kind. `head` has the first bytes of the file.

        Packed parquet files and packed JSON documents are unpacked first, because DuckDB may not notice that a packed
        file is cut off. Raises UsageError when the file is damaged or cut off.
        """
        contents = source.path
        if kind.name in ("csv", "tsv", "fields"):
            separator = "\t" if kind.name == "tsv" else None
            if kind.name == "fields":
                heading = field_names.heading(source.name, head)
            else:
                heading = csv.heading(
                    source.name, head[: csv.HEAD], separator, header=options.header, names=options.names
                )
            return KnownFile(source, kind, contents, heading, _CELL_BYTES * len(heading.names))
        if kind.name in ("json", "parquet") and codec(source) is not None:
            self._opened += 1
            contents = self._spill / str(self._opened)
            with opened(source, self._watch) as packed, contents.open("wb") as file:
                shutil.copyfileobj(packed, file, lines.BLOCK_BYTES)
        if kind.name == "parquet":
            return self._parquet(KnownFile(source, kind, contents))
        is_array = head.lstrip(lines.BOM + b" \t\r\n").startswith(b"[")
        if kind.name == "json" and options.events_in is None and (beginning := _OWN_JSON.match(head)):
            decompression.require_end(source, contents, b"]}")
            contents, is_array = self._rows_of_answer(contents, beginning.end() - 1), True
        elif kind.name == "json":
            decompression.require_end(source, contents, b"]" if is_array else b"}")
        if kind.name == "json" and options.events_in is not None:
            self._opened += 1
            events = self._spill / str(self._opened)
            left_out = events_member.copy_events(contents, events, options.events_in, source.name, self._watch.check)
            return KnownFile(source, kind, events, is_array=True, left_out=left_out)
        return KnownFile(source, kind, contents, is_array=is_array, events_in=options.events_in)

    def _rows_of_answer(self, contents: Path, begin: int) -> Path:
        """Copy the array of rows in a service's JSON answer to a file. The array begins at the byte `begin`."""
        self._opened += 1
        rows = self._spill / str(self._opened)
        with contents.open("rb") as answer, rows.open("wb") as file:
            answer.seek(begin)
            shutil.copyfileobj(answer, file, lines.BLOCK_BYTES)
            size = file.tell()
            answer.seek(-min(_ANSWER_END_BYTES, size), os.SEEK_END)
            end = answer.read()
            file.truncate(size - len(end) + end.rfind(b"}"))
        return rows

    def _parquet(self, file: KnownFile) -> KnownFile:
        """Check the footer, sizes and pages of a parquet file. Returns the file with the `width` of its widest rows."""
        width = parquet.check_footer(file.source, file.contents, self._watch)
        described = self.rows(file, f"DESCRIBE FROM {file.table}")
        [(count, size, widest)] = self.rows(file, parquet.size_query(file.table, described))
        self._watch.unpacked(file.source.path, file.source.name, int(size) + count * len(described))
        width = max(width, widest)
        parquet.check_pages(file.source, file.contents, max(1, BATCH_BYTES // width), self._watch)
        return replace(file, width=width)

    def first_bytes(self, source: Source, size: int) -> bytes:
        """Return the first bytes of a file, unpacked. Raises UsageError if files of this kind cannot be loaded."""
        with opened(source, self._watch) as file:
            head = file.read(size)
        decompression.require_read(source, head)
        return head

    def head(self, file: KnownFile) -> Tally:
        """Register the first rows of a file (the head) as the table `lines`.

        Returns a Tally that counts the lines without an entry, such as blank lines.
        """
        tally = Tally()
        with self._readable(file):
            batches = () if file.is_parquet else self._batches(file, tally, _HEAD_BLOCK)
            filled = islice((batch for batch in batches if batch.num_rows), 2)  # the last entry has a batch of its own
            self._register(pa.Table.from_batches(filled, self._schema(file)).slice(0, HEAD_ROWS))
        return tally

    def stream(self, file: KnownFile, tally: Tally) -> None:
        """Register a whole file as the table `lines`, for one query. `tally` counts the lines without an entry."""
        if not file.is_parquet:
            batches = self._watched(self._batches(file, tally))
            self._register(pa.RecordBatchReader.from_batches(self._schema(file), batches))

    def rows(self, file: KnownFile, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query over a file. Raises UsageError when the file cannot be read."""
        with self._readable(file):
            rows = self.connection.execute(sql).fetchall()
            self.check()
        return rows

    def batches(self, file: KnownFile, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query over a file, in batches.

        A batch has as many rows as a row group of DuckDB, or fewer if rows are large or the file ends (see `combined`).
        """
        most = ROWS_OF_KNOWN_WIDTH if file.is_parquet else ROWS_PER_BATCH
        with self._readable(file):
            self.connection.execute(_FOR_LONG_SQL if len(sql) > LONG_SQL else _FOR_SHORT_SQL)
            relation = self.connection.sql(sql)
            assert relation is not None
            with relation.to_arrow_reader(max(1, min(most, BATCH_BYTES // file.width))) as reader:
                yield from combined(self._checked(reader))
            self.check()

    def _checked(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.check()
            yield batch

    def check(self) -> None:
        """Raise an error if reading the file has failed, or if the load must end."""
        if self._failure is not None:
            raise self._failure
        self._watch.check()

    @contextmanager
    def _readable(self, file: KnownFile) -> Iterator[None]:
        """Turn the errors of DuckDB in a `with` block into errors about the file."""
        source, kind = file.source, file.kind.name
        try:
            yield
        except MemoryError:
            raise self._watch.out_of_memory(source.name, kind) from None
        except (duckdb.Error, OSError, ValueError, OverflowError) as error:  # Arrow changes the type of DuckDB's errors
            if StatementFailed(error, "load").cause is Cause.MEMORY:
                raise self._watch.out_of_memory(source.name, kind) from None
            why = re.sub(r' in file "[^"]*"', "", first_line(error)).replace(str(file.contents), source.name)
            raise UsageError(f"cannot read {source.name} as {kind}: {why.rstrip(' .')}") from None

    def _schema(self, file: KnownFile) -> pa.Schema:
        return file.heading.schema if file.heading else lines.SCHEMA

    def _register(self, table: pa.Table | pa.RecordBatchReader) -> None:
        self._failure, self._registered = None, table
        self.connection.register("lines", table)

    def _batches(self, file: KnownFile, tally: Tally, block_size: int = lines.BLOCK_BYTES) -> Iterator[pa.RecordBatch]:
        if file.heading is not None:
            return csv.batches(file.source, file.heading, tally, self._watch, block_size)
        if file.kind.name == "json":
            tally.add(Aside.OUTSIDE, 1, file.left_out, count=1 if file.left_out else 0)
            return (without_deep(batch, tally) for batch in self._elements(file))
        is_json = file.kind.name == "ndjson" and not file.events_in
        entries = lines.batches(
            file.source,
            file.kind.continuation,
            tally,
            self._watch,
            block_size,
            comment=file.kind.comment,
            is_json=is_json,
        )
        if not file.events_in:
            return entries
        return (without_deep(batch, tally) for batch in self._events(file.events_in, entries, tally))

    def _events(self, member: str, objects: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        """Yield the events that are in an array inside objects of ndjson, each with its line number.

        `member` is the name or the path of the array. `tally` counts the objects without this array, and the objects
        with members outside the array.
        """
        with self.connection.cursor() as cursor, interruptible(cursor, self._watch.check):
            for batch in objects:
                cursor.register("objects", batch)
                events_member.count(cursor, member, tally)
                events = cursor.sql(events_member.events_query(member))
                assert events is not None
                yield from (part.cast(lines.SCHEMA) for part in events.to_arrow_reader(ROWS_PER_BATCH))

    def _elements(self, file: KnownFile) -> Iterator[pa.RecordBatch]:
        """Yield the elements of a JSON array, or the objects in a sequence of JSON objects, each with its number."""
        form = f"format='{'array' if file.is_array else 'unstructured'}', compression='none'"
        with self.connection.cursor() as cursor, interruptible(cursor, self._watch.check):
            elements = cursor.sql(
                "SELECT row_number() OVER () AS number, json::VARCHAR AS line "
                f"FROM read_json_objects({file.literal}, {form})"
            )
            assert elements is not None
            try:
                yield from (batch.cast(lines.SCHEMA) for batch in elements.to_arrow_reader(ROWS_PER_BATCH))
            except (duckdb.Error, OSError) as error:
                if "maximum_object_size" in str(error):
                    raise UsageError(
                        f"{file.source.name} has an object of more than {size_text(LONGEST_LINE)}",
                        hint=NOTHING_CHANGED,
                        reason="large-json-object",
                    ) from None
                self._check_json(file)
                raise

    def _check_json(self, file: KnownFile) -> None:
        """Check that a JSON array is valid. Raises UsageError with the number of the first invalid line.

        Large files are not checked, because the check would take much memory.
        """
        if file.is_array and file.contents.stat().st_size <= _LARGEST_CHECKED:
            try:
                json.loads(file.contents.read_text("utf-8-sig", "replace"), object_pairs_hook=len)
            except json.JSONDecodeError as error:
                where = f"line {error.lineno} is not JSON: {shown(error.doc[error.pos :])}"
                raise UsageError(f"{file.source.name} could not be read: {where}", hint=NOTHING_CHANGED) from None
            except (RecursionError, ValueError):
                pass  # valid JSON, but DuckDB cannot read it

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a stream.

        An error ends the stream, and is saved for `check`, because DuckDB would only pass on the text of the error.
        """
        try:
            for batch in batches:
                self._watch.check()
                yield batch
        except Exception as error:
            self._failure = error


@contextmanager
def reading(zone: str, watch: LoadWatch) -> Iterator[FileReader]:
    """Open a reader of files for a `with` block. `zone` is the zone for times without a zone.

    `watch` is called repeatedly while a file is read. When `watch` raises an error, reading stops.
    """
    with temporary("load") as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{watch.limits.memory_bytes}B",
            "temp_directory": str(spill),
            "python_enable_replacements": "false",
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute(f"SET TimeZone={literal(zone)}; SET enable_progress_bar=false")
            with interruptible(connection, watch.check):
                yield FileReader(connection, spill, watch)
