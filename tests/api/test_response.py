"""Every response format, whole and cut at every byte, in one piece and byte by byte, padded, and ending in errors."""

import codecs
import io
import json
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgpack
import pytest

from svcctl.api.columns import ResultColumn
from svcctl.api.formats import progress as limits
from svcctl.api.refusals import refusal_in
from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import (
    IncompleteResult,
    InternalError,
    MalformedAnswer,
    NotFound,
    ServiceError,
    SvcctlError,
    Unavailable,
    UsageError,
)

# What the errors say, each once; the tests state their kind.
WORDS = {
    "an error at the end": "the result is incomplete: it ended in an error of the service: out of memory (code 500)",
    "any error at the end": "the result is incomplete: it ended in an error of the service: {message}",
    "a web page": "the service answered with a web page: Sign in",
    "an incomplete answer": "the result is incomplete: {message}",
    "not a row": "the result is incomplete: line 2 is not a row",
    "no rows": "the result is incomplete: its member object does not contain rows",
    "a long row": "the result is incomplete: a row is longer than 64 MB",
}
HINTS = {
    "columns that come later": "use json/simple/compact, which names all columns first",
}

NASTY = 'a "b",\u2028c\u0085d\x0b\x1e    \\ é\n{"e":[500]}'
ROWS = [(9007199254740993, NASTY, True), (-1, "", None), (3, "error", False)]
NAMES = ("n", "text", "flag")
M = {"text": {"type": "str", "index": 1}, "flag": {"type": "bool", "index": 2}, "n": {"type": "int8", "index": 0}}
COLUMNS = (ResultColumn("n", "int8"), ResultColumn("text", "str"), ResultColumn("flag", "bool"))
RECORDS = [dict(zip(NAMES, row, strict=True)) for row in ROWS]


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def workbook() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/sheet1.xml", "<x/>")
    return file.getvalue()


ENVELOPE = {"success": True, "msg": "", "status": 0, "cid": "c1", "timestamp": 1}
BODIES = {
    "json": compact(ENVELOPE | {"object": RECORDS}).encode(),
    "json/compact": compact({"object": {"m": M, "d": ROWS}} | ENVELOPE).encode(),
    "json/simple": "".join(compact(record) + "\n" for record in RECORDS).encode(),
    "json/simple/compact": "".join(compact(line) + "\n" for line in [{"m": M}, *({"d": row} for row in ROWS)]).encode(),
    "msgpack": msgpack.packb(ENVELOPE | {"object": RECORDS}),
    "csv": b'n,text,flag\n1,"a ""b"",\n c",true\n2,,\n3,"x.error,500,",false\n',
    "tsv": b'n\ttext\tflag\n1\t"a ""b""\t\n c"\ttrue\n2\t\t\n3\t"x.error\t500\t"\tfalse\n',
    "xml": b'<?xml version="1.0"?>\n<!-- r -->\n<result><row><n>1</n><text>a</text></row><row><n>2</n></row></result>\n',  # noqa: E501
    "xls": workbook(),
}
CSV_ROWS = [("1", 'a "b",\n c', "true"), ("2", "", ""), ("3", "x.error,500,", "false")]
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "json": ROWS,
    "json/compact": ROWS,
    "json/simple": ROWS,
    "json/simple/compact": ROWS,
    "msgpack": ROWS,
    "csv": CSV_ROWS,
    "tsv": [("1", 'a "b"\t\n c', "true"), ("2", "", ""), ("3", "x.error\t500\t", "false")],
}
LINES = ("json/simple", "json/simple/compact", "csv", "tsv")
EMPTY_IS_MALFORMED = ("json", "json/compact", "json/simple/compact", "msgpack")


def answer(mode: str, pieces: Iterable[bytes], content_type: str = "") -> QueryResponse:
    return QueryResponse(MODES[mode], content_type, pieces)


