"""DuckDB's SQL: quoting of names and strings, the types of stored columns, and the macros of this package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from svcctl.errors import UsageError
from svcctl.service.language.types import Type

ARRIVED = "(arrived)"
"""The name of the column that numbers rows while they are sorted, so that rows with the same date keep their order."""
LINE = "(line)"
"""The name of the column with line numbers, in formats that are read line by line."""
SHORT_ROW = "(short)"
"""The name of the column that is true for csv rows with too few cells."""
VALUES = "(values)"
"""The name of the column that holds the converted values of a row of text, as a struct."""
RESERVED = (LINE, SHORT_ROW, VALUES, "(when)", "(marks)", "(misfit)", "(skipped)", "(nulls)", "(text)")
"""The names of columns that are added to a file's own columns while the file is read."""

SQL_TYPES = {
    Type.TIMESTAMP: "TIMESTAMP",
    Type.STR: "VARCHAR",
    Type.INT4: "INTEGER",
    Type.INT8: "BIGINT",
    Type.FLOAT8: "DOUBLE",
    Type.BOOL: "BOOLEAN",
    Type.IP4: "UINTEGER",
}
"""The DuckDB type for each type of the query language.

No two types of the query language have the same DuckDB type. So the DuckDB type of a stored column shows the type in
the query language.
"""
TYPES = {sql: type_ for type_, sql in SQL_TYPES.items()}


def quote(name: str) -> str:
    """Return a name as an SQL identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL string in quotes."""
    return "'" + text.replace("'", "''") + "'"


def distinct(names: Iterable[str]) -> list[str]:
    """Make names of columns unique for DuckDB, which ignores the case of names. Return the new names.

    If DuckDB would confuse a name with an earlier name, a number is added to the later name. The new name is none of
    the given names. Raises UsageError for a name that contains the character NUL.
    """
    columns: list[str] = []
    originals = [original or f"column{at}" for at, original in enumerate(names)]
    keys = {original.casefold() for original in originals}
    taken = set(RESERVED)
    numbers: Counter[str] = Counter()
    for base in originals:
        if "\0" in base:
            raise UsageError("a name of a column has the character NUL: this is not a text file in UTF-8")
        name = base
        while name.casefold() in taken or (name != base and name.casefold() in keys):
            numbers[base.casefold()] += 1
            name = f"{base}_{numbers[base.casefold()]}"
        columns.append(name)
        taken.add(name.casefold())
    return columns


SEPARATED = "memory.main.separated"
"""The name of the macro that writes a text as a cell of csv or tsv.

The cell is in quotes if the text is empty, or if it contains the separator, a quote, CR or LF.
"""

DEFINED = f"""
    CREATE MACRO {SEPARATED}(value, separator) AS CASE
        WHEN contains(value, separator) OR contains(value, '"') OR contains(value, chr(10)) OR contains(value, chr(13))
            OR value = ''
        THEN concat('"', replace(value, '"', '""'), '"') ELSE value END;
"""
"""SQL that defines the macros in `memory`, the first database of each connection."""
