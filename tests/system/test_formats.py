"""Every format from the stored event to the reader: the real service and the real client, nothing in between replaced.

What a row's bytes are is held by the golden files; here they are read back, by `rows()` and by other people's parsers
from `raw()`, and must be the rows that were stored.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.clients import client_of
from support.shells import Shell

from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.api.response import MODES
from svcctl.errors import UsageError

Row = tuple[Any, ...]

DAY = 1_709_164_800_000
"""2024-02-29 00:00:00 UTC in milliseconds."""
STORED = pa.schema(
    [
        ("eventdate", pa.timestamp("ms")),
        ("text", pa.string()),
        ("i4", pa.int32()),
        ("i8", pa.int64()),
        ("f8", pa.float64()),
        ("ok", pa.bool_()),
        ("ip", pa.string()),
    ]
)
ODD = "\u2028 \u2029 \x85 \x7f 漢字 😀👩‍👩‍👧 é <&>' \\ \\n"
CONTROL = "\x00\x01\x08\x0b\x0c\x1b[31m\x1c\x1d\x1e\x1f _x0041_ \ufeff\ufffe\uffff"
ROWS: list[Row] = [
    (DAY + 7, "plain", 1, 2, 1.5, True, "192.0.2.1"),
    (DAY + 1_000, None, None, None, None, None, None),
    (DAY + 2_000, "", 0, 0, 0.0, False, "0.0.0.0"),
    (DAY + 3_000, 'a,b "c"\td\r\ne\nf\rg', -(2**31), -(2**63), -1e300, True, "255.255.255.255"),
    (DAY + 4_000, ODD, 2**31 - 1, 2**63 - 1, 5e-324, False, "10.0.0.1"),
    (DAY + 5_000, CONTROL, 7, 2**53 + 1, 0.1, None, None),
    (DAY + 6_000, "\n", 8, -(2**53) - 1, 1e22, None, None),
    (DAY + 7_000, '"', 9, 2**53, 123456789.125, True, "1.2.3.4"),
    (DAY + 8_000, " error \t", 500, 1, 2.0, False, None),
    (DAY + 9_000, "=1+1", None, None, None, None, None),
]
WINDOW = {"from_": DAY // 1000, "to": DAY // 1000 + 60}


def only(*names: str) -> list[Row]:
    """Some columns of all rows."""
    places = [STORED.names.index(name) for name in names]
    return [tuple(row[at] for at in places) for row in ROWS]


CASES: dict[str, tuple[str, list[str], list[Row]]] = {
    "everything": ("from kinds", STORED.names, ROWS),
    "nothing": ("from kinds where false", STORED.names, []),
    "one row": ("from kinds limit 1", STORED.names, ROWS[:1]),
    "a row of nulls": ("from kinds select text, i4, ok", ["text", "i4", "ok"], only("text", "i4", "ok")),
    "only nulls": ("from kinds where isnull(text) select f8, text", ["f8", "text"], [(None, None)]),
    "nulls in one column": ("from kinds select i8", ["i8"], only("i8")),
    "a number first": ("from kinds select f8, i4, i8", ["f8", "i4", "i8"], only("f8", "i4", "i8")),
    "an address": (
        "from kinds select i4 as n, ip4(ip) as ip where n < 8",
        ["i4", "ip"],
        [row for row in only("i4", "ip") if row[0] is not None and row[0] < 8],
    ),
}


@pytest.fixture(scope="module")
def client(service: Shell) -> Iterator[Client]:
    """A client of a service that has the rows in its table `kinds`."""
    pq.write_table(
        pa.Table.from_pylist([dict(zip(STORED.names, row, strict=True)) for row in ROWS], STORED),
        service.home / "kinds.parquet",
    )
    loaded = service("service", "load", "kinds.parquet", "--table", "kinds")
    assert loaded.returncode == 0, loaded.stderr
    with client_of(service) as client:
        yield client


def ask(query: str, mode: str, **fields: Any) -> QueryRequest:
    return QueryRequest(query=query, mode=mode, **{**WINDOW, **fields})


def raw(client: Client, query: str, mode: str, **fields: Any) -> bytes:
    with client.query(ask(query, mode, **fields)) as answer:
        return b"".join(answer.raw())


def milliseconds(text: str) -> int:
    return round(datetime.strptime(text + "000+0000", "%Y-%m-%d %H:%M:%S.%f%z").timestamp() * 1000)


FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "eventdate": milliseconds,
    "text": str,
    "i4": int,
    "i8": int,
    "f8": float,
    "ok": {"true": True, "false": False}.__getitem__,
    "ip": str,
}


def typed(names: list[str], cells: list[str | None]) -> Row:
    return tuple(None if cell is None else FROM_TEXT[name](cell) for name, cell in zip(names, cells, strict=True))


def separated(data: bytes, separator: str, names: list[str]) -> list[Row]:
    """Rows by the standard library's reader, for which a null is an empty cell."""
    _, *rows = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
    return [typed(names, [cell or None for cell in row]) for row in rows]


