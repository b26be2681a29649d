"""Moments as numbers. Epoch seconds and epoch milliseconds are counted from 1970-01-01 00:00 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Convert a moment to epoch milliseconds, rounded down. A moment without a zone is taken as UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // MILLISECOND


def from_ms(milliseconds: float) -> datetime:
    """Convert epoch milliseconds to a moment in UTC. Raises OverflowError outside the years 1 to 9999."""
    return EPOCH + milliseconds * MILLISECOND


def seconds_to_ms(seconds: float) -> int:
    """Convert a number of seconds to whole milliseconds, rounded towards 0."""
    return int(seconds * 1000)


def to_seconds(moment: datetime) -> int | float:
    """Convert a moment to epoch seconds, rounded down to the millisecond. A whole number is returned as an int."""
    milliseconds = to_ms(moment)
    return milliseconds / 1000 if milliseconds % 1000 else milliseconds // 1000
