"""DuckDB's SQL: how names and strings are quoted, and as which types values are stored."""

from __future__ import annotations

from collections.abc import Iterable

from svcctl.errors import UsageError
from svcctl.service.language.types import Type

ARRIVED = "(arrived)"
"""The column that numbers rows while they are sorted, so that those of one date stay as they came."""
LINE = "(line)"
"""The column of line numbers, beside the fields of formats that are read line by line."""
UNCLEAR = "(unclear)"
"""The column of how the dates with slashes begin, in which the day or the month may come first."""

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


def distinct(names: Iterable[str]) -> list[str]:
    """Names of columns, with a number where DuckDB, which ignores case, would have the same one again."""
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
