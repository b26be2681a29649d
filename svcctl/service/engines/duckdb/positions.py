"""The positions of rows. A mark is the position of the next row that will be stored.

The rows of a table get consecutive positions in the order in which they are stored. A row keeps its position when other
rows are removed. A run of positions without rows is called a hole. `main.holes` has the holes of each table.
`main.removed` has the latest date of all removed rows of each table.

Usually, the first position of a new table is the present time in nanoseconds. If an earlier table with the same name
had larger positions, the new table begins after these positions. So two tables with the same name never have the same
positions, even in different files. `main.begun` has the first position of each table. A mark below this position
belongs to an earlier table.

A file can lose its latest rows if its write-ahead log is removed, or if the file is replaced by an older copy. A mark
may then be after the last row. In this case, the function `skip` adds a hole after the last row, so that later rows do
not get the positions of the lost rows. `main.gaps` records these holes separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import duckdb

from svcctl.service.engines import Mark
from svcctl.service.engines.table_rules import lost, moved, replaced

TABLES = """
    CREATE TABLE IF NOT EXISTS main.holes (name VARCHAR NOT NULL, position BIGINT NOT NULL, rows BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS main.begun (name VARCHAR PRIMARY KEY, position BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS main.gaps (name VARCHAR NOT NULL, "end" BIGINT NOT NULL, next BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS main.removed AS
        SELECT DISTINCT name, TIMESTAMP '9999-12-31' AS newest FROM main.holes WHERE position > 0 OR rows > (
            SELECT coalesce(max(position), 0) FROM main.begun WHERE begun.name = holes.name
        )
"""
"""SQL that creates the tables of this module.

An older version of svcctl did not store the dates of removed rows. For a file of that version, the latest possible date
is stored.
"""
_HOLES = "SELECT position, rows FROM main.holes WHERE name = ? ORDER BY position"
_BEGUN = "SELECT coalesce(max(position), 0) FROM main.begun WHERE name = ?"
_REMOVED = "SELECT coalesce(sum(rows), 0) FROM main.holes WHERE name = ?"
_NEWEST = "SELECT newest FROM main.removed WHERE name = ?"
_GAP_QUERY = 'SELECT max("end") FROM main.gaps WHERE name = ? AND "end" < ? AND ? < next'
Run = tuple[int, int]
"""A run of consecutive rows: the position or row number of its first row, and its number of rows."""


def begin(cursor: duckdb.DuckDBPyConnection, name: str, nanoseconds: int) -> None:
    """Choose the first position of a new table. `nanoseconds` is the present time."""
    [(before,)] = cursor.execute(_BEGUN, [name]).fetchall()
    _begin(cursor, name, max(before, nanoseconds))


def end(cursor: duckdb.DuckDBPyConnection, name: str, relation: str | None) -> int:
    """Return the position of the next row that will be stored.

    `relation` is None if there is no table with this name.
    """
    count = "0" if relation is None else f"(SELECT count(*) FROM {relation})"
    [(position,)] = cursor.execute(f"SELECT {count} + ({_REMOVED})", [name]).fetchall()
    return int(position)


def missing(cursor: duckdb.DuckDBPyConnection, name: str, relation: str | None, position: int) -> int:
    """Return the number of positions before `position` that the file has lost. Return 0 if no position was lost.

    `position` is the end of the table at some earlier time.
    """
    [(gap,)] = cursor.execute(_GAP_QUERY, [name, position, position]).fetchall()
    return max(0, position - (end(cursor, name, relation) if gap is None else gap))


def skip(cursor: duckdb.DuckDBPyConnection, name: str, relation: str, nanoseconds: int) -> None:
    """Add a hole after the last row of a table that has lost rows.

    The hole ends at the position `nanoseconds`, which is the present time.
    """
    last = end(cursor, name, relation)
    following = max(last + 1, nanoseconds)
    holes = _joined([*cursor.execute(_HOLES, [name]).fetchall(), (last, following - last)])
    _keep_holes(cursor, name, holes)
    cursor.execute("INSERT INTO main.gaps VALUES (?, ?, ?)", [name, last, following])


def rows(cursor: duckdb.DuckDBPyConnection, name: str, relation: str, marks: Iterable[Mark | None]) -> list[int | None]:
    """Convert marks to row numbers. None is converted to None.

    Raises ServiceError if the table of a mark was dropped, replaced or moved, or if rows before a mark were lost.
    """
    marks = list(marks)
    if all(mark is None for mark in marks):
        return [None for _ in marks]
    holes = cursor.execute(_HOLES, [name]).fetchall()
    [(begun,)] = cursor.execute(_BEGUN, [name]).fetchall()
    if any(isinstance(mark, str) for mark in marks):
        raise moved(name)
    numbers = [None if mark is None else int(mark) for mark in marks]
    if any(number is not None and number < begun for number in numbers):
        raise replaced(name)
    if any(number is not None and missing(cursor, name, relation, number) for number in numbers):
        raise lost(name)
    return [None if number is None else _row(holes, number) for number in numbers]


def remove(cursor: duckdb.DuckDBPyConnection, name: str, removed: Sequence[Run], newest: datetime) -> None:
    """Record that rows were removed.

    `removed` has the row numbers of these rows before the removal, as runs. `newest` is the latest date of these rows.
    """
    holes = cursor.execute(_HOLES, [name]).fetchall()
    _keep_holes(cursor, name, _joined(sorted([*holes, *_positions(holes, removed)])))
    latest = max([newest, *(date for (date,) in cursor.execute(_NEWEST, [name]).fetchall())])
    cursor.execute("DELETE FROM main.removed WHERE name = ?", [name])
    cursor.execute("INSERT INTO main.removed VALUES (?, ?)", [name, latest])


def has_removed(
    cursor: duckdb.DuckDBPyConnection, name: str, since: int | None, until: int | None, start: datetime
) -> bool:
    """Whether rows that were stored between two marks may have been removed.

    Only rows dated at or after `start` count.
    """
    if not any(date >= start for (date,) in cursor.execute(_NEWEST, [name]).fetchall()):
        return False
    [(begun,)] = cursor.execute(_BEGUN, [name]).fetchall()
    first = begun if since is None else since
    holes = cursor.execute(_HOLES, [name]).fetchall()
    return any(max(first, hole) < hole + rows and (until is None or hole < until) for hole, rows in holes)


def drop(cursor: duckdb.DuckDBPyConnection, name: str, relation: str) -> None:
    """Record that a table is about to be dropped.

    The next table with this name begins after the last position of this table.
    """
    _begin(cursor, name, end(cursor, name, relation) + 1)


def _begin(cursor: duckdb.DuckDBPyConnection, name: str, position: int) -> None:
    _keep_holes(cursor, name, [(0, position)])
    for table in ("gaps", "removed"):
        cursor.execute(f"DELETE FROM main.{table} WHERE name = ?", [name])
    cursor.execute("INSERT OR REPLACE INTO main.begun VALUES (?, ?)", [name, position])


def _keep_holes(cursor: duckdb.DuckDBPyConnection, name: str, holes: Sequence[Run]) -> None:
    cursor.execute("DELETE FROM main.holes WHERE name = ?", [name])
    cursor.executemany("INSERT INTO main.holes VALUES (?, ?, ?)", [[name, *hole] for hole in holes])


def _row(holes: Sequence[Run], position: int) -> int:
    """Return the row number for a position. It is the number of remaining rows before the position."""
    return position - sum(min(count, position - first) for first, count in holes if first < position)


def _positions(holes: Sequence[Run], runs: Iterable[Run]) -> Iterable[Run]:
    """Convert runs of row numbers to runs of positions, in order. A run that contains a hole becomes several runs."""
    at = removed = 0
    for first, count in sorted(runs):
        row, end = first, first + count
        while row < end:
            while at < len(holes) and holes[at][0] - removed <= row:
                removed += holes[at][1]
                at += 1
            until = end if at == len(holes) else min(end, holes[at][0] - removed)
            yield row + removed, until - row
            row = until


def _joined(holes: Iterable[Run]) -> list[Run]:
    """Join adjacent holes. Both the given holes and the returned holes are in order."""
    joined: list[Run] = []
    for first, count in holes:
        if joined and sum(joined[-1]) == first:
            joined[-1] = joined[-1][0], joined[-1][1] + count
        else:
            joined.append((first, count))
    return joined