def unescaped(text: str) -> str:
    return re.sub("_x([0-9A-F]{4})_", lambda match: chr(int(match[1], 16)), text)


def from_xml(data: bytes, names: list[str]) -> list[Row]:
    events = ElementTree.fromstring(data).iter("event")
    return [typed(names, [None if cell.get("null") else unescaped(cell.text or "") for cell in row]) for row in events]


SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def from_sheet(data: bytes, names: list[str]) -> list[Row]:
    """Rows by the sheet's own XML: a date is a number of days, an empty cell is not there."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    rows: list[Row] = []
    for row in list(sheet.iter(f"{SHEET}row"))[1:]:
        cells: list[Any] = [None] * len(names)
        for cell in row:
            at, text = ord(cell.get("r", "")[0]) - ord("A"), "".join(cell.itertext())
            if cell.find("*") is None:
                continue
            if names[at] == "eventdate":
                cells[at] = round((datetime(1899, 12, 30, tzinfo=UTC) + timedelta(days=float(text))).timestamp() * 1000)
            elif cell.get("t") == "b":
                cells[at] = text == "1"
            else:
                cells[at] = FROM_TEXT[names[at]](unescaped(text))
        rows.append(tuple(cells))
    return rows


def records(values: list[dict[str, Any]], names: list[str]) -> list[Row]:
    return [tuple(value.values()) for value in values]


def lines(data: bytes) -> list[Any]:
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


OTHER_READERS: dict[str, Callable[[bytes, list[str]], list[Row]]] = {
    "json": lambda data, names: records(json.loads(data)["object"], names),
    "json/compact": lambda data, names: [tuple(row) for row in json.loads(data)["object"]["d"]],
    "json/simple": lambda data, names: records(lines(data), names),
    "json/simple/compact": lambda data, names: [tuple(line["d"]) for line in lines(data)[1:]],
    "msgpack": lambda data, names: records(msgpack.unpackb(data)["object"], names),
    "csv": lambda data, names: separated(data, ",", names),
    "tsv": lambda data, names: separated(data, "\t", names),
    "xml": from_xml,
    "xls": from_sheet,
}
TEXT_ONLY = {"csv", "tsv"}


def as_told(mode: str, rows: list[Row]) -> list[Row]:
    """Rows as a format can tell them: csv and tsv readers see no empty text, a sheet has 16 digits."""
    if mode in TEXT_ONLY:
        return [tuple(None if value == "" else value for value in row) for row in rows]
    if mode == "xls":
        return [tuple(float(f"{v:.16G}") if isinstance(v, float) else v for v in row) for row in rows]
    return rows


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_another_reader_finds_the_stored_rows_in_the_bytes(client: Client, mode: str, case: str) -> None:
    query, names, rows = CASES[case]
    assert OTHER_READERS[mode](raw(client, query, mode), names) == as_told(mode, rows)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.counts])
def test_the_clients_rows_are_the_stored_ones(client: Client, mode: str, case: str) -> None:
    query, names, rows = CASES[case]
    with client.query(ask(query, mode)) as answer:
        found = list(answer.rows())
        assert answer.row_count == len(rows)
    if mode in TEXT_ONLY:
        found = [typed(names, [None if cell == "" else cell for cell in row]) for row in found]
    assert found == as_told(mode, rows)
    assert [type(value) for row in found for value in row] == [
        type(value) for row in as_told(mode, rows) for value in row
    ]


def test_the_rows_of_a_workbook_are_not_read(client: Client) -> None:
    with client.query(ask("from kinds", "xls")) as answer, pytest.raises(UsageError) as caught:
        answer.rows()
    assert caught.value.message == "the rows of xls cannot be read"


@pytest.mark.parametrize("mode", MODES)
def test_raw_is_what_the_service_sent(client: Client, mode: str) -> None:
    request = ask("from kinds", mode)
    with client.request("POST", "/search/query", request.body()) as answer:
        sent = b"".join(answer.body)
    if mode == "xls":  # a zip file holds the moment it was made
        assert from_sheet(sent, STORED.names) == from_sheet(raw(client, "from kinds", mode), STORED.names)
    else:
        cid = re.compile(rb'"cid":"\w+","timestamp":\d+|\xa3cid\xac.{12}\xa9timestamp.{9}', re.DOTALL)
        assert cid.sub(b"", raw(client, "from kinds", mode)) == cid.sub(b"", sent)


@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.counts and name != "json/simple"])
def test_an_answer_without_rows_has_its_columns_where_the_format_has_a_place_for_them(
    client: Client, mode: str
) -> None:
    with client.query(ask("from kinds where false select i8, text", mode)) as answer:
        assert list(answer.rows()) == []
        named = [column.name for column in answer.columns]
    assert named == ([] if mode in ("json", "msgpack") else ["i8", "text"])


DATES = {
    ("default", None): "2024-02-29 00:00:00.007",
    ("default", "GMT+2"): "2024-02-29 02:00:00.007",
    ("default", "GMT-11"): "2024-02-28 13:00:00.007",
    ("sql", None): "2024-02-29 00:00:00.007",
    ("sql", "GMT+2"): "2024-02-29 02:00:00.007",
    ("sql", "GMT-11"): "2024-02-28 13:00:00.007",
    ("iso", None): "2024-02-29T00:00:00.007Z",
    ("iso", "GMT+2"): "2024-02-29T02:00:00.007+0200",
    ("iso", "GMT-11"): "2024-02-28T13:00:00.007-1100",
    ("iso", "GMT"): "2024-02-29T00:00:00.007Z",
    (None, "GMT+14"): "2024-02-29 14:00:00.007",
}


@pytest.mark.parametrize("mode", ["csv", "tsv", "xml", "xls"])
@pytest.mark.parametrize(("date_format", "zone"), DATES)
def test_dates_are_written_in_the_requested_format_and_zone(
    client: Client, mode: str, date_format: str | None, zone: str | None
) -> None:
    query = "from kinds select eventdate limit 1"
    data = raw(client, query, mode, date_format=date_format, time_zone=zone)
    shown = DATES[date_format, zone]
    if mode == "xls":
        assert as_shown(data) == re.sub(r"(Z|[+-]\d{4})$", "", shown)  # a sheet shows the clock of the zone only
    elif mode == "xml":
        assert ElementTree.fromstring(data).findtext("event/field") == shown
    else:
        assert data.decode() == f"eventdate\n{shown}\n"


def as_shown(data: bytes) -> str:
    """The first date of a workbook as a spreadsheet would show it: its number of days in its cell's format."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        styles = ElementTree.fromstring(book.read("xl/styles.xml"))
    [code] = [style.get("formatCode", "") for style in styles.iter(f"{SHEET}numFmt")]
    [(moment,)] = from_sheet(data, ["eventdate"])
    date = datetime.fromtimestamp(moment / 1000, UTC)
    date_part, time_part = date.strftime("%Y-%m-%d"), date.strftime("%H:%M:%S.") + f"{moment % 1000:03}"
    return code.replace("yyyy-mm-dd", date_part).replace("hh:mm:ss.000", time_part).replace('"', "")


@pytest.mark.parametrize("mode", [name for name in MODES if name not in ("csv", "tsv", "xml", "xls")])
def test_json_formats_have_milliseconds_in_every_request(client: Client, mode: str) -> None:
    query = "from kinds select eventdate limit 1"
    data = raw(client, query, mode, date_format="iso", time_zone="GMT+2")
    assert OTHER_READERS[mode](data, ["eventdate"]) == [(DAY + 7,)]
