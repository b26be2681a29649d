"""Hints for people who use words and signs of other query languages, or values of the wrong type.

Hints for names of functions are in `svcctl.api.foreign_functions`, and hints for SQL are in `translation.py`.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address

from svcctl.service.language.functions import DATE_TEXT, FUNCTIONS

# closing quotes are optional, because each quote of a hostile text would otherwise cost a search to the line's end
_HIDDEN = re.compile(r"""\"(?:[^"\\\n\r]|\\.)*\"?|'(?:[^'\\\n\r]|\\.)*'?|`[^`\n\r]*`?|//[^\n]*""")

ONE_TABLE = "a query reads one table, row by row: run a query for each table"
SORTED = "a query does not sort: sort the rows that it returns"
COMMENT = "a comment begins with //"

HABITS = {
    "{": "{{name}} needs a value",
    "|": "there are no pipes: the clauses follow one another, as in where … group by … select …",
    **dict.fromkeys("\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb", 'write straight quotes: "…"'),
    **dict.fromkeys(("order", "sort"), SORTED),
    **dict.fromkeys(("#", "/"), COMMENT),
    **dict.fromkeys(("show", "describe"), "a query cannot list tables: it reads the rows of one table"),
    ".": "write a dotted name without blanks; if a part needs back quotes, put the whole name in them: `a.b c`",
    "[": 'an item of JSON text is jsonparse(text, "[0]"); several values are in braces: x in {1, 2}',
    "every": "write group every 5m",
    "having": "a where after the select filters groups, as in group by … select count() as n where n > 1",
}
"""The hints for words and signs that the parser does not accept. The keys are these words and signs."""
SORTS = "query-sorts"
REASONS = {
    "{": "query-variable",
    **dict.fromkeys(("order", "sort"), SORTS),
    **dict.fromkeys(("show", "describe"), "query-lists-tables"),
}
"""The `reason` of the error for some words of HABITS.

A client can recognise the error by its reason, and offer a remedy of its own, such as sorting the rows.
"""


def blank_out(text: str) -> str:
    """Replace quoted texts and comments by blanks of the same length, so that all other characters keep their place."""

    def blank(match: re.Match[str]) -> str:
        hidden = match[0]
        if hidden.startswith("//") or len(hidden) == 1:
            return " " * len(hidden)
        return hidden[0] + " " * (len(hidden) - 2) + (hidden[-1] if hidden[-1] == hidden[0] else " ")

    return _HIDDEN.sub(blank, text)


_NETWORK = re.compile(r"\d+(?:\.\d+){3}(?:/\d+)?", re.ASCII)
ADDRESS = re.compile(r"\d+(?:\.\d+){3}", re.ASCII)
DATE = re.compile(DATE_TEXT, re.ASCII)
_PERIODS = {"second": "s", "minute": "m", "hour": "h", "day": "d"}


def network_answer(text: str) -> str | None:
    """Return the hint for a network in quotes after `<-`. Return None for other texts.

    The parser reads `<-` before a quote as `<` and a minus.
    """
    return f"a network is written without quotes: <- {text}" if _NETWORK.fullmatch(text) else None


def comparison_answer(text: str, other: str) -> str | None:
    """Return the hint for a literal string that is compared with a value of another type, `other`.

    Returns None if there is no hint.
    """
    if other == "ip4":
        return f"an address is written without quotes: {text}" if ADDRESS.fullmatch(text) else None
    if other == "timestamp" and DATE.fullmatch(text):
        return f'the range of the query chooses the dates; here write parsedate("{text}")'
    return None


def address_answer(number: int) -> str:
    """Return the hint for a literal address that is compared with text. `number` is the address as a number."""
    return (
        f'an address in a column of text is in quotes: "{IPv4Address(number)}"; or write ip4(…) = {IPv4Address(number)}'
    )


def column_answer(name: str) -> str | None:
    """Return the hint for an unknown column that has the name of a period or a function, such as hour or count.

    Returns None for other names.
    """
    if (unit := _PERIODS.get(name.casefold())) is not None:
        return f"write group every 1{unit}, or {name.casefold()}(eventdate)"
    if name in FUNCTIONS:
        return f"the function is {name}({'' if name == 'count' else '…'})"
    return None


def text_answer(name: str) -> str:
    """Return the hint for an unknown word in a comparison. Such a word is usually text without its quotes."""
    keyword = name.casefold() in ("null", "true", "false")
    if keyword:
        return f"write {name.casefold()}: keywords are in lower case"
    return f'text is in quotes: "{name}"; in a shell, put the query in single quotes'
