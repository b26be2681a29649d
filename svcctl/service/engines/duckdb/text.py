"""DuckDB's SQL: quoting of names and strings, and the SQL types of stored values."""

from __future__ import annotations

from collections.abc import Iterable

from svcctl.errors import UsageError
from svcctl.service.language.types import Type

ARRIVED = "(arrived)"
"""The column that numbers rows while they are sorted, so that rows of one date keep their order."""
LINE = "(line)"
"""The column of line numbers, in formats that are read line by line."""
UNCLEAR = "(unclear)"
"""The column with the beginnings of dates such as 03/04/2024, in which the day or the month may come first."""

SQL_TYPES = {
    Type.TIMESTAMP: "TIMESTAMP",
    Type.STR: "VARCHAR",
    Type.INT4: "INTEGER",
    Type.INT8: "BIGINT",
    Type.FLOAT8: "DOUBLE",
    Type.BOOL: "BOOLEAN",
    Type.IP4: "UINTEGER",
}
"""DuckDB's type for each type of events. Each is used once, so the columns of a stored table tell their types."""
TYPES = {sql: type_ for type_, sql in SQL_TYPES.items()}


def quote(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def distinct(names: Iterable[str]) -> list[str]:
    """Names of columns, with a number added to each that DuckDB, which ignores case, would take for an earlier one."""
    found: list[str] = []
    taken = {LINE, UNCLEAR}
    for at, given in enumerate(names):
        if "\0" in given:
            raise UsageError("a name of a column has the character NUL: this is not a text file in UTF-8")
        name, again = given or f"column{at}", 0
        while name.casefold() in taken:
            again += 1
            name = f"{given or f'column{at}'}_{again}"
        found.append(name)
        taken.add(name.casefold())
    return found
