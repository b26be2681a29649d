"""The functions of the query language: one row for each function, with its signatures, meaning, example and SQL.

This is the only list of functions. The compiler checks calls against the signatures, and errors suggest names from the
list. The help page is written from the meanings and examples. Tests run every example.

A signature looks like `str, int? -> str`. `?` marks an optional parameter, and `…` marks a parameter that may be
repeated. A parameter has the type of a column, such as str, or one of these kinds:

    int             int4 or int8
    number          any numeric type
    any             any type
    T, U            any type, but the same type in the whole signature; a narrow numeric type is widened
    text, zone      a literal string; for `zone`, the string must name a time zone
    digits          a literal whole number
    percent         a literal number
    regex, glob     a pattern made by re or nameglob

Parameters of the kinds in the last four lines do not accept null.

A function returns null if an argument is null, unless the function's meaning says otherwise. Aggregates skip nulls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address

from sqlglot import exp

from svcctl.service.language import deviation, zones
from svcctl.service.language.dialect import DatePart, DatePattern
from svcctl.service.language.json_path import MAX_JSON_DEPTH, json_path
from svcctl.service.language.query_error import UnplacedError
from svcctl.service.language.sql import (
    NUMBERS,
    CompiledValue,
    ExpressionContext,
    Special,
    Sql,
    case_when,
    contains,
    contains_any_case,
    epoch_ms,
    equal,
    from_epoch_ms,
    join_conditions,
    matches,
    member,
    moment,
    number,
    paren,
    string,
)
from svcctl.service.language.text_bound import TextBound
from svcctl.service.language.types import Type

Build = Callable[..., Sql | CompiledValue]
"""A function that builds the SQL of a call from the context and the arguments.

Most arguments are SQL. Arguments of the kinds `text`, `zone`, `digits`, `percent`, `regex` and `glob` are Python
values.
"""

KINDS: Mapping[str, tuple[Type, ...]] = {
    **{type_.value: (type_,) for type_ in Type},
    "int": (Type.INT8, Type.INT4),
    "number": (Type.FLOAT8, Type.INT8, Type.INT4),
    "any": (Type.STR, *(type_ for type_ in Type if type_ is not Type.STR)),
}
"""The types that each kind of parameter accepts. A null argument gets the first of these types."""

_LITERAL_KINDS: Mapping[str, tuple[Type | Special, ...]] = {
    "text": (Type.STR,),
    "zone": (Type.STR,),
    "digits": (Type.INT4,),
    "percent": (Type.INT4, Type.FLOAT8),
    "regex": (Special.REGEX,),
    "glob": (Special.GLOB,),
}
_PARAMETER = re.compile(r"\((.*?)\)…|(\w+)([?…]?)")


def _widest(values: list[CompiledValue]) -> TextBound:
    return TextBound.widest(value.bound for value in values)


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function, with the builder of its SQL.

    `bound` computes the maximum length of the result as text.
    """

    signature: str
    build: Build
    bound: Callable[[list[CompiledValue]], TextBound] = _widest

    def apply(self, context: ExpressionContext, values: list[CompiledValue]) -> CompiledValue | None:
        """Compile a call with these arguments. Return None if the arguments do not fit the signature."""
        takes, gives = self.signature.rsplit("-> ", 1)
        kinds = _argument_kinds(takes, len(values))
        if kinds is None:
            return None
        types: dict[str, Type | None] = {"T": None, "U": None}
        for kind, value in zip(kinds, values, strict=True):
            if kind in _LITERAL_KINDS:
                if value.type not in _LITERAL_KINDS[kind] or value.literal is None:
                    return None
            elif isinstance(value.type, Special):
                if value.type is not Special.NULL:
                    return None
            elif kind in types:
                types[kind] = common(types[kind], value.type)
                if types[kind] is None:
                    return None
            elif value.type not in KINDS[kind]:
                return None
        result = types.get(gives) or (Type.STR if gives in types else None)
        arguments = [
            value.literal
            if kind in _LITERAL_KINDS
            else context.cast(value.sql, types.get(kind) or KINDS.get(kind, (Type.STR,))[0])
            if value.type is Special.NULL
            else value.sql
            for kind, value in zip(kinds, values, strict=True)
        ]
        built = self.build(context, *arguments)
        value = built if isinstance(built, CompiledValue) else CompiledValue(built, result or Type(gives))
        return replace(value, bound=self.bound(values))

    def computed_argument(self, values: list[CompiledValue]) -> int | None:
        """Return the index of the first argument that is computed but must be a literal or a pattern.

        Return None if there is no such argument.
        """
        kinds = _argument_kinds(self.signature.rsplit("-> ", 1)[0], len(values)) or ()
        places = enumerate(zip(kinds, values, strict=False))
        taken = (
            place
            for place, (kind, value) in places
            if value.type in _LITERAL_KINDS.get(kind, ()) and value.literal is None
        )
        return next(taken, None)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language. `result` is the value of `example`.

    The example of an aggregate is computed over SAMPLE_ROWS.
    """

    name: str
    overloads: tuple[Overload, ...]
    meaning: str
    example: str
    result: str | float | datetime | None
    aggregate: bool = False

    @property
    def signatures(self) -> tuple[str, ...]:
        return tuple(overload.signature for overload in self.overloads)


def common(first: Type | None, second: Type) -> Type | None:
    """Return the type that can hold the values of both types. For two numeric types, this is the wider type.

    Returns None if there is no such type.
    """
    if first is None or first is second:
        return second
    if first in NUMBERS and second in NUMBERS:
        return max(first, second, key=NUMBERS.index)
    return None


@lru_cache(maxsize=1024)
def _argument_kinds(takes: str, count: int) -> tuple[str, ...] | None:
    """Return the kinds of the arguments of a call. `takes` has the parameters of the signature.

    Returns None if the parameters do not allow `count` arguments.
    """
    required: list[str] = []
    repeated: list[str] = []
    optional: list[str] = []
    for kinds, kind, mark in _PARAMETER.findall(takes):
        {"": required, "?": optional, "…": repeated}[mark or ("…" if kinds else "")].extend(
            kinds.split(", ") if kinds else [kind]
        )
    for optional_count in range(len(optional) + 1):
        rest = count - len(required) - optional_count
        rounds, over = divmod(rest, len(repeated)) if repeated else (0, rest)
        if over == 0 and (rounds > 0 or not repeated):
            return (*required, *repeated * rounds, *optional[:optional_count])
    return None


# Patterns ------------------------------------------------------------------------------------------------------------


JSON_NODES, JSON_COPIES = 100, 6
"""The number of SQL nodes of a call of jsonparse, and the number of copies of the JSON text in the call's SQL."""
PATTERN_COST = 50
"""The number of SQL nodes that an engine compiles in the same time as one pattern."""


