"""Workbooks as a spreadsheet program reads them: LibreOffice turns an xls answer into csv, which is the csv answer.

Compared as they are shown: dates and texts to the letter (but for the zone that iso ends in), booleans in capitals,
numbers by the 10 digits that a cell without a format shows. Carriage returns and control characters are not asked for
here: what a program makes of them when it writes csv is its own affair.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peers.installed import need
from sqlglot import exp, parse_one
from support.clients import client_of
from support.shells import Shell

from svcctl.api.query import QueryRequest
from svcctl.service import rendering
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Plan, Type
from svcctl.service.rendering import Rendering
from svcctl.service.rendering.xls import Xls

# Comma, double quotes, UTF-8, from line 1, cells as they are shown, all sheets.
CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
ZONE = re.compile(r"(?<=:\d\d\.\d{3})(Z|[+-]\d{4})$")

STORED = pa.schema(
    [
        ("eventdate", pa.timestamp("ms")),
        ("text", pa.string()),
        ("i4", pa.int32()),
        ("i8", pa.int64()),
        ("f8", pa.float64()),
        ("ok", pa.bool_()),
    ]
)
ROWS = [
    (datetime(2024, 2, 29, 0, 0, 0, 7000), "plain", 1, 2, 1.5, True),
    (datetime(2024, 2, 29, 0, 0, 1), None, None, None, None, None),
    (datetime(2024, 2, 29, 0, 0, 2), 'a,b "c"\td\nf', -(2**31), -(2**63), -1e300, False),
    (datetime(2024, 2, 29, 0, 0, 3), "\u2028 漢字 😀 é <&>' \\", 2**31 - 1, 2**63 - 1, 0.1, True),
    (datetime(2024, 2, 29, 0, 0, 4), "=1+1", 0, 2**53 + 1, 123456.125, None),
    (datetime(2024, 2, 29, 23, 59, 59, 999000), " 007 ", 7, 2**53, 1e22, None),
    (datetime(2024, 3, 1), "2024-01-01", 8, 10**12, 0.0, None),
    (datetime(2024, 3, 1, 0, 0, 0, 1000), "_x0041_ and _x", 9, None, None, False),
]


def sheets(workbook: bytes, directory: Path) -> dict[str, list[list[str]]]:
    """The cells of each sheet, as LibreOffice shows them."""
    need("LibreOffice", "soffice")
    source = directory / "book.xlsx"
    source.write_bytes(workbook)
    subprocess.run(
        ["soffice", f"-env:UserInstallation=file://{directory}/profile", "--headless", "--convert-to", CSV,
         "--outdir", str(directory), str(source)],
        check=True, capture_output=True, timeout=110,
    )  # fmt: skip
    return {
        path.stem.removeprefix("book-"): list(csv.reader(io.StringIO(path.read_text("utf-8"), newline="")))
        for path in directory.glob("book-*.csv")
    }


def shown(cell: str) -> str:
    """A cell of csv in the one spelling that both are compared in."""
    if cell in ("true", "false"):
        return cell.upper()
    if NUMBER.fullmatch(cell) and (not cell.lstrip("-").isdigit() or abs(int(cell)) <= 2**53):
        return f"{float(cell):.10G}"
    return ZONE.sub("", cell)


@pytest.mark.parametrize(
    ("date_format", "time_zone"), [(None, None), ("iso", None), ("iso", "GMT+2"), ("default", "GMT-11")]
)
def test_an_xls_answer_shows_what_the_csv_answer_says(
    service: Shell, tmp_path: Path, date_format: str | None, time_zone: str | None
) -> None:
    if not (service.home / "shown.parquet").exists():
        rows = [dict(zip(STORED.names, row, strict=True)) for row in ROWS]
        pq.write_table(pa.Table.from_pylist(rows, STORED), service.home / "shown.parquet")
        loaded = service("service", "load", "shown.parquet", "--table", "shown")
        assert loaded.returncode == 0, loaded.stderr
    answers = {}
    with client_of(service) as client:
        for mode in ("csv", "xls"):
            asked = QueryRequest(
                query="from shown", from_="29/02/2024 00:00:00", to="2d", mode=mode,
                date_format=date_format, time_zone=time_zone,
            )  # fmt: skip
            with client.query(asked) as answer:
                answers[mode] = b"".join(answer.raw())
    told = list(csv.reader(io.StringIO(answers["csv"].decode(), newline="")))
    [(name, cells)] = sheets(answers["xls"], tmp_path).items()
    assert (name, len(told)) == ("events", 1 + len(ROWS))
    assert [[shown(cell) for cell in row] for row in cells] == [[shown(cell) for cell in row] for row in told]


def test_a_sheet_that_is_full_goes_on_in_the_next_under_the_same_heading(tmp_path: Path) -> None:
    class Small(Xls):
        rows_per_sheet = 4

    columns = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
    select = parse_one("SELECT eventdate, n FROM events.t")
    assert isinstance(select, exp.Select)
    plan = Plan(select, columns, "t")
    dates = pa.array([datetime(2024, 1, 1, 0, 0, n) for n in range(7)], pa.timestamp("ms"))
    events = pa.table([dates, pa.array(range(7), pa.int64())], ["eventdate", "n"])
    with DuckDBEngine() as engine, Small(columns, Rendering("cid", 0)) as encoder:
        engine.append("t", events.to_reader(), create=columns)
        with rendering.stream(engine, plan, encoder.expressions()) as stream:
            for batch in stream:
                encoder.chunk(batch)
        book = b"".join(encoder.tail())
    rows = [[f"2024-01-01 00:00:{n:02}.000", str(n)] for n in range(7)]
    heading = ["eventdate", "n"]
    assert sheets(book, tmp_path) == {
        "events": [heading, *rows[:3]],
        "events 2": [heading, *rows[3:6]],
        "events 3": [heading, *rows[6:]],
    }
