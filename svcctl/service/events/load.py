"""Loading files into a table: csv, tsv, ndjson, parquet, access logs, and log lines that begin with a time.

A file is read in a DuckDB of its own, since the engine's may not touch files, and its rows go to the engine as Arrow
batches, in one transaction: memory stays bounded, and a load that fails leaves nothing. A row whose time cannot be
read, or that does not fit the table, is left out and counted, and the first such place is reported.

Types are decided over the whole file, not by a sample. Of text only whole numbers, numbers and true/false become typed
columns: the order of days and months is not guessed, addresses stay text (a table that has ip4 columns takes them from
text). Nested JSON stays JSON text. A time that names no zone is UTC. Bytes that are not UTF-8 are replaced in log lines
and ndjson, and make a row of csv unreadable.
"""

from __future__ import annotations

import glob
import gzip
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from svcctl.api.dates import MAX_EPOCH_SECONDS
from svcctl.errors import UsageError
from svcctl.service.engines import Engine, check_table_name
from svcctl.service.engines.duckdb.statement import first_line
from svcctl.service.engines.duckdb.text import SQL_TYPES, literal, quote
from svcctl.service.language.types import Column, Type

TIME_NAMES = ("timestamp", "@timestamp", "time", "date", "datetime", "ts")
"""Column names that mean the event's time, the likeliest first; `eventdate` comes before all of them."""

BLOCK = 1 << 22
LINE = "(line)"
"""The column of line numbers that formats of lines carry beside their fields."""

_ACCESS = (
    r'^(\S+) \S+ (\S+) \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?'
)
_REQUEST = r"^(\S+) (.*?)(?: (HTTP/\S+))?$"
_TIMED = r"^(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z| ?[+-]\d{2}:?\d{2})?)\s+(.*)$"
_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did: the table's columns, the rows added, the rows left out and where the first of those was."""

    table: str
    columns: tuple[Column, ...]
    rows: int
    skipped: int
    first_skipped: str | None


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: its name and endings, what its first lines look like, and the SELECT that reads it."""

    name: str
    endings: tuple[str, ...]
    looks: Callable[[Sequence[str]], object]
    select: Callable[[_File], str]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the file as SQL: as it stands there, as it is to be stored, and the type of that.

    Where what stands there cannot be stored, `stored` is null though `raw` is not.
    """

    raw: str
    stored: str
    type: Type


def load(
    engine: Engine, path: Path, table: str, *, time_field: str | None = None, format: str | None = None
) -> LoadResult:
    """Add the events of a file to a table, which is made when it is not there.

    `time_field` names the column that becomes `eventdate`; `format` is a key of `FORMATS`. UsageError when the file,
    its format, its time or its columns cannot be used.
    """
    check_table_name(table)
    with tempfile.TemporaryDirectory(prefix="svcctl-load-") as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": "500MB",
            "temp_directory": spill,
            "python_enable_replacements": "false",
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone='UTC'; SET enable_progress_bar=false")
            kind = _format(path, format)
            # DuckDB reads packed text by itself, and parquet only from its end.
            unpacked = kind.name == "parquet" and _packed(path)
            file = _File(path, connection, _unpack(path, Path(spill)) if unpacked else path)
            try:
                return _load(engine, file, kind.select(file), table, time_field)
            except duckdb.Error as error:
                raise UsageError(f"cannot read {path} as {kind.name}: {first_line(error)}") from None


