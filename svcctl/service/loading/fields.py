"""Columns of a file as SQL: the value in the file, the stored value, and its type.

Columns of text become typed columns only if all values are whole numbers, numbers or true/false; addresses stay text
until a table asks for ip4. Nested JSON stays JSON text. Without a given format, a time is ISO 8601, epoch seconds,
milliseconds, microseconds or nanoseconds, dd/MM/yyyy HH:mm:ss as in the interface, dd.MM.yyyy HH:mm:ss, 31-Jan-2026
10:00:00, or a time as Go prints it. A time without a zone is in the given zone, or in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from svcctl.dates.operators import MAX_EPOCH_SECONDS
from svcctl.service.engines.duckdb.text import SQL_TYPES, literal
from svcctl.service.language.types import Type

UTC = "UTC"
"""The default zone of times without a zone."""
LONGEST_VALUE = 500
"""The most bytes of a text that is read as a number or a time."""
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999 in epoch milliseconds; a larger number is in microseconds or nanoseconds."""
_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_DAY_FIRST = tuple(
    f"{day}{clock}" for day in ("%d/%m/%Y", "%d.%m.%Y") for clock in (" %H:%M:%S", " %H:%M:%S.%f", " %H:%M", "")
)
_NAMED_MONTH = r"^(?:[A-Z][a-z]{2}, )?(\d{1,2})[/ -]([A-Z][a-z]{2})[/ -](\d{4})(?:[: ](\d\d:\d\d))?"
_NAMED_MONTHS = [
    f"%d %b %Y {clock}{offset}"
    for clock in ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M", "")
    for offset in ("", " %z")
]
"""Times such as 31/Jan/2026:10:00:00 +0100, with blanks between day, month, year and clock."""
_NAMED_OFFSET = r" ([+-]\d{4}) [A-Z+-]\w*(?: m=\S+)?$"
"""The end of a time as Go prints it: the offset, the name of the zone, and perhaps the monotonic clock (m=+0.01)."""
_OFFSETS: Mapping[str, str] = {
    "Z": "+00",
    "CEST": "+02",
    "EEST": "+03",
    "WEST": "+01",
    "EDT": "-04",
    "MDT": "-06",
    "PDT": "-07",
}
"""The offsets of zones that DuckDB does not know. It knows names of places, and UTC, CET, EST and others."""
UNREAD_ZONE = (
    r"(?:A[CEK]?[DS]T|ART|AWST|BRT|BST|CAT|C[DS]T|EAT|HKT|HST|ICT|IST|JST|KST|MSK|NZ[DS]T|PHT|PKT|SAST|SGT|WAT|WIB)\b"
)
"""Abbreviations of zones that are not read after the time of a log, because most of them mean several zones."""
_READ_ZONE = "(?:AST|ART|BST|CST|IST)"
"""Abbreviations that mean several zones; DuckDB reads each as one of them, which is not always the usual one."""
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}(?!\d)")
_SLASHED_TIME = re.compile(
    r"/\d{4}(?P<minutes> \d{1,2}:\d\d(?P<seconds>:\d\d(?:\.(?P<fraction>\d{1,6}))?)?)?(?P<half> [AP]M)?$"
)
DAY, MONTH, EITHER = "day", "month", "either"
"""Which part comes first in a date with slashes; EITHER if this is not clear."""
_STORED = {
    "BOOLEAN": Type.BOOL,
    "TINYINT": Type.INT4,
    "SMALLINT": Type.INT4,
    "INTEGER": Type.INT4,
    "UTINYINT": Type.INT4,
    "USMALLINT": Type.INT4,
    "UINTEGER": Type.INT8,
    "BIGINT": Type.INT8,
    "UBIGINT": Type.INT8,
    "HUGEINT": Type.INT8,
    "UHUGEINT": Type.INT8,
    "FLOAT": Type.FLOAT8,
    "DOUBLE": Type.FLOAT8,
    "DECIMAL": Type.FLOAT8,
    "DATE": Type.TIMESTAMP,
    "TIMESTAMP": Type.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the file as SQL: its value in the file, its stored value, and the type of the stored value.

    For a value that cannot be stored, `stored` is null and `raw` is not.
    """

    raw: str
    stored: str
    type: Type

    @property
    def is_bad(self) -> str:
        """The SQL condition that the value in the file cannot be stored."""
        return f"({self.raw} IS NOT NULL AND {self.stored} IS NULL)"


def field(value: str, sql_type: str, zone: str) -> Field:
    """A column by its type in DuckDB. Types that events do not have become text, and nested values JSON text."""
    if sql_type == "JSON":
        return Field(value, value := f"({value} ->> '$')", Type.STR)
    if sql_type.endswith("]") or sql_type.startswith(("STRUCT", "MAP")):
        return Field(value, f"to_json({value})::VARCHAR", Type.STR)
    type_ = _STORED.get(re.split(r"[(_ ]", sql_type)[0], Type.STR)
    if type_ is Type.TIMESTAMP and (zone != UTC or "ZONE" in sql_type):
        return Field(
            value, in_utc(f"TRY_CAST({value} AS {'TIMESTAMPTZ' if 'ZONE' in sql_type else 'TIMESTAMP'})", zone), type_
        )
    if sql_type == SQL_TYPES[type_]:
        return Field(value, value, type_)
    return Field(value, f"TRY_CAST({value} AS {SQL_TYPES[type_]})", type_)


def number_with_commas(value: str) -> Field:
    """A column of text whose numbers have decimal commas, and dots between thousands."""
    return Field(value, f"TRY_CAST(replace(replace({value}, '.', ''), ',', '.') AS DOUBLE)", Type.FLOAT8)


def number_with_thousands(value: str, *, whole: bool) -> Field:
    """A column of text whose numbers have commas between thousands."""
    type_ = Type.INT8 if whole else Type.FLOAT8
    return Field(value, f"TRY_CAST(replace({value}, ',', '') AS {SQL_TYPES[type_]})", type_)


def converted(given: Field, type_: Type, zone: str) -> Field:
    """The column converted to the type that a table has for it."""
    if type_ is given.type:
        return given
    if type_ is Type.TIMESTAMP:
        return Field(given.raw, as_time(given, zone), type_)
    value = short(given.stored) if given.type is Type.STR and type_ is not Type.STR else given.stored
    if given.type is Type.INT8 or (given.type is Type.FLOAT8 and type_ is Type.STR):
        value = given.raw  # the number may not fit int8, and its text may have another decimal sign
    cast = f"TRY_CAST({value} AS {SQL_TYPES[type_]})"
    if type_ is Type.IP4 and given.type is Type.STR:
        octets = " + ".join(f"split_part({value}, '.', {i + 1})::BIGINT * {256 ** (3 - i)}" for i in range(4))
        cast = rf"CASE WHEN regexp_full_match({value}, '{_OCTET}(\.{_OCTET}){{3}}') THEN ({octets})::UINTEGER END"
    elif type_ in (Type.INT4, Type.INT8):
        # A cast would round 1.5.
        cast = f"CASE WHEN {cast} = TRY_CAST({value} AS DOUBLE) THEN {cast} END"
    elif type_ is Type.FLOAT8 and given.type is Type.STR:
        cast = f"CASE WHEN isfinite({cast}) THEN {cast} END"
    return Field(given.raw, cast, type_)


def merged(types: list[Type]) -> Type:
    """The type of a column that has these types in several files; str if no file has a value in it."""
    found = set(types)
    if not found:
        return Type.STR
    if len(found) == 1:
        return types[0]
    if found <= {Type.INT4, Type.INT8}:
        return Type.INT8
    return Type.FLOAT8 if found <= {Type.INT4, Type.INT8, Type.FLOAT8} else Type.STR


def as_time(given: Field, zone: str, spec: str | None = None) -> str:
    """A column as a time, in a format of strptime if `spec` is given."""
    value = short(given.stored) if given.type is Type.STR else given.stored
    if spec is not None and given.type is not Type.TIMESTAMP:
        time = in_utc(f"try_strptime({value}::VARCHAR, {literal(spec)})", zone)
        # a time must have a digit, because DuckDB reads the word infinity in any format
        return f"TRY(CASE WHEN regexp_matches({value}::VARCHAR, '[0-9]') THEN {time} END)"
    number = f"TRY_CAST({value} AS DOUBLE)"
    us = f"""CASE
        WHEN abs({number}) <= {MAX_EPOCH_SECONDS} THEN TRY_CAST(round({number} * 1000000) AS BIGINT)
        WHEN abs({number}) <= {_LAST_MS} THEN TRY_CAST(round({number} * 1000) AS BIGINT)
        WHEN abs({number}) <= {_LAST_MS}999 THEN TRY_CAST(round({number}) AS BIGINT)
        ELSE TRY_CAST(round({number} / 1000) AS BIGINT)
    END"""
    epoch = f"make_timestamp(CASE WHEN {us} BETWEEN {_FIRST_MS}000 AND {_LAST_MS}999 THEN {us} END)"
    match given.type:
        case Type.TIMESTAMP:
            time = value
        case Type.STR:
            time = f"coalesce({text_as_time(given.stored, zone)}, {epoch})"
        case _:
            time = epoch
    return f"TRY(CASE WHEN {time} BETWEEN epoch_ms({_FIRST_MS}) AND epoch_ms({_LAST_MS}) THEN {time} END)"


def text_as_time(value: str, zone: str) -> str:
    """Text as a time; numbers are not read as epochs."""
    value = short(value)
    iso = in_utc(iso_time(value), zone)
    day_first = f"try_strptime({value}, [{', '.join(map(literal, _DAY_FIRST))}])"
    offset = f"regexp_replace({value}, {literal(_NAMED_OFFSET)}, '\\1')"
    others = (in_utc(one, zone) for one in (day_first, named_time(value), iso_time(offset)))
    return f"coalesce({iso}, {', '.join(others)}, {zoned_time(value, zone)})"


def named_time(value: str) -> str:
    """Text with the name of a month, as in 31-Jan-2026 10:00 or Sat, 31 Jan 2026 10:00:00 GMT, as a TIMESTAMPTZ."""
    value = f"replace({value}, ' GMT', ' +0000')"
    return f"try_strptime(regexp_replace({value}, {literal(_NAMED_MONTH)}, '\\1 \\2 \\3 \\4'), {_NAMED_MONTHS})"


def zoned_time(value: str, zone: str) -> str:
    """Text that ends with a zone of _OFFSETS, as a time."""
    for name, offset in _OFFSETS.items():
        value = f"replace({value}, ' {name}', '{offset}')"
    return in_utc(iso_time(value), zone)


def iso_time(value: str) -> str:
    """Text in ISO 8601 as a TIMESTAMPTZ: a fraction may follow a comma, and an offset a blank."""
    for written, read in ((",", "."), (" +", "+"), (" -", "-")):
        value = f"replace({value}, '{written}', '{read}')"
    return f"TRY_CAST({value} AS TIMESTAMPTZ)"


def slashed(given: Field) -> str:
    """The first 10 characters of a text that may begin with a date with slashes; null for others. The test is cheap."""
    if given.type is not Type.STR:
        return "NULL::VARCHAR"
    text = given.stored
    return (
        f"CASE WHEN strlen({text}) <= {LONGEST_VALUE} AND strpos({text}, '/') BETWEEN 2 AND 3 THEN left({text}, 10) END"
    )


def zone_read(given: Field) -> str:
    """The abbreviation of _READ_ZONE at the end of a text; null for others."""
    if given.type is not Type.STR:
        return "NULL::VARCHAR"
    text = given.stored
    ends = f"right({text}, 2) IN ('ST', 'RT') AND strlen({text}) <= {LONGEST_VALUE}"
    return f"CASE WHEN {ends} THEN nullif(regexp_extract({text}, '\\d ({_READ_ZONE})$', 1), '') END"


def first_of(begin: str | None) -> str | None:
    """DAY, MONTH or EITHER for the beginning of a date with slashes.

    None if it is not such a date, or if day and month are equal.
    """
    found = _SLASHED.match(begin or "")
    if found is None:
        return None
    first, second = map(int, found.groups())
    if max(first, second) > 12:
        return DAY if second <= 12 < first <= 31 else MONTH if first <= 12 < second <= 31 else None
    return EITHER if first != second else None


def slashed_pattern(date: str) -> str:
    """The rest of the pattern of a date with slashes, after day and month: `/yyyy HH:mm`; with seconds by default."""
    found = _SLASHED_TIME.search(date)
    if found is None or (found["half"] and not found["minutes"]):
        return "/yyyy HH:mm:ss"
    fraction = len(found["fraction"] or "")
    return "".join(
        (
            "/yyyy",
            "" if not found["minutes"] else " hh:mm" if found["half"] else " HH:mm",
            ":ss" if found["seconds"] else "",
            "" if not fraction else ".SSS" if fraction <= 3 else ".SSSSSS",
            " a" if found["half"] else "",
        )
    )


def in_utc(time: str, zone: str) -> str:
    """A time in UTC, as engines store it. A time without a zone is in `zone`, which is that of DuckDB's session."""
    return f"({time})::TIMESTAMP" if zone == UTC else f"(({time})::TIMESTAMPTZ AT TIME ZONE 'UTC')"


def short(text: str) -> str:
    """A text, or null if it is too long for a number or a time: DuckDB would copy it several times to find this out."""
    return f"CASE WHEN strlen({text}) <= {LONGEST_VALUE} THEN {text} END"


_LETTERS: Mapping[str, str] = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "M": "%-m",
    "dd": "%d",
    "d": "%-d",
    "EEEE": "%A",
    "EEE": "%a",
    "HH": "%H",
    "H": "%-H",
    "hh": "%I",
    "h": "%-I",
    "mm": "%M",
    "m": "%-M",
    "ss": "%S",
    "s": "%-S",
    "SSSSSS": "%f",
    "SSS": "%g",
    "a": "%p",
    "XXX": "%z",
    "XX": "%z",
    "X": "%z",
    "Z": "%z",
}
"""The letters of a pattern such as dd/MM/yyyy HH:mm:ss, and the same in the format of strptime."""


