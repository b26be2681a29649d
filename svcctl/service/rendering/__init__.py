"""Writes the responses to queries. `ENCODERS` has a class for each format, by the `mode.type` of a request.

    encoder.py        the base class of all formats
    text_formats.py   json, json/compact, json/simple, json/simple/compact, csv, tsv and xml, which stream rows
    msgpack.py        msgpack, which keeps all rows on disk before the response begins
    xls.py            xls, which also keeps all rows on disk before the response begins
    rows.py           the text of a row in json, csv, tsv and xml, also for the destinations of jobs
    cells.py          a value as text, in DuckDB's SQL
    renderer.py       runs the plan of a query on any engine, and evaluates SQL expressions over the plan's columns
    keep_alive.py     the padding that is sent while there are no rows
    arrow.py          reads the bytes of texts from Arrow's buffers

DuckDB writes the text of many rows at once, and DuckDB's buffers are sent unchanged. Only xls is written cell by cell.
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
