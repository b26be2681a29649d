"""Parse a query's text into its tree, with errors that say what to change.

The grammar is in grammar.lark. This module computes the values of tokens (escapes, numbers, addresses). It also has the
words by which error messages name the tokens. Limits keep the cost of a hostile text in proportion to the length of the
text.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from importlib import resources
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from svcctl.dates.lengths import UNITS
from svcctl.errors import QueryPosition
from svcctl.service.language import habits, tree
from svcctl.service.language.functions import FUNCTIONS
from svcctl.service.language.query_error import QueryError
from svcctl.service.language.tree import KEYWORDS, RESERVED
from svcctl.service.language.types import Type
from svcctl.words import did_you_mean, size_text

MAX_BYTES = 256_000
MAX_DEPTH = 40
"""The maximum depth of nested operators and calls. With this depth, sqlglot stays within Python's recursion limit."""

MAX_COUNT = 10**15
MAX_PERIOD_DAYS = 36_500
ESCAPES = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
INT8 = 2**63
NUMBERS = (Type.INT4, Type.INT8, Type.FLOAT8)

_EXPECTED = (
    {word.upper(): f"'{word}'" for word in KEYWORDS}
    | {"IDENT": "a name", "QUOTED": "a name", "PERIOD": "a period such as 5m", "STAR": "'*'", "CIDR": "a network"}
    | dict.fromkeys(("STRING", "FLOAT", "IP", "TRUE", "FALSE", "NULL", "NOT"), "an expression")
    | dict.fromkeys(("COMPARE", "TEST", "IN", "INSIDE", "PLUS", "SLASH", "PERCENT", "AND", "OR"), "an operator")
    | {"MINUS": "an operator"}
    | {"INT": "a number", "LPAR": "'('", "RPAR": "')'", "LBRACE": "'{'", "RBRACE": "'}'"}
    | {"COMMA": "','", "COLON": "':'", "$END": "the end of the query"}
)
_MISSING = dict.fromkeys(("by", "select"), "a column") | dict.fromkeys(("where", "and", "or", "not"), "a condition")
"""The part of a query that must follow a keyword, such as a column after `select`. An error names a missing part."""
_AS_COLUMN = re.compile(r"\s*(?:$|[+/%<>=!~,)}.]|->|(?:and|or|in|as)\b)")
"""If the text after a keyword matches this pattern, the keyword is probably meant as the name of a column.

The pattern does not match `*` and `-`, because these signs can also begin an item of a select.
"""
_CLAUSES = re.compile(r"(?<![.\w])(?:where|select|group)\b(?!\.)")
_CLAUSE = re.compile(rf"\s*({'|'.join(KEYWORDS)})\b")
_CALL = re.compile(r"\w+\s{0,8}\((?:[^()]|\([^()]{0,80}\)){0,80}\)")
_LIST = re.compile(
    rf"[\w.]{{1,80}}(?:\s{{0,8}},\s{{0,8}}(?!(?:{'|'.join(KEYWORDS)})\b(?!\.))[\w.]{{1,80}}){{1,20}}\b(?!\s*[.(,])"
)
_NUMBER_TEXT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")


@lru_cache(maxsize=16)
def parse(text: str) -> tree.Query:
    """Parse a query. Raises QueryError with line and column if the text is not a query, or is too large.

    The trees of recent queries are cached, because an export sends the same query for each part of its date range.
    """
    _check_text(text)
    try:
        query: tree.Query = _lark().parse(text)  # type: ignore[assignment]
    except UnexpectedToken as error:
        raise _habit(text, error.token.start_pos, error.token) or _syntax_error(error, text) from None
    except UnexpectedCharacters as error:
        stray = _character_error(error.char, QueryPosition(error.line, error.column))
        raise _habit(text, error.pos_in_stream, error.char) or stray from None
    for clause in query.clauses:
        for expr in tree.expressions(clause):
            for node, depth in tree.walk(expr):
                if depth > MAX_DEPTH:
                    raise QueryError("the expression is nested too deep, or its sums are too long", node.at)
                if isinstance(node, tree.Literal) and node.type is Type.INT8 and node.value == INT8:
                    raise QueryError(f"the number is too large: {INT8}", node.at)
    return query


@lru_cache(maxsize=1)
def _lark() -> Lark:
    grammar = resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", start="query", transformer=_Builder())


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise QueryError("half of a surrogate pair is not a character", _place(text, error.start)) from None
    if size > MAX_BYTES:
        raise QueryError(f"the query has {size_text(size)}, more than {size_text(MAX_BYTES)}", QueryPosition(1, 1))
    if "\0" in text:
        raise QueryError("a query cannot hold the character U+0000", _place(text, text.index("\0")))