def bytewise(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


def drain(parts: Iterable[Any]) -> tuple[list[Any], SvcctlError | None]:
    got = []
    try:
        for part in parts:
            got.append(part)
    except SvcctlError as error:
        return got, error
    return got, None


def raw(mode: str, body: bytes, content_type: str = "") -> tuple[bytes, SvcctlError | None]:
    """The raw reading, which must be the same however the body was cut into pieces."""
    whole, whole_error = drain(answer(mode, [body], content_type).raw())
    parts, parts_error = drain(answer(mode, bytewise(body), content_type).raw())
    assert type(whole_error) is type(parts_error)
    assert str(whole_error) == str(parts_error)
    if whole_error is None or mode in LINES:
        assert b"".join(whole) == b"".join(parts)
    return b"".join(whole), whole_error


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_answer_passes_unchanged(mode: str) -> None:
    assert raw(mode, BODIES[mode]) == (BODIES[mode], None)


@pytest.mark.parametrize("mode", EXPECTED)
@pytest.mark.parametrize("cut", [lambda body: [body], bytewise], ids=["at once", "byte by byte"])
def test_rows_are_decoded(mode: str, cut: Any) -> None:
    response = answer(mode, cut(BODIES[mode]))
    assert list(response.rows()) == EXPECTED[mode]
    assert (response.row_count, response.bytes) == (len(EXPECTED[mode]), len(BODIES[mode]))


@pytest.mark.parametrize(
    ("mode", "columns"),
    [
        ("json", tuple(map(ResultColumn, NAMES))),
        ("json/compact", COLUMNS),
        ("json/simple", tuple(map(ResultColumn, NAMES))),
        ("json/simple/compact", COLUMNS),
        ("msgpack", tuple(map(ResultColumn, NAMES))),
        ("csv", tuple(ResultColumn(name, "str") for name in NAMES)),
        ("tsv", tuple(ResultColumn(name, "str") for name in NAMES)),
    ],
)
def test_columns_are_known_before_the_first_row_is_taken(mode: str, columns: tuple[ResultColumn, ...]) -> None:
    response = answer(mode, bytewise(BODIES[mode]))
    rows = response.rows()
    assert response.columns == columns
    assert list(rows) == EXPECTED[mode]


def test_columns_of_an_answer_without_rows() -> None:
    for mode, body in (("csv", b"a,b\n"), ("json/simple/compact", b'{"m":{"a":{"type":"ip4","index":0}}}\n')):
        response = answer(mode, [body])
        assert list(response.rows()) == []
        assert response.row_count == 0
        assert [column.name for column in response.columns] == (["a", "b"] if mode == "csv" else ["a"])
    assert list(answer("json/simple", []).rows()) == []


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode in EXPECTED])
def test_a_cut_anywhere_gives_right_rows_and_then_an_error(mode: str) -> None:
    body, expected = BODIES[mode], EXPECTED[mode]
    for at in range(len(body)):
        part = body[:at]
        for pieces in ([part], bytewise(part)):
            response = answer(mode, pieces)
            rows, error = drain(response.rows())
            assert rows == expected[: len(rows)]
            if error is None:
                assert mode not in LINES or at in (0, *_row_ends(mode, body)), at
                assert mode in LINES or body[at:].isspace(), at
            elif at == 0 and mode in EMPTY_IS_MALFORMED:
                assert type(error) is MalformedAnswer
            else:
                assert type(error) is IncompleteResult, at
                assert error.rows == len(rows)


@pytest.mark.parametrize("mode", MODES)
def test_a_cut_anywhere_never_hands_on_part_of_a_row(mode: str) -> None:
    body = BODIES[mode]
    for at in range(len(body)):
        got, error = raw(mode, body[:at])
        if mode in LINES:
            assert len(got) in (0, *_row_ends(mode, body)), at
            assert (error is None) == (at in _row_ends(mode, body) or (at == 0 and mode == "json/simple")), at
        else:
            assert body.startswith(got)
            assert error is not None or body[at:].isspace(), at


def _row_ends(mode: str, body: bytes) -> list[int]:
    starts = [b"2", b"3"] if mode in ("csv", "tsv") else []
    ends = [at + 1 for at in range(len(body)) if body[at : at + 1] == b"\n"]
    if starts:  # the newline inside quotes ends no row
        ends = [end for end in ends if body[end : end + 2] != b" c"]
    return ends


def test_rows_are_handed_on_as_soon_as_they_are_whole() -> None:
    for mode in ("json/simple", "json/simple/compact", "csv", "tsv", "json", "json/compact", "msgpack"):
        taken: list[int] = []

        def pieces(body: bytes = BODIES[mode], taken: list[int] = taken) -> Iterable[bytes]:
            for at, piece in enumerate(bytewise(body)):
                taken.append(at)
                yield piece

        next(answer(mode, pieces()).rows())
        assert len(taken) < len(BODIES[mode]) - 20, mode


