"""SQL that converts stored columns to a wider type. `table_rules.WIDER` lists the wider types of each type."""

from __future__ import annotations

from svcctl.service.engines.duckdb.syntax import SQL_TYPES, quote
from svcctl.service.language.types import Column, Type


def widened(column: Column, to: Type) -> str:
    """Return SQL that converts a column to another type.

    A value that becomes text gets the same form as with the function `str()` of the query language.
    """
    value = quote(column.name)
    match column.type, to:
        case Type.IP4, Type.STR:
            octets = ", ".join(f"({value}::BIGINT >> {shift}) & 255" for shift in (24, 16, 8, 0))
            return f"CASE WHEN {value} IS NOT NULL THEN concat_ws('.', {octets}) END"
        case Type.TIMESTAMP, Type.STR:
            return f"strftime({value}, '%Y-%m-%d %H:%M:%S.%g')"
    return f"{value}::{SQL_TYPES[to]}"


def is_lossy(column: Column, to: Type) -> str | None:
    """Return SQL that is true for a value of a column if a conversion to another type would change this value.

    Return None if the conversion cannot change a value.
    """
    value = quote(column.name)
    return f"{value}::DOUBLE::HUGEINT <> {value}" if (column.type, to) == (Type.INT8, Type.FLOAT8) else None
