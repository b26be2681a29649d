"""Translate SQL to the query language. If people type SQL, a hint shows them the translation.

sqlglot parses the SQL. NODE_RULES has a rule for each kind of node that can be translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from svcctl.api.foreign_functions import function_answer
from svcctl.dates.lengths import UNITS
from svcctl.service.language.functions import FUNCTIONS
from svcctl.service.language.habits import ADDRESS, DATE, ONE_TABLE, SORTED, SORTS, blank_out
from svcctl.service.language.json_path import path_text
from svcctl.service.language.printer import name_text, string_text

MAX_SQL_CHARS = 4000
FORM = "a query is 'from TABLE where … group by … select …'"
"""The hint for SQL that has neither a translation nor a more precise hint."""
_BEGIN = re.compile(r"\s*(?:select|with|(from))\b", re.IGNORECASE)
_CLAUSE = re.compile(r"(?i)\b(from|select|where|having|group(?:\s+every\s+(\w+))?(?:\s+by)?|order\s+by|limit|offset)\b")
_ORDER = ("select", "from", "where", "group by", "having", "order by", "limit", "offset")
_PERIODS = {"SECOND": "1s", "MINUTE": "1m", "HOUR": "1h", "DAY": "1d"}
_TYPES = {"INT": "int", "BIGINT": "int8", "FLOAT": "float8", "DOUBLE": "float8", "TEXT": "str", "VARCHAR": "str"}


class Untranslatable(Exception):
    """Raised if a text cannot be translated.

    The text of the exception is a hint, or empty. `reason` becomes the reason of the error that shows the hint.
    """

    def __init__(self, hint: str = "", reason: str | None = None) -> None:
        super().__init__(hint)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of SQL: a query, a remark to print after the query, and the order of the rows.

    The query language cannot sort rows, so the order is in the mapping `sorting`. There, the key `sort` has the
    columns, such as `n:desc,m`. The key `top` has the number of rows if the SQL has a LIMIT.
    """

    query: str
    remark: str
    sorting: Mapping[str, str]


def query_from_sql(text: str) -> Translation:
    """Translate SQL, or a query with parts of SQL. Raises Untranslatable if there is no translation."""
    begin = _BEGIN.match(text)
    if begin is None or len(text) > MAX_SQL_CHARS:
        raise Untranslatable
    otherwise = "" if begin[1] else FORM
    try:
        # MySQL accepts double quotes around strings
        query, sorting = _query(sqlglot.parse_one(_in_order(text.rstrip("; \n")) if begin[1] else text, read="mysql"))
    except (SqlglotError, RecursionError, KeyError):  # KeyError: untranslated type, or missing argument
        raise Untranslatable(otherwise, otherwise and "not-a-query") from None
    except Untranslatable as error:
        if str(error):
            raise
        raise Untranslatable(otherwise, otherwise and "not-a-query") from None
    approximate = ", where hllppcount is approximate" if "hllppcount(" in query else ""
    return Translation(query, approximate + (" and sort the rows that it returns" if sorting else ""), sorting)


def _in_order(text: str) -> str:
    """Rearrange a query that contains parts of SQL, so that its clauses have the order of SQL.

    The period of `group every 5m` becomes a key, every('5m').
    """
    bodies: dict[str, str] = {}
    begins = list(_CLAUSE.finditer(blank_out(text)))
    for begin, end in zip(begins, [*(match.start() for match in begins[1:]), len(text)], strict=True):
        clause, body = " ".join(begin[1].lower().split()), text[begin.end() : end].strip()
        if clause == "where" and bodies.keys() & {"select", "group by"}:
            clause = "having"
        if clause.startswith("group"):
            clause, body = "group by", ", ".join(filter(None, (f"every('{begin[2]}')" * bool(begin[2]), body)))
        # in `from table word`, the word does not begin a clause
        mistyped = clause == "from" and len(body.split(",")[0].split()) == 2
        if clause in bodies or mistyped or "," in (body[:1], body[-1:]):
            raise Untranslatable
        bodies[clause] = f"({body}\n)" if clause in ("where", "having") else body
    written = {"select": "*"} | {clause: body for clause, body in bodies.items() if body or clause != "group by"}
    return " ".join(f"{clause} {written[clause]}" for clause in _ORDER if clause in written)


