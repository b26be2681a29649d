"""Writes Spark's SQL with sqlglot, and corrects the SQL where Spark differs from the query language.

The results are the same as in the embedded engine. Aggregates skip nulls. A number halfway between two results is
rounded away from zero. Percentiles are interpolated linearly. Zeros keep their sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator

MAX_ROWS = 2**31 - 1
"""The maximum limit and the maximum offset that Spark accepts."""
_ALL_WHOLE = "9007199254740992D"
"""2^53. Every float8 from this number upwards is a whole number.

These numbers are not cast to Spark's int8, because the cast may overflow.
"""
_SPLIT = "134217729D"
"""2^27 + 1. This factor splits a float8 into two halves. The product of two such halves is exact."""
REPEATED = 80
"""An expression may repeat the SQL of its value if this SQL has at most this many characters.

Longer SQL is passed to a lambda. For short SQL, repeating is faster, because Spark does not compile lambdas.
"""
MAX_DEPTH = 12
"""The maximum nesting depth of expressions whose kind is a key of BODIES.

These expressions may repeat the SQL of their value. With deeper nesting, servers take too long.
"""
Body = Callable[[str], str]
Write = Callable[[Generator, exp.Expr], str]


class Bound(exp.Expression):
    """An expression with a value (`this`) and a function (`body`).

    The function makes the SQL of the expression from the SQL of the value. The SQL of the expression may contain the
    SQL of the value several times.
    """

    arg_types = {"this": True, "body": True}  # noqa: RUF012


def bound(value: exp.Expr, body: Body) -> exp.Expr:
    return Bound(this=value, body=body)


class WideSum(exp.Expression, exp.AggFunc):
    """A sum of whole numbers that may be larger than int8, as in `Dialect.wide_sum`."""

    arg_types = {"this": True}  # noqa: RUF012


def _text(template: str) -> Write:
    """Return a function that writes SQL from a template.

    In the template, {0} is the node's `this`, and {1} is the node's `expression`.
    """
    return lambda generator, node: template.format(generator.sql(node, "this"), generator.sql(node, "expression"))


def _wide_sum(generator: Generator, node: exp.Expr) -> str:
    """Write SQL that sums the upper and the lower 32 bits of the numbers separately.

    This is faster than a sum of decimals.
    """
    value = f"CAST({generator.sql(node, 'this')} AS BIGINT)"
    high = f"CAST(try_sum(shiftright({value}, 32)) AS DECIMAL(38, 0)) * 4294967296"
    return f"({high} + try_sum({value} & 4294967295))"


def _whole(name: str, zero: str) -> Callable[[exp.Expr], Body]:
    """Return a function that writes SQL for floor or ceil of a float8.

    Spark's own functions return an int8. So they cannot return large numbers or the sign of zero.
    """
    return lambda _: (
        lambda x: (
            f"CASE WHEN {zero.format(x)} THEN {x} * 0D "
            f"WHEN abs({x}) < {_ALL_WHOLE} THEN CAST({name}({x}) AS DOUBLE) ELSE {x} END"
        )
    )


def _round(node: exp.Expr) -> Body:
    """Return a function that writes SQL for rounding a float8 to a number of decimals.

    This SQL multiplies the value by a power of ten, rounds the product and divides again. Spark's own function would
    round the decimal text of the value.
    """
    scale = f"1e{int(node.args['decimals'].this)}D"
    return lambda x: (
        f"CASE WHEN {x} * {scale} <= 0D AND {x} * {scale} > -0.5D THEN {x} * 0D "
        f"WHEN abs({x} * {scale}) < {_ALL_WHOLE} THEN round({x} * {scale}, 0) / {scale} ELSE {x} END"
    )


BODIES: Mapping[type[exp.Expr], Callable[[exp.Expr], Body]] = {
    Bound: lambda node: node.args["body"],
    exp.Ceil: _whole("ceil", "{0} > -1D AND {0} <= 0D"),
    exp.Floor: _whole("floor", "{0} >= 0D AND {0} < 1D"),
    exp.Round: _round,
}
"""The functions that return the `Body` of an expression, keyed by the kind of the expression.

