"""Forty zones and the moments at which their clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

ZONES = (
    *("Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Ceuta", "America/Anchorage", "America/Asuncion"),
    *(
        "America/Caracas",
        "America/Chicago",
        "America/Denver",
        "America/Halifax",
        "America/Havana",
        "America/Los_Angeles",
    ),
    *("America/Mexico_City", "America/Miquelon", "America/New_York", "America/Nuuk", "America/Santiago"),
    *("America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll", "Asia/Amman", "Asia/Beirut", "Asia/Gaza"),
    *("Asia/Jerusalem", "Asia/Pyongyang", "Asia/Tehran", "Asia/Ulaanbaatar", "Atlantic/Azores", "Australia/Adelaide"),
    *(
        "Australia/Lord_Howe",
        "Australia/Sydney",
        "Europe/Berlin",
        "Europe/Chisinau",
        "Europe/Dublin",
        "Europe/Istanbul",
    ),
    *("Europe/London", "Europe/Moscow", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham"),
)
"""Offsets of hours, halves and quarters, changes of 20 minutes to a day, at midnight and by day; some have no summer
time any more."""
_FIRST, _LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2011, 2031))
_WEEK = 7 * 86_400


def offset(moment: int, zone: str) -> timedelta:
    """The offset of a zone at an epoch second."""
    ahead = datetime.fromtimestamp(moment, ZoneInfo(zone)).utcoffset()
    assert ahead is not None
    return ahead


@cache
def clock_changes(zone: str) -> tuple[int, ...]:
    """The epoch seconds, from 2011 to 2030, at which the offset of a zone changes."""
    found = []
    for before, after in pairwise(range(_FIRST, _LAST, _WEEK)):
        if offset(before, zone) != offset(after, zone):
            low, high = before, after
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle, zone) == offset(before, zone) else (low, middle)
            found.append(high)
    return tuple(found)