def _query(select: Any) -> tuple[str, Mapping[str, str]]:
    """Translate a SELECT into a query. Also return the order of the rows."""
    if select.find(exp.SetOperation, exp.Join, exp.Window):
        raise Untranslatable(ONE_TABLE)
    source: Any = select.args["from_"].this
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier) or select.args.get("with_"):
        raise Untranslatable
    table = ".".join(part.name for part in source.parts)
    for node in select.find_all(exp.Dot, exp.Column):
        if not isinstance(node.parent, exp.Dot):
            node.replace(_whole_column(node, (f"{source.alias}.", f"{table}.", f"{source.name}.")))
    clauses = ["from " + name_text(table)]
    if where := select.args.get("where"):
        clauses.append(f"where {_text(where.this.unnest())}")
    for date in select.find_all(exp.TsOrDsToDate):
        if isinstance(date.parent, exp.Year | exp.Month | exp.Day):
            date.replace(date.this)
    keys, items = _keys(select), select.expressions
    if keys or any(item.find(exp.AggFunc) for item in items):
        clauses.append(_group(keys))
        items = _with_names([_with_keys(item, keys) for item in items])
    if not (select.args.get("distinct") or all(isinstance(item, exp.Star) for item in items)):
        clauses.append("select " + ", ".join(map(_text, items)))
    if having := select.args.get("having"):
        clauses.append(f"where {_having_condition(_with_keys(having.this.unnest(), keys), items, keys)}")
    limits = {word: _text(node.expression) for word in ("offset", "limit") if (node := select.args.get(word))}
    names = [_sorted_by(ordered, items, keys) for ordered in select.find_all(exp.Ordered)]
    if names in ([], ["eventdate"]):  # rows have this order without sorting
        return " ".join(clauses + [f"{word} {count}" for word, count in limits.items()]), {}
    if "offset" in limits:
        raise Untranslatable(SORTED, SORTS)
    return " ".join(clauses), {"sort": ",".join(names)} | ({"top": limits["limit"]} if limits else {})


def _whole_column(node: Any, tables: tuple[str, ...]) -> exp.Column:
    """Join the dotted name of a column to one identifier, and leave out the name of its table."""
    if not all(part.args.get("quoted") or part.name.isidentifier() for part in node.parts):
        raise Untranslatable
    name = ".".join(part.name for part in node.parts)
    before = next((table for table in tables if name.startswith(table)), "")
    return exp.column(name.removeprefix(before), quoted=True)


def _keys(select: exp.Select) -> dict[Any, str]:
    """Return the expressions by which a SELECT groups, each with the name of its column.

    The column of a period is named `eventdate`.
    """
    items: list[Any] = select.expressions
    group = select.args.get("group")
    named = {item.alias: item.this for item in items if item.alias}
    names = {expr: alias for alias, expr in named.items()}
    keys: dict[Any, str] = {}
    for node in items if select.args.get("distinct") else group.expressions if group else ():
        key = _at_place(node, items).unalias()
        key = named.get(key.name, key) if isinstance(key, exp.Column) else key
        own = key.name if isinstance(key, exp.Column) else names.get(key, f"key{len(keys) + 1}")
        keys[key] = "eventdate" if _period(key) else own
    return keys


def _at_place(node: Any, items: list[Any]) -> Any:
    """Return the item of the SELECT that a number in GROUP BY or ORDER BY means. Return any other node unchanged."""
    counts = isinstance(node, exp.Literal) and node.is_int and 0 < int(node.name) <= len(items)
    return items[int(node.name) - 1] if counts else node


def _period(key: Any) -> str | None:
    """Return the period, such as `1h`, to which a key rounds eventdate down. Return None for any other key."""
    if isinstance(key, exp.Anonymous) and key.name == "every":
        return str(key.expressions[0].name)
    day = isinstance(key, exp.TsOrDsToDate) or (isinstance(key, exp.Cast) and key.is_type("date"))
    dated = isinstance(key.this, exp.Column) and key.this.name == "eventdate"
    return _PERIODS.get("DAY" if day else key.text("unit")) if dated else None


