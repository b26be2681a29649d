"""Compiles expressions of a query to typed SQL, over the rows of a clause.

This module implements these rules of the language:

- If a compared value is null, the comparison is never true, and its negation is never true, either. Only the tests
  `x = null` and `x != null` find out whether `x` has a value.
- A number in quotes counts as a number if it is compared with a number.
- Arithmetic on whole numbers is done in int8, and gives null if the result overflows.
- `/` always gives float8. Dividing by zero, with `/` or `%`, gives null.
- `+` joins two strings. It cannot join a string and a value of another type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlglot import exp

from svcctl.api.foreign_functions import function_answer
from svcctl.service.language import tree
from svcctl.service.language.functions import FUNCTIONS, SECTIONS, Function, common
from svcctl.service.language.habits import (
    COMMENT,
    address_answer,
    column_answer,
    comparison_answer,
    network_answer,
    text_answer,
)
from svcctl.service.language.json_path import path_text
from svcctl.service.language.parser import quoted_number
from svcctl.service.language.printer import expression_text, name_text, string_text
from svcctl.service.language.query_error import QueryError, UnplacedError, one_of
from svcctl.service.language.sql import (
    INTEGERS,
    NUMBERS,
    CompiledValue,
    ExpressionContext,
    Special,
    Sql,
    contains,
    contains_any_case,
    join_conditions,
    matches,
    member,
    null_if,
    number,
    paren,
    string,
)
from svcctl.service.language.text_bound import TextBound
from svcctl.service.language.types import Type
from svcctl.words import choices, did_you_mean

_COMPARE: Mapping[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
_CALCULATE: Mapping[str, type[exp.Binary]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "%": exp.Mod,
}
_COMPARED_ARGUMENTS = {"in": (-1, slice(None, -1)), "decode": (0, slice(1, -1, 2))}
"""The functions that compare one argument with other arguments.

