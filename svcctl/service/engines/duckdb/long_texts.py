"""Splits a table with long texts into slices of few rows, so that each slice fits in memory.

DuckDB processes vectors of 2048 rows, even if the rows are large. With rows of 250 KB, one vector has half a gigabyte.
DuckDB keeps statistics about the lengths of texts in each row group. A row group with long texts is read slice by
slice, which takes a few additional milliseconds for each slice. All other row groups are read without slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from svcctl.service.engines.duckdb.statement import VECTOR_ROWS
from svcctl.service.engines.duckdb.syntax import literal, quote

MAX_VECTOR_BYTES = 1 << 26
"""The maximum number of bytes of text in a vector.

If a vector could have more bytes of text, its row group is read in slices.
"""
SLICE_BYTES = 1 << 23
"""The usual size of a slice, in bytes of text."""
MAX_SLICE_BYTES = 1 << 28
"""The maximum size of a slice, in bytes of text. Every row is counted as if it were as long as the longest row.

A slice with a single row may be larger.
"""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of DuckDB.

    `rows` is the number of rows. The longest row has at most `widest` bytes of text. All rows together have `total`
    bytes of text.
    """

    rows: int
    widest: int
    total: int

    @property
    def is_large(self) -> bool:
        return min(self.total, VECTOR_ROWS * self.widest) > MAX_VECTOR_BYTES

    @property
    def step(self) -> int:
        """The number of rows in each slice of the group."""
        return (
            max(1, min(SLICE_BYTES * self.rows // self.total, MAX_SLICE_BYTES // self.widest))
            if self.is_large
            else self.rows
        )


def groups(cursor: duckdb.DuckDBPyConnection, relation: str, texts: Sequence[str]) -> list[RowGroup]:
    """Return the row groups of a table in order. Return an empty list if no row group can have long rows.

    `texts` are the names of the text columns.
    """
    if not texts:
        return []
    stats = ", ".join(f"stats({quote(name)})" for name in texts)
    statistics = [
        stats for row in cursor.execute(f"SELECT {stats} FROM {relation} WHERE rowid = 0").fetchall() for stats in row
    ]
    widest, total = (
        sum(item.get(key) or 0 for item in statistics) for key in ("max_string_length", "total_string_length")
    )
    if not RowGroup(0, widest, total).is_large:
        return []
    names = ", ".join(map(literal, texts))
    of_columns = (
        "SELECT row_group_id, column_name, sum(count) AS rows, max(stats.max_string_length::BIGINT) AS widest, "
        "sum(stats.total_string_length::BIGINT) AS total FROM pragma_storage_info(?) "
        f"WHERE segment_type = 'VARCHAR' AND column_name IN ({names}) GROUP BY ALL"
    )
    sums = "max(rows)::BIGINT, coalesce(sum(widest), 0)::BIGINT, coalesce(sum(total), 0)::BIGINT"
    stored = cursor.execute(
        f"SELECT {sums} FROM ({of_columns}) GROUP BY row_group_id ORDER BY row_group_id", [relation]
    )
    return [RowGroup(*row) for row in stored.fetchall()]


def ranges(groups: Sequence[RowGroup], first: int, last: int) -> Iterator[str]:
    """Yield conditions that together select the rows from `first` up to, but not including, `last`, in order.

    Large row groups are read in slices. Adjacent row groups of usual size are read together.
    """
    start, usual = 0, first
    for group in groups:
        end = start + group.rows
        begin, stop = max(first, start), min(last, end)
        if group.is_large and begin < stop:
            if usual < begin:
                yield _between(usual, begin)
            for at in range(begin, stop, group.step):
                # Without a limit, DuckDB would first test the other conditions on all rows of a vector.
                yield f"{_between(at, min(stop, at + group.step))} LIMIT {group.step}"
            usual = stop
        start = end
    if usual < last or first >= last:
        yield _between(usual, last)


def of_rows(groups: Sequence[RowGroup], rows: Sequence[int]) -> Iterator[str]:
    """Yield conditions that each select a slice of the given rows, in order. `rows` are row numbers."""
    step = min(group.step for group in groups if group.is_large)
    for at in range(0, max(1, len(rows)), step):
        numbers = ", ".join(map(str, rows[at : at + step])) or "NULL"
        yield f"rowid IN ({numbers}) LIMIT {step}"


def _between(start: int, end: int) -> str:
    return f"rowid >= {start} AND rowid < {end}"
