"""Formats and parses dates in Spark's SQL, with the date patterns of the query language.

The embedded engine accepts one digit instead of two, and blanks around a date. Spark's own parser accepts neither, so a
text is parsed with a regular expression. Spark writes a sign before years of more than four digits, so this module
writes years with other SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from sqlglot import exp

from svcctl.service.engines.spark.sql import bound, escaped
from svcctl.service.language.dialect import DatePart, DatePattern

_DEFAULTS = {DatePart.YEAR: "1900", DatePart.MONTH: "1", DatePart.DAY: "1"}
_BLANK = r"[ \t\n\x0B\f\r]*"


def formatted(value: exp.Expr, pattern: DatePattern) -> exp.Expr:
    """Return SQL that writes a timestamp as text in a date pattern."""

    def write(time: str) -> str:
        short = _date_format(time, pattern)
        if DatePart.YEAR not in pattern:
            return short
        year = f"year({time})"
        plain = f"CAST({year} AS STRING)"
        padded = f"CASE WHEN {year} BETWEEN 0 AND 9999 THEN lpad({plain}, 4, '0') ELSE {plain} END"
        pieces = (
            padded if of_year else _date_format(time, parts)
            for of_year, parts in groupby(pattern, lambda part: part is DatePart.YEAR)
        )
        return f"CASE WHEN {year} BETWEEN 1 AND 9999 THEN {short} ELSE concat({', '.join(pieces)}) END"

    return bound(value, write)


def parsed(text: exp.Expr, pattern: DatePattern) -> exp.Expr:
    """Return SQL that reads a text in a date pattern as a timestamp.

    The result of the SQL is null if the text does not fit the pattern. If the pattern contains a part (such as the
    year) several times, the value at its last place in the text is used.
    """
    parts = [part for part in pattern if isinstance(part, DatePart)]
    groups = {part: index for index, part in enumerate(parts, start=1)}
    pieces = (f"([0-9]{{1,{len(part.value)}}})" if isinstance(part, DatePart) else _written(part) for part in pattern)
    regex = _literal(rf"\A{_BLANK}{''.join(pieces)}{_BLANK}\z")

    def write(text: str) -> str:
        def digits(part: DatePart) -> str:
            return f"regexp_extract({text}, {regex}, {groups[part]})"

        def number(part: DatePart) -> str:
            return f"try_cast({digits(part)} AS INT)" if part in groups else _DEFAULTS.get(part, "0")

        large = (DatePart.YEAR, DatePart.MONTH, DatePart.DAY, DatePart.HOUR, DatePart.MINUTE)
        seconds = number(DatePart.SECOND)
        if DatePart.MILLISECOND in groups:
            seconds += f" + try_cast(rpad({digits(DatePart.MILLISECOND)}, 3, '0') AS INT) / 1000"
        date = f"try_make_timestamp({', '.join(map(number, large))}, CAST({seconds} AS DECIMAL(8, 6)))"
        fits = f"{text} RLIKE {regex}"
        if DatePart.SECOND in groups:  # Spark accepts 60 as the second
            fits += f" AND {number(DatePart.SECOND)} < 60"
        return f"CASE WHEN {fits} THEN {date} END"

    return bound(text, write)


def _date_format(time: str, parts: Iterable[DatePart | str]) -> str:
    """Return SQL that writes a timestamp as text with some parts of a date pattern.

    The parts must have the same letters in Java's date patterns, which Spark uses.
    """
    java = (part.value if isinstance(part, DatePart) else "'" + part.replace("'", "''") + "'" for part in parts)
    return f"date_format({time}, {_literal(''.join(java))})"


def _written(text: str) -> str:
    """Return a regular expression for a literal text in a date pattern. Blanks match any number of blanks."""
    pieces = re.split(r"([ \t\n\x0b\f\r]+)", text)
    return "".join(_BLANK if index % 2 else escaped(piece) for index, piece in enumerate(pieces))


def _literal(text: str) -> str:
    return exp.Literal.string(text).sql(dialect="spark")