def _group(keys: Mapping[Any, str]) -> str:
    every = next((f" every {period}" for period in map(_period, keys) if period), "")
    by = ", ".join(_text(exp.alias_(key, name, quoted=True)) for key, name in keys.items() if not _period(key))
    return f"group{every}" + (f" by {by}" if by else "")


def _with_keys(node: Any, keys: Mapping[Any, str]) -> Any:
    """In an expression, replace each key of the group by the name of the key's column."""
    return node.transform(lambda inner: exp.column(keys[inner], quoted=True) if inner in keys else inner)


def _having_condition(condition: Any, items: list[Any], keys: Mapping[Any, str]) -> str:
    """Translate HAVING. Raises Untranslatable for a column that is neither selected nor a key."""
    names = {*keys.values(), *(item.alias_or_name for item in items)}
    free = (column for column in condition.find_all(exp.Column) if column.find_ancestor(exp.AggFunc) is None)
    if keys and any(column.name not in names for column in free):
        raise Untranslatable
    return _text(condition)


def _with_names(items: list[Any]) -> list[Any]:
    """In a select, give a name to each item that calls the same function as an earlier item.

    Without these names, several columns would have the name of the function.
    """
    again = [type(item) in map(type, items[:place]) and isinstance(item, exp.Func) for place, item in enumerate(items)]
    return [exp.alias_(item, f"{item.key}{n}") if again[n] else item for n, item in enumerate(items)]


def _sorted_by(ordered: Any, items: list[Any], keys: Mapping[Any, str]) -> str:
    """Translate one part of ORDER BY to the name of its column, with `:desc` if the order is descending."""
    expr = _at_place(_with_keys(ordered.this, keys), items)
    named = next((item for item in items if expr in (item, item.unalias())), expr)
    if not isinstance(named, exp.Column | exp.Alias) and not (isinstance(named, exp.Func) and named in items):
        raise Untranslatable(SORTED, SORTS)
    return (named.alias or _text(named).partition("(")[0].strip("`")) + ":desc" * bool(ordered.args.get("desc"))


def _text(node: Any) -> str:
    if isinstance(node, list):
        return ", ".join(map(_text, node))
    rule = NODE_RULES.get(type(node), _call)
    written = rule(node) if callable(rule) else re.sub(r"{(\w+)}", lambda name: _text(node.args[name[1]]), rule)
    return f"not {written}" if node.args.get("negate") else written


def _call(node: Any) -> str:
    """Translate a call of a function. Raises Untranslatable if the language has no such function."""
    if not isinstance(node, exp.Func):
        raise Untranslatable
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    arguments = ", ".join(map(_text, node.iter_expressions()))
    if name not in FUNCTIONS:
        raise Untranslatable(function_answer(name, arguments) or "")
    return f"{name}({arguments})"


def _literal(node: Any) -> str:
    """Translate a literal. A text in a comparison becomes a date or an address if the text looks like one."""
    text = string_text(node.this) if node.is_string else str(node.this)
    compared = node.is_string and isinstance(node.parent, exp.Predicate)
    if compared and ADDRESS.fullmatch(node.this):
        return str(node.this)
    return f"parsedate({text})" if compared and DATE.fullmatch(node.this) else text


def _like(node: Any) -> str:
    pattern, folded = str(node.expression.this), isinstance(node, exp.ILike)
    part = pattern.strip("%")
    if pattern == f"%{part}%" and not set("%_\\") & set(part):
        return f"{_text(node.this)} {'->>' if folded else '->'} {string_text(part)}"
    if folded or not isinstance(node.expression, exp.Literal) or set("*?\\") & set(pattern):
        raise Untranslatable
    return f"{_text(node.this)} ~ nameglob({string_text(pattern.replace('%', '*').replace('_', '?'))})"