A Body is a function that makes the SQL of the expression from the SQL of its value. The result may contain the SQL of
the value several times.
"""


def _percentile(generator: Generator, node: exp.Expr) -> str:
    """Write SQL for a percentile: one of the sorted values, or an interpolation between two of them.

    The interpolation is low * (1 - d) + high * d. The embedded engine does not round the first product, because it uses
    a fused multiply-add. To get the same result, this SQL adds two rounding errors to the sum: the error `e` of the
    first product, and the error of the addition. T. J. Dekker's method computes `e` from the halves of both factors. If
    `e` is not a number, no error is added.
    """
    place = f"((size(a) - 1) * {generator.sql(node, 'expression') or '0.5'}D)"
    low, high = (f"get(a, CAST({way}({place}) AS INT))" for way in ("floor", "ceil"))
    above = f"({place} - floor({place}))"
    w = "(1D - x.d)"
    steps = {
        "x": {"l": low, "h": high, "d": above},
        "y": {
            "p": f"x.l * {w}",
            "t": "x.h * x.d",
            "lh": f"x.l * {_SPLIT} - (x.l * {_SPLIT} - x.l)",
            "wh": f"{w} * {_SPLIT} - ({w} * {_SPLIT} - {w})",
        },
        "z": {
            "s": "y.p + y.t",
            "e": f"((y.lh * y.wh - y.p) + y.lh * ({w} - y.wh) + (x.l - y.lh) * y.wh) + (x.l - y.lh) * ({w} - y.wh)",
        },
    }
    error = "((y.p - (z.s - (z.s - y.p))) + (y.t - (z.s - y.p))) + z.e"
    value = f"CASE WHEN x.l = x.h THEN x.l WHEN isnan(z.e) THEN z.s ELSE z.s + ({error}) END"
    for name, fields in reversed(steps.items()):
        step = ", ".join(f"'{field}', {sql}" for field, sql in fields.items())
        value = f"get(transform(array(named_struct({step})), {name} -> {value}), 0)"
    values = f"array_sort(collect_list({generator.sql(node, 'this')}))"
    return f"get(transform(array({values}), a -> {value}), 0)"


def _joined(generator: Generator, node: exp.Expr) -> str:
    """Write SQL that joins the distinct values of a group as text. Nulls are skipped."""
    distinct = node.find(exp.Distinct)
    assert distinct is not None
    value = generator.sql(distinct.expressions[0])
    text = f"array_join(array_sort(collect_set({value})), {generator.sql(node, 'expression')})"
    return f"CASE WHEN count({value}) > 0 THEN {text} END"


def _split(generator: Generator, node: exp.Expr) -> str:
    """Write SQL that splits a text by a separator and returns the part with a given index.

    An empty separator has its own SQL, because servers differ in splitting by an empty separator.
    """
    split, [index] = node.this, node.expressions
    text, by = generator.sql(split, "this"), split.expression.this
    if not by:
        return f"nullif(substring({text}, {int(index.this) + 1}, 1), '')"
    return f"get(split({text}, {generator.sql(exp.Literal.string(escaped(by)))}), {generator.sql(index)})"


def escaped(text: str) -> str:
    """Return a regular expression that matches a text, in Java and in Rust."""
    return "".join(char if char.isalnum() or not char.isascii() else f"\\x{ord(char):02X}" for char in text)


def _balanced(word: str) -> Write:
    """Return a function that writes a chain of AND or OR as a balanced tree.

    A long chain can crash servers, because they parse the chain by recursion.
    """

    def write(generator: Generator, node: exp.Expr) -> str:
        conditions = [generator.sql(condition) for condition in node.flatten(unnest=False)]

        def within(start: int, end: int) -> str:
            if end - start == 1:
                return conditions[start]
            middle = (start + end) // 2
            text = f"{within(start, middle)} {word} {within(middle, end)}"
            return text if end - start == len(conditions) else f"({text})"

        return within(0, len(conditions))

    return write


def _bound(generator: Generator, node: exp.Expr) -> str:
    depth = 0
    parent = node.parent
    while parent is not None:
        depth += type(parent) in BODIES
        parent = parent.parent
    if depth > MAX_DEPTH:
        generator.unsupported(f"more than {MAX_DEPTH} of its functions are nested in each other")
        return "NULL"
    value, body = generator.sql(node, "this"), BODIES[type(node)](node)
    if len(value) <= REPEATED:
        return f"({body(value)})"
    return f"get(transform(array({value}), x -> {body('x')}), 0)"


def _rows(word: str) -> Write:
    def write(generator: Generator, node: exp.Expr) -> str:
        count = int(node.expression.this)
        if count > MAX_ROWS:
            generator.unsupported(f"{word} can be at most {MAX_ROWS}")
        return generator.seg(f"{word} {count}")

    return write


class SparkSql(Spark):
    """Spark's SQL. Regular expressions must already be translated by `patterns.py`."""

    class Generator(SparkGenerator):
        TRANSFORMS = {  # noqa: RUF012
            **SparkGenerator.TRANSFORMS,
            **dict.fromkeys(BODIES, _bound),
            WideSum: _wide_sum,
            exp.ApproxDistinct: _text("count(DISTINCT {0})"),
            exp.ArgMax: _text("max_by({0}, {1}) FILTER (WHERE ({0}) IS NOT NULL)"),
            exp.ArgMin: _text("min_by({0}, {1}) FILTER (WHERE ({0}) IS NOT NULL)"),
            exp.ArrayToString: _joined,
            exp.Bracket: _split,
            exp.Limit: _rows("LIMIT"),
            exp.Median: _percentile,
            exp.And: _balanced("AND"),
            exp.Or: _balanced("OR"),
            exp.Offset: _rows("OFFSET"),
            exp.PercentileCont: _percentile,
            exp.RegexpExtract: lambda generator, node: (
                f"regexp_extract({', '.join(generator.sql(node, key) for key in ('this', 'expression', 'group'))})"
            ),
            exp.Replace: lambda generator, node: (
                f"replace({', '.join(generator.sql(node, key) for key in ('this', 'expression', 'replacement'))})"
            ),
            # The result of Trunc is always cast to a whole number. Apache Spark would cast 2^63 to the largest int8.
            exp.Trunc: _text("nullif({0}, 9223372036854775808D)"),
            # sqlglot would write CAST if it expects that the value always fits
            exp.TryCast: lambda generator, node: (
                f"try_cast({generator.sql(node, 'this')} AS {generator.sql(node, 'to')})"
            ),
            exp.UnixMillis: _text("unix_millis({0})"),
            exp.UnixToTime: _text("timestamp_millis({0})"),
        }
