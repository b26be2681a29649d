"""What people type for dates in other tools gets a hint with the date to write, which is accepted."""

from __future__ import annotations

import re
import shlex
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.shorthand import FORMS, parse_moment
from svcctl.errors import UsageError

THURSDAY = date(2026, 11, 26)


def hint(text: str, today: date = THURSDAY) -> str:
    with pytest.raises(UsageError) as caught:
        parse_moment(text, today=today)
    assert f"'{text}'" in caught.value.message
    assert caught.value.hint is not None
    return caught.value.hint


def dates_in(text: str) -> list[str]:
    """The dates that a hint says to write."""
    words = shlex.split(text.replace(",", " ").replace(";", " "))
    followed = [after for word, after in pairwise(words) if word in ("write", "--from", "--to", "minutes")]
    return [word for word in followed if word != "--from"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # words
        ("last week", "write 1w for the last 7 days, --from 2026-11-16 --to 2026-11-23 for the calendar week"),
        ("this week", "write 2026-11-23"),
        ("in the past 3 months", "write 2026-08-26"),
        ("2wks", "write 2w"),
        ("on Monday", "write 2026-11-23"),
        ("monday", "write 2026-11-23"),
        ("Thursday", "write 2026-11-26"),
        ("last thursday", "write 2026-11-19"),
        ("friday 9:30", "write 2026-11-20T09:30"),
        ("previous month", "write 'last month'"),
        ("past month", "write 30d, or --from 'last month' --to 'this month' for the calendar month"),
        ("This Month", "write 'this month'"),
        ("this year", "write 2026-01-01"),
        ("last year", "write --from 2025-01-01 --to 2026-01-01"),
        ("1y", "write 2025-11-26"),
        ("9 months ago", "write 2026-02-26"),
        ("1M", "write 1m for minutes, 2026-10-26 for months"),
        ("midnight", "write today"),
        ("noon", "a time needs its day: write 'today 12:00', or 2024-01-31T10:00, for example"),
        ("2024-01-31 2:30 PM", "write '2024-01-31 14:30'"),
        ("2024-01-31 12:30am", "write '2024-01-31 0:30'"),
        ("9:30 yesterday", "write 'yesterday 9:30'"),
        # the output of date, RFC 2822 and logs
        ("Thu Nov 26 07:43:14 UTC 2026", "write 2026-11-26T07:43:14Z"),
        ("Thu Nov 26 07:43:14 AM CET 2026", "write 2026-11-26T07:43:14+01:00"),
        ("Thu Nov 26 12:13:14 IST 2026", "write 2026-11-26T12:13:14, and its zone with --time-zone"),
        ("Thu, 26 Nov 2026 07:43:14 +0000", "write 2026-11-26T07:43:14+0000"),
        ("Thu, 26 Nov 2026 7:43:14 -0800 (PST)", "write 2026-11-26T07:43:14-0800"),
        ("Monday, 25 Sept 2017 5:30:00 PDT", "write 2017-09-25T05:30:00-07:00"),
        ("12 FEB 25 11:28:27 UT", "write 2025-02-12T11:28:27Z"),
        ("Tue Jul 24 18:55:07 2007", "write 2007-07-24T18:55:07"),
        ("January 31st, 2024", "write 2024-01-31"),
        ("Jan 2024", "write 2024-01"),
        ("Nov 26 07:43:14", "write 2026-11-26T07:43:14"),
        ("Nov 27 07:43:14", "write 2025-11-27T07:43:14"),
        ("31/Jan/2024:10:00:00 +0100", "write 2024-01-31T10:00:00+0100"),
        ("2026-11-26T07:43:14,718", "write 2026-11-26T07:43:14.718"),
        ("20240131-100000", "write 2024-01-31T10:00:00"),
        ("2024-1-5 9:30", "write 2024-01-05T09:30"),
        ("2024-W05-3", "write 2024-01-31"),
        ("2026-10-25 02:30 Europe/Berlin", "write '2026-10-25 02:30', and its zone with --time-zone"),
        ("2026-10-25 02:30 CEST", "write '2026-10-25 02:30+02:00'"),
        # journalctl, git, ISO 8601, dashboards and search languages
        ("@1700000000", "write 1700000000"),
        ("Fri 2012-11-23 23:02:15 UTC", "write '2012-11-23 23:02:15Z'"),
        ("1 week 2 days ago", "write 1w2d"),
        ("2.weeks.ago", "write 2w"),
        ("-5m 30s", "write 5m30s"),
        ("PT1H30M", "write 1h30m"),
        ("now/d", "write today"),
        ("now-1d/d", "write yesterday"),
        ("now-7d/d", "write 7ad in --from"),
        ("now/w", "write 2026-11-23"),
        ("now-1M/M", "write 'last month'"),
        ("now() - 1h", "write now-1h"),
        ("ago(15m)", "write 15m"),
        ("-1d@d", "write yesterday"),
        ("-24h@h", "write now-24h; times are not rounded"),
        ("@mon", "write 'this month'"),
        ("01/31/2024:10:00:00", "the day comes first; write 2024-01-31T10:00:00"),
    ],
)
def test_what_is_typed_in_other_tools_gets_the_text_to_type(text: str, said: str) -> None:
    assert hint(text) == said
    moments = dates_in(said)
    assert moments
    for moment in moments:
        parse_moment(moment)


@pytest.mark.parametrize(
    "text", ["tonight", "next week", "31 Feb 2024", "Jan", "0m ago Jan", "26 26 26 Nov", "1999999y", "rt"]
)
def test_no_date_is_guessed_for_other_texts(text: str) -> None:
    assert hint(text) == FORMS


@given(st.dates(date(1971, 1, 1), date(2199, 12, 31)), st.integers(0, 6), st.integers(1, 11))
def test_a_day_of_the_week_is_one_of_the_last_seven_and_months_back_keep_the_day(
    today: date, weekday: int, months: int
) -> None:
    name = f"{date(2024, 1, 1) + timedelta(weekday):%A}"
    (latest,) = re.findall(r"[\d-]{10}", hint(name, today))
    (before,) = re.findall(r"[\d-]{10}", hint(f"last {name}", today))
    assert f"{date.fromisoformat(latest):%A}" == f"{date.fromisoformat(before):%A}" == name
    assert 0 <= (today - date.fromisoformat(latest)).days <= 6
    assert 1 <= (today - date.fromisoformat(before)).days <= 7
    back = date.fromisoformat(re.findall(r"[\d-]{10}", hint(f"{months} months ago", today))[0])
    assert (today.year - back.year) * 12 + today.month - back.month == months
    assert back.day == today.day or (back + timedelta(1)).day == 1
