"""The checks of whole blocks find what a plain reader finds that looks at row after row, wherever the body is cut."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import IncompleteResult

CUT = "the connection closed in the middle"


@dataclass(frozen=True)
class Read:
    """What was read: the bytes that were passed on, their rows, and why the result is incomplete."""

    data: bytes
    rows: int
    failure: str | None


def read(mode: str, pieces: list[bytes]) -> Read:
    response = QueryResponse(MODES[mode], "", pieces)
    data, failure = b"", None
    try:
        for block in response.raw():
            data += block
    except IncompleteResult as error:
        failure = error.message.removeprefix("the result is incomplete: ")
    return Read(data, response.row_count or 0, failure)


def rows_of(body: str) -> Iterator[tuple[str, bool]]:
    """The rows of separated text, character by character, and whether each has its end."""
    row, inside = "", False
    for character in body:
        row += character
        inside ^= character == '"'
        if character == "\n" and not inside:
            yield row, True
            row = ""
    if row:
        yield row, False


def cells(row: str, separator: str) -> list[str]:
    found, inside = [""], False
    for character in row.removesuffix("\n"):
        inside ^= character == '"'
        if character == separator and not inside:
            found.append("")
        else:
            found[-1] += character
    return found


def separated(body: bytes, separator: str) -> Read:
    """csv or tsv as a plain reader takes it."""
    rows = [(row, whole) for row, whole in rows_of(body.decode()) if row.strip(separator + "\r\n")]
    (header, _), *others = rows
    width = len(cells(header, separator))
    passed = [header]

    def is_error(row: str) -> bool:
        here = cells(row, separator)
        shaped = len(here) >= 2 and re.fullmatch(r'"?[^"\n]*\.error"?', here[0]) and re.fullmatch(r"[+-]?\d+", here[1])
        return bool(shaped) and (len(here) != width or (width == 3 and not here[2].strip().isdecimal()))

    for at, (row, whole) in enumerate(others):
        here, rest = cells(row, separator), others[at + 1 :]
        if is_error(row) and rest and not rest[0][1] and not is_error(rest[0][0]):
            return Read("".join(passed).encode(), len(passed) - 1, CUT)  # what follows the error is no row
        if is_error(row) and not rest:
            words = next(csv.reader(io.StringIO(row, newline=""), delimiter=separator))[2:]
            message = " ".join(" ".join(words).split()) or "the service gave no message"
            error = f"it ended in an error of the service: {message} (code {int(here[1])})"
            return Read("".join(passed).encode(), len(passed) - 1, error)
        if not whole:
            return Read("".join(passed).encode(), len(passed) - 1, CUT)
        if len(here) != width:
            failure = f"row {len(passed)} has {len(here)} cells where the header has {width}"
            return Read("".join(passed).encode(), len(passed) - 1, failure)
        passed.append(row)
    return Read("".join(passed).encode(), len(passed) - 1, None)


def lines(body: bytes, is_row: Callable[[str], bool], *, metadata: bool) -> Read:
    """json/simple or json/simple/compact as a plain reader takes it, after a first line that is right."""
    passed: list[str] = []
    for line in re.findall(r"[^\n]*\n|[^\n]+$", body.decode()):
        text = line.removesuffix("\n").strip(" ")
        if not text.strip("\r"):
            continue
        count = len(passed) - metadata
        if text.startswith(('["error"', '{"e":')):
            failure = "it ended in an error of the service: gone (code 500)"
        elif not line.endswith("\n"):
            failure = CUT
        elif (passed or not metadata) and not is_row(text):
            failure = f"line {count + 1} is not a row"
        else:
            passed.append(text + "\n")
            continue
        return Read("".join(passed).encode(), max(count, 0), failure)
    return Read("".join(passed).encode(), len(passed) - metadata, None)


PLACES = st.lists(st.integers(0, 4000), max_size=8)


def cut(body: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(body), *(place % (len(body) + 1) for place in places)})
    return [body[start:end] for start, end in pairwise(ends)]


@settings(max_examples=50)
@given(st.data(), st.sampled_from([("csv", ","), ("tsv", "\t")]), st.integers(1, 4), PLACES)
def test_separated_rows_are_checked_as_one_by_one(
    data: st.DataObject, dialect: tuple[str, str], width: int, places: list[int]
) -> None:
    mode, separator = dialect
    cell = st.sampled_from(["", "a", "17", "x.error", '"q"', f'"{separator}"', '"two\nlines"', '"\n\n"', '""""'])
    row = st.lists(cell, min_size=width, max_size=width).map(lambda row: separator.join(row) + "\n")
    padding = st.sampled_from(["\n", f"{separator}\n", separator * (width - 1) + "\n", "\r\n"])
    wrong = st.sampled_from([f"a{separator}b{separator}c{separator}d{separator}e\n", separator.join("zz") + "\n"])
    error = st.sampled_from([separator.join(["t.error", "500", "it broke"]) + "\n"])
    usual = data.draw(row)
    middle = st.one_of(st.just(usual), st.just(usual), row, padding)
    parts = data.draw(st.lists(middle, max_size=12)) + data.draw(st.lists(wrong | error | row | padding, max_size=3))
    header = separator.join(f"c{at}" for at in range(width)) + "\n"
    rows = "".join(parts)
    rows = rows[: max(0, len(rows) - data.draw(st.integers(0, 3)))]
    body = (data.draw(padding) + header + rows).encode()
    assert read(mode, cut(body, places)) == separated(body, separator)


