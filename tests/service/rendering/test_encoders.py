"""Response formats: golden bytes of one table, every format's rows read back, and how each one fails."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from xml.etree import ElementTree

import msgpack
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one
from support import GOLDEN

from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import ServiceError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Plan, Type
from svcctl.service.rendering import ENCODERS, DateStyle, Encoder, Rendering, stream
from svcctl.service.rendering.keep_alive import KeepAlive
from svcctl.service.rendering.text_formats import Csv
from svcctl.service.rendering.xls import Xls

ENDINGS = {
    "json": "json",
    "json/compact": "compact.json",
    "json/simple": "simple.ndjson",
    "json/simple/compact": "simple-compact.ndjson",
    "msgpack": "msgpack",
    "csv": "csv",
    "tsv": "tsv",
    "xml": "xml",
}
COLUMNS = (
    Column("eventdate", Type.TIMESTAMP),
    Column('text "&,', Type.STR),
    Column("int4", Type.INT4),
    Column("int8", Type.INT8),
    Column("float8", Type.FLOAT8),
    Column("bool", Type.BOOL),
    Column("ip4", Type.IP4),
)
Row = tuple[datetime, str | None, int | None, int | None, float | None, bool | None, int | None]
EVENTS: list[Row] = [
    (datetime(2024, 2, 29, 23, 59, 59, 7000), "plain", 1, 2, 1.5, True, 0xC0000201),
    (datetime(2024, 3, 1), None, None, None, None, None, None),
    (datetime(2024, 3, 1, 0, 0, 1), "", 0, 0, 0.0, False, 0),
    (datetime(2024, 3, 1, 0, 0, 2), 'a,b "c"\td\re\nf', -(2**31), -(2**63), -1e300, True, 2**32 - 1),
    (datetime(2024, 3, 1, 0, 0, 3), "\u2028 \u2029 \x85 \x7f 😀 é <&>' \\", 2**31 - 1, 2**63 - 1, 5e-324, False, 1),
    (datetime(2024, 3, 1, 0, 0, 4), "\x00\x01\x0b\x0c\x1b\x1c\x1f _x0041_ \ufffe\uffff", 7, 2**53 + 1, 0.1, None, 2),
    (datetime(2024, 3, 1, 0, 0, 5), "=1+1", 8, 2**53, float("nan"), None, 3),
    (datetime(2024, 3, 1, 0, 0, 6), " spaces ", 9, 1, float("-inf"), None, 4),
]


def rendering(date_format: str = "default", zone: timezone = UTC, **chosen: Any) -> Rendering:
    return Rendering("c1d", 1_709_251_200_000, DateStyle(date_format, zone), **chosen)


def filled(rows: list[Row], columns: tuple[Column, ...] = COLUMNS) -> DuckDBEngine:
    engine = DuckDBEngine()
    types = [pa.timestamp("ms"), pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.uint32()]
    arrays = [pa.array(values, type_) for values, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    engine.append("t", pa.table(arrays, [column.name for column in columns]).to_reader(), create=columns)
    return engine


def plan(select: str, columns: tuple[Column, ...] = COLUMNS) -> Plan:
    expression = parse_one(select, read="duckdb")
    assert isinstance(expression, exp.Select)
    return Plan(expression, columns, "t")


def body(engine: DuckDBEngine, encoder: Encoder, *plans: Plan, rows_per_batch: int = 2048) -> bytes:
    with encoder:
        parts = [encoder.head()]
        for each in plans:
            with stream(engine, each, encoder.expressions(), rows_per_batch=rows_per_batch) as batches:
                parts += [bytes(encoder.chunk(batch)) for batch in batches]
        return b"".join([*parts, *encoder.tail()])


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with filled(EVENTS) as engine:
        yield engine


ALL = plan("SELECT * FROM events.t")


@pytest.mark.parametrize("mode", [mode for mode in ENCODERS if mode != "xls"])
def test_the_bytes_of_a_format_are_the_golden_ones(engine: DuckDBEngine, mode: str) -> None:
    assert body(engine, ENCODERS[mode](COLUMNS, rendering()), ALL) == (GOLDEN / f"events.{ENDINGS[mode]}").read_bytes()


def test_the_sheet_of_a_workbook_is_the_golden_one(engine: DuckDBEngine) -> None:
    with zipfile.ZipFile(io.BytesIO(body(engine, ENCODERS["xls"](COLUMNS, rendering()), ALL))) as book:
        assert book.read("xl/worksheets/sheet1.xml") == (GOLDEN / "events.sheet.xml").read_bytes()


# How each format's rows read back: as epoch ms or text for times, and dotted text for addresses.


def address(ip: int | None) -> str | None:
    return None if ip is None else ".".join(str(ip >> shift & 255) for shift in (24, 16, 8, 0))


def finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def expected(rows: list[Row]) -> list[list[object]]:
    return [
        [round(when.replace(tzinfo=UTC).timestamp() * 1000), text, i4, i8, finite(f8), flag, address(ip)]
        for when, text, i4, i8, f8, flag, ip in rows
    ]


def milliseconds(text: str) -> int:
    return round(datetime.strptime(text + "000+0000", "%Y-%m-%d %H:%M:%S.%f%z").timestamp() * 1000)


FROM_TEXT: list[Callable[[str], object]] = [milliseconds, str, int, int, float, {"true": True, "false": False}.get, str]


def split(line: str, separator: str) -> list[str | None]:
    """The cells of a line; the csv module cannot tell an empty cell from an empty string."""
    cells = re.findall(rf'(?:^|{separator})(?:("(?:[^"]|"")*")|([^{separator}]*))', line)
    return [quoted[1:-1].replace('""', '"') if quoted else plain or None for quoted, plain in cells]


def read_separated(data: bytes, separator: str) -> list[list[object]]:
    header, *lines = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
    assert header == [column.name for column in COLUMNS]
    raw = data.decode().removesuffix("\n")
    logical = re.findall(r'(?:[^"\n]|"(?:[^"]|"")*")+', raw)[1:]
    cells = [split(line, separator) for line in logical]
    assert [[cell or "" for cell in row] for row in cells] == lines
    return [[None if cell is None else read(cell) for read, cell in zip(FROM_TEXT, row, strict=True)] for row in cells]


def unescaped(text: str) -> str:
    return re.sub("_x([0-9A-F]{4})_", lambda match: chr(int(match[1], 16)), text)


def read_xml(data: bytes) -> list[list[object]]:
    return [
        [
            None if field.get("null") else read(unescaped(field.text or ""))
            for read, field in zip(FROM_TEXT, event, strict=True)
        ]
        for event in ElementTree.fromstring(data).iter("event")
    ]


def read_xls(data: bytes) -> list[list[object]]:
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    rows: list[list[object]] = []
    for row in list(sheet.iter(f"{space}row"))[1:]:
        values: list[object] = [None] * len(COLUMNS)
        for cell in row:
            index = ord((cell.get("r") or "")[0]) - ord("A")
            text = "".join(cell.itertext())
            if index == 0:
                moment = datetime(1899, 12, 30, tzinfo=UTC) + timedelta(days=float(text))
                values[index] = round(moment.timestamp() * 1000)
            elif cell.get("t") == "b":
                values[index] = text == "1"
            else:
                values[index] = FROM_TEXT[index](unescaped(text))
        rows.append(values)
    return rows


def lines(data: bytes) -> list[bytes]:
    assert data.endswith(b"\n")
    return data[:-1].split(b"\n")


READERS: dict[str, Callable[[bytes], list[list[object]]]] = {
    "json": lambda data: [list(row.values()) for row in json.loads(data)["object"]],
    "json/compact": lambda data: json.loads(data)["object"]["d"],
    "json/simple": lambda data: [list(json.loads(line).values()) for line in lines(data)],
    "json/simple/compact": lambda data: [json.loads(line)["d"] for line in lines(data)[1:]],
    "msgpack": lambda data: [list(row.values()) for row in msgpack.unpackb(data)["object"]],
    "csv": lambda data: read_separated(data, ","),
    "tsv": lambda data: read_separated(data, "\t"),
    "xml": read_xml,
    "xls": read_xls,
}

ROWS = st.lists(
    st.tuples(
        st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)),
        st.none() | st.text(max_size=40) | st.text('",\t\r\n\\\0\x1b\u2028<&>_x0123', max_size=12),
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(),
        st.none() | st.booleans(),
        st.none() | st.integers(0, 2**32 - 1),
    ).map(lambda row: (row[0].replace(microsecond=row[0].microsecond // 1000 * 1000), *row[1:])),
    min_size=1,
    max_size=6,
)


def in_a_sheet(value: object) -> object:
    """Its writer keeps 16 digits of a number."""
    return float(f"{value:.16G}") if isinstance(value, float) else value


def check_all(rows: list[Row]) -> None:
    wanted = expected(rows)
    with filled(rows) as engine:
        for mode in ENCODERS:
            found = READERS[mode](body(engine, ENCODERS[mode](COLUMNS, rendering()), ALL))
            if mode == "xls":
                wanted = [[in_a_sheet(value) for value in row] for row in wanted]
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)), mode


def test_the_same_rows_come_back_from_every_format() -> None:
    check_all(EVENTS)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(ROWS)
def test_any_rows_come_back_from_every_format(rows: list[Row]) -> None:
    check_all(rows)


def test_long_texts_come_back_from_msgpack() -> None:
    texts = ["x" * n for n in (31, 32, 255, 256, 4095, 4096, 65535, 65536)]
    rows: list[Row] = [
        (datetime(2024, 1, 1, 0, 0, n), text, None, None, None, None, None) for n, text in enumerate(texts)
    ]
    with filled(rows) as engine:
        data = msgpack.unpackb(body(engine, ENCODERS["msgpack"](COLUMNS, rendering()), ALL))
    assert [row['text "&,'] for row in data["object"]] == texts


@pytest.mark.parametrize("mode", ENCODERS)
def test_several_plans_and_small_batches_make_the_same_answer_as_one(engine: DuckDBEngine, mode: str) -> None:
    cuts = [(0, 0), (3, 0), (0, 0), (5, 3)]
    parts = [plan(f"SELECT * FROM events.t LIMIT {limit} OFFSET {offset}") for limit, offset in cuts]
    whole = body(engine, ENCODERS[mode](COLUMNS, rendering()), ALL)
    pieces = body(engine, ENCODERS[mode](COLUMNS, rendering()), *parts, rows_per_batch=2)
    assert READERS[mode](pieces) == READERS[mode](whole)
    assert mode == "xls" or pieces == whole


@pytest.mark.parametrize("mode", ENCODERS)
def test_a_sliced_batch_is_written_from_where_it_starts(engine: DuckDBEngine, mode: str) -> None:
    with ENCODERS[mode](COLUMNS, rendering()) as encoder, stream(engine, ALL, encoder.expressions()) as batches:
        (batch,) = batches
        parts = [encoder.head(), *(bytes(encoder.chunk(batch.slice(at, 3))) for at in (2, 5)), *encoder.tail()]
    assert READERS[mode](b"".join(parts)) == READERS[mode](body(engine, ENCODERS[mode](COLUMNS, rendering()), ALL))[2:]


@pytest.mark.parametrize(
    ("mode", "empty"),
    [
        ("json", b'{"success":true,"msg":"","status":0,"cid":"c1d","timestamp":1709251200000,"object":[\n\n]}\n'),
        (
            "json/compact",
            b'{"success":true,"msg":"","status":0,"cid":"c1d","timestamp":1709251200000,'
            b'"object":{"m":{"eventdate":{"type":"timestamp","index":0}},'
            b'"metadata":[{"name":"eventdate","type":"timestamp"}],"d":[\n\n]}}\n',
        ),
        ("json/simple", b""),
        (
            "json/simple/compact",
            b'{"m":{"eventdate":{"type":"timestamp","index":0}},'
            b'"metadata":[{"name":"eventdate","type":"timestamp"}]}\n',
        ),
        ("csv", b"eventdate\n"),
        ("tsv", b"eventdate\n"),
        (
            "xml",
            b'<?xml version="1.0" encoding="UTF-8"?>\n<events>\n'
            b'<columns><column name="eventdate" type="timestamp"/></columns>\n</events>\n',
        ),
    ],
)
def test_an_answer_without_rows_is_whole(engine: DuckDBEngine, mode: str, empty: bytes) -> None:
    columns = COLUMNS[:1]
    none = plan("SELECT eventdate FROM events.t LIMIT 0", columns)
    assert body(engine, ENCODERS[mode](columns, rendering()), none) == empty


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        (
            "json",
            b'\n],"context":{"error":\n[500,"out of \\"luck\\"\\n<&>"]},"error":[500,"out of \\"luck\\"\\n<&>"]}\n',
        ),
        (
            "json/compact",
            b'\n]},"context":{"e":\n[500,"out of \\"luck\\"\\n<&>"]},"e":[500,"out of \\"luck\\"\\n<&>"]}\n',
        ),
        ("json/simple", b'["error",500,"out of \\"luck\\"\\n<&>"]\n'),
        ("json/simple/compact", b'{"e":[500,"out of \\"luck\\"\\n<&>"]}\n'),
        ("csv", b'svc.api.error,500,"out of ""luck""\n<&>"\n'),
        ("tsv", b'svc.api.error\t500\t"out of ""luck""\n<&>"\n'),
        ("xml", b'<error code="500">out of &quot;luck&quot;&#10;&lt;&amp;&gt;</error>\n</events>\n'),
    ],
)
def test_a_failure_after_the_start_is_told_at_the_end(mode: str, ending: bytes) -> None:
    assert ENCODERS[mode](COLUMNS, rendering()).error(500, 'out of "luck"\n<&>') == ending


@pytest.mark.parametrize(
    ("mode", "pattern"),
    [
        ("json", r'"error":\s\[(\d+),"([^"]+)"\]'),
        ("json", r'"error":\[(\d+),"([^"]+)"\]\}\n$'),
        ("json/compact", r'"e":\s\[(\d+),"([^"]+)"\]'),
        ("json/compact", r'"e":\[(\d+),"([^"]+)"\]\}\n$'),
        ("json/simple", r'\["error",(\d+),"([^"]+)"\]'),
        ("json/simple/compact", r'\{"e":\[(\d+),"([^"]+)"\]\}'),
    ],
)
def test_the_patterns_of_other_clients_find_a_failure(mode: str, pattern: str) -> None:
    found = re.search(pattern, ENCODERS[mode](COLUMNS, rendering()).error(400, "the query, too long").decode())
    assert found is not None
    assert found.groups() == ("400", "the query, too long")


LINES = ["json/simple", "json/simple/compact", "csv", "tsv"]


@pytest.mark.parametrize("mode", LINES)
def test_lines_end_in_crlf_when_asked_and_values_stay_as_they_are(engine: DuckDBEngine, mode: str) -> None:
    golden = (GOLDEN / f"events.{ENDINGS[mode]}").read_bytes()
    data = body(engine, ENCODERS[mode](COLUMNS, rendering(line_end="\r\n")), ALL)
    inside = b"d\re\nf" if mode in ("csv", "tsv") else b"no line end is inside JSON"
    assert data == golden.replace(inside, b"INSIDE").replace(b"\n", b"\r\n").replace(b"INSIDE", inside)
    read = QueryResponse(MODES[mode], "", [data])
    assert b"".join(read.raw()) == data
    assert read.row_count == len(EVENTS)


@pytest.mark.parametrize("mode", [mode for mode in ENDINGS if mode not in LINES])
def test_documents_have_no_line_ends_to_choose(engine: DuckDBEngine, mode: str) -> None:
    data = body(engine, ENCODERS[mode](COLUMNS, rendering(line_end="\r\n")), ALL)
    assert data == (GOLDEN / f"events.{ENDINGS[mode]}").read_bytes()


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("json/simple", b'["error",500,"out of luck"]\r\n'),
        ("json/simple/compact", b'{"e":[500,"out of luck"]}\r\n'),
        ("csv", b'svc.api.error,500,"out of luck"\r\n'),
        ("tsv", b'svc.api.error\t500\t"out of luck"\r\n'),
    ],
)
def test_the_line_of_an_error_ends_as_the_others_do(mode: str, ending: bytes) -> None:
    assert ENCODERS[mode](COLUMNS, rendering(line_end="\r\n")).error(500, "out of luck") == ending


@pytest.mark.parametrize("mode", ["csv", "tsv"])
def test_a_line_is_a_row_in_a_result_of_one_column_and_so_no_token(mode: str) -> None:
    with pytest.raises(ServiceError):
        ENCODERS[mode](COLUMNS[:1], rendering(keep_alive=KeepAlive("token", "#\n")))


@pytest.mark.parametrize(("ip_as_string", "type_"), [(None, Type.STR), (True, Type.IP4), (False, Type.IP4)])
@pytest.mark.parametrize("mode", ENCODERS)
def test_addresses_are_called_ip4_if_the_request_chooses_and_str_otherwise(
    engine: DuckDBEngine, mode: str, ip_as_string: bool | None, type_: Type
) -> None:
    with ENCODERS[mode](COLUMNS, rendering(ip_as_string=ip_as_string)) as encoder:
        assert encoder.columns == (*COLUMNS[:-1], Column("ip4", type_))
        data = body(engine, encoder, ALL)
    if ip_as_string is not False:
        assert READERS[mode](data) == READERS[mode](body(engine, ENCODERS[mode](COLUMNS, rendering()), ALL))


IPS = (Column("ip", Type.IP4),)
AS_NUMBERS = {
    "json": b'{"ip":3221225985},\n{"ip":null},\n{"ip":0}\n]}\n',
    "json/compact": b'{"m":{"ip":{"type":"ip4","index":0}},"metadata":[{"name":"ip","type":"ip4"}],"d":[\n'
    b"[3221225985],\n[null],\n[0]\n]}}\n",
    "json/simple": b'{"ip":3221225985}\n{"ip":null}\n{"ip":0}\n',
    "json/simple/compact": b'{"m":{"ip":{"type":"ip4","index":0}},"metadata":[{"name":"ip","type":"ip4"}]}\n'
    b'{"d":[3221225985]}\n{"d":[null]}\n{"d":[0]}\n',
    "csv": b'ip\n3221225985\n""\n0\n',
    "tsv": b'ip\n3221225985\n""\n0\n',
    "xml": b'<columns><column name="ip" type="ip4"/></columns>\n'
    b'<event><field name="ip">3221225985</field></event>\n<event><field name="ip" null="true"/></event>\n'
    b'<event><field name="ip">0</field></event>\n</events>\n',
}


@pytest.mark.parametrize("mode", AS_NUMBERS)
def test_addresses_are_numbers_of_type_ip4_when_asked(engine: DuckDBEngine, mode: str) -> None:
    three = plan("SELECT ip4 FROM events.t LIMIT 3", IPS)
    data = body(engine, ENCODERS[mode](IPS, rendering(ip_as_string=False)), three)
    assert data.endswith(AS_NUMBERS[mode])


def test_addresses_are_numbers_in_binary_formats_too_when_asked(engine: DuckDBEngine) -> None:
    data = body(engine, ENCODERS["msgpack"](COLUMNS, rendering(ip_as_string=False)), ALL)
    assert [row["ip4"] for row in msgpack.unpackb(data)["object"]] == [row[-1] for row in EVENTS]
    with zipfile.ZipFile(
        io.BytesIO(body(engine, ENCODERS["xls"](COLUMNS, rendering(ip_as_string=False)), ALL))
    ) as book:
        assert b'<c r="G2"><v>3221225985</v></c>' in book.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize(
    ("mode", "keep_alive", "padding"),
    [
        ("json", None, b"    "),
        ("json/compact", None, b"    "),
        ("json/simple", None, b"    "),
        ("json/simple/compact", None, b"    "),
        ("csv", None, b""),
        ("tsv", None, b""),
        ("xml", None, b"\n"),
        ("msgpack", None, b""),
        *((mode, KeepAlive("none"), b"") for mode in ENCODERS),
        ("json", KeepAlive("newline"), b"\n"),
        ("json/simple", KeepAlive("newline"), b"\n"),
        ("csv", KeepAlive("newline"), b"\n"),
        ("csv", KeepAlive("empty"), b",,,,,,\n"),
        ("tsv", KeepAlive("empty"), b"\t\t\t\t\t\t\n"),
        ("json", KeepAlive("token", "\t \n"), b"\t \n"),
        ("xml", KeepAlive("token", " "), b" "),
        ("csv", KeepAlive("token", "# é\n"), b"# \xc3\xa9\n"),
        ("json/simple", KeepAlive("token", "# é\n"), b"# \xc3\xa9\n"),
        ("xls", KeepAlive("token", "x"), b""),
        ("msgpack", KeepAlive("empty"), b""),
    ],
)
def test_padding_is_the_formats_own_or_what_the_request_chose(
    mode: str, keep_alive: KeepAlive | None, padding: bytes
) -> None:
    with ENCODERS[mode](COLUMNS, rendering(line_end="\r\n", keep_alive=keep_alive)) as encoder:
        assert encoder.padding == padding


@pytest.mark.parametrize(
    ("modes", "keep_alive", "message"),
    [
        (
            ["json", "json/compact", "json/simple", "json/simple/compact", "xml"],
            KeepAlive("empty"),
            "keepAlive 'empty' is a row of separators, which only csv and tsv have",
        ),
        (
            ["json", "json/compact", "xml"],
            KeepAlive("token", " x "),
            "the token of keepAlive can only be white space in json, json/compact and xml",
        ),
        *(
            (modes, KeepAlive("token", token), "a line of the token of keepAlive could be taken for a row")
            for modes, tokens in {
                ("json/simple", "json/simple/compact"): ("{}\n", "# \n {}", '["error",500,"M"]\n', '{"d":[1]}\r\n'),
                ("csv",): ("1,2,3,4,5,6,7\n", "a,,,,,,", "x\n\n,,,a,,,\r\n", "svc.api.error,500,M\n", '"'),
                ("tsv",): ("a\t\t\t\t\t\t\n", "svc.api.error\t500\tM\n", 'a"b\n'),
            }.items()
            for token in tokens
        ),
    ],
)
def test_padding_that_would_be_content_is_refused(modes: Sequence[str], keep_alive: KeepAlive, message: str) -> None:
    for mode in modes:
        with pytest.raises(ServiceError) as caught:
            ENCODERS[mode](COLUMNS, rendering(keep_alive=keep_alive))
        assert caught.value.message == message


@pytest.mark.parametrize("mode", [mode for mode, encoder in ENCODERS.items() if not encoder.streams])
def test_a_format_that_sends_nothing_before_its_end_raises_a_failure(engine: DuckDBEngine, mode: str) -> None:
    with ENCODERS[mode](COLUMNS, rendering()) as encoder:
        with stream(engine, ALL, encoder.expressions()) as batches:
            assert [encoder.head(), *map(encoder.chunk, batches), encoder.padding] == [b"", b"", b""]
        with pytest.raises(ServiceError) as caught:
            encoder.error(500, "out of luck")
    assert (caught.value.message, caught.value.code, caught.value.cid) == ("out of luck", 500, "c1d")


@pytest.mark.parametrize("mode", ["json", "json/compact", "json/simple", "xml"])
def test_padding_between_chunks_changes_nothing(engine: DuckDBEngine, mode: str) -> None:
    with (
        ENCODERS[mode](COLUMNS, rendering()) as encoder,
        stream(engine, ALL, encoder.expressions(), rows_per_batch=1) as batches,
    ):
        parts = [encoder.head(), encoder.padding]
        for batch in batches:
            parts += [bytes(encoder.chunk(batch)), encoder.padding]
        data = b"".join([*parts, *encoder.tail()]).removesuffix(b"    ")
    assert READERS[mode](data) == READERS[mode](body(engine, ENCODERS[mode](COLUMNS, rendering()), ALL))


@pytest.mark.parametrize(
    ("date_format", "hours", "text"),
    [
        ("default", 0, "2024-02-29 23:59:59.007"),
        ("sql", 2, "2024-03-01 01:59:59.007"),
        ("iso", 0, "2024-02-29T23:59:59.007Z"),
        ("iso", 2, "2024-03-01T01:59:59.007+0200"),
        ("iso", -9.5, "2024-02-29T14:29:59.007-0930"),
    ],
)
@pytest.mark.parametrize("mode", ["csv", "tsv", "xml"])
def test_times_follow_the_date_format_and_the_zone(
    engine: DuckDBEngine, mode: str, date_format: str, hours: float, text: str
) -> None:
    columns = COLUMNS[:1]
    encoder = ENCODERS[mode](columns, rendering(date_format, timezone(timedelta(hours=hours))))
    line = body(engine, encoder, plan("SELECT eventdate FROM events.t LIMIT 1", columns)).decode().split("\n")
    assert line[-2 if mode != "xml" else -3] == (
        text if mode != "xml" else f'<event><field name="eventdate">{text}</field></event>'
    )


def test_the_times_of_a_workbook_follow_the_zone(engine: DuckDBEngine) -> None:
    encoder = ENCODERS["xls"](COLUMNS, rendering(zone=timezone(timedelta(hours=2))))
    assert read_xls(body(engine, encoder, ALL))[1][0] == round(datetime(2024, 3, 1, 2, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(("mode", "separator"), [("csv", ","), ("tsv", "\t")])
def test_a_row_of_nulls_is_never_a_row_of_separators(engine: DuckDBEngine, mode: str, separator: str) -> None:
    columns: tuple[Column, ...] = (Column("n", Type.INT4),)
    three = plan("SELECT int4 FROM events.t LIMIT 3", columns)
    assert body(engine, ENCODERS[mode](columns, rendering()), three) == b'n\n1\n""\n0\n'
    columns = COLUMNS[3:6]
    some = plan("SELECT int8, float8, bool FROM events.t LIMIT 3 OFFSET 5", columns)
    assert body(engine, ENCODERS[mode](columns, rendering()), some).decode().replace(separator, "|") == (
        "int8|float8|bool\n9007199254740993|0.1|\n9007199254740992||\n1||\n"
    )
    columns = (COLUMNS[4], COLUMNS[5], COLUMNS[1])
    rows = plan('SELECT float8, bool, nullif("text ""&,", \'=1+1\') FROM events.t LIMIT 2 OFFSET 6', columns)
    told = body(engine, ENCODERS[mode](columns, rendering()), rows).decode().replace(separator, "|")
    assert told.split("\n")[1:] == ['""||', "|| spaces ", ""]


@pytest.mark.parametrize(
    ("date_format", "hours", "shown"),
    [
        ("default", 2, "yyyy-mm-dd hh:mm:ss.000"),
        ("iso", -9.5, 'yyyy-mm-dd"T"hh:mm:ss.000'),
    ],
)
def test_a_workbook_shows_its_dates_in_the_format(
    engine: DuckDBEngine, date_format: str, hours: float, shown: str
) -> None:
    encoder = ENCODERS["xls"](COLUMNS[:1], rendering(date_format, timezone(timedelta(hours=hours))))
    dates = plan("SELECT eventdate FROM events.t LIMIT 1", COLUMNS[:1])
    with zipfile.ZipFile(io.BytesIO(body(engine, encoder, dates))) as book:
        styles = ElementTree.fromstring(book.read("xl/styles.xml"))
    assert [style.get("formatCode") for style in styles.iter() if style.tag.endswith("numFmt")] == [shown]


def test_names_that_differ_by_case_only_are_kept_apart(engine: DuckDBEngine) -> None:
    columns = (Column("a", Type.INT4), Column("A", Type.INT4))
    twice = plan('SELECT int4 AS a, int4 + 1 AS "A" FROM events.t LIMIT 1', columns)
    assert body(engine, ENCODERS["json/simple"](columns, rendering()), twice) == b'{"a":1,"A":2}\n'


def test_a_chunk_is_a_view_of_the_batch_and_no_copy(engine: DuckDBEngine) -> None:
    encoder = Csv(COLUMNS, rendering())
    with stream(engine, ALL, encoder.expressions()) as batches:
        (batch,) = batches
        chunk = encoder.chunk(batch)
    assert isinstance(chunk, memoryview)
    assert chunk.obj is not None
    assert pa.py_buffer(chunk).address == batch.column(0).buffers()[2].address


def test_a_full_sheet_goes_on_in_the_next_one(engine: DuckDBEngine) -> None:
    class Small(Xls):
        rows_per_sheet = 6

    with zipfile.ZipFile(io.BytesIO(body(engine, Small(COLUMNS, rendering()), ALL))) as book:
        names = [name for name in book.namelist() if name.startswith("xl/worksheets/")]
        second = ElementTree.fromstring(book.read("xl/worksheets/sheet2.xml"))
    assert names == ["xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"]
    cells = {cell.get("r"): "".join(cell.itertext()) for cell in second.iter() if cell.tag.endswith("}c")}
    assert {place: text for place, text in cells.items() if place and place.startswith("B")} == {
        "B1": 'text "&,',
        "B2": "_x0000__x0001__x000B__x000C__x001B__x001C__x001F_ _x005F_x0041_ _xFFFE__xFFFF_",
        "B3": "=1+1",
        "B4": " spaces ",
    }


def test_a_date_that_no_spreadsheet_has_becomes_its_milliseconds() -> None:
    dates = [253402300799_000, 253402300800_000, -62135596801_000, 9223372036854_775, None]
    column = pa.array([None if ms is None else ms * 1000 for ms in dates], pa.timestamp("us"))
    with Xls((Column("eventdate", Type.TIMESTAMP),), rendering()) as sheet:
        sheet.chunk(pa.RecordBatch.from_arrays([column], ["c0"]))
        with zipfile.ZipFile(io.BytesIO(b"".join(sheet.tail()))) as book:
            found = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    cells = {cell.get("r"): "".join(cell.itertext()) for cell in found.iter() if cell.tag.endswith("}c")}
    assert cells == {
        "A1": "eventdate",
        "A2": "2958465.999988426",
        "A3": "253402300800000",
        "A4": "-62135596801000",
        "A5": "9223372036854775",
        "A6": "",
    }
