"""SQL for a member of JSON text, built only from operations that have the same result in all engines.

The JSON functions of engines accept different texts, and treat numbers, escapes and blanks differently. So the SQL
first checks the text with patterns, and rewrites the text:

- The escapes of a quote and of a backslash become \\u0022 and \\u005c, so that a quote always begins or ends a string.
- Blanks are removed.
- Each string gets an `s` at its beginning, and its backslashes are doubled.
- Every other value is put in quotes.

The engine looks up the path in the rewritten text. The result is then changed back to its original form.
"""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from svcctl.service.language.json_path import MAX_JSON_DEPTH, JsonStep

_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"
_ESCAPE = r"\\(?:[/bfnrt]|u[0-9a-fA-F]{4})"
_STRING = r'"[^"\\\x00-\x1f]*"'
_OTHER_VALUE = r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_BLANKS = r"[ \t\r\n]+"
_STRING_MARK, _VALUE_MARK, _QUOTE_MARK = "\x02", "\x03", "\x01"
_INNERMOST = r"\[(?:[\x02\x03](?:,[\x02\x03])*)?\]|\{(?:\x02:[\x02\x03](?:,\x02:[\x02\x03])*)?\}"
"""Matches an object or a list in which each value has been replaced by a control character, such as _VALUE_MARK."""
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_NO_CHARACTER = r"\\u(?:[dD][89a-fA-F]|0000)"
"""Matches the escape of half a surrogate pair, or of U+0000. No text can hold these characters."""


class JsonSql(Protocol):
    """The operations on JSON text that each engine writes differently in SQL."""

    def replace_matches(self, sql: exp.Expr, pattern: str, replacement: str, times: int = 1) -> exp.Expr:
        """Return SQL that replaces all matches of a pattern in a text.

        The replacement is done `times` times, each time on the previous result.

        In the replacement, $1 means the match of the pattern's first group. If the group has no match, $1 is empty.
        """

    def look_up(self, sql: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        """Return SQL for the value at a path in valid JSON.

        The SQL gives a string without its quotes, and an object or a list as JSON. If the path has no value, the SQL
        gives null.
        """

    def bind(self, sql: exp.Expr, body: Body) -> exp.Expr:
        """Return the SQL that the function `body` builds from a value. `body` may use the value several times."""


class Body(Protocol):
    def __call__(self, sql: exp.Expr, /) -> exp.Expr: ...


def member(engine: JsonSql, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
    """Return SQL for the member of JSON text at a path, as text.

    The SQL gives null if the member is missing, or if the text is not JSON.
    """

    def of_text(text: exp.Expr) -> exp.Expr:
        escaped = _replace_text(_replace_text(text, r"\\", r"\u005c"), r"\"", r"\u0022")
        marked = tuple(f"s{step}" if isinstance(step, str) else step for step in path)
        value = engine.bind(engine.look_up(_rewrite(engine, escaped), marked), lambda sql: _member_text(engine, sql))
        no_control = exp.Not(this=_matches(text, _CONTROL))
        valid = exp.And(this=no_control, expression=_equal(_skeleton(engine, escaped), _VALUE_MARK))
        return exp.Case(ifs=[exp.If(this=valid, true=value)])

    return engine.bind(text, of_text)


def _skeleton(engine: JsonSql, escaped: exp.Expr) -> exp.Expr:
    """Return SQL that tests whether a text is valid JSON and is not just a JSON string.

    If so, the SQL gives _VALUE_MARK. If not, the SQL gives a different text.
    """
    text = engine.replace_matches(escaped.copy(), _ESCAPE, "~")
    for pattern, mark in ((_STRING, _STRING_MARK), (_OTHER_VALUE, _VALUE_MARK), (_BLANKS, "")):
        text = engine.replace_matches(text, pattern, mark)
    return engine.replace_matches(text, _INNERMOST, _VALUE_MARK, MAX_JSON_DEPTH)


def _rewrite(engine: JsonSql, escaped: exp.Expr) -> exp.Expr:
    """Return SQL that rewrites JSON for all engines. The module's docstring has the steps."""
    text = engine.replace_matches(escaped.copy(), rf'("[^"]*")|{_BLANKS}', "$1")
    text = _replace_text(engine.replace_matches(text, r'"([^"]*)"', '"s$1"'), "\\", r"\\")
    both = f"$1{_QUOTE_MARK}$2{_QUOTE_MARK}"
    text = engine.replace_matches(text, r'("[^"]*")|([^\[\]{}:,"]+)', both)
    return _replace_text(_replace_text(text, _QUOTE_MARK * 2, ""), _QUOTE_MARK, '"')


def _member_text(engine: JsonSql, value: exp.Expr) -> exp.Expr:
    """Return SQL for the text of a value that was found in rewritten JSON."""
    raw = exp.Substring(this=value.copy(), start=exp.Literal.number(2))
    document = exp.Concat(expressions=[exp.Literal.string('["'), raw, exp.Literal.string('"]')], safe=False)
    no_text = _matches(engine.replace_matches(raw.copy(), _PAIR, ""), _NO_CHARACTER)
    string = exp.Case(ifs=[exp.If(this=exp.Not(this=no_text), true=engine.look_up(document, (0,)))])
    container = engine.replace_matches(value.copy(), r'("s[^"]*")|"([^"]*)"', "$1$2")
    container = _replace_text(engine.replace_matches(container, r'"s([^"]*")', '"$1'), r"\\", "\\")
    container = _replace_text(_replace_text(container, r"\u0022", r"\""), r"\u005c", r"\\")
    return exp.Case(
        ifs=[
            exp.If(this=_matches(value, "^s"), true=string),
            exp.If(this=_matches(value, r"^[\[{]"), true=container),
            exp.If(this=exp.Not(this=exp.Paren(this=_equal(value.copy(), "null"))), true=value.copy()),
        ]
    )


def _replace_text(sql: exp.Expr, old: str, new: str) -> exp.Expr:
    return exp.Replace(this=sql.copy(), expression=exp.Literal.string(old), replacement=exp.Literal.string(new))


def _equal(sql: exp.Expr, text: str) -> exp.Expr:
    return exp.EQ(this=sql, expression=exp.Literal.string(text))


def _matches(sql: exp.Expr, pattern: str) -> exp.Expr:
    return exp.RegexpLike(this=sql.copy(), expression=exp.Literal.string(pattern))