def _load(engine: Engine, file: _File, select: str, table: str, time_field: str | None) -> LoadResult:
    found = file.query(select)
    fields = {
        name: _field(quote(name), str(sql_type))
        for name, sql_type in zip(found.columns, found.types, strict=True)
        if name != LINE
    }
    time = time_field or _time_field(file, select, fields)
    if time not in fields:
        raise UsageError(f"{file.path} has no column '{time}'", hint=f"its columns are {', '.join(fields)}")
    if time != "eventdate" and "eventdate" in fields:
        raise UsageError(f"{file.path} has a column eventdate, so '{time}' cannot take its place")
    when = _as_time(fields.pop(time))
    new = table not in engine.tables()
    if not new:
        types = {column.name: column.type for column in engine.table(table).columns}
        fields = {name: _as(field, types.get(name, field.type)) for name, field in fields.items()}

    bad = " OR ".join(f"({f.raw} IS NOT NULL AND {f.stored} IS NULL)" for f in fields.values() if f.raw != f.stored)
    stored = [f"{f.stored} AS {quote(name)}" for name, f in fields.items()]
    line = [quote(LINE)] if LINE in found.columns else []
    events = (
        f"SELECT {', '.join([f'CASE WHEN NOT ({bad or False}) THEN {when} END AS eventdate', *stored, *line])} "
        f"FROM ({select})"
    )
    seen, usable = file.row(f"SELECT count(*), count(eventdate) FROM ({events} LIMIT 1000)")
    if seen and not usable:
        raise UsageError(
            f"no time could be read in '{time}' of {file.path}", hint="name the column that holds it with --time-field"
        )

    batches = file.query(events).to_arrow_reader(16_384)
    tally = _Tally()
    source = pa.RecordBatchReader.from_batches(
        pa.schema([field for field in batches.schema if field.name != LINE]), tally.usable(batches)
    )
    columns = (Column("eventdate", Type.TIMESTAMP), *(Column(name, f.type) for name, f in fields.items()))
    rows = engine.append(table, source, create=columns if new else None)
    unreadable, first = file.rejected()
    return LoadResult(
        table, engine.table(table).columns, rows, tally.skipped + unreadable, first if unreadable else tally.first
    )


class _File:
    """A file and the DuckDB that reads it. Formats of lines find them in the table `lines`: number, line."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection, contents: Path) -> None:
        self.path = path
        self._connection = connection
        self.packed = _packed(path)
        # A path is a pattern to DuckDB.
        self.literal = literal(glob.escape(str(contents)))

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        # Batches are read once, so each query gets its own; nothing is opened until it runs.
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


class _Tally:
    """Lets batches through without the rows that have no eventdate, and counts those."""

    def __init__(self) -> None:
        self.skipped = 0
        self.first: str | None = None

    def usable(self, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
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


def _packed(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path) if _packed(path) else path.open("rb")  # type: ignore[return-value]


def _unpack(path: Path, directory: Path) -> Path:
    contents = directory / "contents"
    with gzip.open(path) as packed, contents.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return contents


def _lines(path: Path) -> Iterator[pa.RecordBatch]:
    """The lines of a file and their numbers, in batches; empty ones are left out."""
    number, rest = 1, b""
    with _open(path) as file:
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


def _format(path: Path, name: str | None) -> Format:
    """The format that was named, or that the file's ending or else its first lines show."""
    if name is not None:
        if name not in FORMATS:
            raise UsageError(f"format '{name}' is not one", hint=f"formats are {', '.join(FORMATS)}")
        return FORMATS[name]
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    for kind in FORMATS.values():
        if suffix.lower() in kind.endings:
            return kind
    first = _first_lines(path)
    for kind in FORMATS.values():
        if first and kind.looks(first):
            return kind
    raise UsageError(f"the format of {path} is not clear", hint=f"name it with --format: {', '.join(FORMATS)}")


def _first_lines(path: Path) -> list[str]:
    with _open(path) as file:
        lines = file.read(1 << 16).decode(errors="replace").splitlines()
    return list(islice((line for line in lines if line.strip()), 5))


def _time_field(file: _File, select: str, fields: dict[str, Field]) -> str:
    """The column of the time when none was named: eventdate, the only one of times, or one with a usual name."""
    if "eventdate" in fields:
        return "eventdate"
    texts = [name for name, field in fields.items() if field.type is Type.STR]
    times = [name for name, field in fields.items() if field.type is Type.TIMESTAMP]
    if texts:
        tests = (
            f"count({quote(n)}) > 0 AND count({quote(n)}) = count(TRY_CAST({quote(n)} AS TIMESTAMPTZ))" for n in texts
        )
        are_times = file.row(f"SELECT {', '.join(tests)} FROM ({select} LIMIT 1000)")
        times += [name for name, is_time in zip(texts, are_times, strict=True) if is_time]
    if len(times) == 1:
        return times[0]
    for usual in TIME_NAMES:
        for name in fields:
            if name.casefold() == usual:
                return name
    raise UsageError(
        f"it is not clear which column of {file.path} is the time",
        hint=f"name it with --time-field: {', '.join(fields)}",
    )


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