def _json_member(node: Any) -> str:
    """Translate the operator `->` of SQL, which looks up a member of JSON text, to the function jsonparse.

    Where a condition is expected, the result is the operator `->` of the query language. This operator tests whether a
    text contains a part.
    """
    path, context = node.args.get("path") or node.expression, node.parent
    parts = path.expressions[1:] if isinstance(path, exp.JSONPath) else []
    steps = [part.this for part in parts if isinstance(part, exp.JSONPathKey | exp.JSONPathSubscript)]
    steps = [path.name] if isinstance(path, exp.Literal) else steps
    while isinstance(context, exp.Paren):
        context = context.parent
    condition = isinstance(context, exp.Where | exp.Having | exp.Connector | exp.Not)
    if not steps or len(steps) < len(parts) or not all(isinstance(step, str | int) for step in steps):
        raise Untranslatable(function_answer("json") or "")
    if condition and len(steps) == 1:
        return f"{_text(node.this)} {'->>' if isinstance(node, exp.JSONExtractScalar) else '->'} {_string(steps[0])}"
    return f"jsonparse({_text(node.this)}, {_string(path_text(steps))})"


def _string(text: str | int) -> str:
    return string_text(str(text))


def _case(node: Any) -> str:
    otherwise = node.args.get("default") or exp.null()
    for branch in reversed(node.args["ifs"]):
        condition = exp.EQ(this=node.this, expression=branch.this) if node.this else branch.this
        otherwise = exp.If(this=condition, true=branch.args["true"], false=otherwise)
    return _text(otherwise)


def _count(node: Any) -> str:
    if isinstance(node.this, exp.Distinct) and len(node.this.expressions) == 1:
        return f"hllppcount({_text(node.this.expressions[0])})"
    counts_rows = node.this is None or isinstance(node.this, exp.Star | exp.Literal)
    return "count()" if counts_rows else f"count({_text(node.this)})"


def _or(node: Any) -> str:
    """Translate `or` and `||`. In the SQL of MySQL, sqlglot also reads `||` as OR.

    If an operand is a string, the operands are joined as texts.
    """
    parts = list(node.flatten())
    return (
        _text(exp.Concat(expressions=parts))
        if any(part.is_string for part in parts)
        else " or ".join(map(_text, parts))
    )


def _sum(node: Any) -> str:
    """Translate + and -. The sum or difference of a time and an interval is computed in milliseconds."""
    sign, length = "+" if isinstance(node, exp.Add) else "-", node.expression
    if not isinstance(length, exp.Interval):
        return f"{_text(node.this)} {sign} {_text(length)}"
    if not length.name.isdecimal():
        raise Untranslatable
    seconds = int(length.name) * UNITS[_PERIODS[length.text("unit")][1]]
    return f"timestamp(epoch({_text(node.this)}) {sign} {seconds * 1000})"


_SIGNS = {exp.And: "and", exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">"}
_SIGNS |= {exp.GTE: ">=", exp.Is: "=", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
NODE_RULES: Mapping[type[Any], str | Callable[[Any], str]] = {
    **{kind: f"{{this}} {sign} {{expression}}" for kind, sign in _SIGNS.items()},
    exp.Literal: _literal,
    exp.Column: lambda node: name_text(node.name),
    exp.Alias: lambda node: " as ".join(dict.fromkeys((_text(node.this), name_text(node.alias)))),  # not `a as a`
    exp.Boolean: lambda node: str(node.this).lower(),
    exp.Null: "null",
    exp.Star: "*",
    exp.Paren: "({this})",
    exp.Or: _or,
    exp.Not: "not {this}",
    exp.Neg: "-{this}",
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Between: "{low} <= {this} <= {high}",
    exp.In: "{this} in {{expressions}}",
    exp.Like: _like,
    exp.ILike: _like,
    exp.RegexpLike: "{this} ~ re({expression})",
    exp.Concat: lambda node: " + ".join(_text(e) if e.is_string else f"str({_text(e)})" for e in node.expressions),
    exp.Case: _case,
    **dict.fromkeys((exp.JSONExtract, exp.JSONExtractScalar, exp.JSONValue), _json_member),
    exp.If: "ifthenelse({this}, {true}, {false})",
    exp.Count: _count,
    exp.Cast: lambda node: f"{_TYPES[node.to.this.name]}({_text(node.this)})",
    exp.CurrentTimestamp: "now()",
    exp.Extract: lambda node: f"{node.name.lower()}({_text(node.expression)})",
}
"""The translation of each kind of SQL node: a template for its arguments, or a function.

A node of any other kind is translated as a call.
"""
