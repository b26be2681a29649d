"""Files of events, read by a separate DuckDB, because the engine's cannot reach files.

Rows are returned as Arrow batches, so memory is bounded. Types are determined from the whole file, not from a sample.
Of text, only whole numbers, numbers and true/false become typed columns: the order of days and months is not guessed,
and addresses stay text until a table asks for ip4. Nested JSON stays JSON text. A time that names no zone is UTC.
Bytes that are not UTF-8 are replaced in log lines and ndjson, and make a row of csv unreadable.
"""

from __future__ import annotations

import glob
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from svcctl.api.dates import MAX_EPOCH_SECONDS
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.packed import codec, opened, require_whole, require_whole_pages
from svcctl.service.engines.duckdb.statement import first_line
from svcctl.service.engines.duckdb.text import SQL_TYPES, literal, quote
from svcctl.service.language.types import Type

LINE = "(line)"
"""The column of line numbers, beside the fields of formats that are read line by line."""

BLOCK = 1 << 22
LOOKED_AT = 1000
"""The number of rows that decide whether a column holds times."""
ROWS_PER_BATCH = 16_384

_REQUEST = r"^(\S+) (.*?)(?: (HTTP/\S+))?$"
_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of the file as SQL: its value in the file, its value as stored, and the type of that.

    Where the file's value cannot be stored, `stored` is null though `raw` is not.
    """

    raw: str
    stored: str
    type: Type


@contextmanager
def reading(path: Path, kind: str, pattern: str) -> Iterator[EventFile]:
    """A file of a kind of FILE_KINDS, with its pattern. UsageError when it cannot be read as one."""
    with tempfile.TemporaryDirectory(prefix="svcctl-load-") as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": "500MB",
            "temp_directory": spill,
            "python_enable_replacements": "false",
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone='UTC'; SET enable_progress_bar=false")
            contents = _whole(path, kind, Path(spill))
            try:
                source = _Source(path, connection, contents)
                yield EventFile(source, READERS[kind](source, pattern))
            except duckdb.Error as error:
                raise UsageError(f"cannot read {path} as {kind}: {first_line(error)}") from None


def first_lines(path: Path) -> list[str]:
    """Up to five lines from the beginning of a file, packed or not, without blank ones."""
    with opened(path) as file:
        lines = file.read(1 << 16).decode(errors="replace").splitlines()
    return list(islice((line for line in lines if line.strip()), 5))


class EventFile:
    """The rows of a file as events: `columns` are those of the file, with the types they are stored as."""

    def __init__(self, source: _Source, select: str) -> None:
        self._source = source
        self._select = select
        found = source.query(select)
        self._numbered = LINE in found.columns
        self._fields = {
            name: _field(quote(name), str(sql_type))
            for name, sql_type in zip(found.columns, found.types, strict=True)
            if name != LINE
        }
        self.columns: Mapping[str, Type] = {name: field.type for name, field in self._fields.items()}

    def texts_of_times(self) -> list[str]:
        """The columns of text in which every value is a time, by their first rows."""
        texts = [quote(name) for name, type_ in self.columns.items() if type_ is Type.STR]
        if not texts:
            return []
        tests = (f"count({text}) > 0 AND count({text}) = count(TRY_CAST({text} AS TIMESTAMPTZ))" for text in texts)
        are_times = self._source.row(f"SELECT {', '.join(tests)} FROM ({self._select} LIMIT {LOOKED_AT})")
        names = (name for name, type_ in self.columns.items() if type_ is Type.STR)
        return [name for name, is_time in zip(names, are_times, strict=True) if is_time]

    def usable(self, time: str, types: Mapping[str, Type]) -> tuple[int, int]:
        """How many rows `events` gives and how many of them have an eventdate, among the first rows."""
        events = self._events(time, types)
        rows, dated = self._source.row(f"SELECT count(*), count(eventdate) FROM ({events} LIMIT {LOOKED_AT})")
        return rows, dated

    def events(self, time: str, types: Mapping[str, Type]) -> pa.RecordBatchReader:
        """The rows as events: `eventdate` is the column `time`, and columns named in `types` are cast to their type.

        In a row whose time cannot be read, or that has a value that is not of its column's type, eventdate is null.
        A column LINE with the number of the row's line comes last, if the file is read line by line.
        """
        return self._source.query(self._events(time, types)).to_arrow_reader(ROWS_PER_BATCH)

    def rejected(self) -> tuple[int, str | None]:
        """How many rows the reader of csv refused so far in the last `events`, and the first of them."""
        return self._source.rejected()

    def _events(self, time: str, types: Mapping[str, Type]) -> str:
        fields = dict(self._fields)
        when = _as_time(fields.pop(time))
        fields = {name: _as(field, types.get(name, field.type)) for name, field in fields.items()}
        bad = " OR ".join(f"({f.raw} IS NOT NULL AND {f.stored} IS NULL)" for f in fields.values() if f.raw != f.stored)
        eventdate = f"CASE WHEN NOT ({bad or False}) THEN {when} END AS eventdate"
        stored = [f"{field.stored} AS {quote(name)}" for name, field in fields.items()]
        line = [quote(LINE)] if self._numbered else []
        return f"SELECT {', '.join([eventdate, *stored, *line])} FROM ({self._select})"


class _Source:
    """A file and the DuckDB that reads it. Line formats select from the table `lines` (number, line)."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection, contents: Path) -> None:
        self.path = path
        self._connection = connection
        self.codec = codec(path)
        # DuckDB would take the path for a pattern.
        self.literal = literal(glob.escape(str(contents)))

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        # A reader can be read once, so each query gets its own; the file is opened when the query runs.
        schema = pa.schema([("number", pa.int64()), ("line", pa.string())])
        self._connection.register("lines", pa.RecordBatchReader.from_batches(schema, _lines(self.path)))
        relation = self._connection.sql(sql)
        assert relation is not None
        return relation

    def row(self, sql: str) -> tuple[Any, ...]:
        (row,) = self.query(sql).fetchall()
        return tuple(row)

    def rejected(self) -> tuple[int, str | None]:
        """How many rows the csv reader refused in the last query, and the first of them."""
        (kept,) = self.row("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reject_errors'")
        if not kept:
            return 0, None
        last = "scan_id = (SELECT max(scan_id) FROM reject_errors)"
        count, line, why = self.row(
            f"SELECT count(DISTINCT line), min(line), min_by(error_message, line) FROM reject_errors WHERE {last}"
        )
        return count, f"line {line}: {why}"