Each row has the index of this argument, and the slice of the other arguments.
"""
_LOGIC: Mapping[str, type[exp.Connector]] = {"and": exp.And, "or": exp.Or}
_CONVERSIONS = {
    (Type.STR, Type.TIMESTAMP): "parsedate converts a string to a timestamp",
    (Type.TIMESTAMP, Type.INT4): "timestamp(…) converts milliseconds to a timestamp",
    (Type.TIMESTAMP, Type.INT8): "timestamp(…) converts milliseconds to a timestamp",
    (Type.STR, Type.IP4): "ip4(…) converts a string to an address",
    (Type.STR, Type.INT4): "str(…) converts to a string, float8(…) to a number",
    (Type.STR, Type.INT8): "str(…) converts to a string, float8(…) to a number",
    (Type.STR, Type.FLOAT8): "str(…) converts to a string, float8(…) to a number",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression can use in one clause of a query.

    `columns` has the columns that a name can mean. `aggregates` has the calls that the group before the clause
    computes. `aggregates` is None if there is no group. `hidden_names` has the columns that only exist before the
    group. An expression cannot use these columns, but a hint can mention them.
    """

    context: ExpressionContext
    columns: Mapping[str, CompiledValue]
    aggregates: Mapping[tree.Call, CompiledValue] | None = None
    hidden_names: frozenset[str] = field(default=frozenset())

    def condition(self, expr: tree.Expr) -> Sql:
        """Compile an expression that must be a bool. Raises QueryError for any other type."""
        value = self.value(expr)
        if value.type not in (Type.BOOL, Special.NULL):
            hint = 'compare it with a column; for several values: user in {"a", "b"}' if value.literal else None
            raise QueryError(f"a condition must be a bool, not {value.type}", expr.at, hint=hint)
        return value.sql

    def value(self, expr: tree.Expr) -> CompiledValue:
        """Compile an expression. Raises QueryError for an unknown name or a wrong type."""
        match expr:
            case tree.Literal():
                return _literal(self.context, expr)
            case tree.ColumnRef():
                return self._column(expr)
            case tree.Call():
                return self._call(expr)
            case tree.Minus():
                return self._minus(expr)
            case tree.Arithmetic():
                return self._arithmetic(expr)
            case tree.Comparison():
                return self._comparison(expr)
            case tree.Membership():
                return self._membership(expr)
            case tree.Inside():
                return self._inside(expr)
            case tree.Not():
                return CompiledValue(exp.Not(this=paren(self.condition(expr.operand))), Type.BOOL)
            case tree.Logic():
                conditions = [self.condition(operand) for operand in expr.operands]
                return CompiledValue(join_conditions(_LOGIC[expr.operator], conditions), Type.BOOL)

    def aggregate(self, call: tree.Call) -> CompiledValue:
        """Compile an aggregate over the rows of a group. Raises QueryError for an aggregate inside an aggregate."""
        for argument in call.arguments:
            for inner, _ in tree.walk(argument):
                if isinstance(inner, tree.Call) and _is_aggregate(inner):
                    raise QueryError(f"{inner.name} is inside {call.name}; aggregates cannot be nested", inner.at)
        self.check_name(*(node for argument in call.arguments for node, _ in tree.walk(argument)))
        return self._apply(call, FUNCTIONS[call.name])

    def _column(self, column: tree.ColumnRef) -> CompiledValue:
        if value := self.columns.get(column.name):
            return value.computed_by(value.sql.copy())
        hint = self._name_answer(column.name) or column_answer(column.name) or did_you_mean(column.name, self.columns)
        if column.name in self.hidden_names:
            hint = "after group there are only its keys and aggregates; first(…) keeps a value"
        raise QueryError(f"no column '{column.name}'", column.at, hint=hint or _among("columns", self.columns))

    def _name_answer(self, name: str) -> str | None:
        """Return the hint for an unknown name. Return None if there is no hint.

        The hint is one of these:
        - the columns whose names begin with `name` and a dot
        - a column with a similar name
        - a call of jsonparse, if `name` is the name of a text column, a dot and more text
        - the column that is named like the part of `name` after a dot
        """
        if members := [column for column in self.columns if column.startswith(f"{name}.")]:
            return f"columns of {name} are {choices(members)}"
        alike = [column for column in self.columns if column.count(".") == name.count(".")]
        if near := did_you_mean(name, alike, words=False):
            return near
        for dot in reversed([index for index, character in enumerate(name) if character == "."]):
            text, rest = self.columns.get(name[:dot]), name[dot + 1 :]
            if text is not None and text.type is Type.STR:
                path = string_text(path_text(rest.split(".")))
                return f"a member of JSON text in {name[:dot]}: jsonparse({name_text(name[:dot])}, {path})"
            if rest in self.columns:
                return f"a column is named without its table: {name_text(rest)}"
        return did_you_mean(name, self.columns, words=False)

    def _compared_value(self, expr: tree.Expr) -> CompiledValue:
        """Compile the right side of a comparison. For an unknown name, the hint may say that text must be in quotes."""
        if isinstance(expr, tree.ColumnRef) and expr.name not in self.columns and expr.name not in self.hidden_names:
            hint = self._name_answer(expr.name) or text_answer(expr.name)
            raise QueryError(f"no column '{expr.name}'", expr.at, hint=hint)
        return self.value(expr)

    def _subtrahend(self, expr: tree.Expr) -> CompiledValue:
        """Compile the operand of a minus. For an unknown name after `--`, the hint explains how to write a comment."""
        match expr:
            case tree.Minus(operand=tree.ColumnRef(name)) if name not in self.columns and name not in self.hidden_names:
                raise QueryError(f"no column '{name}'", expr.operand.at, hint=COMMENT)
        return self.value(expr)

    def _call(self, call: tree.Call) -> CompiledValue:
        function = FUNCTIONS.get(call.name)
        if function is None:
            raise _no_function(call, {*self.columns, *self.hidden_names})
        if not function.aggregate:
            return self._apply(call, function)
        if self.aggregates is None:
            hint = "write group or group by … before select"
            raise QueryError(f"{call.name} is an aggregate, and there is no group before it", call.at, hint=hint)
        computed = self.aggregates[call]
        return computed.computed_by(computed.sql.copy())

    def _apply(self, call: tree.Call, function: Function) -> CompiledValue:
        values = [self.value(argument) for argument in call.arguments]
        if len(values) > 1 and call.name in _COMPARED_ARGUMENTS:
            single, others = _COMPARED_ARGUMENTS[call.name]
            values[single], values[others] = _as_numbers(self.context, values[single], values[others], call)
        types = ", ".join(value.type for value in values)
        if call.name == "count" and types == Type.BOOL and _is_condition(call.arguments[0]):
            hint = f"write sum(int({expression_text(call.arguments[0])})), or a where before the group"
            raise QueryError("count would also count rows where this is false", call.at, hint=hint)
        try:
            for overload in function.overloads:
                if value := overload.apply(self.context, values):
                    return value
        except UnplacedError as refused:
            at = call.at if refused.argument is None else call.arguments[refused.argument].at
            raise QueryError(refused.message, at, hint=refused.hint) from None
        place = function.overloads[-1].computed_argument(values)
        if place is not None:
            message = f"argument {place + 1} of {call.name} must be a literal, not an expression"
            raise QueryError(message, call.arguments[place].at, hint=f"for example {function.example}")
        takes = one_of(f"({signature.rpartition('->')[0].strip()})" for signature in function.signatures)
        hint = f"for example {function.example}"
        if function.aggregate and types == Type.BOOL:
            hint = f"write {call.name}(int({expression_text(call.arguments[0])}))"
        raise QueryError(f"{call.name} takes {takes}, not ({types})", call.at, hint=hint)

    def _minus(self, expr: tree.Minus) -> CompiledValue:
        value = self._subtrahend(expr.operand)
        if value.type in INTEGERS:
            with _place_errors(expr):
                return CompiledValue(
                    self.context.attempt(exp.Neg(this=paren(_as(self.context, value, Type.INT8)))), Type.INT8
                )
        if value.type is Type.FLOAT8:
            return CompiledValue(exp.Neg(this=paren(value.sql)), Type.FLOAT8)
        if value.type is Type.STR and (hint := network_answer(str(value.literal))):
            raise QueryError("<- takes a network, not str", expr.at, hint=hint)
        raise QueryError(f"- takes a number, not {value.type}", expr.at)

    def _arithmetic(self, expr: tree.Arithmetic) -> CompiledValue:
        first = self.value(expr.first)
        left = first.computed_by(paren(first.sql))
        for operator, operand in expr.rest:
            with _place_errors(operand):
                right = self._subtrahend(operand) if operator == "-" else self.value(operand)
                left = _calculate(self.context, left, operator, right, operand)
        return left

    def check_name(self, *exprs: tree.Expr) -> None:
        """Raise QueryError if one of the expressions is the name of a column in quotes.

        The user probably meant the column. In some other query languages, names are in quotes. If any of the
        expressions uses a column, no error is raised.
        """
        if any(isinstance(node, tree.ColumnRef) for expr in exprs for node, _ in tree.walk(expr)):
            return
        for expr in exprs:
            if isinstance(expr, tree.Literal) and expr.type is Type.STR and expr.value in self.columns:
                hint = f"a name is not in quotes: {name_text(str(expr.value))}"
                raise QueryError(f"'{expr.value}' is a text here, not the column", expr.at, hint=hint)

    def _comparison(self, expr: tree.Comparison) -> CompiledValue:
        self.check_name(expr.first, *(operand for _, operand in expr.rest))
        left = self.value(expr.first)
        conditions = []
        for index, (operator, operand) in enumerate(expr.rest):
            right = self._compared_value(operand)
            follower = right
            if index + 1 < len(expr.rest):
                with _place_errors(operand):
                    right_sql, follower_sql = self.context.copies(right.sql, 2)
                right, follower = replace(right, sql=right_sql), replace(right, sql=follower_sql)
            conditions.append(_compare(self.context, left, operator, right, expr))
            left = follower
        return CompiledValue(join_conditions(exp.And, conditions), Type.BOOL)

    def _membership(self, expr: tree.Membership) -> CompiledValue:
        self.check_name(expr.operand)
        value = self.value(expr.operand)
        options = [self._compared_value(option) for option in expr.options]
        value, options = _as_numbers(self.context, value, options, expr)
        for option, node in zip(options, expr.options, strict=True):
            if option.type is Special.NULL:
                raise QueryError("nothing equals null", node.at, hint="use isnull(…)")
            _check_comparable(value, option, node)
        with _place_errors(expr):
            return CompiledValue(member(self.context, value.sql, [option.sql for option in options]), Type.BOOL)

    def _inside(self, expr: tree.Inside) -> CompiledValue:
        value = self.value(expr.operand)
        if value.type is not Type.IP4:
            raise QueryError(f"<- takes an ip4 before it, not {value.type}", expr.at, hint="ip4(…) converts to one")
        size = 1 << (32 - expr.bits)
        low = expr.network // size * size
        with _place_errors(expr):
            lower, upper = self.context.copies(paren(value.sql), 2)  # engines rewrite BETWEEN in this way
        above = exp.GTE(this=lower, expression=self.context.cast(number(low), Type.IP4))
        below = exp.LTE(this=upper, expression=self.context.cast(number(low + size - 1), Type.IP4))
        return CompiledValue(join_conditions(exp.And, [above, below]), Type.BOOL)


