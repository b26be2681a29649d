"""SQL that reads times, and the formats of times.

Without a given format, a time can have one of these forms: ISO 8601, dd.MM.yyyy HH:mm:ss, 31-Jan-2026 10:00:00, the
form of C's function `ctime` (Sat Jan 31 10:00:00 2026), or the form that Go prints. If the order of day and month is
given, the form 31/01/2026 10:00:00 is also read. Numbers are times only in a known unit, see `number_times.py`. A time
without a zone is in the given zone, or in UTC. An abbreviation such as CST has several meanings, so times with an
abbreviation are read only if a zone is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.language.types import Type
from svcctl.service.loading.kinds import NUMBER_TIME
from svcctl.service.loading.number_times import FIRST_MS, LAST_MS, NUMBER_UNITS, NumberTimes
from svcctl.service.loading.skips import REASONS, Skip, shown

LONGEST_VALUE = 500
"""The maximum length, in bytes, of a text that is read as a number or a time."""
ORDERS = ("%d/%m", "%m/%d")
"""The values of --time-format that only define the order of day and month in dates with slashes."""
SLASHED = r"^\d{1,2}/\d{1,2}/\d{4}"
LACKING: Mapping[Skip, str] = {
    Skip.SHORT_YEAR: r"^\d{1,2}[/.-](?:\d{1,2}|[A-Z][a-z]{2})[/.-]\d{2}(?:\D|$)",
    Skip.NO_YEAR: r"^(?:[A-Z][a-z]{2} )?(?:[A-Z][a-z]{2} +\d{1,2}|\d{1,2}[ /-][A-Z][a-z]{2}|\d\d[/-]\d\d)"
    r"[ T]\d\d:[\d:.,]*$",
    Skip.NO_DAY: r"^\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?$",
}
"""For each part that a time may lack, the pattern of texts without this part. These texts are not times."""
_CLOCKS = (" %H:%M:%S", " %H:%M:%S.%f", " %H:%M:%S,%f", " %H:%M", "")
_HALF_DAY_CLOCKS = (" %I:%M:%S %p", " %I:%M:%S.%f %p", " %I:%M %p")
_NAMED_MONTH = r"^(?:[A-Z][a-z]{2}, )?(\d{1,2})[/ -]([A-Z][a-z]{2})[/ -](\d{4})(?:[: ](\d\d?:\d\d))?"
_NAMED_MONTHS = [
    *("%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S.%f %Y"),
    *(f"%d %b %Y{clock or ' '}" for clock in _CLOCKS),
]
"""The formats of times that C's function `ctime` writes, and of times such as 31/Jan/2026:10:00:00.

Before a text is read in these formats, blanks replace the characters between day, month, year and time of day.
"""
_ZONE_AFTER = r" (UTC|GMT|[A-Z][A-Za-z]+/[\w/+-]+|(?:UTC|GMT)?[+-]\d\d:?\d\d)$"
"""Matches an offset or the name of a zone at the end of a time. Times in ISO 8601 are read without this pattern."""
_NAMED_OFFSET = r" ([+-]\d{4}) [A-Z+-]\w*(?: m=\S+)?$"
"""Matches the end of a time that Go prints.

The end consists of the offset, the name of the zone, and perhaps the monotonic clock (m=+0.01).
"""
_ACCESS = "%d/%b/%Y:%H:%M:%S %z"
_MILLISECONDS = r"(:\d\d:\d\d):(\d{3})"
_CLOCK_CODE, _DAY_CODE = r"%-?[HI]", r"%-?[djuwcx]"
"""Match the codes for an hour, and the codes for a day, in a format for strptime."""
_SECOND_CODE, _FRACTION_CODE = r"%-?S", r"%-?[fgn]"
"""Match the codes for seconds, and the codes for fractions of a second, in a format for strptime."""
_CODES = frozenset("aAbBcdfgGhHIjmMnpSuUVwWxXyYzZ%") | {"-d", "-j", "-m", "-y", "-H", "-I", "-M", "-S"}
"""The codes of DuckDB's strptime."""
_COMBINED_CODES = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "e": "%d"}
"""Further codes of C's strptime, and what they stand for."""
_ABBREVIATION = r"(:\d\d(?:[.,]\d+)?(?: \d{4}| [AaPp][Mm])?) [A-Z]{3,5}$"


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """The form in which times are written. `zone` is the zone of times without a zone.

    `format` is a format for strptime, or one of ORDERS. `numbers` is the rule for reading numbers. `newest` is the
    latest possible time, which decides the year of times without a year.
    """

    zone: str | None = None
    format: str | None = None
    numbers: NumberTimes | None = None
    newest: datetime | None = None

    @property
    def spec(self) -> str | None:
        """The format for strptime. None if no such format was given."""
        return None if self.format in ORDERS else self.format

    @property
    def clock_digits(self) -> int:
        """The number of digits of a time of day in the strptime format. 0 if the format has no time of day."""
        codes = re.findall(r"%-?[HIMS]", self.spec or "")
        return 2 * len(codes) if re.search(_CLOCK_CODE, self.spec or "") else 0

    @property
    def has_local_numbers(self) -> bool:
        """Whether numbers count local time."""
        return self.numbers is not None and self.numbers.unit.is_local

    @property
    def in_zone(self) -> str:
        """The zone for times without a zone."""
        return self.zone or "UTC"


