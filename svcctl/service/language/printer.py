"""Write an expression's tree as text in one canonical form. A column that has no other name gets this text as its name.

Parentheses appear only where the tree needs them. Parsing the text again gives an equal tree.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address

from svcctl.service.language import tree
from svcctl.service.language.tree import RESERVED
from svcctl.service.language.types import Type

_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_BINDING = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_NOT, _COMPARISON, _MINUS, _ATOM = 3, 4, 7, 8
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def expression_text(expr: tree.Expr) -> str:
    """Write an expression as text, without parentheses around it."""
    return _expression(expr)[0]


def item_text(item: tree.Item) -> str:
    """Write an item of a select or a group as text. If the item has a name, `as` and the name are at the end."""
    return expression_text(item.expr) + ("" if item.name is None else f" as {name_text(item.name)}")


def _expression(expr: tree.Expr) -> tuple[str, int]:
    """Return the text of an expression, and the precedence of its operator. A higher number binds more tightly."""
    match expr:
        case tree.Literal():
            return _literal(expr), _ATOM
        case tree.ColumnRef(name):
            return name_text(name), _ATOM
        case tree.Call(name, arguments):
            return f"{name_text(name)}({', '.join(map(expression_text, arguments))})", _ATOM
        case tree.Minus(operand):
            return "-" + _within(operand, _MINUS), _MINUS
        case tree.Arithmetic(first, rest):
            binding = _BINDING[rest[0][0]]
            return _chain(first, rest, binding + 1), binding
        case tree.Comparison(first, rest):
            return _chain(first, rest, _COMPARISON + 1), _COMPARISON
        case tree.Membership(operand, options):
            inside = ", ".join(map(expression_text, options))
            return f"{_within(operand, _COMPARISON + 1)} in {{{inside}}}", _COMPARISON
        case tree.Inside(operand, network, bits):
            suffix = "" if bits == 32 else f"/{bits}"
            return f"{_within(operand, _COMPARISON + 1)} <- {IPv4Address(network)}{suffix}", _COMPARISON
        case tree.Not(operand):
            return "not " + _within(operand, _NOT), _NOT
        case tree.Logic(operator, operands):
            binding = _BINDING[operator]
            return f" {operator} ".join(_within(operand, binding + 1) for operand in operands), binding


def _chain(first: tree.Expr, rest: tuple[tuple[str, tree.Expr], ...], least: int) -> str:
    return " ".join([_within(first, least), *(f"{operator} {_within(operand, least)}" for operator, operand in rest)])


def _within(expr: tree.Expr, least: int) -> str:
    text, binding = _expression(expr)
    return text if binding >= least else f"({text})"


def _literal(literal: tree.Literal) -> str:
    match literal.type:
        case None:
            return "null"
        case Type.STR:
            return string_text(str(literal.value))
        case Type.BOOL:
            return "true" if literal.value else "false"
        case Type.IP4:
            return str(IPv4Address(literal.value))
    return repr(literal.value)


def string_text(text: str) -> str:
    """Write a string as a literal of the query language."""
    return '"' + "".join(_ESCAPED.get(character, character) for character in text) + '"'


def name_text(name: str) -> str:
    """Write the name of a table, a column or a function. A name that needs back quotes is in back quotes."""
    plain = _NAME.fullmatch(name) is not None and name not in RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"