def aggregates_in(exprs: tuple[tree.Expr, ...], names: Collection[str]) -> Iterator[tree.Call]:
    """Find the outermost calls of aggregates in expressions. Raises QueryError for a function that does not exist.

    `names` has the names of columns, for the hint of this error.
    """
    inner_calls: set[int] = set()
    for expr in exprs:
        for node, _ in tree.walk(expr):
            if isinstance(node, tree.Call) and node.name not in FUNCTIONS:
                raise _no_function(node, names)
            if isinstance(node, tree.Call) and _is_aggregate(node) and id(node) not in inner_calls:
                inner_calls.update(id(inner) for argument in node.arguments for inner, _ in tree.walk(argument))
                yield node


def _no_function(call: tree.Call, names: Collection[str]) -> QueryError:
    # a column such as `Amount (EUR)`, written without back quotes, is parsed as a call of Amount
    meant = (name for name in sorted(names) if name.replace(" ", "").startswith(f"{call.name}("))
    hint = next((f"write the column in back quotes: `{name}`" for name in meant), None)
    arguments = ", ".join(map(expression_text, call.arguments)) or "…"
    first, _, method = call.name.rpartition(".")
    if first and method in FUNCTIONS:
        hint = hint or f"write {method}({', '.join((name_text(first), *map(expression_text, call.arguments)))})"
    hint = hint or function_answer(method, arguments) or did_you_mean(method, FUNCTIONS)
    return QueryError(
        f"no function '{call.name}'", call.at, hint=hint, reason="unknown-function", data={"function": call.name}
    )