def _whole(path: Path, kind: str, spill: Path) -> Path:
    """Check that all of a file can be read, and return where DuckDB can read it: it unpacks text, but not parquet."""
    if kind != "parquet":
        require_whole(path)
        return path
    contents = path
    if codec(path) is not None:
        contents = spill / "contents"
        with opened(path) as packed, contents.open("wb") as file:
            shutil.copyfileobj(packed, file, BLOCK)
    require_whole_pages(path, contents)
    return contents


def _lines(path: Path) -> Iterator[pa.RecordBatch]:
    """The lines of a file and their numbers, in batches, without empty lines."""
    number, rest = 1, b""
    with opened(path) as file:
        while True:
            block = file.read(BLOCK)
            whole, newline, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
            if newline or not block:
                lines = [line.removesuffix("\r") for line in whole.decode(errors="replace").split("\n")]
                numbers = pa.array(range(number, number + len(lines)), pa.int64())
                texts = pa.array(lines, pa.string())
                batch = pa.RecordBatch.from_arrays([numbers, texts], ["number", "line"])
                yield batch.filter(pc.not_equal(texts, ""))
                number += len(lines)
            if not block:
                return


_STORED = {
    "BOOLEAN": Type.BOOL,
    "TINYINT": Type.INT4,
    "SMALLINT": Type.INT4,
    "INTEGER": Type.INT4,
    "UTINYINT": Type.INT4,
    "USMALLINT": Type.INT4,
    "UINTEGER": Type.INT8,
    "BIGINT": Type.INT8,
    "UBIGINT": Type.INT8,
    "HUGEINT": Type.INT8,
    "UHUGEINT": Type.INT8,
    "FLOAT": Type.FLOAT8,
    "DOUBLE": Type.FLOAT8,
    "DECIMAL": Type.FLOAT8,
    "DATE": Type.TIMESTAMP,
    "TIMESTAMP": Type.TIMESTAMP,
}


