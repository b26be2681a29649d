"""Query responses: a row of `ENCODERS` for every `mode.type` of the interface.

    cells.py       a value as text, in DuckDB's SQL
    rows.py        the text of a row, which destinations write too
    base.py        the base of every format: what a response knows of its query
    renderer.py    runs a plan on any engine and evaluates such expressions over its columns
    responses.py   the formats that stream
    binary.py      msgpack and xls, which need every row first and collect rows on disk
    keep_alive.py  what is sent while there are no rows
    arrow.py       text in Arrow's buffers as bytes

Bytes are made in bulk: DuckDB writes each row's text, and its buffers go to the wire. Only xls touches cells one by
one, because a spreadsheet cannot be written otherwise.
"""

from __future__ import annotations

from svcctl.service.rendering.base import Encoder, Rendering
from svcctl.service.rendering.binary import MsgPack, Xls
from svcctl.service.rendering.renderer import stream
from svcctl.service.rendering.responses import Csv, Json, JsonCompact, JsonSimple, JsonSimpleCompact, Tsv, Xml
from svcctl.service.rendering.rows import Dates

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
"""Line endings by the value of SVCCTL_LINE_END."""

__all__ = ["ENCODERS", "LINE_ENDS", "Dates", "Encoder", "Rendering", "stream"]
