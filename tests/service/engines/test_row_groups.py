"""Batches of about a row group, whatever the size of those that arrive."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from svcctl.service.engines.duckdb.row_groups import combined


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 7), st.integers(1, 200))
def test_the_rows_stay_in_order_and_no_batch_is_larger_than_a_group(sizes: list[int], rows: int, size: int) -> None:
    numbers = pa.record_batch({"n": pa.array(range(sum(sizes)), pa.int64())})
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    batches = [numbers.slice(start, length) for start, length in zip(starts, sizes, strict=True)]
    groups = list(combined(batches, rows, size))
    assert [number for group in groups for number in group["n"].to_pylist()] == list(range(sum(sizes)))
    assert all(0 < group.num_rows <= rows for group in groups)
    assert all(group.num_rows == rows or group.nbytes >= size for group in groups[:-1])
