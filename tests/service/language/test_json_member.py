"""A member of JSON text is the same on every engine, and is the one that Python's json reads."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from support.engines import EVERY_ENGINE, rows_of_engines
from support.events import store

from svcctl.service.engines import Engine
from svcctl.service.language import Column, Plan, QueryError, Table, Type
from svcctl.service.language.json_path import MAX_JSON_DEPTH, JsonStep, json_path, path_text
from svcctl.service.language.query_error import UnplacedError

SEED = 20261126
NAMES = ("a", "b", "a.b", "c[0]", "ü", "user-agent", "", "$", "*")
STRINGS = (
    *(r"x", r"", r"\u0041", r"\ud83d\ude00", r"\ud800", r"\udc00\ud800", r"a\"b\\", r"\\u0041", r"\/\b\f\n\r\t", r"s"),
    *(r"\u0000", r"[1]", r"{\"a\": 1}", r", \"a\": 2", r"null", r"\u0022", r"\\\"", "\u2028", "\x7f", "ü '?%", "NaN,"),
)
OTHERS = (
    *("0", "-0", "12", "1.50", "1e2", "1E+05", "-0.0", "1e400", "0.1", "12345678901234567890123", "0.00001"),
    *("1700000000.123", "9223372036854775807", "0.1234567890123456789", "true", "false", "null"),
)
PATHS = (
    *("a", "b", '["a.b"]', '["c[0]"].a', "ü", "user-agent", "[0]", "[1].a", "a.b", "a[0]", "a.a", "b[0][0]"),
    *('["*"]', "a.$"),
)
INSERTED = (*'[]{},:"\\ 01-eE.tfn', "\t", "\n", "\x01", "\xa0", "\0", ",]", "//", "NaN", "'")
EXPLICIT = (
    *("", " ", "null", "1", '"a"', "a", "{", "{}", "[]", '{"a":1} x', '{"a":1}{"a":2}', '{"a":1,}', '{"a":NaN}'),
    *('{"a":[1,]}', '{"a":-Infinity}', '{"a":01}', '{"a":1.}', '{"a":"\t"}', '\ufeff{"a":1}', '{"a" 1}', "[1 2]"),
    *("{'a':1}", "{a:1}", '{"a":truefalse}', '{"a":tru}', r'{"a":"\x"}', '{"a":null,"a":2}', '{"a":{},"a":{"b":1}}'),
    *(' {"a" : [ 1 , 2 ] , "b":{ "x y" : "z  z" } } ', '["a",["b"]]', r'{"a":"[0]","b":"{\"a\":1}"}'),
    *('{"a":' * 31 + "{}" + "}" * 31, '{"a":' * 33 + "{}" + "}" * 33, "[" * 100_000),
    *('{"b":' + "[" * 40 + "]" * 40 + ',"a":1}', '{"a":' + "[1," * 5000 + "1" + "]" * 5000 + "}"),
    *('{"a":[' + r'"x\n",' * 20_000 + "1]}", '{"a":"' + r"x\\" * 50_000 + '"}'),
)
TABLE = Table("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("j", Type.STR)))

Compiled = Callable[..., Plan]


def documents() -> list[str]:
    """JSON of all kinds, and the same with one change, which often makes it invalid."""
    chance = random.Random(SEED)

    def value(depth: int) -> str:
        blank = chance.choice(("", "", " ", "\n\t"))
        kind = chance.random()
        if depth == 0 or kind < 0.3:
            text = chance.choice((f'"{chance.choice(STRINGS)}"', chance.choice(OTHERS)))
        elif kind < 0.6:
            text = "[" + f"{blank},".join(value(depth - 1) for _ in range(chance.randrange(4))) + f"{blank}]"
        else:
            members = (f'"{chance.choice(NAMES)}"{blank}:{value(depth - 1)}' for _ in range(chance.randrange(6)))
            text = "{" + f",{blank}".join(members) + "}"
        return f"{blank}{text}{blank}"

    texts = [value(4) for _ in range(300)]
    for text in chance.sample(texts, 150):
        place = chance.randrange(len(text) + 1)
        texts.append(text[:place] + chance.choice(("", *INSERTED)) + text[place + chance.randrange(2) :])
    return [*EXPLICIT, *texts]


class Number(str):
    """A number as it is written."""


class Pairs(list[tuple[str, Any]]):
    """The members of an object, also those of the same name."""


def read(text: str) -> Any:
    """Python's value of JSON. Raises ValueError for other texts, and RecursionError."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=refuse)


