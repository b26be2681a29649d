"""The Dialect of DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import duckdb
from sqlglot import exp

from svcctl.service.engines.duckdb.opening import scratch
from svcctl.service.language.dialect import DatePart, DatePattern

POSITION = "(position)"
"""The name of a row's position in a plan, which the engine replaces by a column."""

_DATE_WORDS = r"(?i)^\s*(-?infinity|epoch)\s*$"
"""Texts that DuckDB takes for a date in any format."""
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
        return exp.Sum(this=sql)  # DuckDB adds them up in 128 bits

    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        # DuckDB rounds a cast from 128 bits twice, but a cast from int8 or text once; few numbers need the slower text
        least, most = (exp.Literal.number(number) for number in (-(2**63), 2**63 - 1))
        short = exp.Between(this=exp.paren(sql), low=least, high=most)
        ways = (exp.cast(exp.cast(sql, type_), "DOUBLE") for type_ in ("BIGINT", "VARCHAR"))
        return exp.Case(ifs=[exp.If(this=short, true=next(ways))], default=next(ways))

    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        return exp.TryCast(this=sql, to=to)

    def first_match(self, texts: list[exp.Expr], pattern: str, group: int) -> exp.Expr:
        # DuckDB has "" where there is no match. Only its list of all matches has null, but makes all of them.
        one, other = texts
        arguments = (exp.Literal.string(pattern), exp.Literal.number(group))
        first = exp.func("regexp_extract", one, *arguments, dialect=self.name)
        matches = exp.Anonymous(this="regexp_extract_all", expressions=[other, *(each.copy() for each in arguments)])
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

    def repeated(self, value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        return body(value)  # a lambda that binds the value would be slower than the copies

    def position(self) -> exp.Expr:
        return exp.column(POSITION, table="t", quoted=True)

    def check_pattern(self, pattern: str) -> str | None:
        return _fault(pattern)


def _codes(pattern: DatePattern) -> exp.Expr:
    """A date pattern as a format of strftime."""
    pieces = (_CODES[part] if isinstance(part, DatePart) else part.replace("%", "%%") for part in pattern)
    return exp.Literal.string("".join(pieces))


@lru_cache(maxsize=256)
def can_be_empty(pattern: str) -> bool:
    """Whether a match of a regular expression can be empty, also between a letter and an end of the text."""
    found = "SELECT list_contains(regexp_extract_all('', $1) || regexp_extract_all('a', $1), '')"
    with scratch() as connection:
        [(empty,)] = connection.execute(found, [pattern]).fetchall()
    return bool(empty)


@lru_cache(maxsize=256)
def _fault(pattern: str) -> str | None:
    # There is no parser for RE2 in Python, so DuckDB checks the pattern.
    with scratch() as connection:
        try:
            connection.execute("SELECT regexp_matches('', $1)", [pattern])
        except duckdb.Error as error:
            return str(error).split("\n", 1)[0].partition(": ")[2]
    return None