PADDED = {
    "json": b' \n\t{"status":0,    "object":[  {"a":"    x"}\n\n,  \r\n\n{"a":"y"}    ]    }    \n\n',
    "json/compact": b'\n{"object":{"m":{"a":{"type":"str","index":0}},"d":[    ["    x"],\t ["y"]    ]},"status":0}',
    "json/simple": b'    {"a":"    x"}\n        \n    \n{"a":"y"}\n    ',
    "json/simple/compact": b'    {"m":{"a":{"type":"str","index":0}}}\n    \n\n    {"d":["    x"]}\n{"d":["y"]}\n    ',
    "csv": b'\n,\n\na,b\n\n    x,\n,\n\n,,,,\ny,"\n,\n"\n,\n',
    "tsv": b'\n\t\n\na\tb\n\n    x\t\n\t\n\n\t\t\t\ny\t"\n\t\n"\n\t\n',
    "xml": b' \n\n<?xml version="1.0"?>\n<r>\n  <e><a>    x</a></e>\n  <e><a>y</a></e>\n</r>\n    \n',
}
UNPADDED = {
    "json": b'{"status":0,"object":[{"a":"    x"}\n,\n{"a":"y"}]}\n',
    "json/compact": b'{"object":{"m":{"a":{"type":"str","index":0}},"d":[["    x"],["y"]]},"status":0}',
    "json/simple": b'{"a":"    x"}\n{"a":"y"}\n',
    "json/simple/compact": b'{"m":{"a":{"type":"str","index":0}}}\n{"d":["    x"]}\n{"d":["y"]}\n',
    "csv": b'a,b\n    x,\ny,"\n,\n"\n',
    "tsv": b'a\tb\n    x\t\ny\t"\n\t\n"\n',
    "xml": b'<?xml version="1.0"?>\n<r>\n  <e><a>    x</a></e>\n  <e><a>y</a></e>\n</r>\n',
}


@pytest.mark.parametrize("mode", PADDED)
def test_padding_between_rows_is_dropped_and_never_inside_values(mode: str) -> None:
    assert raw(mode, PADDED[mode]) == (UNPADDED[mode], None)
    if MODES[mode].counts:
        assert [row[0] for row in answer(mode, bytewise(PADDED[mode])).rows()] == ["    x", "y"]


@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.json])
@pytest.mark.parametrize("padding", [b"", b"\n"])
def test_a_byte_order_mark_before_json_is_dropped(mode: str, padding: bytes) -> None:
    marked = padding + codecs.BOM_UTF8 + padding + BODIES[mode]
    assert raw(mode, marked) == (BODIES[mode], None)


@pytest.mark.parametrize("padding", [b"    ", b"\n", b" \r\n"])
@pytest.mark.parametrize("start", [b"", b'{"object":['])
def test_padding_does_not_gather_while_a_query_is_slow(padding: bytes, start: bytes) -> None:
    body = b'{"object":[{"a":1}],"status":0}'

    def pieces() -> Iterable[bytes]:
        yield start
        tracemalloc.start()
        for _ in range(5_000):
            yield padding * 1000
        yield body.removeprefix(start)

    got = b"".join(answer("json", pieces()).raw())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert json.loads(got) == json.loads(body)
    assert got.replace(b"\n", b"") == body
    assert peak < 100_000


ENDINGS = {
    "json/simple": (b'{"a":1}\n', b'["error",500,"out of memory"]\n'),
    "json/simple/compact": (b'{"m":{"a":{"type":"int4","index":0}}}\n{"d":[1]}\n', b'{"e":[500,"out of memory"]}\n'),
    "csv": (b"a,b\n1,2\n", b"a.error,500,out of memory\n"),
    "tsv": (b"a\tb\n1\t2\n", b"a.error\t500\tout of memory\n"),
}


@pytest.mark.parametrize("mode", ENDINGS)
@pytest.mark.parametrize("newline", [True, False])
@pytest.mark.parametrize("padding", [b"", b"\n\n"])
def test_an_error_in_the_stream_is_no_row(mode: str, newline: bool, padding: bytes) -> None:
    good, bad = ENDINGS[mode]
    got, error = raw(mode, good + padding + (bad + padding if newline else bad[:-1]))
    assert got == good
    assert type(error) is IncompleteResult
    assert str(error) == WORDS["an error at the end"]
    assert error.rows == 1