def time_format(zone: str | None, format: str | None) -> TimeFormat:
    """Return the TimeFormat for a zone and a format. The format may also be one of ORDERS or of NUMBER_UNITS.

    Raises UsageError for any other text, for an unknown code, and for a format with a time of day but without a day.
    """
    if format is not None and format in NUMBER_UNITS:
        return TimeFormat(zone, numbers=NumberTimes(NUMBER_UNITS[format]))
    if format is not None and "%" not in format:
        raise UsageError(
            f"'{format}' is not a format of times",
            hint="write it as in '%d/%m/%Y %H:%M:%S' (help loading), or only %d/%m or %m/%d; or name the unit of "
            f"numbers: {', '.join(NUMBER_UNITS)}",
        )
    if format is None:
        return TimeFormat(zone)
    spec = re.sub("%(-?.?)", lambda code: _code(format, code[1]), format)
    if re.search(_CLOCK_CODE, spec) and not re.search(_DAY_CODE, spec):
        raise UsageError(f"the format of times '{format}' has no day", reason=REASONS[Skip.NO_DAY])
    return TimeFormat(zone, spec)


def _code(format: str, code: str) -> str:
    """Return a code of strptime, written with DuckDB's codes. Raises UsageError for an unknown code in the format."""
    if code in _COMBINED_CODES:
        return _COMBINED_CODES[code]
    if code not in _CODES:
        raise UsageError(
            f"the format of times '{format}' has the unknown code %{code}",
            reason="unknown-time-code",
            data={"code": code},
        )
    return f"%{code}"


def as_time(value: str, type_: Type, written: TimeFormat) -> str:
    """Return SQL that converts a value of a type to a time. Numbers become times only if `written` has their unit."""
    text = short(value) if type_ is Type.STR else value
    if written.spec is not None and type_ is not Type.TIMESTAMP:
        time = in_utc(_described(f"{text}::VARCHAR", written.spec, written.newest), written.in_zone)
        # a time must have a digit, because DuckDB accepts the word infinity for any format
        return f"TRY(CASE WHEN regexp_matches({text}::VARCHAR, '[0-9]') THEN {time} END)"
    number = "NULL::TIMESTAMP"
    if written.numbers is not None and type_ is not Type.TIMESTAMP:
        number = written.numbers.as_time(text, type_)
        number = in_utc(number, written.in_zone) if written.has_local_numbers else number
    if type_ not in (Type.TIMESTAMP, Type.STR):
        return f"TRY({number})"
    time = text if type_ is Type.TIMESTAMP else f"coalesce({text_as_time(text, written)}, {number})"
    time = f"TRY(CASE WHEN {time} BETWEEN epoch_ms({FIRST_MS}) AND epoch_ms({LAST_MS}) THEN {time} END)"
    return f"coalesce({_plain_time(value, written.in_zone)}, {time})" if type_ is Type.STR else time


