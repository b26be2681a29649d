"""Canned answers in every spelling that services use: line ends, metadata, addresses, and failures."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from svcctl.api.columns import ResultColumn
from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import IncompleteResult, SvcctlError

LINES = {
    "json/simple": ['{"a":"x","b":1}', '{"a":"y","b":2}'],
    "json/simple/compact": [
        '{"m":{"a":{"type":"str","index":0},"b":{"type":"int4","index":1}}}',
        '{"d":["x",1]}',
        '{"d":["y",2]}',
    ],
    "csv": ["a,b", "x,1", '"y",2'],
    "tsv": ["a\tb", "x\t1", '"y"\t2'],
}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "json/simple": [("x", 1), ("y", 2)],
    "json/simple/compact": [("x", 1), ("y", 2)],
    "csv": [("x", "1"), ("y", "2")],
    "tsv": [("x", "1"), ("y", "2")],
}
ENDS = {"LF": "\n", "CRLF": "\r\n"}


def read(mode: str, body: str, *, bytewise: bool = False) -> tuple[bytes, list[tuple[Any, ...]], SvcctlError | None]:
    """The raw bytes, the rows and the error of an answer; both readings end in the same error."""
    data = body.encode()
    pieces = [data[at : at + 1] for at in range(len(data))] if bytewise else [data]
    raw, raw_error = drained(QueryResponse(MODES[mode], "", pieces).raw())
    rows, error = drained(QueryResponse(MODES[mode], "", pieces).rows())
    assert (type(error), str(error)) == (type(raw_error), str(raw_error))
    return b"".join(raw), rows, error


def drained(parts: Iterable[Any]) -> tuple[list[Any], SvcctlError | None]:
    got: list[Any] = []
    try:
        got.extend(parts)
    except SvcctlError as error:
        return got, error
    return got, None


@pytest.mark.parametrize("mode", ["csv", "tsv"])
def test_a_line_end_in_quotes_is_data_whatever_ends_the_lines(mode: str) -> None:
    mark = "," if mode == "csv" else "\t"
    for end, (text, cell) in product(
        ENDS.values(), [('"1\r\n2"', "1\r\n2"), ('"1\r2"', "1\r2"), ('"1\n2\r"', "1\n2\r")]
    ):
        body = f"a{mark}b{end}x{mark}{text}{end}"
        assert read(mode, body) == (body.encode(), [("x", cell)], None)


def test_a_lone_column_may_be_padded_with_blank_lines() -> None:
    assert read("csv", "a\r\n1\r\n\r\n2\r\n") == (b"a\r\n1\r\n2\r\n", [("1",), ("2",)], None)
    assert read("csv", "a\n1\n\r\n2\n") == (b"a\n1\n2\n", [("1",), ("2",)], None)


def test_a_line_that_is_cut_between_cr_and_lf_is_not_whole() -> None:
    for mode, lines in LINES.items():
        rows, error = drained(QueryResponse(MODES[mode], "", ["\r\n".join([*lines, ""]).encode()[:-1]]).rows())
        assert (rows, type(error)) == (ROWS[mode][:1], IncompleteResult)


M = '"m":{"a":{"type":"str","index":0},"b":{"type":"ip4","index":1}}'
METADATA = '"metadata":[{"name":"a","type":"str"},{"name":"b","type":"ip4"}]'


@pytest.mark.parametrize("told", [M, METADATA, f"{M},{METADATA}", f"{METADATA},{M}"])
def test_columns_are_read_from_m_or_metadata_or_both(told: str) -> None:
    for mode, body in (
        ("json/compact", f'{{"object":{{{told},"d":[["x",3221225985]]}},"status":0}}'),
        ("json/simple/compact", f'{{{told}}}\n{{"d":["x",3221225985]}}\n'),
    ):
        response = QueryResponse(MODES[mode], "", [body.encode()])
        assert list(response.rows()) == [("x", 3221225985)]
        assert response.columns == (ResultColumn("a", "str"), ResultColumn("b", "ip4"))
        assert b"".join(QueryResponse(MODES[mode], "", [body.encode()]).raw()) == body.encode()


@pytest.mark.parametrize("told", ['"metadata":[{"type":"str"}]', '"metadata":["a"]'])
def test_metadata_without_names_is_incomplete(told: str) -> None:
    error = read("json/simple/compact", f'{{{told}}}\n{{"d":[1]}}\n')[2]
    assert str(error) == (
        "the result is incomplete: the line of column names is missing or wrong: "
        "metadata is not a list of names and types"
    )


OPENED = '{"success":true,"msg":"","status":0,"cid":"c","timestamp":1,"object":'
STREAMED = [
    ("json", OPENED + '[{"a":"x"}],"error":[500,"out of memory"]}'),
    ("json", OPENED + '[{"a":"x"}\n],"error": [500, "out of memory"]}\n'),
    ("json/compact", OPENED + '{"m":{"a":{"type":"str","index":0}},"d":[["x"]]},"e":[500,"out of memory"]}'),
    ("json/compact", OPENED + '{"m":{"a":{"type":"str","index":0}},"d":[["x"]]},"e": [500, "out of memory"]}\n'),
    ("json/compact", OPENED + '{"m":{"a":{"type":"str","index":0}},"d":[["x"]]},"error": [500, "out of memory"]}'),
    ("json/compact", OPENED + '{"m":{"a":{"type":"str","index":0}},"d":[["x"]],"e":[500,"out of memory"]}}'),
    ("json/simple", '{"a":"x"}\n["error",500,"out of memory"]\n'),
    ("json/simple", '{"a":"x"}\r\n["error", 500, "out of memory"]\r\n'),
    ("json/simple/compact", '{"m":{"a":{"type":"str","index":0}}}\n{"d":["x"]}\n{"e":[500,"out of memory"]}\n'),
    ("json/simple/compact", '{"m":{"a":{"type":"str","index":0}}}\r\n{"d":["x"]}\r\n{"e": [500, "out of memory"]}\r\n'),
    ("json/simple/compact", '{"m":{"a":{"type":"str","index":0}}}\n{"d":["x"]}\n{"d":[],"e":[500,"out of memory"]}\n'),
    ("csv", "a\nx\na.error,500,out of memory\n"),
    ("csv", 'a\nx\nauth.all.error,500,"out of memory"\n'),
    ("csv", 'a\nx\nsvc.api.error,500,"out of memory"\n'),
    ("csv", 'a\r\nx\r\nsvc.api.error,500,"out of memory"\r\n'),
    ("csv", '"a"\r\n"x"\r\n"svc.api.error","500","out of memory"\r\n'),
    ("tsv", "a\nx\na.error\t500\tout of memory\n"),
    ("tsv", 'a\r\nx\r\nsvc.api.error\t500\t"out of memory"\r\n'),
]


@pytest.mark.parametrize(("mode", "body"), STREAMED)
@pytest.mark.parametrize("bytewise", [False, True])
def test_an_error_after_the_rows_is_found_in_all_its_spellings(mode: str, body: str, bytewise: bool) -> None:
    _, rows, error = read(mode, body, bytewise=bytewise)
    named = ", cid c" if body.startswith(OPENED) else ""
    assert f"out of memory (code 500{named})" in str(error)
    assert (type(error), rows) == (IncompleteResult, [("x",)])


@pytest.mark.parametrize("mode", ["csv", "tsv"])
@pytest.mark.parametrize("columns", range(1, 6))
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_row_of_an_error_is_found_whatever_the_number_of_columns(mode: str, columns: int, end: str) -> None:
    mark = "," if mode == "csv" else "\t"
    good = [mark.join(f"c{at}" for at in range(columns)), mark.join("x" * columns)]
    body = end.join([*good, f'svc.api.error{mark}500{mark}"out of memory"', ""])
    raw, rows, error = read(mode, body)
    assert (raw, rows) == (end.join([*good, ""]).encode(), [("x",) * columns])
    assert isinstance(error, IncompleteResult)
    assert "out of memory (code 500)" in str(error)
