"""The response in MessagePack.

The number of rows comes before the rows, so all rows are first kept in a temporary file.
"""

from __future__ import annotations

import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from typing import IO

import msgpack
import pyarrow as pa
import pyarrow.compute as pc

from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import arrow
from svcctl.service.rendering.encoder import SPOOL_BLOCK_BYTES, Rendering, SpooledFormat


class MsgPack(SpooledFormat):
    """The response format msgpack. The response has the same structure as in the JSON format.

    A batch is encoded column by column. Arrow makes the bytes of all cells of a column at once. Then Arrow joins the
    bytes of each row: each cell follows the name of its column. Numbers have the fixed width of their type.
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
                return f"{value}::BIGINT"  # an address has only 32 bits
            case _:
                return super().value(value, type_)

    def chunk(self, batch: pa.RecordBatch) -> bytes:
        parts = [
            (pa.scalar(key, pa.binary()), _PACKED[column.type](cell))
            for key, column, cell in zip(self._keys, self.value_columns, batch.columns, strict=True)
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
        while block := self._spool.read(SPOOL_BLOCK_BYTES):
            yield block

    def close(self) -> None:
        self._spool.close()


def _packed_number(tag: bytes, code: str, cell: pa.Array) -> pa.Array:
    """Encode a column of numbers. Each number becomes `tag` and the big-endian number, and null becomes nil."""
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
    """Return the MessagePack header of a text of `length` bytes."""
    if length < 32:
        return bytes([0xA0 | length])
    for tag, width in ((0xD9, 1), (0xDA, 2)):
        if length < 1 << 8 * width:
            return bytes([tag]) + length.to_bytes(width)
    return b"\xdb" + length.to_bytes(4)


@cache
def _headers() -> pa.Array:
    """Return an array with the MessagePack header for each length of a text from 0 to 4095 bytes."""
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
