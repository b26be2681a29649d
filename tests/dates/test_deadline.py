"""The moments in the future that people type."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from svcctl.dates.deadline import parse_deadline
from svcctl.errors import UsageError

NOW = datetime(2026, 11, 26, 7, 30, 15, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90d", "2027-02-24T07:30:15+00:00"),
        (" 1w ", "2026-12-03T07:30:15+00:00"),
        ("1h30m", "2026-11-26T09:00:15+00:00"),
        ("1s", "2026-11-26T07:30:16+00:00"),
        ("2030-01-31", "2030-01-31T00:00:00+00:00"),
        ("31/01/2030 10:00", "2030-01-31T10:00:00+00:00"),
        ("2030-01-31T10:00:00+02:00", "2030-01-31T08:00:00+00:00"),
        ("1900000000", "2030-03-17T17:46:40+00:00"),
        ("tomorrow", "2026-11-27T00:00:00+00:00"),
        ("endmonth", "2026-11-30T23:59:59+00:00"),
    ],
)
def test_a_length_counts_from_now_and_a_date_is_in_utc(text: str, moment: str) -> None:
    assert parse_deadline(text, NOW).isoformat() == moment


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("2026-11-26", "'2026-11-26' is 2026-11-26 00:00:00 (UTC), which has passed"),
        ("now", "2026-11-26 07:30:15 (UTC), which has passed"),
        ("2ad", "2026-11-24 00:00:00 (UTC), which has passed"),
        ("90", "1970-01-01 00:01:30 (UTC), which has passed"),
        ("1795678215", "which has passed"),
        ("0d", "at least 0.001s"),
        ("999999999999w", "at most 36500d"),
        ("-1d", "not a valid date"),
        ("soon", "not a valid date"),
        ("", "not a valid date"),
        ("2030-02-30", "2030-02-30"),
        ("1900000000000", "1900000000000"),
    ],
)
def test_a_moment_that_has_passed_and_any_other_text_are_refused(text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_deadline(text, NOW)
    assert part in caught.value.message
