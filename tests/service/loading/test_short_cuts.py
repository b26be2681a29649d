"""The cheap SQL for usual lines gives what the general SQL gives, also for lines that are almost usual."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.language.types import Type
from svcctl.service.loading import access_log
from svcctl.service.loading.columns import Columns
from svcctl.service.loading.flattening import EventMember, Flattening, flattened, nested
from svcctl.service.loading.kinds import ACCESS
from svcctl.service.loading.limits import MAX_DEPTH
from svcctl.service.loading.members import STYLES, compared, plain_text, with_object
from svcctl.service.loading.nesting import may_be_deep
from svcctl.service.loading.number_times import FIRST_MS, LAST_MS
from svcctl.service.loading.times import TimeFormat, as_time, has_no_zone, short, text_as_time

MUTATED_LINES = 1500
GROUPS = [
    *("server", "host", "user", "ident", "user2", "time", "request", "status", "bytes", "referrer", "agent", "rest"),
]
REQUEST = r"^(\S+) (.*?)(?: (HTTP/\S+))?$"
ACCESS_LINES = (
    '10.0.0.1 - - [01/Oct/2026:00:00:00 +0000] "GET /a/b HTTP/1.1" 200 123 "-" "Agent/1.0 (a; b)"',
    '10.0.0.1, 10.0.0.2 - [01/Oct/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1',
    '10.0.0.1 www.example ada - [01/Oct/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1',
    'INFO:web:10.0.0.1 - - [01/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5',
    'fe80::1%eth0 - - [01/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5',
    '10.0.0.1 - bob [01/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 304 -',
    '10.0.0.1 - Ann b [c] [01/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5',
    '[::1]:80 - - [2026-10-01T00:00:00+00:00] "-" 400 0 "http://a/" "-" 0.004 "x" y',
    'www:443 10.0.0.1 - - [01/Oct/2026:00:00:00 +0000] "POST /a b HTTP/2.0" 200 7 "-" "say \\"hi\\""',
)
TIMES = (
    "2026-10-01T10:20:30.123Z",
    "2026-10-01T10:20:30Z\r",
    "2026-10-01 10:20:30,123",
    "2026-03-29 02:30:00",
    "2026-10-25T02:30:00+02:00",
    "2026-10-01 10:20:30 -0530",
    "01/Oct/2026:10:20:30 +0200",
    "2026-10-01 10:20:30 CST",
    "Thu, 01 Oct 2026 10:20:30 GMT",
    "31.12.1999 10:20",
    "1790812800",
)
OBJECTS = (
    '{"t":"2026-10-01","n":1,"f":1.5,"b":true,"j":[1],"z":null}',
    '{"t":null,"n":-1,"f":2,"b":null,"j":{"a":1},"z":null}',
    '{"n":12,"t":"x"}',
    '{"t":"x","o":{"n":1,"p":{"t":"x"}}}',
    '{"o":null,"n":-1}',
    '{"o":{"p":{}},"f":2}',
    '{"o":3,"t":"x"}',
)
SHAPES = tuple(
    {"t": "VARCHAR", "n": "BIGINT", "f": "DOUBLE", "b": "BOOLEAN", "j": json_value, "z": "NULL", "o": inner}
    for json_value in (["UBIGINT"], {"a": "UBIGINT"})
    for inner in ({"n": "UBIGINT", "p": {"t": "VARCHAR"}}, "UBIGINT")
)
"""Structures of the objects above. `j` stays JSON text, and the members of `o` become columns."""


def mutated(texts: Sequence[str], count: int, seed: int) -> Iterator[str]:
    """The texts, and texts with a few characters changed, added, removed or moved within them."""
    chance = random.Random(seed)
    alphabet = sorted({*"".join(texts), *" \t\r\f\v\\\"'[]{}:,.-+eE019aZ\x00é\u2028"})
    yield from texts
    for _ in range(count):
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 3)):
            start = chance.randrange(len(text) + 1)
            end = start + chance.choice((0, 0, 1, 1, 2, 5))
            piece = "".join(chance.choices(alphabet, k=chance.choice((0, 1, 1, 2))))
            if chance.random() < 0.3:
                at = chance.randrange(len(text) + 1)
                piece = text[at : at + chance.randint(1, 8)]
            text = text[:start] + piece + text[end:]
        yield text


def connection(lines: Sequence[str], zone: str = "UTC") -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute(f"SET TimeZone={literal(zone)}")
    table = pa.table({"number": pa.array(range(len(lines)), pa.int64()), "line": pa.array(lines, pa.string())})
    opened.register("lines", table)
    return opened


def test_a_line_of_an_access_log_is_split_as_the_pattern_matches_it() -> None:
    lines = list(mutated(ACCESS_LINES, MUTATED_LINES, 1))
    with connection(lines) as opened:
        split = f"SELECT line, hit, request FROM {access_log.with_request(access_log.hits(ACCESS))} ORDER BY number"
        hit = f"SELECT *, regexp_extract(line, {literal(ACCESS)}, {GROUPS}) AS hit FROM lines"
        request = f"regexp_extract(hit.request, {literal(REQUEST)}, ['method', 'uri', 'protocol'])"
        matched = f"SELECT line, hit, {request} FROM ({hit}) ORDER BY number"
        assert opened.execute(split).fetchall() == opened.execute(matched).fetchall()


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
def test_a_usual_time_is_read_as_all_ways_of_writing_times_read_it(zone: str) -> None:
    lines = list(mutated(TIMES, MUTATED_LINES, 2))
    written = TimeFormat(zone)
    general = text_as_time(short("line"), written)
    within = f"TRY(CASE WHEN {general} BETWEEN epoch_ms({FIRST_MS}) AND epoch_ms({LAST_MS}) THEN {general} END)"
    with connection(lines, zone) as opened:
        rows = opened.execute(f"SELECT line, {as_time('line', Type.STR, written)}, {within} FROM lines").fetchall()
    assert [line for line, time, expected in rows if time != expected] == []


def test_a_time_without_a_zone_ends_with_a_digit_and_has_no_sign_after_its_date() -> None:
    digits = " AND ".join(f"line[{at}] BETWEEN '0' AND '9'" for at in (3, 4, 5))
    ends = "line[-1:] BETWEEN '0' AND '9' OR right(line, 2) IN ('AM', 'PM')"
    offset = "line[-5] = '+' OR contains(line[11:], '+') OR contains(line[11:], '-')"
    expected = f"({ends}) AND strlen(line) > 7 AND NOT ({offset}) AND NOT ({digits})"
    with connection(list(mutated(TIMES, MUTATED_LINES, 3))) as opened:
        rows = opened.execute(f"SELECT line, {has_no_zone('line')}, {expected} FROM lines").fetchall()
    assert [line for line, is_local, local in rows if is_local != local] == []


def test_objects_that_pass_the_comparison_of_members_have_fitting_structures() -> None:
    lines = [line for line in mutated(OBJECTS, MUTATED_LINES, 4) if "\0" not in line]
    root = EventMember()
    for shape in SHAPES:
        root.add(shape, 1)
    flat = flattened(root, Flattening(texts=("j",)))
    members = {leaf.path: leaf.type for leaf in flat.leaves}
    columns = Columns("lines", {}, {}, members=members, flat=flat)
    with connection(lines) as opened:
        texts = "(SELECT number, line AS text, false AS is_plain FROM lines WHERE json_valid(line))"
        table, fits = compared(with_object(texts), members, flat.opened)
        rows = opened.execute(f"SELECT json_structure(line)::VARCHAR, {fits} FROM {table}").fetchall()
    passed = [shape for shape, is_fitting in rows if is_fitting]
    assert [shape for shape in passed if not columns.fits(shape)] == []
    assert len(passed) > len(OBJECTS)
    assert sum('"o":{' in shape for shape in passed) > 2


@pytest.mark.parametrize("are_mostly_valid", [False, True])
def test_lines_with_objects_are_valid_json_of_the_type_object(are_mostly_valid: bool) -> None:
    lines = list(mutated((*OBJECTS, " {}", "[1]", '"{"', "null"), MUTATED_LINES, 5))
    texts = "(SELECT number, line AS text, false AS is_plain FROM lines)"
    is_object = "CASE WHEN json_valid(text) THEN json_type(text) = 'OBJECT' END"
    names = f"CASE WHEN {is_object} THEN json_keys(text) END"
    table = with_object(texts, are_mostly_valid=are_mostly_valid)
    with connection(lines) as opened:
        rows = opened.execute(f"SELECT text, line, names, {is_object}, {names} FROM {table}").fetchall()
    differing = [
        text
        for text, line, found, has_object, expected in rows
        if (line is not None) != bool(has_object) or (found or []) != (expected or [])
    ]
    assert differing == []


PLAIN_OBJECTS = (
    '{"t":"x","n":1,"f":1.5,"o":{"b":true,"p":{"u":"y z"}},"z":null,"m":-5,"j":[1,"a"]}',
    '{"t":"","n":0,"f":-2.25,"o":{"b":false,"p":{"u":"{1,2}"}},"z":null,"m":0,"j":{"a":"\\"b"}}',
    '{"t":":,","n":7,"f":1e-7,"o":{"b":true,"p":{"u":"é"}},"z":null,"m":3,"j":"],"}',
    '{"t":"null","n":18446744073709551615,"f":0.1,"o":{"b":true,"p":{"u":"5"}},"z":null,"m":1,"j":5}',
    '{"t":5,"n":"1","f":"1.5","o":{"b":"true","p":{"u":null}},"z":"null","m":1.5,"j":null}',
    '{"t":"x","n":1,"n":1,"f":1.5,"o":{"b":true,"p":{"u":"y"}},"z":null,"m":-5,"j":[1]}',
    '{"t":"a\\"b\\\\","n":1,"f":1.0,"o":{"b":true,"p":{"u":"y"},"q":1},"z":null,"m":2,"j":[]}',
)
"""Objects with the members and types of a file, and objects that are only similar."""


def values(event: Any) -> Any:
    """The members of an object, in their order, with the kinds of their values. `j` may have any value."""
    kinds: dict[type, str] = {bool: "bool", int: "whole", float: "fraction", str: "text", type(None): "null"}
    return [
        (name, "any" if name == "j" else values(value) if isinstance(value, list) else kinds[type(value)])
        for name, value in event
    ]


@pytest.mark.parametrize("style", STYLES, ids=["compact", "spaced"])
def test_an_object_with_the_text_of_its_values_has_exactly_the_expected_members(style: tuple[str, str]) -> None:
    root = EventMember()
    inner = {"b": "BOOLEAN", "p": {"u": "VARCHAR"}}
    root.add({"t": "VARCHAR", "n": "UBIGINT", "f": "DOUBLE", "o": inner, "z": "NULL", "m": "BIGINT", "j": ["JSON"]}, 1)
    leaves = flattened(root, Flattening()).leaves
    types = {leaf.name: "VARCHAR" if leaf.type in ("NULL", "JSON") else leaf.type for leaf in leaves}
    seeds = [json.dumps(json.loads(line), ensure_ascii=False, separators=style) for line in PLAIN_OBJECTS]
    lines = list(mutated([*PLAIN_OBJECTS, *seeds * 3], 20 * MUTATED_LINES, 6))
    event = f"TRY(json_transform(line, {literal(json.dumps(nested(leaves, types)))})) AS event"
    with connection(lines) as opened:
        events = f"(SELECT *, {event} FROM lines)"
        rows = opened.execute(
            f"SELECT DISTINCT line, event.f, event.o.p.u FROM {events} WHERE line = {plain_text(leaves, style)}"
        ).fetchall()
    objects = [json.loads(text, object_pairs_hook=list) for text, _, _ in rows]
    expected = values(json.loads(PLAIN_OBJECTS[0], object_pairs_hook=list))
    assert [members for members in objects if values(members) != expected] == []
    assert [(members[2][1], members[3][1][1][1][0][1]) for members in objects] == [row[1:] for row in rows]
    assert len(rows) > 50


@pytest.mark.parametrize(
    ("structure", "why"),
    [({}, "no members"), ({"a": "VARCHAR", "A": "VARCHAR"}, "hidden"), ({"": "VARCHAR"}, "no name")],
)
def test_members_that_are_not_in_the_event_have_no_plain_text(structure: dict[str, str], why: str) -> None:
    root = EventMember()
    root.add(structure, 1)
    assert plain_text(flattened(root, Flattening()).leaves, STYLES[0]) is None, why


def test_a_block_may_be_deep_if_a_line_has_many_brackets() -> None:
    assert not may_be_deep(b'{"a":[1]}\n' * 1000)
    assert not may_be_deep(b"[" * MAX_DEPTH + b"\n" + b"{" * MAX_DEPTH)
    assert may_be_deep(b'{"a":1}\n' + b'[ {"a":' * MAX_DEPTH + b"\n")
