"""The columns of a file: their names, their types, and the SQL that reads them.

Each kind of file, such as csv, has its own function that finds the columns.

The SQL reads the table `lines`, which has the number and the text of each line. For csv, the table has the number and
the cells of each row. For csv, logfmt and JSON, the first rows of a file decide the types of the columns. If a later
row does not fit these types, all rows of the file decide the types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import LINE, SHORT_ROW, SQL_TYPES, VALUES, distinct, literal, quote
from svcctl.service.language.types import Type
from svcctl.service.loading import access_log
from svcctl.service.loading.files import KnownFile
from svcctl.service.loading.flattening import (
    JSON,
    JSON_NUMBERS,
    NULL,
    EventMember,
    Flattened,
    Flattening,
    Leaf,
    MemberPath,
    flattened,
    nested,
)
from svcctl.service.loading.limits import MAX_FIELDS
from svcctl.service.loading.members import STYLES, compared, plain_text, pointer, with_object
from svcctl.service.loading.skips import Change, shown
from svcctl.service.loading.times import in_utc, unclear_zone, yearless
from svcctl.service.loading.values import NUMBER_LIKE, ODD, WAYS, is_nested, nothing

MAX_STRUCTURES = 100_000
"""The maximum number of different structures of JSON objects in a file.

The structure of an object consists of the names and the types of its members.
"""
_PEER = r"^(?:\[([0-9A-Fa-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$"
"""Matches an IP address, which may be in brackets and may have a port."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rules for finding the columns of a file.

    `flattening` decides which objects inside events become columns. `null` has the texts that mean null. `zone` is the
    zone of times without a zone. `rows` runs a query over the table `lines`, and returns the rows of the result. The
    table `lines` has the first rows of the file, or the whole file.
    """

    flattening: Flattening
    null: Sequence[str]
    zone: str | None
    rows: Callable[[str], list[tuple[Any, ...]]]

    @property
    def types(self) -> Mapping[str, Type]:
        """The known types by column: the types of the existing table's columns, and the types that the user names."""
        return self.flattening.types


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file: the SQL and the DuckDB type of each column. The SQL reads from `table`.

    `line` is SQL for the number of a row, and `text` is SQL for the text of a row. `blank` has the names of columns
    without values. `marks` has SQL conditions, by kind of change and by column. A condition is true if the load changes
    the column's value in this way. The column name "" stands for the whole row.

    `misfit` is SQL that gives null for a row that fits the types. For a row that does not fit, it gives an empty text.
    For a row of JSON that may not fit, it gives the structure of the row, which `fits` checks. `members` has the types
    of JSON members, and `flat` describes the objects that became columns. `is_dated` is true if the format of the file
    defines how times are written.
    """

    table: str
    sql: Mapping[str, str]
    types: Mapping[str, str]
    line: str = "number"
    text: str = "NULL::VARCHAR"
    marks: Mapping[Change, Mapping[str, str]] = field(default_factory=dict)
    blank: frozenset[str] = frozenset()
    misfit: str = "NULL::VARCHAR"
    members: Mapping[MemberPath, str] = field(default_factory=dict)
    flat: Flattened | None = None
    is_dated: bool = False

    def fits(self, structure: str) -> bool:
        """Return whether all values of a JSON row with this structure fit the columns and their types."""
        return self.flat is not None and structure != "" and self.flat.fits(json.loads(structure), self.members)

    @property
    def paths(self) -> Mapping[str, Sequence[str]]:
        """The path of each column. For example, `req` and `status` are the path of the column `req.status`.

        The path of a column outside of nested objects has only the column's name.
        """
        inside = {leaf.name: leaf.path for leaf in self.flat.leaves} if self.flat else {}
        return {name: inside.get(name, (name,)) for name in self.types}


def _csv(file: KnownFile, rules: Wanted) -> Columns:
    assert file.heading is not None
    columns = _typed(file.heading.names, "lines", rules)
    return replace(columns, marks={**columns.marks, Change.SHORT: {"": quote(SHORT_ROW)}})


def _fields(file: KnownFile, rules: Wanted) -> Columns:
    """Return the columns of a file that names its fields in a comment.

    In such a file, times without a zone are always in UTC. So the load does not report that it assumed UTC.
    """
    assert file.heading is not None
    columns = _csv(file, replace(rules, null=(*rules.null, *file.heading.null)))
    return replace(columns, marks={**columns.marks, Change.ZONE: {}})


def _typed(names: Sequence[str], table: str, rules: Wanted, misfits: Sequence[str] = ()) -> Columns:
    """Return the columns of a table that has only text. The texts of a column decide the column's type.

    `misfits` has additional SQL conditions. A row does not fit the columns if one of these conditions is true.
    """
    cells = {name: nothing(quote(name), rules.null) for name in names}
    open_ = {name: cell for name, cell in cells.items() if name not in rules.types}

    counted = _counts(list(open_.values()), table, rules)
    sql, types = dict(cells), dict.fromkeys(names, "VARCHAR")
    misfit, blank, mixed, values_sql = list(misfits), set(), {}, []
    for at, (name, cell) in enumerate(open_.items()):
        values, numbers, odd, *ways = counted.get(at, [0] * (3 + len(WAYS)))
        fitting_types = [type_ for (type_, _), count in zip(WAYS, ways, strict=True) if count == values > 0]
        if not values:
            blank.add(name)
            misfit.append(f"{cell} IS NOT NULL")
        elif fitting_types:
            types[name] = SQL_TYPES[fitting_types[0]]
            value = f"TRY_CAST({cell} AS {types[name]})"
            values_sql.append(f"'v{at}': CASE WHEN {dict(WAYS)[fitting_types[0]].format(cell)} THEN {value} END")
            sql[name] = f"{quote(VALUES)}.v{at}"
            misfit.append(f"{cell} IS NOT NULL AND {sql[name]} IS NULL")
        elif odd and 2 * numbers >= values:
            mixed[name] = ODD.format(cell)
    if values_sql:  # each value is computed once, and used both as the value and to find misfits
        table = f"(SELECT *, {{{', '.join(values_sql)}}} AS {quote(VALUES)} FROM {table})"
    return Columns(
        table,
        sql,
        types,
        quote(LINE),
        marks={Change.TEXT: mixed},
        blank=frozenset(blank),
        misfit=f"CASE WHEN {' OR '.join(f'({condition})' for condition in misfit) or 'false'} THEN '' END",
    )


def _counts(cells: Sequence[str], table: str, rules: Wanted) -> dict[int, list[int]]:
    """For each column, count how many values have the form of a number or of another type.

    `cells` has the SQL of each column. The result maps the index of a column to a list of counts. The first count is
    the number of values that are not null. Each further count is the number of values that pass a test. The tests are
    NUMBER_LIKE, ODD and those in WAYS, in this order. The result is empty if there are no rows.
    """
    tests = (NUMBER_LIKE, ODD, *(test for _, test in WAYS))
    counts = ", ".join(f"count(*) FILTER ({test.format('value')})" for test in tests)
    # All values are collected in one column, because each use of a pattern takes time and memory.
    values = f"SELECT unnest([{', '.join(cells)}]) AS value, unnest(range({len(cells)})) AS place FROM {table}"
    rows = rules.rows(f"SELECT place, count(value), {counts} FROM ({values}) GROUP BY place") if cells else []
    return {at: list(row) for at, *row in rows}


_PAIR = r'(?:^|\s)([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)'
_VALUE = (
    "CASE WHEN {0}[1] <> '\"' THEN nullif({0}, '') WHEN contains({0}, '\\') "
    "THEN coalesce(TRY({0} ->> '$'), {0}[2:-2]) ELSE {0}[2:-2] END"
)
"""SQL that removes the quotes around a value of logfmt, and decodes JSON escapes in the value."""


def _logfmt(file: KnownFile, rules: Wanted) -> Columns:
    """Return the columns of logfmt, which has lines of pairs `key=value`. Each key becomes a column.

    A value that contains blanks is in quotes.
    """
    # A key has no blank, so names with a blank differ from all keys.
    lists = (
        f'regexp_extract_all(line, {literal(_PAIR)}, {at}) AS "{part}"'
        for at, part in ((1, "(all keys)"), (2, "(all texts)"))
    )
    pairs = f'(SELECT number AS {quote(LINE)}, line AS "(text)", {", ".join(lists)} FROM lines)'
    rows = rules.rows(
        f'SELECT key FROM (SELECT {quote(LINE)} AS number, unnest("(all keys)") AS key, '
        f'generate_subscripts("(all keys)", 1) AS place FROM {pairs}) '
        f"GROUP BY key ORDER BY min(number), arg_min(place, number) LIMIT {MAX_FIELDS + 1}"
    )
    keys = [str(key) for (key,) in rows]
    _check_number(file, keys, "line of key=value")
    names = distinct(keys)
    pairs_of = zip(keys, map(quote, names), strict=True)
    cells = ", ".join(f'"(all texts)"[list_position("(all keys)", {literal(key)})] AS {name}' for key, name in pairs_of)
    values = ", ".join(f"{_VALUE.format(name)} AS {name}" for name in map(quote, names))
    present = " + ".join(f'(list_position("(all keys)", {literal(key)}) IS NOT NULL)::INTEGER' for key in keys)
    own = f'{quote(LINE)}, "(text)", "(all keys)"'
    table = (
        f'(SELECT {values}, {own}, "(has more)" FROM '
        f'(SELECT {own}, len("(all keys)") > {present} AS "(has more)", {cells} FROM {pairs}))'
    )
    # A line with more keys than columns has a key twice, or a key that is not a column. The second test is slow.
    unknown = f'NOT list_has_all([{", ".join(map(literal, keys))}], "(all keys)")'
    columns = _typed(names, table, rules, misfits=[f'CASE WHEN "(has more)" THEN {unknown} END'])
    return replace(columns, text='"(text)"', marks={**columns.marks, Change.REPEATED: {"": '"(has more)"'}})


def _check_number(file: KnownFile, names: Sequence[str], entry: str) -> None:
    """Raise UsageError if a file has too many columns, or no columns."""
    if len(names) > MAX_FIELDS:
        raise UsageError(f"{file.source.name} has more than {MAX_FIELDS} fields")
    if not names:
        raise UsageError(f"{file.source.name} has no {entry}")


_SCALARS = {type_: type_ for type_ in (*JSON_NUMBERS, "BOOLEAN", "VARCHAR")} | {"BIGINT": "HUGEINT"}
"""The type in which a column of JSON is read, by the type of its values.

