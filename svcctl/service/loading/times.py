"""Times as SQL, and the formats in which they are written.

Without a given format, a time is ISO 8601, epoch seconds, milliseconds, microseconds or nanoseconds, dd/MM/yyyy
HH:mm:ss as in the interface, dd.MM.yyyy HH:mm:ss, 31-Jan-2026 10:00:00, or a time as Go prints it. A time without a
zone is in the given zone, or in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from svcctl.dates.operators import MAX_EPOCH_SECONDS
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.text import literal
from svcctl.service.language.types import Type

UTC = "UTC"
"""The default zone of times without a zone."""
LONGEST_VALUE = 500
"""The most bytes of a text that is read as a number or a time."""
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999 in epoch milliseconds; a larger number is in microseconds or nanoseconds."""
_CLOCKS = (" %H:%M:%S", " %H:%M:%S.%f", " %H:%M", " %I:%M %p", " %I:%M:%S %p", "")
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
_SEVERAL_ZONES = "(?:AST|ART|BST|CST|IST)"
"""Abbreviations of zones that mean several, of which DuckDB reads each as one."""
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}(?!\d)")
DAY, MONTH, EITHER = "day", "month", "either"
"""Which part comes first in a date with slashes; EITHER if this is not clear."""
ORDERS: Mapping[str, str] = {"dd/MM": DAY, "MM/dd": MONTH}
"""What --time-format may say instead of a whole pattern: which part comes first in dates with slashes."""


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """What the user said of times: the zone of those without one, and their format for strptime, or the order of dates.

    `order` is DAY or MONTH. What is None was not said.
    """

    zone: str | None = None
    spec: str | None = None
    order: str | None = None

    @property
    def in_zone(self) -> str:
        """The zone of times without a zone."""
        return self.zone or UTC


def time_format(zone: str | None, pattern: str | None) -> TimeFormat:
    """The format for a pattern of letters. Raises UsageError for a text that is neither a pattern nor an order."""
    if pattern is None or pattern in ORDERS:
        return TimeFormat(zone, order=ORDERS.get(pattern or ""))
    spec = strptime_format(pattern)
    if spec is None:
        raise UsageError(
            f"'{pattern}' is not a format of times",
            hint="write it as in dd/MM/yyyy HH:mm:ss, with text in '…', or only dd/MM or MM/dd",
        )
    return TimeFormat(zone, spec)


def as_time(value: str, type_: Type, written: TimeFormat) -> str:
    """A value of a type as a time."""
    text = short(value) if type_ is Type.STR else value
    if written.spec is not None and type_ is not Type.TIMESTAMP:
        time = in_utc(f"try_strptime({text}::VARCHAR, {literal(written.spec)})", written.in_zone)
        # a time must have a digit, because DuckDB reads the word infinity in any format
        return f"TRY(CASE WHEN regexp_matches({text}::VARCHAR, '[0-9]') THEN {time} END)"
    number = f"TRY_CAST({text} AS DOUBLE)"
    us = f"""CASE
        WHEN abs({number}) <= {MAX_EPOCH_SECONDS} THEN TRY_CAST(round({number} * 1000000) AS BIGINT)
        WHEN abs({number}) <= {_LAST_MS} THEN TRY_CAST(round({number} * 1000) AS BIGINT)
        WHEN abs({number}) <= {_LAST_MS}999 THEN TRY_CAST(round({number}) AS BIGINT)
        ELSE TRY_CAST(round({number} / 1000) AS BIGINT)
    END"""
    time = f"make_timestamp(CASE WHEN {us} BETWEEN {_FIRST_MS}000 AND {_LAST_MS}999 THEN {us} END)"
    if type_ is Type.TIMESTAMP:
        time = text
    elif type_ is Type.STR:
        time = f"coalesce({text_as_time(value, written)}, {time})"
    return f"TRY(CASE WHEN {time} BETWEEN epoch_ms({_FIRST_MS}) AND epoch_ms({_LAST_MS}) THEN {time} END)"


def text_as_time(value: str, written: TimeFormat) -> str:
    """Text as a time; numbers are not read as epochs."""
    value, zone = short(value), written.in_zone
    slashed_day = "%m/%d/%Y" if written.order == MONTH else "%d/%m/%Y"
    numeric = [f"{day}{clock}" for day in (slashed_day, "%d.%m.%Y") for clock in _CLOCKS]
    iso = in_utc(iso_time(value), zone)
    day_first = f"try_strptime({value}, {numeric})"
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


def slashed(text: str) -> str:
    """The first 40 characters of a text that may begin with a date with slashes; null for others. The test is cheap."""
    return (
        f"CASE WHEN strlen({text}) <= {LONGEST_VALUE} AND strpos({text}, '/') BETWEEN 2 AND 3 THEN left({text}, 40) END"
    )


def unclear_zone(text: str) -> str:
    """The abbreviation of a zone with several meanings at the end of a text; null for others."""
    ends = f"right({text}, 2) IN ('ST', 'RT') AND strlen({text}) <= {LONGEST_VALUE}"
    return f"CASE WHEN {ends} THEN nullif(regexp_extract({text}, '\\d ({_SEVERAL_ZONES})$', 1), '') END"


def without_unclear_zone(text: str) -> str:
    """A text without the abbreviation of a zone with several meanings."""
    return f"regexp_replace({text}, '(\\d) {_SEVERAL_ZONES}$', '\\1')"


def has_no_zone(text: str) -> str:
    """The SQL condition that a time in a text names no zone, which is cheap to test; a number is an epoch."""
    digits = " AND ".join(f"{text}[{at}] BETWEEN '0' AND '9'" for at in (3, 4, 5))
    offset = f"contains({text}[11:], '+') OR contains({text}[11:], '-')"
    end = f"({text}[-1:] BETWEEN '0' AND '9' OR right({text}, 2) IN ('AM', 'PM'))"
    return f"({end} AND NOT ({offset}) AND NOT ({digits}))"


def comes_first(begin: str) -> str | None:
    """DAY, MONTH or EITHER for the beginning of a date with slashes.

    None if it is not such a date, or if day and month are equal.
    """
    found = _SLASHED.match(begin)
    if found is None:
        return None
    first, second = map(int, found.groups())
    if max(first, second) > 12:
        return DAY if second <= 12 < first <= 31 else MONTH if first <= 12 < second <= 31 else None
    return EITHER if first != second else None


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
