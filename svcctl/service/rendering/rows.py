"""Row formats: the text of a row in a response, a file or a message.

A row format makes the bytes before the first row, and a DuckDB expression for the text of a row. In this expression,
the columns of a plan have the names c0, c1 and so on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, timezone
from typing import Protocol

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import cells


@dataclass(frozen=True, slots=True)
class DateStyle:
    """The form of timestamps: a key of `cells.DATES`, and a time zone."""

    format: str = "default"
    zone: timezone = UTC

    def text(self, value: str) -> str:
        """Return SQL for a timestamp as text."""
        return cells.date_text(value, self.format, self.zone)


class RowFormat(Protocol):
    def head(self, columns: Sequence[Column]) -> bytes:
        """Return the bytes before the first row of these columns."""

    def text(self, columns: Sequence[Column], dates: DateStyle) -> str:
        """Return SQL for the text of a row."""


@dataclass(frozen=True, slots=True)
class SeparatedRows:
    """The row format of csv and tsv. Null becomes an empty cell, and an empty text becomes `""`.

    Cells are in quotes only if needed. In a row with only nulls, the first cell is `""`, so that readers do not take
    the row for padding (see `keep_alive`). A first cell that is equal to the attribute `reserved` is also in quotes,
    because without quotes such a cell marks an error.
    """

    separator: str
    line_end: str = "\n"
    reserved: str = ""

    def head(self, columns: Sequence[Column]) -> bytes:
        special = {self.separator, '"', "\r", "\n"}
        names = (column.name for column in columns)
        header = (quoted_cell(name) if special & set(name) or not name else name for name in names)
        return f"{self.separator.join(header)}{self.line_end}".encode()

    def text(self, columns: Sequence[Column], dates: DateStyle) -> str:
        return _concat(self._parts(columns, dates))

    def _parts(self, columns: Sequence[Column], dates: DateStyle) -> Iterator[str]:
        for index, column in enumerate(columns):
            value = f"c{index}"
            if index:
                yield literal(self.separator)
            is_date = column.type is Type.TIMESTAMP
            cell = dates.text(value) if is_date else cells.separated_cell(value, column.type, self.separator)
            if not index and self.reserved and column.type is Type.STR:
                in_quotes = literal(quoted_cell(self.reserved))
                cell = f"CASE WHEN {value} = {literal(self.reserved)} THEN {in_quotes} ELSE {cell} END"
            yield cell if index else _never_blank(cell, columns)
        yield literal(self.line_end)


def _never_blank(first: str, columns: Sequence[Column]) -> str:
    """Return SQL for the first cell of a row. In a row with only nulls, the first cell is `""`.

    The other columns are tested only if the first column is null.
    """
    if any(column.name == "eventdate" and column.type is Type.TIMESTAMP for column in columns):
        return first  # the column eventdate is never null
    others = [cells.is_null(f"c{index}", column.type) for index, column in enumerate(columns) if index]
    return f"""coalesce({first}, CASE WHEN {" AND ".join(others) or "true"} THEN '""' END)"""


def quoted_cell(text: str) -> str:
    """Put a cell of csv or tsv in quotes."""
    return '"' + text.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class JsonRows:
    """The row format of JSON. The values of a row are between the texts `opens` and `closes`.

    If `named` is True, each value follows the name of its column. Timestamps are epoch milliseconds.
    """

    opens: str
    closes: str
    named: bool

    def head(self, columns: Sequence[Column]) -> bytes:
        return b""

    def text(self, columns: Sequence[Column], dates: DateStyle) -> str:
        return _concat(self._parts(columns))

    def _parts(self, columns: Sequence[Column]) -> Iterator[str]:
        before = self.opens
        for index, column in enumerate(columns):
            name = f"{json.dumps(column.name, ensure_ascii=False)}:" if self.named else ""
            yield literal(before + name)
            yield cells.json(f"c{index}", column.type)
            before = ","
        yield literal(self.closes)


class XmlRows:
    """The row format of XML. A row is an element `<event>` on its own line.

    For each column, the row has an element `<field>` with the name of the column. A null value becomes the attribute
    `null="true"` of its field.
    """

    def head(self, columns: Sequence[Column]) -> bytes:
        described = (f'<column name="{cells.xml_text(column.name)}" type="{column.type}"/>' for column in columns)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<events>\n<columns>{"".join(described)}</columns>\n'.encode()

    def text(self, columns: Sequence[Column], dates: DateStyle) -> str:
        return _concat(self._parts(columns, dates))

    def _parts(self, columns: Sequence[Column], dates: DateStyle) -> Iterator[str]:
        yield "'<event>'"
        for index, column in enumerate(columns):
            value, field = f"c{index}", f'<field name="{cells.xml_text(column.name)}"'
            cell = dates.text(value) if column.type is Type.TIMESTAMP else cells.xml(value, column.type)
            filled, null = literal(f"{field}>"), literal(f'{field} null="true"/>')
            yield f"coalesce({filled} || {cell} || '</field>', {null})"
        yield "'</event>\n'"


def _concat(parts: Iterable[str]) -> str:
    return f"concat({', '.join(parts)})"


CSV, TSV = SeparatedRows(","), SeparatedRows("\t")
XML = XmlRows()
OBJECT = JsonRows("{", "}", named=True)
"""The row format of a JSON object. Messages use this format."""
ARRAY = JsonRows("[", "]", named=False)
"""The row format of a JSON array, which has the values in the order of the columns."""
OBJECT_LINE = JsonRows("{", "}\n", named=True)