@pytest.mark.parametrize(
    ("mode", "body", "message"),
    [
        ("json/simple/compact", b'{"e":{"msg":"m","code":12}}\n', "m (code 12)"),
        ("json/simple/compact", b'{"m":{"a":{"type":"str","index":0}}}\n{"d":[],"e":[500,"m"]}\n', "m (code 500)"),
        ("json/simple", b'["error",500,"m"]', "m (code 500)"),
        ("json", b'{"status":0,"cid":"c","object":[],"error":[500,"m"]}', "m (code 500, cid c)"),
        ("json", b'{"status":0,"object":[{"a":1}],"error":[500,"m"]}', "m (code 500)"),
        ("json", b'{"object":[{"a":1}],"status":1,"msg":"m"}', "m (code 1)"),
        ("json", b'{"object":[{"a":1}],"success":false,"msg":"m","status":0}', "m"),
        ("json/compact", b'{"object":{"m":{},"d":[[]]},"status":0,"e":[500,"m"]}', "m (code 500)"),
        ("json/compact", b'{"object":{"m":{},"d":[[]],"e":[500,"m"]},"status":0}', "m (code 500)"),
        ("msgpack", msgpack.packb({"object": [{"a": 1}], "error": [500, "m"]}), "m (code 500)"),
        ("csv", b'a,b,c\n1,2,3\nx.error,500,"m\nn"\n', "m n (code 500)"),
        ("csv", b'"a","b"\n"1","2"\n"x.error","500","m, n"\n', "m, n (code 500)"),
        ("xml", b"<result><row><a>1</a></row><error code='500'>m</error></result>", "m (code 500)"),
    ],
)
def test_the_forms_of_an_error_in_the_stream(mode: str, body: bytes, message: str) -> None:
    error = raw(mode, body)[1]
    assert type(error) is IncompleteResult
    assert str(error) == WORDS["any error at the end"].format(message=message)


@pytest.mark.parametrize(
    ("mode", "body"),
    [
        ("csv", b"name,code,text\nx.error,500,disk full\ny,1,z\n"),
        ("csv", b"name,code,amount\nx.error,500,12.5\n"),
        ("csv", b"a,b\nx.error,500\n"),
        ("csv", b'"a"\n""\n"x.error,500,m"\n'),
        ("json/simple", b'{"msg":"m","status":500}\n'),
        ("json/simple", b'{"msg":"m","status":500,"cid":"c"}\n{"msg":"m","status":500,"cid":"c"}\n'),
        ("json", b'{"status":0,"object":[{"error":[500,"m"],"status":500}]}'),
        ("xml", b"<result><row><a>1</a><error>500</error></row></result>"),
    ],
)
def test_a_row_whose_data_looks_like_an_error_is_a_row(mode: str, body: bytes) -> None:
    assert raw(mode, body) == (body, None)


NAMES_OF_THREE = b"name,code,text\nx,1,y\n"
LOOKS = [
    ("csv", NAMES_OF_THREE + b"disk.error,500,full\n"),
    ("csv", NAMES_OF_THREE + b'disk.error,500,"a, b"\n'),
    ("csv", NAMES_OF_THREE + b'"svc.api.error",500,full\n'),
    ("csv", NAMES_OF_THREE + b'"svc.api.error",500,"a, b"\n'),
    ("tsv", b"name\tcode\ttext\ndisk.error\t500\tfull\n"),
    ("json/simple", b'{"msg":"m","status":500,"cid":"c"}\n'),
    ("json/simple", b'    \n{"msg":"m","status":500,"object":"o"}\n    \n'),
    ("json/simple", b'{"error":"disk full","status":500,"cid":"c"}\r\n'),
    ("json/simple", b'{"error":"disk full","object":"o"}\n'),
    ("json/simple", b'{"msg":"m","code":624,"context":"x"}\n'),
    ("json/simple", b'{"success":false,"msg":"m"}\n'),
    ("json/simple", b'{"error":{"code":1}}\n'),
]


@pytest.mark.parametrize(("mode", "body"), LOOKS)
def test_a_row_that_looks_like_an_error_is_a_row_in_an_exact_answer_only(mode: str, body: bytes) -> None:
    for pieces in ([body], bytewise(body)):
        exact = QueryResponse(MODES[mode], "", pieces, exact=True)
        assert b"".join(exact.raw()).strip() == body.strip()
        assert len(list(QueryResponse(MODES[mode], "", pieces, exact=True).rows())) == exact.row_count
    assert raw(mode, body)[1] is not None


