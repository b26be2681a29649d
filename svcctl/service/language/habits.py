"""Spellings of other query languages, and what to write instead.

A row is a pattern and its answer. `answer` looks for the first row whose pattern covers the place where a query could
not be parsed. So rows cost nothing for a correct query, and cannot refuse one. Literals and comments are blanked out
first, so that their text matches nothing. Names of functions are in `svcctl.api.foreign_functions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address

from svcctl.dates.lengths import UNITS
from svcctl.service.language.functions import DATE_TEXT, FUNCTIONS
from svcctl.words import nearest

NEAR = 300
"""Characters before and after an error that are looked at: the patterns stay cheap however long the query is."""

# closing quotes are optional: otherwise each quote of a hostile text would cost a search to the end of the line
_HIDDEN = re.compile(r"""\"(?:[^"\\\n\r]|\\.)*\"?|'(?:[^'\\\n\r]|\\.)*'?|`[^`\n\r]*`?|//[^\n]*""")


@dataclass(frozen=True, slots=True)
class Habit:
    """A pattern, and what to write instead: a sentence, or a function of the texts of the pattern's groups.

    When the function returns None, later rows are tried.
    The error's place is where the pattern begins, or where its group `at` begins.
    """

    pattern: re.Pattern[str]
    answer: str | Callable[..., str | None]


_CLAUSES = ("from", "where", "select", "group", "every", "by", "limit", "offset", "pragma", "as")


def _row(pattern: str, answer: str | Callable[..., str | None], flags: re.RegexFlag = re.IGNORECASE) -> Habit:
    return Habit(re.compile(pattern, flags), answer)


def _like(negated: str | None, literal: str | None) -> str:
    glob = (literal or '"adm%"')[1:-1].replace("%", "*").replace("_", "?")
    return f'write not (… ~ nameglob("{glob}"))' if negated else f'write ~ nameglob("{glob}")'


def _ilike(operand: str | None, at: str, literal: str | None) -> str:
    """`->>` for a part and eqic for a whole text ignore case; other patterns are compared with the lower-case text."""
    operand, text = operand or "…", (literal or '"%adm%"')[1:-1]
    part = text.strip("%")
    if "%" in part or "_" in part:
        found = f'lower({operand}) ~ nameglob("{text.lower().replace("%", "*").replace("_", "?")}")'
    elif text == f"%{part}%":
        found = f'{operand} ->> "{part}"'
    elif "%" not in text:
        found = f'eqic({operand}, "{part}")'
    else:
        found = f'{"starts" if text.endswith("%") else "ends"}with(lower({operand}), "{part.lower()}")'
    return f"write not ({found})" if at[0] in "nN" else f"write {found}"


def _in(operand: str, negated: str | None, options: str) -> str:
    within = f"{operand} in {{{options.strip()}}}"
    return f"write not ({within})" if negated else f"write {within}"


def _between(name: str, at: str, low: str, high: str) -> str:
    within = f"{low} <= {name} <= {high}"
    return f"write not ({within})" if at[0] in "nN" else f"write {within}"


def _unit(name: str, at: str, count: str, unit: str) -> str:
    if name == "eventdate":
        return _length(count, unit)
    seconds = int(count) * UNITS[unit.lower()]
    return f"write a number: {seconds * 1000} if {name} is in milliseconds, {seconds} if it is in seconds"


def _length(count: str, unit: str) -> str:
    seconds = int(count) * UNITS[unit.lower()]
    return f"moments are counted in milliseconds: epoch(eventdate) > epoch(now()) - {seconds * 1000}"


def _quoted(text: str) -> str:
    return f'text is in quotes: "{text}"; in a shell, put the query in single quotes'


def _is_clause(word: str) -> bool:
    """Whether a word begins a clause, or is a mistyped word that does."""
    return word in _CLAUSES or nearest(word, _CLAUSES) is not None


def _named(column: str, name: str) -> str | None:
    if _is_clause(name):
        return None
    one = f", or `{column} {name}` if that is one column" if column.isidentifier() else ""
    return f"write as {name}{one}"


def _grouped(period: str | None, comma: str, key: str) -> str | None:
    name, parenthesis, _ = key.partition("(")
    if _is_clause(key) or (parenthesis and name in FUNCTIONS and FUNCTIONS[name].aggregate):
        return None
    return f"write every {period} by {key}" if period else f"write group by {key}"


