"""Hints for dates in the notation of other tools. The table `CORRECTIONS` has a row for each notation.

A text such as `monday` or `1y` is relative to the current day in UTC. The hint for such a text contains the absolute
date.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from svcctl.dates.lengths import UNITS
from svcctl.dates.times import MAX_DATE_CHARS, TIME, two_digits

Spelled = str | tuple[str, ...] | None
"""The date or dates to suggest instead of an invalid text. None if there is no suggestion."""
Correction = tuple[re.Pattern[str], str | Callable[[re.Match[str], date], Spelled], str]
"""A row of the table of corrections: a pattern for a text, the dates to suggest, and the text of the hint.

The dates are given as a template, or as a function that computes the dates from the match. The hint contains a `{}` for
each date.
"""

_OFFSETS = {
    **dict.fromkeys(("z", "ut", "utc", "gmt"), "Z"),
    "est": "-05:00",
    "edt": "-04:00",
    "cst": "-06:00",
    "cdt": "-05:00",
    "mst": "-07:00",
    "mdt": "-06:00",
    "pst": "-08:00",
    "pdt": "-07:00",
    "cet": "+01:00",
    "cest": "+02:00",
}
"""UTC offsets by zone name: the zone names of RFC 2822, and the zone names of Central Europe."""
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = r"(mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*"
_COUNT = r"(\d{1,12})\s*(s|m|h|d|w)(?:(?:ec(?:ond)?|in(?:ute)?|(?:ou)?r|ay|(?:ee)?k)s?)?"
"""A pattern for a length of time in one unit, such as 5 minutes."""
_LENGTH_WORDS = rf"{_COUNT}(?:(?:,| and)?\s*{_COUNT})*"
_LATEST = "last|past|previous"
_PARTS = (
    ("month", rf"({'|'.join(_MONTHS)})[a-z]*"),
    ("year", r"(\d{4})"),
    ("day", r"(\d\d?)(?:st|nd|rd|th)?"),
    ("year", r"(\d\d)"),
    ("time", rf"({TIME})"),
    ("offset", rf"([-+]\d{{2}}:?\d{{2}}|{'|'.join(_OFFSETS)})"),
)
"""Patterns for the parts of a date with the name of the month, such as 31 Jan 2024.

The parts may be in any order, but a year with two digits must come after the day.
"""


def _ordered(year: str, month: str, day: str, time: str) -> str:
    return two_digits(f"{year}-{int(month):02}-{int(day):02}{time.upper().replace(' ', 'T')}")


def _length(text: str) -> str:
    """Convert a length of time in words to svcctl's notation: `2 days 3 hours` becomes 2d3h."""
    return "".join(f"{count}{unit}" for count, unit in re.findall(_COUNT, text.casefold()))


def _months_before(today: date, months: int) -> str:
    """Return the same day of an earlier month, such as 2024-01-31. `months` is the number of months before today.

    If the earlier month has fewer days, the result is the last day of that month. If the year is before 1970, the
    result is an empty text.
    """
    year, month = divmod(today.year * 12 + today.month - 1 - months, 12)
    day = min(today.day, monthrange(max(year, 1), month + 1)[1])
    return f"{date(year, month + 1, day)}" if year >= 1970 else ""


def _months_ago(match: re.Match[str], today: date) -> Spelled:
    return _months_before(today, int(match[1]) * (12 if match[2].casefold() == "y" else 1))


def _months_or_minutes(match: re.Match[str], today: date) -> Spelled:
    return f"{match[1] or ''}{match[2]}m", _months_before(today, int(match[2]))


def _monday(today: date) -> date:
    return today - timedelta(today.weekday())


def _last_week(match: re.Match[str], today: date) -> Spelled:
    return "1w", f"{_monday(today) - timedelta(7)}", f"{_monday(today)}"


def _weekday(match: re.Match[str], today: date) -> Spelled:
    """Return the most recent date on the named weekday. `monday` may mean today, but `last monday` never does."""
    last, name, time = match.groups()
    ago = (today.weekday() - _DAYS.index(name[:3].casefold())) % 7
    day = today - timedelta(ago or 7 * bool(last))
    return f"{day}" if time is None else two_digits(f"{day}T{time}")


def _week_of_year(match: re.Match[str], today: date) -> Spelled:
    try:
        return f"{date.fromisocalendar(int(match[1]), int(match[2]), int(match[3] or 1))}"
    except ValueError:
        return None


