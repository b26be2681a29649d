"""Which rows of a table a mark means: rows have positions, and a mark is the position of the row that comes next.

The rows of a table are numbered from 0 as they are stored, and keep their position when others are removed.
`main.holes` has the runs of positions, by table, whose rows were removed; no two of them touch. A table that was
dropped leaves one behind, so the next table of its name begins after it (`main.begun`), and a mark of the old one is
known to be old.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from svcctl.service.engines import Mark, moved, replaced

TABLES = """
    CREATE TABLE IF NOT EXISTS main.holes (name VARCHAR NOT NULL, position BIGINT NOT NULL, rows BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS main.begun (name VARCHAR PRIMARY KEY, position BIGINT NOT NULL)
"""
_HOLES = "SELECT position, rows FROM main.holes WHERE name = ? ORDER BY position"
_BEGUN = "SELECT coalesce(max(position), 0) FROM main.begun WHERE name = ?"
Run = tuple[int, int]
"""The first of some rows that follow one another, and how many they are."""


def end(cursor: duckdb.DuckDBPyConnection, name: str, relation: str) -> int:
    """The position of the next row."""
    removed = "SELECT coalesce(sum(rows), 0) FROM main.holes WHERE name = ?"
    [(position,)] = cursor.execute(f"SELECT (SELECT count(*) FROM {relation}) + ({removed})", [name]).fetchall()
    return int(position)


def rows(cursor: duckdb.DuckDBPyConnection, name: str, marks: Iterable[Mark | None]) -> list[int | None]:
    """Marks as numbers of rows in the table as it is now. ServiceError for a mark of a table that is gone."""
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
    """Note that rows were removed, which are given by their numbers in the table as it was before."""
    holes = cursor.execute(_HOLES, [name]).fetchall()
    found = _joined(sorted([*holes, *_positions(holes, removed)]))
    cursor.execute("DELETE FROM main.holes WHERE name = ?", [name])
    cursor.executemany("INSERT INTO main.holes VALUES (?, ?, ?)", [[name, *hole] for hole in found])


def drop(cursor: duckdb.DuckDBPyConnection, name: str, relation: str) -> None:
    """Note that a table is about to be dropped: the next one of its name begins behind its end."""
    begin = end(cursor, name, relation) + 1
    cursor.execute("DELETE FROM main.holes WHERE name = ?", [name])
    cursor.execute("INSERT INTO main.holes VALUES (?, 0, ?)", [name, begin])
    cursor.execute("INSERT OR REPLACE INTO main.begun VALUES (?, ?)", [name, begin])


def _row(holes: Sequence[Run], position: int) -> int:
    """How many rows are left before a position."""
    return position - sum(min(count, position - first) for first, count in holes if first < position)


def _positions(holes: Sequence[Run], runs: Iterable[Run]) -> Iterable[Run]:
    """The runs of positions that runs of rows have, in order; a run with a hole inside is several."""
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
    """Holes in order, with those as one that touch."""
    found: list[Run] = []
    for first, count in holes:
        if found and sum(found[-1]) == first:
            found[-1] = found[-1][0], found[-1][1] + count
        else:
            found.append((first, count))
    return found
