"""The response formats that stream: json, csv, tsv and xml.

DuckDB writes the text of rows, and Python passes the bytes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from svcctl.service.language.types import Column
from svcctl.service.rendering import arrow, rows
from svcctl.service.rendering.cells import xml_text
from svcctl.service.rendering.encoder import Encoder
from svcctl.service.rendering.keep_alive import NEWLINE, SPACES, PaddingForms

ROW_SEPARATOR = ",\n"
IN_STREAM = "svc.api.error"
"""The first cell of the row that ends a csv or tsv response after an error. Clients can search for this fixed text."""
ERROR_CELLS = 3
"""The number of cells in the error row of csv and tsv.

If a response has the same number of columns, one of its rows could look like the error row. In such a response, a first
cell with the text IN_STREAM is therefore put in quotes.
"""


class StreamedFormat(Encoder):
    """The base class of formats that stream. A response consists of a head, the texts of the rows, and a tail."""

    def row(self) -> rows.RowFormat:
        """Return the row format of the response."""
        raise NotImplementedError

    def expressions(self) -> list[str]:
        return [f"{self.row().text(self.value_columns, self.rendering.dates)} AS line"]

    def head(self) -> bytes:
        return self.row().head(self.columns)

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        return arrow.text(batch.column(0))


class Json(StreamedFormat):
    """The response format json: a JSON object with an array of rows. Each row is an object.

    The text of each row begins with a separator. The separator of the first row is removed.
    """

    content_type = "application/json"
    own_padding = SPACES

    _has_rows = False

    def row(self) -> rows.RowFormat:
        return rows.JsonRows(ROW_SEPARATOR + "{", "}", named=True)

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        text = super().chunk(batch)
        if text and not self._has_rows:
            self._has_rows = True
            return text[len(ROW_SEPARATOR) :]
        return text

    def envelope(self) -> str:
        """Return the beginning of the response, up to the name of the member that contains the rows."""
        return f'{compact(self.rendering.envelope())[:-1]},"object":'

    def head(self) -> bytes:
        return f"{self.envelope()}[\n".encode()

    def tail(self) -> Iterator[bytes]:
        yield b"\n]}\n"

    def error(self, code: int, message: str) -> bytes:
        return f"\n],{error_members('error', code, message)}}}\n".encode()


class JsonCompact(Json):
    def row(self) -> rows.RowFormat:
        return rows.JsonRows(ROW_SEPARATOR + "[", "]", named=False)

    def head(self) -> bytes:
        return f'{self.envelope()}{compact(metadata(self.columns))[:-1]},"d":[\n'.encode()

    def tail(self) -> Iterator[bytes]:
        yield b"\n]}}\n"

    def error(self, code: int, message: str) -> bytes:
        return f"\n]}},{error_members('e', code, message)}}}\n".encode()


class LinesEncoder(StreamedFormat):
    """The base class of formats that consist of lines. Each line ends in `Rendering.line_end`."""

    def line(self, text: str) -> bytes:
        return f"{text}{self.rendering.line_end}".encode()


class JsonSimple(LinesEncoder):
    content_type = "application/x-ndjson"
    ends_connection = True
    own_padding = SPACES

    def row(self) -> rows.RowFormat:
        return rows.JsonRows("{", "}" + self.rendering.line_end, named=True)

    def shape(self) -> PaddingForms:
        return PaddingForms(is_row=lambda line: line.lstrip().startswith(("{", "[")))

    def error(self, code: int, message: str) -> bytes:
        return self.line(compact(["error", code, message]))


class JsonSimpleCompact(JsonSimple):
    def row(self) -> rows.RowFormat:
        return rows.JsonRows('{"d":[', "]}" + self.rendering.line_end, named=False)

    def head(self) -> bytes:
        return self.line(compact(metadata(self.columns)))

    def late(self, count: int, lag: float) -> bytes:
        return self.line(compact({"late": count, "lag": lag}))

    def error(self, code: int, message: str) -> bytes:
        return self.line(compact({"e": [code, message]}))


class Csv(LinesEncoder):
    content_type = "text/csv; charset=utf-8"
    separated: ClassVar[rows.SeparatedRows] = rows.CSV

    def row(self) -> rows.RowFormat:
        reserved = IN_STREAM if len(self.columns) == ERROR_CELLS else ""
        return replace(self.separated, line_end=self.rendering.line_end, reserved=reserved)

    def shape(self) -> PaddingForms:
        separator, others = self.separated.separator, len(self.columns) - 1
        return PaddingForms(
            separator * others,
            lambda line: line.count(separator) == others or line.startswith(IN_STREAM) or '"' in line,
        )

    def error(self, code: int, message: str) -> bytes:
        return self.line(self.separated.separator.join((IN_STREAM, str(code), rows.quoted_cell(message))))


class Tsv(Csv):
    content_type = "text/tab-separated-values; charset=utf-8"
    separated = rows.TSV


class Xml(StreamedFormat):
    """The response format xml, a document of events:

        <?xml version="1.0" encoding="UTF-8"?>
        <events>
        <columns><column name="eventdate" type="timestamp"/><column name="user" type="str"/></columns>
        <event><field name="eventdate">2024-01-31 10:00:00.000</field><field name="user" null="true"/></event>
        </events>

    Characters that XML 1.0 forbids are written as `_xHHHH_`, and a literal `_x` is written as `_x005F_x`. A failed
    response has an element `<error code="…">message</error>` before its end.
    """

    content_type = "application/xml"
    own_padding = NEWLINE

    def row(self) -> rows.RowFormat:
        return rows.XML

    def tail(self) -> Iterator[bytes]:
        yield b"</events>\n"

    def error(self, code: int, message: str) -> bytes:
        return f'<error code="{code}">{xml_text(message)}</error>\n</events>\n'.encode()


def metadata(columns: Sequence[Column]) -> dict[str, object]:
    """Return the two members `m` and `metadata`, which describe columns.

    `m` is an object that maps the name of each column to its type and index. `metadata` is a list with the name and the
    type of each column.
    """
    return {
        "m": {column.name: {"type": column.type.value, "index": index} for index, column in enumerate(columns)},
        "metadata": [{"name": column.name, "type": column.type.value} for column in columns],
    }


def error_members(name: str, code: int, message: str) -> str:
    """Return the members that end a JSON document after an error.

    The error is written twice, because clients search for the name of the member in two ways. Some clients expect the
    array directly after the name. Other clients expect white space between the name and the array.
    """
    error = compact([code, message])
    return f'"context":{{"{name}":\n{error}}},"{name}":{error}'


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
