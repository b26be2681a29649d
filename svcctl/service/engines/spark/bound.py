"""A value that a piece of Spark's SQL needs several times."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

SHORT = 80
"""Values up to so many characters are repeated; Spark does not compile the lambdas that the others are bound by."""


class Bound(exp.Expression):
    """SQL written by `body` from the SQL of the value `this`."""

    arg_types = {"this": True, "body": True}  # noqa: RUF012


def bound(value: exp.Expr, body: Callable[[str], str]) -> exp.Expr:
    return Bound(this=value, body=body)


def written(value: str, body: Callable[[str], str]) -> str:
    if len(value) <= SHORT:
        return f"({body(value)})"
    return f"get(transform(array({value}), x -> {body('x')}), 0)"