@pytest.mark.parametrize(
    ("mode", "body"),
    [
        ("csv", NAMES_OF_THREE + b'svc.api.error,500,"m"\n'),
        ("csv", NAMES_OF_THREE + b"svc.api.error,500,m\n"),
        ("csv", b"a,b\n1,2\nsvc.api.error,500,m\n"),
        ("csv", b"a\n1\ndisk.error\nsvc.api.error,500,m\n"),
        ("csv", NAMES_OF_THREE + b'svc.api.error,500,"m"\n\n,,\n'),
        ("csv", NAMES_OF_THREE + b'"svc.api.error",500,"x"\nsvc.api.error,500,"m"\n'),
        ("tsv", b"a\tb\tc\r\n1\t2\t3\r\nsvc.api.error\t500\tm\r\n"),
        ("json", b'{"status":0,"object":[{"a":1}],"error": [500, "m"]}'),
        ("json", b'{"status":0,"object":[{"a":1}],"error":[500,"m"]}'),
        ("json/compact", b'{"object":{"m":{"a":{"index":0}},"d":[[1]]},"e":[500,"m"]}'),
        ("json/simple", b'{"a":1}\n["error",500,"m"]\n'),
        ("json/simple", b'["error", 500, "m"]\n'),
        ("json/simple/compact", b'{"m":{"a":{"index":0}}}\n{"d":[1]}\n{"e": [500, "m"]}\n'),
        ("json/simple/compact", b'{"m":{"a":{"index":0}}}\n{"e":[500,"m"]}\n'),
        ("xml", b'<events>\n<error code="500">m</error>\n</events>\n'),
    ],
)
def test_the_own_form_of_an_error_is_one_in_every_answer(mode: str, body: bytes) -> None:
    for exact in (True, False):
        for pieces in ([body], bytewise(body)):
            error = drain(QueryResponse(MODES[mode], "", pieces, exact=exact).raw())[1]
            assert type(error) is IncompleteResult
            assert str(error) == WORDS["any error at the end"].format(message="m (code 500)")


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":"x","user":"u"}',
        b'{"msg":"m","status":500,"cid":"c","user":"u"}',
        b'{"error":{"code":1,"message":"m"},"n":1}',
    ],
)
def test_a_lone_object_with_another_member_is_a_row(body: bytes) -> None:
    assert raw("json/simple", body + b"\n") == (body + b"\n", None)
    assert type(raw("json/simple", body)[1]) is IncompleteResult  # its newline is missing
    assert refusal_in(body) is None


@pytest.mark.parametrize(
    ("mode", "body"),
    [("csv", b"<html>\n1\n"), ("csv", b"{}\n"), ("csv", b'{"error":"x"}\n'), ("tsv", b"<title\tb\n1\t2\n")],
)
def test_the_first_column_of_an_exact_answer_may_have_any_name(mode: str, body: bytes) -> None:
    answer = QueryResponse(MODES[mode], "text/csv", [body], exact=True)
    assert b"".join(answer.raw()) == body
    for content_type, start in (("text/html", b"<html><title>Sign in</title>"), ("application/json", b'{"error":"x"}')):
        with pytest.raises(SvcctlError):
            list(QueryResponse(MODES[mode], content_type, [start], exact=True).raw())


FORMS = [
    (b'{"error":{"code":106,"message":"m"}}', NotFound, "m", 106),
    (b'{"msg":"m","status":500,"timestamp":1,"cid":"c","object":["m","why"]}', InternalError, "m: why", 500),
    (b'{"object":["m","why"],"msg":"m","status":500,"timestamp":1,"cid":"c"}', InternalError, "m: why", 500),
    (b'{"error":"server_error","status":500,"cid":"c"}', InternalError, "server_error", 500),
    (b'{"msg":"m","code":624,"timestamp":1,"cid":"c","context":{"a":1}}', ServiceError, "m", 624),
    (b'{"error":"Bad parameters","object":["406 : no date"]}', ServiceError, "Bad parameters: no date", 406),
    (b'{"success":false,"msg":"m","status":1,"cid":"c","timestamp":1}', ServiceError, "m", 1),
    (
        b'{"error":{"code":1,"message":"m"},"object":["m","why"],"success":false,"msg":"m","status":1,"cid":"c"}',
        ServiceError,
        "m",
        1,
    ),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("body", "kind", "message", "code"), FORMS)
def test_an_error_body_with_http_200_is_a_refusal_in_every_format(
    mode: str, body: bytes, kind: type, message: str, code: int
) -> None:
    bodies = [body + end for end in (b"", b"\n", b"\r\n", b"    \n")]
    if mode == "msgpack":
        bodies.append(msgpack.packb(json.loads(body)))
    for whole in bodies:
        got, error = raw(mode, whole)
        assert (got, type(error)) == (b"", kind)
        assert isinstance(error, ServiceError)
        assert (error.message, error.code) == (message, code)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("content_type", ["text/html", ""])
