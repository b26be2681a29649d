"""The Dialect of Spark, for Spark's own server and for other servers that support Spark Connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from svcctl.service.engines.duckdb.dialect import DuckDBDialect, can_be_empty
from svcctl.service.engines.spark import dates
from svcctl.service.engines.spark.patterns import body_of_group
from svcctl.service.engines.spark.sql import SparkSql, WideSum, bound
from svcctl.service.language import json_member
from svcctl.service.language.dialect import DatePattern
from svcctl.service.language.json_path import JsonStep

POSITION = "(position)"
"""The name of the column from which plans read a row's position. The engine supplies this column."""
_MIN_INT8 = exp.Cast(this=exp.Literal.string(str(-(2**63))), to=exp.DataType(this=exp.DType.BIGINT))
_TRIED: Mapping[type[exp.Expr], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
    exp.Mod: "try_mod",
}


class SparkDialect:
    name = SparkSql.__name__.lower()
    ip4 = exp.DType.BIGINT

    def attempt(self, sql: exp.Expr) -> exp.Expr:
        match sql:
            case exp.Paren():
                return exp.Paren(this=self.attempt(sql.this))
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
                return exp.func(_TRIED[type(sql)], self.attempt(sql.left), self.attempt(sql.right))
            case exp.Neg():
                return exp.Paren(this=exp.Neg(this=_but_smallest(sql.this)))
            case exp.Abs():
                return exp.Abs(this=_but_smallest(sql.this))
            case exp.UnixToTime():
                microseconds = exp.func("try_multiply", sql.this, exp.Literal.number(1000))
                return exp.func("timestamp_micros", microseconds)
        return sql

    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        return WideSum(this=sql)

    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        return exp.Cast(this=sql, to=exp.DataType(this=exp.DType.DOUBLE))

    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        return exp.TryCast(this=sql, to=to)

    def first_match(self, texts: list[exp.Expr], pattern: str, group: int) -> exp.Expr:
        # Servers return "" in three cases: there is no match, the group takes no part in the match, or the match of the
        # group is empty. So "" becomes null if the match of the group cannot be empty.
        text, copy = texts
        body = body_of_group(pattern, group)
        if body is None:
            return exp.Cast(this=exp.Null(), to=exp.DataType(this=exp.DType.VARCHAR))
        written = exp.Literal.string(pattern)
        first = exp.RegexpExtract(this=text, expression=written, group=exp.Literal.number(group))
        if group and not can_be_empty(body):
            return exp.Nullif(this=first, expression=exp.Literal.string(""))
        there = exp.RegexpLike(this=copy, expression=written.copy())
        return exp.Case(ifs=[exp.If(this=there, true=first)])

    def float_text(self, sql: exp.Expr) -> exp.Expr:
        return bound(sql, _float_text)

    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        return dates.formatted(value, pattern)

    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        return dates.parsed(text, pattern)

    def repeat(self, value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        return bound(value, lambda text: body(exp.var(text)).sql(self.name))

    def json_member(self, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        return json_member.member(_SparkJson(), text, path)

    def position(self) -> exp.Expr:
        return exp.column(POSITION, table="t", quoted=True)

    def check_pattern(self, pattern: str) -> str | None:
        return DuckDBDialect().check_pattern(pattern)


class _SparkJson:
    """Spark's SQL for operations on JSON texts.

    A path such as `a.b` is looked up in two calls: first `a`, then `b`. With one call for the whole path, the results
    of servers differ if several members have the same name.
    """

    def replace_matches(self, sql: exp.Expr, pattern: str, replacement: str, times: int = 1) -> exp.Expr:
        texts = (exp.Literal.string(pattern), exp.Literal.string(replacement))
        if times == 1:
            return exp.Anonymous(this="regexp_replace", expressions=[sql, *texts])
        once = exp.Anonymous(this="regexp_replace", expressions=[exp.var("s"), *texts])
        step = exp.var(f"(s, i) -> {once.sql(SparkDialect.name)}")
        count = exp.Anonymous(this="sequence", expressions=[exp.Literal.number(1), exp.Literal.number(times)])
        return exp.Anonymous(this="aggregate", expressions=[count, sql, step])

    def look_up(self, sql: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        for step in path:
            written = exp.Literal.string(f"$[{step}]" if isinstance(step, int) else f"$['{step}']")
            sql = exp.Anonymous(this="get_json_object", expressions=[sql, written])
        return sql

    def bind(self, sql: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        return SparkDialect().repeat(sql, body)


def _but_smallest(sql: exp.Expr) -> exp.Expr:
    """Return SQL that replaces the smallest int8 number by null, because its negative is not an int8."""
    return exp.Nullif(this=sql, expression=_MIN_INT8.copy())


def _float_text(x: str) -> str:
    """Return SQL that converts a float8 to text, as in `Dialect.float_text`."""
    text = f"CAST({x} AS STRING)"
    plain = rf"regexp_replace(CAST(try_cast({text} AS DECIMAL(38, 21)) AS STRING), '(\\.[0-9]+?)0+$', '$1')"
    mantissa = rf"regexp_replace(regexp_extract({text}, '^[^eE]+', 0), '\\.0$', '')"
    # some servers write numbers from 0.00001 without an exponent
    small = rf"regexp_replace(regexp_replace({text}, '^(-?)0\\.0*([1-9])', '$1$2.'), '\\.$', '')"
    zeros = rf"length(regexp_extract({text}, '^-?0\\.(0*)', 1))"
    exponent = f"try_cast(regexp_extract({text}, '[eE]([+-]?[0-9]+)', 1) AS INT)"
    return (
        f"CASE WHEN {x} IS NULL THEN NULL WHEN isnan({x}) THEN 'nan' "
        f"WHEN abs({x}) = CAST('Infinity' AS DOUBLE) THEN CASE WHEN {x} > 0D THEN 'inf' ELSE '-inf' END "
        f"WHEN NOT {text} RLIKE '[eE]' AND ({x} = 0D OR abs({x}) >= 0.0001D) THEN {text} "
        f"WHEN NOT {text} RLIKE '[eE]' THEN concat({small}, 'e-', lpad(CAST({zeros} + 1 AS STRING), 2, '0')) "
        f"WHEN abs({x}) >= 0.0001D AND abs({x}) < 1e16D THEN {plain} "
        f"ELSE concat({mantissa}, CASE WHEN {exponent} < 0 THEN 'e-' ELSE 'e+' END, "
        f"lpad(CAST(abs({exponent}) AS STRING), greatest(2, length(CAST(abs({exponent}) AS STRING))), '0')) END"
    )