def _by_every(_: str, count: str, unit: str, key: str | None) -> str:
    period = f"{count or 1}{unit.lower()}"
    return f"write group every {period} by {key}" if key else f"leave out 'by': group every {period}"


def _spaced(first: str, second: str) -> str | None:
    return None if _is_clause(second) else f"a name with a space is in back quotes: `{first} {second}`"


def _member(name: str) -> str:
    part = rf'peek(…, re("\"{name}\":\"?([^\",}}]*)"), 1)'
    return f"a name with dots is in back quotes; an object of JSON is kept as text: {part} gives a member of it"


_ONE_TABLE = "a query reads one table: run a query for each"
_SORTED = (
    "a query does not sort: groups come in the order of their keys, other rows by date; sort what is printed: "
    "query … --sort n:desc"
)
COMMENT = "a comment begins with //"
_PERIOD = r"(\d{0,6})\s*(s|m|h|d)(?:ec(?:ond)?|in(?:ute)?|(?:ou)?r|ay)?s?\b"
_KEY = r"((?:`[^`]*`|[a-z_][\w.]*)(?:\([^()]{0,80}\))?)"
_NAME = r"((?<![`\w.])`[^`]{1,80}`|[\w.]+)"
"""A name in a query; a name in back quotes is blank in the text that is searched."""
_LISTED = r"(?:`[^`]{1,80}`|\w+)"
_OPERAND = r"(`[^`]{1,80}`|\"[^\"]{0,80}\"|'[^']{0,80}'|[^\s,)`\"']+)"
_IN = r"(`[^`]{1,80}`|\S{1,60})\s+(?P<at>(?:not\s+)?in)\s*"