def _with_month_name(text: str, today: date) -> str | None:
    """Convert a date with the name of the month, such as `Jan 31 2024`, to ISO 8601. Returns None for any other text.

    Logs and the output of the program `date` have such dates.
    """
    text = re.sub(rf"(?<=\d)[-/](?={_MONTH}\b)|(?<=[a-z])[-/](?=\d)|,|\(.*\)", " ", text.casefold())
    parts = dict.fromkeys(("month", "year", "day", "time", "offset"), "")
    for word in text.split():
        if re.fullmatch(rf"{_DAY}|at|of|the", word):
            continue
        for part, pattern in _PARTS:
            if not parts[part] and (match := re.fullmatch(pattern, word)):
                parts[part] = match[1]
                break
        else:
            return None
    month, year, day, time, offset = parts.values()
    if not month or not (day or year) or (offset and not time):
        return None
    number = _MONTHS.index(month) + 1
    if not year:  # the most recent year in which the date is not after today
        year = f"{today.year - ((number, int(day)) > (today.month, today.day))}"
    if not day:
        return None if time else f"{year}-{number:02}"
    return _ordered(f"20{year}"[-4:], f"{number}", day, f" {time}{_OFFSETS.get(offset, offset)}" if time else "")


def _without_zone(match: re.Match[str], today: date) -> Spelled:
    text = match[1] + (match[2] or "")
    return _with_month_name(text, today) or text


def _last_year(match: re.Match[str], today: date) -> Spelled:
    return f"{today.year - 1}-01-01", f"{today.year}-01-01"


def _run_together(match: re.Match[str], today: date) -> Spelled:
    year, month, day, hour, minute, second = match.groups()
    return f"{year}-{month}-{day}T{hour}:{minute}" + (f":{second[-2:]}" if second else "")


def _in_minutes(match: re.Match[str], today: date) -> Spelled:
    return f"{round(float(match[1]) * UNITS[match[2].casefold()] / 60)}m"


def _of_24_hours(match: re.Match[str]) -> str:
    """Convert a time such as 2:30 PM to the 24-hour clock."""
    hour, minute, second, half = match.groups()
    return f"{int(hour) % 12 + 12 * (half in 'pP')}{minute or ':00'}{second or ''}"


def _cased(text: str) -> str:
    """Convert a date to lower case, but convert the T and the Z of ISO 8601 to upper case."""
    return re.sub(r"(?<=[\d ])[tz](?=\d|$)", lambda match: match[0].upper(), text.casefold())


def _row(pattern: str, spelled: str | Callable[[re.Match[str], date], Spelled], hint: str = "write {}") -> Correction:
    return re.compile(pattern, re.ASCII | re.IGNORECASE), spelled, hint


_SIMPLER = tuple(
    (re.compile(pattern, re.ASCII | re.IGNORECASE), simpler)
    for pattern, simpler in (
        (r"\s+", " "),
        (r"^(['\"])(.*)\1$", r"\2"),
        (r"^(?:since|from|on|in) (?:the )?", ""),
        (r"\b(0?\d|1[0-2])(:\d\d)?(:\d\d)? ?([ap])\.?m\b\.?", _of_24_hours),
        (r"\bnoon$", "12:00"),
        (r"\.(?=[a-z])|(?<=[a-z])\.", " "),  # 2.weeks.ago
        (rf"^{_DAY},? (?=\d{{4}}-)", ""),  # Fri 2024-02-02
        (r"(?<=\d:\d\d),(?=\d)", "."),
        (r"(?<=\d{4}):(?=\d)", " "),  # 31/Jan/2024:10:00:00
        (r"^@(?=\d+$)", ""),
        (r"^-?(?:now-)?(\d+)d[/@]d$", r"today-\1d"),
        (r"^[-+](?=\s*[\d.]+\s*[a-z])|^(?:last|past) (?=\d)", ""),
    )
)

