"""What people type for dates in other tools, and the date to write instead; imported only for an error."""

from __future__ import annotations

import re
from collections.abc import Callable

from svcctl.dates.lengths import UNITS
from svcctl.dates.times import MAX_DATE_CHARS, TIME

Correction = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str | None], str]


def _row(pattern: str, spelled: str | Callable[[re.Match[str]], str | None], said: str = "write {}") -> Correction:
    return re.compile(pattern, re.ASCII), spelled, said


def _ordered(year: str, month: str, day: str, time: str) -> str:
    return f"{year}-{int(month):02}-{int(day):02}{time.replace(' ', 'T').upper()}"


_LOOSE = rf"(\d{{1,2}})([-./])(\d{{1,2}})\2(\d{{4}})((?:[t ]{TIME})?)"
_CLOCK = rf"(\d:\d\d(?::\d\d)?|{TIME})"
_AGO = r"(\d+)\s*(s|m|h|d|w)(?:(?:ec(?:ond)?|in(?:ute)?|(?:ou)?r|ay|eek)s?)?"
ORDERS = (
    _row(_LOOSE, lambda found: _ordered(found[4], found[3], found[1], found[5])),
    _row(_LOOSE, lambda found: _ordered(found[4], found[1], found[3], found[5]), "the day comes first; write {}"),
)
CORRECTIONS = (
    *ORDERS,
    _row("(?:last|past|previous) (s|m|h|d|w)(?:econd|inute|our|ay|eek)", r"1\1"),
    _row(rf"{_AGO}(?:\s+ago)?", r"\1\2"),
    _row(rf"now\s*-\s*{_AGO}", r"now-\1\2"),
    _row(r"today\s*-\s*(\d+)\s*d(?:ays?)?", r"\1ad"),
    _row(".+", lambda found: re.sub(r"\s+", "", found[0])),
    _row(r"(\d{1,6}\.\d{1,3})([wdh])", lambda found: f"{round(float(found[1]) * UNITS[found[2]] / 60)}m"),
    _row(r"(\S+)t(\d\d)", r"\1T\2:00"),
    _row(r"(\S+ \d\d?)", r"\1:00"),
    _row(r"(.+) (?:utc|gmt)", lambda found: f"{found[1].upper()}Z"),
    _row(rf"(today|yesterday|tomorrow),? (?:at )?{_CLOCK}", r"\1 \2"),
    _row(_CLOCK, r"today \1", "a time needs its day: write {}, or 2024-01-31T10:00, for example"),
)
"""What people type, the date to write instead, and the hint that says so; a row that makes no date is passed over."""


def corrected(text: str, rows: tuple[Correction, ...], is_date: Callable[[str], bool]) -> str | None:
    """What to write instead of a text that is not a date, by the first row whose date is one."""
    folded = text if re.search(r"\d\s*Ms?$", text) else text.casefold()  # an upper-case M may mean months
    folded = re.sub(r"^[-+](?=\s*[\d.]+\s*[a-z])|^(?:last|past) (?=\d)", "", folded)  # -5d is not a date
    for pattern, spelled, said in rows if len(text) <= MAX_DATE_CHARS else ():
        if match := pattern.fullmatch(folded):
            written = match.expand(spelled) if isinstance(spelled, str) else spelled(match)
            if written and is_date(written):
                return said.format(written)
    return None