HABITS = (
    _row(r"\{\{\s*(\w+)\s*\}\}", lambda name: f"give it a value with --var {name}=…"),
    _row(
        r"^\s*(?P<at>SELECT)\b[\s\S]{0,200}?\bFROM\s+([\w.]+)",
        lambda _, table: f"keywords are in lower case: from {table} where … group by … select …",
        re.NOFLAG,
    ),
    _row(
        r"\b(?:SELECT|FROM|WHERE|GROUP|EVERY|BY|LIMIT|OFFSET|AS|AND|OR|NOT)\b", "keywords are in lower case", re.NOFLAG
    ),
    # sorting, distinct rows and counts
    _row(r"\b(?:order\s+by|orderby|sort(?:\s+by)?)\b", _SORTED),
    _row(r"\b(?:de|a)sc\b", _SORTED),
    _row(
        r"\bcount\s*\(\s*distinct\s*" + _NAME + r"\s*\)?",
        lambda name: f"write hllppcount({name}), which is approximate, or group by {name} group select count()",
    ),
    _row(rf"\bdistinct\s+({_LISTED}(?:\s*,\s*{_LISTED}){{0,20}})", lambda names: f"write group by {names}"),
    _row(r"\bcount\s*\(\s*(?P<at>\*)\s*\)", lambda _: "write count()"),
    _row(r"\bhaving\b", "write where after the select of the group: group by user select count() as n where n > 5"),
    _row(r"\blimit\s+(\d+)\s*(?P<at>,)\s*(\d+)", lambda skip, _, count: f"write offset {skip} limit {count}"),
    # groups
    _row(r"\bgroup_?by\b", "write group by"),
    _row(
        rf"\bgroup\s+(?P<at>by)\s+every\s+{_PERIOD}(?:(?:\s*,\s*|\s+by\s+)(?!(?:{'|'.join(_CLAUSES)})\b){_KEY})?",
        _by_every,
    ),
    _row(rf"\bgroup\s+(?:every\s+(\d+[smhd])\b)?\s*(?P<at>(?:,\s*(?:by\s+)?)?){_KEY}", _grouped),
    _row(r"\bby\b[^,]{1,80}(?P<at>,)\s*(every\s+\d+[smhd])\b", lambda _, every: f"leave out the comma: {every}"),
    # conditions
    _row(
        r"\bcount\s*\(\s*(?P<at>where)\s+(?:((?:[^()]|\([^()]{0,80}\)){1,80})\))?",
        lambda _, condition: f"write sum(int({condition or '…'}))",
    ),
    _row(
        r"\bcount\s*\(\s*\*?\s*\)\s*(?P<at>filter\s*\(\s*where)\s+((?:[^()]|\([^()]{0,80}\)){1,80})\)",
        lambda _, condition: f"write sum(int({condition.strip()})) without count()",
    ),
    _row(
        rf"\bwhere\b(?:(?!\b(?:{'|'.join(_CLAUSES)})\b).){{0,200}}(?P<at>\bas\b)",
        lambda _: "a condition has no name: what has one belongs to the select before it",
    ),
    _row(
        rf"{_NAME}\s*(!?)=\s*(?P<at>(\*?[a-z_]\w*\*|\*[a-z_]\w*))\s*(?:$|[,)]|\b(?:and|or|{'|'.join(_CLAUSES)})\b)",
        lambda name, sign, _, glob: f'write {"not (" * bool(sign)}{name} ~ nameglob("{glob}"){")" * bool(sign)}',
    ),
    _row(r"(?:" + _NAME + r"\s+)?\b(?P<at>(?:not\s+)?ilike)\b(?:\s*([\"'] *[\"']))?", _ilike),
    _row(r"\b(not\s+)?like\b(?:\s*([\"'] *[\"']))?", _like),
    _row(
        _NAME + r"\s+(?P<at>(?:i?contains|has|includes))\s+([\"'] *[\"'])",
        lambda name, _, part: f"write {name} -> {part}",
    ),
    _row(
        _NAME + r"\s+(?P<at>(starts?with|ends?with))\s+([\"'] *[\"'])",
        lambda name, _, word, part: f"write {'starts' if word[0].lower() == 's' else 'ends'}with({name}, {part})",
    ),
    _row(
        r"(?:" + _NAME + r"\s+)?\b(?P<at>(?:not\s+)?(?:matches|rlike|regexp?|match))\b\s*([\"'] *[\"'])",
        lambda name, at, text: (
            f"write not ({name or '…'} ~ re({text}))" if at[0] in "nN" else f"write {name or '…'} ~ re({text})"
        ),
    ),
    _row(r"\bis\s+(not\s+)?null\b", lambda negated: f"write {'!' if negated else ''}= null"),
    _row(
        _NAME + r"\s+(?P<at>(?:not\s+)?between)\s+" + _OPERAND + r"\s+and\s+" + _OPERAND,
        _between,
    ),
    _row(r"\bbetween\b", "write 1 <= x <= 3"),
    _row(
        _NAME + r"\s*(?P<at>!?=)\s*(\d+(?:\.\d+){3}/\d+)",
        lambda name, sign, network: f"write {'not (' * (sign != '=')}{name} <- {network}{')' * (sign != '=')}",
    ),
    _row(r"\bin\s+(\d+(?:\.\d+){3}(?:/\d+)?)", lambda network: f"write <- {network}"),
    _row(_IN + r"[(\[]([^()\[\]]*)[)\]]", lambda operand, word, options: _in(operand, word[3:].strip(), options)),
    _row(
        _NAME + r"\s+in\s*\{?\s*(?P<at>(-?\d+)\s*\.\.\s*(-?\d+))",
        lambda name, _, low, high: f"write {low} <= {name} <= {high}",
    ),
    _row(_IN + r"[(\[]", "the values are in braces: in {1, 2}"),
    _row(
        r"(`[^`]{1,80}`|\S{1,60})\s+(?P<at>not)\s+in\s*\{([^{}]*)\}",
        lambda operand, _, options: _in(operand, "not", options),
    ),
    _row(r"\bcase\s+when\b", "write ifthenelse(condition, value, other value)"),
    _row(
        _NAME + r"\s*([<>]=?|!?=)\s*([^\s,]+)\s+(and|or)\s+(?P<at>([<>]=?|!?=)\s*([^\s,)]+))",
        lambda name, sign, low, word, _, other, high: f"write {name} {sign} {low} {word} {name} {other} {high}",
    ),
    # operators
    _row(r"==+", "write ="),
    _row(r"<>", "write !="),
    _row(r"=\s*([<>])", lambda sign: f"write {sign}="),
    _row(r"=~", 'write ~ re("…")'),
    _row(r"&&?", "write and"),
    _row(r"\|\|", "write or; strings are joined by +"),
    _row(r"\|", "there are no pipes: the clauses follow one another, as in where … group by … select …"),
    _row(r"!(?!=)", "write not"),
    _row(r"\bover\s*(?=\()", "a query computes nothing over neighbouring rows"),
    # text, names and comments
    _row("[\u201c-\u201f\u2018-\u201b\u00ab\u00bb]", 'write straight quotes: "…"'),
    _row(r"\bas\s+(?P<at>[\"'] *[\"'])", lambda name: f"a name is not in quotes: as `{name[1:-1]}`"),
    _row(r"#", COMMENT),
    _row(r"/\*", COMMENT),
    _row(r"(?<!\S)--(?!\d)[^\n]*(?:\s+\S+)?", COMMENT),  # the error may be on the next line
    _row(r";", "a query is one statement without a semicolon"),
    # tables
    _row(r"\b(?:(?:left|right|full|inner|outer|cross)\s+)*join\b", _ONE_TABLE),
    _row(r"\bunion\b", _ONE_TABLE),
    _row(rf"\bfrom\s+[\w.]+\s*(?P<at>,)(?!\s*(?:{'|'.join(_CLAUSES)})\b)", lambda _: _ONE_TABLE),
    _row(r"\bfrom\s+[\w.]+\s+(?P<at>as)\b", lambda _: "a table has no other name: leave it out"),
    _row(
        r"^\s*(?P<at>show|list|desc(?:ribe)?)\b",
        "'svcctl tables' lists the tables, 'svcctl tables NAME' the columns of one",
    ),
    # commands of pipes
    _row(
        r"^\s*(?P<at>(?:search\s+)?(?:index|source|sourcetype)\s*=\s*([\w.*-]+))",
        lambda _, name: f"a query begins with its table: from {name} where … group by … select …",
    ),
    _row(r"^\s*(?P<at>search)\b", 'a query begins with its table: from TABLE where message -> "…"'),
    _row(
        r"^\s*(?P<at>\{[^{}]{0,200}\}(?:\s*(?:\|[=~]|![=~])\s*([\"'] *[\"']))?)",
        lambda _, part: "a query begins with its table: from TABLE where message -> " + (part or '"…"'),
    ),
    _row(
        rf"^\s*(?P<at>(?!(?:search|{'|'.join(_CLAUSES)})\b)([a-z_][\w.]*))\s*(?:\||\[|(?:where|group)\b)",
        lambda _, name: f"a query begins with its table: from {name} where … group by … select …",
    ),
    _row(r"\b(?:stats|summarize|timechart|aggregate)\b", "write group by … select count()"),
    _row(r"\b(?:filter|search)\b", "write where"),
    _row(r"\b(?:eval|extend|fields|project)\b", "write select … as name"),
    _row(r"\b(?:head|take|top)\s+(\d+)", lambda count: f"write limit {count}"),
    _row(
        r"(\bgroup\b[^()]{0,200}\s)?(?<!select )(?<!by )(?P<at>\bcount\b(?:\s*\(\s*\))?)\s*$",
        lambda group, _: f"write {'' if group else 'group '}select count()",
    ),
    # lengths of time
    _row(r"\bfrom\s+[\w.]+\s+(?P<at>every)\s+(\w+)", lambda _, period: f"write group every {period}"),
    _row(
        r"\bevery\s+(\d{1,6})\s*w(?:eeks?)?\b",
        lambda count: f"write every {7 * int(count)}d, whose periods begin on Thursdays",
    ),
    _row(
        rf"\bevery\s+{_PERIOD}",
        lambda count, unit: f"write every {count or 1}{unit.lower()}",
    ),
    _row(r"\bevery\s+\d*\s*(?:mo(?:nth)?|y(?:ear)?|q(?:uarter)?)s?\b", "a period is in s, m, h or d: write every 30d"),
    _row(
        r"\bgroup\s+(?P<at>by)\s+(?:\w+\s*[=(]\s*)?(?:\w+\s*,\s*)?(\d{1,6}[smhd])\b",
        lambda _, period: f"write group every {period}",
    ),
    _row(_NAME + r"\s*(?:[<>]=?|!?=)\s*(?P<at>(\d{1,9})([smhdw]))\b", _unit),
    _row(
        _NAME + r"\s*=\s*[\"']?(?P<at>([1-5])xx)\b",
        lambda name, _, digit: f"write {digit}00 <= {name} < {int(digit) + 1}00",
    ),
    _row(r"(?<![\w.])(?<!every - )(\d{1,9})([smhdw])\b", _length),
    _row(r"\b(?:re|nameglob)\s*\(\s*(?P<at>[^\s\"'`()][^\"'`()\n]{0,80})\)", _quoted),
    _row(
        rf"(?:\bselect|,)\s*(?!(?:{'|'.join(_CLAUSES)})\b)(\w+\([^()]{{0,80}}\)|[\w.`]{{1,80}})\s+(?P<at>[a-z_]\w*)\b"
        r"(?!\s*\()",
        _named,
    ),
    _row(
        rf"\b(?:where|by|and|or|not)\s+(?!(?:{'|'.join(_CLAUSES)})\b)([a-z_]\w{{0,80}})\s+(?P<at>[a-z_]\w*)\b"
        rf"(?=\s*(?:[-=<>!~,]|$|(?:{'|'.join(_CLAUSES)})\b))",
        _spaced,
    ),
    # these are last, because their patterns match much
    _row(
        r"(?:=|->>?|~)\s*(?P<at>[^\s\"'`(){},=<>~\d][^\s\"'`(){},=<>~]*)",
        lambda text: f'write ~ nameglob("{text}")' if "*" in text else _quoted(text),
    ),
    _row(r"(?<=[\w`])(?P<at>\.)(?:[a-z_]\w*\.)*([a-z_]\w*)\b(?!\s*\()", lambda _, name: _member(name)),
)