def test_a_page_with_http_200_is_no_result(mode: str, content_type: str) -> None:
    if mode == "xml" and not content_type:
        return  # without a content type, markup is what was asked for
    got, error = raw(mode, b"\n<html><head><title>Sign\nin</title></head></html>\n", content_type)
    assert (got, type(error)) == (b"", Unavailable)
    assert str(error) == WORDS["a web page"]


@pytest.mark.parametrize(
    ("mode", "body", "message"),
    [
        ("csv", b"a,b\n1,2\n1,2,3\n4,5\n", "row 2 has 3 cells where the header has 2"),
        ("csv", b"", "it has no header"),
        ("csv", b'a,b\n"x.error,500,",48', "the connection closed in the middle"),
        ("csv", b'a,b\n"1,2\n3,4\n', "the connection closed in the middle"),
        ("json/simple", b'{"a":1}\nupstream gone\n', "line 2 is not a row"),
        ("json/simple", b'{"a":1}\n{"a":\n', "line 2 is not a row"),
        ("json/simple/compact", b'{"d":[1]}\n', "the line of column names is missing or wrong: m is not an object"),
        ("json/simple/compact", b'{"m":{"a":{"index":0}}}\n{"d":[1,2]}\n', "line 1 is not a row"),
        ("json", b'{"status":0,"object":["a"]}', "its member object does not contain rows"),
        ("json", b'{"status":0,"object":[{"a":1},null]}', "its member object does not contain rows"),
        ("json", b'{"object":[5]}', "its member object does not contain rows"),
        ("json", b'{"status":0,"object":[{"a":x}],"more":"than a few characters"}', "it is not valid JSON"),
        ("json/compact", b'{"object":{"d":[[1]]},"status":0}', "its column names are missing"),
        ("json/compact", b'{"object":{"m":{"a":{"index":0}},"d":[[1],[2,3]]}}', "row 2 has 2 values for 1 columns"),
        ("msgpack", msgpack.packb({"object": []}) + b"\x00", "something follows its envelope"),
        ("xml", b"a,b\n", "it is not xml"),
        ("xls", b"a,b\n", "it is not a spreadsheet"),
    ],
)
def test_a_body_of_another_form_is_incomplete(mode: str, body: bytes, message: str) -> None:
    error = raw(mode, body)[1]
    assert type(error) is IncompleteResult
    assert str(error) == WORDS["an incomplete answer"].format(message=message)


NO_OBJECT = "its envelope has no member object"
NO_ROWS = "its member object does not contain rows"


@pytest.mark.parametrize(
    ("modes", "body", "message"),
    [
        (EMPTY_IS_MALFORMED, b"", "it is empty"),
        (EMPTY_IS_MALFORMED[:3], b"    \n\n", "it is empty"),
        (("json", "json/compact"), b"null", "it is not an envelope"),
        (("json", "json/compact"), b"[]\n", "it is not an envelope"),
        (("json", "json/compact"), b"[1]", "it is not an envelope"),
        (("json", "json/compact"), b"5", "it is not an envelope"),
        (("json", "json/compact"), b'"done"', "it is not an envelope"),
        (("json", "json/compact"), b"{}", NO_OBJECT),
        (("json", "json/compact"), b'{"success":true,"msg":"","status":0,"cid":"c","timestamp":1}', NO_OBJECT),
        (("json", "json/compact"), b'{"objects":[]}', NO_OBJECT),
        (("json", "json/compact"), b'{"object":null,"status":0}', NO_ROWS),
        (("json", "json/compact"), b'{"object":{}}', NO_ROWS),
        (("json", "json/compact"), b'{"object":""}', NO_ROWS),
        (("json", "json/compact"), b'{"object":0}', NO_ROWS),
        (("json", "json/compact"), b'{"object":{"m":{"a":{"type":"str","index":0}}}}', NO_ROWS),
        (("json", "json/compact"), b'{"object":{"m":{},"d":null}}', NO_ROWS),
        (("json", "json/compact"), b'{"object":{"a":1}}', NO_ROWS),
        (("msgpack",), msgpack.packb(None), "it is not an envelope"),
        (("msgpack",), msgpack.packb({}), NO_OBJECT),
        (("msgpack",), msgpack.packb({"object": None}), NO_ROWS),
        (("json/simple", "json/simple/compact"), b"null\n", "its first line is null"),
        (("json/simple", "json/simple/compact"), b"{}\n", "its first line is {}"),
        (("json/simple", "json/simple/compact"), b"[]\n", "its first line is []"),
        (("json/simple", "json/simple/compact"), b"5\n", "its first line is 5"),
        (("json/simple", "json/simple/compact"), b"{}", "its first line is {}"),
        (("json/simple", "json/simple/compact"), b" \n null", "its first line is null"),
        (("json/simple/compact",), b'{"object":null}\n', 'its first line is {"object":null}'),
        (("json/simple/compact",), b'{"a":1}\n{"a":2}\n', 'its first line is {"a":1}'),
    ],
)
def test_a_json_answer_without_its_required_member_is_malformed(
    modes: tuple[str, ...], body: bytes, message: str
) -> None:
    for mode in modes:
        got, error = raw(mode, body)
        assert (got, type(error)) == (b"", MalformedAnswer)
        assert str(error) == f"the service's answer is not a result: {message}"


