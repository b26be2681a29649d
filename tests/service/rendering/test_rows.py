"""The text of a row, as responses, files and messages have it."""

from __future__ import annotations

from datetime import timedelta, timezone

import duckdb
import pytest

from svcctl.dates.operators import DATE_FORMATS
from svcctl.service.engines.duckdb.syntax import DEFINED
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import cells
from svcctl.service.rendering.rows import ARRAY, CSV, OBJECT, OBJECT_LINE, TSV, XML, DateStyle, RowFormat

COLUMNS = (
    Column("eventdate", Type.TIMESTAMP),
    Column('a "b", c', Type.STR),
    Column("ip", Type.IP4),
    Column("", Type.FLOAT8),
)
EVENT = "SELECT TIMESTAMP '2024-02-29 23:59:59.007' AS c0, 'x\ty, \"z\"' AS c1, 3221225985::UINTEGER AS c2, 0.5 AS c3"


@pytest.mark.parametrize(
    ("format_", "head", "text"),
    [
        (CSV, 'eventdate,"a ""b"", c",ip,""\n', '2024-03-01T01:59:59.007+0200,"x\ty, ""z""",192.0.2.1,0.5\n'),
        (TSV, 'eventdate\t"a ""b"", c"\tip\t""\n', '2024-03-01T01:59:59.007+0200\t"x\ty, ""z"""\t192.0.2.1\t0.5\n'),
        (OBJECT, "", r'{"eventdate":1709251199007,"a \"b\", c":"x\ty, \"z\"","ip":"192.0.2.1","":0.5}'),
        (OBJECT_LINE, "", '{"eventdate":1709251199007,"a \\"b\\", c":"x\\ty, \\"z\\"","ip":"192.0.2.1","":0.5}\n'),
        (ARRAY, "", r'[1709251199007,"x\ty, \"z\"","192.0.2.1",0.5]'),
        (
            XML,
            '<?xml version="1.0" encoding="UTF-8"?>\n<events>\n<columns><column name="eventdate" type="timestamp"/>'
            '<column name="a &quot;b&quot;, c" type="str"/><column name="ip" type="ip4"/>'
            '<column name="" type="float8"/></columns>\n',
            '<event><field name="eventdate">2024-03-01T01:59:59.007+0200</field>'
            '<field name="a &quot;b&quot;, c">x\ty, "z"</field><field name="ip">192.0.2.1</field>'
            '<field name="">0.5</field></event>\n',
        ),
    ],
    ids=["csv", "tsv", "object", "line", "array", "xml"],
)
def test_a_row_format_gives_the_head_and_the_text_of_a_row(format_: RowFormat, head: str, text: str) -> None:
    dates = DateStyle("iso", timezone(timedelta(hours=2)))
    with duckdb.connect() as connection:
        connection.execute(DEFINED)
        found = connection.execute(f"SELECT {format_.text(COLUMNS, dates)} FROM ({EVENT})").fetchall()
    assert (format_.head(COLUMNS).decode(), found) == (head, [(text,)])


def test_every_date_format_of_the_interface_can_be_written() -> None:
    assert tuple(cells.DATES) == DATE_FORMATS