_LOOSE = rf"(\d{{1,2}})([-./])(\d{{1,2}})\2(\d{{4}})((?:[t ]{TIME})?)"
ORDERS = (
    _row(_LOOSE, lambda match, today: _ordered(match[4], match[3], match[1], match[5])),
    _row(
        _LOOSE, lambda match, today: _ordered(match[4], match[1], match[3], match[5]), "the day comes first; write {}"
    ),
)
"""Corrections of dates that begin with the day or the month, such as 31.1.2024 and 1/31/2024."""
CORRECTIONS = (
    _row(r"(now-)?(\d{1,4})\s*(?-i:Ms?)", _months_or_minutes, "write {} for minutes, {} for months"),
    _row("(.+)", r"\1"),
    *ORDERS,
    _row(
        rf"(\d{{4}})([-./])(\d{{1,2}})\2(\d{{1,2}})((?:[t ]{TIME})?)",
        lambda match, today: _ordered(match[1], match[3], match[4], match[5]),
    ),
    _row(
        rf"(?:{_LATEST})[ -]?week", _last_week, "write {} for the last 7 days, --from {} --to {} for the calendar week"
    ),
    _row(r"this[ -]?week|now/w|@w1", lambda match, today: f"{_monday(today)}"),
    _row(r"(?:last|previous)[ -]?month|-?1mon@mon|now-1(?-i:M)/(?-i:M)", "last month"),
    _row("past month", "30d", "write {}, or --from 'last month' --to 'this month' for the calendar month"),
    _row(r"this[ -]?month|@mon|now/(?-i:M)", "this month"),
    _row(rf"(?:{_LATEST})[ -]?year", _last_year, "write --from {} --to {}"),
    _row(r"this[ -]?year|now/y|@y", lambda match, today: f"{today.year}-01-01"),
    _row(rf"(?:{_LATEST}) (s|m|h|d)(?:econd|inute|our|ay)", r"1\1"),
    _row(rf"(?:this )?(last )?{_DAY}(?:,? (?:at )?({TIME}))?", _weekday),
    _row(r"(?:now-)?(\d{1,4})\s*(m(?=o)|y)(?:on?|onths?|rs?|ears?)?(?: ago)?", _months_ago),
    _row(rf"(?:ago\()?({_LENGTH_WORDS})(?:\)| ago)?", lambda match, today: _length(match[1])),
    _row(rf"now(?:\(\))?\s*-\s*({_LENGTH_WORDS})", lambda match, today: f"now-{_length(match[1])}"),
    _row(
        r"-?p((?:\d+w)?(?:\d+d)?)(?:t((?:\d+h)?(?:\d+m)?(?:\d+s)?))?", lambda match, today: match[1] + (match[2] or "")
    ),
    _row(r"now\(\)", "now"),
    _row(r"midnight|now/d|@d", "today"),
    _row(r"today\s*-\s*1\s*d(?:ays?)?", "yesterday"),
    _row(r"today\s*-\s*(\d+)\s*d(?:ays?)?", r"\1ad", "write {} in --from"),
    _row(r"(?:now-)?(\d+)h[/@]h", r"now-\1h", "write {}; times are not rounded"),
    _row(r"(\d{4})-?w(\d\d)(?:-?([1-7]))?", _week_of_year),
    _row(r"(\d{4})(\d\d)(\d\d)[-_ t](\d\d):?(\d\d)((?::?\d\d)?)", _run_together),
    _row(".+", lambda match, today: match[0].replace(" ", "")),
    _row(r"(\d{1,6}\.\d{1,3})([wdh])", _in_minutes),
    _row(r"(\S+)t(\d\d)", r"\1T\2:00"),
    _row(rf"(\d\S+)[_-]({TIME})", lambda match, today: two_digits(f"{match[1]}T{match[2]}")),
    _row(r"(\S+ \d\d?)", r"\1:00"),
    _row(r".*[a-z]{3}.*", lambda match, today: _with_month_name(match[0], today)),
    _row(r"(\d.+) ([a-z]{1,4})", lambda match, today: f"{match[1]}{_OFFSETS.get(match[2].casefold(), ' ')}"),
    _row(r"(.+:\d\d) [a-z]+(?:/[a-z0-9_+-]+)*( \d{4})?", _without_zone, "write {}, and its zone with --time-zone"),
    _row(rf"(today|yesterday|tomorrow),? (?:at )?({TIME})", r"\1 \2"),
    _row(rf"({TIME}) (today|yesterday|tomorrow)", r"\2 \1"),
    _row(TIME, r"today \g<0>", "a time needs its day: write {}, or 2024-01-31T10:00, for example"),
)
"""All corrections of dates. The rows are tried in this order. A row is skipped if its suggestion is not a date."""


def correction(text: str, rows: Sequence[Correction], is_date: Callable[[str], bool], today: date) -> str | None:
    """Return the hint for a text that is not a date. The hint comes from the first row that turns the text into dates.

    Returns None if there is no such row, or if the text is too long for a date. The function `is_date` returns whether
    svcctl accepts a text as a date.
    """
    if len(text) > MAX_DATE_CHARS:
        return None
    for pattern, simpler in _SIMPLER:
        text = pattern.sub(simpler, text)
    for pattern, spelled, hint in rows:
        if match := pattern.fullmatch(text):
            dates = match.expand(spelled) if isinstance(spelled, str) else spelled(match, today)
            moments = [_cased(moment) for moment in ((dates,) if isinstance(dates, str) else dates or ())]
            if moments and all(map(is_date, moments)):
                return hint.format(*(f"'{moment}'" if " " in moment else moment for moment in moments))
    return None
