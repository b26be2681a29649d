"""Time zones: what their names come to, which are refused, and how their clocks count."""

import os
import pickle
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.zones import LocalZone, named_zone, parse_zone
from svcctl.errors import UsageError


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        *(("GMT", 0), ("GMT+0", 0), ("GMT+2", 2), ("GMT+02", 2), ("GMT-11", -11), ("GMT+14", 14)),
        *(("GMT+02:00", 2), ("GMT+5:30", 5.5), ("GMT+05:30", 5.5), ("GMT+0530", 5.5), ("GMT-0330", -3.5)),
    ],
)
def test_a_zone_counts_east_of_greenwich(text: str, hours: float) -> None:
    assert parse_zone(text) == timezone(timedelta(hours=hours))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "GMT+15",
            "UTC",
            "gmt+2",
            "GMT+",
            "+2",
            "Europe/Paris",
            "GMT 2",
            "GMT+١",
            "GMT+2.5",
            "GMT+2h",
            "GMT2",
            "GMT+2 ",
        ),
        *("GMT+002", "GMT-002", "GMT+530", "GMT+00200", "GMT+002:00", "GMT+2:0", "GMT+02:", "GMT+0260", "GMT+1401"),
    ],
)
def test_other_zones_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_zone(text)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        *(("GMT", 0), ("UTC", 0), ("utc", 0), ("Z", 0), ("GMT+2", 2), ("gmt+2", 2), ("UTC-3", -3)),
        *(("+2", 2), ("-11", -11), ("+5:30", 5.5), ("+05:30", 5.5), ("GMT+0530", 5.5)),
    ],
)
def test_a_zone_of_one_offset_counts_east_of_greenwich(text: str, hours: float) -> None:
    assert named_zone(text).clocks == timezone(timedelta(hours=hours))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("europe/berlin", "there is no time zone 'europe/berlin'", "did you mean 'Europe/Berlin'?"),
        ("Mars", "there is no time zone 'Mars'", "write GMT+2, UTC, or a name such as Europe/Berlin"),
        ("", "there is no time zone ''", "write GMT+2, UTC, or a name such as Europe/Berlin"),
        ("../x", "there is no time zone '../x'", "write GMT+2, UTC, or a name such as Europe/Berlin"),
        ("+15", "time zone 'GMT+15' is more than 14 hours from GMT", None),
    ],
)
def test_an_unknown_zone_is_refused(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        named_zone(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("zone", "winter", "summer"),
    [
        ("Europe/Berlin", "GMT+1", "GMT+2"),
        ("America/St_Johns", "GMT-3:30", "GMT-2:30"),
        ("UTC", "GMT", "GMT"),
        ("+2", "GMT+2", "GMT+2"),
        ("GMT+05:30", "GMT+05:30", "GMT+05:30"),
    ],
)
def test_a_zone_is_sent_as_its_offset_at_a_moment(zone: str, winter: str, summer: str) -> None:
    january, july = (datetime(2024, month, 1, tzinfo=UTC).timestamp() for month in (1, 7))
    assert (named_zone(zone).offset_name(january), named_zone(zone).offset_name(july)) == (winter, summer)


@pytest.mark.parametrize("name", ["GMT+2", "Europe/Berlin", "local"])
def test_a_zone_can_be_sent_to_another_process(name: str) -> None:
    zone, moment = named_zone(name), datetime(2024, 7, 1, tzinfo=UTC)
    there = pickle.loads(pickle.dumps(zone))
    assert there == zone
    assert moment.astimezone(there.clocks).utcoffset() == moment.astimezone(zone.clocks).utcoffset()


@pytest.fixture
def in_berlin() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    del os.environ["TZ"]
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@given(name=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "GMT-3"]), data=st.data())
def test_a_range_is_cut_exactly_where_the_offset_of_a_zone_changes(name: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(1_700_000_000, 1_800_000_000))
    end = start + data.draw(st.integers(0, 70 * 86_400))
    zone = named_zone(name)
    spans = zone.spans(start, end)
    assert [*(one for one, _ in spans), end] == [start, *(other for _, other in spans)]
    for one, other in spans:
        moments = (*range(one, other, 3600), max(one, other - 1))
        assert {zone.offset_name(moment) for moment in moments} == {zone.offset_name(one)}
    for (one, _), (other, _) in pairwise(spans):
        assert zone.offset_name(one) != zone.offset_name(other)


def test_the_local_zone_is_that_of_the_computer_all_year(in_berlin: None) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert isinstance(named_zone("local").clocks, LocalZone)
    for hour in range(0, 366 * 24, 7):
        moment = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
        here = moment.astimezone(named_zone("local").clocks)
        assert here.replace(tzinfo=None) == moment.astimezone(berlin).replace(tzinfo=None)
        assert here.astimezone(UTC) == moment


@given(st.text(max_size=30))
def test_any_text_is_a_zone_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        named_zone(text)


def test_an_offset_that_a_zone_keeps_for_a_week_only_is_a_span() -> None:
    spans = named_zone("America/Noronha").spans(970_000_000, 973_000_000)
    assert spans == [(970_000_000, 970_970_400), (970_970_400, 971_571_600), (971_571_600, 973_000_000)]
