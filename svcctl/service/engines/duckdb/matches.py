"""Reads several parts of a table together while few of their events match the conditions of a plan.

A part is a set of files of a table and a range of dates. If a plan reads one part after another, the first rows are
returned early, and little memory is needed. But files that overlap are read again for each part. So a plan with many
parts and few matches would be slow.

So adjacent parts are read together while these parts have few matches. The matches are stored in a temporary table, and
a SELECT sorts this table. The temporary table has a maximum size. If this size is reached, fewer parts are read
together. If even two parts have too many matches, the next parts are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import duckdb

from svcctl.service.engines.duckdb.syntax import quote
from svcctl.service.engines.lake.snapshot import SnapshotPart, joined

PARTS_FACTOR = 4
"""The factor for the number of parts that are read together.

If the parts have few matches, the number is multiplied by this factor. If the parts have too many matches, the number
is divided by this factor.
"""


@dataclass(frozen=True, slots=True)
class Statements:
    """The SELECTs of a plan over one part, which is a set of files and a range of dates.

    `sorted` returns the SELECT of the plan for a part. `unsorted` returns the same SELECT without an order.

    The columns of the SELECT of `unsorted` have the names c0, c1 and so on. The columns of the plan come first. The
    sort keys come next. `columns` has the plan's names of its columns, and `keys` is the number of sort keys.
    """

    sorted: Callable[[SnapshotPart], str]
    unsorted: Callable[[SnapshotPart], str]
    columns: Sequence[str]
    keys: int

    def of_table(self, table: str) -> str:
        """Return a SELECT that returns the plan's rows in order, from a table with the rows of `unsorted`."""
        columns = (f"c{index} AS {quote(name)}" for index, name in enumerate(self.columns))
        keys = (f"c{len(self.columns) + index}" for index in range(self.keys))
        return f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(keys)}"


def selects(
    cursor: duckdb.DuckDBPyConnection, parts: Sequence[SnapshotPart], statements: Statements, sorted_rows: int
) -> Iterator[str]:
    """Yield SELECTs that together return the rows of a plan. About `sorted_rows` rows are sorted at once.

    The first SELECT returns no rows and only checks the plan. After this check, the search for matches begins. The
    search may take long, and can be interrupted.
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