def _is_aggregate(call: tree.Call) -> bool:
    return call.name in FUNCTIONS and FUNCTIONS[call.name].aggregate


def _is_condition(expr: tree.Expr) -> bool:
    """Return whether an expression is a condition.

    A condition is refused in count(…), which would also count the rows in which the condition is false.
    """
    if isinstance(expr, tree.Call):
        return expr.name in {function.name for function in SECTIONS["tests"]}
    return isinstance(expr, tree.Comparison | tree.Membership | tree.Inside | tree.Not | tree.Logic)


@contextmanager
def _place_errors(node: tree.Expr) -> Iterator[None]:
    """Turn an UnplacedError in a `with` block into a QueryError at the place of a node."""
    try:
        yield
    except UnplacedError as refused:
        raise QueryError(refused.message, node.at, hint=refused.hint) from None


def _literal(context: ExpressionContext, literal: tree.Literal) -> CompiledValue:
    constant = literal.value
    match literal.type:
        case None:
            return CompiledValue(exp.null(), Special.NULL)
        case Type.STR:
            return CompiledValue(
                string(str(constant)), Type.STR, str(constant), bound=TextBound.of_literal(str(constant))
            )
        case Type.BOOL:
            return CompiledValue(exp.true() if constant else exp.false(), Type.BOOL)
        case Type.INT4 if int(constant or 0) >= 0:
            return CompiledValue(number(int(constant or 0)), Type.INT4, constant)
        case Type.FLOAT8:
            return CompiledValue(context.cast(string(repr(constant)), Type.FLOAT8), Type.FLOAT8, constant)
    value = context.cast(number(int(constant or 0)), literal.type)
    return CompiledValue(value, literal.type, constant if literal.type is Type.IP4 else None)


def _calculate(
    context: ExpressionContext, left: CompiledValue, operator: str, right: CompiledValue, at: tree.Expr
) -> CompiledValue:
    """Compile one operation of a sum or product. `left` is everything before the operator, and needs no parentheses."""
    if operator == "+" and _both(left, right, (Type.STR,)):
        joins = exp.DPipe(this=_as(context, left, Type.STR), expression=paren(_as(context, right, Type.STR)))
        return CompiledValue(joins, Type.STR, bound=left.bound.joined(right.bound))
    if not _both(left, right, NUMBERS):
        hint = None
        if operator == "+" and Type.STR in (left.type, right.type):
            hint = "str(…) converts to a string; + joins strings"
        elif Type.STR in (left.type, right.type):
            hint = "float8(…) converts to a number"
        elif Type.TIMESTAMP in (left.type, right.type):
            hint = "epoch(…) gives a timestamp's milliseconds"
        raise QueryError(f"{operator} cannot take {left.type} and {right.type}", at.at, hint=hint)
    whole = operator != "/" and left.type in (*INTEGERS, Special.NULL) and right.type in (*INTEGERS, Special.NULL)
    result = Type.INT8 if whole else Type.FLOAT8
    first, second = _as(context, left, result), paren(_as(context, right, result))
    if whole and isinstance(first, exp.Try):  # a single attempt covers the whole chain of operations
        first = paren(first.this) if operator in "*%" and isinstance(first.this, exp.Add | exp.Sub) else first.this
    if operator in "/%" and not whole and not right.literal:
        second = null_if(context, second, number(0))
    calculated = _CALCULATE[operator](this=first, expression=second)
    return CompiledValue(context.attempt(calculated) if whole else calculated, result)


