"""Query responses. `ENCODERS` has a row for every `mode.type` of the interface.

    encoder.py        the base of every format: the facts about a response, and the steps of writing it
    text_formats.py   json, json/compact, json/simple, json/simple/compact, csv, tsv, xml: they stream
    msgpack.py        msgpack, which needs every row first and keeps rows on disk
    xls.py            xls, which also needs every row first and keeps rows on disk
    rows.py           the text of a row in json, csv, tsv and xml, also for destinations
    cells.py          a value as text, in DuckDB's SQL
    renderer.py       runs a plan on any engine and evaluates SQL expressions over its columns
    keep_alive.py     the padding that is sent while there are no rows
    arrow.py          text in Arrow's buffers as bytes

The bytes of many rows are made at once: DuckDB writes the text of each row, and DuckDB's buffers are sent unchanged.
Only xls writes one cell after another, because a spreadsheet cannot be written in another way.
"""

from __future__ import annotations

from svcctl.service.rendering.encoder import Encoder, Rendering
from svcctl.service.rendering.msgpack import MsgPack
from svcctl.service.rendering.renderer import stream
from svcctl.service.rendering.rows import DateStyle
from svcctl.service.rendering.text_formats import Csv, Json, JsonCompact, JsonSimple, JsonSimpleCompact, Tsv, Xml
from svcctl.service.rendering.xls import Xls

ENCODERS: dict[str, type[Encoder]] = {
    "json": Json,
    "json/compact": JsonCompact,
    "json/simple": JsonSimple,
    "json/simple/compact": JsonSimpleCompact,
    "msgpack": MsgPack,
    "csv": Csv,
    "tsv": Tsv,
    "xml": Xml,
    "xls": Xls,
}

LINE_ENDS = {"lf": "\n", "crlf": "\r\n"}
"""The characters that end a line, for each value of SVCCTL_LINE_END."""

__all__ = ["ENCODERS", "LINE_ENDS", "DateStyle", "Encoder", "Rendering", "stream"]
