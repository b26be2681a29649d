"""Makes the SELECT that reads a file, for each kind of file.

Formats of text select from the table `lines`, which has the number and text of each line or, for csv, its cells. Types
of csv and JSON are determined from the whole file, not from a sample.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import duckdb

from svcctl.dates.lengths import UNITS
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.text import LINE, UNCLEAR, distinct, literal, quote
from svcctl.service.loading.decompression import opened
from svcctl.service.loading.fields import UNREAD_ZONE, in_utc, iso_time, named_time, zoned_time


class NoEvents(UsageError):
    """The document is complete and has no events, such as an empty array."""


HEAD = 1 << 16
FIRST_LINES = 1000
"""How many lines decide whether an access log has a column for the server."""

MOST_FIELDS = 2000
"""The most names of members in a file of JSON; with more, the names are probably data."""

_PEER = r"^(?:\[([0-9A-Fa-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$"
"""An address with a port, in brackets, or both, as some servers write it."""
_REQUEST = r"^(\S+) (.*?)(?: (HTTP/\S+))?$"


class Source(Protocol):
    """A file and the DuckDB that reads it, with the findings about the file's columns."""

    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str: ...
    @property
    def codec(self) -> str | None: ...
    @property
    def literal(self) -> str: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def separator(self) -> str: ...
    @property
    def zone(self) -> str: ...
    @property
    def has_format(self) -> bool: ...
    @property
    def odd(self) -> dict[str, Odd]: ...
    @property
    def blank(self) -> set[str]: ...
    @property
    def commas(self) -> dict[str, Odd]: ...
    @property
    def objects(self) -> list[str]: ...
    @property
    def infinite(self) -> set[str]: ...
    def query(self, sql: str) -> duckdb.DuckDBPyRelation: ...
    def row(self, sql: str) -> tuple[Any, ...]: ...


_TEXT_TYPES = {
    # A cast that fails is slow, so text that cannot begin a number is not cast.
    "BIGINT": "CASE WHEN {0} BETWEEN '-' AND '9~' AND strlen({0}) < 30 THEN TRY_CAST({0} AS BIGINT)::VARCHAR = {0} END",
    "DOUBLE": r"regexp_full_match({0}, '-?(0|[1-9]\d{{0,14}})(\.\d+)?([eE][+-]?\d{{1,2}})?')",
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
}
"""For each type, the test that all values of the column must pass: 007, +49170123456 and 25 digits stay text."""
_HAS_COMMA = "{0} BETWEEN '-' AND '9~' AND contains({0}, ',')"
"""A text that begins like a number and has a comma."""
_DECIMAL_COMMA = (
    rf"CASE WHEN {_HAS_COMMA} THEN regexp_full_match({{0}}, "
    r"'-?(\d{{1,15}}|[1-9]\d{{0,2}}(\.\d{{3}}){{1,4}}),\d+') END"
)
_WITH_COMMAS = (
    r"strlen({0}) < 40 AND regexp_full_match({0}, '-?(0|[1-9]\d{{0,14}}|[1-9]\d{{0,2}}(\.\d{{3}}){{1,4}})(,\d+)?')"
)
"""A number that may have a decimal comma; dots separate thousands."""
_SPELLED = r"-?(0|[1-9]\d{0,14})(\.\d+)?"
"""A string of JSON with a number in it."""
_MAY_BE_WHOLE = r"regexp_full_match({0}, '-?(0|[1-9]\d{{0,2}}(\.\d{{3}})*)')"
"""A number that is whole if dots separate thousands."""
_NO_THOUSANDS = r"NOT regexp_full_match({0}, '-?[1-9]\d{{0,2}},\d{{3}}')"
"""A number with one comma, which cannot separate thousands."""
_WITH_THOUSANDS = (
    r"strlen({0}) < 40 AND regexp_full_match({0}, '-?(\d{{1,15}}|[1-9]\d{{0,2}}(,\d{{3}}){{1,4}})(\.\d+)?')"
)
"""A number whose commas may separate thousands."""
_IS_CLEAR = "regexp_matches({0}, ',.*[,.]')"
"""A number whose commas may separate thousands, and cannot be decimal commas."""
_TESTS = ("{0} IS NOT NULL", *_TEXT_TYPES.values(), _HAS_COMMA)