def _field(value: str, sql_type: str) -> _Field:
    """A column by its DuckDB type. Types that events do not have become text, nested values JSON text."""
    if sql_type == "JSON":
        return _Field(value, value := f"({value} ->> '$')", Type.STR)
    if sql_type.endswith("]") or sql_type.startswith(("STRUCT", "MAP")):
        return _Field(value, f"to_json({value})::VARCHAR", Type.STR)
    type_ = _STORED.get(re.split(r"[(_ ]", sql_type)[0], Type.STR)
    if sql_type == SQL_TYPES[type_]:
        return _Field(value, value, type_)
    return _Field(value, f"TRY_CAST({value} AS {SQL_TYPES[type_]})", type_)


def _as(field: _Field, type_: Type) -> _Field:
    """The column converted to the type that a table has for it."""
    if type_ is field.type:
        return field
    if type_ is Type.TIMESTAMP:
        return _Field(field.raw, _as_time(field), type_)
    value = field.stored
    cast = f"TRY_CAST({value} AS {SQL_TYPES[type_]})"
    if type_ is Type.IP4 and field.type is Type.STR:
        octets = " + ".join(f"split_part({value}, '.', {i + 1})::BIGINT * {256 ** (3 - i)}" for i in range(4))
        cast = rf"CASE WHEN regexp_full_match({value}, '{_OCTET}(\.{_OCTET}){{3}}') THEN ({octets})::UINTEGER END"
    elif type_ in (Type.INT4, Type.INT8):
        # A cast alone would round 1.5.
        cast = f"CASE WHEN {cast} = TRY_CAST({value} AS DOUBLE) THEN {cast} END"
    return _Field(field.raw, cast, type_)


def _as_time(field: _Field) -> str:
    """A column as a time: times as they are, numbers as epoch seconds or ms, text as ISO 8601 or such a number."""
    value, number = field.stored, f"TRY_CAST({field.stored} AS DOUBLE)"
    ms = f"CASE WHEN abs({number}) <= {MAX_EPOCH_SECONDS} THEN {number} * 1000 ELSE {number} END"
    epoch = f"epoch_ms(TRY_CAST(round({ms}) AS BIGINT))"
    match field.type:
        case Type.TIMESTAMP:
            time = value
        case Type.STR:
            time = f"coalesce(TRY_CAST(replace({value}, ',', '.') AS TIMESTAMPTZ)::TIMESTAMP, {epoch})"
        case _:
            time = epoch
    return f"TRY(CASE WHEN isfinite({time}) THEN {time} END)"


_TEXT_TYPES = {
    # A failing cast is slow, so text that cannot begin a number is not cast.
    "BIGINT": "CASE WHEN {0} BETWEEN '+' AND '9~' THEN TRY_CAST({0} AS BIGINT)::VARCHAR = {0} END",
    "DOUBLE": r"regexp_full_match({0}, '[+-]?(0|[1-9]\d{{0,14}})(\.\d+)?([eE][+-]?\d{{1,2}})?')",
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
}
"""By type, the test that every value of a text column must pass: 007 and 25 digits stay text."""


def _separated(separator: Callable[[str], str]) -> Callable[[_Source, str], str]:
    """A reader of csv: the first row names the columns, and a pass over the file finds their types."""

    def select(file: _Source, pattern: str) -> str:
        first = first_lines(file.path)
        if not first:
            raise UsageError(f"{file.path} is empty")
        source = (
            f"read_csv({file.literal}, delim={literal(separator(first[0]))}, quote='\"', escape='\"', header=true, "
            f"skip=0, all_varchar=true, allow_quoted_nulls=false, compression='{file.codec or 'none'}', "
        )
        names = file.query(f"SELECT * FROM {source} ignore_errors=true)").columns
        tests = [
            f"count({quote(name)}) > 0 AND count({quote(name)}) = count_if({test.format(quote(name))})"
            for name in names
            for test in _TEXT_TYPES.values()
        ]
        fits = iter(file.row(f"SELECT {', '.join(tests)} FROM {source} ignore_errors=true)"))
        columns = []
        for name in names:
            types = [type_ for type_, fit in zip(_TEXT_TYPES, islice(fits, len(_TEXT_TYPES)), strict=True) if fit]
            columns.append(f"{quote(name)}::{types[0] if types else 'VARCHAR'} AS {quote(name)}")
        return f"SELECT {', '.join(columns)} FROM {source} store_rejects=true)"

    return select


