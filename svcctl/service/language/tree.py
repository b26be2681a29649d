"""The tree of a query. The parser builds the tree, the compiler turns it into SQL, the printer writes expressions.

Two nodes with equal contents are equal, even if their places in the text (`at`) differ.

The parser brings every query into one normal form. A select before `from` is moved after the last group, or to the end
of a query without a group. `every` becomes a part of the group. `/=` becomes `!=`. A minus before a number is part of
the number. `a and b and c` is one node with a list of three operands. The same applies to `or`, sums and products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from svcctl.errors import QueryPosition
from svcctl.service.language.query_error import NOWHERE
from svcctl.service.language.types import Type

KEYWORDS = ("select", "from", "where", "group", "every", "by", "limit", "offset", "pragma", "as")
RESERVED = frozenset((*KEYWORDS, "and", "or", "not", "in", "true", "false", "null"))
"""The reserved words, which can be names only in back quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    at: QueryPosition = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant in a query. Null has the type None. An address (type ip4) is stored as a number."""

    type: Type | None
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ColumnRef(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Minus(Node):
    """A minus before an operand that is not a literal number."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """A sum or a product: `first`, then pairs (operator, operand).

    The operators of a sum are + and -. The operators of a product are *, / and %.
    """

    first: Expr
    rest: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """A chain of comparisons: `first`, then pairs (operator, operand). For example, `a < x < b` has two pairs.

    A test (->, ->> or ~) always has one pair.
    """

    first: Expr
    rest: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Membership(Node):
    operand: Expr
    options: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Inside(Node):
    """The test whether an address is in a network: `operand <- network/bits`.

    A single address is a network of 32 bits.
    """

    operand: Expr
    network: int
    bits: int


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Expr


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """A condition: two or more operands that are joined by `and` or `or`."""

    operator: str
    operands: tuple[Expr, ...]


Expr = Literal | ColumnRef | Call | Minus | Arithmetic | Comparison | Membership | Inside | Not | Logic


@dataclass(frozen=True, slots=True)
class Star(Node):
    """`*` in a select: all columns of the previous select, group or table."""


@dataclass(frozen=True, slots=True)
class Item(Node):
    expr: Expr
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Where(Node):
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Select(Node):
    items: tuple[Item | Star, ...]


@dataclass(frozen=True, slots=True)
class Group(Node):
    """A group clause. `every` is the period in seconds, or None for a group without a period."""

    every: int | None
    by: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Limit(Node):
    count: int


@dataclass(frozen=True, slots=True)
class Offset(Node):
    count: int


Clause = Where | Select | Group | Limit | Offset


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A parsed query. `at` is the place of the table's name. A pragma is a pair (key, value)."""

    table: str
    clauses: tuple[Clause, ...] = ()
    pragmas: tuple[tuple[str, str], ...] = ()


def operands(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of an expression, from left to right."""
    match expr:
        case Literal() | ColumnRef():
            return ()
        case Call(arguments=inner) | Logic(operands=inner):
            return inner
        case Minus(operand=inner) | Not(operand=inner) | Inside(operand=inner):
            return (inner,)
        case Arithmetic() | Comparison():
            return (expr.first, *(operand for _, operand in expr.rest))
        case Membership():
            return (expr.operand, *expr.options)


def expressions(clause: Clause) -> tuple[Expr, ...]:
    """Return the outermost expressions of a clause."""
    match clause:
        case Where():
            return clause.conditions
        case Select(items=items) | Group(by=items):
            return tuple(item.expr for item in items if isinstance(item, Item))
        case Limit() | Offset():
            return ()


def walk(expr: Expr) -> Iterator[tuple[Expr, int]]:
    """Yield an expression and all expressions inside it, from left to right, each with its depth.

    The outermost expression has depth 1. Every five operands of a sum or product add one level to the depth, because
    SQL nests the operands.
    """
    waiting = [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        below = depth + (1 + len(node.rest) // 5 if isinstance(node, Arithmetic) else 1)
        waiting += [(inner, below) for inner in reversed(operands(node))]