def _plain_time(text: str, zone: str) -> str:
    """Return SQL that converts a usual text to a time, three times as fast as `text_as_time`.

    A usual text is in ISO 8601 without a blank after the time of day, or is a time of an access log. The year is from
    1000 to 2999. The SQL gives null for any other text.
    """
    clock = f"substr({text}, 12)"
    is_iso = (
        f"strlen({text}) < 40 AND {text} BETWEEN '1' AND '3' AND strpos({text}, '-') = 5 AND CASE strpos({text}, ' ') "
        f"WHEN 0 THEN true WHEN 11 THEN {clock} BETWEEN '0' AND ':' AND NOT contains({clock}, ' ') END"
    )
    dotted = f"replace({text}, ',', '.')"
    iso = in_utc(f"TRY_CAST({dotted} AS TIMESTAMPTZ)", zone)
    if zone == "UTC":  # a cast to TIMESTAMP is faster, but ignores offsets
        has_offset = " OR ".join(f"contains({clock}, '{sign}')" for sign in "+-")
        iso = (
            f"CASE WHEN ends_with({text}, 'Z') THEN TRY_CAST({text} AS TIMESTAMP) "
            f"WHEN {has_offset} THEN {iso} ELSE TRY_CAST({dotted} AS TIMESTAMP) END"
        )
    is_access = f"strlen({text}) < 40 AND substr({text}, 12, 1) = ':' AND substr({text}, 8, 1) BETWEEN '1' AND '2'"
    access = in_utc(f"try_strptime({text}, {literal(_ACCESS)})", zone)
    return f"CASE WHEN {is_iso} THEN {iso} WHEN {is_access} THEN {access} END"


def _described(text: str, spec: str, newest: datetime | None) -> str:
    """Return SQL that reads a text as a time in a format.

    If the format has no year, the time gets the latest year in which it is not after `newest`. A fraction may follow
    the seconds, even if the format has no fraction. A fraction is cut to microseconds. For %z, Z is an offset.
    """
    formats = [spec]
    if re.search(_SECOND_CODE, spec) and not re.search(_FRACTION_CODE, spec):
        formats += [re.sub(_SECOND_CODE, rf"\g<0>{mark}%f", spec) for mark in ".,"]
    if spec.endswith("%z"):  # DuckDB reads offsets, but not Z
        text = f"CASE WHEN ends_with({text}, 'Z') THEN left({text}, -1) || '+00' ELSE {text} END"
    microseconds = f"regexp_replace({text}, '([.,]\\d{{6}})\\d{{1,3}}', '\\1')"
    if newest is not None and not re.search(r"%-?[YyGcx]", spec):
        return yearless(microseconds, formats, newest)
    written = ", ".join(map(literal, formats))
    return f"coalesce(try_strptime({text}, [{written}]), try_strptime({microseconds}, [{written}]))"


def text_as_time(text: str, written: TimeFormat) -> str:
    """Return SQL that converts a text to a time. A number is not read as an epoch."""
    cut = "NULL" if written.zone is None else f"regexp_replace({text}, {literal(_ABBREVIATION)}, '\\1')"
    value = f"(CASE WHEN {is_abbreviated(text)} THEN {cut} ELSE {text} END)"
    offset = f"regexp_replace({value}, {literal(_NAMED_OFFSET)}, '\\1')"
    local = _local_time(f"regexp_replace({value}, {literal(_ZONE_AFTER)}, '')", written)
    zoned = f"strftime({local}, '%Y-%m-%d %H:%M:%S.%f') || regexp_extract({value}, {literal(_ZONE_AFTER)})"
    access = f"CASE WHEN {text}[12] = ':' THEN try_strptime({text}, {literal(_ACCESS)}) END"
    times = (
        access,
        _iso_time(value),
        _iso_time(f"({zoned})"),
        _iso_time(offset),
        _iso_time(f"regexp_replace({value}, {literal(_MILLISECONDS)}, '\\1.\\2')"),
    )
    return f"coalesce({', '.join(in_utc(time, written.in_zone) for time in times)})"


def _local_time(value: str, written: TimeFormat) -> str:
    """Return SQL that converts a text to a TIMESTAMP. The text has no zone, and is not in ISO 8601."""
    days = ["%d.%m.%Y", *([f"{written.format}/%Y"] if written.format else [])]
    named = f"regexp_replace({value}, {literal(_NAMED_MONTH)}, '\\1 \\2 \\3 \\4')"
    formats = [day + clock for day in days for clock in _CLOCKS]
    half_day = [day + clock for day in (*days, "%Y-%m-%d", "%Y/%m/%d", "%d %b %Y") for clock in _HALF_DAY_CLOCKS]
    return (
        f"CASE WHEN upper(right({value}, 1)) = 'M' THEN try_strptime({named}, {half_day}) "
        f"ELSE coalesce(try_strptime({value}, {formats}), try_strptime({named}, {_NAMED_MONTHS})) END"
    )


