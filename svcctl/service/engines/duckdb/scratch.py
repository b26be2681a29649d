"""A DuckDB in memory, for work that reads no stored events: it has no tables and cannot reach files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import duckdb

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "500MB",
    "temp_directory": "",
    "python_enable_replacements": "false",
}


@contextmanager
def scratch() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for one piece of work, on any thread."""
    with _database().cursor() as connection:
        connection.execute("SET enable_progress_bar=false")
        yield connection


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(":memory:", config=_SETTINGS)
    database.execute("SET GLOBAL TimeZone='UTC'; SET enable_external_access=false")
    database.execute("SET allowed_configs=['enable_progress_bar']; SET lock_configuration=true")
    return database
