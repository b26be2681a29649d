"""Lengths of time: what is read, what is refused, and how they are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.lengths import MAX_LENGTH_SECONDS, length_text, parse_length, rough_text, whole_seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1d", 86_400), ("1w", 604_800), ("0.001", 0.001)),
        *(("0.5", 0.5), (".5", 0.5), ("0.5s", 0.5), ("1m2.5s", 62.5), ("1w2d3h4m5s", 788_645), ("36h", 129_600)),
    ],
)
def test_a_length_is_seconds_or_counts_of_units(text: str, seconds: float) -> None:
    assert parse_length(text) == seconds


NOT_A_LENGTH = "it is not a length such as 90, 30s, 5m, 1h30m or 1d"


@pytest.mark.parametrize(
    "text", ["", "soon", "h", "1y", "-1h", "-1", "1 h", "1.5h", "30m1h", "1h30", "١h", "nan", "1e3"]
)
def test_another_text_is_not_a_length(text: str) -> None:
    with pytest.raises(ValueError, match=NOT_A_LENGTH):
        parse_length(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1s", "it must be at least 1m"),
        ("3d", "it must be at most 1d"),
        ("99.5", "it must be a number of whole seconds"),
    ],
)
def test_a_length_out_of_its_limits_is_refused_with_the_limit(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_length(text, least=60, most=86_400, whole=True)


def test_no_length_is_longer_than_a_timer_can_wait() -> None:
    assert parse_length("36500d") == MAX_LENGTH_SECONDS
    with pytest.raises(ValueError, match="it must be at most 36500d"):
        parse_length("36500d1s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0s"), (30, "30s"), (300, "5m"), (3725, "1h2m5s"), (5400, "1h30m"), (86_400, "1d"), (1_209_600, "14d")),
        *((0.5, "0.5s"), (0.0004, "0s"), (0.0123, "0.012s"), (61.25, "1m1.25s"), (59.9999, "1m")),
    ],
)
def test_a_length_is_printed_in_the_units_that_it_has(seconds: float, text: str) -> None:
    assert length_text(seconds) == text


@given(st.integers(1, MAX_LENGTH_SECONDS * 1000))
def test_what_is_printed_can_be_typed(milliseconds: int) -> None:
    assert parse_length(length_text(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (0.9, "0s"), (59.9, "59s"), (60, "1m"), (3605, "1h"), (733.2, "12m13s"), (200_000, "2d7h")],
)
def test_a_rough_length_has_its_largest_unit_and_the_next_one(seconds: float, text: str) -> None:
    assert rough_text(seconds) == text


def test_in_a_range_a_number_is_a_date_and_not_a_length() -> None:
    assert [whole_seconds_of(text) for text in ("1h30m", "90", "0.5s", "", "x")] == [5400, None, None, None, None]
