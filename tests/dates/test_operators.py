"""Dates: the golden rows of deployed services, what is refused, and what holds for every pair."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.operators import OPERATORS, operator_of, with_number
from svcctl.dates.range import resolve
from svcctl.dates.zones import parse_zone
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "not a date": "'{text}' is not a valid date",
    "a range that ends before it starts": (
        "the range ends before it starts: from 2018-10-08 00:00:00 to 2018-10-01 00:00:00 (UTC)"
    ),
    "outside the calendar": "date '{start}' is outside the calendar",
}
HINTS = {
    "not a date": "write today, now, endday, endmonth, 5d, 5ad, 5h, 5ah, dd/MM/yyyy HH:mm:ss or epoch seconds",
}

NOW = datetime(2018, 10, 8, 14, 33, 12, tzinfo=UTC)

GOLDEN_FROM = [
    ("today", "GMT", "2018-10-08 00:00:00"),
    ("today", "GMT+2", "2018-10-07 22:00:00"),
    ("now", "GMT", "2018-10-08 14:33:12"),
    ("endday", "GMT", "2018-10-08 23:59:59"),
    ("endday", "GMT+2", "2018-10-08 21:59:59"),
    ("endmonth", "GMT", "2018-10-31 23:59:59"),
    ("2d", "GMT", "2018-10-06 14:33:12"),
    ("2ad", "GMT", "2018-10-06 00:00:00"),
    ("2h", "GMT", "2018-10-08 12:33:12"),
    ("16h", "GMT", "2018-10-07 22:33:12"),
    ("2ah", "GMT", "2018-10-07 22:00:00"),
    ("2ah", "GMT+2", "2018-10-07 20:00:00"),
    ("08/10/2018 01:02:03", "GMT+2", "2018-10-08 01:02:03"),
    (1536150131, "GMT", "2018-09-05 12:22:11"),
]
GOLDEN_TO = [
    ("5d", "2d", "GMT", "2018-10-03 14:33:12", "2018-10-05 14:33:12"),
    ("5ad", "2ad", "GMT+2", "2018-10-02 22:00:00", "2018-10-04 22:00:00"),
    ("5h", "2h", "GMT", "2018-10-08 09:33:12", "2018-10-08 11:33:12"),
    ("5ah", "21ah", "GMT", "2018-10-07 19:00:00", "2018-10-07 21:00:00"),
    (1536150131, "2d", "GMT", "2018-09-05 12:22:11", "2018-09-07 12:22:11"),
    (1536150131, "2ad", "GMT", "2018-09-05 12:22:11", "2018-09-07 00:00:00"),
    (1536150131, "2h", "GMT", "2018-09-05 12:22:11", "2018-09-05 14:22:11"),
    (1536150131, "endmonth", "GMT", "2018-09-05 12:22:11", "2018-09-30 23:59:59"),
    (1515452400, "endday", "GMT+2", "2018-01-08 23:00:00", "2018-01-09 21:59:59"),
    ("2d", "today", "GMT", "2018-10-06 14:33:12", "2018-10-08 00:00:00"),
    ("2h", "now", "GMT", "2018-10-08 12:33:12", "2018-10-08 14:33:12"),
]


def _text(moment: datetime | None) -> str:
    assert moment is not None
    assert moment.tzinfo is UTC
    return moment.strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(("start", "zone", "expected"), GOLDEN_FROM)
def test_a_from_resolves_as_the_field_has_it(start: int | str, zone: str, expected: str) -> None:
    assert _text(resolve(start, None, now=NOW, zone=parse_zone(zone)).start) == expected


@pytest.mark.parametrize(("start", "end", "zone", "first", "last"), GOLDEN_TO)
def test_a_pair_resolves_as_the_field_has_it(start: int | str, end: str, zone: str, first: str, last: str) -> None:
    resolved = resolve(start, end, now=NOW, zone=parse_zone(zone))
    assert (_text(resolved.start), _text(resolved.end)) == (first, last)


@pytest.mark.parametrize(
    "text",
    [*("5x", "", "-5d", "5D", "Today", "<N>d", "١٢", "5 d", "31/01/2024", "1/1/2024 00:00:00"), "5m", "yesterday"],
)
def test_a_text_that_the_interface_has_no_word_for_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(text, None, now=NOW)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["not a date"].format(text=text),
        HINTS["not a date"],
    )


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        resolve("today", "01/10/2018 00:00:00", now=NOW)
    assert caught.value.message == WORDS["a range that ends before it starts"]


def test_an_empty_range_is_allowed() -> None:
    resolved = resolve("now", "now", now=NOW)
    assert resolved.end == resolved.start


@pytest.mark.parametrize("start", ["99999999d", "999999999999999999999d", "9999999999h"])
def test_a_date_outside_the_calendar_is_refused(start: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(start, None, now=NOW)
    assert caught.value.message == WORDS["outside the calendar"].format(start=start)


@pytest.mark.parametrize(
    ("zone", "start", "end"), [("GMT-14", "now", "31/12/9999 23:59:59"), ("GMT+14", "01/01/0001 00:00:00", "now")]
)
def test_the_first_and_last_day_of_the_calendar_are_dates_unless_the_zone_moves_them_out(
    zone: str, start: str, end: str
) -> None:
    resolve(start, end, now=NOW, zone=UTC)
    resolve(start, end, now=NOW, zone=parse_zone(zone))
    outside = parse_zone(zone.translate(str.maketrans("+-", "-+")))
    with pytest.raises(UsageError, match="is outside the calendar"):
        resolve(start, end, now=NOW, zone=outside)


@pytest.mark.parametrize(
    ("number", "text"),
    [(-1, "31/12/1969 23:59:59"), (-86_400, "31/12/1969 00:00:00"), (-62_135_596_800, "01/01/0001 00:00:00")],
)
def test_a_date_before_1970_is_the_same_as_number_and_as_text(number: int, text: str) -> None:
    assert resolve(number, number, now=NOW) == resolve(text, text, now=NOW) == resolve(float(number), text, now=NOW)


def test_a_fraction_before_1970_counts_to_the_millisecond_too() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert resolve(-0.5, None, now=NOW).start == epoch - timedelta(milliseconds=500)
    assert resolve(-1.2345, None, now=NOW).start == epoch - timedelta(milliseconds=1235)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (-62_135_596_801, "date '-62135596801' is outside the calendar"),
        (-99_999_999_999.5, "date '-99999999999.5' is outside the calendar"),
        (-1_704_110_400_000, "date -1704110400000 is in milliseconds; dates are epoch seconds"),
    ],
)
def test_a_negative_number_that_is_no_date_is_refused(number: float, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(number, None, now=NOW)
    assert caught.value.message == message


def test_the_zone_moves_only_the_operators_that_name_a_day() -> None:
    assert [row.name for row in OPERATORS if row.zoned] == ["today", "endday", "endmonth", "<N>ad", "<N>ah"]


def test_an_operator_is_found_by_the_text_that_writes_it() -> None:
    moments = ("today", "5ad", "5m", "01/10/2018 00:00:00", 1536150131, None)
    rows = [operator_of(moment) for moment in moments]
    assert [row and row.name for row in rows] == ["today", "<N>ad", None, None, None, None]


def test_the_meaning_of_an_operator_with_a_number_is_a_sentence() -> None:
    assert [with_number(row.from_meaning, n) for row in OPERATORS for n in (1, 7) if row.counts] == [
        "now minus 1 day",
        "now minus 7 days",
        "now minus 1 day, at 00:00:00",
        "now minus 7 days, at 00:00:00",
        "now minus 1 hour",
        "now minus 7 hours",
        "current day 00:00:00 minus 1 hour",
        "current day 00:00:00 minus 7 hours",
    ]
    assert [with_number("now minus N weeks", n) for n in (1, 7)] == ["now minus 1 week", "now minus 7 weeks"]


OFFSETS = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
COUNTS = st.integers(0, 400)
RELATIVE = st.one_of(
    st.sampled_from([row.name for row in OPERATORS if not row.counts]),
    st.builds("{}{}".format, COUNTS, st.sampled_from(["d", "ad", "h", "ah"])),
)


@given(RELATIVE, RELATIVE, MOMENTS, OFFSETS)
def test_every_operator_is_linear_in_the_zone(start: str, end: str, now: datetime, zone: timezone) -> None:
    """Resolving in a zone is resolving the zone's wall clock in UTC, and taking the offset off again."""
    offset = zone.utcoffset(None)
    shifted = now + offset
    try:
        in_zone = resolve(start, end, now=now, zone=zone)
    except UsageError:
        with pytest.raises(UsageError):
            resolve(start, end, now=shifted)
        return
    in_utc = resolve(start, end, now=shifted)
    assert in_utc.end is not None
    assert (in_zone.start, in_zone.end) == (in_utc.start - offset, in_utc.end - offset)


@given(COUNTS, MOMENTS)
def test_hours_and_days_back_are_never_later_than_now(count: int, now: datetime) -> None:
    for unit in ("h", "d", "ah", "ad"):
        assert resolve(f"{count}{unit}", None, now=now).start <= now


@given(st.integers(0, 10**10), COUNTS, MOMENTS)
def test_to_counts_from_the_start_whatever_the_time_is(start: int, count: int, now: datetime) -> None:
    resolved = resolve(start, f"{count}h", now=now)
    assert resolved.end == resolved.start + timedelta(hours=count)
