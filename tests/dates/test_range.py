"""Dates of a request: relative ones are sent as they are wherever the service reads them in the same way."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.clock_changes import ZONES, clock_changes, offset

from svcctl.dates.range import dates_of, period_note
from svcctl.dates.shorthand import in_zone, parse_moment
from svcctl.dates.zones import Zone, named_zone, parse_zone
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "an end that counts from the start": (
        "--to {1} counts from --from; to count it from now, give --from {0} --to {2}"
    ),
    "clocks that change": "the clocks of Europe/Berlin change within the range: all dates are written in GMT+2; "
    "--date-format iso writes the offset with each date",
    "clocks that changed": "the clocks of Europe/Berlin change within the range: all dates are written in GMT+1",
    "clocks that will change": "the clocks of Europe/Berlin change during the year: all dates are written in GMT+1",
    "an unknown format": "unknown date format 'rfc'",
}
HINTS = {
    "an unknown format": "date formats are: default, sql, iso",
}

BERLIN = named_zone("Europe/Berlin")
NOW = datetime(2024, 1, 31, 12, 0, tzinfo=UTC)
MIDNIGHT = 1_706_659_200


def zoned(name: str | None) -> Zone | None:
    return None if name is None else named_zone(name)


@pytest.mark.parametrize(
    ("pair", "time_zone", "written", "sent"),
    [
        (("1h", "now"), None, True, ("1h", "now")),
        (("1ad", "1d"), "GMT+2", True, ("1ad", "1d")),
        (("1h", "now"), None, False, ("1h", "now")),
        (("1h", "now"), "GMT+2", False, ("1h", "now")),
        (("today", "now"), None, False, ("today", "now")),
        (("today", "now"), "GMT+2", False, (MIDNIGHT - 7200, "now")),
        (("1h", None), None, True, ("1h", None)),
        (("5m", "now"), None, True, (int(NOW.timestamp()) - 300, "now")),
        (("1d", "5m"), None, False, ("1d", int(NOW.timestamp()) - 86_400 + 300)),
        (("yesterday", "1d"), "GMT+2", True, (MIDNIGHT - 93_600, "1d")),
        (("1w", None), None, True, (int(NOW.timestamp()) - 604_800, None)),
        (("today", "now"), "Europe/Berlin", True, (MIDNIGHT - 3600, "now")),
        (("1h", "now"), "Europe/Berlin", True, ("1h", "now")),
        ((MIDNIGHT + 0.25, "1h"), None, True, (MIDNIGHT + 0.25, "1h")),
        ((MIDNIGHT + 0.25, "5m"), None, True, (MIDNIGHT + 0.25, MIDNIGHT + 300.25)),
        ((MIDNIGHT + 0.25, "1d"), "GMT+2", False, (MIDNIGHT + 0.25, "1d")),
        ((MIDNIGHT + 0.25, "endday"), "GMT+2", False, (MIDNIGHT + 0.25, MIDNIGHT + 86_400 - 7201)),
        (("1ad", "2ah"), "GMT+2", False, (MIDNIGHT - 86_400 - 7200, MIDNIGHT - 86_400)),
    ],
)
def test_dates_are_fixed_here_only_where_the_service_would_read_them_differently(
    pair: tuple[float | str, str | None],
    time_zone: str | None,
    written: bool,
    sent: tuple[float | str, float | str | None],
) -> None:
    chosen = dates_of(*pair, None, zoned(time_zone), now=NOW, written=written)
    assert (chosen.from_, chosen.to) == sent


@pytest.mark.parametrize(
    ("pair", "sent"),
    [
        (("1h", None), (int(NOW.timestamp()) - 3600, None)),
        (("1h", "now"), (int(NOW.timestamp()) - 3600, int(NOW.timestamp()))),
        (("today", "tomorrow"), (MIDNIGHT, MIDNIGHT + 86_400)),
        ((MIDNIGHT, "2d"), (MIDNIGHT, MIDNIGHT + 2 * 86_400)),
    ],
)
def test_a_request_that_is_sent_again_has_epoch_seconds_only(
    pair: tuple[float | str, str | None], sent: tuple[int, int | None]
) -> None:
    chosen = dates_of(*pair, None, None, now=NOW, written=False, resent=True)
    assert (chosen.from_, chosen.to) == sent


@pytest.mark.parametrize(
    ("pair", "zone", "sent", "until"),
    [
        (("1h", "now"), None, ("1h", "now"), None),
        (("1d", "endday"), None, ("1d", "endday"), None),
        (("today", "tomorrow"), None, ("today", "now"), "2024-02-01 00:00 UTC"),
        (("today", "endday"), "GMT+2", (MIDNIGHT - 7200, "now"), "2024-01-31 23:59:59 GMT+2"),
        (("today", "endmonth"), None, ("today", "now"), "2024-01-31 23:59:59 UTC"),
        (("2h", "4h"), None, ("2h", "now"), "2024-01-31 14:00 UTC"),
        ((MIDNIGHT, MIDNIGHT + 86_400.5), None, (MIDNIGHT, "now"), "2024-02-01 00:00:00.500 UTC"),
        (("now", "1h"), "Europe/Berlin", ("now", "now"), "2024-01-31 14:00 Europe/Berlin"),
    ],
)
def test_a_request_that_does_not_wait_ends_now_and_a_note_names_the_end_that_was_typed(
    pair: tuple[float | str, float | str], zone: str | None, sent: tuple[float | str, str], until: str | None
) -> None:
    chosen = dates_of(*pair, None, zoned(zone), now=NOW, written=False, waits=False)
    assert (chosen.from_, chosen.to) == sent
    note = f"--to is in the future: the range ends now; --follow waits until {until}"
    cut = [] if until is None else [note]
    assert [text for text in chosen.notes(terminal=True) if "future" in text] == cut
    assert chosen.range.end is not None
    assert chosen.range.end <= NOW


@pytest.mark.parametrize(("start", "end"), [("tomorrow", "now"), ("endday", "endday"), (MIDNIGHT + 86_400, "1h")])
def test_a_request_that_does_not_wait_cannot_start_in_the_future(start: float | str, end: str) -> None:
    with pytest.raises(UsageError) as caught:
        dates_of(start, end, None, BERLIN, now=NOW, written=False, waits=False)
    assert caught.value.message.startswith("the range begins in the future: 2024-0")
    assert caught.value.message.endswith(" Europe/Berlin")


@pytest.mark.parametrize("source", ["", "profile berlin"])
def test_a_zone_that_was_not_typed_is_told_with_dates_that_have_no_offset(source: str) -> None:
    zone = replace(BERLIN, source=source)

    def told(*pair: str) -> list[str]:
        from_, to = map(parse_moment, pair)
        return list(dates_of(from_, to, None, zone, now=NOW, written=False).notes(terminal=False))

    read = "in Europe/Berlin (profile berlin): 2024-01-29 23:00:00"
    assert told("2024-01-30", "now") == [f"--from {read} UTC"] * bool(source)
    both = f"--from and --to {read} to 2024-01-30 23:30:00.500 UTC"
    assert told("2024-01-30", "2024-01-31 00:30:00.5") == [both] * bool(source)
    for pair in (("1d", "now"), ("yesterday", "today"), ("1706659200", "now"), ("2024-01-30T00:00Z", "1h")):
        assert told(*pair) == []


def test_the_label_shows_both_ends_in_utc() -> None:
    chosen = dates_of("today", "now", "iso", named_zone("GMT+2"), now=NOW, written=True)
    assert chosen.label == "2024-01-30 22:00:00 to 2024-01-31 12:00:00 (UTC)"
    assert (chosen.clocks, chosen.date_format, chosen.time_zone) == (timezone(timedelta(hours=2)), "iso", "GMT+2")
    assert dates_of("1h", None, None, None, now=NOW, written=False).label == "2024-01-31 11:00:00 (UTC)"


@pytest.mark.parametrize(
    ("pair", "time_zone", "notes"),
    [
        (("1h", "now"), None, []),
        (("yesterday", "today"), None, []),
        ((MIDNIGHT, "tomorrow"), None, []),
        ((MIDNIGHT, 1_706_695_200), None, []),
        (("1h", "now"), "Europe/Berlin", []),
        ((MIDNIGHT + 0.25, "1h"), None, ["2024-01-31 00:00:00.250 … 2024-01-31 01:00:00.250 UTC (1h)"]),
        (("7d", "1d"), None, ["2024-01-24 12:00 … 2024-01-25 12:00 UTC (1d)"]),
        (("90s", "30s"), None, ["2024-01-31 11:58:30 … 2024-01-31 11:59:00 UTC (30s)"]),
        (("7d", "11h59m58s"), None, ["2024-01-24 12:00:00 … 2024-01-24 23:59:58 UTC (11h59m58s)"]),
        ((MIDNIGHT, "now"), "GMT+2", ["2024-01-31 02:00 … 2024-01-31 14:00 GMT+2 (12h)"]),
        (("1ad", "12h"), "Europe/Berlin", ["2024-01-30 00:00 … 2024-01-30 12:00 Europe/Berlin (12h)"]),
    ],
)
def test_a_person_is_told_a_range_that_is_not_plain(
    pair: tuple[float | str, float | str], time_zone: str | None, notes: list[str]
) -> None:
    chosen = dates_of(*pair, None, zoned(time_zone), now=NOW, written=True)
    assert list(chosen.notes(terminal=True)) == notes
    assert list(chosen.notes(terminal=False)) == []


def test_a_small_number_is_most_likely_a_length_without_its_unit() -> None:
    notes = dates_of(90, "now", None, None, now=NOW, written=True).notes
    told = ["--from 90 is 1970-01-01 00:01:30 UTC; write 90m for minutes"]
    assert list(notes(terminal=True)) == list(notes(terminal=False)) == told
    before = dates_of(-3600, "now", None, None, now=NOW, written=True).notes(terminal=False)
    assert list(before) == ["--from -3600 is 1969-12-31 23:00:00 UTC; write 3600m for minutes"]
    day_in_1972 = 63_072_000
    assert list(dates_of(day_in_1972, "now", None, None, now=NOW, written=True).notes(terminal=True)) == []


def test_a_note_tells_which_offset_dates_have_when_the_clocks_change_within_the_range() -> None:
    now = datetime(2024, 4, 2, 12, tzinfo=UTC)
    one, other = (dates_of(from_, "now", None, BERLIN, now=now, written=True) for from_ in ("today", "5ad"))
    assert (one.time_zone, one.offset_note()) == ("GMT+2", None)
    assert (other.time_zone, other.offset_note(text=False)) == ("GMT+1", WORDS["clocks that changed"])
    year = dates_of(1_690_000_000, 1_720_000_000, None, BERLIN, now=now, written=True)
    assert year.offset_note() == WORDS["clocks that change"]
    assert year._replace(date_format="iso").offset_note() == WORDS["clocks that change"].partition(";")[0]
    assert dates_of("5ad", "now", None, named_zone("GMT+2"), now=now, written=True).offset_note() is None


def test_a_range_without_an_end_has_all_offsets_of_its_zone() -> None:
    endless = dates_of("1h", None, None, BERLIN, now=NOW, written=False)
    assert [f"{datetime.fromtimestamp(at, UTC):%F %H}" for at in endless.changes] == ["2024-03-31 01", "2024-10-27 01"]
    assert endless.offset_note(text=False) == WORDS["clocks that will change"]
    assert dates_of("1h", None, None, named_zone("Asia/Kolkata"), now=NOW, written=False).offset_note() is None


SUNDAY = 1_729_980_000
"""The 27th of October 2024 in Berlin, whose clocks go back at 01:00 UTC."""
CHANGE = 1_729_990_800


@pytest.mark.parametrize(
    ("pair", "now", "spans"),
    [
        ((SUNDAY, SUNDAY + 90_000), 0, [(SUNDAY, CHANGE, "GMT+2"), (CHANGE, SUNDAY + 90_000, "GMT+1")]),
        ((SUNDAY, "now"), 90_000, [(SUNDAY, CHANGE, "GMT+2"), (CHANGE, "now", "GMT+1")]),
        (("4h", "4h"), 14_400, [(SUNDAY, CHANGE, "GMT+2"), (CHANGE, SUNDAY + 14_400, "GMT+1")]),
        ((SUNDAY + 0.5, SUNDAY + 0.75), 0, [(SUNDAY + 0.5, SUNDAY + 0.75, "GMT+2")]),
        ((CHANGE - 1, CHANGE), 0, [(CHANGE - 1, CHANGE, "GMT+2")]),
        ((CHANGE - 0.5, CHANGE + 0.5), 0, [(CHANGE - 0.5, CHANGE, "GMT+2"), (CHANGE, CHANGE + 0.5, "GMT+1")]),
        (("1h", "now"), 90_000, [("1h", "now", "GMT+1")]),
        (
            (1_711_800_000, SUNDAY + 90_000),
            0,
            [
                (1_711_800_000, 1_711_846_800, "GMT+1"),
                (1_711_846_800, CHANGE, "GMT+2"),
                (CHANGE, SUNDAY + 90_000, "GMT+1"),
            ],
        ),
    ],
)
def test_a_range_is_requested_once_for_each_offset(pair: Any, now: int, spans: Any) -> None:
    present = datetime.fromtimestamp(SUNDAY + now, UTC)
    assert dates_of(pair[0], pair[1], "iso", BERLIN, now=present, written=True).spans == spans


@settings(max_examples=60)
@given(name=st.sampled_from(ZONES), data=st.data())
def test_the_offset_of_a_request_is_that_of_the_zone_at_each_of_its_moments(name: str, data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(clock_changes(name)))
    start = change - data.draw(st.integers(-7200, 200 * 86_400))
    end = start + data.draw(st.integers(0, 400 * 86_400))
    now = datetime.fromtimestamp(end, UTC)
    spans = dates_of(start, end, "iso", named_zone(name), now=now, written=True).spans
    assert [*(span[0] for span in spans), end] == [start, *(span[1] for span in spans)]
    for first, after, sent in spans:
        assert sent is not None
        assert isinstance(first, int)
        assert isinstance(after, int)
        moments = {first, max(first, after - 1), data.draw(st.integers(first, max(first, after - 1)))}
        assert {offset(moment, name) for moment in moments} == {parse_zone(sent).utcoffset(None)}
    assert {span[0] for span in spans[1:]} >= {moment for moment in clock_changes(name) if start < moment < end}


def test_a_range_is_shown_with_its_offsets_where_they_differ() -> None:
    chosen = dates_of(CHANGE - 1800, CHANGE + 1800, None, BERLIN, now=NOW, written=False)
    assert chosen.summary == "2024-10-27 02:30 +0200 … 2024-10-27 02:30 +0100 Europe/Berlin (1h)"


@pytest.mark.parametrize(
    ("zone", "every", "note"),
    [
        ("GMT+2", 3600, None),
        ("GMT+2", 14_400, "'group every' counts in UTC: a period begins at 14:00 GMT+2"),
        (
            "Europe/Berlin",
            86_400,
            "'group every' counts in UTC: a period begins at 01:00 Europe/Berlin; for days there: "
            'group by formatdate(eventdate, "yyyy-MM-dd", "Europe/Berlin") as day',
        ),
        (
            "GMT-5",
            86_400,
            "'group every' counts in UTC: a period begins at 19:00 GMT-5; for days there: "
            'group by formatdate(eventdate, "yyyy-MM-dd", "GMT-5") as day',
        ),
    ],
)
def test_periods_that_do_not_begin_with_those_of_the_zone_are_told(zone: str, every: int, note: str | None) -> None:
    chosen = dates_of("3d", "now", None, named_zone(zone), now=NOW, written=True)
    assert period_note(chosen, every, formula=True) == note


@pytest.mark.parametrize(
    ("start", "end", "note"),
    [
        ("2026-10-24", "2026-10-27", "02:00 or 01:00 Europe/Berlin, whose clocks change within the range"),
        ("2026-06-01", "2027-06-01", "02:00 or 01:00 Europe/Berlin, whose clocks change within the range"),
        ("2026-10-24", None, "02:00 Europe/Berlin"),
    ],
)
def test_the_formula_for_days_is_right_where_the_clocks_change_or_may_change(
    start: str, end: str | None, note: str
) -> None:
    from_, to = (None if text is None else in_zone(parse_moment(text), None) for text in (start, end))
    assert from_ is not None
    chosen = dates_of(from_, to, None, BERLIN, now=NOW, written=to is not None)
    days = 'for days there: group by formatdate(eventdate, "yyyy-MM-dd", "Europe/Berlin") as day'
    text = period_note(chosen, 86_400, formula=True) or ""
    assert text.partition(" counts in UTC: a period begins at ")[::2] == ("'group every'", f"{note}; {days}")


def test_the_formula_for_days_of_this_computer_has_an_offset_which_must_not_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    april = datetime(2024, 4, 2, 12, tzinfo=UTC)
    try:
        for days, until, formula in (("1d", "now", "GMT+2"), ("30d", "now", None), ("1d", None, None)):
            chosen = dates_of(days, until, None, named_zone("local"), now=april, written=True)
            note = period_note(chosen, 86_400, formula=True) or ""
            assert re.findall('"(GMT.*)"', note) == [*filter(None, [formula])]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("start", "end", "zone", "left_out"),
    [
        ("2026-10-01", "endmonth", None, "2026-10-31 23:59:59: --to 2026-11-01"),
        ("2026-10-01", "endday", "GMT+2", "2026-10-01 23:59:59: --to 2026-10-02"),
        ("2026-10-24T22:00Z", "endday", "Europe/Berlin", "2026-10-25 23:59:59: --to 2026-10-26"),
        ("2026-10-01", "2026-10-31T23:59:59", None, "2026-10-31 23:59:59: --to 2026-11-01"),
        ("2026-10-01T23:59:59", "1d", None, None),
        ("2026-10-01", "1ad", None, None),
    ],
)
def test_an_end_that_leaves_out_its_last_second_is_told_with_the_date_that_includes_it(
    start: str, end: str, zone: str | None, left_out: str | None
) -> None:
    chosen = dates_of(parse_moment(start), parse_moment(end), None, zoned(zone), now=NOW, written=False)
    told = [] if left_out is None else [f"the range leaves out its last second, {left_out} includes it"]
    assert list(chosen.notes(terminal=False)) == told
    if left_out is not None:
        includes = left_out.split("--to ")[1]
        later = dates_of(parse_moment(start), parse_moment(includes), None, zoned(zone), now=NOW, written=False)
        assert later.range.end == (chosen.range.end or NOW) + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("pair", "zone", "probably"),
    [
        (("4ad", "3ad"), "Europe/Berlin", "1ad"),
        (("30d", "29ad"), None, "1ad"),
        (("5d", "4d"), None, "now-4d"),
        (("1h30m", "1h"), None, "now-1h"),
        *((pair, None, None) for pair in (("4ad", "1ad"), ("2ad", "1ad"), ("5d", "2d"), ("7d", "1d"), ("2h", "1h"))),
        *((pair, None, None) for pair in (("5d", "now-4d"), ("5d", "today"), ("5d", "endday"), ("5ah", "21ah"))),
        *((pair, None, None) for pair in ((MIDNIGHT, "23h"), ("yesterday", "23h"), ("2d", "3d"), ("1h", None))),
    ],
)
def test_an_end_that_was_probably_meant_to_count_from_now_is_told_with_a_pair_that_does(
    pair: tuple[float | str, str | None], zone: str | None, probably: str | None
) -> None:
    chosen = dates_of(*pair, None, zoned(zone), now=NOW, written=True)
    if probably is None:
        assert chosen.other_pair is None
        return
    (note,) = chosen.notes(terminal=False)
    assert note == WORDS["an end that counts from the start"].format(*pair, probably)
    other = dates_of(pair[0], probably, None, zoned(zone), now=NOW, written=True)
    assert (other.range.end, other.other_pair) == (
        dates_of(pair[1] or "", None, None, zoned(zone), now=NOW, written=True).range.start,
        None,
    )


def test_an_unknown_date_format_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        dates_of("1h", "now", "rfc", None, now=NOW, written=False)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["an unknown format"],
        HINTS["an unknown format"],
    )