def _field(value: str, sql_type: str) -> Field:
    """A column by its DuckDB type; what has no type of ours is text, and nested values are JSON text."""
    if sql_type == "JSON":
        return Field(value, value := f"({value} ->> '$')", Type.STR)
    if sql_type.endswith("]") or sql_type.startswith(("STRUCT", "MAP")):
        return Field(value, f"to_json({value})::VARCHAR", Type.STR)
    type_ = _STORED.get(re.split(r"[(_ ]", sql_type)[0], Type.STR)
    if sql_type == SQL_TYPES[type_]:
        return Field(value, value, type_)
    return Field(value, f"TRY_CAST({value} AS {SQL_TYPES[type_]})", type_)


def _as(field: Field, type_: Type) -> Field:
    """The same column as a table has it."""
    if type_ is field.type:
        return field
    if type_ is Type.TIMESTAMP:
        return Field(field.raw, _as_time(field), type_)
    value = field.stored
    cast = f"TRY_CAST({value} AS {SQL_TYPES[type_]})"
    if type_ is Type.IP4 and field.type is Type.STR:
        octets = " + ".join(f"split_part({value}, '.', {i + 1})::BIGINT * {256 ** (3 - i)}" for i in range(4))
        cast = rf"CASE WHEN regexp_full_match({value}, '{_OCTET}(\.{_OCTET}){{3}}') THEN ({octets})::UINTEGER END"
    elif type_ in (Type.INT4, Type.INT8):
        # A cast alone would round 1.5.
        cast = f"CASE WHEN {cast} = TRY_CAST({value} AS DOUBLE) THEN {cast} END"
    return Field(field.raw, cast, type_)


def _as_time(field: Field) -> str:
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
    # A cast that fails is slow, so what cannot begin a number is not cast.
    "BIGINT": "CASE WHEN {0} BETWEEN '+' AND '9~' THEN TRY_CAST({0} AS BIGINT)::VARCHAR = {0} END",
    "DOUBLE": r"regexp_full_match({0}, '[+-]?(0|[1-9]\d{{0,14}})(\.\d+)?([eE][+-]?\d{{1,2}})?')",
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
}
"""What every value of a text column must be for the column to have a type: 007 and 25 digits stay text."""


def _separated(separator: Callable[[str], str]) -> Callable[[_File], str]:
    """A reader of csv: the first row names the columns, and a pass over the file finds their types."""

    def select(file: _File) -> str:
        first = _first_lines(file.path)
        if not first:
            raise UsageError(f"{file.path} is empty")
        source = (
            f"read_csv({file.literal}, delim={literal(separator(first[0]))}, quote='\"', escape='\"', header=true, "
            f"skip=0, all_varchar=true, allow_quoted_nulls=false, compression='{'gzip' if file.packed else 'none'}', "
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
"""The number types that a JSON structure names, each wide enough for those before it."""


def _merged(one: object, other: object) -> object:
    """The type of a member that two objects give different types."""
    if other in (one, "NULL"):
        return one
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    return other if one == "NULL" else "JSON"


def _ndjson(file: _File) -> str:
    """A pass over the file finds the members of its objects and their types; the next takes them out."""
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


def _parquet(file: _File) -> str:
    return f"SELECT * FROM read_parquet({file.literal})"


def _access(file: _File) -> str:
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
            FROM (SELECT number, regexp_extract(line, {literal(_ACCESS)}, {names}) AS hit FROM lines)
        )
    """


def _log(file: _File) -> str:
    return f"""
        SELECT TRY_CAST(replace(entry.time, ',', '.') AS TIMESTAMPTZ)::TIMESTAMP AS eventdate, entry.message,
            number AS {quote(LINE)}
        FROM (SELECT number, regexp_extract(line, {literal(_TIMED)}, ['time', 'message']) AS entry FROM lines)
    """


FORMATS = {
    kind.name: kind
    for kind in (
        Format("parquet", (".parquet", ".pq"), lambda first: first[0].startswith("PAR1"), _parquet),
        Format("ndjson", (".ndjson", ".jsonl", ".json"), lambda first: first[0].startswith("{"), _ndjson),
        Format("access", (), lambda first: re.match(_ACCESS, first[0]), _access),
        Format("log", (), lambda first: re.match(_TIMED, first[0]), _log),
        Format("tsv", (".tsv", ".tab"), lambda first: "\t" in first[0], _separated(lambda header: "\t")),
        Format(
            "csv",
            (".csv",),
            lambda first: "," in first[0] or ";" in first[0],
            _separated(lambda header: max(",;", key=header.count)),
        ),
    )
}
"""By name. Where neither a name nor an ending says what a file is, the first that looks like it."""
