"""The Dialect of DuckDB: the parts of DuckDB's SQL that differ from the SQL of other engines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import duckdb
from sqlglot import exp

from svcctl.service.engines.duckdb.opening import scratch
from svcctl.service.language import json_member
from svcctl.service.language.dialect import DatePart, DatePattern
from svcctl.service.language.json_path import MAX_JSON_DEPTH, JsonStep

POSITION = "(position)"
"""The name of the column from which plans read a row's position. The engine supplies this column."""

_DATE_WORDS = r"(?i)^\s*(-?infinity|epoch)\s*$"
"""A pattern for words that DuckDB reads as a date, whatever the date format. An example is `infinity`."""
_JSON_BLANKS = r"[ \t\r\n]*"
_PECULIAR_JSON = "|".join(
    (
        rf",{_JSON_BLANKS}[\]}}]",  # DuckDB accepts a comma without a value after it
        rf"(?:[:,\[]|^){_JSON_BLANKS}-?(?i:nan|inf)",  # DuckDB accepts nan and inf
        rf'\\u|\\"?[^"]*"{_JSON_BLANKS}:',  # half of a surrogate pair, U+0000, names with escapes
        # numbers that DuckDB may write differently
        rf"[:,\[]{_JSON_BLANKS}-?(?:[0-9][0-9.]*[eE]|[0-9]+\.(?:[0-9]+0[^0-9]|0000|[0-9]{{9}}))",
        rf"[:,\[]{_JSON_BLANKS}-?(?:[0-9]{{8,}}\.[0-9]{{4}}|[0-9]{{13,}}\.)|-0[^.0-9]",
        rf"(?:[\[{{][^\[{{]*){{{MAX_JSON_DEPTH + 1}}}",  # may be nested too deep
    )
)
"""A pattern for JSON texts in which DuckDB's own functions may find a wrong value."""
_JSON_WITH_ESCAPES = r"(?s)^[\[{].*\\"
_CODES: Mapping[DatePart, str] = {
    DatePart.YEAR: "%Y",
    DatePart.MONTH: "%m",
    DatePart.DAY: "%d",
    DatePart.HOUR: "%H",
    DatePart.MINUTE: "%M",
    DatePart.SECOND: "%S",
    DatePart.MILLISECOND: "%g",
}


