"""Any rows, written by the standard library, cut into any pieces, padded wherever a service may pad: the same rows."""

import csv
import io
import json
from typing import Any, Literal

import msgpack
from hypothesis import given, settings
from hypothesis import strategies as st

from svcctl.api.response import MODES, QueryResponse

NASTY = "\",\t\n\\ {}[]:;'\u2028\u2029\x85\x0b\x0c\x1c\x1e.error500é€😀"
TEXT = st.text(st.sampled_from(NASTY) | st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
VALUE = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
WIDTHS = st.integers(1, 4)
PADDING = st.sampled_from(["", "    ", "        ", " ", "\n", "  ", "\n\n", "    \n", "\r\n", " \t "])
"""White space around the rows of a document."""
LINE_ENDS = st.sampled_from(["\n", "\r\n"])


def pieces(body: bytes, data: st.DataObject) -> list[bytes]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def passed_on(padding: str) -> str:
    """What of some white space is no padding: one blank or line break, or the line break of more."""
    return padding if padding in (" ", "\n", "\r\n") else "\n" * ("\n" in padding)


def check(mode: str, body: bytes, clean: bytes, expected: list[tuple[Any, ...]], data: st.DataObject) -> None:
    cut = pieces(body, data)
    raw = QueryResponse(MODES[mode], "", cut)
    assert b"".join(raw.raw()) == clean
    assert raw.row_count == len(expected)
    rows = QueryResponse(MODES[mode], "", cut)
    assert list(rows.rows()) == expected
    assert rows.row_count == len(expected)


def table(data: st.DataObject, value: st.SearchStrategy[Any]) -> list[tuple[Any, ...]]:
    width = data.draw(WIDTHS)
    return data.draw(st.lists(st.tuples(*[value] * width), min_size=1, max_size=6))


@settings(max_examples=50, deadline=None)
@given(st.data(), st.sampled_from([("csv", ","), ("tsv", "\t")]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_separated_rows(data: st.DataObject, dialect: tuple[str, str], quoting: Literal[0, 1]) -> None:
    mode, separator = dialect
    rows = table(data, TEXT)
    names = tuple(f"c{at}" for at in range(len(rows[0])))
    blanks = st.sampled_from(["", separator, separator * (len(names) - 1)])
    padding = st.just("") | st.tuples(blanks, LINE_ENDS).map("".join)
    line_end = data.draw(LINE_ENDS)
    lines = []
    for row in [names, *rows]:
        file = io.StringIO()
        csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=line_end).writerow(row)
        lines.append(file.getvalue())
    # A row of empty cells only is written as padding is, and a last row may look like an error of three cells.
    kept = [(line, row) for line, row in zip(lines[1:], rows, strict=True) if line.strip(separator + "\r\n")]
    if kept and len(names) == 3 and ".error" in kept[-1][1][0]:
        kept.pop()
    lines = [lines[0], *(line for line, _ in kept)]
    padded = "".join(data.draw(padding) + line for line in lines) + data.draw(padding)
    check(mode, padded.encode(), "".join(lines).encode(), [row for _, row in kept], data)


def compact(value: object, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))


@settings(max_examples=50, deadline=None)
@given(st.data(), st.booleans())
def test_json_lines(data: st.DataObject, ascii_only: bool) -> None:
    rows = table(data, VALUE)
    names = [f"c{at}" for at in range(len(rows[0]))]
    m = {name: {"type": "str", "index": at} for at, name in enumerate(names)}
    records = [compact(dict(zip(names, row, strict=True)), ascii_only) for row in rows]
    values = [compact({"m": m}, ascii_only), *(compact({"d": row}, ascii_only) for row in rows)]
    between = st.sampled_from(["", "    ", "    \n", "\n", "\r\n", "        \r\n    "])
    end = data.draw(LINE_ENDS)
    for mode, lines in (("json/simple", records), ("json/simple/compact", values)):
        padded = "".join(f"{data.draw(between)}{line}{end}" for line in lines) + data.draw(between)
        check(mode, padded.encode(), "".join(f"{line}{end}" for line in lines).encode(), rows, data)


@settings(max_examples=50, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_json_documents(data: st.DataObject, ascii_only: bool, rows_first: bool) -> None:
    rows = table(data, VALUE) * data.draw(st.sampled_from([1, 40]))
    names = [f"c{at}" for at in range(len(rows[0]))]
    m = {name: {"type": "str", "index": at} for at, name in enumerate(names)}
    head, tail = ("{", ',"status":0,"msg":"    "}') if rows_first else ('{"status":0,"msg":"    ",', "}")
    records = [compact(dict(zip(names, row, strict=True)), ascii_only) for row in rows]
    arrays = [compact(row, ascii_only) for row in rows]
    for mode, begin, elements, end in (
        ("json", head + '"object":[', records, "]" + tail),
        ("json/compact", f'{head}"object":{{"m":{compact(m, ascii_only)},"d":[', arrays, "]}" + tail),
    ):
        pad = [data.draw(PADDING) for _ in range(5)]
        kept = [passed_on(each) for each in pad]
        padded = data.draw(PADDING) + begin + pad[0] + f"{pad[1]},{pad[2]}".join(elements) + pad[3] + end + pad[4]
        clean = begin + kept[0] + f"{kept[1]},{kept[2]}".join(elements) + kept[3] + end + kept[4]
        check(mode, padded.encode(), clean.encode(), rows, data)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_msgpack_documents(data: st.DataObject) -> None:
    rows = table(data, VALUE)
    names = [f"c{at}" for at in range(len(rows[0]))]
    m = {name: {"type": "str", "index": at} for at, name in enumerate(names)}
    for result in ([dict(zip(names, row, strict=True)) for row in rows], {"m": m, "d": rows}):
        body = msgpack.packb({"status": 0, "object": result, "cid": "c"})
        check("msgpack", body, body, rows, data)
