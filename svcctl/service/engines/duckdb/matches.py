"""Reads several parts of a table together if few of their events match the conditions of a plan.

A part is a set of files of a table and a range of dates. Reading one part after another returns the first rows early
and needs little memory. But a file that belongs to several parts is read once for each part. So a plan with many parts
and few matches would be slow.

If parts are read together, their matches are stored in a temporary table, and a SELECT sorts this table. The table has
a maximum size. If there are more matches, fewer parts are read together. If even two parts have too many matches, the
next parts are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import duckdb

from svcctl.service.engines.duckdb.syntax import quote
from svcctl.service.engines.lake.snapshot import SnapshotPart, joined

PARTS_FACTOR = 4
"""A factor that changes how many parts are read together.

The number of parts is multiplied by this factor if the parts have few matches, and divided by this factor if they have
too many matches.
"""


@dataclass(frozen=True, slots=True)
class Statements:
    """The SELECTs of a plan over one part, which is a set of files and a range of dates.

    `sorted` returns a SELECT for the plan's rows in order. `unsorted` returns a SELECT for the same rows in any order.
    The columns of the unsorted SELECT are named c0, c1 and so on: first the columns of the plan, then the sort keys.
    `columns` has the names of the plan's columns. `keys` is the number of sort keys.
    """

    sorted: Callable[[SnapshotPart], str]
    unsorted: Callable[[SnapshotPart], str]
    columns: Sequence[str]
    keys: int

    def of_table(self, table: str) -> str:
        """Return a SELECT that sorts the rows of `table` as in the plan, and gives the columns their names in the plan.

        `table` must contain rows that SELECTs of `unsorted` have returned.
        """
        columns = (f"c{index} AS {quote(name)}" for index, name in enumerate(self.columns))
        keys = (f"c{len(self.columns) + index}" for index in range(self.keys))
        return f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(keys)}"


def selects(
    cursor: duckdb.DuckDBPyConnection, parts: Sequence[SnapshotPart], statements: Statements, sorted_rows: int
) -> Iterator[str]:
    """Yield SELECTs that together return the rows of a plan. About `sorted_rows` rows are sorted at once.

    The first SELECT returns no rows. It lets the caller check the plan before the search for matches, which may take
    long.
    """
    yield f"SELECT * FROM ({statements.sorted(parts[0])}) LIMIT 0"
    at, size = 0, 2
    dense = 0  # the end of the parts that had too many matches when they were read together
    alone = pause = 0
    while at < len(parts):
        if alone or at == len(parts) - 1:
            yield statements.sorted(parts[at])
            at, alone = at + 1, max(0, alone - 1)
            continue
        group = parts[at : at + size]
        part = joined(group)
        most = part.rows_of(sorted_rows // 2)  # half, because these rows are both in the table and in the sort
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
