"""A query is translated when its plan is made: for another SQL it is either said right or refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from sqlglot import exp, parse_one

from svcctl.service.language import FUNCTIONS, Column, Function, Plan, QueryError, Table, Type
from svcctl.service.language.dialect import DatePart, DatePattern, Dialect
from svcctl.service.language.json_path import JsonStep, path_text
from svcctl.service.language.query_error import UnplacedError

Compiled = Callable[..., Plan]

TABLE = Table(
    "t",
    (
        Column("eventdate", Type.TIMESTAMP),
        Column("user", Type.STR),
        Column("status", Type.INT4),
        Column("seconds", Type.FLOAT8),
    ),
)


class Unprepared:
    """A dialect of Spark that says everything as DuckDB does."""

    name = "spark"
    ip4 = exp.DType.BIGINT

    def attempt(self, sql: exp.Expr) -> exp.Expr:
        return exp.Try(this=sql)

    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        return exp.Try(this=exp.Sum(this=sql))

    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        return exp.cast(sql, "DOUBLE")

    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        return exp.TryCast(this=sql, to=to)

    def first_match(self, texts: list[exp.Expr], pattern: str, group: int) -> exp.Expr:
        match = exp.Literal.string(pattern), exp.Literal.number(group)
        return exp.RegexpExtract(this=texts[0], expression=match[0], group=match[1])

    def float_text(self, sql: exp.Expr) -> exp.Expr:
        raise UnplacedError("numbers cannot be written here")

    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        raise UnplacedError("dates cannot be formatted here")

    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        raise UnplacedError("dates cannot be parsed here")

    def repeat(self, value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        return body(value)

    def json_member(self, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        raise UnplacedError("JSON cannot be read here")

    def position(self) -> exp.Expr | None:
        return None

    def check_pattern(self, pattern: str) -> str | None:
        return None


class Prepared(Unprepared):
    """A dialect with Spark's own functions for what differs."""

    def attempt(self, sql: exp.Expr) -> exp.Expr:
        match sql:
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
                name = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Mod: "mod"}[type(sql)]
                return exp.func(f"try_{name}", sql.left, sql.right)
            case exp.Neg():
                return exp.func("try_subtract", exp.Literal.number(0), sql.this)
            case exp.Abs():
                negated = exp.func("try_subtract", exp.Literal.number(0), sql.this.copy())
                test = exp.LT(this=sql.this.copy(), expression=exp.Literal.number(0))
                return exp.Case(ifs=[exp.If(this=test, true=negated)], default=sql.this)
        return sql

    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        return exp.func("try_sum", sql)

    def json_member(self, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        return exp.func("get_json_object", text, exp.Literal.string(f"$.{path_text(path)}"))

    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        return exp.func("date_format", value, _java(pattern))

    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        return exp.func("try_to_timestamp", text, _java(pattern))


def _java(pattern: DatePattern) -> exp.Expr:
    """The pattern as Java writes it: texts in quotes."""
    pieces = (part.value if isinstance(part, DatePart) else "'" + part.replace("'", "''") + "'" for part in pattern)
    return exp.Literal.string("".join(pieces))


def plan_of(compiled: Compiled, expression: str, dialect: Dialect, *, group: bool = False) -> Plan:
    query = f"from t {'group ' if group else ''}select {expression} as x"
    return compiled(query, catalog={"t": TABLE}, dialect=dialect)


def refused(compiled: Compiled, expression: str, *, group: bool = False) -> str | None:
    try:
        plan = plan_of(compiled, expression, Unprepared(), group=group)
    except QueryError as error:
        return str(error)
    parse_one(plan.select.sql("spark"), read="spark")
    return None


CANNOT_TRY = "line 1, column 6: this engine cannot run the query: Unsupported TRY function"
REFUSED = {
    "abs": CANNOT_TRY,
    "avg": CANNOT_TRY,
    "sum": CANNOT_TRY,
    "timestamp": CANNOT_TRY,
    "jsonparse": "line 1, column 15: JSON cannot be read here",
    "today": "line 1, column 15: dates cannot be formatted here",
    "yesterday": "line 1, column 15: dates cannot be formatted here",
    "formatdate": "line 1, column 15: dates cannot be formatted here",
    "epoch": "line 1, column 21: dates cannot be parsed here",
    "year": "line 1, column 20: dates cannot be parsed here",
    "month": "line 1, column 21: dates cannot be parsed here",
    "day": "line 1, column 19: dates cannot be parsed here",
    "hour": "line 1, column 20: dates cannot be parsed here",
    "minute": "line 1, column 22: dates cannot be parsed here",
    "second": "line 1, column 22: dates cannot be parsed here",
}


def test_what_a_dialect_cannot_say_is_refused_when_the_plan_is_made(compiled: Compiled) -> None:
    found = {
        function.name: message
        for function in FUNCTIONS.values()
        if (message := refused(compiled, function.example, group=function.aggregate))
    }
    assert found == REFUSED
    assert refused(compiled, "status + 1") == CANNOT_TRY
    assert refused(compiled, "seconds / 2.0") is None


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_every_function_can_be_said_in_another_sql(function: Function, compiled: Compiled) -> None:
    plan = plan_of(compiled, function.example, Prepared(), group=function.aggregate)
    sql = plan.select.sql("spark")
    parse_one(sql, read="spark")
    assert re.findall(r"\bTRY\(|\bUINT|%[a-zA-Z]|rowid", sql) == []


def test_arithmetic_and_dates_are_said_in_the_dialect_s_words(compiled: Compiled) -> None:
    def sql(expression: str) -> str:
        return plan_of(compiled, expression, Prepared()).select.sql("spark").partition(" AS `x` ")[0]

    assert sql("status * 2 - 1") == (
        "SELECT TRY_SUBTRACT(TRY_MULTIPLY(CAST(`t`.`status` AS BIGINT), CAST(2 AS BIGINT)), CAST(1 AS BIGINT))"
    )
    assert sql("formatdate(eventdate, \"yyyy-MM-dd'T'HH:mm:ss.SSS\")") == (
        "SELECT DATE_FORMAT(`t`.`eventdate`, 'yyyy\\'-\\'MM\\'-\\'dd\\'T\\'HH\\':\\'mm\\':\\'ss\\'.\\'SSS')"
    )
    assert sql("ip4(status)") == (
        "SELECT CASE WHEN (`t`.`status` >= 0) AND (`t`.`status` <= 4294967295) THEN CAST(`t`.`status` AS BIGINT) END"
    )


def test_rows_of_one_date_keep_the_order_that_a_dialect_knows(compiled: Compiled) -> None:
    assert plan_of(compiled, "user", Prepared()).select.sql("spark").endswith("ORDER BY `t`.`eventdate` NULLS LAST")