GARBAGE = ["upstream gone\n", '{"a":\n', "null}\n", "[1]\n", '  "x"\n']


@settings(max_examples=50)
@given(st.data(), st.sampled_from(["json/simple", "json/simple/compact"]), PLACES)
def test_lines_are_checked_as_one_by_one(data: st.DataObject, mode: str, places: list[int]) -> None:
    metadata = mode == "json/simple/compact"
    values = ['"}\\n{"', "    ", "]}", '["error",500]', "é"]
    first = '{"m":{"a":{"index":0}}}\n' if metadata else '{"a":1}\n'
    row = st.sampled_from(values).map(
        lambda value: json.dumps({"d": [value]} if metadata else {"a": value}, separators=(",", ":")) + "\n"
    )
    spelled = st.sampled_from(['{ "d" : [1] }\n', ' {"d":[1]}  \n'] if metadata else ['{"b":2}\n', ' { "a" : 1 } \n'])
    padding = st.sampled_from(["    ", "\n", "    \n", "\r\n"])
    error = st.sampled_from(
        ['["error",500,"gone"]\n', '{"e":[500,"gone"]}\n'] if metadata else ['["error",500,"gone"]\n']
    )
    usual = data.draw(row)
    middle = st.one_of(st.just(usual), st.just(usual), row, padding, spelled)
    last = st.sampled_from(GARBAGE) | error | row | padding
    parts = data.draw(st.lists(middle, max_size=12)) + data.draw(st.lists(last, max_size=3))
    body = (data.draw(padding) + first + "".join(parts)).encode()

    def is_row(text: str) -> bool:
        try:
            value = json.loads(text)
        except ValueError:
            return False
        return isinstance(value, dict) and (not metadata or len(value["d"]) == 1)

    assert read(mode, cut(body, places)) == lines(body, is_row, metadata=metadata)


@pytest.mark.parametrize("mode", ["csv", "json/simple", "json/simple/compact"])
@pytest.mark.parametrize("wrong", [0, 1, 500, 998])
def test_one_wrong_row_of_many_is_found_wherever_it_is(mode: str, wrong: int) -> None:
    """Blocks of rows that are alike are compared as a whole; one that is not must not hide in them."""
    first, row, other, message = {
        "csv": (b"a,b\n", b'1,"x, y"\n', b'1,"x", y\n', "row {} has 3 cells where the header has 2"),
        "json/simple": (b"", b'{"a":1,"b":"x"}\n', b'"a":1,"b":"x"}\n', "line {} is not a row"),
        "json/simple/compact": (
            b'{"m":{"a":{"index":0}}}\n',
            b'{"d":[1]}\n',
            b'{"d":[1}\n',
            "line {} is not a row",
        ),
    }[mode]
    rows = [row] * 999
    rows[wrong] = other
    body = first + b"".join(rows)
    for size in (len(body), 1000, 77):
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        if mode == "json/simple" and wrong == 0:
            assert read(mode, pieces).failure == message.format(1)
            continue
        assert read(mode, pieces) == Read(first + row * wrong, wrong, message.format(wrong + 1))