def _regex(context: ExpressionContext, pattern: str) -> CompiledValue:
    context.spend(PATTERN_COST)
    if fault := context.dialect.check_pattern(pattern):
        raise UnplacedError(f"not a regular expression: {fault}", argument=0)
    return CompiledValue(string(pattern), Special.REGEX, pattern)


def _glob(context: ExpressionContext, pattern: str) -> CompiledValue:
    body = "".join({"*": ".*", "?": "."}.get(character) or re.escape(character) for character in pattern)
    regex = rf"(?s)\A{body}\z"
    return CompiledValue(string(regex), Special.GLOB, regex)


def _any_part(test: Callable[[Sql, Sql], Sql]) -> Build:
    """Return a function that builds the condition that a text contains at least one of several parts.

    The function `test` builds the condition for a single part.
    """

    def build(context: ExpressionContext, text: Sql, *parts: Sql) -> Sql:
        return join_conditions(exp.Or, list(map(test, context.copies(text, len(parts)), parts)))

    return build


def _has_token(context: ExpressionContext, text: Sql, token: str) -> Sql:
    return matches(text, rf"(?:\A|[^\pL\pN]){re.escape(token)}(?:\z|[^\pL\pN])")


def _replaced_bound(values: list[CompiledValue]) -> TextBound:
    text, old, new = values
    return text.bound.replaced(None if old.literal is None else str(old.literal), new.bound)


def _json_member(context: ExpressionContext, text: Sql, path: str) -> Sql:
    steps = json_path(path)
    context.spend(JSON_NODES + JSON_COPIES * sum(1 for _ in text.walk()))
    return context.dialect.json_member(text, steps)


def _peek(context: ExpressionContext, text: Sql, pattern: str, group: int = 0) -> Sql:
    if group > 9:
        raise UnplacedError("peek can return the groups 0 to 9", argument=2)
    return context.dialect.first_match(context.copies(text, 2), pattern, group)


# Dates ---------------------------------------------------------------------------------------------------------------

DATE_FORMAT = "yyyy-MM-dd HH:mm:ss.SSS"
DATE_PARTS = " ".join(part.value for part in DatePart)
DATE_TEXT = r"\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,3})?)?)?)?Z?"
_REST = "yyyy-MM-dd 00:00:00.000"
"""The text that supplies the missing last parts of a date, such as the time.

Year, month and day must not be missing.
"""
_DATE_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'")


