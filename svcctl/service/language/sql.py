"""The pieces of SQL that expressions are built from, and the values that are passed while building.

Nothing here writes SQL text: strings and numbers of a query become literals of sqlglot, and names its identifiers.
The Context has the engine's Dialect, for SQL that differs between engines.
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
    """The types of expressions that a column of events cannot have."""

    NULL = "null"
    REGEX = "regex"
    GLOB = "glob"


@dataclass(frozen=True, slots=True)
class Value:
    """A compiled expression. `written` is its value if it is a literal or a pattern in the query.

    An aggregate may need a second step after its group: then the group computes its `parts`, `whole` makes the SQL of
    the second step from the columns of the parts, and `sql` has no meaning.

    `bound` limits the length of the value as a text.
    """

    sql: Sql
    type: Type | Special
    literal: str | float | None = None
    parts: tuple[Sql, ...] = ()
    whole: Callable[..., Sql] | None = None
    bound: TextBound = field(default_factory=TextBound)

    def computed_by(self, sql: Sql) -> Value:
        """The same value, from other SQL; it is no literal any more."""
        return Value(sql, self.type, bound=self.bound)


@dataclass(slots=True)
class Context:
    """What an expression may depend on besides its arguments, and the engine's dialect.

    `time` is the eventdate of a row, where rows have one. `spare` is how many SQL nodes may still be added beyond those
    that the query spells out: without a limit, nested calls would double the copies of their arguments at every level.
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
        """The expression and `count - 1` copies of it."""
        self.spend(sum(1 for _ in sql.walk()) * (count - 1))
        return [sql, *(sql.copy() for _ in range(count - 1))]

    def cast(self, sql: Sql, to: Type) -> Sql:
        return exp.Cast(this=sql, to=self.sql_type(to))

    def try_cast(self, sql: Sql, to: Type) -> Sql:
        """The value as another type, or null where it does not fit."""
        return self.dialect.try_cast(sql, self.sql_type(to))

    def attempt(self, sql: Sql) -> Sql:
        """The value of the expression, or null where the engine would fail, on overflow for example."""
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
"""The SQL types that are the same in every engine; the type of an address is in the dialect."""
INTEGERS = (Type.INT4, Type.INT8)
NUMBERS = (*INTEGERS, Type.FLOAT8)


def string(text: str) -> Sql:
    return exp.Literal.string(text)


def number(value: int) -> Sql:
    return exp.Literal.number(value) if value >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(-value)))


def paren(sql: Sql) -> Sql:
    """An expression as an operand: in parentheses, if it needs them there."""
    loose = isinstance(sql, exp.Binary | exp.Unary | exp.Between | exp.In) and not isinstance(sql, exp.Paren)
    return exp.Paren(this=sql) if loose else sql


def moment(value: datetime) -> Sql:
    """A moment as a timestamp of events: in UTC, without a zone."""
    text = string(without_zone(value).isoformat(sep=" ", timespec="microseconds"))
    return exp.Cast(this=text, to=exp.DataType(this=SQL_TYPES[Type.TIMESTAMP]))


def without_zone(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None)


def case_when(*pairs: tuple[Sql, Sql], default: Sql | None = None) -> Sql:
    """The result of the first condition that is true.

    Engines expand NULLIF, and CASE with an operand, into this form at every level, so that a short text could become a
    long computation. It is expanded here, so that `Context.spare` counts the copies.
    """
    return exp.Case(ifs=[exp.If(this=condition, true=result) for condition, result in pairs], default=default)


def equal(left: Sql, right: Sql) -> Sql:
    return exp.EQ(this=paren(left), expression=paren(right))


def member(context: Context, sql: Sql, options: list[Sql]) -> Sql:
    """True if a value equals one of the options.

    A short IN, or an IN over columns, is expanded into comparisons here: engines would do so, and the copies of the
    value must be counted.
    """
    if len(options) < 5 or any(option.find(exp.Column) for option in options):
        tests = map(equal, context.copies(sql, len(options)), options)
        return join_conditions(exp.Or, list(tests))
    return exp.In(this=paren(sql), expressions=options)


def null_if(context: Context, sql: Sql, value: Sql) -> Sql:
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
    """The start of the period that a moment is in; all periods are aligned to the epoch, also those before it."""
    span = number(seconds * 1000)
    past = exp.Mod(this=epoch_ms(time.copy()), expression=span)
    past = exp.Mod(this=exp.Paren(this=exp.Add(this=past, expression=span.copy())), expression=span.copy())
    return from_epoch_ms(exp.Sub(this=epoch_ms(time), expression=past))