def strptime_format(pattern: str) -> str | None:
    """A pattern of letters as a format of strptime; a text with % is such a format already. None for other texts."""
    if "%" in pattern:
        return pattern
    spec = ""
    for quoted, letters, other in _pieces(pattern):
        if letters and letters not in _LETTERS:
            return None
        spec += quoted or _LETTERS.get(letters, "") or other
    return spec if "%" in spec else None


def written_as(spec: str) -> str:
    """A regular expression for times in a format of strptime."""
    found = re.finditer(r"(?P<directive>%-?[a-zA-Z%])|(?P<blanks>\s+)|(?P<other>.)", spec)
    return "".join(
        _WRITTEN.get(hit["directive"].replace("-", ""), r"\S+")
        if hit["directive"]
        else r"\s+"
        if hit["blanks"]
        else re.escape(hit["other"])
        for hit in found
    )


_WRITTEN: Mapping[str, str] = {
    "%Y": r"\d{4}",
    **dict.fromkeys(("%y", "%m", "%d", "%H", "%I", "%M", "%S"), r"\d{1,2}"),
    **dict.fromkeys(("%A", "%a", "%B", "%b", "%p"), r"[A-Za-z]+"),
    "%f": r"\d{1,6}",
    "%g": r"\d{1,3}",
    "%z": r"(?:Z|[+-]\d\d(?::?\d\d)?)",
    "%%": "%",
}


def _pieces(pattern: str) -> list[tuple[str, str, str]]:
    """Split a pattern into quoted texts, runs of one letter, and other characters."""
    found = re.finditer(r"'(?P<quoted>[^']*)'|(?P<letters>([A-Za-z])\3*)|(?P<other>.)", pattern)
    return [(hit["quoted"] or "", hit["letters"] or "", hit["other"] or "") for hit in found]