@dataclass(frozen=True, slots=True)
class Odd:
    """An odd value in a column of numbers: the first such value, its place, and how many there are.

    Without a flag, it is one of the few values by which the column is text. With `decimal_comma` it is the first number
    with a decimal comma or, with `whole` too, with a dot that may separate thousands. With `thousands` it is the first
    number with commas that may separate thousands, and with `strings` the first number in a JSON string, in a column
    that also has plain numbers. `whole` tells that all other numbers are whole.
    """

    value: str
    place: str
    count: int
    whole: bool
    decimal_comma: bool = False
    thousands: bool = False
    strings: bool = False


def _separated(file: Source, pattern: str) -> str:
    """A SELECT for csv, whose heading names the columns."""
    return _typed(file, file.names, "lines")


def _typed(file: Source, names: Sequence[str], table: str) -> str:
    """A SELECT for a table of text; a pass over the file finds the types of the columns."""
    tests = [f"count(*) FILTER ({test.format(quote(name))})" for name in names for test in _TESTS]
    fractions = {}
    found = iter(file.row(f"SELECT {', '.join(tests)} FROM {table}"))
    typed, texts, with_commas = [], {}, {}
    for name in names:
        values = next(found)
        fitting = dict(zip(_TEXT_TYPES, islice(found, len(_TEXT_TYPES)), strict=True))
        commas = next(found)
        if not values:
            file.blank.add(name)
        type_ = next((type_ for type_, count in fitting.items() if count == values > 0), "VARCHAR")
        if type_ == "VARCHAR":
            texts[name] = values, fitting
            if commas:
                with_commas[name] = values
        elif type_ == "DOUBLE":
            fractions[name] = values
        typed.append(f"{quote(name)}::{type_} AS {quote(name)}")
    if file.separator != ",":
        file.commas.update(_with_commas(file, table, with_commas))
        file.odd.update(_with_dots(file, table, fractions if file.commas else {}))
    else:
        file.commas.update(_with_thousands(file, table, with_commas))
        rest = {name: values for name, values in with_commas.items() if name not in file.commas}
        file.odd.update(_with_unclear_thousands(file, table, rest))
    known = {*file.commas, *file.odd}
    commas = _decimal_commas(file, table, [name for name in with_commas if name not in known])
    odd = {name: (*found, commas.get(name, 0)) for name, found in texts.items() if name not in known}
    file.odd.update(_odd(file, table, odd))
    return f"SELECT {', '.join(typed)}, {quote(LINE)} FROM {table}"