def _date_pattern(text: str) -> DatePattern:
    """Parse a date pattern such as yyyy-MM-dd'T'HH:mm. Raises UnplacedError for an unknown part."""
    parts = {part.value: part for part in DatePart}
    pattern: list[DatePart | str] = []
    for match in _DATE_PIECE.finditer(text):
        quoted, letter, piece = match[1], match[2], match[0]
        if letter and piece not in parts:
            hint = f"parts are {DATE_PARTS}; put other letters in 'quotes'"
            if zones.is_zone(text):
                hint = f'a zone is the third argument: formatdate(eventdate, "yyyy-MM-dd HH:mm", "{text}")'
            raise UnplacedError(f"unknown part '{piece}' in a date pattern", argument=1, hint=hint)
        if piece == "'":
            raise UnplacedError("a quote in a date pattern is not closed", argument=1)
        literal = piece if quoted is None else (quoted.replace("''", "'") or "'")
        pattern.append(parts[piece] if letter else literal)
    if not pattern:
        raise UnplacedError("the date pattern is empty", argument=1, hint=f"parts are {DATE_PARTS}")
    return tuple(pattern)


def _format(context: ExpressionContext, value: Sql, pattern: str = DATE_FORMAT, zone: str | None = None) -> Sql:
    parts = _date_pattern(pattern)
    time = value if zone is None else zones.local_time(context, value, zone, argument=2)
    return context.dialect.format_date(time, parts)


def _parse(context: ExpressionContext, text: Sql, pattern: str | None = None, zone: str | None = None) -> Sql:
    """Return SQL that parses a text as a date in a pattern.

    Without a pattern, the date may end after the day or after any later part. Missing parts count as zeros.

    Raises UnplacedError for a literal that does not fit the pattern. Also raises UnplacedError for a literal time that
    the clocks of the zone show twice or never.
    """
    parts = _date_pattern(pattern or DATE_FORMAT)
    if isinstance(text, exp.Literal):
        fitting = _date_literal(text.name.strip(), parts, pattern)
        if zone is not None:
            local = _date_of_literal(fitting, parts)
            only_day = DatePart.HOUR not in parts
            return moment(zones.moment_of_literal(fitting, local, zone, argument=2, only_day=only_day))
        text = string(fitting)
    elif pattern is None:
        spaced = exp.Replace(this=exp.Trim(this=text), expression=string("T"), replacement=string(" "))
        date, measured = context.copies(exp.Replace(this=spaced, expression=string("Z"), replacement=string("")), 2)
        start = exp.Add(this=exp.Length(this=measured), expression=number(1))
        text = exp.DPipe(this=date, expression=exp.Substring(this=string(_REST), start=start))
    time = context.dialect.parse_date(text, parts)
    return time if zone is None else zones.moment_of(context, time, zone, argument=2)


def _date_literal(text: str, parts: DatePattern, pattern: str | None) -> str:
    """Check a literal date, and return the date in the form of `parts`.

    With a pattern, the date is returned unchanged. Without a pattern, the date is converted to DATE_FORMAT, and its
    missing last parts are added. Raises UnplacedError if the date has the wrong form.
    """
    if not re.fullmatch(_date_regex(parts) if pattern else DATE_TEXT, text, re.ASCII):
        hint = None if pattern else 'other dates need their pattern: parsedate("31/01/2024", "dd/MM/yyyy")'
        raise UnplacedError(f"'{text}' is not a date as {pattern or DATE_FORMAT}", argument=0, hint=hint)
    if pattern is not None:
        return text
    text = text.replace("T", " ").removesuffix("Z")
    return text + _REST[len(text) :]


def _date_regex(parts: DatePattern) -> str:
    """Return a regular expression for dates in a pattern, with a group for each part of the pattern."""
    pieces = (rf"(\d{{1,{len(part.value)}}})" if isinstance(part, DatePart) else re.escape(part) for part in parts)
    return "".join(pieces)


def _date_of_literal(text: str, parts: DatePattern) -> datetime:
    """Return the date and time that a literal means. The literal fits the pattern `parts`.

    If the pattern has no year, the year is 1900. Raises UnplacedError if the date is not in the calendar.
    """
    match = re.fullmatch(_date_regex(parts), text, re.ASCII)
    assert match is not None
    units = (part for part in parts if isinstance(part, DatePart))
    digits = dict(zip(units, match.groups(), strict=True))

    def number_of(part: DatePart, default: int = 0) -> int:
        return int(digits.get(part, default))

    date = (number_of(DatePart.YEAR, 1900), number_of(DatePart.MONTH, 1), number_of(DatePart.DAY, 1))
    time = (number_of(DatePart.HOUR), number_of(DatePart.MINUTE), number_of(DatePart.SECOND))
    milliseconds = int(digits.get(DatePart.MILLISECOND, "").ljust(3, "0"))
    try:
        return datetime(*date, *time, milliseconds * 1000)
    except ValueError:
        raise UnplacedError(f"there is no date '{text}'", argument=0) from None


