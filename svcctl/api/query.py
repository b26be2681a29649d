"""A query request with its fields and its body, and the outline of a query's text.

The outline is read from the text without a parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from svcctl.api.json_text import encoded
from svcctl.dates.lengths import UNITS
from svcctl.dates.operators import DATE_FORMATS, Moment
from svcctl.errors import UsageError
from svcctl.words import did_you_mean

if TYPE_CHECKING:
    from svcctl.api.destinations import Destination


@dataclass(frozen=True)
class QueryRequest:
    """A query to run: its text or the ID of a saved query, and its options.

    A query without `to` is continuous: it has no end. Dates are epoch seconds, or texts in the forms that
    `svcctl.dates.operators` lists. Raises UsageError if fields contradict each other.
    """

    from_: Moment
    to: Moment | None = None
    query: str | None = None
    query_id: str | None = None
    mode: str = "json"
    destination: Destination | None = None
    date_format: str | None = None
    time_zone: str | None = None
    skip: int | None = None
    limit: int | None = None
    continues: str | None = None
    """The ID of an earlier job that the new job continues. Only svcctl's own service accepts this field."""
    temporary_table: str | None = None
    """The ID of the temporary table that the query reads (see `own_service.temporary_table`)."""

    def __post_init__(self) -> None:
        if (self.query is None) == (self.query_id is None):
            raise UsageError("a request has either a query or the ID of a saved query")
        from svcctl.api.response import MODES

        _known("format", self.mode, tuple(MODES))
        if self.date_format is not None:
            _known("date format", self.date_format, DATE_FORMATS)
        for name, number in (("skip", self.skip), ("limit", self.limit)):
            if number is not None and number < 0:
                raise UsageError(f"{name} {number} is below 0")

    @property
    def streams(self) -> bool:
        """Whether the answer begins before the service has computed all rows."""
        from svcctl.api.response import MODES

        return MODES[self.mode].streams

    @property
    def continuous(self) -> bool:
        return self.to is None

    def body(self) -> bytes:
        """Return the JSON to send, in UTF-8. Every call returns the same bytes."""
        return self._body

    @cached_property
    def _body(self) -> bytes:
        return encoded(self._fields(), "the query or a parameter")

    @property
    def _keep_alive(self) -> dict[str, str] | None:
        """The field that asks for keep-alive padding (empty lines); None in formats that do not need the field."""
        from svcctl.api.response import MODES

        return {"type": "token"} if MODES[self.mode].keep_alive and self.destination is None else None

    def _fields(self) -> dict[str, Any]:
        fields = {
            "query": self.query,
            "queryId": self.query_id,
            "from": self.from_,
            "to": self.to,
            "mode": {"type": self.mode},
            "destination": self.destination and self.destination.to_json(),
            "dateFormat": self.date_format,
            "timeZone": self.time_zone,
            "skip": self.skip,
            "limit": self.limit,
            "keepAlive": self._keep_alive,
            "continues": self.continues,
            "temporaryTable": self.temporary_table,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise UsageError(f"there is no {what} '{name}'", hint=did_you_mean(name, names) or f"one of {', '.join(names)}")


KEYWORDS = ("select", "from", "where", "group", "limit", "offset", "pragma")
"""The words that begin a clause of a query."""

# An unclosed string or name ends at the end of its line, so that the time to read a text is proportional to its size.
_TOKEN = r"""(?x)
      //[^\n]*
    | (?P<string> "(?:[^"\\\n\r]|\\.)*"? | '(?:[^'\\\n\r]|\\.)*'? )
    | (?P<quoted> `(?:[^`\n\r]|``)*`? )
    | (?P<address> [0-9]+\.[0-9]+\.[0-9]+\.[0-9]+ )
    | (?P<float> [0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+) )
    | (?P<period> [0-9]+[smhd]\b )
    | (?P<integer> [0-9]+ )
    | (?P<word> [^\W\d]\w*(?:\.[^\W\d]\w*)* )
    | (?P<opening> [(\[{] )
    | (?P<closing> [)\]}] )
    | (?P<other> \S )
"""


class Clause(NamedTuple):
    """A clause of a query's text, with its keyword.

    `number` is the number of a limit or an offset. `every` is the period of a group, in seconds. If the word `every` in
    a group is not followed by a period, `unread` is the text after this word.
    """

    keyword: str
    number: int | None = None
    every: int | None = None
    unread: str = ""


class Outline(NamedTuple):
    """The outline of a query's text: the name of the table and the clauses, in their order. The name may be empty."""

    table: str
    clauses: tuple[Clause, ...]

    def has(self, keyword: str) -> bool:
        return any(clause.keyword == keyword for clause in self.clauses)

    @property
    def is_plain(self) -> bool:
        """Whether the query has no group, no limit and no offset.

        Such a query can be split into queries for consecutive parts of its time range. The rows of these
        queries, joined in order, are the rows of the whole range.
        """
        return not any(clause.keyword in ("group", "limit", "offset") for clause in self.clauses)

    @property
    def every(self) -> int | None:
        """The period of the first group that has a period, in seconds. None if there is no such group."""
        return next((clause.every for clause in self.clauses if clause.every), None)


def outline(text: str) -> Outline:
    """Return the outline of a query's text. The query need not be valid."""
    table = ""
    clauses: list[Clause] = []
    for keyword, tokens in _split(text):
        number = every = None
        unread = ""
        if keyword == "from" and not table:
            table = "".join(_name(kind, token) for kind, token in tokens)
        elif keyword in ("limit", "offset"):
            number = next((_whole(token) for kind, token in tokens if kind == "integer"), None)
        elif keyword == "group":
            period = next((token for kind, token in tokens if kind == "period"), None)
            every = None if period is None else _whole(period[:-1]) * UNITS[period[-1]]
            if every is None and tokens[:1] == [("word", "every")]:
                behind = list(takewhile(lambda token: token[1] != "by", tokens[1:]))
                if [kind for kind, _ in behind] in (["word"], ["integer", "word"]):
                    unread = "".join(token for _, token in behind)
        clauses.append(Clause(keyword, number, every, unread))
    return Outline(table, tuple(clauses))


_APART = rf"{_TOKEN}|(?P<apart> \s+ )"


def one_line(text: str) -> str:
    """Return the query in one line, without comments. White space outside quotes becomes one blank."""
    pieces: list[str] = []
    for match in re.finditer(_APART, text):
        if match.lastgroup not in (None, "apart"):
            pieces.append(match[0])
        elif pieces and pieces[-1] != " ":
            pieces.append(" ")
    return "".join(pieces).rstrip()


ALL_COLUMNS = "*"
"""The name that means all columns of the table."""
EVENTDATE = "eventdate"
"""The column with the date of an event."""


def answer(text: str) -> tuple[str, ...]:
    """Return the names of the columns of a query's answer, as the query's text gives them.

    An expression without `as` has no name and is left out. If a select after a group contains neither `*` nor a key of
    the group, the answer has the keys of the group before the columns of the select.
    """
    return _answer(list(_split(text)))[0]


def is_dated(text: str) -> bool:
    """Return whether each row of a query's answer is a single event with its date in the first column.

    The result is also False if the query's text is not sufficient to decide this.
    """
    items = [item for keyword, tokens in _split(text) if keyword == "select" for item in _items(tokens)]
    unchanged = all(own == EVENTDATE for own, name in items if name == EVENTDATE)
    return outline(text).is_plain and unchanged and answer(text)[:1] in ((ALL_COLUMNS,), (EVENTDATE,))


def keys(text: str) -> tuple[str, ...]:
    """Return the names of the columns of a query's answer that are keys of the last group."""
    return _answer(list(_split(text)))[1]


def visible(text: str) -> tuple[str, ...]:
    """Return the names of the columns that the last clause of a query can use.

    If the last clause is a select, its aggregates can also use the columns that existed before the last group. The
    result then contains these columns, too.
    """
    clauses = list(_split(text))
    names, groups = list[str](), 0
    for end in reversed(range(1, len(clauses))):
        names += _answer(clauses[:end])[0]
        groups += clauses[end - 1][0] == "group"
        if groups > (clauses[-1][0] == "select"):
            break
    return tuple(dict.fromkeys(names))


def _answer(clauses: list[tuple[str, list[tuple[str, str]]]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two tuples: all columns of a query's answer, and only the columns that are keys of the last group."""
    if clauses and clauses[0][0] == "select":  # a select before `from` is applied after the last group
        at = max((index for index, (keyword, _) in enumerate(clauses) if keyword == "group"), default=len(clauses) - 1)
        clauses.insert(at, clauses.pop(0))
    columns, keys = [ALL_COLUMNS], list[str]()
    for keyword, tokens in clauses:
        if keyword == "group":
            every, by = ("word", "every"), ("word", "by")
            listed = tokens[tokens.index(by) + 1 :] if by in tokens else []
            listed = listed[: listed.index(every)] if every in listed else listed
            periods = [kind for kind, _ in tokens if kind == "period"]
            columns = keys = [EVENTDATE] * bool(periods) + [name for _, name in _items(listed)]
        elif keyword == "select":
            items = list(_items(tokens))
            named = any(word in (ALL_COLUMNS, *keys) for item in items for word in item)
            own = [column for _, name in items for column in (columns if name == ALL_COLUMNS else [name])]
            before = [] if named else [name for name in columns if name in keys]
            columns = list(dict.fromkeys(name for name in (*before, *own) if name))
            keys = [name for name in keys if name in columns]
    return tuple(dict.fromkeys(filter(None, columns))), tuple(dict.fromkeys(filter(None, keys)))


def _items(tokens: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the column and the name of each item in a select, or in the keys of a group.

    The column of a computed item, such as `count()`, is empty. Without `as`, the name of such an item is empty, too.
    """
    comma, item = ("other", ","), list[tuple[str, str]]()
    for token in [*tokens, comma]:
        if token != comma:
            item.append(token)
            continue
        named = len(item) > 1 and item[-2] == ("word", "as")
        item, name = (item[:-2], _name(*item[-1])) if named else (item, "")
        own = (
            _name(*item[0])
            if len(item) == 1 and (item[0][0] in ("word", "quoted") or item[0][1] == ALL_COLUMNS)
            else ""
        )
        yield own, name or own
        item = []


def counting(text: str, every: str = "") -> str:
    """Return a new query that counts the rows of the query `text`, which must have no group.

    If `every` is a period such as `every 60s`, the new query counts the rows of each period. If `every` is empty, the
    new query counts all rows. A select before `from` is removed, because it does not change the count. The new query
    ends with the pragmas of `text`.
    """
    starts = {match[0]: match.start() for match in reversed([*filter(_is_keyword, _outside_brackets(text))])}
    end = starts.get("pragma", len(text))
    parts = (text[starts["from"] : end].rstrip(), "group", every, "select count() as n", text[end:])
    return " ".join(filter(None, parts))


def selecting(text: str, columns: Sequence[str]) -> str:
    """Return a new query for some columns of the answer to the query `text`, which must have no group.

    A select before `from` is applied last, so it is moved after the other clauses. The new query ends with the
    pragmas of `text`.
    """
    starts = {match[0]: match.start() for match in reversed([*filter(_is_keyword, _outside_brackets(text))])}
    begin, end = starts["from"], starts.get("pragma", len(text))
    names = ", ".join(f"`{name.replace('`', '``')}`" for name in columns)
    parts = (text[begin:end].rstrip(), text[:begin].strip(), f"select {names}", text[end:])
    return " ".join(filter(None, parts))


def _split(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each keyword of a query, with the tokens up to the next keyword. Tokens in brackets are left out."""
    keyword, tokens = "", list[tuple[str, str]]()
    for match in _outside_brackets(text):
        if _is_keyword(match):
            if keyword:
                yield keyword, tokens
            keyword, tokens = match[0], []
        else:
            tokens.append((str(match.lastgroup), match[0]))
    if keyword:
        yield keyword, tokens


def _outside_brackets(text: str) -> Iterator[re.Match[str]]:
    depth = 0
    for match in re.finditer(_TOKEN, text):
        if match.lastgroup == "opening":
            depth += 1
        elif match.lastgroup == "closing":
            depth = max(0, depth - 1)
        elif match.lastgroup is not None and depth == 0:
            yield match


def _is_keyword(match: re.Match[str]) -> bool:
    return match.lastgroup == "word" and match[0] in KEYWORDS


def _name(kind: str, token: str) -> str:
    return token[1:-1].replace("``", "`") if kind == "quoted" else token


def _whole(digits: str) -> int:
    return int(digits.lstrip("0")[:19] or "0")
