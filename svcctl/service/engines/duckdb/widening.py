"""Columns that get a wider type, as SQL over their stored values; `table_rules.WIDER` says which types are wider."""

from __future__ import annotations

from svcctl.service.engines.duckdb.syntax import SQL_TYPES, quote
from svcctl.service.language.types import Column, Type


def widened(column: Column, to: Type) -> str:
    """The values of a column in another type. Texts are those that str() of the language gives."""
    value = quote(column.name)
    match column.type, to:
        case Type.IP4, Type.STR:
            octets = ", ".join(f"({value}::BIGINT >> {shift}) & 255" for shift in (24, 16, 8, 0))
            return f"CASE WHEN {value} IS NOT NULL THEN concat_ws('.', {octets}) END"
        case Type.TIMESTAMP, Type.STR:
            return f"strftime({value}, '%Y-%m-%d %H:%M:%S.%g')"
    return f"{value}::{SQL_TYPES[to]}"


def is_lossy(column: Column, to: Type) -> str | None:
    """The condition that a value of a column would change in another type; None if no value can."""
    value = quote(column.name)
    return f"{value}::DOUBLE::HUGEINT <> {value}" if (column.type, to) == (Type.INT8, Type.FLOAT8) else None
