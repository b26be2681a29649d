"""Which rows of a table a mark means: rows have positions, and a mark is the position of the row that comes next.

The rows of a table are numbered from 0, and stay where they are until they are removed before the others (trimmed) or
with their table. `main.trimmed` holds, by table, the position of the first row that is left. A table that was dropped
leaves its last position behind: the next table of its name begins after that (`main.begun`), so that a mark of the old
one is known to be old.
"""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from svcctl.service.engines import Mark, moved, replaced

TABLES = """
    CREATE TABLE IF NOT EXISTS main.trimmed (name VARCHAR PRIMARY KEY, rows BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS main.begun (name VARCHAR PRIMARY KEY, position BIGINT NOT NULL)
"""
_TRIMMED = "SELECT coalesce(max(rows), 0) FROM main.trimmed WHERE name = ?"
_BEGUN = "SELECT coalesce(max(position), 0) FROM main.begun WHERE name = ?"


def end(cursor: duckdb.DuckDBPyConnection, name: str, relation: str) -> int:
    """The position of the next row."""
    [(position,)] = cursor.execute(f"SELECT (SELECT count(*) FROM {relation}) + ({_TRIMMED})", [name]).fetchall()
    return int(position)


def rows(cursor: duckdb.DuckDBPyConnection, name: str, marks: Iterable[Mark | None]) -> list[int | None]:
    """Marks as numbers of rows in the table as it is now. ServiceError for a mark of a table that is gone."""
    marks = list(marks)
    if all(mark is None for mark in marks):
        return [None for _ in marks]
    [(trimmed, begun)] = cursor.execute(f"SELECT ({_TRIMMED}), ({_BEGUN})", [name, name]).fetchall()
    if any(isinstance(mark, str) for mark in marks):
        raise moved(name)
    numbers = [None if mark is None else int(mark) for mark in marks]
    if any(number is not None and number < begun for number in numbers):
        raise replaced(name)
    return [None if number is None else max(0, number - trimmed) for number in numbers]


def trim(cursor: duckdb.DuckDBPyConnection, name: str, removed: int) -> None:
    """Note that so many rows were removed before the others."""
    [(trimmed,)] = cursor.execute(_TRIMMED, [name]).fetchall()
    cursor.execute("INSERT OR REPLACE INTO main.trimmed VALUES (?, ?)", [name, trimmed + removed])


def drop(cursor: duckdb.DuckDBPyConnection, name: str, relation: str) -> None:
    """Note that a table is about to be dropped: the next one of its name begins behind its end."""
    begin = end(cursor, name, relation) + 1
    for table in ("trimmed", "begun"):
        cursor.execute(f"INSERT OR REPLACE INTO main.{table} VALUES (?, ?)", [name, begin])