def _both(left: CompiledValue, right: CompiledValue, types: tuple[Type, ...]) -> bool:
    """Return whether each operand has a type from `types`. One of the operands, but not both, may be null instead."""
    allowed = (*types, Special.NULL)
    return left.type in allowed and right.type in allowed and not left.type is right.type is Special.NULL


def _as(context: ExpressionContext, value: CompiledValue, to: Type) -> Sql:
    return value.sql if value.type is to else context.cast(value.sql, to)


def _compare(
    context: ExpressionContext, left: CompiledValue, operator: str, right: CompiledValue, at: tree.Expr
) -> Sql:
    if operator == "~":
        if left.type is not Type.STR or right.type not in (Special.REGEX, Special.GLOB):
            hint = f're("{right.literal}") is a pattern; -> "{right.literal}" finds a part' if right.literal else None
            hint = "str(…) converts to a string" if left.type is not Type.STR else hint
            raise QueryError(f'~ takes a str and re("…"), not {left.type} and {right.type}', at.at, hint=hint)
        return matches(left.sql, str(right.literal))
    if operator in ("->", "->>"):
        if left.type is not Type.STR or right.type is not Type.STR:
            hint = "str(…) converts to a string" if left.type is not Type.STR else None
            raise QueryError(f"{operator} takes two strings, not {left.type} and {right.type}", at.at, hint=hint)
        return contains(left.sql, right.sql) if operator == "->" else contains_any_case(left.sql, right.sql)
    if Special.NULL in (left.type, right.type) and operator in ("=", "!="):
        operand = right if left.type is Special.NULL else left
        is_null = exp.Is(this=paren(operand.sql), expression=exp.null())
        return is_null if operator == "=" else exp.Not(this=is_null)
    left, [right] = _as_numbers(context, left, [right], at)
    _check_comparable(left, right, at)
    return _COMPARE[operator](this=paren(left.sql), expression=paren(right.sql))


def _as_number(context: ExpressionContext, value: CompiledValue, other: CompiledValue, at: tree.Expr) -> CompiledValue:
    """Convert a literal text to a number if it is compared with a number. Return any other value unchanged."""
    if value.type is not Type.STR or value.literal is None or other.type not in NUMBERS:
        return value
    number = quoted_number(str(value.literal), at.at)
    return value if number is None else _literal(context, number)


def _as_numbers(
    context: ExpressionContext, value: CompiledValue, others: list[CompiledValue], at: tree.Expr
) -> tuple[CompiledValue, list[CompiledValue]]:
    """Convert literal texts to numbers if they are compared with a number.

    `value` is compared with each of `others`.
    """
    for other in others:
        value = _as_number(context, value, other, at)
    return value, [_as_number(context, other, value, at) for other in others]


def _check_comparable(left: CompiledValue, right: CompiledValue, at: tree.Expr) -> None:
    if isinstance(left.type, Special) or isinstance(right.type, Special):
        hint = "a pattern follows ~" if right.type in (Special.REGEX, Special.GLOB) else None
        raise QueryError(f"cannot compare {left.type} with {right.type}", at.at, hint=hint)
    if common(left.type, right.type) is None:
        text, other = (left, right) if left.type is Type.STR else (right, left)
        hint = None
        if text.literal is not None:
            hint = comparison_answer(str(text.literal), other.type)
        elif text.type is Type.STR and other.type is Type.IP4 and other.literal is not None:
            hint = address_answer(int(other.literal))
        elif Type.TIMESTAMP in (left.type, right.type) and (date := _unquoted_date(at)):
            hint = comparison_answer(date, Type.TIMESTAMP)
        hint = hint or _CONVERSIONS.get((left.type, right.type)) or _CONVERSIONS.get((right.type, left.type))
        raise QueryError(f"cannot compare {left.type} with {right.type}", at.at, hint=hint)


def _unquoted_date(at: tree.Expr) -> str | None:
    """Find a date without quotes in a comparison. Return None if there is no such date.

    The parser reads a date without quotes as two subtractions.
    """
    operands = (at.first, *(operand for _, operand in at.rest)) if isinstance(at, tree.Comparison) else (at,)
    for operand in operands:
        match operand:
            case tree.Arithmetic(
                tree.Literal(Type.INT4, year),
                (("-", tree.Literal(Type.INT4, month)), ("-", tree.Literal(Type.INT4, day))),
            ):
                return f"{year:04}-{month:02}-{day:02}"
    return None


def _among(what: str, names: Mapping[str, object]) -> str:
    return f"{what} are {choices(names)}"
