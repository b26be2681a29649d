"""The building blocks of SQL for expressions, and the classes for compiled expressions.

This module never writes SQL as text. Strings and numbers in a query become literals of sqlglot, and names become
identifiers. The ExpressionContext has the engine's Dialect, which builds the SQL that differs between engines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum

from sqlglot import exp

from svcctl.service.language.dialect import Dialect
from svcctl.service.language.query_error import UnplacedError
from svcctl.service.language.text_bound import TextBound
from svcctl.service.language.types import Type

Sql = exp.Expr


class Special(StrEnum):
    """Types that an expression can have, but a column cannot have."""

    NULL = "null"
    REGEX = "regex"
    GLOB = "glob"


@dataclass(frozen=True, slots=True)
class CompiledValue:
    """A compiled expression. If the expression is a literal or a pattern in the query, `literal` is its value.

    Some aggregates need a second step after the group. For such an aggregate, the group computes the `parts`, and
    `whole` builds the SQL of the second step from the columns of the parts. `sql` is then not used.

    `bound` is the maximum length of the value as text.
    """

    sql: Sql
    type: Type | Special
    literal: str | float | None = None
    parts: tuple[Sql, ...] = ()
    whole: Callable[..., Sql] | None = None
    bound: TextBound = field(default_factory=TextBound)

    def computed_by(self, sql: Sql) -> CompiledValue:
        """Return this value with other SQL. The new value is not a literal."""
        return CompiledValue(sql, self.type, bound=self.bound)


@dataclass(slots=True)
class ExpressionContext:
    """The context in which the expressions of a query are compiled.

    `dialect` is the dialect of the engine, `now` is the value of now(), and `zone` is the time zone of today(). `time`
    is the SQL of a row's eventdate. `time` is None if rows have no eventdate. `spare` is the number of SQL nodes that
    may still be added to the nodes of the query itself. Without this limit, a short query with nested calls could
    become a huge statement.
    """

    dialect: Dialect
    now: datetime
    zone: tzinfo
    time: Sql | None = None
    spare: int = 10_000

    def spend(self, nodes: int) -> None:
        self.spare -= nodes
        if self.spare < 0:
            raise UnplacedError("the query is too complex", hint="compute repeated expressions in an earlier select")

    def copies(self, sql: Sql, count: int) -> list[Sql]:
        """Return `count` nodes: the expression and `count - 1` copies.

        Raises UnplacedError if there are too many nodes.
        """
        self.spend(sum(1 for _ in sql.walk()) * (count - 1))
        return [sql, *(sql.copy() for _ in range(count - 1))]

    def cast(self, sql: Sql, to: Type) -> Sql:
        return exp.Cast(this=sql, to=self.sql_type(to))

    def try_cast(self, sql: Sql, to: Type) -> Sql:
        """Return SQL that converts a value to another type. A value that does not fit becomes null."""
        return self.dialect.try_cast(sql, self.sql_type(to))

    def attempt(self, sql: Sql) -> Sql:
        """Return SQL that gives the value of an expression, or null if the computation would fail or overflow."""
        return self.dialect.attempt(sql)

    def sql_type(self, type_: Type) -> exp.DataType:
        return exp.DataType(this=self.dialect.ip4 if type_ is Type.IP4 else SQL_TYPES[type_])


SQL_TYPES = {
    Type.TIMESTAMP: exp.DType.TIMESTAMP,
    Type.STR: exp.DType.VARCHAR,
    Type.INT4: exp.DType.INT,
    Type.INT8: exp.DType.BIGINT,
    Type.FLOAT8: exp.DType.DOUBLE,
    Type.BOOL: exp.DType.BOOLEAN,
}
"""The SQL types that are the same in every engine. The SQL type of an address is in the dialect."""
INTEGERS = (Type.INT4, Type.INT8)
NUMBERS = (*INTEGERS, Type.FLOAT8)


def string(text: str) -> Sql:
    return exp.Literal.string(text)


def number(value: int) -> Sql:
    return exp.Literal.number(value) if value >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(-value)))


def paren(sql: Sql) -> Sql:
    """Put an expression in parentheses if it needs parentheses as an operand."""
    loose = isinstance(sql, exp.Binary | exp.Unary | exp.Between | exp.In) and not isinstance(sql, exp.Paren)
    return exp.Paren(this=sql) if loose else sql


def moment(value: datetime) -> Sql:
    """Return SQL for a moment as a timestamp in UTC and without a zone, like the timestamps of events."""
    text = string(without_zone(value).isoformat(sep=" ", timespec="microseconds"))
    return exp.Cast(this=text, to=exp.DataType(this=SQL_TYPES[Type.TIMESTAMP]))


def without_zone(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None)


def case_when(*pairs: tuple[Sql, Sql], default: Sql | None = None) -> Sql:
    """Return a CASE WHEN expression. Each element of `pairs` is a condition and its result.

    CASE WHEN is also used in place of NULLIF. An engine would expand NULLIF to a CASE WHEN with two copies of the
    value. These copies would not count towards the limit on the size of the SQL.
    """
    return exp.Case(ifs=[exp.If(this=condition, true=result) for condition, result in pairs], default=default)


def equal(left: Sql, right: Sql) -> Sql:
    return exp.EQ(this=paren(left), expression=paren(right))


def member(context: ExpressionContext, sql: Sql, options: list[Sql]) -> Sql:
    """Return SQL for the condition that a value equals one of the options.

    If there are fewer than five options, or if an option contains a column, the options become comparisons that are
    joined by OR. Otherwise, the SQL uses IN. An engine would expand an IN with few options or with columns to
    comparisons, too. But then the copies of the value would not count towards the limit on the size of the SQL.
    """
    if len(options) < 5 or any(option.find(exp.Column) for option in options):
        tests = map(equal, context.copies(sql, len(options)), options)
        return join_conditions(exp.Or, list(tests))
    return exp.In(this=paren(sql), expressions=options)


def null_if(context: ExpressionContext, sql: Sql, value: Sql) -> Sql:
    tested, result = context.copies(sql, 2)
    return case_when((equal(tested, value), exp.null()), default=result)


def join_conditions(connector: type[exp.Connector], conditions: list[Sql]) -> Sql:
    first, *rest = map(paren, conditions) if len(conditions) > 1 else conditions
    for condition in rest:
        first = connector(this=first, expression=condition)
    return first


def matches(value: Sql, pattern: str) -> Sql:
    return exp.RegexpLike(this=value, expression=string(pattern))


def contains(text: Sql, part: Sql) -> Sql:
    return exp.Contains(this=text, expression=part)


def contains_any_case(text: Sql, part: Sql) -> Sql:
    return contains(exp.Lower(this=text), exp.Lower(this=part))


def epoch_ms(value: Sql) -> Sql:
    return exp.UnixMillis(this=value)


def from_epoch_ms(value: Sql) -> Sql:
    return exp.UnixToTime(this=value, scale=exp.Literal.number(3))


def bucket(time: Sql, seconds: int) -> Sql:
    """Return SQL for the start of the period that contains a moment. Periods are counted from the start of 1970."""
    span = number(seconds * 1000)
    past = exp.Mod(this=epoch_ms(time.copy()), expression=span)
    past = exp.Mod(this=exp.Paren(this=exp.Add(this=past, expression=span.copy())), expression=span.copy())
    return from_epoch_ms(exp.Sub(this=epoch_ms(time), expression=past))
