"""The cheap SQL for usual lines gives what the general SQL gives, also for lines that are almost usual."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa
import pytest

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.language.types import Type
from svcctl.service.loading import access_log
from svcctl.service.loading.columns import Columns
from svcctl.service.loading.flattening import EventMember, Flattening, MemberPath, flattened
from svcctl.service.loading.kinds import ACCESS
from svcctl.service.loading.members import compared, with_object, with_plain
from svcctl.service.loading.nesting import quotes_per_line
from svcctl.service.loading.number_times import FIRST_MS, LAST_MS
from svcctl.service.loading.times import TimeFormat, as_time, has_no_zone, short, text_as_time

MUTATED_LINES = 1500
GROUPS = ["server", "host", "user", "time", "request", "status", "bytes", "referrer", "agent", "rest"]
REQUEST = r"^(\S+) (.*?)(?: (HTTP/\S+))?$"
ACCESS_LINES = (
    '10.0.0.1 - - [01/Oct/2026:00:00:00 +0000] "GET /a/b HTTP/1.1" 200 123 "-" "Agent/1.0 (a; b)"',
    'INFO:web:10.0.0.1 - - [01/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5',
    'fe80::1%eth0 - - [01/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5',
    '10.0.0.1 - bob [01/Oct/2026:00:00:00 +0000] "GET /a HTTP/1.1" 304 -',
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
        texts = "(SELECT number, line AS text, NULL AS quotes FROM lines WHERE json_valid(line))"
        table, fits = compared(with_object(with_plain(texts, members)), members, flat.opened)
        rows = opened.execute(f"SELECT json_structure(line)::VARCHAR, {fits} FROM {table}").fetchall()
    passed = [shape for shape, is_fitting in rows if is_fitting]
    assert [shape for shape in passed if not columns.fits(shape)] == []
    assert len(passed) > len(OBJECTS)
    assert sum('"o":{' in shape for shape in passed) > 2


@pytest.mark.parametrize("are_mostly_valid", [False, True])
def test_lines_with_objects_are_valid_json_of_the_type_object(are_mostly_valid: bool) -> None:
    lines = list(mutated((*OBJECTS, " {}", "[1]", '"{"', "null"), MUTATED_LINES, 5))
    texts = "(SELECT number, line AS text, NULL AS quotes FROM lines)"
    is_object = "CASE WHEN json_valid(text) THEN json_type(text) = 'OBJECT' END"
    names = f"CASE WHEN {is_object} THEN json_keys(text) END"
    table = with_object(with_plain(texts, {}), are_mostly_valid=are_mostly_valid)
    with connection(lines) as opened:
        rows = opened.execute(f"SELECT text, line, names, {is_object}, {names} FROM {table}").fetchall()
    differing = [
        text
        for text, line, found, has_object, expected in rows
        if (line is not None) != bool(has_object) or (found or []) != (expected or [])
    ]
    assert differing == []


FLAT_OBJECTS = (
    '{"t":"x","n":1,"f":1.5,"u":"y z"}',
    '{"t":"","n":0,"f":-2,"u":"{1,2}"}',
    ' { "u" : "é", "f" : null , "n":7,"t":":,"} ',
    '{"t":"x","n":1,"f":1.5,"u":null,"m":1}',
    '{"t":"x","n":1,"f":1.5,"u":7,"m":1}',
    '{"t":"x","n":1,"n":2,"f":1.5,"u":7}',
    '{"t":"x","n":"1","f":1.5,"u":2}',
    '{"t":"x","n":1,"f":1.5,"u":"y","m":1}',
    '{"t":"x","f":1.5,"u":"y","m":1}',
    '{"t":"x","n":1.5,"f":true,"u":"y"}',
    '{"t":"x","n":-1,"f":"1","u":"y"}',
)
"""Objects with the members of a file and strings, and objects with as many quotes that are different."""
FLAT_MEMBERS: dict[MemberPath, str] = {("t",): "VARCHAR", ("n",): "UBIGINT", ("f",): "DOUBLE", ("u",): "VARCHAR"}


def test_an_object_with_the_expected_quotes_and_types_has_exactly_the_expected_members() -> None:
    lines = list(mutated(FLAT_OBJECTS, 20 * MUTATED_LINES, 6))
    quotes = [quotes_per_line(line.encode() + b"\n")[0] for line in lines]
    table = pa.table({"text": pa.array(lines, pa.string()), "quotes": pa.array(quotes, pa.int32())})
    is_object = "CASE WHEN json_valid(text) THEN json_type(text) = 'OBJECT' END"
    types = "CASE WHEN plain THEN [json_type(text, '/' || name) FOR name IN json_keys(text)] END"
    with duckdb.connect() as opened:
        opened.register("objects", table)
        plain = f"SELECT text, is_plain AS plain FROM {with_plain('objects', FLAT_MEMBERS)}"
        rows = opened.execute(
            f"SELECT text, {is_object}, json_keys(text), {types} FROM ({plain}) WHERE plain"
        ).fetchall()
    allowed = {
        "t": {"VARCHAR"},
        "n": {"UBIGINT", "NULL"},
        "f": {"DOUBLE", "UBIGINT", "BIGINT", "NULL"},
        "u": {"VARCHAR"},
    }
    wrong = [
        text
        for text, has_object, names, found in rows
        if not has_object
        or sorted(names) != sorted(allowed)
        or any(type_ not in allowed[name] for name, type_ in zip(names, found, strict=True))
    ]
    assert wrong == []
    assert len(rows) > 100


def test_lines_with_the_same_quotes_are_counted_and_other_lines_are_not() -> None:
    flat = b'{"a":1}\n{"b":"c"}\n'
    assert [
        quotes_per_line(data) for data in (flat[:8] * 3, flat, flat[:8] + b"\n", b'{"a":[]}\n', b'{"\\u":1}\n')
    ] == [
        (2, False),
        *[(None, False)] * 4,
    ]
    assert quotes_per_line(b"[" * 10_000 + b"\n") == (None, True)
