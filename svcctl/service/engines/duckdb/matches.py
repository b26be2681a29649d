"""Reads parts of a table together while few of their events match the plan's conditions.

An answer in parts begins at once and needs little memory. But files that overlap are read again for each part, so a
plan with many parts and few matches would be slow. Therefore neighbouring parts are read together while they have few
matches. The matches go to a temporary table and are sorted there. The table has a maximum size. When it is reached,
fewer parts are read together. When even two parts have too many matches, the next parts are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import duckdb

from svcctl.service.engines.duckdb.syntax import quote
from svcctl.service.engines.lake.snapshot import SnapshotPart, joined

PARTS_FACTOR = 4
"""The factor by which the number of parts that are read together grows while the parts have few matches."""


@dataclass(frozen=True, slots=True)
class Statements:
    """The SELECTs of a plan over one part: `sorted` is the plan itself, and `unsorted` is the plan without its order.

    The columns of `unsorted` are named c0, c1 …. The columns of the plan come first; `columns` has their names in the
    plan. The sort keys follow; `keys` is their number.
    """

    sorted: Callable[[SnapshotPart], str]
    unsorted: Callable[[SnapshotPart], str]
    columns: Sequence[str]
    keys: int

    def of_table(self, table: str) -> str:
        """Return a SELECT of the plan's rows in order, from a table with the rows of `unsorted`."""
        columns = (f"c{index} AS {quote(name)}" for index, name in enumerate(self.columns))
        keys = (f"c{len(self.columns) + index}" for index in range(self.keys))
        return f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(keys)}"


def selects(
    cursor: duckdb.DuckDBPyConnection, parts: Sequence[SnapshotPart], statements: Statements, sorted_rows: int
) -> Iterator[str]:
    """Yield SELECTs that return the rows of a plan in turn. About `sorted_rows` rows are sorted at once.

    The first SELECT returns no rows: it checks the plan before the search, which may take long and be interrupted.
    """
    yield f"SELECT * FROM ({statements.sorted(parts[0])}) LIMIT 0"
    at, size = 0, 2
    dense = 0  # the end of the parts that had too many matches when read together
    alone = pause = 0
    while at < len(parts):
        if alone or at == len(parts) - 1:
            yield statements.sorted(parts[at])
            at, alone = at + 1, max(0, alone - 1)
            continue
        group = parts[at : at + size]
        part = joined(group)
        most = part.rows_of(sorted_rows // 2)  # both the table and the sort hold these rows
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE matches AS {statements.unsorted(part)} LIMIT {most + 1}")
        [(rows,)] = cursor.execute("SELECT count(*) FROM matches").fetchall()
        if rows <= most:
            yield statements.of_table("matches")
            at, pause = at + len(group), 0
            size *= PARTS_FACTOR if rows * PARTS_FACTOR <= most and at >= dense else 1
            continue
        dense = max(dense, at + len(group))
        if len(group) > 2:
            size = max(2, len(group) // PARTS_FACTOR)
        else:
            alone = pause = max(1, 2 * pause)
