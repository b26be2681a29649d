"""Moments as numbers: epoch seconds and epoch milliseconds, counted from 1970-01-01 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """The epoch milliseconds of a moment, rounded down; a moment without a zone is in UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // MILLISECOND


def from_ms(milliseconds: float) -> datetime:
    """The moment, in UTC, of a number of epoch milliseconds. OverflowError outside the years 1 to 9999."""
    return EPOCH + milliseconds * MILLISECOND


def seconds_to_ms(seconds: float) -> int:
    """A number of seconds as whole milliseconds, rounded towards 0."""
    return int(seconds * 1000)


def to_seconds(moment: datetime) -> int | float:
    """The epoch seconds of a moment: an int, or a float if it has milliseconds."""
    milliseconds = to_ms(moment)
    return milliseconds / 1000 if milliseconds % 1000 else milliseconds // 1000
