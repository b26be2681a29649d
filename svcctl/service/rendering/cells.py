"""SQL expressions of DuckDB that turn a value into plain text, or into text for JSON, csv, tsv or XML.

The functions take the SQL of a value, and most functions also take the type of the value. If an expression returns
null, the cell is empty.

NaN and infinity become null in every format, because JSON cannot represent these numbers.
"""

from __future__ import annotations

from datetime import timedelta, timezone

from svcctl.service.engines.duckdb.syntax import SEPARATED, literal
from svcctl.service.language.types import Type

DATES = {
    "default": "%Y-%m-%d %H:%M:%S.%g",
    "sql": "%Y-%m-%d %H:%M:%S.%g",
    "iso": "%Y-%m-%dT%H:%M:%S.%g{offset}",
}
"""The strftime pattern of timestamps, by the value of `dateFormat` in a request.

`{offset}` is replaced by Z or an offset such as +0200.
"""

# CR is written as a character reference because XML readers change a literal CR. LF is written as a character reference
# because each row must stay on one line. XML 1.0 forbids some characters, even as character references.
_XML_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;", "\n": "&#10;"}
_XML_FORBIDDEN = [*(chr(code) for code in range(32) if chr(code) not in "\t\n\r"), "\ufffe", "\uffff"]


def local_time(value: str, zone: timezone) -> str:
    """Return SQL for a timestamp in the local time of a zone."""
    minutes = zone.utcoffset(None) // timedelta(minutes=1)
    return f"({value} + to_minutes({minutes}))" if minutes else value


def date_text(value: str, date_format: str, zone: timezone) -> str:
    minutes = zone.utcoffset(None) // timedelta(minutes=1)
    hours, rest = divmod(abs(minutes), 60)
    offset = f"{'-' if minutes < 0 else '+'}{hours:02}{rest:02}" if minutes else "Z"
    return f"strftime({local_time(value, zone)}, {literal(DATES[date_format].format(offset=offset))})"


def finite(value: str) -> str:
    return f"CASE WHEN isfinite({value}) THEN {value} END"


def is_null(value: str, type_: Type) -> str:
    """Return SQL that is true if a cell is null. This SQL runs faster than the SQL for the text of the cell."""
    return f"NOT coalesce(isfinite({value}), false)" if type_ is Type.FLOAT8 else f"{value} IS NULL"


def ip_text(value: str) -> str:
    octets = ", ".join(f"({value} >> {shift}) & 255" for shift in (24, 16, 8, 0))
    return f"CASE WHEN {value} IS NOT NULL THEN concat_ws('.', {octets}) END"


def plain(value: str, type_: Type) -> str:
    """Return SQL that turns a number, a boolean or an address into the text that all text formats use.

    The SQL leaves strings unchanged.
    """
    if type_ is Type.IP4:
        return ip_text(value)
    return f"({finite(value)})::VARCHAR" if type_ is Type.FLOAT8 else f"{value}::VARCHAR"


def json(value: str, type_: Type) -> str:
    """Return SQL for a value in JSON. Null becomes `null`, and timestamps become epoch milliseconds."""
    match type_:
        case Type.TIMESTAMP:
            cell = f"epoch_ms({value})::VARCHAR"
        case Type.STR:
            cell = f"to_json({value})::VARCHAR"
        case Type.IP4:
            cell = f"'\"' || {ip_text(value)} || '\"'"
        case _:
            cell = plain(value, type_)
    return f"coalesce({cell}, 'null')"


def separated_cell(value: str, type_: Type, separator: str) -> str:
    """Return SQL for a cell of csv or tsv.

    A text that contains the separator, a quote, CR or LF is put in quotes. An empty text is written as `""`.
    """
    if type_ is not Type.STR:
        return plain(value, type_)
    return f"{SEPARATED}({value}, {literal(separator)})"


def xml(value: str, type_: Type) -> str:
    """Return SQL for a value as XML text.

    A character that XML forbids becomes `_xHHHH_`, as in spreadsheets. A literal `_x` becomes `_x005F_x`.
    """
    if type_ is not Type.STR:
        return plain(value, type_)
    escaped = f"replace({value}, '_x', '_x005F_x')"
    for char, reference in _XML_REFERENCES.items():
        escaped = f"replace({escaped}, {literal(char)}, '{reference}')"
    allowed = escaped
    for char in _XML_FORBIDDEN:
        escaped = f"replace({escaped}, chr({ord(char)}), '_x{ord(char):04X}_')"
    has_reserved = " OR ".join(
        f"contains({value}, {part})" for part in ("'_x'", "'&'", "'<'", "'>'", "chr(65534)", "chr(65535)")
    )
    # Each replacement makes another copy of the text, and all copies are in memory at once. So replacements are made
    # only in texts that need them.
    forbidden = f"regexp_matches({value}, '[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x{{FFFE}}\\x{{FFFF}}]')"
    # JSON escapes every control character. So the cheapest test for control characters is whether the JSON string is
    # longer.
    special = f"{has_reserved} OR strlen(to_json({value})::VARCHAR) > strlen({value}) + 2"
    return f"CASE WHEN {special} THEN CASE WHEN {forbidden} THEN {escaped} ELSE {allowed} END ELSE {value} END"


def xml_text(text: str) -> str:
    """Escape a Python string for XML text or an XML attribute, as the SQL of `xml` does."""
    text = text.replace("_x", "_x005F_x")
    for char, reference in (_XML_REFERENCES | {'"': "&quot;", "\t": "&#9;"}).items():
        text = text.replace(char, reference)
    for char in _XML_FORBIDDEN:
        text = text.replace(char, f"_x{ord(char):04X}_")
    return text
