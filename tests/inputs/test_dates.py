"""Dates of a request: relative ones are sent as they are wherever the service reads them in the same way."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from svcctl.errors import UsageError
from svcctl.inputs.dates import choose

NOW = datetime(2024, 1, 31, 12, 0, tzinfo=UTC)
MIDNIGHT = 1_706_659_200


@pytest.mark.parametrize(
    ("pair", "time_zone", "written", "sent"),
    [
        (("1h", "now"), None, True, ("1h", "now")),
        (("1ad", "1d"), "GMT+2", True, ("1ad", "1d")),
        (("1h", "now"), None, False, ("1h", "now")),
        (("1h", "now"), "GMT+2", False, ("1h", "now")),
        (("today", "now"), None, False, ("today", "now")),
        (("today", "now"), "GMT+2", False, (MIDNIGHT - 7200, int(NOW.timestamp()))),
        (("1h", None), None, False, (int(NOW.timestamp()) - 3600, None)),
    ],
)
def test_dates_are_fixed_here_only_where_the_service_would_read_them_differently(
    pair: tuple[str, str | None], time_zone: str | None, written: bool, sent: tuple[int | str, int | str | None]
) -> None:
    chosen = choose(*pair, None, time_zone, now=NOW, written=written)
    assert (chosen.from_, chosen.to) == sent


def test_the_label_shows_both_ends_in_utc() -> None:
    chosen = choose("today", "now", "iso", "GMT+2", now=NOW, written=True)
    assert chosen.label == "2024-01-30 22:00:00 to 2024-01-31 12:00:00 (UTC)"
    assert (chosen.zone, chosen.date_format, chosen.time_zone) == (timezone(timedelta(hours=2)), "iso", "GMT+2")
    assert choose("1h", None, None, None, now=NOW, written=False).label == "2024-01-31 11:00:00 (UTC)"


def test_an_unknown_date_format_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        choose("1h", "now", "rfc", None, now=NOW, written=True)
    assert (caught.value.message, caught.value.hint) == (
        "unknown date format 'rfc'",
        "date formats are: default, sql, iso",
    )
