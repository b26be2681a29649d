"""From a tree back to text, in one canonical form: what jobs store and what an error quotes.

Parentheses appear only where the tree needs them, so reading the text again gives an equal tree.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address

from svcctl.service.language import tree
from svcctl.service.language.parser import RESERVED, UNITS
from svcctl.service.language.types import Type

_NAME = re.compile(r"[^\W\d]\w*")
_BINDING = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_NOT, _COMPARISON, _MINUS, _ATOM = 3, 4, 7, 8
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_text(query: tree.Query) -> str:
    """The query in one line."""
    clauses = [f"from {_dotted(query.table)}", *map(_clause, query.clauses)]
    pragmas = [f"pragma {_dotted(key)}: {_string(value)}" for key, value in query.pragmas]
    return " ".join(clauses + pragmas)


def expression_text(expr: tree.Expr) -> str:
    """One expression, without parentheses around it."""
    return _expression(expr)[0]


def _clause(clause: tree.Clause) -> str:
    match clause:
        case tree.Where(conditions):
            return "where " + ", ".join(map(expression_text, conditions))
        case tree.Select(items):
            return "select " + _items(items)
        case tree.Group(every, by):
            return "group" + (f" every {_period(every)}" if every else "") + (f" by {_items(by)}" if by else "")
        case tree.Limit(count):
            return f"limit {count}"
        case tree.Offset(count):
            return f"offset {count}"


def _items(items: tuple[tree.Item | tree.Star, ...]) -> str:
    return ", ".join(map(_item, items))


def _item(item: tree.Item | tree.Star) -> str:
    if isinstance(item, tree.Star):
        return "*"
    return expression_text(item.expr) + (f" as {_name(item.name)}" if item.name is not None else "")


def _expression(expr: tree.Expr) -> tuple[str, int]:
    """The text and how tightly it binds."""
    match expr:
        case tree.Literal():
            return _literal(expr), _ATOM
        case tree.Column(name):
            return _name(name), _ATOM
        case tree.Call(name, arguments):
            return f"{_name(name)}({', '.join(map(expression_text, arguments))})", _ATOM
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
            return _string(str(literal.value))
        case Type.BOOL:
            return "true" if literal.value else "false"
        case Type.IP4:
            return str(IPv4Address(literal.value))
    return repr(literal.value)


def _string(text: str) -> str:
    return '"' + "".join(_ESCAPED.get(character, character) for character in text) + '"'


def _period(seconds: int) -> str:
    unit, size = next((unit, size) for unit, size in UNITS.items() if seconds % size == 0)
    return f"{seconds // size}{unit}"


def _is_plain(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in RESERVED


def _name(name: str) -> str:
    return name if _is_plain(name) else _quoted(name)


def _dotted(name: str) -> str:
    return name if all(map(_is_plain, name.split("."))) else _quoted(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