_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE")
"""The number types in a JSON structure; each holds the values of those before it."""


def _merged(one: object, other: object) -> object:
    """The type of a member that has these types in two objects."""
    if other in (one, "NULL"):
        return one
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    return other if one == "NULL" else "JSON"


def _ndjson(file: _Source, pattern: str) -> str:
    """The first pass over the file finds the members of its objects and their types; the second reads them."""
    valid = "CASE WHEN json_valid(line) THEN json_type(line) END = 'OBJECT'"
    shapes = file.query(
        f"SELECT json_structure(line)::VARCHAR AS shape FROM lines WHERE {valid} GROUP BY shape ORDER BY min(number)"
    ).fetchall()
    found: dict[str, object] = {}
    for (shape,) in shapes:
        for name, type_ in json.loads(shape).items():
            found[name] = _merged(found.get(name, "NULL"), type_)
    if not found:
        raise UsageError(f"{file.path} has no line that is a JSON object")
    plain = (*_NUMBERS, "BOOLEAN", "VARCHAR")
    types = {
        name: type_ if type_ in plain else "VARCHAR" if type_ == "NULL" else "JSON" for name, type_ in found.items()
    }
    members = ", ".join(f"event.{quote(name)} AS {quote(name)}" for name in types)
    wanted = literal(json.dumps(types, ensure_ascii=False))
    return (
        f"SELECT {members}, number AS {quote(LINE)} "
        f"FROM (SELECT number, json_transform(CASE WHEN {valid} THEN line END, {wanted}) AS event FROM lines)"
    )


def _parquet(file: _Source, pattern: str) -> str:
    return f"SELECT * FROM read_parquet({file.literal})"


def _access(file: _Source, pattern: str) -> str:
    names = "['host', 'user', 'time', 'request', 'status', 'bytes', 'referrer', 'agent']"
    return f"""
        SELECT try_strptime(hit.time, '%d/%b/%Y:%H:%M:%S %z')::TIMESTAMP AS eventdate, hit.host AS "clientIp",
            nullif(hit.user, '-') AS "user", nullif(request.method, '') AS method,
            coalesce(nullif(request.uri, ''), nullif(hit.request, '-')) AS uri,
            nullif(request.protocol, '') AS protocol, TRY_CAST(hit.status AS INTEGER) AS "statusCode",
            TRY_CAST(hit.bytes AS BIGINT) AS bytes, nullif(nullif(hit.referrer, '-'), '') AS "referralUri",
            nullif(nullif(hit.agent, '-'), '') AS "userAgent", number AS {quote(LINE)}
        FROM (
            SELECT number, hit,
                regexp_extract(hit.request, {literal(_REQUEST)}, ['method', 'uri', 'protocol']) AS request
            FROM (SELECT number, regexp_extract(line, {literal(pattern)}, {names}) AS hit FROM lines)
        )
    """


def _log(file: _Source, pattern: str) -> str:
    return f"""
        SELECT TRY_CAST(replace(entry.time, ',', '.') AS TIMESTAMPTZ)::TIMESTAMP AS eventdate, entry.message,
            number AS {quote(LINE)}
        FROM (SELECT number, regexp_extract(line, {literal(pattern)}, ['time', 'message']) AS entry FROM lines)
    """


READERS: Mapping[str, Callable[[_Source, str], str]] = {
    "csv": _separated(lambda header: max(",;", key=header.count)),
    "tsv": _separated(lambda header: "\t"),
    "ndjson": _ndjson,
    "parquet": _parquet,
    "access": _access,
    "log": _log,
}
"""By name of a FileKind, the SELECT that reads such a file."""
