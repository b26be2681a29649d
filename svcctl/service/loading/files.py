"""Reads files of events with a separate DuckDB, because the DuckDB of the engine cannot reach files.

Rows are returned as Arrow batches, so memory is bounded. The order of day and month in dates is not guessed. Bytes that
are not UTF-8 are replaced in log lines and ndjson, and make a row of csv unreadable.
"""

from __future__ import annotations

import glob
import re
import shutil
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from svcctl.errors import SvcctlError, UsageError
from svcctl.io.temporary import temporary
from svcctl.service.engines.duckdb.statement import first_line
from svcctl.service.engines.duckdb.text import LINE, UNCLEAR, literal, quote
from svcctl.service.language.types import Type
from svcctl.service.loading import csv, lines
from svcctl.service.loading.decompression import (
    codec,
    opened,
    require_read,
    require_whole,
    require_whole_pages,
    widest_rows,
)
from svcctl.service.loading.fields import (
    UTC,
    Field,
    as_time,
    converted,
    field,
    number_with_commas,
    number_with_thousands,
    slashed,
    text_as_time,
    zone_read,
)
from svcctl.service.loading.lines import LeftOut, shown
from svcctl.service.loading.readers import READERS, Odd, json_elements

LOOKED_AT = 1000
"""How many rows decide whether a column has times: the first rows."""
ROWS_PER_BATCH = 2048
ROWS_OF_KNOWN_WIDTH = 8192
BATCH_BYTES = 1 << 26
"""The most rows and bytes of a batch: few rows where the length of the next ones is unknown (not parquet)."""
_DAY = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_SLASHED = r"\d{1,2}/\d{1,2}/\d{4}"
_SPANS = ("duration", "elapsed")
"""Words in the names of columns with lengths of time, which look like times of day."""
_CLOCK = r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?"


FIRST = "epoch_ms(0)"
"""The earliest date of a stored event, because queries begin no earlier."""


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file to load: its path, its name in messages, its kind, and the patterns of its entries; see FileKind.

    `rest` is the end of one of the first lines that the pattern does not match, and that is not read. `has_format` is
    true for a log whose times are in the format of --time-format, or have the day first.
    """

    path: Path
    name: str
    kind: str
    pattern: str = ""
    continuation: str = ""
    rest: str = ""
    has_format: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """How many rows could not be used, and the first of them: `line 2: n 'hello' is not int8`.

    `types` is a column with a type that would hold such values, `n=str`, if the row was skipped because of a type.
    """

    count: int = 0
    first: str | None = None
    types: str | None = None


class FileReader:
    """A DuckDB that reads files, one after the other."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, spill: Path, zone: str, go_on: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._spill = spill
        self._zone = zone
        self._go_on = go_on
        self._opened = 0

    def open(self, given: GivenFile) -> EventFile:
        """Open a file. Raises UsageError when it cannot be read as a file of its kind."""
        self._opened += 1
        contents = _whole(given, self._spill / str(self._opened))
        with readable(given):
            source = _Source(given, self._connection, contents, self._zone, self._go_on)
            return EventFile(source, READERS[given.kind](source, given.pattern))


@contextmanager
def reading(zone: str = UTC, go_on: Callable[[], None] = lambda: None) -> Iterator[FileReader]:
    """A reader of files for the block; `zone` is the zone of times without a zone.

    `go_on` is called repeatedly while a file is read; when it raises an error, reading stops.
    """
    with temporary("load") as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": "500MB",
            "temp_directory": str(spill),
            "python_enable_replacements": "false",
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute(f"SET TimeZone={literal(zone)}; SET enable_progress_bar=false")
            yield FileReader(connection, spill, zone, go_on)