A column with negative numbers may also have numbers that are too large for BIGINT. These would be null without a note.
"""


def _json(file: KnownFile, rules: Wanted) -> Columns:
    """Return the columns of JSON objects. Members of nested objects can also become columns.

    NaN and infinite values become null, as in parquet.
    """
    null = "|".join(map(_escaped, rules.null))
    nothing_there = literal(f':\\s*"(?:{null})"')
    line = f"regexp_replace(line, {nothing_there}, ':null', 'g')" if null else "line"
    entries = f"(SELECT number, {line} AS text FROM lines)"
    # For an object without members, DuckDB returns the string "JSON" as the structure.
    structure = """nullif(json_structure(line)::VARCHAR, '"JSON"')"""
    shapes = rules.rows(
        f"SELECT {structure} AS shape, count(*) FROM {with_object(f'(SELECT *, false AS is_plain FROM {entries})')} "
        f"GROUP BY shape ORDER BY min(number) LIMIT {MAX_STRUCTURES + 1}"
    )
    if len(shapes) > MAX_STRUCTURES:
        raise UsageError(f"{file.source.name} has objects with more than {MAX_STRUCTURES:,} different sets of members")
    root = EventMember()
    for shape, count in shapes:
        root.add(json.loads(shape or "{}"), count)
    flat = flattened(root, rules.flattening)
    if not flat.leaves:
        raise _no_object(file, rules)
    _check_number(file, [leaf.name for leaf in flat.leaves], "member")
    named_types = rules.flattening.types
    types = {
        leaf.name: _SCALARS.get(leaf.type, "VARCHAR") if leaf.name not in named_types else "VARCHAR"
        for leaf in flat.leaves
    }
    sql = {leaf.name: _json_value(leaf, types[leaf.name]) for leaf in flat.leaves}
    floats = {leaf.name: leaf.path for leaf in flat.leaves if types[leaf.name] == "DOUBLE"}
    infinite = {name: f"NOT isfinite({sql[name]})" for name in floats}
    rounded = {
        name: f"CASE WHEN abs({sql[name]}) >= {_LEAST_ROUNDED} "
        f"THEN regexp_full_match(line ->> {pointer(path)}, '-?[0-9]+') END"
        for name, path in floats.items()
    }
    sql |= {name: f"CASE WHEN isfinite({sql[name]}) THEN {sql[name]} END" for name in floats}
    transform = literal(json.dumps(nested(flat.leaves, types), ensure_ascii=False))
    seen = ", ".join(literal(shape) for shape, _ in shapes if shape)
    fitting = {leaf.path: JSON if leaf.name in named_types else leaf.type for leaf in flat.leaves}
    are_valid = all(shape for shape, _ in shapes)
    event = f"TRY(json_transform({'text' if are_valid else _VALID_TEXT}, {transform})) AS event"
    events = f"(SELECT *, {event} FROM {entries})"
    objects = with_object(
        f"(SELECT *, {_is_plain(events, flat.leaves, rules)} AS is_plain FROM {events})", are_mostly_valid=are_valid
    )
    objects, fits = compared(objects, fitting, flat.opened)
    return Columns(
        f"(SELECT *, CASE WHEN {fits} THEN NULL ELSE {structure} END AS shape FROM {objects})",
        sql,
        types,
        text="text",
        marks={
            Change.TEXT: {
                leaf.name: _is_odd(leaf) for leaf in flat.leaves if leaf.name not in named_types and _is_mixed(leaf)
            },
            Change.INFINITE: infinite,
            Change.ROUNDED: rounded,
            Change.REPEATED: {"": _has_repeated_name(flat.opened)},
            Change.JSON: {leaf.name: _is_json(leaf, sql[leaf.name]) for leaf in flat.leaves if leaf.has_json},
        },
        blank=frozenset(leaf.name for leaf in flat.leaves if leaf.type == NULL),
        misfit=f"CASE WHEN shape NOT IN ({seen}) THEN shape END",
        flat=flat,
        members=fitting,
    )


def _no_object(file: KnownFile, rules: Wanted) -> UsageError:
    """Return the error for a file whose first lines or elements are not JSON objects. It shows the first of them."""
    first = str(rules.rows("SELECT line FROM lines ORDER BY number LIMIT 1")[0][0])
    try:
        rest = first[json.JSONDecoder().raw_decode(first)[1] :].strip()
    except (ValueError, RecursionError):
        rest = ""
    return UsageError(
        f"{file.source.name} has no {file.unit} that is a JSON object with members; the first is {shown(first)}"
        + (f", with {shown(rest)} after the object" if rest else ""),
        hint="end each object with a line end, without a comma" if rest.startswith(",") else None,
    )


_VALID_TEXT = "CASE WHEN json_valid(text) THEN text END"


def _is_plain(events: str, leaves: Sequence[Leaf], rules: Wanted) -> str:
    """Return an SQL condition that is true only for rows that have exactly the members and the types of `leaves`.

    The SQL is `false` if the condition would be false for most rows of the head.
    """
    conditions = [f"text = {text}" for style in STYLES if (text := plain_text(leaves, style))]
    if conditions:
        counts = ", ".join(f"count_if({condition})" for condition in conditions)
        [(rows, *plain)] = rules.rows(f"SELECT count(*), {counts} FROM {events}")
        if 2 * max(plain) > rows:
            return conditions[plain.index(max(plain))]
    return "false"


def _json_value(leaf: Leaf, type_: str) -> str:
    """Return SQL for the values of one column of JSON."""
    if not (leaf.is_mixed or leaf.is_hidden):
        return ".".join(("event", *map(quote, leaf.path)))
    value = f"TRY_CAST(line ->> {pointer(leaf.path)} AS {type_})"
    return f"CASE WHEN json_type(line, {pointer(leaf.path)}) <> 'OBJECT' THEN {value} END" if leaf.is_mixed else value


def _is_mixed(leaf: Leaf) -> bool:
    """Return whether a column has numbers and other values, and at least half of its values are numbers."""
    member = leaf.member
    others = member.others + member.arrays + (0 if leaf.is_mixed else member.objects)
    return 0 < others <= member.numbers


def _is_odd(leaf: Leaf) -> str:
    """Return SQL for the condition that a value of JSON is not a number."""
    types = (*JSON_NUMBERS, NULL, *(["OBJECT"] if leaf.is_mixed else []))
    return f"json_type(line, {pointer(leaf.path)}) NOT IN ({', '.join(map(literal, types))})"


def _is_json(leaf: Leaf, value: str) -> str:
    """Return SQL for the condition that a value of JSON is an array or an object."""
    if not leaf.has_values and (leaf.member.members or not leaf.member.objects):
        return f"{value} IS NOT NULL"
    types = "'ARRAY'" if leaf.is_mixed else "'ARRAY', 'OBJECT'"
    return f"json_type(line, {pointer(leaf.path)}) IN ({types})"


def _has_repeated_name(objects: Collection[MemberPath]) -> str:
    """Return an SQL condition. It is true if a name occurs twice in an event, or in one of these objects inside it."""
    names = ["names", *(f"json_keys(line, {pointer(path)})" for path in objects)]
    repeated = " OR ".join(f"len(list_distinct({keys})) < len({keys})" for keys in names)
    return f"CASE WHEN shape IS NOT NULL THEN {repeated} END"  # without a shape, `compared` has counted the names


def _escaped(text: str) -> str:
    """Return a regular expression that matches the escaped form of a text in a JSON string."""
    return re.escape(json.dumps(text, ensure_ascii=False)[1:-1])


_MAX_INT8 = (1 << 63) - 1
_LEAST_ROUNDED = 1 << 53
"""The smallest whole number that may be the result of rounding to float8. For example, 2^53 + 1 is rounded to 2^53."""
_DECIMAL = r"DECIMAL\(\d+,(\d+)\)"
"""Matches DuckDB's name for a type of decimals, which has the number of digits after the point."""


