"""Times as SQL, and the formats in which they are written.

Without a given format, a time is ISO 8601, epoch seconds, milliseconds, microseconds or nanoseconds, dd.MM.yyyy
HH:mm:ss, 31-Jan-2026 10:00:00, that of C, or a time as Go prints it; with a given order also 31/01/2026 10:00:00. A
time without a zone is in the given zone, or in UTC. An abbreviation such as CST means several zones: such times are
read only in a given zone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from svcctl.dates.operators import MAX_EPOCH_SECONDS
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.language.types import Type

LONGEST_VALUE = 500
"""The most bytes of a text that is read as a number or a time."""
ORDERS = ("%d/%m", "%m/%d")
"""What --time-format may say instead of a whole format: which part comes first in dates with slashes."""
SLASHED = r"^\d{1,2}/\d{1,2}/\d{4}"
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999 in epoch milliseconds; a larger number is in microseconds or nanoseconds."""
_CLOCKS = (" %H:%M:%S", " %H:%M:%S.%f", " %H:%M", " %I:%M %p", " %I:%M:%S %p", "")
_NAMED_MONTH = r"^(?:[A-Z][a-z]{2}, )?(\d{1,2})[/ -]([A-Z][a-z]{2})[/ -](\d{4})(?:[: ](\d\d:\d\d))?"
_NAMED_MONTHS = [
    *("%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S.%f %Y"),
    *(
        f"%d %b %Y {clock}{offset}"
        for clock in ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M", "")
        for offset in ("", " %z")
    ),
]
"""Times of C, and such as 31/Jan/2026:10:00:00 +0100 with blanks between day, month, year and clock."""
_NAMED_OFFSET = r" ([+-]\d{4}) [A-Z+-]\w*(?: m=\S+)?$"
"""The end of a time as Go prints it: the offset, the name of the zone, and perhaps the monotonic clock (m=+0.01)."""
_ABBREVIATION = r"(:\d\d(?:[.,]\d+)?) [A-Z]{3,5}$"


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """What the user said of times: the zone of those without one, and their format for strptime or one of ORDERS."""

    zone: str | None = None
    format: str | None = None

    @property
    def spec(self) -> str | None:
        """The whole format, if it was given."""
        return None if self.format in ORDERS else self.format

    @property
    def in_zone(self) -> str:
        """The zone of times without a zone."""
        return self.zone or "UTC"


def time_format(zone: str | None, format: str | None) -> TimeFormat:
    """The format that was given. Raises UsageError for a text that is neither a format nor an order."""
    if format is not None and "%" not in format:
        raise UsageError(
            f"'{format}' is not a format of times",
            hint="write it as in '%d/%m/%Y %H:%M:%S' (help loading), or only %d/%m or %m/%d",
        )
    return TimeFormat(zone, format)


def as_time(value: str, type_: Type, written: TimeFormat) -> str:
    """A value of a type as a time."""
    text = short(value) if type_ is Type.STR else value
    if written.spec is not None and type_ is not Type.TIMESTAMP:
        time = in_utc(f"try_strptime({text}::VARCHAR, {literal(written.spec)})", written.in_zone)
        # a time must have a digit, because DuckDB reads the word infinity in any format
        return f"TRY(CASE WHEN regexp_matches({text}::VARCHAR, '[0-9]') THEN {time} END)"
    dotted = f"replace({text}, ',', '.')" if type_ is Type.STR else text
    number = f"TRY_CAST({dotted} AS DOUBLE)"
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
        time = f"coalesce({text_as_time(text, written)}, {time})"
    return f"TRY(CASE WHEN {time} BETWEEN epoch_ms({_FIRST_MS}) AND epoch_ms({_LAST_MS}) THEN {time} END)"


def text_as_time(text: str, written: TimeFormat) -> str:
    """Text as a time; numbers are not read as epochs."""
    cut = "NULL" if written.zone is None else f"regexp_replace({text}, {literal(_ABBREVIATION)}, '\\1')"
    value = f"(CASE WHEN {is_abbreviated(text)} THEN {cut} ELSE {text} END)"
    days = ["%d.%m.%Y", *([f"{written.format}/%Y"] if written.format else [])]
    offset = f"regexp_replace({value}, {literal(_NAMED_OFFSET)}, '\\1')"
    named = f"regexp_replace(replace({value}, ' GMT', ' +0000'), {literal(_NAMED_MONTH)}, '\\1 \\2 \\3 \\4')"
    times = (
        _iso_time(value),
        f"try_strptime({value}, {[day + clock for day in days for clock in _CLOCKS]})",
        f"try_strptime({named}, {_NAMED_MONTHS})",
        _iso_time(offset),
    )
    return f"coalesce({', '.join(in_utc(time, written.in_zone) for time in times)})"


def _iso_time(value: str) -> str:
    """Text in ISO 8601 as a TIMESTAMPTZ: a fraction may follow a comma, and an offset a blank."""
    for written, read in ((",", "."), (" +", "+"), (" -", "-"), (" Z", "Z")):
        value = f"replace({value}, '{written}', '{read}')"
    return f"TRY_CAST({value} AS TIMESTAMPTZ)"


def is_abbreviated(text: str) -> str:
    """The SQL condition that a time ends with the abbreviation of a zone, but for UTC and GMT. The test is cheap."""
    is_zone = f"right({text}, 3) NOT IN ('UTC', 'GMT') AND regexp_matches({text}, {literal(_ABBREVIATION)})"
    return f"CASE WHEN right({text}, 1) BETWEEN 'A' AND 'Y' THEN {is_zone} ELSE false END"


def has_no_zone(text: str) -> str:
    """The SQL condition that a time in a text names no zone, which is cheap to test; a number is an epoch."""
    digits = " AND ".join(f"{text}[{at}] BETWEEN '0' AND '9'" for at in (3, 4, 5))
    offset = f"contains({text}[11:], '+') OR contains({text}[11:], '-')"
    end = f"({text}[-1:] BETWEEN '0' AND '9' OR right({text}, 2) IN ('AM', 'PM'))"
    return f"({end} AND NOT ({offset}) AND NOT ({digits}))"


def in_utc(time: str, zone: str) -> str:
    """A time in UTC, as engines store it. A time without a zone is in `zone`, which is that of DuckDB's session."""
    return f"({time})::TIMESTAMP" if zone == "UTC" else f"(({time})::TIMESTAMPTZ AT TIME ZONE 'UTC')"


def short(text: str) -> str:
    """A text, or null if it is too long for a number or a time: DuckDB would copy it several times to find this out."""
    return f"CASE WHEN strlen({text}) <= {LONGEST_VALUE} THEN {text} END"


def written_as(spec: str) -> str:
    """A regular expression for times in a format of strptime."""
    written = {"z": r"(?:Z|[+-]\d\d(?::?\d\d)?)", "%": "%", **dict.fromkeys("AaBbp", "[A-Za-z]+")}
    blanks = re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(spec))
    return re.sub(r"%(?:\\-)?([a-zA-Z%])", lambda hit: written.get(hit[1], r"\d+"), blanks)