@pytest.mark.parametrize(
    ("mode", "body"),
    [
        ("json", b'{"object":[],"status":0}'),
        ("json/compact", b'{"object":[]}'),
        ("json/compact", b'{"object":{"m":{"a":{"type":"str","index":0}},"d":[]}}'),
        ("json/compact", b'{"object":{"m":{},"d":[]}}'),
        ("json/simple", b""),
        ("json/simple", b"    \n"),
        ("json/simple/compact", b'{"m":{"a":{"type":"str","index":0}}}\n'),
        ("msgpack", msgpack.packb({"object": []})),
    ],
)
def test_a_result_without_rows_is_a_result(mode: str, body: bytes) -> None:
    assert raw(mode, body) == (body.lstrip(), None)
    assert list(answer(mode, [body]).rows()) == []


@pytest.mark.parametrize(
    "lines", [b'{"d":[1],[2]}', b'{"d":[1],"e":[2]}', b'{"d":[[1]}\n{"d":[2]]}', b'{"d":["]}\n{"d":["]}']
)
def test_a_line_that_is_no_row_is_not_read_together_with_its_neighbours(lines: bytes) -> None:
    body = b'{"m":{"a":{"index":0}}}\n{"d":[0]}\n' + lines + b'\n{"d":[3]}\n'
    rows, error = drain(answer("json/simple/compact", [body]).rows())
    assert rows == [(0,)]
    assert str(error) == WORDS["not a row"]


def test_an_answer_of_several_envelopes_worth_of_pieces_keeps_order_and_count() -> None:
    records = [{"n": number, "text": NASTY if number % 100 == 0 else "x" * (number % 50)} for number in range(5000)]
    body = compact(ENVELOPE | {"object": records}).encode()
    pieces = [body[at : at + 4096] for at in range(0, len(body), 4096)]
    response = answer("json", pieces)
    assert b"".join(response.raw()) == body
    assert (response.row_count, response.cid) == (5000, "c1")
    assert [row[0] for row in answer("json", pieces).rows()] == list(range(5000))


@pytest.mark.parametrize("mode", ["json", "json/simple", "csv", "msgpack"])
def test_a_row_of_many_pieces_is_one_row(mode: str) -> None:
    value = "ñ" * 1_000_000
    bodies: dict[str, Callable[[], bytes]] = {
        "json": lambda: compact({"status": 0, "object": [{"a": value}]}).encode(),
        "json/simple": lambda: compact({"a": value}).encode() + b"\n",
        "csv": f'a,b\n"{value}",\n'.encode,
        "msgpack": lambda: msgpack.packb({"object": [{"a": value}]}),
    }
    body = bodies[mode]()
    pieces = [body[at : at + 65_536] for at in range(0, len(body), 65_536)]
    assert [row[0] for row in answer(mode, pieces).rows()] == [value]


