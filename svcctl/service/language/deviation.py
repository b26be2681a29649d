"""Mean and standard deviation of whole numbers. The result is the same to the last digit in every engine and every run.

The last digit of a float8 sum depends on the order in which rows are added up. So the sums are computed as whole
numbers, and only the last division is done in float8. The SELECT that groups the rows computes the sums. The SELECT
around it applies the formula to the sums.
"""

from __future__ import annotations

from sqlglot import exp

from svcctl.service.language.sql import CompiledValue, ExpressionContext, Sql, case_when, number
from svcctl.service.language.types import Type

_MAX_EXACT_SPREAD = 2**56
"""The limit below which the result of `deviation_of_halves` is exact.

`deviation_of_halves` splits each number into an upper and a lower half. The limit applies to the `_spread` of the upper
halves. Below the limit, all sums fit into 126 bits.
"""


def mean(context: ExpressionContext, value: Sql) -> CompiledValue:
    """Return the mean of whole numbers.

    The SELECT that groups the rows computes the count and the sum. The SELECT around it divides the sum by the count.
    """
    counted, added = context.copies(value, 2)

    def result(count: Sql, total: Sql) -> Sql:
        divided = exp.Div(this=context.dialect.float_of_wide(total), expression=context.cast(count, Type.FLOAT8))
        return case_when((count > 0, divided))

    parts = (exp.Count(this=counted), context.dialect.wide_sum(added))
    return CompiledValue(exp.null(), Type.FLOAT8, parts=parts, whole=result)


def deviation(context: ExpressionContext, value: Sql) -> CompiledValue:
    """Return the sample standard deviation of whole numbers whose squares fit int8."""
    counted, added, *factors = context.copies(value, 4)
    first, second = (context.cast(factor, Type.INT8) for factor in factors)

    def result(count: Sql, total: Sql, squares: Sql) -> Sql:
        return _root(context, count, context.dialect.float_of_wide(_spread(count, squares, total, total)))

    wide = context.dialect.wide_sum
    parts = (exp.Count(this=counted), wide(added), wide(first * second))
    return CompiledValue(exp.null(), Type.FLOAT8, parts=parts, whole=result)


def deviation_of_halves(context: ExpressionContext, value: Sql) -> CompiledValue:
    """Return the sample standard deviation of int8 numbers of any size.

    Each number is split into two halves: number = upper * 2^32 + lower + 2^31. Both halves are between -2^31 and 2^31.
    """
    counted, *copies = context.copies(exp.paren(value), 9)
    upper = [exp.paren(exp.BitwiseRightShift(this=copy, expression=number(32))) for copy in copies[:4]]
    lower = [exp.BitwiseAnd(this=copy, expression=number(2**32 - 1)) - 2**31 for copy in copies[4:]]

    def result(count: Sql, high: Sql, low: Sql, highs: Sql, lows: Sql, products: Sql) -> Sql:
        above, below = _spread(count, highs, high, high), _spread(count, lows, low, low)
        between = _spread(count, products, high, low)
        exact = context.dialect.float_of_wide((above * 2**32 + between * 2) * 2**32 + below)
        first, second, third = map(context.dialect.float_of_wide, (above, between, below))
        near = first * _power(context, 64) + second * _power(context, 33) + third
        return _root(context, count, case_when((above < _MAX_EXACT_SPREAD, exact), default=near))

    products = (upper[0], lower[0], upper[1] * upper[2], lower[1] * lower[2], upper[3] * lower[3])
    parts = (exp.Count(this=counted), *map(context.dialect.wide_sum, products))
    return CompiledValue(exp.null(), Type.FLOAT8, parts=parts, whole=result)


def _spread(count: Sql, products: Sql, first_sum: Sql, second_sum: Sql) -> Sql:
    """Return SQL for count² times the covariance of two series.

    The series have `count` numbers each. `first_sum` and `second_sum` are the sums of the series. Each number of one
    series is multiplied by its counterpart in the other series, and `products` is the sum of these products.
    """
    return exp.paren(count * products - first_sum * second_sum)


def _root(context: ExpressionContext, count: Sql, spread: Sql) -> Sql:
    """Return SQL for the square root of spread / (count * (count - 1)).

    The SQL gives null for fewer than two values.
    """
    float_count, float_count_less_one = (
        context.cast(count.copy(), Type.FLOAT8),
        context.cast(exp.paren(count - 1), Type.FLOAT8),
    )
    variance = exp.Div(this=exp.paren(spread), expression=exp.paren(float_count * float_count_less_one))
    return case_when((count > 1, exp.Sqrt(this=variance)))


def _power(context: ExpressionContext, bits: int) -> Sql:
    return context.cast(exp.Literal.string(repr(2.0**bits)), Type.FLOAT8)
