"""Arrow's text as bytes: whatever the width of its offsets, and from the middle of a column."""

from __future__ import annotations

import pyarrow as pa
import pytest

from svcctl.service.rendering import arrow

TYPES = [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_rows_are_cut_where_they_end(type_: pa.DataType) -> None:
    rows = pa.array(["one", "", "zwei", "drei é"], type_)
    assert bytes(arrow.text(rows)) == "onezweidrei é".encode()
    assert arrow.row_bytes(rows) == [b"one", b"", b"zwei", "drei é".encode()]
    assert arrow.offsets(rows).tolist() == [0, 3, 3, 7, 14]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_a_slice_holds_its_own_rows_only(type_: pa.DataType) -> None:
    rows = pa.array(["one", "", "zwei", "drei"], type_).slice(1, 2)
    assert (bytes(arrow.text(rows)), arrow.row_bytes(rows)) == (b"zwei", [b"", b"zwei"])
    assert arrow.offsets(rows).tolist() == [3, 3, 7]


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_no_text_is_no_bytes(type_: pa.DataType, texts: list[str]) -> None:
    for rows in (pa.array(texts, type_), pa.array(["x", *texts], type_).slice(1)):
        assert (bytes(arrow.text(rows)), arrow.row_bytes(rows)) == (b"", [b""] * len(texts))


def test_text_is_a_view_of_the_column_and_no_copy() -> None:
    rows = pa.array(["one", "two"])
    assert pa.py_buffer(arrow.text(rows)).address == rows.buffers()[2].address