@pytest.mark.parametrize(
    "mode", ["json", "json/compact", "json/simple", "json/simple/compact", "csv", "tsv", "msgpack"]
)
def test_a_long_row_costs_a_few_times_its_length(mode: str) -> None:
    size = 16_000_000
    tracemalloc.start()
    got = sum(map(len, answer(mode, _long_row(mode, size)).raw()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got > size
    assert peak < 7 * size


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode", ["json", "json/compact", "json/simple", "json/simple/compact", "csv", "tsv", "msgpack"]
)
def test_the_time_for_a_long_row_does_not_depend_on_its_pieces(mode: str) -> None:
    def seconds(piece: int) -> float:
        """The CPU time of a row that comes in pieces: the least of three, because others may run beside them."""
        readings = []
        for _ in range(3):
            started = time.process_time()
            for _ in answer(mode, _long_row(mode, 16_000_000, piece)).raw():
                pass
            readings.append(time.process_time() - started)
        return min(readings)

    assert seconds(1 << 16) < 6 * seconds(1 << 20)  # 16 times as long if each piece copied all before


def _long_row(mode: str, size: int, piece: int = 1 << 16) -> Iterable[bytes]:
    whole: dict[str, tuple[bytes, bytes]] = {
        "json": (b'{"status":0,"object":[{"a":"', b'"}]}'),
        "json/compact": (b'{"object":{"m":{"a":{"type":"str","index":0}},"d":[["', b'"]]},"status":0}'),
        "json/simple": (b'{"a":"', b'"}\n'),
        "json/simple/compact": (b'{"m":{"a":{"type":"str","index":0}}}\n{"d":["', b'"]}\n'),
        "csv": (b'a,b\n"', b'",\n'),
        "tsv": (b"a\tb\n", b"\t1\n"),
        "msgpack": (b"\x82\xa6status\x00\xa6object\x91\x81\xa1a\xdb" + size.to_bytes(4), b""),
    }
    before, after = whole[mode]
    yield before
    for at in range(0, size, piece):
        yield b"x" * min(piece, size - at)
    yield after


def test_an_array_of_anything_but_rows_does_not_fill_the_memory() -> None:
    asked = 0

    def pieces() -> Iterable[bytes]:
        nonlocal asked
        yield b'{"status":0,"object":['
        while True:
            asked += 1
            yield b"1," * 1000

    error = drain(answer("json", pieces()).raw())[1]
    assert str(error) == WORDS["no rows"]
    assert asked < 5


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["json", "json/simple", "csv", "msgpack"])
def test_a_row_without_an_end_does_not_fill_the_memory(mode: str) -> None:
    start = {
        "json": b'{"object":["',
        "json/simple": b'{"a":"',
        "csv": b'a\n"',
        "msgpack": b"\x81\xa6object\xdb\x7f\xff\xff\xff",
    }
    sent = 0

    def body() -> Iterable[bytes]:
        nonlocal sent
        yield start[mode]
        while True:
            sent += 1
            yield b"x" * 1024 * 1024

    error = drain(answer(mode, body()).raw())[1]
    assert str(error) == WORDS["a long row"]
    assert sent <= limits.MAX_ROW // 1024 // 1024 * 2


def test_a_field_that_only_later_rows_have_is_not_lost_silently() -> None:
    _rows, error = drain(answer("json/simple", [b'{"a":1}\n{"b":2}\n']).rows())
    assert type(error) is IncompleteResult
    assert error.hint == HINTS["columns that come later"]


@pytest.mark.parametrize("mode", [mode for mode in MODES if not MODES[mode].counts])
def test_the_rows_of_a_format_that_only_passes_through_cannot_be_read(mode: str) -> None:
    with pytest.raises(UsageError, match=f"the rows of {mode} cannot be read"):
        answer(mode, [BODIES[mode]]).rows()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [mode for mode in MODES if MODES[mode].counts])
def test_a_heading_of_a_million_columns_is_refused_before_it_fills_the_memory(mode: str) -> None:
    def body() -> Iterator[bytes]:
        begin, column, end = WIDE[mode]
        yield begin
        for first in range(0, 1_000_000, 10_000):
            yield b"".join(column % number for number in range(first, first + 10_000))
        yield end

    tracemalloc.start()
    try:
        error = drain(answer(mode, body()).rows())[1]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert type(error) is IncompleteResult
    assert peak < 70_000_000


DESCRIBED = b'"c%06d":{"type":"str","index":1},'
WIDE = {
    "json": (b'{"object":[{', b'"c%06d":1,', b'"":1}]}'),
    "json/compact": (b'{"object":{"m":{', DESCRIBED, b'"":{}},"d":[]}}'),
    "json/simple": (b"{", b'"c%06d":1,', b'"":1}\n'),
    "json/simple/compact": (b'{"m":{', DESCRIBED, b'"":{}}}\n'),
    "msgpack": (b"\x81\xa6object\x91\xdf\x00\x0f\x42\x40", b"\xa7c%06d\x01", b""),
    "csv": (b"", b"c%06d,", b"\n"),
    "tsv": (b"", b"c%06d\t", b"\n"),
}
"""A heading, or a first row that names as many columns: its begin, each column, and its end."""
