"""Hostile requests, made from a seed: queries and bodies that are nearly right, and values at the limits of each type.

`Hostile(seed)` makes three kinds of query: well-typed ones from the table of functions, with odd values and sometimes a
wrong type; random sentences of the grammar file; and either of these with tokens moved. Bodies have members of each
wrong type, numbers of all sizes, halves of characters, duplicate members, and depths beyond any limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from lark import Lark
from lark.grammar import NonTerminal

from svcctl.service.language.functions import FUNCTIONS
from svcctl.service.language.printer import string_text
from svcctl.service.rendering import ENCODERS

MODES = tuple(ENCODERS)
NOON = datetime(2024, 1, 31, 12)
"""The date of the events of TABLES."""
TABLES = ("odd", "many")

COLUMNS: Mapping[str, Sequence[str]] = {
    "timestamp": ("eventdate", "t"),
    "str": ("s", "`a b`"),
    "int4": ("i",),
    "int8": ("l",),
    "float8": ("f",),
    "bool": ("b",),
    "ip4": (),
}
TYPES = tuple(COLUMNS)
TEXTS = (
    "", "a", "1", "-1", "1.5", "1e308", "1e309", "nan", "infinity", "-infinity", "true", "null", "é😀\u2028", "\t\r\n",
    "10.0.0.1", "999.1.1.1", "2024-01-31", "31/12/9999", "31/12/9999 23:59:59", "99999999-01-01", "0000-00-00",
    "290309-12-22 (BC) 00:00:00", "yyyy-MM-dd'T'HH:mm", "yyyy", "SSS", "%", "%Y %s", "\\", "'", "x" * 5000, "(", "[a",
    "a{1000}", "(a*)*", "*?", "\\p{L}", "$1\\1", "\x01\x1b\x7f", "9" * 400, "0x7f", "2262-04-12",
    "294247-01-10 04:00:54.775807",
)  # fmt: skip
WRITTEN: Mapping[str, Sequence[str]] = {
    "re": ("", "a", "(a*)*", "\\p{L}", "[^a]+?", "(?i)X|$", "((((a))))", "a{100}"),
    "formatdate": ("", "yyyy-MM-dd'T'HH:mm", "yyyy", "SSS", "HH:mm:ss %Y"),
    "parsedate": ("yyyy-MM-dd'T'HH:mm", "yyyy", "dd/MM/yyyy HH:mm:ss"),
    "ip4": ("10.0.0.1", "0.0.0.0", "255.255.255.255"),
    "split": ("a", "/", "é", "\\"),
}
"""Valid arguments for parameters that take only a literal or a pattern in the query."""
INTEGERS = (
    0, 1, -1, 7, 99, 2**31 - 1, -(2**31), 1000, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 253402300800000,
    9223372036854775, 9224318016000000, 31556889864403199, -62135596801000, 2**63, 10**30,
)  # fmt: skip
FLOATS = ("0.0", "0.5", "1e15", "1e16", "1e308", "5e-324", "123456789.123456789", "9.3e18", "1e309", "1e-400")
ADDRESSES = ("0.0.0.0", "255.255.255.255", "10.0.0.1", "256.0.0.1")
DATES: tuple[Any, ...] = (
    0, 1, -1, 99_999_999_999, 100_000_000_000, 2**63, 10**40, 1e300, 1.5, 1706702400, True, None, [], {}, "", "now",
    "today", "endday", "endmonth", "1h", "2d", "3ad", "4ah", "999999999999d", "99999999999999999999h", "3652058d",
    "01/01/1970 00:00:00", "31/12/9999 23:59:59", "01/12/9999 00:00:00", "01/01/0001 00:00:00", "30/02/2024 00:00:00",
    "2024-01-31T10:00:00Z", "\ud800", "\0", "ألف",
)  # fmt: skip
ZONES: tuple[Any, ...] = (
    "GMT",
    "GMT+2",
    "GMT-14",
    "GMT+14",
    "GMT+15",
    "GMT+1:30",
    "GMT+99",
    "UTC",
    "Mars",
    "",
    None,
    2,
    [],
    "\udc00",
)
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 1e308, 10**18, 2**63, 10**400, "", "x", "\ud800", "\udfff\ud800", "\0", "x" * 70_000, [],
    [[]], ["a", 1, None], {}, {"": ""}, {"a": {"a": {}}}, "*", {"*": []}, {"a": [1, "2"]}, float("nan"), float("inf"),
)  # fmt: skip
PARAMS = (
    "topic", "bootstrap.servers", "mode", "maxBytesPerCommit", "maxTimeWithoutCommit", "security.protocol",
    "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.pem", "compression.type", "aws.bucket", "aws.region",
    "aws.endpoint", "aws.accesskey", "aws.secretkey", "format", "file.password", "s3.fileName", "multiplefile",
    "retention.size", "retention.time", "fs.defaultFS", "file", "dfs.replication", "friendlyName", "unheard.of",
)  # fmt: skip
DESTINATIONS: Mapping[str, Mapping[str, Any]] = {
    "kafka": {"topic": "t", "bootstrap.servers": "127.0.0.1:1"},
    "s3": {"aws.bucket": "b", "aws.endpoint": "http://127.0.0.1:1"},
    "hdfs": {"fs.defaultFS": "hdfs://127.0.0.1:1", "file": "/a/b.csv"},
    "donothing": {},
}
VALUES = (
    "http://", "http://[", "https://[::1", "http://a:99999999", "http://a b", "ftp://x", "//", "http://127.0.0.1:1",
    "hdfs://", "hdfs://[", "hdfs://a:b", "hdfs://127.0.0.1:1", "/a", "a/../b", "a//b", "127.0.0.1:1", ":::", "é 😀",
    "true", "json", "gzip", "zip", "300", "50", "-5", "1e9", "sasl_ssl", "SCRAM-SHA-512", "us-east-1", "a\nb",
)  # fmt: skip


def tables(directory: Path) -> Mapping[str, Path]:
    """Files of events to load as TABLES: every column has nulls and the limits of its type."""
    floats = [0.0, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 0.1, 1e16, 123456789.5, None]
    days = [
        0,
        -9_223_372_000_000,
        253402300799,
        253402300800,
        -62135596801,
        9223372036,
        2**31,
        31556889864,
        None,
        1,
        -1,
        99,
    ]
    rows = {
        "t": pa.array([None if day is None else day * 1_000_000 for day in days], pa.timestamp("us")),
        "s": pa.array([*TEXTS[:11], None]),
        "a b": pa.array([*TEXTS[-11:], None]),
        "i": pa.array([0, 1, -1, 2**31 - 1, -(2**31), 7, 9, 10, 100, None, 5, 404], pa.int32()),
        "l": pa.array([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 9, 10, 100, None, 5, 404], pa.int64()),
        "f": pa.array(floats, pa.float64()),
        "b": pa.array([True, False, None] * 4),
    }
    paths = {}
    for name, count in zip(TABLES, (1, 900), strict=True):
        plain = {key: pa.nulls(12 * (count - 1), values.type).fill_null(values[1]) for key, values in rows.items()}
        columns = {key: pa.concat_arrays([plain[key], values]) for key, values in rows.items()}
        dates = pa.array([NOON + timedelta(seconds=number) for number in range(12 * count)], pa.timestamp("us"))
        paths[name] = directory / f"{name}.parquet"
        pq.write_table(pa.table({"eventdate": dates, **columns}), paths[name])
    return paths


class Hostile:
    """Makes requests; the same seed makes the same requests."""

    def __init__(self, seed: object) -> None:
        self._random = Random(str(seed))
        self._one = self._random.choice
        self._wrong: float = 3
        """How many of a hundred values in a query have a wrong type or are left out."""

    def _chance(self, percent: float) -> bool:
        return self._random.random() < percent / 100

    # Queries

    def query(self) -> str:
        self._wrong = self._one((0, 0, 0, 0.5, 3))
        match self._random.random():
            case share if share < 0.7:
                return self._typed()
            case share if share < 0.85:
                return self._mutated(self._typed())
            case _:
                text = self._sentence("query", 14)
                return self._mutated(text) if self._chance(20) else text

    def _typed(self) -> str:
        clauses = [f"from {'many' if self._chance(4) else 'odd'}"]
        clauses += [f"where {self._expression('bool', 3)}" for _ in range(self._random.randrange(3))]
        if self._chance(60):
            items = [self._expression(self._one(TYPES), 3) for _ in range(self._random.randint(1, 4))]
            clauses.append("select " + ", ".join(f"{item} as c{number}" for number, item in enumerate(items)))
        elif self._chance(80):
            every = self._one(("", "every 1s ", "every 7h ", "every 36500d "))
            by = self._one(("", f"by {self._expression(self._one(TYPES), 3)} as k "))
            calls = ", ".join(f"{self._aggregate()} as a{number}" for number in range(self._random.randint(1, 3)))
            clauses.append(f"group {every}{by}select {calls}")
        if self._chance(30):
            clauses.append(f"{self._one(('limit', 'offset'))} {self._one((0, 1, 9, 10**15))}")
        if self._chance(self._wrong):
            self._random.shuffle(clauses)
        return " ".join(clauses)

    def _aggregate(self) -> str:
        name = self._one([each for each in FUNCTIONS if FUNCTIONS[each].aggregate])
        return self._call(name, self._one(FUNCTIONS[name].signatures), self._one(TYPES), 3)

    def _expression(self, type_: str, depth: int) -> str:
        if self._chance(self._wrong):
            type_ = self._one(TYPES)
        if depth <= 0 or self._chance(15):
            return self._leaf(type_)
        number = type_ in ("int4", "int8", "float8")
        match self._random.randrange(10):
            case 0 | 1 if number:
                operator = self._one("+-*/%")
                return f"({self._expression(type_, depth - 1)} {operator} {self._expression(type_, depth - 1)})"
            case 2 if number:
                return f"-({self._expression(type_, depth - 1)})"
            case 0 | 1 | 2 if type_ == "bool":
                return self._test(depth)
            case 0 if type_ == "str":
                return f"({self._expression('str', depth - 1)} + {self._expression('str', depth - 1)})"
        calls = [call for call in _calls() if call[2] in (type_, "T", "U")]
        if not calls:
            return self._leaf(type_)
        name, signature, _ = self._one(calls)
        return self._call(name, signature, type_, depth - 1)

    def _test(self, depth: int) -> str:
        inner = self._one(TYPES)
        one, other = self._expression(inner, depth - 1), self._expression(inner, depth - 1)
        match self._random.randrange(8):
            case 0:
                return f"not {self._expression('bool', depth - 1)}"
            case 1:
                operator = self._one(("and", "or"))
                return f"({self._expression('bool', depth - 1)} {operator} {self._expression('bool', depth - 1)})"
            case 2:
                return f"{one} in {{{other}, {self._leaf(inner)}}}"
            case 3:
                network = f"{self._leaf('ip4')}/{self._one((0, 8, 32))}"
                return f"{self._expression('ip4', depth - 1)} <- {network}"
            case 4:
                return f"{self._expression('str', depth - 1)} {self._one(('->', '->>'))} {self._leaf('str')}"
            case 5:
                return f"{self._expression('str', depth - 1)} ~ {self._argument('', 'regex', 0)}"
            case _:
                return f"({one} {self._one(('=', '!=', '<', '<=', '>', '>='))} {other})"

    def _call(self, name: str, signature: str, wanted: str, depth: int) -> str:
        kinds = {"T": wanted if signature.endswith("T") else self._one(TYPES)}
        kinds["U"] = wanted if signature.endswith("U") else self._one(TYPES)
        arguments = []
        for group, one, mark in re.findall(r"\((.*?)\)…|(\w+)([?…]?)", signature.rpartition("->")[0]):
            times = 1 if not mark and not group else self._random.randint(0, 2) if mark == "?" else 2
            for kind in (group.split(", ") if group else [one]) * min(times, 1 if mark == "?" else times):
                arguments.append(self._argument(name, kinds.get(kind, kind), depth))
        if self._chance(self._wrong):
            arguments.append(self._leaf(self._one(TYPES)))
        return f"{f'`{name}`' if name == 'in' else name}({', '.join(arguments)})"

    def _argument(self, function: str, kind: str, depth: int) -> str:
        match kind:
            case "regex" | "glob":
                name = "re" if kind == "regex" else "nameglob"
                return f"{name}({self._argument(name, 'text', 0)})"
            case "text":
                return string_text(self._one(TEXTS if self._chance(self._wrong) else WRITTEN.get(function, TEXTS)))
            case "zone":
                zones = TEXTS if self._chance(self._wrong) else ("GMT-3:30", "Europe/Berlin", "Asia/Kathmandu")
                return string_text(self._one(zones))
            case "digits":
                return str(self._one(INTEGERS) if self._chance(self._wrong) else self._random.randrange(10))
            case "fraction":
                return str(self._random.randrange(1000) / 10)
            case "any":
                return self._expression(self._one(TYPES), depth)
            case "int":
                return self._expression(self._one(("int4", "int8")), depth)
            case "number":
                return self._expression(self._one(("int4", "int8", "float8")), depth)
        return self._expression(kind, depth)

    def _leaf(self, type_: str) -> str:
        if self._chance(3):
            return "null"
        if COLUMNS.get(type_) and self._chance(50):
            return self._one(COLUMNS[type_])
        wrong = self._chance(self._wrong)
        match type_:
            case "str":
                return string_text(self._one(TEXTS))
            case "int4":
                return str(self._one(INTEGERS if wrong else INTEGERS[:8]))
            case "int8":
                return str(self._one(INTEGERS if wrong else INTEGERS[:-2]))
            case "float8":
                return self._one(FLOATS if wrong else FLOATS[:-2])
            case "bool":
                return self._one(("true", "false"))
            case "ip4":
                return self._one(ADDRESSES if wrong else ADDRESSES[:-1])
        text = string_text(self._one(TEXTS))
        return self._one((f"timestamp({self._one(INTEGERS[:-2])})", f"parsedate({text})", "now()"))

    def _sentence(self, rule: str, depth: int) -> str:
        """A sentence of the grammar. Rules deeper than `depth` take their shortest form."""
        rules, _, shortest = _grammar()
        expansions = rules[rule]
        if depth <= 0:
            least = min(shortest(each) for each in expansions)
            expansions = [each for each in expansions if shortest(each) == least]
        return " ".join(
            self._sentence(symbol.name, depth - 1) if isinstance(symbol, NonTerminal) else self._token(symbol.name)
            for symbol in self._one(expansions)
        )

    def _token(self, name: str) -> str:
        match name:
            case "IDENT":
                return self._one((*(c for names in COLUMNS.values() for c in names), *FUNCTIONS, *TABLES, "é", "_"))
            case "QUOTED":
                return self._one(("`a b`", "`in`", "`odd`", "````", "`\u2028`"))
            case "STRING":
                return string_text(self._one(TEXTS))
            case "INT":
                return str(abs(self._one(INTEGERS)))
            case "FLOAT":
                return self._one(FLOATS)
            case "PERIOD":
                return self._one(("0s", "1s", "5m", "36500d", "99999999999999999999d"))
            case "IP":
                return self._one(ADDRESSES)
            case "CIDR":
                return self._one(ADDRESSES) + self._one(("/0", "/32", "/33", "/99999999999"))
            case "COMPARE":
                return self._one(("=", "!=", "/=", "<", "<=", ">", ">="))
            case "TEST":
                return self._one(("->", "->>", "~"))
            case "INSIDE":
                return "<-"
        return _grammar()[1][name]

    def _mutated(self, text: str) -> str:
        tokens = re.findall(r'"(?:[^"\\]|\\.)*"|\w+|\s+|.', text, re.DOTALL)
        for _ in range(self._random.randint(1, 4)):
            at = self._random.randrange(len(tokens) or 1)
            match self._random.randrange(6):
                case 0:
                    del tokens[at : at + 1]
                case 1:
                    tokens[at:at] = tokens[at : at + 5]
                case 2:
                    tokens.insert(at, self._one(tokens or [""]))
                case 3:
                    tokens.insert(
                        at, self._one(("(", ")", "`", '"', "\\", "\ud800", "\0", "//", "{", "9" * 50, ";", "é"))
                    )
                case 4:
                    tokens[at : at + 1] = [self._expression(self._one(TYPES), 2)]
                case _:
                    tokens = tokens[:at]
        return "".join(tokens)

    # Bodies

    def asked(self) -> dict[str, Any]:
        """The members of a request for a query that will probably run, in any format and over any range."""
        fields: dict[str, Any] = {"query": self.query(), "from": 1706616000, "to": 1706788800}
        fields["mode"] = {"type": self._one(MODES)}
        if self._chance(15):
            fields["from"] = self._one(DATES)
        if self._chance(15):
            fields["to"] = self._one(DATES)
        for name, values, percent in (
            ("timeZone", ZONES, 20),
            ("dateFormat", ("default", "sql", "iso", "", "x", None, 5, []), 20),
            ("skip", (0, 1, 9000, 2**62, 2**63 - 1, -1, 1.5, "1"), 8),
            ("limit", (0, 1, 9000, 2**62, 2**63 - 1, -1, 1.5, "1"), 8),
        ):
            if self._chance(percent):
                fields[name] = self._one(values)
        return fields

    def destination(self) -> Any:
        if self._chance(5):
            return self._one(ODD)
        type_ = self._one((*DESTINATIONS, "donothing", "donothing", "x"))
        params = self.nearly(**DESTINATIONS.get(type_.lower(), {}))
        for key in self._random.sample(PARAMS, self._one((0, 0, 1, 2))):
            params[key] = self._one(VALUES if self._chance(85) else ODD)
        given = self._one((params, params, params, [params], [params, {"a": 1}], self._one(ODD)))
        return self.nearly(type=type_, params=given) if self._chance(10) else {"type": type_, "params": given}

    def body(self, fields: Mapping[str, Any]) -> bytes:
        """A body that has these members, or nearly these, and sometimes is not JSON."""
        members = dict(fields)
        if self._chance(30):
            for name in self._random.sample([*members], min(len(members), self._random.randint(1, 3))):
                members[name] = self._one(ODD)
        text = json.dumps(members, ensure_ascii=self._chance(50))
        match self._random.randrange(40):
            case 0:
                text = text[: self._random.randrange(len(text))]
            case 1:
                text = "{" + f'"{self._one([*members, "x"])}": 1, ' + text[1:]
            case 2:
                at = self._random.randrange(len(text))
                text = (
                    text[:at] + self._one(("\\ud800", "\\u0000", "\0", "NaN", "1e999", "]", '"', "\ufeff")) + text[at:]
                )
            case 3:
                depth = self._one((17, 900, 50_000))
                text = text[:-1] + ', "deep": ' + self._one(("[", '{"a":')) * depth
            case 4:
                depth = self._one((3, 17, 900, 50_000))
                text = text[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}"
            case 5:
                return self._random.randbytes(self._random.randrange(200))
        return text.encode(errors="surrogatepass")

    def path(self) -> str:
        """A part of a path, without URL encoding."""
        return self._one(
            ("acme", "acme@demo", "a" * 300, "*", "é😀", "\0", "%", "..", "a/b", " ", "\n", "demo", "ops", "\ufffd")
        )

    def nearly(self, **fields: Any) -> dict[str, Any]:
        """These members; one or two of them are missing or have another value."""
        made = dict(fields)
        for name in self._random.sample([*fields], min(len(fields), self._random.randint(0, 2))):
            made[name] = self._one((*ODD, *VALUES, *TEXTS))
            if self._chance(20):
                del made[name]
        return made


@cache
def _calls() -> tuple[tuple[str, str, str], ...]:
    """The name, parameters and result of every function that is not an aggregate."""
    return tuple(
        (name, signature, signature.rpartition("->")[2].strip())
        for name, function in FUNCTIONS.items()
        if not function.aggregate
        for signature in function.signatures
    )


@cache
def _grammar() -> tuple[Mapping[str, list[Any]], Mapping[str, str], Callable[[Any], int]]:
    """The rules of the grammar file as lists of symbols, the terminals that are words, and a function for depths."""
    text = resources.files("svcctl.service.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    lark = Lark(text, parser="lalr", start="query")
    rules: dict[str, list[Any]] = {}
    for rule in lark.rules:
        rules.setdefault(str(rule.origin.name), []).append(rule.expansion)
    depths: dict[str, int] = {}

    def depth(expansion: Any) -> int:
        return max((depths.get(s.name, 99) for s in expansion if isinstance(s, NonTerminal)), default=0)

    for _ in range(20):
        for name, expansions in rules.items():
            depths[name] = 1 + min(map(depth, expansions))
    words = {terminal.name: str(terminal.pattern.value) for terminal in lark.terminals}
    return rules, words, depth
