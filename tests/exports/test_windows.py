"""Windows: a range in half-open pieces that no run cuts in another way, and the files they are written to."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.lengths import length_text, parse_length
from svcctl.dates.zones import named_zone
from svcctl.errors import UsageError
from svcctl.exports.windows import FIRST_MONDAY, Target, Window, WindowGrid, filled_in

# What the errors say, each once; the tests state their kind.
WORDS = {
    "too many windows": "the range has 4000000000 windows of 1s",
    "two windows in one file": (
        "the windows 2024-01-31 22:00:00 to 2024-01-31 23:00:00 UTC and 2024-01-31 23:00:00 to "
        "2024-02-01 00:00:00 UTC would both be written to 2024-01-31.csv"
    ),
    "names that repeat each year": (
        "with windows of 1d, the names in 'out/{from:%m%d}.csv' repeat: for example, runs from "
        "2024-01-01 00:00:00 UTC and from 2025-01-01 00:00:00 UTC would both write out/0101.csv"
    ),
    "names that repeat": "with windows of 1h, the names in '{{{name}:%F}}.csv' repeat: for example, {example}",
}
LONGER = "give a longer --window, or write a more precise date into the pattern, as in"
HINTS = {
    "too many windows": "an export has at most 1000000: give a longer --window",
    "two windows in one file": f"{LONGER} {{start:%Y%m%dT%H%M%S}}",
    "names that repeat each year": f"{LONGER} {{from:%Y%m%dT%H%M%S}}",
    "names that repeat": f"{LONGER} {{{{{{name}}:%Y%m%dT%H%M%S}}}}",
}

MOMENTS = st.integers(0, 4_000_000_000)
LENGTHS = st.sampled_from([1, 30, 60, 300, 3600, 7200, 86_400, 7 * 86_400])
ORIGINS = st.sampled_from([0, FIRST_MONDAY])


def epoch(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def test_windows_are_multiples_of_their_length_and_the_first_and_last_are_cut_to_the_range() -> None:
    windows = WindowGrid(3600).cut(epoch("2024-01-31T10:20:00"), epoch("2024-01-31T13:00:01"))
    assert [window.name for window in windows] == [
        "20240131T102000Z-20240131T110000Z",
        "20240131T110000Z-20240131T120000Z",
        "20240131T120000Z-20240131T130000Z",
        "20240131T130000Z-20240131T130001Z",
    ]


def test_days_begin_at_midnight_utc() -> None:
    windows = WindowGrid(86_400).cut(epoch("2024-01-31T00:00:00"), epoch("2024-02-02T00:00:00"))
    assert list(map(str, windows)) == [
        "2024-01-31 00:00:00 to 2024-02-01 00:00:00 UTC",
        "2024-02-01 00:00:00 to 2024-02-02 00:00:00 UTC",
    ]


@pytest.mark.parametrize("weeks", [1, 2])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
def test_weeks_begin_at_midnight_of_a_monday_by_the_clocks_of_the_zone(zone: str, weeks: int) -> None:
    grid = WindowGrid(weeks * 7 * 86_400, named_zone(zone).clocks, FIRST_MONDAY)
    start = epoch("2026-01-08T12:00:00")
    windows = grid.cut(start, epoch("2027-01-07T12:00:00"))
    edges = {f"{datetime.fromtimestamp(window.end, named_zone(zone).clocks):%A %T}" for window in windows[:-1]}
    assert edges == {"Monday 00:00:00"}
    assert sum(map(grid.count, windows)) == len(windows) == grid.count(Window(start, windows[-1].end))


@pytest.mark.parametrize(
    ("zone", "start", "end", "length", "names"),
    [
        ("Europe/Berlin", "2026-03-28T23:00:00", "2026-03-30T22:00:00", "1d", ["29 23h", "30 24h"]),
        ("Europe/Berlin", "2026-10-23T22:00:00", "2026-10-26T10:00:00", "1d", ["24 24h", "25 25h", "26 11h"]),
        ("Europe/Berlin", "2026-03-28T23:30:00", "2026-03-29T02:00:00", "1h", ["29 00:30", "29 01", "29 03"]),
        ("Europe/Berlin", "2026-10-24T23:00:00", "2026-10-25T03:00:00", "1h", ["25 01", "25 02 2h", "25 03"]),
        ("Africa/Cairo", "2026-04-22T22:00:00", "2026-04-24T21:00:00", "1d", ["23 24h", "24 01 23h"]),
        ("Asia/Kolkata", "2026-01-30T18:30:00", "2026-02-01T18:30:00", "1d", ["31 24h", "01 24h"]),
        ("GMT-3", "2026-01-30T03:00:00", "2026-02-01T03:00:00", "1d", ["30 24h", "31 24h"]),
    ],
)
def test_windows_follow_the_clocks_of_a_zone(zone: str, start: str, end: str, length: str, names: list[str]) -> None:
    def name(window: Window) -> str:
        hours = (window.end - window.start) // 3600
        at = datetime.fromtimestamp(window.start, named_zone(zone).clocks)
        clock = f" {at:%H:%M}".removesuffix(":00") if length == "1h" or at.hour else ""
        return f"{at:%d}{clock}" + (f" {hours}h" if hours not in (0, 1) else "")

    windows = WindowGrid(int(parse_length(length)), named_zone(zone).clocks).cut(epoch(start), epoch(end))
    assert (windows[0].start, windows[-1].end) == (epoch(start), epoch(end))
    assert [name(window) for window in windows] == names


@given(start=MOMENTS, length=LENGTHS, size=st.integers(1, 100), zone=st.sampled_from(["Europe/Berlin", "Africa/Cairo"]))
def test_windows_of_a_zone_cover_the_range_and_are_named_once(start: int, length: int, size: int, zone: str) -> None:
    end = start + size * length
    windows = WindowGrid(length, named_zone(zone).clocks).cut(start, end)
    edges = [start, *(window.end for window in windows)]
    assert edges[-1] == end
    assert [window.start for window in windows] == edges[:-1]
    assert all(window in WindowGrid(length, named_zone(zone).clocks).around(window.start) for window in windows)
    target = Target("{start:%Y%m%dT%H%M%S}", named_zone(zone).clocks)
    assert len(target.paths(Window(start, end), windows)) == len(windows)


def test_an_empty_range_has_no_windows() -> None:
    assert WindowGrid(60).cut(100, 100) == ()


@given(start=MOMENTS, length=LENGTHS, size=st.integers(1, 5000), rest=st.integers(0, 3599), origin=ORIGINS)
def test_windows_cover_the_range_without_gap_or_overlap(
    start: int, length: int, size: int, rest: int, origin: int
) -> None:
    end = start + size * length // 7 + rest
    windows = WindowGrid(length, origin=origin).cut(start, end)
    edges = [start, *(window.end for window in windows)]
    assert edges[-1] == end
    assert [window.start for window in windows] == edges[:-1]
    assert all(0 < window.end - window.start <= length for window in windows)
    assert WindowGrid(length, origin=origin).count(Window(start, end)) == len(windows)


@given(start=MOMENTS, length=LENGTHS, skipped=st.integers(0, 20))
def test_a_later_start_gives_the_same_windows_from_there_on(start: int, length: int, skipped: int) -> None:
    end = start + 50 * length
    later = start - start % length + (skipped + 1) * length
    assert WindowGrid(length).cut(later, end) == tuple(
        window for window in WindowGrid(length).cut(start, end) if window.start >= later
    )


def test_too_many_windows_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        WindowGrid(1).cut(0, 4_000_000_000)
    assert caught.value.message == WORDS["too many windows"]
    assert caught.value.hint == HINTS["too many windows"]


HOURS = WindowGrid(3600).cut(epoch("2024-01-31T22:00:00"), epoch("2024-02-01T01:00:00"))
DAY = Window(HOURS[0].start, HOURS[-1].end)


def test_a_pattern_names_a_file_for_each_window() -> None:
    target = Target("out/{start:%Y/%m/%d/%H}.csv.gz")
    assert (target.per_window, target.per_run, target.folder) == (True, False, "out/")
    assert list(target.paths(DAY, HOURS).values()) == [
        "out/2024/01/31/22.csv.gz",
        "out/2024/01/31/23.csv.gz",
        "out/2024/02/01/00.csv.gz",
    ]


def test_a_run_can_have_a_name_of_its_own() -> None:
    target = Target("s3://bucket/events-{from}-{to:%H%M}.csv")
    assert (target.per_window, target.per_run, target.folder) == (False, True, "s3://bucket/")
    assert target.path(DAY) == "s3://bucket/events-20240131T220000Z-0100.csv"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("n-{from:%F}.csv.gz", "{from:%F}"),
        ("{start}.csv", "{start}"),
        ("q-%F.csv", "%F"),
        ("out/%Y/%m/%dT%H/x.csv", "%Y/%m/%dT%H"),
        *((path, None) for path in ("a.csv", "100%.csv", "a%20b.csv", "50%%F.csv", "{user}.csv", "{start.csv")),
    ],
)
def test_a_path_with_a_pattern_in_it_is_told_from_others(path: str, pattern: str | None) -> None:
    assert filled_in(path) == pattern


def test_a_plain_path_is_one_file() -> None:
    target = Target("events.csv")
    assert (target.per_window, target.per_run, target.folder, target.path(DAY)) == (False, False, "", "events.csv")


def test_a_pattern_that_gives_two_windows_one_file_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        Target("{start:%Y-%m-%d}.csv").paths(DAY, HOURS)
    assert caught.value.message == WORDS["two windows in one file"]
    assert caught.value.hint == HINTS["two windows in one file"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{day}.csv", "unknown field {day} in '{day}.csv'"),
        ("{start.csv", "'{start.csv' is not a pattern: expected '}' before end of string"),
        ("}.csv", "'}.csv' is not a pattern: Single '}' encountered in format string"),
    ],
)
def test_an_invalid_pattern_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Target(text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "length", "other"),
    [
        ("out/{start:%S}.csv", 10, "2024-01-01 00:01:00 to 2024-01-01 00:01:10 UTC"),
        ("out/{start:%H}.csv", 3600, "2024-01-02 00:00:00 to 2024-01-02 01:00:00 UTC"),
        ("out/{start:%F}.csv", 3600, "2024-01-01 01:00:00 to 2024-01-01 02:00:00 UTC"),
        ("out/{start:%FT%I}.csv", 3600, "2024-01-01 12:00:00 to 2024-01-01 13:00:00 UTC"),
        ("out/{start:%FT%H%S}.csv", 10, "2024-01-01 00:01:00 to 2024-01-01 00:01:10 UTC"),
        ("out/{end:%d}.csv", 86_400, "2024-02-01 00:00:00 to 2024-02-02 00:00:00 UTC"),
        ("out/{start:%a}.csv", 86_400, "2024-01-08 00:00:00 to 2024-01-09 00:00:00 UTC"),
    ],
)
def test_names_that_repeat_as_time_goes_on_are_refused(text: str, length: int, other: str) -> None:
    with pytest.raises(UsageError) as caught:
        Target(text).check_repeats(WindowGrid(length))
    start = f"with windows of {length_text(length)}, the names in '{text}' repeat: for example, the windows "
    assert caught.value.message.startswith(start)
    assert f" and {other} would both be written to out/" in caught.value.message
    assert str(caught.value.hint).endswith("or write a more precise date into the pattern, as in {start:%Y%m%dT%H%M%S}")


def test_names_of_runs_that_repeat_are_refused_as_such() -> None:
    with pytest.raises(UsageError) as caught:
        Target("out/{from:%m%d}.csv").check_repeats(WindowGrid(86_400))
    assert (caught.value.message, caught.value.hint) == (
        WORDS["names that repeat each year"],
        HINTS["names that repeat each year"],
    )


@pytest.mark.parametrize(
    ("name", "example"),
    [
        (
            "start",
            "the windows 2024-01-01 00:00:00 to 2024-01-01 01:00:00 UTC and 2024-01-01 01:00:00 to 2024-01-01 02:00:00 "
            "UTC would both be written to 2024-01-01.csv",
        ),
        (
            "from",
            "runs from 2024-01-01 00:00:00 UTC and from 2024-01-01 01:00:00 UTC would both write 2024-01-01.csv",
        ),
    ],
)
def test_a_file_for_each_day_leads_to_windows_of_a_day(name: str, example: str) -> None:
    target = Target(f"{{{name}:%F}}.csv")
    with pytest.raises(UsageError) as caught:
        target.check_repeats(WindowGrid(3600))
    assert caught.value.message == WORDS["names that repeat"].format(name=name, example=example)
    assert caught.value.hint == HINTS["names that repeat"].format(name=name)
    target.check_repeats(WindowGrid(86_400))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "auth-%F.csv",
            "'auth-%F.csv' has %F outside of braces, where no date is filled in",
            "write {start:%F} for a file per window, {from:%F} for a file per run; %% is a percent sign",
        ),
        (
            "s3://bucket/%Y/%-m/%d/{start:%H}.csv",
            "'s3://bucket/%Y/%-m/%d/{start:%H}.csv' has %Y/%-m/%d outside of braces, where no date is filled in",
            "write {start:%Y/%-m/%d} for a file per window, {from:%Y/%-m/%d} for a file per run; %% is a percent sign",
        ),
        *(
            (
                f"auth-{{from:{spec}}}.csv",
                f"'{spec}' in 'auth-{{from:{spec}}}.csv' is not a date format",
                "write {from:%F} for a date such as 2024-01-31, {from:%F/%H} for one with the hour",
            )
            for spec in ("YYYY-MM-DD", "%Q", "%F-%Q", "%%F", "%F%", "%n")
        ),
    ],
)
def test_a_date_that_would_not_be_filled_in_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        Target(text).check_dates()
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("100%.csv", "100%.csv"),
        ("a%20b.csv", "a%20b.csv"),
        ("100%%F.csv", "100%F.csv"),
        ("{start:%F%%}.csv", "2024-01-31%.csv"),
        ("{start:%-d.%-m.%Y %z}.csv", "31.1.2024 +0000.csv"),
        ("{start:%Y}{{%%}}.csv", "2024{%}.csv"),
    ],
)
def test_a_percent_sign_can_be_in_a_name(text: str, path: str) -> None:
    target = Target(text)
    target.check_dates()
    assert target.path(DAY) == path


@pytest.mark.parametrize("computer", ["UTC0", "XXX-5:30", "Europe/Berlin"])
def test_epoch_seconds_in_a_name_do_not_depend_on_the_zone_of_the_computer(
    monkeypatch: pytest.MonkeyPatch, computer: str
) -> None:
    monkeypatch.setenv("TZ", computer)
    time.tzset()
    try:
        for zone in ("UTC", "GMT+2", "America/St_Johns"):
            for seconds in (0, epoch("2024-03-31T00:30:00"), epoch("2024-03-31T01:30:00")):
                path = Target("{start:%s %-s %%s}-{start:%d}", named_zone(zone).clocks).path(
                    Window(seconds, seconds + 1)
                )
                day = datetime.fromtimestamp(seconds, named_zone(zone).clocks).day
                assert path == f"{seconds} {seconds} %s-{day:02}"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("{start}.csv", 1),
        ("{from:%s}.csv", 10),
        ("{start:%F/%H}.csv", 3600),
        ("{start:%F/%H}.csv", 7200),
        ("{start:%Y/%j}.csv", 86_400),
        ("{start:%G-%V}.csv", 7 * 86_400),
        ("{start:%y%m%d-%I%p}.csv", 3600),
        ("{end:%F}.csv", 86_400),
        ("{start:%F}/{from:%H}-{start:%M}.csv", 600),
    ],
)
def test_names_that_tell_all_windows_apart_are_taken(text: str, length: int) -> None:
    Target(text).check_repeats(WindowGrid(length))
