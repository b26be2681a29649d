"""The response as a workbook of a spreadsheet, a zip archive that is written to a temporary file first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from svcctl.errors import ServiceError
from svcctl.io.temporary import temporary
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import cells
from svcctl.service.rendering.encoder import BLOCK, Rendering, Whole


class Xls(Whole):
    """A workbook of typed cells; when a sheet is full, events continue on the next, below the same header.

    Values that a spreadsheet cannot hold are changed: an int8 beyond 2^53 and a date before 1900 become text, a date
    outside the years 1 to 9999 its epoch milliseconds, a text longer than a cell is cut and ends in `…`.
    """

    content_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    rows_per_sheet = 1_048_576
    longest_text = 32_767

    def __init__(self, columns: Sequence[Column], rendering: Rendering) -> None:
        import xlsxwriter  # late: few services are asked for a workbook

        super().__init__(columns, rendering)
        self._open = ExitStack()
        directory = self._open.enter_context(temporary("xls"))
        self._path = directory / "events.xlsx"
        self._book = xlsxwriter.Workbook(self._path, {"constant_memory": True, "tmpdir": str(directory)})
        self._plain = self._book.add_format()
        self._bold = self._book.add_format({"bold": True})
        self._date = self._book.add_format({"num_format": cells.DATES[rendering.dates.format].sheet})
        self._add_sheet()

    def _add_sheet(self) -> None:
        count = len(self._book.worksheets())
        self._sheet = self._book.add_worksheet(f"events {count + 1}" if count else "events")
        self._sheet.freeze_panes(1, 0)
        for index, column in enumerate(self.columns):
            self._sheet.set_column(index, index, 23 if column.type is Type.TIMESTAMP else 14)
            self._sheet.write_string(0, index, column.name, self._bold)
        self._writers = [self._writer(column.type) for column in self.written]
        self._row = 1

    def value(self, value: str, type_: Type) -> str:
        if type_ is Type.TIMESTAMP:
            return cells.shifted(value, self.rendering.dates.zone)
        return super().value(value, type_)

    def chunk(self, batch: pa.RecordBatch) -> bytes:
        for values in zip(*map(_values, batch.columns), strict=True):
            if self._row == self.rows_per_sheet:
                self._add_sheet()
            for index, value in enumerate(values):
                if value is not None:
                    self._writers[index](self._row, index, value)
            if values.count(None) == len(values):  # a blank cell keeps the row
                self._sheet.write_blank(self._row, 0, None, self._plain)
            self._row += 1
        return b""

    def _writer(self, type_: Type) -> Any:
        match type_:
            case Type.TIMESTAMP:
                return self._write_date
            case Type.BOOL:
                return self._sheet.write_boolean
            case Type.INT8:
                return self._write_long
            case Type.INT4 | Type.FLOAT8:
                return self._sheet.write_number
            case _:
                return self._write_text

    def _write_long(self, row: int, column: int, value: int) -> None:
        if abs(value) <= 1 << 53:
            self._sheet.write_number(row, column, value)
        else:
            self._sheet.write_string(row, column, str(value))

    def _write_date(self, row: int, column: int, value: datetime | int) -> None:
        if isinstance(value, int):
            self._sheet.write_string(row, column, str(value))
        elif value.year >= 1900:
            self._sheet.write_datetime(row, column, value, self._date)
        else:
            between = "T" if self.rendering.dates.format == "iso" else " "
            self._sheet.write_string(row, column, value.isoformat(between, "milliseconds"))

    def _write_text(self, row: int, column: int, value: str) -> None:
        # Spreadsheets count UTF-16 units; counting exactly matters only near the limit.
        if len(value) > self.longest_text // 2 and len(value.encode("utf-16-le")) > 2 * self.longest_text:
            kept = value.encode("utf-16-le")[: 2 * (self.longest_text - 1)]
            value = kept.decode("utf-16-le", errors="ignore") + "…"
        self._sheet.write_string(row, column, value)

    def tail(self) -> Iterator[bytes]:
        from xlsxwriter.exceptions import FileCreateError

        try:
            self._book.close()
        except FileCreateError as error:
            raise ServiceError(f"the spreadsheet could not be written: {error}", code=500) from None
        with self._path.open("rb") as file:
            while block := file.read(BLOCK):
                yield block

    def close(self) -> None:
        # Without a tail the workbook was never closed, and packing it now would be wasted work.
        for sheet in self._book.worksheets():
            sheet.row_data_fh.close()
        self._open.close()


def _values(column: pa.Array) -> list[Any]:
    """The values of a column. Dates outside the years 1 to 9999, which Python does not have, are epoch milliseconds."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError):
        return [None if each is None else _moment(each) for each in column.cast(pa.int64()).to_pylist()]


def _moment(microseconds: int) -> datetime | int:
    try:
        return datetime(1970, 1, 1) + timedelta(microseconds=microseconds)
    except OverflowError:
        return microseconds // 1000
