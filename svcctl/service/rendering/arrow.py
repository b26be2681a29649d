"""Arrow columns of text as bytes, without a Python object for each row.

Only this module reads the buffers of text columns. The texts of a column are adjacent in one buffer. The offsets of the
rows in the buffer have 32 bits (string, binary) or 64 bits (large_string, large_binary).
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa


def offsets(rows: pa.Array) -> memoryview:
    """Return the offset in the buffer at which each row begins, followed by the offset at which the last row ends."""
    large = pa.types.is_large_string(rows.type) or pa.types.is_large_binary(rows.type)
    _, starts, _ = rows.buffers()
    if starts is None:  # a column that never had rows has no buffer
        return memoryview(bytes(8)).cast("q")
    return memoryview(starts).cast("q" if large else "i")[rows.offset : rows.offset + len(rows) + 1]


def text(rows: pa.Array) -> memoryview:
    """Return a view of the bytes of all rows, one row after another. The view is valid while the column exists."""
    bounds = offsets(rows)
    return _data(rows)[bounds[0] : bounds[-1]]


def row_bytes(rows: pa.Array) -> list[bytes]:
    """Return the bytes of each row of a text column."""
    data = _data(rows)
    return [bytes(data[start:end]) for start, end in pairwise(offsets(rows).tolist())]


def _data(rows: pa.Array) -> memoryview:
    data = rows.buffers()[2]
    return memoryview(b"" if data is None else data).cast("B")
