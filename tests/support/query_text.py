"""Writes a query's tree as text in one canonical form: the inverse of the parser, for its tests."""

from __future__ import annotations

from svcctl.dates.lengths import UNITS
from svcctl.service.language import tree
from svcctl.service.language.printer import expression_text, name_text, string_text


def to_text(query: tree.Query) -> str:
    """The query as text in one line."""
    clauses = [f"from {_dotted(query.table)}", *map(_clause, query.clauses)]
    pragmas = [f"pragma {_dotted(key)}: {string_text(value)}" for key, value in query.pragmas]
    return " ".join(clauses + pragmas)


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
    return expression_text(item.expr) + (f" as {name_text(item.name)}" if item.name is not None else "")


def _period(seconds: int) -> str:
    unit = next(unit for unit in "dhms" if seconds % UNITS[unit] == 0)
    return f"{seconds // UNITS[unit]}{unit}"


def _dotted(name: str) -> str:
    """A table's name, in back quotes unless none of its parts needs them."""
    parts = [name_text(part) for part in name.split(".")]
    return name if parts == name.split(".") else "`" + name.replace("`", "``") + "`"
