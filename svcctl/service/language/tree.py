"""The tree of a query: the parser makes it, the compiler makes SQL of it, the printer makes text of its expressions.

Nodes are equal when they say the same, wherever they were in the text (`at`). The parser makes one normal form:
a leading select comes after the last group, or at the end; `every` belongs to its group; `/=` is `!=`; a minus before
a number is part of it; operands of one `and`, `or`, sum or product are side by side, not nested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from svcctl.errors import Place
from svcctl.service.language.query_error import NOWHERE
from svcctl.service.language.types import Type

KEYWORDS = ("select", "from", "where", "group", "every", "by", "limit", "offset", "pragma", "as")
RESERVED = frozenset((*KEYWORDS, "and", "or", "not", "in", "true", "false", "null"))
"""Words that are no names, but in back quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    at: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant; null has the type None. The value of an address (type ip4) is its number."""

    type: Type | None
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Column(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Minus(Node):
    """The negation of an operand that is not a number literal."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """`first`, then pairs (operator, operand) from left to right; the operators are all + and -, or all *, / and %."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`a < x < b` has two links; the tests ->, ->> and ~ have one."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Membership(Node):
    operand: Expr
    options: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Inside(Node):
    """`operand <- network/bits`; a lone address is a network of 32 bits."""

    operand: Expr
    network: int
    bits: int


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Expr


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """Two or more operands joined by `and` or `or`."""

    operator: str
    operands: tuple[Expr, ...]


Expr = Literal | Column | Call | Minus | Arithmetic | Comparison | Membership | Inside | Not | Logic


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
    """`every` is the period in seconds, or None for a group without a period."""

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
    """`at` is the place of the table's name; a pragma is a pair (key, value)."""

    table: str
    clauses: tuple[Clause, ...] = ()
    pragmas: tuple[tuple[str, str], ...] = ()


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside an expression, from left to right."""
    match expr:
        case Literal() | Column():
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
    """The outermost expressions of a clause."""
    match clause:
        case Where():
            return clause.conditions
        case Select(items=items) | Group(by=items):
            return tuple(item.expr for item in items if isinstance(item, Item))
        case Limit() | Offset():
            return ()


def walk(expr: Expr) -> Iterator[tuple[Expr, int]]:
    """An expression and all expressions inside it, each with its depth from 1, left before right, without recursion.

    A sum or product is a level deeper for every five operands: SQL nests them, and engines bound how deep.
    """
    waiting = [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        below = depth + (1 + len(node.rest) // 5 if isinstance(node, Arithmetic) else 1)
        waiting += [(inner, below) for inner in reversed(operands(node))]
