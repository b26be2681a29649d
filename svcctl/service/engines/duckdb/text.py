"""DuckDB's SQL: how names and strings are quoted, and as which types values are stored."""

from __future__ import annotations

from svcctl.service.language.types import Type

SQL_TYPES = {
    Type.TIMESTAMP: "TIMESTAMP",
    Type.STR: "VARCHAR",
    Type.INT4: "INTEGER",
    Type.INT8: "BIGINT",
    Type.FLOAT8: "DOUBLE",
    Type.BOOL: "BOOLEAN",
    Type.IP4: "UINTEGER",
}
"""The mapping is one to one, so the columns of a stored table say what its events hold."""
TYPES = {sql: type_ for type_, sql in SQL_TYPES.items()}


def quote(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"
