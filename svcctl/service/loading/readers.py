"""Finds the columns of a file: their names, their types, and the SQL that reads them, for each kind of file.

Text is selected from the table `lines`, which has the number and text of each line or, for csv, its cells. Types of
csv, logfmt and JSON are those of the head. A row that they do not fit is a misfit: then the whole file decides.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.text import LINE, SHORT, SQL_TYPES, distinct, literal, quote
from svcctl.service.language.types import Type
from svcctl.service.loading.files import FileReader, KnownFile
from svcctl.service.loading.outcome import Change
from svcctl.service.loading.times import UNREAD_ZONE, has_no_zone, in_utc, iso_time, named_time, zoned_time
from svcctl.service.loading.values import DECIMALS, NUMBER, nothing, ways


class NoEvents(Exception):
    """The document is complete and has no events, such as an empty array."""


class Misfit(Exception):
    """The head of a file does not show its columns and their types, so they are found in the whole file."""


MOST_FIELDS = 2000
"""The most names of members in a file of JSON; with more, the names are probably data."""
_PEER = r"^(?:\[([0-9A-Fa-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$"
"""An address with a port, in brackets, or both, as some servers write it."""
_REQUEST = r"^(\S+) (.*?)(?: (HTTP/\S+))?$"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is known of columns before a file is read: named types, texts that stand for nothing, the zone of times.

    `head` tells that `lines` is the head; otherwise `fill` makes it the whole file, for each query anew.
    """

    types: Mapping[str, Type]
    null: Sequence[str]
    zone: str
    zone_is_known: bool
    head: bool
    fill: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Example:
    """The first value that was changed in a column, its place, and what completes the sentence about it."""

    value: str | None
    place: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file as SQL over `table`, with their types in DuckDB.

    `line` is the number of a row, and `text` is the entry. `marks` are conditions for rows that were changed, each for
    a column or, under "", for the row; `examples` are the first values of some. `misfit` is not null in a row that the
    types do not fit; in JSON it is the structure of a row whose structure was not seen before, and `members` has the
    types of members. `unclear` is an abbreviation of a zone with several meanings. With `is_dated` the kind of file
    defines how times are written.
    """

    table: str
    sql: Mapping[str, str]
    types: Mapping[str, str]
    line: str = "number"
    text: str = "NULL::VARCHAR"
    marks: Mapping[Change, Mapping[str, str]] = field(default_factory=dict)
    examples: Mapping[tuple[Change, str], Example] = field(default_factory=dict)
    blank: frozenset[str] = frozenset()
    misfit: str = "NULL::VARCHAR"
    members: Mapping[str, object] = field(default_factory=dict)
    unclear: str = "NULL::VARCHAR"
    is_dated: bool = False

    def fits(self, structure: str) -> bool:
        """Whether a row of JSON with another structure has the same columns with the same types."""
        given = json.loads(structure or "null") if self.members else None
        return given is not None and all(
            name in self.members and _merged(self.members[name], type_) == self.members[name]
            for name, type_ in given.items()
        )


def _any(conditions: Sequence[str]) -> str:
    return " OR ".join(f"({one})" for one in conditions) or "false"


def _csv(reader: FileReader, file: KnownFile, wanted: Wanted) -> Columns:
    assert file.heading is not None
    names, separator = file.heading.names, file.heading.shape.separator
    return _typed(reader, file, names, "lines", wanted, separator)


def _typed(
    reader: FileReader,
    file: KnownFile,
    names: Sequence[str],
    table: str,
    wanted: Wanted,
    separator: str = "",
    misfits: Sequence[str] = (),
) -> Columns:
    """The columns of a table of text, whose types are found with one query. `misfits` are conditions of misfits."""
    known, line = ways(separator), quote(LINE)
    cells = {name: nothing(quote(name), wanted.null) for name in names}
    open_ = {name: cell for name, cell in cells.items() if name not in wanted.types}
    is_number = _any([NUMBER, known[-1].test]) if known[-1].mark else NUMBER

    def tests(cell: str) -> Iterator[str]:
        yield f"count({cell})"
        yield from (f"count(*) FILTER ({way.test.format(cell)})" for way in known)
        for condition in (known[-1].mark or "false", f"NOT ({is_number})", "contains({0}, ',')"):
            chosen = f"FILTER ({cell} IS NOT NULL AND {condition.format(cell)})"
            yield f"arg_min({cell}, {line}) {chosen}"
            yield f"min({line}) {chosen}"
        yield f"count(*) FILTER ({is_number.format(cell)})"

    if not wanted.head:
        wanted.fill()
    asked = list(chain.from_iterable(map(tests, open_.values())))
    row = iter(reader.row(file, f"SELECT {', '.join(asked)} FROM {table}") if asked else ())
    sql, types = dict(cells), dict.fromkeys(names, "VARCHAR")
    misfit, blank = list(misfits), set()
    marks: dict[Change, dict[str, str]] = {Change.SHORT: {"": quote(SHORT)}} if file.heading else {}
    examples: dict[tuple[Change, str], Example] = {}
    for name, cell in open_.items():
        values = next(row)
        counts = [next(row) for _ in known]
        marked, odd, comma = ((next(row), next(row)) for _ in range(3))
        numbers = next(row)
        fitting = [way for way, count in zip(known, counts, strict=True) if count == values > 0]
        way = next((way for way in fitting if way.mark is None or marked[0] is not None), None)
        if not values:
            blank.add(name)
            misfit.append(f"{cell} IS NOT NULL")
        elif way is not None:
            sql[name] = f"CASE WHEN {way.test.format(cell)} THEN {way.value.format(cell)} END"
            types[name] = SQL_TYPES[way.type]
            misfit.append(f"{cell} IS NOT NULL AND ({sql[name]}) IS NULL")
            if way.mark is not None:
                marks.setdefault(Change.COMMAS, {})[name] = f"contains({cell}, ',')"
                kind = "decimal commas" if way is DECIMALS else "commas between thousands"
                examples[Change.COMMAS, name] = Example(marked[0], f"{file.unit} {marked[1]}", kind)
        else:
            first = odd if odd[0] is not None else comma
            misfit.extend(known[-1].mark.format(cell) for _ in fitting if known[-1].mark)
            if 2 * numbers >= values and first[0] is not None and not first[0].isdigit():
                is_odd = "contains({0}, ',')" if odd[0] is None else f"{{0}} IS NOT NULL AND NOT ({is_number})"
                marks.setdefault(Change.TEXT, {})[name] = is_odd.format(cell)
                wish = f"{name}={_number(counts[0] == numbers)}"
                examples[Change.TEXT, name] = Example(first[0], f"{file.unit} {first[1]}", wish)
    any_misfit = f"CASE WHEN {_any(misfit)} THEN '' END"
    return Columns(
        table,
        sql,
        types,
        line,
        marks=marks,
        examples=examples,
        blank=frozenset(blank),
        misfit=any_misfit,
    )


def _number(is_whole: bool) -> Type:
    return Type.INT8 if is_whole else Type.FLOAT8


_PAIR = r'(?:^|\s)([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)'
_VALUE = (
    "CASE WHEN {0}[1] <> '\"' THEN nullif({0}, '') WHEN contains({0}, '\\') "
    "THEN coalesce(TRY({0} ->> '$'), {0}[2:-2]) ELSE {0}[2:-2] END"
)
"""A value without its quotes, with the escapes of JSON."""


def _logfmt(reader: FileReader, file: KnownFile, wanted: Wanted) -> Columns:
    """Lines of key=value, with a column for each key; a value with blanks is in quotes."""
    lists = (f"regexp_extract_all(line, {literal(_PAIR)}, {at}) AS {part}" for at, part in ((1, "keys"), (2, "texts")))
    pairs = f"(SELECT number, line, {', '.join(lists)} FROM lines)"
    if not wanted.head:
        wanted.fill()
    keys = [
        str(key)
        for (key,) in reader.rows(
            file,
            f"SELECT key FROM (SELECT number, unnest(keys) AS key, generate_subscripts(keys, 1) AS place FROM {pairs}) "
            f"GROUP BY key ORDER BY min(number), arg_min(place, number) LIMIT {MOST_FIELDS + 1}",
        )
    ]
    if len(keys) > MOST_FIELDS:
        raise UsageError(f"{file.source.name} has more than {MOST_FIELDS} fields")
    if not keys:
        raise _nothing(file, wanted, "line of key=value")
    names = distinct(keys)
    found = zip(keys, map(quote, names), strict=True)
    cells = ", ".join(f"texts[list_position(keys, {literal(key)})] AS {name}" for key, name in found)
    values = ", ".join(f"{_VALUE.format(name)} AS {name}" for name in map(quote, names))
    known = f"[{', '.join(map(literal, keys))}]"
    table = (
        f'(SELECT {values}, number AS {quote(LINE)}, line AS "(text)", "(keys)" FROM '
        f'(SELECT number, line, keys AS "(keys)", {cells} FROM {pairs}))'
    )
    columns = _typed(reader, file, names, table, wanted, misfits=[f'NOT list_has_all({known}, "(keys)")'])
    return replace(columns, text='"(text)"')


def _nothing(file: KnownFile, wanted: Wanted, what: str) -> Exception:
    """The error for a file without entries of its kind."""
    return Misfit() if wanted.head else UsageError(f"{file.source.name} has no {what}")


_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE")
"""The number types in a JSON structure; each holds the values of the types before it."""


def _merged(one: object, other: object) -> object:
    """The type of a member that has these types in two objects."""
    if other in (one, "NULL"):
        return one
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    return other if one == "NULL" else "JSON"


def _json(reader: FileReader, file: KnownFile, wanted: Wanted) -> Columns:
    """JSON objects. To DuckDB, names that differ only in case are the same, so the second one gets a number."""
    null = "|".join(map(_escaped, wanted.null))
    nothing_there = literal(f':\\s*"(?:{null})"')
    line = f"regexp_replace(line, {nothing_there}, ':null', 'g')" if null else "line"
    lines = f"(SELECT number, {line} AS line FROM lines)"
    valid = "CASE WHEN json_valid(line) THEN json_type(line) END = 'OBJECT'"
    # The structure of an object without members is "JSON", a string.
    structure = f"""CASE WHEN {valid} THEN nullif(json_structure(line)::VARCHAR, '"JSON"') END"""
    if not wanted.head:
        wanted.fill()
    shapes = reader.rows(
        file,
        f"SELECT {structure} AS shape, min(number) AS number, count(*) FROM {lines} GROUP BY shape ORDER BY number",
    )
    members, numbers, fractions, others, objects = _members(file, shapes)
    if not shapes:
        raise NoEvents
    if not members:
        raise _nothing(file, wanted, f"{file.unit} that is a JSON object")
    columns = dict(zip(members, distinct(members), strict=True))
    plain = (*_NUMBERS, "BOOLEAN", "VARCHAR")
    types = {
        name: str(type_) if type_ in plain and columns[name] not in wanted.types else "VARCHAR"
        for name, type_ in members.items()
    }
    alike = {name for name, column in columns.items() if name != column}
    sql = {
        column: f"TRY_CAST(line ->> {_pointer(name)} AS {types[name]})" if name in alike else f"event.{quote(name)}"
        for name, column in columns.items()
    }
    inside = {columns[name]: f"{sql[columns[name]]}[1] = '{{'" for name in objects if columns[name] not in wanted.types}
    marks: dict[Change, dict[str, str]] = {Change.OBJECTS: inside}
    examples: dict[tuple[Change, str], Example] = {}
    for name, (count, first) in others.items():
        if count <= numbers[name] and columns[name] not in wanted.types:
            kind = f"json_type(line, {_pointer(name)})"
            is_other = f"{kind} NOT IN ('BIGINT', 'UBIGINT', 'DOUBLE', 'NULL')"
            marks.setdefault(Change.TEXT, {})[columns[name]] = is_other
            value = f"SELECT line ->> {_pointer(name)} FROM {lines} WHERE number = {first}"
            shown = reader.row(file, value)[0] if wanted.head else None
            is_whole = not fractions[name] and "." not in (shown or "")
            wish = f"{columns[name]}={_number(is_whole)}"
            examples[Change.TEXT, columns[name]] = Example(shown, f"{file.unit} {first}", wish)
    asked = literal(json.dumps({name: types[name] for name in types if name not in alike}, ensure_ascii=False))
    seen = ", ".join(literal(shape) for shape, *_ in shapes if shape)
    return Columns(
        f"(SELECT *, json_transform(line, {asked}) AS event FROM (SELECT number, {structure} AS shape, line AS text, "
        f"CASE WHEN {valid} THEN line END AS line FROM {lines}))",
        sql,
        {columns[name]: type_ for name, type_ in types.items()},
        text="text",
        marks=marks,
        examples=examples,
        blank=frozenset(columns[name] for name, type_ in members.items() if type_ == "NULL"),
        misfit=f"CASE WHEN shape NOT IN ({seen}) THEN shape END",
        members=members | {name: "JSON" for name in members if columns[name] in wanted.types},
    )


def _members(
    file: KnownFile, shapes: Sequence[tuple[str | None, int, int]]
) -> tuple[dict[str, object], Counter[str], Counter[str], dict[str, tuple[int, int]], dict[str, None]]:
    """The members of objects with these structures, and their types; numbers, fractions and others are counted.

    Others are counted with the first line that has one; the last result has the members that are objects.
    """
    members: dict[str, object] = {}
    numbers: Counter[str] = Counter()
    fractions: Counter[str] = Counter()
    others: dict[str, tuple[int, int]] = {}
    objects: dict[str, None] = {}
    for shape, number, count in shapes:
        for name, type_ in json.loads(shape or "{}").items():
            members[name] = _merged(members.get(name, "NULL"), type_)
            if isinstance(type_, dict):
                objects[name] = None
            if type_ in _NUMBERS:
                numbers[name] += count
                fractions[name] += type_ == "DOUBLE"
            elif type_ != "NULL":
                had, first = others.get(name, (0, number))
                others[name] = had + count, first
        if len(members) > MOST_FIELDS:
            raise UsageError(f"{file.source.name} has more than {MOST_FIELDS} fields")
    return members, numbers, fractions, others, objects


def _escaped(text: str) -> str:
    """A text as it stands in a string of JSON, as a pattern."""
    return re.escape(json.dumps(text, ensure_ascii=False)[1:-1])


def _pointer(name: str) -> str:
    return literal("/" + name.replace("~", "~0").replace("/", "~1"))


_MAX_INT8 = (1 << 63) - 1


def _parquet(reader: FileReader, file: KnownFile, wanted: Wanted) -> Columns:
    """Parquet. A column with a number that int8 cannot hold becomes text, as in csv.

    NaN and infinite values become null: they would spoil every sum of the column.
    """
    read = f"read_parquet({file.literal}, hive_partitioning=false"
    found = {str(name): str(type_) for name, type_, *_ in reader.rows(file, f"DESCRIBE FROM {read})")}
    wide = [name for name, type_ in found.items() if type_ == "UBIGINT"]
    largest = (
        reader.row(file, f"SELECT {', '.join(f'max({quote(name)})' for name in wide)} FROM {read})") if wide else ()
    )
    too_large = {name for name, value in zip(wide, largest, strict=True) if (value or 0) > _MAX_INT8}
    sql, infinite = {}, {}
    for name, type_ in found.items():
        sql[name] = quote(name)
        if name in too_large:
            sql[name] = f"{quote(name)}::VARCHAR"
        elif type_ in ("FLOAT", "DOUBLE"):
            sql[name] = f"CASE WHEN isfinite({quote(name)}) THEN {quote(name)} END"
            infinite[name] = f"NOT isfinite({quote(name)})"
        elif type_ == "VARCHAR":
            sql[name] = nothing(quote(name), wanted.null)
    types = {name: "VARCHAR" if name in too_large else type_ for name, type_ in found.items()}
    table = f"{read}, file_row_number=true)"
    return Columns(table, sql, types, "file_row_number + 1", marks={Change.INFINITE: infinite})


def _access(reader: FileReader, file: KnownFile, wanted: Wanted) -> Columns:
    pattern = literal(file.kind.pattern)
    names = "['server', 'host', 'user', 'time', 'request', 'status', 'bytes', 'referrer', 'agent', 'rest']"
    hits = f"(SELECT number, line, regexp_extract(line, {pattern}, {names}) AS hit FROM lines)"
    rest = "trim(hit.rest)"
    server, *first = reader.row(
        file,
        f"SELECT max(hit.server), arg_min({rest}, number) FILTER ({rest} <> ''), min(number) FILTER ({rest} <> '') "
        f"FROM {hits}",
    )
    sql = {
        "eventdate": in_utc("try_strptime(hit.time, '%d/%b/%Y:%H:%M:%S %z')", wanted.zone),
        **({"server": "hit.server"} if server else {}),
        "clientIp": f"regexp_replace(hit.host, {literal(_PEER)}, '\\1\\2')",
        "user": "nullif(hit.user, '-')",
        "method": "nullif(request.method, '')",
        "uri": "coalesce(nullif(request.uri, ''), nullif(hit.request, '-'))",
        "protocol": "nullif(request.protocol, '')",
        "statusCode": "TRY_CAST(hit.status AS INTEGER)",
        "bytes": "TRY_CAST(hit.bytes AS BIGINT)",
        "referralUri": "nullif(nullif(hit.referrer, '-'), '')",
        "userAgent": "nullif(nullif(hit.agent, '-'), '')",
    }
    types = dict.fromkeys(sql, "VARCHAR") | {
        "eventdate": "TIMESTAMP",
        "statusCode": "INTEGER",
        "bytes": "BIGINT",
    }
    request = f"regexp_extract(hit.request, {literal(_REQUEST)}, ['method', 'uri', 'protocol']) AS request"
    return Columns(
        f"(SELECT *, {request} FROM {hits})",
        sql,
        types,
        text="line",
        marks={Change.REST: {"": f"{rest} <> ''"}},
        examples={(Change.REST, ""): Example(first[0], f"line {first[1]}")} if first[0] else {},
        is_dated=True,
    )


_FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"),
    *("ntp", "audit", "alert", "clock", *(f"local{number}" for number in range(8))),
)
_SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_DAY = 86_400


def _syslog(reader: FileReader, file: KnownFile, wanted: Wanted) -> Columns:
    """Syslog by RFC 5424 and RFC 3164.

    Times of RFC 3164 have no year: it is the last one in which the event is not later than the file, with a tolerance
    of a day for clocks that differ.
    """
    zone = wanted.zone
    newest = datetime.fromtimestamp(file.source.path.stat().st_mtime + _DAY, UTC)
    # The last 29 February may be eight years ago.
    this, *others = (f"try_strptime('{newest.year - back} ' || hit.time2, '%Y %b %d %H:%M:%S')" for back in range(9))
    limit = f"TIMESTAMP '{newest:%Y-%m-%d %H:%M:%S}'"
    yearless = f"coalesce(CASE WHEN {this} <= {limit} THEN {this} END, {', '.join(others)})"
    yearly = f"CASE WHEN length(hit.time2) > 15 THEN try_strptime(hit.time2, '%b %d %Y %H:%M:%S') ELSE {yearless} END"
    names = (
        *("pri", "time", "host", "app", "pid", "id", "data", "text"),
        *("pri2", "time2", "host2", "app2", "pid2", "text2"),
    )
    pri = "TRY_CAST(coalesce(nullif(hit.pri, ''), nullif(hit.pri2, '')) AS INTEGER)"
    text = {name: f"nullif(nullif(hit.{name}, ''), '-')" for name in names}
    precise = in_utc(f"TRY_CAST({text['time']} AS TIMESTAMPTZ)", zone)
    sql = {
        "eventdate": f"coalesce({precise}, "
        "CASE WHEN hit.time2[1] BETWEEN '0' AND '9' "
        f"THEN {in_utc('TRY_CAST(hit.time2 AS TIMESTAMPTZ)', zone)} ELSE {in_utc(yearly, zone)} END)",
        **{name: f"coalesce({text[name]}, {text[name + '2']})" for name in ("host", "app", "pid")},
        "facility": f"{list(_FACILITIES)}[{pri} // 8 + 1]",
        "severity": f"{list(_SEVERITIES)}[{pri} % 8 + 1]",
        "msgId": text["id"],
        "structuredData": text["data"],
        "message": "coalesce(nullif(hit.text, ''), nullif(hit.text2, ''))",
    }
    return Columns(
        f"(SELECT number, line, regexp_extract(line, {literal(file.kind.pattern)}, {list(names)}) AS hit FROM lines)",
        sql,
        dict.fromkeys(sql, "VARCHAR") | {"eventdate": "TIMESTAMP"},
        text="line",
        marks={} if wanted.zone_is_known else {Change.ZONE: {"": "hit.time2[1] > '9'"}},
        is_dated=True,
    )


_C_TIMES = "['%a %b %d %H:%M:%S %Y', '%a %b %d %H:%M:%S.%f %Y']"


def _log(reader: FileReader, file: KnownFile, wanted: Wanted) -> Columns:
    """A log: the time, and a message of the text before and after the time.

    A bracket around the time is left out; a bracket around the time and more text belongs to the message.
    """
    times = (iso_time("entry.time"), f"try_strptime(entry.time, {_C_TIMES})", named_time("entry.time"))
    read = [*(in_utc(one, wanted.zone) for one in times), zoned_time("entry.time", wanted.zone)]
    is_dated = file.kind.time_is_usual
    names = "['before', 'opened', 'time', 'closed', 'message']"
    sql = {
        "eventdate": f"coalesce({', '.join(read)})" if is_dated else "nullif(entry.time, '')",
        "message": "CASE WHEN entry.opened = '' AND entry.closed <> '' "
        "THEN rtrim(entry.before) || entry.closed || ' ' "
        "WHEN entry.closed = '' THEN entry.before || regexp_extract(entry.opened, '[\\[(]$') "
        "ELSE entry.before END || entry.message",
    }
    zone = (
        "CASE WHEN entry.message[1] BETWEEN 'A' AND 'Z' "
        f"THEN nullif(regexp_extract(entry.message, '^{UNREAD_ZONE}'), '') END"
    )
    no_zone = {Change.ZONE: {"": f"{has_no_zone('entry.time')} AND {zone} IS NULL"}}
    return Columns(
        f"(SELECT number, line, regexp_extract(line, {literal(file.kind.pattern)}, {names}) AS entry FROM lines)",
        sql,
        {"eventdate": "TIMESTAMP" if is_dated else "VARCHAR", "message": "VARCHAR"},
        text="line",
        marks={} if wanted.zone_is_known or not is_dated else no_zone,
        unclear="NULL::VARCHAR" if wanted.zone_is_known else zone,
        is_dated=is_dated,
    )


READERS: Mapping[str, Callable[[FileReader, KnownFile, Wanted], Columns]] = {
    "csv": _csv,
    "tsv": _csv,
    "ndjson": _json,
    "json": _json,
    "parquet": _parquet,
    "access": _access,
    "log": _log,
    "syslog": _syslog,
    "logfmt": _logfmt,
}
"""For each name of a FileKind, the function that finds the columns of a file."""