def _midnight(days_ago: int) -> Build:
    def build(context: ExpressionContext) -> Sql:
        midnight = context.now.astimezone(context.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return moment(midnight - timedelta(days=days_ago))

    return build


def _part(part: str) -> Build:
    return lambda context, value: context.cast(exp.Extract(this=exp.var(part), expression=value), Type.INT4)


# Conversions ---------------------------------------------------------------------------------------------------------

_EXPONENT = "[eE][+-]?[0-9]+"
_DECIMAL = rf"\A\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:{_EXPONENT})?)\s*\z"
_DIGITS = r"\A\s*([+-]?[0-9]+)(?:\.[0-9]*)?\s*\z"
"""Matches a number without an exponent.

The digits before the point are cast exactly. A conversion through float8 would round large numbers.
"""
_OTHER_DECIMAL = rf"\A\s*([+-]?(?:[0-9]+\.?[0-9]*{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?))\s*\z"
"""Matches a number that _DIGITS does not match, because it has an exponent or no digits before the point."""
_ADDRESS = r"\A" + r"\.".join(["(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"] * 4) + r"\z"


def _number_of_text(pattern: str, to: Type) -> Build:
    """Return a function that builds the conversion of text to a number.

    Engines accept different texts as numbers, so a pattern checks the text first.
    """

    def build(context: ExpressionContext, text: Sql) -> Sql:
        return context.try_cast(exp.RegexpExtract(this=text, expression=string(pattern), group=number(1)), to)

    return build


def _whole_of_text(to: Type) -> Build:
    def build(context: ExpressionContext, text: Sql) -> Sql:
        digits_text, decimal_text = context.copies(text, 2)
        decimal = _number_of_text(_OTHER_DECIMAL, Type.FLOAT8)(context, decimal_text)
        whole = context.try_cast(exp.Trunc(this=decimal), to)
        return exp.Coalesce(this=_number_of_text(_DIGITS, to)(context, digits_text), expressions=[whole])

    return build


def _whole(to: Type) -> tuple[Overload, ...]:
    return (
        Overload(f"str -> {to}", _whole_of_text(to)),
        Overload(f"float8 -> {to}", lambda context, value: context.try_cast(exp.Trunc(this=value), to)),
        Overload(f"int -> {to}", lambda context, value: context.try_cast(value, to)),
        Overload(f"bool -> {to}", lambda context, value: context.cast(value, to)),
    )


def _bool_of_text(context: ExpressionContext, text: Sql) -> Sql:
    first, second = context.copies(exp.Lower(this=exp.Trim(this=text)), 2)
    return case_when((equal(first, string("true")), exp.true()), (equal(second, string("false")), exp.false()))


def _ip_of_text(context: ExpressionContext, text: Sql) -> Sql:
    total: Sql | None = None
    for group, copy in enumerate(context.copies(text, 4), start=1):
        # a text that is not an address has no match, so each octet is null, and the sum is null
        octet_text = exp.RegexpExtract(this=copy, expression=string(_ADDRESS), group=number(group))
        octet = context.try_cast(octet_text, Type.INT8)
        above = exp.Mul(this=paren(total), expression=number(256)) if total else None
        total = exp.Add(this=above, expression=octet) if above else octet
    assert total is not None
    return context.cast(total, Type.IP4)


def _ip_of_literal(context: ExpressionContext, text: str) -> Sql:
    try:
        return context.cast(number(int(IPv4Address(text))), Type.IP4)
    except AddressValueError:
        raise UnplacedError(f"'{text}' is not an address", argument=0, hint="write 10.0.0.1") from None


def _ip_of_number(context: ExpressionContext, value: Sql) -> Sql:
    low, high, address = context.copies(paren(value), 3)
    fits = join_conditions(
        exp.And, [exp.GTE(this=low, expression=number(0)), exp.LTE(this=high, expression=number(2**32 - 1))]
    )
    return case_when((fits, context.cast(address, Type.IP4)))


def _ip_text(context: ExpressionContext, address: Sql) -> Sql:
    text: Sql | None = None
    for copy, size in zip(context.copies(address, 4), (256**3, 256**2, 256, 1), strict=True):
        above = exp.Floor(this=exp.Div(this=context.cast(copy, Type.FLOAT8), expression=number(size)))
        octet = exp.Mod(this=context.cast(above, Type.INT8), expression=number(256))
        dotted = context.cast(octet, Type.STR)
        dot = exp.DPipe(this=text, expression=string(".")) if text else None
        text = exp.DPipe(this=dot, expression=dotted) if dot else dotted
    return exp.Paren(this=text)


TEXT_OF = (
    Overload("timestamp -> str", _format),
    Overload("ip4 -> str", _ip_text),
    Overload("float8 -> str", lambda context, value: context.dialect.float_text(value)),
    Overload("any -> str", lambda context, value: context.cast(value, Type.STR)),
)


# Choices and aggregates ----------------------------------------------------------------------------------------------


def _decode(context: ExpressionContext, value: Sql, *pairs: Sql) -> Sql:
    keys, results = pairs[: len(pairs) // 2 * 2 : 2], pairs[1::2]
    tests = map(equal, context.copies(value, len(keys)), keys)
    return case_when(*zip(tests, results, strict=True), default=pairs[-1] if len(pairs) % 2 else None)


def _by_time(pick: type[exp.ArgMin | exp.ArgMax]) -> Build:
    def build(context: ExpressionContext, value: Sql) -> Sql:
        if context.time is None:
            raise UnplacedError("these rows have no eventdate to be ordered by")
        return pick(this=value, expression=context.time.copy())

    return build


def _collect(text_of: Overload) -> Overload:
    def build(context: ExpressionContext, value: Sql) -> Sql:
        text = text_of.build(context, value)
        assert isinstance(text, exp.Expr)
        values = exp.ArrayAgg(this=exp.Distinct(expressions=[text]))
        not_null = exp.Filter(
            this=values, expression=exp.Where(this=exp.Not(this=exp.Is(this=text.copy(), expression=exp.null())))
        )
        return exp.ArrayToString(this=exp.ArraySort(this=not_null), expression=string(", "))

    return Overload(text_of.signature, build)


def _call_on_float(wrap: type[exp.Func]) -> Build:
    return lambda context, value: wrap(this=context.cast(value, Type.FLOAT8))


def _round(context: ExpressionContext, value: Sql, digits: int = 0) -> Sql:
    return exp.Round(this=context.cast(value, Type.FLOAT8), decimals=number(digits))


def _sum_whole(context: ExpressionContext, value: Sql) -> Sql:
    return context.try_cast(context.dialect.wide_sum(value), Type.INT8)


def _abs_whole(context: ExpressionContext, value: Sql) -> Sql:
    return context.attempt(exp.Abs(this=context.cast(value, Type.INT8)))


def _measure(wrap: type[exp.Func]) -> tuple[Overload, ...]:
    """Return the two signatures of an aggregate, for numbers and for strings.

    Strings are accepted because stored events often have numbers as strings.
    """

    def of_text(context: ExpressionContext, text: Sql) -> Sql:
        return wrap(this=_number_of_text(_DECIMAL, Type.FLOAT8)(context, text))

    return (Overload("number -> float8", _call_on_float(wrap)), Overload("str -> float8", of_text))


_LEFT_OUT = "Strings that are not numbers are left out"


def _percentile() -> tuple[Overload, ...]:
    """Return the two signatures of the percentile, for numbers and for strings that contain numbers.

    The percentage must be a literal.
    """

    def of_number(context: ExpressionContext, value: Sql, percent: float) -> Sql:
        return exp.PercentileCont(this=context.cast(value, Type.FLOAT8), expression=_share(percent))

    def of_text(context: ExpressionContext, text: Sql, percent: float) -> Sql:
        return exp.PercentileCont(
            this=_number_of_text(_DECIMAL, Type.FLOAT8)(context, text), expression=_share(percent)
        )

    return Overload("number, percent -> float8", of_number), Overload("str, percent -> float8", of_text)


def _share(percent: float) -> Sql:
    if not 0 <= percent <= 100:
        raise UnplacedError(f"a percentile is 0 to 100, not {percent:g}", argument=1)
    if 0 < percent < 1:
        raise UnplacedError(f"a percentile is 0 to 100: write {100 * percent:g} for {percent:g}", argument=1)
    return exp.Literal.number(format(Decimal(repr(percent)) / 100, "f"))


def _call(wrap: type[exp.Func]) -> Build:
    return lambda context, value: wrap(this=value)


def _is_null(context: ExpressionContext, value: Sql) -> Sql:
    return exp.Is(this=paren(value), expression=exp.null())


def _overload(
    signature: str, build: Build, bound: Callable[[list[CompiledValue]], TextBound] = _widest
) -> tuple[Overload, ...]:
    return (Overload(signature, build, bound),)


SAMPLE_ROWS = (
    ("2024-01-01 10:00:00", "ann", 200, 1.5),
    ("2024-01-01 10:01:00", "bob", 404, 2.5),
    ("2024-01-01 10:02:00", "ann", 200, 9.5),
    ("2024-01-01 10:03:00", "cid", None, None),
)
"""The rows that the examples of aggregates use.

The columns are eventdate, user (str), status (int4), seconds (float8).
"""

SECTIONS: Mapping[str, tuple[Function, ...]] = {
    "tests": (
        Function("isnull", _overload("any -> bool", _is_null), "true if there is no value", "isnull(null)", True),
        Function(
            "isnotnull",
            _overload("any -> bool", lambda context, value: exp.Not(this=_is_null(context, value))),
            "true if there is a value",
            "isnotnull(null)",
            False,
        ),
        Function(
            "in",
            _overload("T, T… -> bool", lambda context, *options: member(context, options[-1], list(options[:-1]))),
            "true if the last argument equals one of the other arguments. `in`(a, b, x) is the same as x in {a, b}",
            '`in`("a", "b", "b")',
            True,
        ),
        Function(
            "has",
            _overload("str, str… -> bool", _any_part(contains)),
            "true if the text contains one of the parts",
            'has("abc", "x", "b")',
            True,
        ),
        Function(
            "weakhas",
            _overload("str, str… -> bool", _any_part(contains_any_case)),
            "true if the text contains one of the parts, ignoring case",
            'weakhas("ErrorCode", "errorcode")',
            True,
        ),
        Function(
            "toktains",
            _overload("str, text -> bool", _has_token),
            "true if the text contains the token, with no letter or digit directly before or after it",
            'toktains("dns 8.8.8.80", "8.8.8.8")',
            False,
        ),
        Function(
            "startswith",
            _overload("str, str -> bool", lambda context, text, part: exp.StartsWith(this=text, expression=part)),
            "true if the text begins with the part",
            'startswith("abc", "ab")',
            True,
        ),
        Function(
            "endswith",
            _overload("str, str -> bool", lambda context, text, part: exp.EndsWith(this=text, expression=part)),
            "true if the text ends with the part",
            'endswith("abc", "ab")',
            False,
        ),
        Function(
            "eqic",
            _overload(
                "str, str -> bool",
                lambda context, first, second: equal(exp.Lower(this=first), exp.Lower(this=second)),
            ),
            "true if the texts are equal, ignoring case",
            'eqic("Ann", "ANN")',
            True,
        ),
        Function(
            "matches",
            (
                Overload("str, glob -> bool", lambda context, text, glob: matches(text, glob)),
                Overload("str, regex -> bool", lambda context, text, regex: matches(text, regex)),
            ),
            "true if the glob matches the whole text, or if the regular expression matches a part of the text",
            'matches("abc", nameglob("a*"))',
            True,
        ),
        Function(
            "re",
            _overload("text -> regex", _regex),
            "a regular expression (RE2 syntax) for ~, matches and peek. It may match anywhere in the text",
            '"abc" ~ re("b.$")',
            True,
        ),
        Function(
            "nameglob",
            _overload("text -> glob", _glob),
            "a pattern that must match a whole text. * matches any characters, and ? matches one character",
            'matches("abc", nameglob("?c"))',
            False,
        ),
    ),
    "choices": (
        Function(
            "ifthenelse",
            _overload("bool, T, T -> T", lambda context, test, yes, no: case_when((test, yes), default=no)),
            "the second argument if the first is true. The third if the first is false or null",
            'ifthenelse(404 >= 400, "bad", "good")',
            "bad",
        ),
        Function(
            "decode",
            _overload("T, (T, U)…, U? -> U", _decode),
            "each (T, U) is a key and a value. The result is the value of the first key that equals the first "
            "argument. If no key is equal, the result is the optional last argument, or null",
            'decode(2, 1, "one", 2, "two", "many")',
            "two",
        ),
    ),
    "text": (
        Function("lower", _overload("str -> str", _call(exp.Lower)), "the text in lower case", 'lower("Ann")', "ann"),
        Function("upper", _overload("str -> str", _call(exp.Upper)), "the text in upper case", 'upper("Ann")', "ANN"),
        Function(
            "length",
            _overload("str -> int8", lambda context, text: context.cast(exp.Length(this=text), Type.INT8)),
            "the number of characters",
            'length("Zoë")',
            3,
        ),
        Function(
            "trim",
            _overload("str -> str", _call(exp.Trim)),
            "the text without spaces at both ends",
            'trim(" a b ")',
            "a b",
        ),
        Function(
            "split",
            _overload(
                "str, text, digits -> str",
                lambda context, text, by, index: exp.Bracket(
                    this=exp.Split(this=text, expression=string(by)), expressions=[number(index)], offset=0
                ),
            ),
            "the text is cut at each separator, which is the second argument. The third argument is the number of the "
            "part to return, counted from 0. Null if there is no such part",
            'split("a/b/c", "/", 1)',
            "b",
        ),
        Function(
            "replaceall",
            _overload(
                "str, str, str -> str",
                lambda context, text, old, new: exp.Replace(this=text, expression=old, replacement=new),
                _replaced_bound,
            ),
            "the text with every occurrence of the second argument replaced by the third",
            'replaceall("a.b.c", ".", "-")',
            "a-b-c",
        ),
        Function(
            "peek",
            _overload("str, regex, digits? -> str", _peek),
            "the first match of the regular expression. If there is a third argument, the text that the group with "
            "this number matched. "
            'Null if nothing matches, and "" if the match is empty',
            'peek("id=42;", re("id=([0-9]+)"), 1)',
            "42",
        ),
        Function(
            "jsonparse",
            _overload("str, text -> str", _json_member),
            'the value at a path in a JSON text. Two examples of paths are a.b[0] and ["a b"].c. A string is returned '
            "without quotes, and any other value as JSON without blanks. Null if the value does not exist or is null, "
            f"if the text is not JSON, or if it is nested deeper than {MAX_JSON_DEPTH}. If a name occurs several "
            "times, the first one counts. Escapes in names are not decoded",
            """jsonparse('{"a": {"b": [1.50, "x"]}}', "a.b[0]")""",
            "1.50",
        ),
    ),
    "numbers": (
        Function(
            "round",
            _overload(
                "number, digits? -> float8",
                _round,
            ),
            "the number rounded to a number of decimal places (default 0). Halves are rounded away from zero",
            "round(2.345, 1)",
            2.3,
        ),
        Function(
            "floor",
            _overload("number -> float8", _call_on_float(exp.Floor)),
            "the largest whole number that is not greater than the number",
            "floor(-1.5)",
            -2.0,
        ),
        Function(
            "ceil",
            _overload("number -> float8", _call_on_float(exp.Ceil)),
            "the smallest whole number that is not less than the number",
            "ceil(-1.5)",
            -1.0,
        ),
        Function(
            "abs",
            (
                Overload("int -> int8", _abs_whole),
                Overload("float8 -> float8", _call(exp.Abs)),
            ),
            "the absolute value",
            "abs(-3)",
            3,
        ),
    ),
    "dates, in UTC unless a zone is given": (
        Function(
            "now",
            _overload("-> timestamp", lambda context: moment(context.now)),
            "the time when the query was made, the same in all rows",
            "year(now())",
            2024,
        ),
        Function(
            "today",
            _overload("-> timestamp", _midnight(0)),
            "the start of the current day, in the time zone of the request",
            "formatdate(today())",
            "2024-05-06 00:00:00.000",
        ),
        Function(
            "yesterday",
            _overload("-> timestamp", _midnight(1)),
            "the start of the day before, in the time zone of the request",
            "formatdate(yesterday())",
            "2024-05-05 00:00:00.000",
        ),
        Function(
            "timestamp",
            _overload(
                "int -> timestamp", lambda context, ms: context.attempt(from_epoch_ms(context.cast(ms, Type.INT8)))
            ),
            "the time for a number of milliseconds since 1970-01-01. Null if the time is out of range",
            "timestamp(1704067200000)",
            datetime(2024, 1, 1),
        ),
        Function(
            "epoch",
            _overload("timestamp -> int8", lambda context, time: epoch_ms(time)),
            "the time as the number of milliseconds since 1970-01-01",
            'epoch(parsedate("2024-01-01", "yyyy-MM-dd"))',
            1704067200000,
        ),
        Function(
            "formatdate",
            _overload("timestamp, text?, zone? -> str", _format),
            f"the time as text. The pattern consists of {DATE_PARTS} and 'quoted text'. The default pattern is "
            f"{DATE_FORMAT}. The text is in the zone, or in UTC if no zone is given. A zone is GMT+2 or a name such as "
            "Europe/Berlin. With such a name, the result is null for times before 1970 and after 2037",
            'formatdate(timestamp(0), "dd\'T\'HH:mm", "Asia/Kolkata")',
            "01T05:30",
        ),
        Function(
            "parsedate",
            _overload("str, text?, zone? -> timestamp", _parse),
            "the time in a text. Pattern and zone are as in formatdate. Without a pattern, the text must be a date "
            "such as 2024-01-31, with or without a time. Null if the text does not match the pattern. If a local time "
            "occurs twice or does not exist, the offset from before the change of the clocks is used",
            'parsedate("07/2024", "MM/yyyy", "GMT+2")',
            datetime(2024, 6, 30, 22),
        ),
        *(
            Function(
                name,
                _overload("timestamp -> int4", _part(name.upper())),
                f"the {name} of a time",
                f'{name}(parsedate("2024-02-03 04:05:06.789"))',
                result,
            )
            for name, result in {"year": 2024, "month": 2, "day": 3, "hour": 4, "minute": 5, "second": 6}.items()
        ),
    ),
    "conversions": (
        Function(
            "str",
            TEXT_OF,
            f"the value as text. Times have the form {DATE_FORMAT}, and addresses the form 10.0.0.1",
            'str(10.0.0.1) + " " + str(true)',
            "10.0.0.1 true",
        ),
        Function(
            "int",
            _whole(Type.INT4),
            "the value as int4, without its fraction. Null if the value is not a number or is too large",
            'int("-200.7")',
            -200,
        ),
        Function(
            "int8",
            (
                *_whole(Type.INT8),
                Overload("ip4 -> int8", lambda context, address: context.cast(address, Type.INT8)),
            ),
            "the value as int8, without its fraction. Null if the value is not a number or is too large. A text "
            "with an exponent, such as 1e3, is first read as float8",
            'int8("12345678901")',
            12345678901,
        ),
        Function(
            "float8",
            (
                Overload("str -> float8", _number_of_text(_DECIMAL, Type.FLOAT8)),
                Overload("number -> float8", lambda context, value: context.cast(value, Type.FLOAT8)),
            ),
            "the value as float8. Null if the value is not a number",
            'float8("1.5e3")',
            1500.0,
        ),
        Function(
            "bool",
            (
                Overload("str -> bool", _bool_of_text),
                Overload("number -> bool", lambda context, value: exp.NEQ(this=paren(value), expression=number(0))),
            ),
            "true for the text true, and false for the text false, ignoring case. Null for any other text. For a "
            "number, true if the number is not 0",
            'bool("True")',
            True,
        ),
        Function(
            "ip4",
            (
                Overload("text -> ip4", _ip_of_literal),
                Overload("str -> ip4", _ip_of_text),
                Overload("int -> ip4", _ip_of_number),
            ),
            "the value as an address. Null if the value is not an address",
            'ip4("10.0.0.1") = 10.0.0.1',
            True,
        ),
    ),
    "aggregates, of a group's rows": tuple(
        Function(name, overloads, meaning, example, result, aggregate=True)
        for name, overloads, meaning, example, result in (
            (
                "count",
                (
                    Overload("-> int8", lambda context: exp.Count(this=exp.Star())),
                    Overload("any -> int8", _call(exp.Count)),
                ),
                "the number of rows, or the number of values that are not null. To count the rows for which a "
                "condition is true, use sum(int(CONDITION))",
                "count(status)",
                3,
            ),
            (
                "sum",
                (
                    Overload("int -> int8", _sum_whole),
                    Overload("float8 -> float8", _call(exp.Sum)),
                    _measure(exp.Sum)[1],
                ),
                f"the sum. Null if an int8 cannot hold the sum. {_LEFT_OUT}",
                "sum(status)",
                804,
            ),
            (
                "avg",
                (Overload("int -> float8", deviation.mean), *_measure(exp.Avg)),
                f"the mean. {_LEFT_OUT}",
                "avg(status)",
                268.0,
            ),
            ("min", _overload("T -> T", _call(exp.Min)), "the smallest value", "min(user)", "ann"),
            ("max", _overload("T -> T", _call(exp.Max)), "the largest value", "max(user)", "cid"),
            (
                "first",
                _overload("T -> T", _by_time(exp.ArgMin)),
                "the value of the row with the earliest eventdate. If there are several such rows, one of their values",
                "first(status)",
                200,
            ),
            (
                "last",
                _overload("T -> T", _by_time(exp.ArgMax)),
                "the value of the row with the latest eventdate. If there are several such rows, one of their values",
                "last(seconds)",
                9.5,
            ),
            (
                "stddev",
                (
                    Overload("int4 -> float8", deviation.deviation),
                    Overload("int8 -> float8", deviation.deviation_of_halves),
                    *_measure(exp.StddevSamp),
                ),
                f"the sample standard deviation. Null for fewer than two values. {_LEFT_OUT}",
                "round(stddev(seconds), 3)",
                4.359,
            ),
            ("median", _measure(exp.Median), f"the middle value. {_LEFT_OUT}", "median(seconds)", 2.5),
            (
                "percentile",
                _percentile(),
                "the percentile p, which is the second argument, from 0 to 100. The n values are sorted, and their "
                "positions are counted from 0. The result is the value at position p / 100 * (n - 1), interpolated "
                f"linearly between two positions. The percentile 50 is the median. {_LEFT_OUT}",
                "percentile(seconds, 90)",
                8.1,
            ),
            (
                "collectdistinct",
                tuple(map(_collect, TEXT_OF)),
                "the distinct values as one text, sorted and separated by ', '",
                "collectdistinct(user)",
                "ann, bob, cid",
            ),
            (
                "hllppcount",
                _overload("any -> int8", _call(exp.ApproxDistinct)),
                "the approximate number of distinct values",
                "hllppcount(user)",
                3,
            ),
        )
    ),
}

FUNCTIONS: Mapping[str, Function] = {function.name: function for section in SECTIONS.values() for function in section}
