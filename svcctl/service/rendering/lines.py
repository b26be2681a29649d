"""The formats that stream. DuckDB writes each row's line in SQL, in parallel; Python passes on the bytes it made."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from svcctl.service.engines.duckdb.text import literal
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import cells
from svcctl.service.rendering.base import Encoder


class Lines(Encoder):
    """A format whose row is a text, the parts of which are string literals and cells."""

    def expressions(self) -> list[str]:
        return [f"concat({', '.join(self.row())}) AS line"]

    @abstractmethod
    def row(self) -> Iterator[str]:
        """The parts of a row's text as SQL."""

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        # The lines of a batch lie side by side in the array's data buffer, from the first row's offset to the last's.
        lines = batch.column(0)
        _, offsets, data = lines.buffers()
        bounds = memoryview(offsets).cast("i")
        return memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]]


class Json(Lines):
    """The four JSON formats; what tells them apart is a handful of constants.

    `between` comes before every row but the first; it is part of the line in SQL, and the first chunk drops it.
    """

    content_type = "application/json"
    padding = b"    "
    between: ClassVar[str] = ",\n"
    opens: ClassVar[str] = "{"
    closes: ClassVar[str] = "}"
    named: ClassVar[bool] = True

    _begun = False

    def row(self) -> Iterator[str]:
        before = self.between + self.opens
        for index, column in enumerate(self.columns):
            name = f"{json.dumps(column.name, ensure_ascii=False)}:" if self.named else ""
            yield literal(before + name)
            yield cells.json(f"c{index}", column.type)
            before = ","
        yield literal(self.closes)

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        lines = super().chunk(batch)
        skip = 0 if self._begun else len(self.between)
        self._begun = True
        return lines[skip:]

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
    opens = "["
    closes = "]"
    named = False

    def head(self) -> bytes:
        return f'{self.envelope()}{{"m":{compact(metadata(self.columns))},"d":[\n'.encode()

    def tail(self) -> Iterator[bytes]:
        yield b"\n]}}\n"

    def error(self, code: int, message: str) -> bytes:
        return f'\n]}},"e":{compact([code, message])}}}\n'.encode()


class JsonSimple(Json):
    content_type = "application/x-ndjson"
    between = ""
    closes = "}\n"

    def head(self) -> bytes:
        return b""

    def tail(self) -> Iterator[bytes]:
        yield b""

    def error(self, code: int, message: str) -> bytes:
        return f"{compact(['error', code, message])}\n".encode()


class JsonSimpleCompact(JsonSimple):
    opens = '{"d":['
    closes = "]}\n"
    named = False

    def head(self) -> bytes:
        return f"{compact({'m': metadata(self.columns)})}\n".encode()

    def error(self, code: int, message: str) -> bytes:
        return f"{compact({'e': [code, message]})}\n".encode()


class Csv(Lines):
    """Comma-separated: quotes only where needed, null empty, an empty string `""`.

    A row of nulls begins with `""`: nothing but separators would pass for padding, and the row would be lost.
    """

    content_type = "text/csv; charset=utf-8"
    padding = b"\n"
    separator: ClassVar[str] = ","

    def row(self) -> Iterator[str]:
        for index, column in enumerate(self.columns):
            if index:
                yield literal(self.separator)
            cell = self._cell(f"c{index}", column.type)
            yield cell if index else self._never_blank(cell)
        yield "chr(10)"

    def _never_blank(self, first: str) -> str:
        """The first cell, `""` in a row of nulls; the other columns are looked at only where this one is null."""
        if any(column.name == "eventdate" and column.type is Type.TIMESTAMP for column in self.columns):
            return first  # an event has a date, and so has a period
        others = [cells.is_null(f"c{index}", column.type) for index, column in enumerate(self.columns) if index]
        return f"""coalesce({first}, CASE WHEN {" AND ".join(others) or "true"} THEN '""' END)"""

    def _cell(self, value: str, type_: Type) -> str:
        if type_ is Type.TIMESTAMP:
            return cells.date_text(value, self.rendering.date_format, self.rendering.zone)
        return cells.separated(value, type_, self.separator)

    def head(self) -> bytes:
        return self._line(column.name for column in self.columns)

    def error(self, code: int, message: str) -> bytes:
        return f"{self.rendering.table}.error{self.separator}{code}{self.separator}{_quoted(message)}\n".encode()

    def _line(self, texts: Iterator[str]) -> bytes:
        special = {self.separator, '"', "\r", "\n"}
        line = self.separator.join(_quoted(text) if special & set(text) or not text else text for text in texts)
        return f"{line}\n".encode()


class Tsv(Csv):
    content_type = "text/tab-separated-values; charset=utf-8"
    separator = "\t"


class Xml(Lines):
    """One event a line, every field by name, null marked as such:

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

    def row(self) -> Iterator[str]:
        yield "'<event>'"
        for index, column in enumerate(self.columns):
            value, field = f"c{index}", f'<field name="{cells.xml_text(column.name)}"'
            if column.type is Type.TIMESTAMP:
                cell = cells.date_text(value, self.rendering.date_format, self.rendering.zone)
            else:
                cell = cells.xml(value, column.type)
            filled, null = literal(f"{field}>"), literal(f'{field} null="true"/>')
            yield f"coalesce({filled} || {cell} || '</field>', {null})"
        yield "'</event>\n'"

    def head(self) -> bytes:
        columns = (f'<column name="{cells.xml_text(column.name)}" type="{column.type}"/>' for column in self.columns)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<events>\n<columns>{"".join(columns)}</columns>\n'.encode()

    def tail(self) -> Iterator[bytes]:
        yield b"</events>\n"

    def error(self, code: int, message: str) -> bytes:
        return f'<error code="{code}">{cells.xml_text(message)}</error>\n</events>\n'.encode()


def metadata(columns: Sequence[Column]) -> dict[str, dict[str, str | int]]:
    """`m` of the compact formats: each name's type and place."""
    return {column.name: {"type": column.type.value, "index": index} for index, column in enumerate(columns)}


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
