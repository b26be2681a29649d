"""Dates and zones as people type them: what they come to, how the clocks of a zone count, and what is refused."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.range import resolve, start_of
from svcctl.dates.shorthand import (
    ALL_OPERATORS,
    TYPED,
    Typed,
    depends_on_zone,
    in_zone,
    parse_moment,
    parse_second,
)
from svcctl.dates.zones import named_zone
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
SAID = {
    "a fraction of a second": "'{text}' has a fraction of a second",
    "outside the calendar": "date '{text}' is outside the calendar",
}
HINTS = {
    "a fraction of a second": "dates here are whole seconds: 2024-02-01T10:00:00Z or 2024-02-01T10:00:01Z",
}

NOW = datetime(2018, 10, 8, 14, 33, 12, tzinfo=UTC)


def _pair(start: int | str, end: int | str, *, now: datetime = NOW, zone: str = "GMT") -> tuple[str, str]:
    resolved = resolve(start, end, now=now, zone=named_zone(zone).clocks, operators=ALL_OPERATORS)
    assert resolved.end is not None
    return f"{resolved.start:%Y-%m-%d %H:%M:%S}", f"{resolved.end:%Y-%m-%d %H:%M:%S}"


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        ("90s", "30s", "2018-10-08 14:31:42", "2018-10-08 14:32:12"),
        ("5m", "now", "2018-10-08 14:28:12", "2018-10-08 14:33:12"),
        ("1w", "1d", "2018-10-01 14:33:12", "2018-10-02 14:33:12"),
        ("1h30m", "1h15m10s", "2018-10-08 13:03:12", "2018-10-08 14:18:22"),
        ("1w2d", "now-2h", "2018-09-29 14:33:12", "2018-10-08 12:33:12"),
        ("now-1d", "now-1h30m", "2018-10-07 14:33:12", "2018-10-08 13:03:12"),
        ("yesterday", "today", "2018-10-07 00:00:00", "2018-10-08 00:00:00"),
        ("today", "tomorrow", "2018-10-08 00:00:00", "2018-10-09 00:00:00"),
        ("7d", "yesterday", "2018-10-01 14:33:12", "2018-10-07 00:00:00"),
        ("yesterday 10:00", "today 9:30", "2018-10-07 10:00:00", "2018-10-08 09:30:00"),
        ("today 00:00", "tomorrow 23:59:58", "2018-10-08 00:00:00", "2018-10-09 23:59:58"),
        ("last month", "this month", "2018-09-01 00:00:00", "2018-10-01 00:00:00"),
        ("this month", "now", "2018-10-01 00:00:00", "2018-10-08 14:33:12"),
    ],
)
def test_lengths_and_days_resolve_by_the_clock(start: str, end: str, first: str, last: str) -> None:
    assert _pair(start, end) == (first, last)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("today", "today"),
        (" 5ad ", "5ad"),
        ("1h30m", "1h30m"),
        ("31/01/2024 10:00:00", "31/01/2024 10:00:00"),
        ("31/01/1960 10:00:00", "31/01/1960 10:00:00"),
        ("1536150131", 1536150131),
        ("0", 0),
        ("-86400", -86400),
        ("1969-12-31", -86400),
        ("0001-01-01", -62_135_596_800),
        ("2018-09-05T12:22:11Z", 1536150131),
        ("2018-09-05T14:22:11+02:00", 1536150131),
        ("2018-09-05T14:22:11+0200", 1536150131),
        ("2018-09-05T14:22:11+02", 1536150131),
        ("2018-09-05 12:22:11", 1536150131),
        ("2018-09-05T12:22", 1536150120),
        ("2018-09-05", 1536105600),
        ("2018-09-05T12:22:11.000Z", 1536150131),
        ("2018-09-05 12:22:11 +0000", 1536150131),
        ("2018-09-05 14:22:11 +02:00", 1536150131),
        ("2018-09-05T14:22 +02", 1536150120),
        ("05/09/2018", 1536105600),
        ("05/09/2018 12:22", 1536150120),
        ("2018/09/05", 1536105600),
        ("2018/09/05 12:22:11", 1536150131),
        ("2018-09", 1535760000),
        ("2018/09", 1535760000),
        ("2018-09-05 2:22", 1536114120),
        ("2018-09-05T2:22:11Z", 1536114131),
        ("2018-09-05 4:22:11 +02:00", 1536114131),
        ("05/09/2018 2:22", 1536114120),
        ("05/09/2018 2:22:11", "05/09/2018 02:22:11"),
        ("2018/09/05 2:22:11", 1536114131),
    ],
)
def test_dates_of_the_interface_stay_as_written_and_others_are_seconds(text: str, sent: int | str) -> None:
    assert in_zone(parse_moment(text), None) == sent


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("2024-02-01T10:00:00.5Z", 1706781600.5),
        ("2024-02-01 10:00:00.718", 1706781600.718),
        ("2024-02-01 10:00:00.718 +01:00", 1706778000.718),
        ("2024-02-01T10:00:00.000000Z", 1706781600),
        ("2024/02/01 10:00:00.001", 1706781600.001),
        ("1706781600.25", 1706781600.25),
        ("-1706781600.25", -1706781600.25),
        ("1969-12-31T23:59:59.5Z", -0.5),
        ("1706781600.000", 1706781600),
    ],
)
def test_a_fraction_of_a_second_is_sent_to_the_millisecond(text: str, sent: float) -> None:
    moment = in_zone(parse_moment(text), None)
    assert (moment, type(moment)) == (sent, type(sent))


@pytest.mark.parametrize("text", ["2024-02-01T11:00:00.5+01:00", "1706781600.5"])
def test_where_dates_are_whole_seconds_a_fraction_is_refused_with_both_neighbours(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_second(text)
    assert (caught.value.message, caught.value.hint) == (
        SAID["a fraction of a second"].format(text=text),
        HINTS["a fraction of a second"],
    )
    assert (in_zone(parse_second("2024-02-01"), None), parse_second("2d")) == (1706745600, "2d")


@pytest.mark.parametrize("read", [parse_moment, parse_second])
@pytest.mark.parametrize("unit", [10**3, 10**6, 10**9])
@pytest.mark.parametrize("second", [100_000_000, 999_999_999, 1_700_000_000, 2_024_013_100, 99_999_999_998])
@pytest.mark.parametrize("fraction", [0, 1, 123, 500, 999])
def test_the_hint_for_an_epoch_in_another_unit_is_a_date_that_is_accepted(
    read: Callable[[str], Typed], unit: int, second: int, fraction: int
) -> None:
    for rest in ("", ".5", ".12345"):
        with pytest.raises(UsageError) as caught:
            read(f"{second * unit + fraction * unit // 1000}{rest}")
        written = re.findall(r"[\d.]+", caught.value.hint or "")
        exact = second + fraction / 1000
        whole = [second, second + 1] if fraction else [second]
        assert [read(text) for text in written] == ([exact] if read is parse_moment else whole)


FORMS = "write 5m, 1h30m, 1d, now, today, yesterday, 31/01/2024 10:00, 2024-01-31T10:00:00Z or epoch seconds"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("20240131", "20240131 looks like a date", "write 2024-01-31"),
        ("2024", "2024 looks like a year", "write 2024-01-01, or 2024-01 for the month"),
        ("202401311000", "202401311000 looks like a date", "write 2024-01-31T10:00:00"),
        ("20240131100000", "20240131100000 looks like a date", "write 2024-01-31T10:00:00"),
        ("20240131T100000Z", "20240131T100000Z looks like a date", "write 2024-01-31T10:00:00Z"),
        ("1536150131000", "date 1536150131000 is in milliseconds; dates are epoch seconds", "write 1536150131 instead"),
        ("9999-12-31", "date '9999-12-31' is after the year 5138", None),
        ("31/02/2024", "date '31/02/2024' does not exist", "the order is dd/MM/yyyy"),
        ("31/02/2024 00:00:00", "date '31/02/2024 00:00:00' does not exist", "the order is dd/MM/yyyy"),
        ("12/31/2024", "date '12/31/2024' does not exist", "the day comes first; write 2024-12-31"),
        ("12/31/2024 10:00", "date '12/31/2024 10:00' does not exist", "the day comes first; write 2024-12-31T10:00"),
        ("2024-02-30", "date '2024-02-30' does not exist", None),
        ("2024-02-30 2:30", "date '2024-02-30 2:30' does not exist", None),
        ("2024-13", "date '2024-13' does not exist", None),
        (
            "2024-02-01T10:00:00.0005Z",
            "date '2024-02-01T10:00:00.0005Z' is finer than a millisecond",
            "write 2024-02-01T10:00:00.000Z",
        ),
        ("1706781600.1239", "date '1706781600.1239' is finer than a millisecond", "write 1706781600.123"),
        (
            "1536150131718",
            "date 1536150131718 is in milliseconds; dates are epoch seconds",
            "write 1536150131.718 instead",
        ),
        (
            "1536150131718281",
            "date 1536150131718281 is in microseconds; dates are epoch seconds",
            "write 1536150131.718 instead",
        ),
        (
            "1700000000000000000",
            "date 1700000000000000000 is in nanoseconds; dates are epoch seconds",
            "write 1700000000 instead",
        ),
        (
            "1700000000000000000000",
            "date 1700000000000000000000 is after the year 5138",
            "dates are epoch seconds, such as 1700000000",
        ),
        ("0001-01-01T00:00+14:00", "date '0001-01-01T00:00+14:00' is outside the calendar", None),
        ("31.01", "'31.01' is not a valid date", FORMS),
        ("014", "'014' is not a valid date", FORMS),
        ("01700000000.5", "'01700000000.5' is not a valid date", FORMS),
        (
            "-1536150131718",
            "date -1536150131718 is in milliseconds; dates are epoch seconds",
            "write -1536150131.718 instead",
        ),
        ("5D", "'5D' is not a valid date", "write 5d"),
        ("Today", "'Today' is not a valid date", "write today"),
        ("-5d", "'-5d' is not a valid date", "write 5d"),
        ("5 d", "'5 d' is not a valid date", "write 5d"),
        ("now - 1h", "'now - 1h' is not a valid date", "write now-1h"),
        ("now - 2 days", "'now - 2 days' is not a valid date", "write now-2d"),
        ("1 day ago", "'1 day ago' is not a valid date", "write 1d"),
        ("30min", "'30min' is not a valid date", "write 30m"),
        ("31-01-2024", "'31-01-2024' is not a valid date", "write 2024-01-31"),
        ("31.1.2024 10:00", "'31.1.2024 10:00' is not a valid date", "write 2024-01-31T10:00"),
        (
            "10:00",
            "'10:00' is not a valid date",
            "a time needs its day: write 'today 10:00', or 2024-01-31T10:00, for example",
        ),
        (
            "9:00:05",
            "'9:00:05' is not a valid date",
            "a time needs its day: write 'today 9:00:05', or 2024-01-31T10:00, for example",
        ),
        ("2024-01-31 10:00 UTC", "'2024-01-31 10:00 UTC' is not a valid date", "write '2024-01-31 10:00Z'"),
        ("+2h", "'+2h' is not a valid date", "write 2h"),
        ("1.5h", "'1.5h' is not a valid date", "write 90m"),
        ("today-1d", "'today-1d' is not a valid date", "write yesterday"),
        ("today - 2 days", "'today - 2 days' is not a valid date", "write 2ad in --from"),
        ("last hour", "'last hour' is not a valid date", "write 1h"),
        ("Last 5 minutes", "'Last 5 minutes' is not a valid date", "write 5m"),
        ("2024-01-31T10", "'2024-01-31T10' is not a valid date", "write 2024-01-31T10:00"),
        ("Yesterday at 10:00", "'Yesterday at 10:00' is not a valid date", "write 'yesterday 10:00'"),
        *(
            (text, f"'{text}' is not a valid date", FORMS)
            for text in (
                "5x",
                "",
                "1ms",
                "tonight",
                "<N>d",
                "١٢",
                "9" * 5000,
                "25:00",
                "yesterday 24:00",
                "last xday",
            )
        ),
    ],
)
def test_an_invalid_date_is_refused_with_its_right_spelling(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        parse_moment(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_digits_that_spell_no_date_are_epoch_seconds() -> None:
    assert [parse_moment(text) for text in ("20241331", "12345678", "1706695200")] == [20241331, 12345678, 1706695200]


@pytest.mark.parametrize("text", ["99999999999w", "99999999999999999999s", "9999999d9999h", "now-999999999w"])
def test_a_length_outside_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(text, None, now=NOW, operators=ALL_OPERATORS)
    assert caught.value.message == SAID["outside the calendar"].format(text=text)


@pytest.mark.parametrize(
    ("now", "start", "end", "expected"),
    [
        # clocks go forward on 2024-03-31 at 01:00 UTC: that day has 23 hours
        ("2024-04-01 10:00", "yesterday", "today", ("2024-03-30 23:00:00", "2024-03-31 22:00:00")),
        ("2024-04-01 10:00", "1ad", "1ad", ("2024-03-30 23:00:00", "2024-03-31 22:00:00")),
        ("2024-04-01 10:00", "1ad", "1d", ("2024-03-30 23:00:00", "2024-03-31 23:00:00")),
        ("2024-04-01 10:00", "1d", "now", ("2024-03-31 10:00:00", "2024-04-01 10:00:00")),
        ("2024-03-31 10:00", "today", "3ah", ("2024-03-30 23:00:00", "2024-03-31 02:00:00")),
        # clocks go back on 2024-10-27 at 01:00 UTC: that day has 25 hours
        ("2024-10-27 10:00", "today", "tomorrow", ("2024-10-26 22:00:00", "2024-10-27 23:00:00")),
        ("2024-10-27 10:00", "today", "endday", ("2024-10-26 22:00:00", "2024-10-27 22:59:59")),
        ("2024-03-31 10:00", "yesterday 10:00", "today 10:00", ("2024-03-30 09:00:00", "2024-03-31 08:00:00")),
        ("2024-10-27 00:30", "1h", "now", ("2024-10-26 23:30:00", "2024-10-27 00:30:00")),
        ("2024-10-27 01:30", "1h", "now", ("2024-10-27 00:30:00", "2024-10-27 01:30:00")),
    ],
)
def test_days_follow_the_clocks_of_a_zone_and_hours_do_not(
    now: str, start: str, end: str, expected: tuple[str, str]
) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert _pair(start, end, now=moment, zone="Europe/Berlin") == expected


def test_a_midnight_that_does_not_exist_is_the_first_moment_of_its_day() -> None:
    moment = datetime(2018, 11, 4, 12, tzinfo=UTC)
    assert _pair("today", "endday", now=moment, zone="America/Sao_Paulo") == (
        "2018-11-04 03:00:00",
        "2018-11-05 01:59:59",
    )


def test_the_zone_moves_only_the_operators_that_name_a_day() -> None:
    assert [row.name for row in TYPED if row.zoned] == [
        "yesterday",
        "tomorrow",
        "yesterday 10:00",
        "this month",
        "last month",
    ]
    moments = ("today", "5ad", "yesterday", "5m", "5d", "now-1h", "01/10/2018 00:00:00", 1536150131, None)
    assert [moment for moment in moments if depends_on_zone(moment)] == ["today", "5ad", "yesterday"]


MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC))
MONTHS = ("last month", "this month")
ZONES = st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Cairo"])
LENGTHS = st.lists(st.tuples(st.integers(0, 99), st.sampled_from("wdhms")), min_size=1, max_size=5)


@given(LENGTHS, MOMENTS, ZONES)
def test_a_length_is_the_sum_of_its_parts_in_every_zone(parts: list[tuple[int, str]], now: datetime, zone: str) -> None:
    units = {unit: count for count, unit in parts}
    text = "".join(f"{units[unit]}{unit}" for unit in "wdhms" if unit in units)
    words = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
    length = timedelta(**{words[unit]: count for unit, count in units.items()})
    now = now.replace(microsecond=0)
    for start in (text, f"now-{text}"):
        resolved = resolve(start, text, now=now, zone=named_zone(zone).clocks, operators=ALL_OPERATORS)
        assert (resolved.start, resolved.end) == (now - length, now)


@given(MOMENTS, ZONES)
def test_days_of_a_zone_follow_one_another_without_gaps(now: datetime, zone: str) -> None:
    def ends(start: str, end: str) -> tuple[datetime, datetime | None]:
        resolved = resolve(start, end, now=now, zone=named_zone(zone).clocks, operators=ALL_OPERATORS)
        return resolved.start, resolved.end

    yesterday, today = ends("yesterday", "today")
    same, tomorrow = ends("today", "tomorrow")
    assert tomorrow is not None
    assert same == today
    assert yesterday < today <= now < tomorrow
    for moment in (yesterday, today, tomorrow):
        here = moment.astimezone(named_zone(zone).clocks)
        assert (moment - timedelta(seconds=1)).astimezone(named_zone(zone).clocks).date() < here.date()


@given(MOMENTS)
def test_iso_text_of_a_moment_is_its_epoch_second(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)
    assert parse_moment(moment.isoformat()) == int(moment.timestamp())
    assert parse_moment(moment.astimezone(timezone(timedelta(hours=-3))).isoformat()) == int(moment.timestamp())


@given(st.dates(date(1970, 1, 1), date(2099, 12, 31)))
def test_a_day_is_the_same_in_every_order_and_is_refused_as_digits(day: date) -> None:
    texts = (f"{day:%Y-%m-%d}", f"{day:%d/%m/%Y}", f"{day:%Y/%m/%d}")
    assert len({in_zone(parse_moment(text), named_zone("Asia/Kolkata")) for text in texts}) == 1
    with pytest.raises(UsageError) as caught:
        parse_moment(f"{day:%Y%m%d}")
    assert caught.value.hint == f"write {day:%Y-%m-%d}"


@given(MOMENTS, ZONES)
def test_a_month_begins_on_its_first_day_and_follows_the_one_before(now: datetime, zone: str) -> None:
    last, this = (
        resolve(name, None, now=now, zone=named_zone(zone).clocks, operators=ALL_OPERATORS).start for name in MONTHS
    )
    here = now.astimezone(named_zone(zone).clocks)
    assert last < this <= now
    for first, month in ((this, here.month), (last, (here.month - 2) % 12 + 1)):
        shown = first.astimezone(named_zone(zone).clocks)
        before = (first - timedelta(seconds=1)).astimezone(named_zone(zone).clocks)
        assert (shown.day, shown.month, before.month) == (1, month, (month - 2) % 12 + 1)


@given(st.text(max_size=30))
def test_any_text_is_a_date_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        start_of(parse_moment(text), None, now=NOW)


WORDS = st.sampled_from(
    [
        *("last", "past", "previous", "this", "next", "on", "at", "ago", "now", "today", "yesterday", "tomorrow"),
        *("second", "minute", "hour", "day", "week", "month", "year", "weeks", "5", "30", "2024", "m", "d", "-", "@d"),
        *(
            "monday",
            "friday",
            "xday",
            "morning",
            "noon",
            "night",
            "evening",
            "midnight",
            "jan",
            "november",
            "1h",
            "5ad",
        ),
        *("10:00", "9:30", "2024-01-31", "31/01/2024", "31.1.2024", "UTC", "Z", "+02:00", "20240131", "endday"),
    ]
)


@given(st.lists(WORDS, max_size=4), st.sampled_from(["", " ", "  ", "-", "_", "T"]))
def test_words_of_dates_in_any_order_are_a_date_or_a_usage_error(words: list[str], between: str) -> None:
    with suppress(UsageError):
        start_of(parse_moment(between.join(words)), named_zone("Europe/Berlin"), now=NOW)