def _parquet(file: KnownFile, rules: Wanted) -> Columns:
    """Return the columns of parquet. Members of structs can also become columns.

    A column of whole numbers becomes text if it has a number that is too large for int8. NaN and infinite values become
    null.
    """
    root = EventMember()
    described = _described(file, rules, "*", root)
    flat = flattened(root, rules.flattening)
    values = {leaf.name: _struct_member(leaf.path) for leaf in flat.leaves}
    column_types = {leaf.name: described[leaf.path] for leaf in flat.leaves}
    decimals = {name: int(hit[1]) for name, type_ in column_types.items() if (hit := re.fullmatch(_DECIMAL, type_))}
    wide = [name for name, type_ in column_types.items() if type_ == "UBIGINT" or decimals.get(name) == 0]
    largest = ", ".join(f"max({values[name]}) > {_MAX_INT8} OR min({values[name]}) < {-_MAX_INT8}" for name in wide)
    are_too_large = rules.rows(f"SELECT {largest} FROM {file.table}")[0] if wide else ()
    too_large = {name for name, is_too_large in zip(wide, are_too_large, strict=True) if is_too_large}
    column_types |= {name: "BIGINT" for name in wide if name not in too_large}
    sql, infinite, rounded = {}, {}, {}
    for name, type_ in column_types.items():
        sql[name] = values[name]
        if name in too_large:
            sql[name] = f"{values[name]}::VARCHAR"
        elif name in wide:
            sql[name] = f"{values[name]}::BIGINT"
        elif name in decimals and rules.types.get(name, Type.FLOAT8) is Type.FLOAT8:
            digits = f"ltrim(replace(rtrim({values[name]}::VARCHAR, '0'), '.', ''), '-0')"
            rounded[name] = f"CASE WHEN abs({values[name]}) >= 1e{15 - decimals[name]} THEN strlen({digits}) > 15 END"
        elif type_ in ("FLOAT", "DOUBLE"):
            sql[name] = f"CASE WHEN isfinite({values[name]}) THEN {values[name]} END"
            infinite[name] = f"NOT isfinite({values[name]})"
        elif type_ == "VARCHAR":
            sql[name] = nothing(values[name], rules.null)
    types = {name: "VARCHAR" if name in too_large else type_ for name, type_ in column_types.items()}
    texts = {name: f"{values[name]} IS NOT NULL" for name, type_ in types.items() if is_nested(type_)}
    marks = {Change.INFINITE: infinite, Change.ROUNDED: rounded, Change.JSON: texts}
    return Columns(file.table, sql, types, "file_row_number + 1", marks=marks, flat=flat)