def depth_of(value: Any) -> int:
    inner = [item for _, item in value] if isinstance(value, Pairs) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def expected(text: str, path: tuple[JsonStep, ...]) -> Any:
    """The value at a path, or None."""
    try:
        value = read(text)
        if depth_of(value) > MAX_JSON_DEPTH:
            return None
    except (ValueError, RecursionError):
        return None
    for step in path:
        if isinstance(value, Pairs):
            value = next((item for name, item in value if name == step), None)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    if isinstance(value, str) and (re.search("[\ud800-\udfff]", value) or "\0" in value):
        return None  # no text can hold it
    return value


def same(member: str | None, value: Any) -> bool:
    """Whether the text of a member is that of Python's value."""
    if value is None or member is None:
        return member is value
    if isinstance(value, list):
        compact = re.sub(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', r"\1", member)
        return compact == member and bool(read(member) == value)
    return member == (json.dumps(value) if isinstance(value, bool) else value)


@pytest.fixture(scope="module", params=rows_of_engines("lake"))
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with EVERY_ENGINE[request.param]() as engine:
        rows = [(datetime(2024, 1, 1), number, text) for number, text in enumerate(documents())]
        store(engine.stored, "t", TABLE.columns, rows)
        yield engine


def test_members_are_those_that_pythons_json_reads(engine: Engine, compiled: Compiled) -> None:
    texts = documents()
    wrong = []
    for path in PATHS:
        query = f"from t select n, jsonparse(j, '{path}') as m"
        plan = compiled(query, catalog={"t": TABLE}, dialect=engine.reader.dialect)
        with engine.reader.stream(plan) as stream:
            members = {n: m for batch in stream for n, m in zip(*(c.to_pylist() for c in batch.columns), strict=True)}
        assert len(members) == len(texts)
        for number, text in enumerate(texts):
            if not same(members[number], expected(text, json_path(path))):
                wrong.append((path, text[:300], members[number], expected(text, json_path(path))))
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "path", "member"),
    [
        (r'{"a": {"b": [1.50, "x"]}}', "a", '{"b":[1.50,"x"]}'),
        (r'{"a": 1, "a": 2}', "a", "1"),
        (r'{"\\u0061": 1}', "a", None),
        (r'{"0": 1}', "[0]", None),
        (r'["x"]', "0", None),
        (r'{"a.b": {"c d": [[7]]}}', '["a.b"]["c d"][0][0]', "7"),
        (r'{"$date": 5}', "$date", "5"),
    ],
)
def test_the_rules_of_members(engine: Engine, compiled: Compiled, text: str, path: str, member: str | None) -> None:
    query = f"from t where n = 0 select jsonparse(str('{text}'), '{path}') as m"
    with engine.reader.stream(compiled(query, catalog={"t": TABLE}, dialect=engine.reader.dialect)) as stream:
        assert [value for batch in stream for value in batch.column(0).to_pylist()] == [member]


@pytest.mark.parametrize(
    ("path", "at"),
    [("a..b", 2), ("a.", 2), (".a", 1), ("a[-1]", 2), ("a[*]", 2), ("*", 1), ("a['b']", 2), ("[0]x", 4), ("a b", 2)],
)
def test_a_path_that_cannot_be_read_is_refused_at_its_character(path: str, at: int) -> None:
    with pytest.raises(UnplacedError, match=f"is not a path: unexpected .* at character {at}$"):
        json_path(path)


@pytest.mark.parametrize("path", ["", "$.a", "$[0]", ".".join("a" * (MAX_JSON_DEPTH + 1))])
def test_other_paths_are_refused(compiled: Compiled, path: str) -> None:
    with pytest.raises(QueryError) as caught:
        compiled(f"from t select jsonparse(j, '{path}')", catalog={"t": TABLE})
    assert caught.value.column == 28


def test_a_path_is_a_literal(compiled: Compiled) -> None:
    with pytest.raises(QueryError, match="argument 2 of jsonparse must be a literal"):
        compiled("from t select jsonparse(j, lower('A'))", catalog={"t": TABLE})


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_written_as_it_was_read(path: str) -> None:
    assert path_text(json_path(path)) == path
