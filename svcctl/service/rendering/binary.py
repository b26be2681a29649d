"""The formats that need every row before they send the first byte: rows are written to a temporary file.

MessagePack writes the number of rows before the rows, a spreadsheet is a zip archive. Both keep memory bounded.
"""

from __future__ import annotations

import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import chain
from typing import IO, Any

import msgpack
import pyarrow as pa
import pyarrow.compute as pc

from svcctl.errors import ServiceError
from svcctl.io.temporary import temporary
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import arrow, cells
from svcctl.service.rendering.base import Encoder, Rendering

BLOCK = 1 << 18


class Spooled(Encoder):
    streams = False

    def expressions(self) -> list[str]:
        return [self.value(f"c{index}", column.type) for index, column in enumerate(self.written)]

    def value(self, value: str, type_: Type) -> str:
        """The SQL of a column as the encoder takes it."""
        match type_:
            case Type.FLOAT8:
                return cells.finite(value)
            case Type.IP4:
                return cells.ip_text(value)
            case _:
                return value

    def error(self, code: int, message: str) -> bytes:
        """Raise the failure: nothing has been sent yet, so the caller can still answer with it."""
        raise ServiceError(message, code=code, cid=self.rendering.cid)


class MsgPack(Spooled):
    """The structure of the JSON format in MessagePack.

    A batch is encoded by columns: Arrow makes every cell's bytes of a column at once, then joins keys and cells row by
    row. Numbers take the fixed width of their type.
    """

    content_type = "application/msgpack"

    def __init__(self, columns: Sequence[Column], rendering: Rendering) -> None:
        super().__init__(columns, rendering)
        self._rows = 0
        self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  close() closes it
        packer = msgpack.Packer()
        self._keys = [packer.pack(column.name) for column in self.columns]
        self._keys[0] = packer.pack_map_header(len(self.columns)) + self._keys[0]

    def value(self, value: str, type_: Type) -> str:
        match type_:
            case Type.TIMESTAMP:
                return f"epoch_ms({value})"
            case Type.INT8:
                return f"{value}::BIGINT"  # an address has fewer bits
            case _:
                return super().value(value, type_)

    def chunk(self, batch: pa.RecordBatch) -> bytes:
        parts = [
            (pa.scalar(key, pa.binary()), _PACKED[column.type](cell))
            for key, column, cell in zip(self._keys, self.written, batch.columns, strict=True)
        ]
        rows = pc.binary_join_element_wise(*chain.from_iterable(parts), b"")
        self._spool.write(arrow.text(rows))
        self._rows += len(rows)
        return b""

    def tail(self) -> Iterator[bytes]:
        packer = msgpack.Packer()
        members = self.rendering.envelope()
        yield b"".join(
            [
                packer.pack_map_header(len(members) + 1),
                *map(packer.pack, chain.from_iterable(members.items())),
                packer.pack("object"),
                packer.pack_array_header(self._rows),
            ]
        )
        self._spool.seek(0)
        while block := self._spool.read(BLOCK):
            yield block

    def close(self) -> None:
        self._spool.close()


def _packed_number(tag: bytes, code: str, cell: pa.Array) -> pa.Array:
    """A tag and the big-endian number; nil for null."""
    numbers = array(code)
    width = numbers.itemsize
    start = cell.offset * width
    numbers.frombytes(memoryview(cell.buffers()[1])[start : start + len(cell) * width])
    if sys.byteorder == "little":
        numbers.byteswap()
    fixed = pa.Array.from_buffers(pa.binary(width), len(cell), [None, pa.py_buffer(numbers)])
    packed = pc.binary_join_element_wise(pa.scalar(tag), fixed.cast(pa.binary()), b"")
    return pc.if_else(cell.is_null(), pa.scalar(b"\xc0"), packed)


def _packed_bool(cell: pa.Array) -> pa.Array:
    return pc.if_else(cell, pa.scalar(b"\xc3"), pa.scalar(b"\xc2")).fill_null(b"\xc0")


def _packed_text(cell: pa.Array) -> pa.Array:
    lengths = pc.binary_length(cell)
    if (pc.max(lengths).as_py() or 0) < len(_headers()):
        headers = _headers().take(lengths)
    else:
        headers = pa.array([None if n is None else _text_header(n) for n in lengths.to_pylist()], pa.binary())
    return pc.binary_join_element_wise(headers, cell.cast(pa.binary()), b"").fill_null(b"\xc0")


def _text_header(length: int) -> bytes:
    """The MessagePack header of a text of that many bytes."""
    if length < 32:
        return bytes([0xA0 | length])
    for tag, width in ((0xD9, 1), (0xDA, 2)):
        if length < 1 << 8 * width:
            return bytes([tag]) + length.to_bytes(width)
    return b"\xdb" + length.to_bytes(4)


@cache
def _headers() -> pa.Array:
    """The headers of texts by length, for all but long ones."""
    return pa.array([_text_header(length) for length in range(4096)], pa.binary())


_PACKED: dict[Type, Callable[[pa.Array], pa.Array]] = {
    Type.TIMESTAMP: partial(_packed_number, b"\xd3", "q"),
    Type.INT8: partial(_packed_number, b"\xd3", "q"),
    Type.INT4: partial(_packed_number, b"\xd2", "i"),
    Type.FLOAT8: partial(_packed_number, b"\xcb", "d"),
    Type.BOOL: _packed_bool,
    Type.STR: _packed_text,
    Type.IP4: _packed_text,
}


class Xls(Spooled):
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