def _described(
    file: KnownFile, rules: Wanted, value: str, parent: EventMember, path: MemberPath = ()
) -> dict[MemberPath, str]:
    """Return the DuckDB types of all members of a row or a struct, by the path of the member.

    `value` is the SQL that selects the members. `path` is the path of the struct, or empty for a row. The members are
    also added to `parent`.
    """
    types: dict[MemberPath, str] = {}
    for name, type_, *_ in rules.rows(f"DESCRIBE SELECT {value} FROM {file.table}"):
        if name == "file_row_number" and not path:
            continue
        member, place = parent.members.setdefault(name, EventMember()), (*path, name)
        types[place] = str(type_)
        if type_.startswith("STRUCT") and not type_.endswith("]"):
            member.objects = 1
            types |= _described(file, rules, f"unnest({_struct_member(place)})", member, place)
        else:
            member.type = str(type_)
    return types


def _struct_member(path: MemberPath) -> str:
    value = quote(path[0])
    for name in path[1:]:
        value = f"struct_extract({value}, {literal(name)})"
    return value


def _access(file: KnownFile, rules: Wanted) -> Columns:
    hits = access_log.hits(file.kind.pattern)
    [(server, ident, rest)] = rules.rows(f"SELECT max(hit.server), max(hit.ident), max(trim(hit.rest)) FROM {hits}")
    peer = f"regexp_replace(hit.host, {literal(_PEER)}, '\\1\\2')"
    sql = {
        "eventdate": "nullif(hit.time, '')",
        **({"server": "nullif(hit.server, '')"} if server else {}),
        "clientIp": f"CASE WHEN contains(hit.host, ':') OR starts_with(hit.host, '[') THEN {peer} ELSE hit.host END",
        **({"ident": "nullif(hit.ident, '')"} if ident else {}),
        "user": "nullif(hit.user || hit.user2, '-')",
        "method": "nullif(request.method, '')",
        "uri": "coalesce(nullif(request.uri, ''), nullif(hit.request, '-'))",
        "protocol": "nullif(request.protocol, '')",
        "statusCode": "TRY_CAST(hit.status AS INTEGER)",
        "bytes": "TRY_CAST(hit.bytes AS BIGINT)",
        "referralUri": "nullif(nullif(hit.referrer, '-'), '')",
        "userAgent": "nullif(nullif(hit.agent, '-'), '')",
        **({"rest": "nullif(trim(hit.rest), '')"} if rest else {}),
    }
    types = {"statusCode": "INTEGER", "bytes": "BIGINT"}
    optional = {"hit.server <> ''": server, "hit.ident <> ''": ident, "trim(hit.rest) <> ''": rest}
    late = [test for test, has in optional.items() if not has]
    return Columns(
        access_log.with_request(hits),
        sql,
        dict.fromkeys(sql, "VARCHAR") | types,
        text="line",
        misfit=f"CASE WHEN {' OR '.join(late) or 'false'} THEN '' END",
    )


_FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"),
    *("ntp", "audit", "alert", "clock", *(f"local{number}" for number in range(8))),
)
_SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f")
_OLD_TIME = r"^(\w+ +\d+(?: \d+)?) (\S+)(?: [A-Z]+)?(?: (\d{4}))?$"
"""Matches a time of RFC 3164: the day, the time of day, and perhaps a zone and a year."""


def _syslog(file: KnownFile, rules: Wanted) -> Columns:
    """Return the columns of syslog by RFC 5424 and RFC 3164.

    Times of RFC 3164 have no year. The function `yearless` finds the year. If the zone or the year follows such a time,
    `old` has the year before the time of day, and no zone. `zone` has the name of the zone, or an empty text.
    """
    zone = rules.zone or "UTC"
    yearly = f"try_strptime(old, {[f'%b %d %Y {clock}' for clock in _CLOCKS]})"
    yearless_time = yearless("old", [f"%b %d {clock}" for clock in _CLOCKS], file.newest)
    yearly = f"CASE WHEN strpos(old, ':') > 11 THEN {yearly} ELSE {yearless_time} END"
    names = (
        *("pri", "time", "host", "app", "pid", "id", "data", "text"),
        *("pri2", "time2", "host2", "app2", "pid2", "text2"),
    )
    pri = "TRY_CAST(coalesce(nullif(hit.pri, ''), nullif(hit.pri2, '')) AS INTEGER)"
    text = {name: f"nullif(nullif(hit.{name}, ''), '-')" for name in names}
    hits = f"regexp_extract(line, {literal(file.kind.pattern)}, {list(names)})"
    is_long = f"strlen(hit.time2) > {len('Jan 31 10:00:00')}"
    has_more = f"{is_long} AND hit.time2[1] > '9' AND (hit.time2[-1] > '9' OR hit.time2[-5] = ' ')"
    lines = (
        f"(SELECT *, CASE WHEN {has_more} THEN regexp_replace(hit.time2, {literal(_OLD_TIME)}, '\\1 \\3 \\2') "
        f"ELSE hit.time2 END AS old, CASE WHEN {has_more} THEN regexp_extract(hit.time2, '[A-Z]{{3,}}') "
        f"ELSE '' END AS zone FROM (SELECT number, line, {hits} AS hit FROM lines))"
    )
    is_unclear = "zone NOT IN ('', 'UTC', 'GMT')"
    if not rules.zone:
        for (time,) in rules.rows(f"SELECT hit.time2 FROM {lines} WHERE {is_unclear} LIMIT 1"):
            raise unclear_zone(file.source.name, time)
        yearly = f"CASE WHEN NOT {is_unclear} THEN {yearly} END"
    local = f"CASE WHEN zone IN ('UTC', 'GMT') THEN ({yearly})::TIMESTAMP ELSE {in_utc(yearly, zone)} END"
    precise = in_utc(f"TRY_CAST({text['time']} AS TIMESTAMPTZ)", zone)
    sql = {
        "eventdate": f"coalesce({precise}, "
        "CASE WHEN hit.time2[1] BETWEEN '0' AND '9' "
        f"THEN {in_utc('TRY_CAST(hit.time2 AS TIMESTAMPTZ)', zone)} ELSE {local} END)",
        **{name: f"coalesce({text[name]}, {text[name + '2']})" for name in ("host", "app", "pid")},
        "facility": f"{list(_FACILITIES)}[{pri} // 8 + 1]",
        "severity": f"{list(_SEVERITIES)}[{pri} % 8 + 1]",
        "msgId": text["id"],
        "structuredData": text["data"],
        "message": "coalesce(nullif(hit.text, ''), nullif(hit.text2, ''))",
    }
    return Columns(
        lines,
        sql,
        dict.fromkeys(sql, "VARCHAR") | {"eventdate": "TIMESTAMP"},
        text="line",
        marks={} if rules.zone else {Change.ZONE: {"": "hit.time2[1] > '9' AND zone = ''"}},
        is_dated=True,
    )