@contextmanager
def readable(given: GivenFile) -> Iterator[None]:
    """Raise errors of DuckDB in the block as a UsageError about the file."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise UsageError(
            f"cannot read {given.name} as {given.kind}: a line of it needs more memory than a load may use",
            hint="nothing was changed; leave out the largest lines, such as with: cut -c 1-1000000",
        ) from None
    except duckdb.Error as error:
        why = re.sub(r' in file "[^"]*"', "", first_line(error)).replace(str(given.path), given.name)
        raise UsageError(f"cannot read {given.name} as {given.kind}: {why.rstrip(' .')}") from None


def first_lines(path: Path) -> list[str]:
    """The first lines of a file, at most five, unpacked and without blank lines.

    Raises UsageError if the file is UTF-16, or if its packing is not supported.
    """
    with opened(path) as file:
        head = file.read(1 << 16)
    require_read(path, head)
    if encoding := _wide(head):
        raise UsageError(
            f"{path} is text in {encoding.upper()}, not in UTF-8",
            hint=f"convert it: iconv -f {encoding} -t utf-8 FILE | svcctl service load - -t …",
        )
    found = head.decode("utf-8-sig", errors="replace").splitlines()
    return list(islice((line for line in found if line.strip()), 5))


def _wide(head: bytes) -> str | None:
    """The encoding of a text with two bytes per character, by its mark or its ASCII characters; None for others."""
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    zeros = "".join("x" if byte else "0" for byte in head[:8])
    return {"x0x0x0x0": "utf-16le", "0x0x0x0x": "utf-16be"}.get(zeros)


class EventFile:
    """The rows of a file as events. `columns` are the columns of the file with the types of their stored values."""

    def __init__(self, source: _Source, select: str) -> None:
        self._source = source
        self._select = select
        found = source.query(select)
        self._numbered = LINE in found.columns
        self._zoned = UNCLEAR in found.columns
        self._fields = {
            name: _number(quote(name), source.commas[name])
            if name in source.commas
            else field(quote(name), str(sql_type), UTC if self.is_dated else source.zone)
            for name, sql_type in zip(found.columns, found.types, strict=True)
            if name not in (LINE, UNCLEAR)
        }
        self.columns: Mapping[str, Type] = {name: field.type for name, field in self._fields.items()}
        self.clock: str | None = None
        """The column with the times of day, if the column of the time has only dates."""
        self.clocks: list[str] = []
        """Columns with times of day, if the column of the time has only dates and it is not clear which one belongs."""

    @property
    def given(self) -> GivenFile:
        return self._source.given

    @property
    def is_dated(self) -> bool:
        """Whether the format of the file defines how times are written."""
        return bool(self._source.given.pattern) and not self._source.has_format

    @property
    def odd(self) -> Mapping[str, Odd]:
        """The columns of text in which nearly all values are numbers, each with the first other value."""
        return self._source.odd

    @property
    def commas(self) -> Mapping[str, Odd]:
        """The columns whose numbers have decimal commas, or commas between thousands, each with the first such one."""
        return self._source.commas

    @property
    def infinite(self) -> Iterable[str]:
        """The columns with values that are NaN or infinite, and become null."""
        return self._source.infinite

    @property
    def objects(self) -> Iterable[str]:
        """The columns of JSON with objects, which are stored as text."""
        return self._source.objects

    @property
    def blank(self) -> set[str]:
        """The columns without a value, whose type is unknown."""
        return self._source.blank

    def times(self, spec: str | None) -> list[str]:
        """The columns of times, and the columns of text in which every value of the first rows is a time.

        With `spec`, the columns in this format of strptime, also of numbers such as 20240131, if there are any.
        """
        zone = self._source.zone
        if spec is None:
            # Versions such as 5.10.1 look like dates of the first years.
            found = self._texts((Type.STR,), lambda given: text_as_time(given.stored, zone), "max({}) >= '1970-01-01'")
        else:
            found = self._texts((Type.STR, Type.INT4, Type.INT8), lambda given: as_time(given, zone, spec))
        if spec is None or not found:
            found += [name for name, type_ in self.columns.items() if type_ is Type.TIMESTAMP]
        return found

    def mixed_times(self) -> Iterator[tuple[str, str, int | None]]:
        """The columns of text in which half of the first values are times, with the first other value and its line."""
        names = [name for name, type_ in self.columns.items() if type_ is Type.STR]
        line = quote(LINE) if self._numbered else "NULL"
        for name in names:
            value = self._fields[name].stored
            time = text_as_time(value, self._source.zone)
            other = f"FILTER ({time} IS NULL AND {value} <> '')"
            are_times, first, number = self._source.row(
                f"SELECT max({time}) >= '1970-01-01' AND 2 * count({time}) >= count(nullif({value}, '')), "
                f"first({value}) {other}, first({line}) {other} FROM ({self._select} LIMIT {LOOKED_AT})"
            )
            if are_times and first is not None:  # versions such as 5.10.1 look like dates of the first years
                yield name, first, number

    def texts_of_slashed_dates(self) -> list[str]:
        """The columns of text in which every value of the first rows begins with a date with slashes."""
        return self._texts((Type.STR,), lambda given: f"nullif(regexp_matches({slashed(given)}, '^{_SLASHED}'), false)")

    def _texts(self, types: Sequence[Type], test: Callable[[Field], str], all_: str = "true") -> list[str]:
        """The columns of these types in which the test is not null for any value of the first rows.

        `all_` is an aggregate condition, which must be true for the results of the test.
        """
        names = [name for name, type_ in self.columns.items() if type_ in types]
        if not names:
            return []
        fields = map(self._fields.__getitem__, names)
        tests = (
            f"count({one.stored}) > 0 AND count({one.stored}) = count({test(one)}) AND {all_.format(test(one))}"
            for one in fields
        )
        found = self._source.row(f"SELECT {', '.join(tests)} FROM ({self._select} LIMIT {LOOKED_AT})")
        return [name for name, has_passed in zip(names, found, strict=True) if has_passed]

    def find_clock(self, time: str, spec: str | None, *, guessed: bool) -> None:
        """Find the column of the times of day, if the first rows of the column `time` have only dates.

        Its name is time, or like the name of the other column: startTime for startDate. If `time` was `guessed`, the
        only column of times of day is taken under any name.
        """
        if spec is not None and re.search(r"%-?[HIscX]", spec):
            return
        day = self._fields[time]
        is_day = f"typeof({day.raw}) = 'DATE'"
        if day.type is Type.STR:
            date = text_as_time(day.stored, self._source.zone)
            is_day = f"CASE WHEN {date} IS NOT NULL THEN regexp_full_match({day.stored}, '{_DAY}') END"
        usual = ("time", time.casefold().replace("date", "time"))
        found = self._clocks()
        if not found or time in found or (spec is None and not self._all(is_day)):
            return
        if named := [name for name in found if name.casefold() in usual]:
            self.clock = named[-1]
        elif len(found) == 1 and guessed:
            self.clock = found[0]
        else:
            self.clocks = found

    def _clocks(self) -> list[str]:
        """The columns with times of day in their first rows, without those named after lengths of time."""
        match = f"nullif(regexp_full_match({{0}}, '{_CLOCK}'), false)"
        test = f"CASE WHEN {{0}} = '' THEN false ELSE {match} END"
        found = self._texts((Type.STR,), lambda given: test.format(given.stored), "bool_or({})")
        return [name for name in found if not any(span in name.casefold() for span in _SPANS)]

    def has_clocks(self, name: str) -> bool:
        """Whether a column has times of day without a date in its first rows."""
        given = self._fields[name]
        return given.type is Type.STR and self._all(f"regexp_full_match(nullif({given.stored}, ''), '{_CLOCK}')")

    def _all(self, test: str) -> bool:
        """Whether a test is true in all of the first rows in which it is not null."""
        return bool(self._source.row(f"SELECT bool_and({test}) FROM ({self._select} LIMIT {LOOKED_AT})")[0])

    def is_time(self, text: str, spec: str | None) -> bool:
        """Whether a text is a time, in the format `spec` if it is given."""
        zone = self._source.zone
        written = Field(literal(text), literal(text), Type.STR)
        time = text_as_time(written.stored, zone) if spec is None else as_time(written, zone, spec)
        return bool(self._source.row(f"SELECT {time} IS NOT NULL")[0])

    def wrapper(self) -> str | None:
        """The member that is an array of objects, if a file of JSON is a single object with such a member."""
        if self.given.kind not in ("json", "ndjson"):
            return None
        tests = (f"bool_and(json_type(to_json({quote(name)}), '$[0]') = 'OBJECT')" for name in self._fields)
        count, *are_wrappers = self._source.row(f"SELECT count(*), {', '.join(tests)} FROM ({self._select} LIMIT 2)")
        found = [name for name, is_wrapper in zip(self._fields, are_wrappers, strict=True) if is_wrapper]
        return found[0] if found and count == 1 else None

    @property
    def is_empty(self) -> bool:
        """Whether the file is complete and has no rows: a heading only, or parquet without rows."""
        heading = self.given.kind in ("csv", "tsv") and len(first_lines(self.given.path)) == 1
        return (heading or self.given.kind == "parquet") and not self._source.row(
            f"SELECT count(*) FROM ({self._select} LIMIT 1)"
        )[0]

    def first_line(self) -> int | None:
        """The line of the first row, for a file that is read line by line; else None."""
        return self._source.row(f"SELECT {quote(LINE)} FROM ({self._select}) LIMIT 1")[0] if self._numbered else None

    def usable(self, time: str, types: Mapping[str, Type], spec: str | None) -> tuple[int, int, list[str]]:
        """How many of the first rows `events` returns, how many of them have an eventdate, and the UNCLEAR values."""
        found = f"count(*), count(eventdate), list({quote(UNCLEAR)})"
        rows, dated, begins = self._source.row(
            f"SELECT {found} FROM ({self._events(time, types, spec)} LIMIT {LOOKED_AT})"
        )
        return rows, dated, begins or []

    def dated(self, time: str, unclear: str) -> tuple[str, int | None, str]:
        """The first time with this value of UNCLEAR, its line if lines are known, and the time in UTC that was read."""
        given = self._fields[time]
        line = quote(LINE) if self._numbered else "NULL"
        read = f"strftime({self._when(given, None)}, '%Y-%m-%d %H:%M:%S')"
        where = f"{self._unclear(time, None)} = {literal(unclear)}"
        date, line, read = self._source.row(
            f"SELECT {given.stored}, {line}, {read} FROM ({self._select}) WHERE {where} LIMIT 1"
        )
        return str(date), line, str(read)

    def events(self, time: str, types: Mapping[str, Type], spec: str | None = None) -> pa.RecordBatchReader:
        """The rows as events: `eventdate` is the column `time`, and columns named in `types` are cast to their type.

        `spec` is the format of the time for strptime. In a row whose time cannot be read, or with a value that does not
        fit its column's type, eventdate is null. A column UNCLEAR follows: the beginning of a date with slashes, if no
        format tells what comes first, or a zone that means several. A file that is read line by line also has a column
        LINE with the number of the row's line.
        """
        return self._source.batches(self._events(time, types, spec))

    def skipped(
        self, time: str, types: Mapping[str, Type], spec: str | None, dropped: int, first: tuple[int, int | None] | None
    ) -> Skipped:
        """The rows that could not be used in the last `events`, with the reason for the first.

        `dropped` is how many rows have no eventdate; `first` is the index of the first of them, and its line.
        """
        left_out = self._source.left_out
        count = dropped + left_out.count
        if first is not None and (not left_out.count or (first[1] or 0) < left_out.first):
            index, line = first
            place = f"row {index + 1}" if line is None else f"{self._source.unit} {line}"
            why, fitting = self._why(time, types, spec, index, line)
            return Skipped(count, f"{place}: {why}", fitting)
        return Skipped(count, f"line {left_out.first}: {left_out.why}" if count else None)

    def _why(
        self, time: str, types: Mapping[str, Type], spec: str | None, index: int, line: int | None
    ) -> tuple[str, str | None]:
        """Why a row cannot be used, and if a value does not fit its column, `column=type` with a type that fits."""
        fields = {name: self._as(name, given, time, types, spec) for name, given in self._fields.items()}
        values = [f"({given.raw})::VARCHAR, {given.is_bad}" for given in fields.values()]
        values.append(f"{self._when(self._fields[time], spec)} < {FIRST}")
        where = f"WHERE {quote(LINE)} = {line}" if self._numbered else f"OFFSET {index}"
        found = self._source.row(f"SELECT {', '.join(values)} FROM ({self._select}) {where} LIMIT 1")
        kind = self._source.given.kind
        if kind in _A and not any(value is not None for value in found[:-1:2] if value != ""):
            entry = self._source.entry(line or 0)
            # only the first line is shown: lines without a time belong to the previous one
            return f"{shown(entry.partition(chr(10))[0] if kind == 'log' else entry)} is not {_A[kind]}", None
        read = found[2 * list(fields).index(time)]
        if read is None:
            if time != "eventdate" or not self.is_dated:
                return f"it has no {time}", None
            return f"the time of {shown(self._source.entry(line or 0))} cannot be read", None
        if re.fullmatch(_CLOCK, read):
            return f"{time} {shown(read)} has no day", None
        if found[-1]:
            return f"{time} {shown(read)} is before 1970, where no query begins", None
        for name, value, bad in zip(fields, found[:-1:2], found[1::2], strict=True):
            if bad and name == time:
                break
            if bad:
                own, wanted = self.columns[name], types.get(name, fields[name].type)
                return f"{name} {shown(value)} is not {wanted}", f"{name}={Type.STR if own is wanted else own}"
        return f"{time} {shown(read)} is not a time", None

    def _events(self, time: str, types: Mapping[str, Type], spec: str | None) -> str:
        fields = {name: self._as(name, given, time, types, spec) for name, given in self._fields.items()}
        when = fields.pop(time).stored
        bad = " OR ".join(given.is_bad for given in fields.values() if given.raw != given.stored)
        eventdate = f"CASE WHEN NOT ({bad or False}) THEN {when} END AS eventdate"
        stored = [f"{given.stored} AS {quote(name)}" for name, given in fields.items()]
        line = [quote(LINE)] if self._numbered else []
        columns = [eventdate, *stored, f"{self._unclear(time, spec)} AS {quote(UNCLEAR)}", *line]
        return f"SELECT {', '.join(columns)} FROM ({self._select})"

    def _unclear(self, time: str, spec: str | None) -> str:
        """SQL for the column UNCLEAR, which is null where the time of a row is clear."""
        given = self._fields[time]
        found = [quote(UNCLEAR)] if self._zoned else [] if spec is not None else [zone_read(given)]
        return f"coalesce({', '.join([*([slashed(given)] if spec is None else []), *found, 'NULL::VARCHAR'])})"

    def _as(self, name: str, given: Field, time: str, types: Mapping[str, Type], spec: str | None) -> Field:
        """A column as it is stored: the column `time` as a time, other columns converted to their types."""
        if name == time:
            when = self._when(given, spec)
            return Field(given.raw, f"CASE WHEN {when} >= {FIRST} THEN {when} END", Type.TIMESTAMP)
        return converted(given, types.get(name, given.type), self._source.zone)

    def _when(self, given: Field, spec: str | None) -> str:
        """SQL for the time of a row, which may be earlier than FIRST."""
        if self.clock is not None:
            day = given.stored if given.type is Type.STR else f"{given.raw}::VARCHAR"
            clock = f"coalesce(TRY_CAST({self._fields[self.clock].stored} AS TIME), TIME '00:00')"
            text = f"({day} || ' ' || strftime(DATE '1970-01-01' + {clock}, '%H:%M:%S.%f'))"
            return as_time(Field(text, text, Type.STR), self._source.zone, spec and f"{spec} %H:%M:%S.%f")
        return as_time(given, self._source.zone, spec)


_A = {
    "ndjson": "a JSON object",
    "json": "a JSON object",
    "access": "a line of an access log",
    "log": "a line with a time",
    "syslog": "a line of syslog",
    "logfmt": "a line of key=value",
}
"""What messages call an entry of each kind of file."""

_SEPARATORS = {"csv": None, "tsv": "\t"}


def _number(value: str, first: Odd) -> Field:
    """A column of text whose numbers have commas like those of `first`."""
    return number_with_thousands(value, whole=first.whole) if first.thousands else number_with_commas(value)


class _Source:
    """A file and the DuckDB that reads it. The SELECTs of text formats read the table `lines`: see formats.py."""

    def __init__(
        self,
        given: GivenFile,
        connection: duckdb.DuckDBPyConnection,
        contents: Path,
        zone: str,
        go_on: Callable[[], None],
    ) -> None:
        self.given = given
        self.zone = zone
        self._go_on = go_on
        self.path = given.path
        self.name = given.name
        self.has_format = given.has_format
        self._connection = connection
        self.codec = codec(given.path)
        # DuckDB takes a path for a pattern.
        self.literal = literal(glob.escape(str(contents)))
        self._heading = csv.heading(given.path, _SEPARATORS[given.kind]) if given.kind in _SEPARATORS else None
        self.left_out = LeftOut()
        """The lines that the last query left out."""
        self.odd: dict[str, Odd] = {}
        """The columns of csv and JSON that are text because of a few values."""
        self.blank: set[str] = set()
        """The columns of csv and JSON without a value."""
        self.commas: dict[str, Odd] = {}
        """The columns of csv whose numbers have decimal commas, or commas between thousands; see EventFile.commas."""
        self.objects: list[str] = []
        """The columns of JSON that have objects."""
        self.infinite: set[str] = set()
        """The columns of parquet with values that are NaN or infinite."""
        self._widest = widest_rows(contents) if given.kind == "parquet" else 1
        """The bytes of a row: the largest average of a batch that was read or, for parquet, of a row group."""
        self._most = ROWS_OF_KNOWN_WIDTH if given.kind == "parquet" else ROWS_PER_BATCH

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of csv; empty for other kinds."""
        return self._heading.names if self._heading else ()

    @property
    def separator(self) -> str:
        """The separator of csv; empty for other kinds."""
        return self._heading.shape.separator if self._heading else ""

    @property
    def unit(self) -> str:
        return "element" if self.given.kind == "json" else "line"

    def _opened(self) -> duckdb.DuckDBPyConnection:
        """A connection with the table `lines`, for one query only, because the table is a stream of the file."""
        self.left_out = LeftOut()
        if self._heading is None:
            schema, batches = lines.SCHEMA, lines.batches(self.path, self.given.continuation, self.left_out)
        else:
            schema, batches = self._heading.schema, csv.batches(self.path, self._heading, self.left_out)
        self._connection.register("lines", pa.RecordBatchReader.from_batches(schema, self._watched(batches)))
        return self._connection

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """A SELECT as a relation, which has its columns; the file is opened when the rows are read."""
        relation = self._opened().sql(sql)
        assert relation is not None
        return relation

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                self._go_on()
            except SvcctlError:
                return  # DuckDB would change the error; callers call go_on themselves and get it
            self._widest = max(self._widest, batch.nbytes // (batch.num_rows or 1))
            yield batch

    def batches(self, sql: str) -> pa.RecordBatchReader:
        """The rows of a SELECT, in batches of about BATCH_BYTES."""
        query = self.query(sql)
        return query.to_arrow_reader(max(1, min(self._most, BATCH_BYTES // self._widest)))

    def row(self, sql: str) -> tuple[Any, ...]:
        with readable(self.given):
            (row,) = self._opened().execute(sql).fetchall()
        self._go_on()
        return tuple(row)

    def entry(self, number: int) -> str:
        """The text of the entry with a number."""
        table = json_elements(self) if self.given.kind == "json" else "lines"
        return str(self.row(f"SELECT line FROM {table} WHERE number = {number}")[0])


def _whole(given: GivenFile, spill: Path) -> Path:
    """Check that a file is complete, and return the path for DuckDB: packed parquet is unpacked to `spill`."""
    path = given.path
    with named(given):
        if given.kind != "parquet":
            require_whole(path)
            return path
        contents = path
        if codec(path) is not None:
            contents = spill
            with opened(path) as packed, contents.open("wb") as file:
                shutil.copyfileobj(packed, file, lines.BLOCK)
        require_whole_pages(path, contents)
        return contents


@contextmanager
def named(given: GivenFile) -> Iterator[None]:
    """Make errors in the block name the file as the user gave it."""
    try:
        yield
    except UsageError as error:
        raise UsageError(error.message.replace(str(given.path), given.name), hint=error.hint) from None
