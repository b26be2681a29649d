"""Query responses: a row of `ENCODERS` for every `mode.type` of the interface.

Bytes are made in bulk. The streaming formats have DuckDB write each row's line as SQL (`lines`, on the expressions in
`cells`) and hand its buffers to the wire; the two that cannot stream collect on disk (`spooled`). Only xls touches
cells one by one, for want of another way to write a spreadsheet.
"""

from __future__ import annotations

from svcctl.service.rendering.base import Encoder, Rendering
from svcctl.service.rendering.cells import DATE_FORMATS
from svcctl.service.rendering.lines import Csv, Json, JsonCompact, JsonSimple, JsonSimpleCompact, Tsv, Xml
from svcctl.service.rendering.renderer import stream
from svcctl.service.rendering.spooled import MsgPack, Xls

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

__all__ = ["DATE_FORMATS", "ENCODERS", "Encoder", "Rendering", "stream"]
