"""Moments as numbers, and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.epochs import EPOCH, from_ms, seconds_to_ms, to_ms, to_seconds

MILLISECONDS = st.integers(to_ms(datetime.min), to_ms(datetime.max))


@given(MILLISECONDS)
def test_a_moment_is_its_milliseconds_in_every_year(milliseconds: int) -> None:
    moment = from_ms(milliseconds)
    assert to_ms(moment) == to_ms(moment.replace(tzinfo=None)) == milliseconds
    assert round(to_seconds(moment) * 1000) == milliseconds


@pytest.mark.parametrize(
    ("moment", "milliseconds", "seconds"),
    [
        (EPOCH, 0, "0"),
        (EPOCH + timedelta(microseconds=1_999_999), 1999, "1.999"),
        (EPOCH - timedelta(microseconds=1), -1, "-0.001"),
        (datetime(2024, 2, 1, 2, tzinfo=timezone(timedelta(hours=2))), 1_706_745_600_000, "1706745600"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), 253_402_300_799_999, "253402300799.999"),
    ],
)
def test_finer_digits_are_rounded_down(moment: datetime, milliseconds: int, seconds: str) -> None:
    assert (to_ms(moment), str(to_seconds(moment))) == (milliseconds, seconds)


def test_a_clock_gives_whole_milliseconds() -> None:
    assert [seconds_to_ms(seconds) for seconds in (1, 1.5, 1_706_745_600.25)] == [1000, 1500, 1_706_745_600_250]


@pytest.mark.parametrize("milliseconds", [-62_135_596_800_001, 253_402_300_800_000, 1e300])
def test_a_number_outside_the_calendar_is_no_moment(milliseconds: float) -> None:
    with pytest.raises(OverflowError):
        from_ms(milliseconds)