def _place(text: str, index: int) -> QueryPosition:
    return QueryPosition(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def _habit(text: str, index: int | None, read: str) -> QueryError | None:
    """Return the error for a word of SQL or of another language, with a hint that says what to write.

    Return None for any other mistake.
    """
    if index is None:
        return None
    message, at, word = f"unexpected '{read}'", _place(text, index), read.lower()
    if (error := _translation(text, message, at)) is not None:
        return error
    hint = habits.HABITS.get(word)
    return None if hint is None else QueryError(message, at, hint=hint, reason=habits.REASONS.get(word))


def _translation(text: str, message: str, at: QueryPosition) -> QueryError | None:
    """Return the error for a text that is SQL. Return None for any other text.

    The hint of the error is the translated query, or the reason why there is no translation.
    """
    from svcctl.service.language.translation import Untranslatable, query_from_sql

    try:
        meant = query_from_sql(text)
        _lark().parse(meant.query)
    except Untranslatable as error:
        return QueryError(message, at, hint=str(error), reason=error.reason) if str(error) else None
    except (UnexpectedToken, UnexpectedCharacters, QueryError):
        return None
    reason = habits.SORTS if meant.sorting else None
    return QueryError(message, at, hint=f"write {meant.query}{meant.remark}", reason=reason, data=meant.sorting)


def _syntax_error(error: UnexpectedToken, text: str) -> QueryError:
    token = error.token
    names = error.accepts or error.expected
    may_begin = {"LPAR", "STRING"} <= names
    if may_begin:
        # a dozen tokens can begin an expression, so the message says "an expression" instead of listing the tokens
        names = {name for name in names if _EXPECTED[name] not in ("a name", "a number", "'('", "an operator")}
    expected = tuple(sorted({_EXPECTED[name] for name in names}))
    if token.type == "$END":
        return QueryError("unexpected end of query", _place(text, len(text.rstrip())), expected=expected)
    hint = None
    if token.type == "IDENT":
        if meant := did_you_mean(token, [word for word in RESERVED if word.upper() in names]):
            expected, hint = (), meant  # one suggestion helps more than a list
        elif "SELECT" in names and (clause := _with_select(text, token)):
            expected, hint = (), f"write {clause}"
    elif token in RESERVED and (may_begin or "IDENT" in names):
        if hint := _keyword_hint(text, token):
            expected = ()
        else:
            hint = f"{token} is a reserved word; as a name, write it in back quotes: `{token}`"
    elif (
        token.type == "COMMA"
        and (word := _CLAUSE.match(text, token.end_pos or 0))
        and _reads_without(text, token.start_pos or 0, word.start(1))
    ):
        expected, hint = (), f"leave out the comma before '{word[1]}'"
    return QueryError(f"unexpected '{token}'", _at(token), expected=expected, hint=hint)


def _keyword_hint(text: str, token: Token) -> str | None:
    """Return the hint for a keyword in a place where the parser expects an expression.

    Returns None if the keyword may be meant as the name of a column.
    """
    start, end = token.start_pos or 0, token.end_pos or 0
    if token not in KEYWORDS or _AS_COLUMN.match(text, end):
        return None
    before = habits.blank_out(text)[:start].rstrip()
    if before.endswith(","):
        return f"leave out the comma before '{token}'" if _reads_without(text, len(before) - 1, start) else None
    last = next((word for word in _MISSING if re.search(rf"\b{word}$", before[-10:])), None)
    return last and f"{_MISSING[last]} is missing after '{last}'"


def _reads_without(text: str, comma: int, word: int) -> bool:
    """Return whether the parser accepts the word at index `word` if the comma at index `comma` is left out."""
    try:
        _lark().parse(f"{text[:comma]} {text[comma + 1 :]}")
    except UnexpectedToken as error:
        return error.token.type == "$END" or (error.token.start_pos or 0) > word
    except UnexpectedCharacters as error:
        return (error.pos_in_stream or 0) > word
    except QueryError:
        pass
    return True


def _with_select(text: str, token: Token) -> str | None:
    """Return the clause to suggest if `select` is missing before a list of columns or a call of an aggregate.

    Returns None for other texts.
    """
    start = token.start_pos or 0
    clauses = _CLAUSES.findall(habits.blank_out(text)[:start])
    if clauses[-1:] == ["select"]:
        return None
    if (call := _CALL.match(text, start)) and token in FUNCTIONS and FUNCTIONS[token].aggregate:
        return f"select {call[0]}" if "group" in clauses else f"group select {call[0]}"
    columns = _LIST.match(text, start)
    return f"select {columns[0]}" if columns and clauses[-1:] != ["group"] else None


def _character_error(character: str, at: QueryPosition) -> QueryError:
    if character in ("'", '"'):
        return QueryError("the string is not closed on its line", at, hint=r"a line break is written \n")
    if character == "`":
        return QueryError("the quoted name is not closed on its line, or is empty", at)
    return QueryError(f"unexpected character {character!r}", at)


def _at(token: Token) -> QueryPosition:
    # lark counts lines and columns from 1, and sets both on every token it reads
    return QueryPosition(token.line or 1, token.column or 1)


def _integer(token: Token, most: int, what: str) -> int:
    # leading zeros are removed, because Python refuses to convert thousands of digits, even if they are zeros
    digits = token.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > most:
        raise QueryError(f"{what} is too large: {token[:40]}", _at(token))
    return int(digits)


def _number(value: float, at: QueryPosition) -> tree.Literal:
    if isinstance(value, float):
        return tree.Literal(Type.FLOAT8, value, at=at)
    return tree.Literal(Type.INT4 if -(2**31) <= value < 2**31 else Type.INT8, value, at=at)


def quoted_number(text: str, at: QueryPosition) -> tree.Literal | None:
    """Return the number in a string that contains only a number. Return None for any other string.

    Raises QueryError if the number is too large.
    """
    if not _NUMBER_TEXT.fullmatch(text):
        return None
    whole, digits = text.removeprefix("-").isdigit(), text.lstrip("-0") or "0"
    sign = -1 if text.startswith("-") else 1
    value = sign * int(digits) if whole and len(digits) <= 19 else float(text)
    if math.isinf(value) or (whole and not -INT8 <= value < INT8):
        raise QueryError(f"the number is too large: {text[:40]}", at)
    return _number(value, at)


def _address(text: str, at: QueryPosition) -> int:
    try:
        return int(IPv4Address(text))
    except AddressValueError:
        raise QueryError(f"{text[:40]} is not an address", at, hint="each of its numbers is 0 to 255") from None


def _string_value(token: Token) -> str:
    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in ESCAPES:
            hint = rf"""write \{match[0]}; escapes are \" \' \\ \n \t \r \u0041"""
            at = QueryPosition(_at(token).line, _at(token).column + 1 + match.start())
            raise QueryError(f"unknown escape {match[0]}", at, hint=hint)
        return ESCAPES[code]

    text = _ESCAPE.sub(unescape, token[1:-1])
    try:
        # two \u escapes can mean one character beyond U+FFFF, as in JSON
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise QueryError("half of a surrogate pair is not a character", _at(token)) from None
    if "\0" in text:
        raise QueryError("a string cannot hold the character U+0000", _at(token))
    return text


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Builds the tree of a query. The parser library lark calls a method for each complete rule of the grammar."""

    def query(self, *parts: Any) -> tree.Query:
        first, *rest = parts
        leading = first if isinstance(first, tree.Select) else None
        table: Token = rest.pop(0) if leading else first
        clauses = [part for part in rest if not isinstance(part, tuple)]
        if leading:
            groups = [index for index, clause in enumerate(clauses) if isinstance(clause, tree.Group)]
            clauses.insert(groups[-1] + 1 if groups else len(clauses), leading)
        pragmas = tuple(part for part in rest if isinstance(part, tuple))
        return tree.Query(str(table), tuple(clauses), pragmas, at=_at(table))

    def where(self, keyword: Token, *conditions: tree.Expr) -> tree.Where:
        return tree.Where(conditions, at=_at(keyword))

    def select(self, keyword: Token, *items: tree.Item | tree.Star) -> tree.Select:
        return tree.Select(items, at=_at(keyword))

    def group(self, keyword: Token, *parts: tuple[int, QueryPosition] | tuple[tree.Item, ...]) -> tree.Group:
        periods: list[Any] = [part for part in parts if isinstance(part[0], int)]
        for seconds, at in periods[1:]:
            if seconds != periods[0][0]:
                raise QueryError("the group already has another period", at, hint="write every once")
        by: Any = next((part for part in parts if not isinstance(part[0], int)), ())
        return tree.Group((periods[0][0] or None) if periods else None, by, at=_at(keyword))

    def limit(self, keyword: Token, count: Token) -> tree.Limit:
        return tree.Limit(_integer(count, MAX_COUNT, "the limit"), at=_at(keyword))

    def offset(self, keyword: Token, count: Token) -> tree.Offset:
        return tree.Offset(_integer(count, MAX_COUNT, "the offset"), at=_at(keyword))

    def pragma(self, key: Token, value: Token) -> tuple[str, str]:
        return str(key), _string_value(value) if value.type == "STRING" else str(value)

    def star(self, token: Token) -> tree.Star:
        return tree.Star(at=_at(token))

    def item(self, expr: tree.Expr, name: Token | None) -> tree.Item:
        return tree.Item(expr, None if name is None else str(name), at=expr.at if name is None else _at(name))

    def every(self, period: Token) -> tuple[int, QueryPosition]:
        """Return the length of a group's period in seconds, and the period's place in the text.

        The length is 0 for `-`, which means a group without a period.
        """
        if period.type == "MINUS":
            return 0, _at(period)
        amount = Token.new_borrow_pos("INT", period[:-1], period)
        most = MAX_PERIOD_DAYS * UNITS["d"] // UNITS[period[-1]]
        seconds = _integer(amount, most, "the period") * UNITS[period[-1]]
        if seconds == 0:
            raise QueryError("a period is at least 1s", _at(period))
        return seconds, _at(period)

    def by(self, *items: tree.Item) -> tuple[tree.Item, ...]:
        return items

    def either(self, *operands: tree.Expr) -> tree.Logic:
        return tree.Logic("or", operands, at=operands[0].at)

    def every_one(self, *operands: tree.Expr) -> tree.Logic:
        return tree.Logic("and", operands, at=operands[0].at)

    def negation(self, keyword: Token, operand: tree.Expr) -> tree.Not:
        return tree.Not(operand, at=_at(keyword))

    def comparison(self, first: tree.Expr, operator: Token, *more: Any) -> tree.Comparison:
        links = _links((operator, *more))
        return tree.Comparison(first, tuple(("!=" if op == "/=" else op, to) for op, to in links), at=_at(operator))

    def membership(self, operand: tree.Expr, keyword: Token, *options: tree.Expr) -> tree.Membership:
        return tree.Membership(operand, options, at=_at(keyword))

    def inside(self, operand: tree.Expr, operator: Token, network: Token) -> tree.Inside:
        address, _, bits = network.partition("/")
        size = int((bits or "32")[:4])
        if size > 32:
            raise QueryError(f"{network[:40]} is not a network", _at(network), hint="write 10.0.0.0/8")
        return tree.Inside(operand, _address(address, _at(network)), size, at=_at(operator))

    def arithmetic(self, first: tree.Expr, operator: Token, *more: Any) -> tree.Arithmetic:
        links = _links((operator, *more))
        return tree.Arithmetic(first, links, at=_at(operator))

    def minus(self, operator: Token, operand: tree.Expr) -> tree.Expr:
        if isinstance(operand, tree.Literal) and isinstance(operand.value, int | float) and operand.type in NUMBERS:
            return _number(-operand.value, _at(operator))
        return tree.Minus(operand, at=_at(operator))

    def column(self, name: Token) -> tree.ColumnRef:
        return tree.ColumnRef(str(name), at=_at(name))

    def call(self, name: Token, *arguments: tree.Expr | None) -> tree.Call:
        return tree.Call(str(name), tuple(argument for argument in arguments if argument is not None), at=_at(name))

    def literal(self, token: Token) -> tree.Literal:
        at = _at(token)
        match token.type:
            case "STRING":
                return tree.Literal(Type.STR, _string_value(token), at=at)
            case "IP":
                return tree.Literal(Type.IP4, _address(token, at), at=at)
            case "TRUE" | "FALSE":
                return tree.Literal(Type.BOOL, token.type == "TRUE", at=at)
            case "NULL":
                return tree.Literal(None, None, at=at)
            case "FLOAT" if math.isinf(float(token)):
                raise QueryError(f"the number is too large: {token[:40]}", at)
            case "FLOAT":
                return _number(float(token), at)
        # the limit is the largest int8 plus 1, because a minus may precede the number
        return _number(_integer(token, INT8, "the number"), at)

    def name(self, token: Token) -> Token:
        return token.update(value=token[1:-1].replace("``", "`")) if token.type == "QUOTED" else token


def _links(flat: tuple[Any, ...]) -> tuple[tuple[str, tree.Expr], ...]:
    """Return pairs (operator, operand) from a flat sequence: operator, operand, operator, operand …"""
    return tuple(zip((str(operator) for operator in flat[::2]), flat[1::2], strict=True))