class DuckDBDialect:
    name = "duckdb"
    ip4 = exp.DType.UINT

    def attempt(self, sql: exp.Expr) -> exp.Expr:
        return exp.Try(this=sql)

    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        return exp.Sum(this=sql)  # DuckDB uses 128 bits for the sum

    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        # A cast of a 128-bit number to float8 rounds twice. A cast of an int8 or a text rounds only once. The cast of a
        # text is slow, but is needed only for few numbers.
        least, most = (exp.Literal.number(number) for number in (-(2**63), 2**63 - 1))
        short = exp.Between(this=exp.paren(sql), low=least, high=most)
        ways = (exp.cast(exp.cast(sql, type_), "DOUBLE") for type_ in ("BIGINT", "VARCHAR"))
        return exp.Case(ifs=[exp.If(this=short, true=next(ways))], default=next(ways))

    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        return exp.TryCast(this=sql, to=to)

    def first_match(self, texts: list[exp.Expr], pattern: str, group: int) -> exp.Expr:
        # DuckDB returns "" if there is no match. Only DuckDB's list of all matches contains null, but making this list
        # takes longer.
        text, copy = texts
        arguments = (exp.Literal.string(pattern), exp.Literal.number(group))
        first = exp.func("regexp_extract", text, *arguments, dialect=self.name)
        matches = exp.Anonymous(this="regexp_extract_all", expressions=[copy, *(value.copy() for value in arguments)])
        exact = exp.Try(this=exp.Anonymous(this="list_extract", expressions=[matches, exp.Literal.number(1)]))
        return exp.Coalesce(this=exp.Nullif(this=first, expression=exp.Literal.string("")), expressions=[exact])

    def float_text(self, sql: exp.Expr) -> exp.Expr:
        text = exp.Cast(this=sql, to=exp.DataType(this=exp.DType.VARCHAR))
        return exp.func("replace", text, exp.Literal.string("-nan"), exp.Literal.string("nan"))

    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        return exp.TimeToStr(this=value, format=_codes(pattern))

    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        words = exp.Literal.string(_DATE_WORDS)
        only = exp.RegexpReplace(this=text, expression=words, replacement=exp.Literal.string("\x01"))
        return exp.Try(this=exp.StrToTime(this=only, format=_codes(pattern)))

    def repeat(self, value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        return body(value)  # a lambda would be slower than copies of the value

    def json_member(self, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        # DuckDB's own function is a hundred times faster. Its result is the same, except for texts that match
        # _PECULIAR_JSON.
        json = _DuckDBJson()
        exact = json_member.member(json, text.copy(), path)
        fast = json.look_up(text.copy(), path)
        changed = exp.RegexpLike(this=fast.copy(), expression=exp.Literal.string(_JSON_WITH_ESCAPES))
        plain = exp.Case(ifs=[exp.If(this=changed, true=exact)], default=fast)
        peculiar = exp.RegexpLike(this=text, expression=exp.Literal.string(_PECULIAR_JSON))
        valid = exp.Anonymous(this="json_valid", expressions=[text.copy()])
        return exp.Case(ifs=[exp.If(this=peculiar, true=exact.copy()), exp.If(this=valid, true=plain)])

    def position(self) -> exp.Expr:
        return exp.column(POSITION, table="t", quoted=True)

    def check_pattern(self, pattern: str) -> str | None:
        return _fault(pattern)


class _DuckDBJson:
    """DuckDB's SQL for operations on JSON texts."""

    def replace_matches(self, sql: exp.Expr, pattern: str, replacement: str, times: int = 1) -> exp.Expr:
        texts = (pattern, re.sub(r"\$(\d)", r"\\\1", replacement), "g")
        if times == 1:
            return exp.Anonymous(this="regexp_replace", expressions=[sql, *map(exp.Literal.string, texts)])
        steps = exp.Array(expressions=[sql, *(exp.Literal.string("") for _ in range(times))])
        step = exp.Lambda(
            this=self.replace_matches(exp.var("s"), pattern, replacement), expressions=[exp.var("s"), exp.var("i")]
        )
        return exp.Anonymous(this="list_reduce", expressions=[steps, step])

    def look_up(self, sql: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        written = "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in path)
        return exp.Anonymous(this="json_extract_string", expressions=[sql, exp.Literal.string(f"${written}")])

    def bind(self, sql: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        values = exp.Lambda(this=body(exp.var("x")), expressions=[exp.var("x")])
        mapped = exp.Anonymous(this="list_transform", expressions=[exp.Array(expressions=[sql]), values])
        return exp.Anonymous(this="list_extract", expressions=[mapped, exp.Literal.number(1)])


def _codes(pattern: DatePattern) -> exp.Expr:
    """Return a date pattern as a format for strftime."""
    pieces = (_CODES[part] if isinstance(part, DatePart) else part.replace("%", "%%") for part in pattern)
    return exp.Literal.string("".join(pieces))


@lru_cache(maxsize=256)
def can_be_empty(pattern: str) -> bool:
    """Whether a match of a regular expression can be empty.

    The regular expression is tried on an empty text and on the letter `a`.
    """
    query = "SELECT list_contains(regexp_extract_all('', $1) || regexp_extract_all('a', $1), '')"
    with scratch() as connection:
        [(empty,)] = connection.execute(query, [pattern]).fetchall()
    return bool(empty)


@lru_cache(maxsize=256)
def _fault(pattern: str) -> str | None:
    # Python has no parser for RE2 patterns, so DuckDB checks the pattern.
    with scratch() as connection:
        try:
            connection.execute("SELECT regexp_matches('', $1)", [pattern])
        except duckdb.Error as error:
            return str(error).split("\n", 1)[0].partition(": ")[2]
    return None
