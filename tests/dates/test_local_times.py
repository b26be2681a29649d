"""Dates typed without an offset, at the clock changes of forty zones: which moment each is, and which are refused."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest

from svcctl.dates.range import start_of
from svcctl.dates.shorthand import in_zone, parse_moment
from svcctl.dates.zones import named_zone
from svcctl.errors import UsageError

# What the errors say, each once.
SAID = {
    "twice": "date '{text}' occurs twice in {zone}, whose clocks change then",
    "never": "date '{text}' does not exist in {zone}, whose clocks change then",
    "either": "write 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00",
}

ZONES = (
    *("Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia", "Africa/Windhoek", "America/Asuncion", "America/Bogota"),
    *(
        "America/Caracas",
        "America/Havana",
        "America/Los_Angeles",
        "America/New_York",
        "America/Nuuk",
        "America/Santiago",
    ),
    *("America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll", "Asia/Amman", "Asia/Beirut", "Asia/Gaza"),
    *("Asia/Hong_Kong", "Asia/Jerusalem", "Asia/Kabul", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Pyongyang"),
    *("Asia/Tehran", "Asia/Tokyo", "Atlantic/Azores", "Australia/Adelaide", "Australia/Lord_Howe", "Europe/Berlin"),
    *("Europe/Dublin", "Europe/Istanbul", "Europe/Lisbon", "Europe/London", "Europe/Moscow", "Pacific/Apia"),
    *("Pacific/Auckland", "Pacific/Chatham", "Pacific/Kwajalein", "Pacific/Tongatapu"),
)
YEARS = (1970, 2038)
SPAN = 2 * 3600
"""Seconds on either side of a clock change whose local times are tried."""


def offset(moment: int, zone: ZoneInfo) -> timedelta:
    return datetime.fromtimestamp(moment, zone).utcoffset() or timedelta()


@cache
def changes(name: str) -> list[int]:
    """The seconds at which the offset of a zone changes."""
    zone = ZoneInfo(name)
    start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in YEARS)
    found = []
    for before in range(start, end, 86_400):
        same, other = before, before + 86_400
        if offset(same, zone) == offset(other, zone):
            continue
        while other - same > 1:
            middle = (same + other) // 2
            same, other = (middle, other) if offset(middle, zone) == offset(before, zone) else (same, middle)
        found.append(other)
    return found


def moments_of(shown: datetime, zone: ZoneInfo, offsets: set[timedelta]) -> list[int]:
    """All moments at which the clocks show a time, by looking at the clocks at each moment that it could be."""
    at = (int((shown - each).replace(tzinfo=UTC).timestamp()) for each in offsets)
    return sorted(moment for moment in at if datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == shown)


def first_moment(day: date, change: int, zone: ZoneInfo, offsets: set[timedelta]) -> int | None:
    """The first moment of a day near a clock change: its midnight, or the change, if that leaves the midnight out."""
    moments = [*moments_of(datetime(day.year, day.month, day.day), zone, offsets), change]
    return min((each for each in moments if datetime.fromtimestamp(each, zone).date() == day), default=None)


def spellings(text: str, zone: str) -> tuple[str, list[int | float | str]]:
    """Which way a date is refused, and the moments of the dates in the hint."""
    with pytest.raises(UsageError) as caught:
        in_zone(parse_moment(text), named_zone(zone))
    message, hint = caught.value.message, caught.value.hint or ""
    ((kind, _),) = [row for row in SAID.items() if row[1].format(text=text, zone=zone) == message]
    return kind, [in_zone(parse_moment(each), None) for each in re.findall(r"\d\S+", hint)]


@pytest.mark.parametrize("name", ZONES)
def test_a_local_time_is_the_moment_that_the_clocks_show_it_or_refused_with_the_two_it_can_be(name: str) -> None:
    zone, step = ZoneInfo(name), timedelta(minutes=15)
    for change in changes(name)[-20:]:
        offsets = {offset(change - 1, zone), offset(change, zone)}
        shown = datetime.fromtimestamp(change - SPAN, UTC).replace(tzinfo=None) + min(offsets)
        shown -= timedelta(minutes=shown.minute % 15, seconds=shown.second)
        while shown < datetime.fromtimestamp(change + SPAN, UTC).replace(tzinfo=None) + max(offsets):
            text, moments = f"{shown:%Y-%m-%d %H:%M}", moments_of(shown, zone, offsets)
            if len(moments) == 1:
                assert in_zone(parse_moment(text), named_zone(name)) == moments[0]
                assert in_zone(parse_moment(f"{shown:%d/%m/%Y %H:%M:%S}"), named_zone(name)) == moments[0]
            else:
                either = sorted(int((shown - each).replace(tzinfo=UTC).timestamp()) for each in offsets)
                kind, told = spellings(text, name)
                assert (kind, sorted(told)) == ("twice" if moments else "never", either)
            shown += step


@pytest.mark.parametrize("name", ZONES)
def test_a_day_begins_with_its_first_moment_also_where_the_clocks_leave_out_or_repeat_its_midnight(name: str) -> None:
    zone = ZoneInfo(name)
    for change in changes(name):
        offsets = {offset(change - 1, zone), offset(change, zone)}
        day = datetime.fromtimestamp(change, zone).date() - timedelta(days=2)
        for day in (day + timedelta(days=count) for count in range(5)):
            first = first_moment(day, change, zone, offsets)
            if first is None:
                assert spellings(f"{day}", name)[0] == "never"
                continue
            assert in_zone(parse_moment(f"{day}"), named_zone(name)) == first
            assert in_zone(parse_moment(f"{day:%d/%m/%Y}"), named_zone(name)) == first


def test_the_changes_that_are_tried_leave_out_hours_repeat_hours_and_skip_whole_days() -> None:
    assert sum(len(changes(name)) for name in ZONES) > 2000
    assert len(ZONES) == 40
    assert spellings("2011-12-30", "Pacific/Apia") == ("never", [1_325_239_200, 1_325_152_800])
    with pytest.raises(UsageError) as caught:
        in_zone(parse_moment("2026-10-25 02:30"), named_zone("Europe/Berlin"))
    assert caught.value.hint == SAID["either"]


@pytest.mark.parametrize(("day", "kind"), [("2026-10-25", "twice"), ("2026-03-29", "never")])
def test_a_time_of_today_or_of_a_neighbour_is_refused_like_an_absolute_date(day: str, kind: str) -> None:
    zone = named_zone("Europe/Berlin")
    for days, word in enumerate(("tomorrow", "today", "yesterday"), -1):
        now = datetime.fromisoformat(f"{day}T12:00Z") + timedelta(days=days)
        with pytest.raises(UsageError) as caught:
            start_of(f"{word} 2:30", zone, now=now)
        assert caught.value.message == SAID[kind].format(text=f"{day} 02:30:00", zone="the time zone")
        assert sorted((caught.value.hint or "").split()) == sorted(
            ["write", f"{day}T02:30+02:00", "or", f"{day}T02:30+01:00"]
        )
        later = start_of(parse_moment(f"{day} 03:30"), zone, now=now)
        assert start_of(f"{word} 3:30", zone, now=now) == later


@pytest.mark.parametrize("text", ["2026-10-25 02:30+01:00", "2026-10-25T01:30Z", "1792891800", "0001-01-01T00:00Z"])
def test_dates_with_an_offset_and_numbers_do_not_follow_the_zone(text: str) -> None:
    assert in_zone(parse_moment(text), named_zone("Asia/Tokyo")) == in_zone(parse_moment(text), None)


def test_an_offset_with_seconds_cannot_be_typed_so_the_hint_is_in_utc() -> None:
    _, told = spellings("1972-01-07 00:15", "Africa/Monrovia")
    assert len(told) == 2


@pytest.mark.parametrize("zone", ["GMT+2", "Asia/Tokyo"])
def test_a_date_before_the_calendar_is_refused(zone: str) -> None:
    with pytest.raises(UsageError):
        in_zone(parse_moment("0001-01-01"), named_zone(zone))