def _iso_time(value: str) -> str:
    """Return SQL that converts a text in ISO 8601 to a TIMESTAMPTZ.

    The SQL also accepts a comma before the fraction, and a blank before the offset.
    """
    # DuckDB drops the minutes of UTC+05:30, but not those of GMT+05:30.
    for written, read in ((",", "."), (" +", "+"), (" -", "-"), (" Z", "Z"), (" UTC+", " GMT+"), (" UTC-", " GMT-")):
        value = f"replace({value}, '{written}', '{read}')"
    return f"TRY_CAST({value} AS TIMESTAMPTZ)"


def may_be_time(text: str) -> str:
    """Return SQL for a fast test whether a text may be a time.

    The text must have two numbers, or a word that DuckDB reads as a time.
    """
    return f"regexp_matches({text}, '[0-9][^0-9]+[0-9]|(?i)infinity|epoch')"


def is_abbreviated(text: str) -> str:
    """Return SQL for a fast test whether a time ends with the abbreviation of a zone, other than UTC and GMT."""
    is_zone = f"right({text}, 3) NOT IN ('UTC', 'GMT') AND regexp_matches({text}, {literal(_ABBREVIATION)})"
    return f"CASE WHEN right({text}, 1) BETWEEN 'A' AND 'Y' THEN {is_zone} ELSE false END"


def has_no_zone(text: str) -> str:
    """Return SQL for a fast test whether a time has no zone.

    The SQL gives false for a number, because a number is an epoch and needs no zone.
    """
    digits = " AND ".join(f"substr({text}, {at}, 1) BETWEEN '0' AND '9'" for at in (3, 4, 5))
    offset = f"contains(substr({text}, 11), '+') OR contains(substr({text}, 11), '-')"
    end = f"(right({text}, 1) BETWEEN '0' AND '9' OR upper(right({text}, 2)) IN ('AM', 'PM'))"
    slow = f"{end} AND strlen({text}) > 7 AND NOT ({offset}) AND NOT ({digits})"
    return f"CASE WHEN ends_with({text}, 'Z') OR {text}[-5] = '+' THEN false ELSE ({slow}) END"


def unclear_zone(file: str, time: str) -> UsageError:
    """Return the error for a file with times that end with the abbreviation of a zone, such as `time`."""
    return UsageError(
        f"times of {file} such as {shown(time)} end with an abbreviation of a zone, which may mean several zones",
        reason="abbreviated-zone",
    )


def in_utc(time: str, zone: str) -> str:
    """Return SQL that converts a time to UTC, because engines store times in UTC.

    A time without a zone is in `zone`, which must be the zone of DuckDB's session.
    """
    return f"({time})::TIMESTAMP" if zone == "UTC" else f"(({time})::TIMESTAMPTZ AT TIME ZONE 'UTC')"


def yearless(text: str, formats: Sequence[str], newest: datetime) -> str:
    """Return SQL that converts a text without a year to a time.

    The time gets the latest year in which it is not after `newest`.
    """
    # The last 29 February may be up to eight years ago.
    this, *others = (
        f"try_strptime('{newest.year - back} ' || {text}, [{', '.join(literal(f'%Y {format}') for format in formats)}])"
        for back in range(9)
    )
    limit = f"TIMESTAMP '{newest:%Y-%m-%d %H:%M:%S}'"
    return f"coalesce(CASE WHEN {this} <= {limit} THEN {this} END, {', '.join(others)})"


def short(text: str) -> str:
    """Return SQL whose value is the text, or null if the text is too long for a number or a time.

    DuckDB would copy a long text several times before it rejects the text.
    """
    return f"CASE WHEN strlen({text}) <= {LONGEST_VALUE} THEN {text} END"


def written_as(times: TimeFormat) -> str:
    """Return a regular expression for times in the given format, or for numbers in the given unit.

    The result is empty if `times` has neither a format nor a unit.
    """
    if times.numbers is not None:
        return NUMBER_TIME
    spec = times.spec or ""
    written = {"z": r"(?:Z|[+-]\d\d(?::?\d\d)?)", "%": "%", **dict.fromkeys("AaBbp", "[A-Za-z]+")}
    blanks = re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(spec))
    if not re.search(_FRACTION_CODE, spec):
        written["S"] = r"\d+(?:[.,]\d+)?"
    begin = r"\b" if re.match("%-?[AaBbp]", spec) else ""
    return begin + re.sub(r"%(?:\\-)?([a-zA-Z%])", lambda hit: written.get(hit[1], r"\d+"), blanks)