def _is_few(odd: int, values: int) -> bool:
    """Whether `odd` of `values` are few enough to be mistakes in a column of numbers: one of three, or a tenth."""
    return values > 2 and odd <= max(1, values // 10)


def _are_mistakes(first: str, odd: int, values: int) -> bool:
    """Whether `odd` of `values` look like mistakes: a few or, unless the first has digits like an ID (12ab), half."""
    return _is_few(odd, values) or (2 * odd <= values and not any(character.isdigit() for character in first))


def _with_commas(file: Source, table: str, texts: Mapping[str, int]) -> dict[str, Odd]:
    """The columns in which all values are numbers, with or without a decimal comma.

    `texts` has the number of values in each column. Each column is returned with the first value whose comma cannot
    separate thousands; columns without one are left out.
    """
    found = _all_are(file, table, texts, _WITH_COMMAS, f"{_DECIMAL_COMMA} AND {_NO_THOUSANDS}")
    return {name: Odd(value, place, texts[name], False, True) for name, (value, place) in found.items()}


def _with_dots(file: Source, table: str, fractions: Mapping[str, int]) -> dict[str, Odd]:
    """The columns of numbers whose dots may all separate thousands, each with the first value that has a dot."""
    found = _all_are(file, table, fractions, _MAY_BE_WHOLE, "contains({0}, '.')")
    return {name: Odd(value, place, fractions[name], True, True) for name, (value, place) in found.items()}


def _with_thousands(file: Source, table: str, texts: Mapping[str, int]) -> dict[str, Odd]:
    """The columns in which all values are numbers, with or without commas between thousands.

    Each column is returned with the first value whose comma cannot be decimal; columns without one are left out.
    """
    found = _all_are(file, table, texts, _WITH_THOUSANDS, _IS_CLEAR)
    whole = _all_are(file, table, {name: texts[name] for name in found}, "NOT contains({0}, '.')", _IS_CLEAR)
    return {
        name: Odd(value, place, texts[name], name in whole, thousands=True) for name, (value, place) in found.items()
    }


def _with_unclear_thousands(file: Source, table: str, texts: Mapping[str, int]) -> dict[str, Odd]:
    """The columns whose commas may all separate thousands, each with the first value that has a comma."""
    found = _all_are(file, table, texts, _WITH_THOUSANDS, "contains({0}, ',')")
    return {name: Odd(value, place, texts[name], False, thousands=True) for name, (value, place) in found.items()}


def _decimal_commas(file: Source, table: str, names: Sequence[str]) -> Mapping[str, int]:
    """For each column, how many of its values are numbers with a decimal comma."""
    if not names:
        return {}
    counts = (f"count(*) FILTER ({_DECIMAL_COMMA.format(quote(name))})" for name in names)
    return dict(zip(names, file.row(f"SELECT {', '.join(counts)} FROM {table}"), strict=True))


def _all_are(file: Source, table: str, values: Mapping[str, int], every: str, mark: str) -> dict[str, tuple[str, str]]:
    """The columns whose values all pass the test `every`, each with the first value that passes `mark`, and its place.

    `values` has the number of values in each column. Columns without a value that passes `mark` are left out.
    """
    if not values:
        return {}
    line = quote(LINE)
    test = f"count(*) FILTER ({every}), arg_min({{0}}, {line}) FILTER ({mark}), min({line}) FILTER ({mark})"
    row = iter(file.row(f"SELECT {', '.join(test.format(quote(name)) for name in values)} FROM {table}"))
    return {
        name: (first, f"line {number}")
        for name, (count, first, number) in zip(values, zip(row, row, row, strict=True), strict=True)
        if count == values[name] and first is not None
    }


def _odd(file: Source, table: str, texts: Mapping[str, tuple[int, Mapping[str, int], int]]) -> dict[str, Odd]:
    """The odd values by which columns of csv are text, found in one pass over the file.

    `texts` has for each column how many values it has, how many fit each type, and how many have a decimal comma.
    """
    found: dict[str, Odd] = {}
    tests: list[tuple[str, str, int, bool, bool]] = []
    for name, (values, fitting, commas) in texts.items():
        others = values - fitting["DOUBLE"]
        if 2 * others <= values:
            tests.append((name, f"NOT {_TEXT_TYPES['DOUBLE']}", others, fitting["BIGINT"] == fitting["DOUBLE"], False))
        if commas and _is_few(others - commas, values):
            tests.append((name, f"{_DECIMAL_COMMA} AND {_NO_THOUSANDS}", commas, False, True))
    if not tests:
        return found
    line = quote(LINE)
    firsts = (
        f"{function} FILTER ({test.format(quote(name))})"
        for name, test, *_ in tests
        for function in (f"arg_min({quote(name)}, {line})", f"min({line})")
    )
    row = iter(file.row(f"SELECT {', '.join(firsts)} FROM {table}"))
    for (name, _, count, whole, decimal_comma), (value, number) in zip(tests, zip(row, row, strict=True), strict=True):
        if value is not None and (decimal_comma or _are_mistakes(value, count, texts[name][0])):
            found[name] = Odd(value, f"line {number}", count, whole, decimal_comma)
    return found


_PAIR = r'(?:^|\s)([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)'
_VALUE = (
    "CASE WHEN {0}[1] <> '\"' THEN nullif({0}, '') WHEN contains({0}, '\\') "
    "THEN coalesce(TRY({0} ->> '$'), {0}[2:-2]) ELSE {0}[2:-2] END"
)
"""A value without its quotes, with the escapes of JSON."""


def _logfmt(file: Source, pattern: str) -> str:
    """A SELECT for lines of key=value, with a column for each key; a value with blanks is in quotes."""
    lists = (f"regexp_extract_all(line, {literal(_PAIR)}, {at}) AS {part}" for at, part in ((1, "keys"), (2, "texts")))
    pairs = f"(SELECT number, {', '.join(lists)} FROM lines)"
    keys = [
        str(key)
        for (key,) in file.query(
            f"SELECT key FROM (SELECT number, unnest(keys) AS key, generate_subscripts(keys, 1) AS place FROM {pairs}) "
            f"GROUP BY key ORDER BY min(number), arg_min(place, number) LIMIT {MOST_FIELDS + 1}"
        ).fetchall()
    ]
    if len(keys) > MOST_FIELDS:
        raise UsageError(f"{file.name} has more than {MOST_FIELDS} fields")
    if not keys:
        raise UsageError(f"{file.name} has no line of key=value")
    names = distinct(keys)
    found = zip(keys, map(quote, names), strict=True)
    cells = ", ".join(f"texts[list_position(keys, {literal(key)})] AS {name}" for key, name in found)
    values = ", ".join(f"{_VALUE.format(name)} AS {name}" for name in map(quote, names))
    return _typed(file, names, f"(SELECT {values}, number AS {quote(LINE)} FROM (SELECT number, {cells} FROM {pairs}))")


_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE")
"""The number types in a JSON structure; each holds the values of the types before it."""


def _merged(one: object, other: object) -> object:
    """The type of a member that has these types in two objects."""
    if other in (one, "NULL"):
        return one
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    return other if one == "NULL" else "JSON"


def _objects(file: Source, lines: str, what: str) -> str:
    """A SELECT for JSON objects from a table of (number, line); `what` is the word for a line of this table.

    The first pass over the file finds the members of the objects and their types, the second reads them. To DuckDB,
    names that differ only in case are the same, so the second one gets a number.
    """
    valid = "CASE WHEN json_valid(line) THEN json_type(line) END = 'OBJECT'"
    # The structure of an object without members is "JSON", a string.
    structure = """nullif(json_structure(line)::VARCHAR, '"JSON"')"""
    # CASE and not WHERE: after a WHERE, DuckDB would collect the lines, however long they are.
    shapes = file.query(
        f"SELECT CASE WHEN {valid} THEN {structure} END AS shape, min(number) AS number, count(*) AS count "
        f"FROM {lines} GROUP BY shape"
    ).fetchall()
    found: dict[str, object] = {}
    numbers: Counter[str] = Counter()
    fractions: Counter[str] = Counter()
    others: Counter[str] = Counter()
    first: dict[str, int] = {}
    objects: dict[str, None] = {}
    for shape, number, count in sorted(shapes, key=lambda each: each[1]):
        for name, type_ in json.loads(shape or "{}").items():
            found[name] = _merged(found.get(name, "NULL"), type_)
            if isinstance(type_, dict):
                objects[name] = None
            if type_ in _NUMBERS:
                numbers[name] += count
                fractions[name] += type_ == "DOUBLE"
            elif type_ != "NULL":
                others[name] += count
                first.setdefault(name, number)
        if len(found) > MOST_FIELDS:
            raise UsageError(f"{file.name} has more than {MOST_FIELDS} fields")
    if not found:
        if not file.row(f"SELECT count(*) FROM {lines}")[0]:
            raise NoEvents(f"no events in {file.name}", hint="nothing was changed")
        raise UsageError(f"{file.name} has no {what} that is a JSON object")
    plain = (*_NUMBERS, "BOOLEAN", "VARCHAR")
    types = {
        name: type_ if type_ in plain else "VARCHAR" if type_ == "NULL" else "JSON" for name, type_ in found.items()
    }
    columns = dict(zip(types, distinct(types), strict=True))
    file.objects.extend(columns[name] for name in objects)
    file.blank.update(columns[name] for name, type_ in found.items() if type_ == "NULL")
    odd = {name: at for name, at in first.items() if others[name] <= numbers[name]}
    if odd:
        values = (f"any_value(CASE WHEN number = {at} THEN line ->> {_pointer(name)} END)" for name, at in odd.items())
        for (name, at), value in zip(odd.items(), file.row(f"SELECT {', '.join(values)} FROM {lines}"), strict=True):
            if re.fullmatch(_SPELLED, str(value)):
                file.odd[columns[name]] = Odd(
                    str(value), f"{what} {at}", others[name], not fractions[name], strings=True
                )
            elif _are_mistakes(str(value), others[name], numbers[name] + others[name]):
                file.odd[columns[name]] = Odd(str(value), f"{what} {at}", others[name], not fractions[name])
    alike = {name for name, column in columns.items() if name != column}
    members = ", ".join(
        f"{_member(name, types[name]) if name in alike else f'event.{quote(name)}'} AS {quote(column)}"
        for name, column in columns.items()
    )
    wanted = literal(json.dumps({name: types[name] for name in types if name not in alike}, ensure_ascii=False))
    return (
        f"SELECT {members}, number AS {quote(LINE)} FROM (SELECT number, CASE WHEN {valid} THEN line END AS line, "
        f"json_transform(CASE WHEN {valid} THEN line END, {wanted}) AS event FROM {lines})"
    )


def _member(name: str, type_: object) -> str:
    """SQL for a member of the object in `line`."""
    pointer = _pointer(name)
    return f"(line -> {pointer})" if type_ == "JSON" else f"TRY_CAST(line ->> {pointer} AS {type_})"


def _pointer(name: str) -> str:
    return literal("/" + name.replace("~", "~0").replace("/", "~1"))


def _ndjson(file: Source, pattern: str) -> str:
    return _objects(file, "lines", "line")


def json_elements(file: Source) -> str:
    """The elements of a JSON array, or objects that follow each other, as a table of (number, line)."""
    with opened(file.path) as head:
        array = head.read(HEAD).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    return (
        "(SELECT row_number() OVER () AS number, json::VARCHAR AS line FROM read_json_objects("
        f"{file.literal}, format='{'array' if array else 'unstructured'}', compression='{file.codec or 'none'}'))"
    )


def _json(file: Source, pattern: str) -> str:
    return _objects(file, json_elements(file), "element")


_MAX_INT8 = (1 << 63) - 1


def _parquet(file: Source, pattern: str) -> str:
    """A SELECT for parquet. A column with a number that int8 cannot hold becomes text, as in csv.

    NaN and infinite values become null: they would spoil every sum of the column.
    """
    read = f"read_parquet({file.literal}, hive_partitioning=false)"
    select = f"SELECT * FROM {read}"
    found = file.query(select)
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    wide = {name: f"max({quote(name)}) > {_MAX_INT8}" for name, type_ in types.items() if type_ == "UBIGINT"}
    floats = {name: f"bool_or(NOT isfinite({quote(name)}))" for name in types if types[name] in ("FLOAT", "DOUBLE")}
    if not wide and not floats:
        return select
    tests = wide | floats
    held = file.row(f"SELECT {', '.join(tests.values())} FROM ({select})")
    found_in = [name for name, is_there in zip(tests, held, strict=True) if is_there]
    file.infinite.update(name for name in found_in if name in floats)
    changed = ", ".join(
        f"{f'CASE WHEN isfinite({name}) THEN {name} END' if given in floats else f'{name}::VARCHAR'} AS {name}"
        for given, name in zip(found_in, map(quote, found_in), strict=True)
    )
    return f"SELECT * REPLACE ({changed}) FROM {read}" if changed else select


def _access(file: Source, pattern: str) -> str:
    hit = f"regexp_extract(line, {literal(pattern)}, 1)"
    has_server = bool(file.row(f"SELECT max({hit}) FROM (SELECT line FROM lines LIMIT {FIRST_LINES})")[0])
    names = "['server', 'host', 'user', 'time', 'request', 'status', 'bytes', 'referrer', 'agent']"
    return f"""
        SELECT {in_utc("try_strptime(hit.time, '%d/%b/%Y:%H:%M:%S %z')", file.zone)} AS eventdate,
            {"hit.server AS server," if has_server else ""}
            regexp_replace(hit.host, {literal(_PEER)}, '\\1\\2') AS "clientIp",
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


_FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"),
    *("ntp", "audit", "alert", "clock", *(f"local{number}" for number in range(8))),
)
_SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")


def _syslog(file: Source, pattern: str) -> str:
    """A SELECT for syslog by RFC 5424 and RFC 3164.

    Times of RFC 3164 have no year: it is the last one in which the event is not later than the file, with a tolerance
    of a day for clocks that differ.
    """
    newest = datetime.fromtimestamp(file.path.stat().st_mtime + UNITS["d"], UTC)
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
    return f"""
        SELECT coalesce(
                {in_utc(f"TRY_CAST({text['time']} AS TIMESTAMPTZ)", file.zone)},
                CASE WHEN hit.time2[1] BETWEEN '0' AND '9'
                    THEN {in_utc("TRY_CAST(hit.time2 AS TIMESTAMPTZ)", file.zone)}
                    ELSE {in_utc(yearly, file.zone)} END
            ) AS eventdate,
            coalesce({text["host"]}, {text["host2"]}) AS host, coalesce({text["app"]}, {text["app2"]}) AS app,
            coalesce({text["pid"]}, {text["pid2"]}) AS pid, {list(_FACILITIES)}[{pri} // 8 + 1] AS facility,
            {list(_SEVERITIES)}[{pri} % 8 + 1] AS severity, {text["id"]} AS "msgId",
            {text["data"]} AS "structuredData", coalesce(nullif(hit.text, ''), nullif(hit.text2, '')) AS message,
            number AS {quote(LINE)}
        FROM (SELECT number, regexp_extract(line, {literal(pattern)}, {list(names)}) AS hit FROM lines)
    """


_C_TIMES = "['%a %b %d %H:%M:%S %Y', '%a %b %d %H:%M:%S.%f %Y']"


def _log(file: Source, pattern: str) -> str:
    """A SELECT for a log: the time, and a message of the text before and after the time.

    A bracket around the time is left out; a bracket around the time and more text belongs to the message.
    """
    times = (
        iso_time("entry.time"),
        f"try_strptime(entry.time, {_C_TIMES})",
        named_time("entry.time"),
    )
    read = [*(in_utc(one, file.zone) for one in times), zoned_time("entry.time", file.zone)]
    time = f"coalesce({', '.join(read)})"
    names = "['before', 'opened', 'time', 'closed', 'message']"
    return f"""
        SELECT {"nullif(entry.time, '')" if file.has_format else time} AS eventdate,
            CASE WHEN entry.opened = '' AND entry.closed <> '' THEN rtrim(entry.before) || entry.closed || ' '
                WHEN entry.closed = '' THEN entry.before || regexp_extract(entry.opened, '[\\[(]$')
                ELSE entry.before END || entry.message AS message,
            CASE WHEN entry.message[1] BETWEEN 'A' AND 'Z'
                THEN nullif(regexp_extract(entry.message, '^{UNREAD_ZONE}'), '') END AS {quote(UNCLEAR)},
            number AS {quote(LINE)}
        FROM (SELECT number, regexp_extract(line, {literal(pattern)}, {names}) AS entry FROM lines)
    """


READERS: Mapping[str, Callable[[Source, str], str]] = {
    "csv": _separated,
    "tsv": _separated,
    "ndjson": _ndjson,
    "json": _json,
    "parquet": _parquet,
    "access": _access,
    "log": _log,
    "syslog": _syslog,
    "logfmt": _logfmt,
}
"""For each name of a FileKind, the function that makes the SELECT for a file."""
