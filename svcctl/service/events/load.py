"""Loading a file into a table, in one transaction: a load that fails leaves nothing.

A row whose time cannot be read, or that does not fit the table, is skipped and counted, and the place of the first
such row is reported. How files are read, and what types their columns get, is in `engines/duckdb/files.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from svcctl.errors import UsageError
from svcctl.service.engines import Engine, check_table_name
from svcctl.service.engines.duckdb.files import LINE, EventFile, first_lines, reading
from svcctl.service.engines.duckdb.packed import ENDINGS
from svcctl.service.events.readers import FILE_KINDS, FileKind, known_kind
from svcctl.service.language.types import Column, Type

TIME_NAMES = ("timestamp", "@timestamp", "time", "date", "datetime", "ts")
"""Column names that mean the event's time, the likeliest first; `eventdate` comes before all of them."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load: the table's columns, the rows added, the rows skipped and where the first of those was."""

    table: str
    columns: tuple[Column, ...]
    rows: int
    skipped: int
    first_skipped: str | None


def load(
    engine: Engine, path: Path, table: str, *, time_field: str | None = None, format: str | None = None
) -> LoadResult:
    """Add the events of a file to a table, which is made when it is not there.

    `time_field` names the column that becomes `eventdate`; `format` is a name of FILE_KINDS. UsageError when the file,
    its format, its time or its columns cannot be used.
    """
    check_table_name(table)
    kind = _kind(path, format)
    with reading(path, kind.name, kind.pattern) as file:
        time = _time_field(path, file, time_field)
        new = table not in engine.tables()
        types = file.columns if new else {column.name: column.type for column in engine.table(table).columns}
        seen, usable = file.usable(time, types)
        if seen and not usable:
            hint = "name the column that holds it with --time-field"
            raise UsageError(f"no time could be read in '{time}' of {path}", hint=hint)
        columns = (
            Column("eventdate", Type.TIMESTAMP),
            *(Column(name, type_) for name, type_ in file.columns.items() if name != time),
        )
        tally = _Tally()
        rows = engine.append(table, tally.usable(file.events(time, types)), create=columns if new else None)
        unreadable, first = file.rejected()
    skipped = tally.skipped + unreadable
    return LoadResult(table, engine.table(table).columns, rows, skipped, first if unreadable else tally.first)


class _Tally:
    """Filters rows without an eventdate out of batches, and counts them."""

    def __init__(self) -> None:
        self.skipped = 0
        self.first: str | None = None

    def usable(self, batches: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The batches without such rows and without the numbers of lines."""
        schema = pa.schema([field for field in batches.schema if field.name != LINE])
        return pa.RecordBatchReader.from_batches(schema, self._kept(batches))

    def _kept(self, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        seen = 0
        for batch in batches:
            dates = batch.column("eventdate")
            if dates.null_count:
                if not self.first:
                    row = dates.is_null().index(True).as_py()
                    line = batch.column(LINE)[row].as_py() if LINE in batch.schema.names else None
                    self.first = f"line {line}" if line else f"row {seen + row + 1}"
                self.skipped += dates.null_count
            seen += batch.num_rows
            kept = batch.filter(dates.is_valid()) if dates.null_count else batch
            yield kept.drop_columns([LINE]) if LINE in batch.schema.names else kept


def _kind(path: Path, name: str | None) -> FileKind:
    """The kind of file that was named, or else the kind by the file's ending or its first lines."""
    if name is not None:
        if name not in FILE_KINDS:
            raise UsageError(f"unknown format '{name}'", hint=f"formats are {', '.join(FILE_KINDS)}")
        return FILE_KINDS[name]
    kind = known_kind(path.with_suffix("").suffix if path.suffix in ENDINGS else path.suffix, first_lines(path))
    if kind is None:
        raise UsageError(f"the format of {path} is not clear", hint=f"name it with --format: {', '.join(FILE_KINDS)}")
    return kind


def _time_field(path: Path, file: EventFile, named: str | None) -> str:
    """The column of the time: the one named, or else eventdate, the only column of times, or one with a usual name."""
    if named is not None:
        if named not in file.columns:
            raise UsageError(f"{path} has no column '{named}'", hint=f"its columns are {', '.join(file.columns)}")
        if named != "eventdate" and "eventdate" in file.columns:
            raise UsageError(f"{path} has a column eventdate, so '{named}' cannot take its place")
        return named
    if "eventdate" in file.columns:
        return "eventdate"
    times = [name for name, type_ in file.columns.items() if type_ is Type.TIMESTAMP] + file.texts_of_times()
    if len(times) == 1:
        return times[0]
    for usual in TIME_NAMES:
        for name in file.columns:
            if name.casefold() == usual:
                return name
    raise UsageError(
        f"it is not clear which column of {path} is the time",
        hint=f"name it with --time-field: {', '.join(file.columns)}",
    )
