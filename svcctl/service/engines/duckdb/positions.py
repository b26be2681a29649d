"""The positions of rows, by which marks work: a mark is the position that the next stored row will have.

The rows of a table get positions from 0 in the order they are stored, and keep them when other rows are removed.
`main.holes` has, for each table, the runs of positions whose rows were removed; runs that touch are joined. A dropped
table leaves a run behind, so that the next table of its name begins after it. `main.begun` has the position where it
begins: a mark below it is of an older table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from svcctl.service.engines import Mark
from svcctl.service.engines.table_rules import moved, replaced

TABLES = """
    CREATE TABLE IF NOT EXISTS main.holes (name VARCHAR NOT NULL, position BIGINT NOT NULL, rows BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS main.begun (name VARCHAR PRIMARY KEY, position BIGINT NOT NULL)
"""
_HOLES = "SELECT position, rows FROM main.holes WHERE name = ? ORDER BY position"
_BEGUN = "SELECT coalesce(max(position), 0) FROM main.begun WHERE name = ?"
Run = tuple[int, int]
"""The first position or row number of consecutive rows, and how many rows they are."""


def end(cursor: duckdb.DuckDBPyConnection, name: str, relation: str) -> int:
    """The position that the next stored row will have."""
    removed = "SELECT coalesce(sum(rows), 0) FROM main.holes WHERE name = ?"
    [(position,)] = cursor.execute(f"SELECT (SELECT count(*) FROM {relation}) + ({removed})", [name]).fetchall()
    return int(position)


def rows(cursor: duckdb.DuckDBPyConnection, name: str, marks: Iterable[Mark | None]) -> list[int | None]:
    """Marks as row numbers in the table as it is now. Raises ServiceError for a mark of a dropped or moved table."""
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
    return [None if number is None else _row(holes, number) for number in numbers]


def remove(cursor: duckdb.DuckDBPyConnection, name: str, removed: Sequence[Run]) -> None:
    """Record that rows were removed, given by their row numbers from before."""
    holes = cursor.execute(_HOLES, [name]).fetchall()
    found = _joined(sorted([*holes, *_positions(holes, removed)]))
    cursor.execute("DELETE FROM main.holes WHERE name = ?", [name])
    cursor.executemany("INSERT INTO main.holes VALUES (?, ?, ?)", [[name, *hole] for hole in found])


def drop(cursor: duckdb.DuckDBPyConnection, name: str, relation: str) -> None:
    """Record that a table is about to be dropped: the next table of its name begins after its last position."""
    begin = end(cursor, name, relation) + 1
    cursor.execute("DELETE FROM main.holes WHERE name = ?", [name])
    cursor.execute("INSERT INTO main.holes VALUES (?, 0, ?)", [name, begin])
    cursor.execute("INSERT OR REPLACE INTO main.begun VALUES (?, ?)", [name, begin])


def _row(holes: Sequence[Run], position: int) -> int:
    """The row number of a position: how many rows are left before it."""
    return position - sum(min(count, position - first) for first, count in holes if first < position)


def _positions(holes: Sequence[Run], runs: Iterable[Run]) -> Iterable[Run]:
    """Runs of row numbers as runs of positions, in order; a run with a hole inside becomes several."""
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
    """Join holes that touch; holes are given and returned in order."""
    found: list[Run] = []
    for first, count in holes:
        if found and sum(found[-1]) == first:
            found[-1] = found[-1][0], found[-1][1] + count
        else:
            found.append((first, count))
    return found
