"""The values of columns as SQL: the types that texts can have, and the form in which a table stores values.

A column of text becomes int8, float8 or bool only if all values have the form of this type. An address stays text,
except if the table or the user gives the column the type ip4. Nested JSON stays JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from svcctl.service.engines.duckdb.syntax import SQL_TYPES, literal
from svcctl.service.language.types import Type
from svcctl.service.loading.times import TimeFormat, as_time, in_utc, short

_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_STORED = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"), Type.INT4),
    **dict.fromkeys(("UINTEGER", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"), Type.INT8),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Type.FLOAT8),
    **dict.fromkeys(("DATE", "TIMESTAMP"), Type.TIMESTAMP),
    "BOOLEAN": Type.BOOL,
}
WHOLE_TYPES = frozenset((Type.INT4, Type.INT8))
NUMBERS = WHOLE_TYPES | {Type.FLOAT8}
WAYS: tuple[tuple[Type, str], ...] = (
    # A failing cast is slow, so a text that does not begin like a number is not cast. 007 and a number of 25 digits
    # stay text.
    (
        Type.INT8,
        "CASE WHEN {0} BETWEEN '-' AND '9~' AND strlen({0}) < 30 THEN TRY_CAST({0} AS BIGINT)::VARCHAR = {0} END",
    ),
    (
        Type.FLOAT8,
        r"CASE WHEN regexp_full_match({0}, '-?(0|[1-9]\d{{0,14}})(\.\d+)?([eE][+-]?\d{{1,2}})?') THEN true "
        r"WHEN strlen({0}) < 30 AND regexp_full_match({0}, '-?[1-9](\.\d+)?[eE][+-]?\d{{3}}') "
        "THEN coalesce(isfinite(TRY_CAST({0} AS DOUBLE)) AND TRY_CAST({0} AS DOUBLE) <> 0, false) END",
    ),
    (Type.BOOL, "lower({0}) IN ('true', 'false')"),
)
"""The types that a column of text can get, each with an SQL test that all values of the column must pass."""
_NUMBER_TEXT = r"\d+(\.\d+)?([eE][+-]?([12]?\d)?\d)?"
ODD = f"({{0}} IS NOT NULL AND NOT regexp_full_match({{0}}, '-?{_NUMBER_TEXT}'))"
"""SQL for the condition that a text is not a number. Here, 007 counts as a number, although 007 is stored as text."""
NUMBER_LIKE = rf"regexp_full_match({{0}}, '-?({_NUMBER_TEXT}|\d[\d.]*,\d+|\d{{{{1,3}}}}(,\d{{{{3}}}})+(\.\d+)?)')"
"""SQL for the condition that a text has the form of a number, perhaps with commas."""
_THOUSANDS = r"-?(\d{1,15}|[1-9]\d{0,2}(,\d{3}){1,4})(\.\d+)?"
_DECIMALS = r"-?(0|[1-9]\d{0,14}|[1-9]\d{0,2}(\.\d{3}){1,4})(,\d+)?"


@dataclass(frozen=True, slots=True)
class LoadedField:
    """A column of the file as SQL. `raw` is the value in the file, and `stored` is the value that the table stores.

    `type` is the type of the stored value. If a value cannot be stored, `stored` is null, but `raw` is not null.
    """

    raw: str
    stored: str
    type: Type

    @property
    def is_bad(self) -> str:
        """An SQL condition that is true if the value in the file cannot be stored."""
        return f"({self.raw} IS NOT NULL AND {self.stored} IS NULL)"


def is_nested(sql_type: str) -> bool:
    """Return whether a DuckDB type is a list, a struct or a map."""
    return sql_type.endswith("]") or sql_type.startswith(("STRUCT", "MAP"))


def field(value: str, sql_type: str, zone: str) -> LoadedField:
    """Return the LoadedField for values of a DuckDB type.

    Values of a type that events cannot have are stored as text. Nested values are stored as JSON text.
    """
    if is_nested(sql_type):
        return LoadedField(value, f"to_json({value})::VARCHAR", Type.STR)
    type_ = _STORED.get(re.split(r"[(_ ]", sql_type)[0], Type.STR)
    if type_ is Type.TIMESTAMP and (zone != "UTC" or "ZONE" in sql_type):
        kind = "TIMESTAMPTZ" if "ZONE" in sql_type else "TIMESTAMP"
        return LoadedField(value, in_utc(f"TRY_CAST({value} AS {kind})", zone), type_)
    if sql_type == SQL_TYPES[type_]:
        return LoadedField(value, value, type_)
    return LoadedField(value, f"TRY_CAST({value} AS {SQL_TYPES[type_]})", type_)


def converted(column: LoadedField, type_: Type, times: TimeFormat, *, has_decimal_commas: bool) -> LoadedField:
    """Convert a column to a type that the user names.

    With `has_decimal_commas`, a comma in a number is the decimal mark. Otherwise, a comma separates thousands.
    """
    if type_ is column.type:
        return column
    if type_ is Type.TIMESTAMP:
        return LoadedField(column.raw, as_time(column.stored, column.type, times), type_)
    is_text = column.type is Type.STR
    value = short(column.stored) if is_text else column.stored
    if column.type is Type.INT8 or (column.type is Type.FLOAT8 and type_ is Type.STR):
        value = column.raw  # the raw value may not fit int8, and its text may have more digits than the stored number
    if is_text and type_ in NUMBERS:
        value = _without_commas(value, are_decimal=has_decimal_commas)
    cast = f"TRY_CAST({value} AS {SQL_TYPES[type_]})"
    if type_ is Type.FLOAT8 and is_text:
        cast = f"CASE WHEN isfinite({cast}) THEN {cast} END"
    elif type_ is Type.IP4 and is_text:
        octets = " + ".join(f"split_part({value}, '.', {i + 1})::BIGINT * {256 ** (3 - i)}" for i in range(4))
        cast = rf"CASE WHEN regexp_full_match({value}, '{_OCTET}(\.{_OCTET}){{3}}') THEN ({octets})::UINTEGER END"
    elif type_ in (Type.INT4, Type.INT8):
        # A cast alone would round 1.5.
        cast = f"CASE WHEN {cast} = TRY_CAST({value} AS DOUBLE) THEN {cast} END"
    return LoadedField(column.raw, cast, type_)


def _without_commas(text: str, *, are_decimal: bool) -> str:
    """Return SQL that removes the commas from a number in a text, and writes the decimal mark as a dot.

    With `are_decimal`, a comma is the decimal mark. Otherwise, commas separate thousands. The SQL gives null for a text
    with a comma in any other place, and for a text with an underscore, which DuckDB would leave out. Any other text is
    unchanged.
    """
    plain = f"replace({text}, ',', '')"
    if are_decimal:
        plain = f"replace(replace({text}, '.', ''), ',', '.')"
    is_number = f"regexp_full_match({text}, {literal(_DECIMALS if are_decimal else _THOUSANDS)})"
    number = f"CASE WHEN {is_number} THEN {plain} END"
    return f"CASE WHEN contains({text}, ',') THEN {number} WHEN NOT contains({text}, '_') THEN {text} END"


def merged(types: Sequence[Type]) -> Type:
    """Return the common type of a column that has these types in several files. Without types, the result is str."""
    distinct_types = set(types)
    if len(distinct_types) == 1:
        return types[0]
    if distinct_types and distinct_types <= {Type.INT4, Type.INT8}:
        return Type.INT8
    return Type.FLOAT8 if distinct_types and distinct_types <= NUMBERS else Type.STR


def nothing(value: str, texts: Sequence[str]) -> str:
    """Return SQL that turns a text into null if the text is one of `texts`. Any other text is unchanged."""
    return f"CASE WHEN {value} NOT IN ({', '.join(map(literal, texts))}) THEN {value} END" if texts else value
