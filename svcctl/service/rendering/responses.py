"""The formats that stream. DuckDB writes each row's text in SQL, in parallel; Python passes on the bytes it made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from svcctl.service.language.types import Column
from svcctl.service.rendering import arrow, rows
from svcctl.service.rendering.base import Encoder
from svcctl.service.rendering.cells import xml_text

BETWEEN = ",\n"


class Streamed(Encoder):
    """A format that is a head, the text of each row, and a tail."""

    row: ClassVar[rows.RowFormat]

    def expressions(self) -> list[str]:
        return [f"{self.row.text(self.columns, self.rendering.dates)} AS line"]

    def head(self) -> bytes:
        return self.row.head(self.columns)

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        return arrow.text(batch.column(0))


class Json(Streamed):
    """Objects in an array. Every row begins with what separates two rows, and the first chunk drops that."""

    content_type = "application/json"
    padding = b"    "
    row = rows.JsonRows(BETWEEN + "{", "}", named=True)

    _begun = False

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        text = super().chunk(batch)
        if text and not self._begun:
            self._begun = True
            return text[len(BETWEEN) :]
        return text

    def envelope(self) -> str:
        """The members before the rows, up to the object's name."""
        return f'{compact(self.rendering.envelope())[:-1]},"object":'

    def head(self) -> bytes:
        return f"{self.envelope()}[\n".encode()

    def tail(self) -> Iterator[bytes]:
        yield b"\n]}\n"

    def error(self, code: int, message: str) -> bytes:
        return f'\n],"error":{compact([code, message])}}}\n'.encode()


class JsonCompact(Json):
    row = rows.JsonRows(BETWEEN + "[", "]", named=False)

    def head(self) -> bytes:
        return f'{self.envelope()}{{"m":{compact(metadata(self.columns))},"d":[\n'.encode()

    def tail(self) -> Iterator[bytes]:
        yield b"\n]}}\n"

    def error(self, code: int, message: str) -> bytes:
        return f'\n]}},"e":{compact([code, message])}}}\n'.encode()


class JsonSimple(Streamed):
    content_type = "application/x-ndjson"
    padding = b"    "
    row = rows.OBJECT_LINE

    def error(self, code: int, message: str) -> bytes:
        return f"{compact(['error', code, message])}\n".encode()


class JsonSimpleCompact(Streamed):
    content_type = "application/x-ndjson"
    padding = b"    "
    row = rows.JsonRows('{"d":[', "]}\n", named=False)

    def head(self) -> bytes:
        return f"{compact({'m': metadata(self.columns)})}\n".encode()

    def error(self, code: int, message: str) -> bytes:
        return f"{compact({'e': [code, message]})}\n".encode()


class Csv(Streamed):
    content_type = "text/csv; charset=utf-8"
    padding = b"\n"
    row: ClassVar[rows.SeparatedRows] = rows.CSV

    def error(self, code: int, message: str) -> bytes:
        separator = self.row.separator
        return f"{self.rendering.table}.error{separator}{code}{separator}{rows.quoted(message)}\n".encode()


class Tsv(Csv):
    content_type = "text/tab-separated-values; charset=utf-8"
    row = rows.TSV


class Xml(Streamed):
    """A document of events:

        <?xml version="1.0" encoding="UTF-8"?>
        <events>
        <columns><column name="eventdate" type="timestamp"/><column name="user" type="str"/></columns>
        <event><field name="eventdate">2024-01-31 10:00:00.000</field><field name="user" null="true"/></event>
        </events>

    Characters that XML 1.0 forbids are written `_xHHHH_`, and a literal `_x` is `_x005F_x`. A failure is an
    `<error code="…">message</error>` before the end.
    """

    content_type = "application/xml"
    padding = b"\n"
    row = rows.XML

    def tail(self) -> Iterator[bytes]:
        yield b"</events>\n"

    def error(self, code: int, message: str) -> bytes:
        return f'<error code="{code}">{xml_text(message)}</error>\n</events>\n'.encode()


def metadata(columns: Sequence[Column]) -> dict[str, dict[str, str | int]]:
    """`m` of the compact formats: each name's type and place."""
    return {column.name: {"type": column.type.value, "index": index} for index, column in enumerate(columns)}


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