def answer(text: str, index: int) -> tuple[int, str] | None:
    """The answer of the first row that covers an index of a query's text, and its place; None if no row does."""
    start = max(0, index - NEAR)
    near = blanked(text)[start : index + NEAR]
    for habit in HABITS:
        for match in habit.pattern.finditer(near):
            if match.start() <= index - start < match.end():
                at = start + match.start("at" if "at" in habit.pattern.groupindex else 0)
                if isinstance(habit.answer, str):
                    return at, habit.answer
                groups = [text[start + first : start + last] if first >= 0 else None for first, last in match.regs[1:]]
                if (said := habit.answer(*groups)) is not None:
                    return at, said
    return None


def blanked(text: str) -> str:
    """The text with blanks in place of quoted texts and comments; every other character keeps its place."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith("//") or len(found) == 1:
            return " " * len(found)
        return found[0] + " " * (len(found) - 2) + (found[-1] if found[-1] == found[0] else " ")

    return _HIDDEN.sub(blank, text)


_NETWORK = re.compile(r"\d+(?:\.\d+){3}(?:/\d+)?", re.ASCII)
_ADDRESS = re.compile(r"\d+(?:\.\d+){3}", re.ASCII)
_DATE = re.compile(DATE_TEXT, re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_PERIODS = {"second": "s", "minute": "m", "hour": "h", "day": "d"}


def network_answer(text: str) -> str | None:
    """What to write instead of a string after `<-`, which is parsed as `<` and a minus; None if it is not a network."""
    return f"a network is written without quotes: <- {text}" if _NETWORK.fullmatch(text) else None


def comparison_answer(text: str, other: str) -> str | None:
    """What to write instead of a literal string that is compared with a value of the type named `other`."""
    if other == "ip4":
        return f"an address is written without quotes: {text}" if _ADDRESS.fullmatch(text) else None
    if other == "timestamp" and _DATE.fullmatch(text):
        return f'--from and --to choose the dates; here write parsedate("{text}")'
    if other in ("int4", "int8", "float8") and _NUMBER.fullmatch(text):
        return f"a number is written without quotes: {text}; int(…) makes one of a text"
    return None


def address_answer(number: int) -> str:
    """What to write instead of an address, given as its number, that is compared with text."""
    return (
        f'an address in a column of text is in quotes: "{IPv4Address(number)}"; or write ip4(…) = {IPv4Address(number)}'
    )


def column_answer(name: str) -> str | None:
    """What to write instead of an unknown column that has the name of a period or of a function; None for others."""
    if (unit := _PERIODS.get(name.casefold())) is not None:
        return f"write group every 1{unit}, or {name.casefold()}(eventdate)"
    if name in FUNCTIONS:
        return f"the function is {name}({'' if name == 'count' else '…'})"
    return None


def text_answer(name: str) -> str:
    """What to write instead of a word without quotes that something is compared with."""
    keyword = name.casefold() in ("null", "true", "false")
    return f"write {name.casefold()}: keywords are in lower case" if keyword else _quoted(name)