def _log(file: KnownFile, rules: Wanted) -> Columns:
    """Return the columns of a log: the time, and the message. The message is the text before and after the time.

    Brackets that enclose only the time are left out. Brackets that also enclose other text belong to the message.
    """
    names = "['before', 'opened', 'time', 'closed', 'message', 'joined']"
    sql = {
        "eventdate": "nullif(entry.time, '')",
        "message": "CASE WHEN entry.opened = '' AND entry.closed <> '' "
        "THEN rtrim(entry.before) || entry.closed || ' ' "
        "WHEN entry.opened = '' AND entry.message <> '' AND regexp_matches(entry.before, '[A-Z]$') "
        "THEN entry.before || ' ' "
        "WHEN entry.closed = '' THEN entry.before || regexp_extract(entry.opened, '[\\[(]$') "
        "ELSE entry.before END || entry.message || entry.joined",
    }
    return Columns(
        f"(SELECT number, line, regexp_extract(line, {literal(file.kind.pattern)}, {names}) AS entry FROM lines)",
        sql,
        {"eventdate": "VARCHAR", "message": "VARCHAR"},
        text="line",
    )


COLUMNS_OF: Mapping[str, Callable[[KnownFile, Wanted], Columns]] = {
    "csv": _csv,
    "tsv": _csv,
    "ndjson": _json,
    "json": _json,
    "parquet": _parquet,
    "access": _access,
    "log": _log,
    "syslog": _syslog,
    "logfmt": _logfmt,
    "fields": _fields,
}
"""The functions that find the columns of a file, by the name of the file's kind."""
