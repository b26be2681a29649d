"""Deadlines as people type them: a length of time from now, or a date in the future."""

from __future__ import annotations

from datetime import datetime, timedelta

from svcctl.dates.lengths import parse_length, whole_seconds_of
from svcctl.dates.operators import moment_text, plus
from svcctl.dates.range import start_of
from svcctl.dates.shorthand import parse_moment
from svcctl.errors import UsageError

FORMS = "write a length from now with its unit, such as 8h or 90d, or a later date, such as 2030-01-31"


def parse_deadline(text: str, now: datetime) -> datetime:
    """Return the moment of a deadline.

    For example, `90d` means 90 days after `now`, and `2030-01-31` means the start of that day in UTC. `now` has a time
    zone. Raises UsageError for a text that is neither a length nor a date, and for a moment that has passed.
    """
    text, now = text.strip(), now.replace(microsecond=0)
    if whole_seconds_of(text) is not None:
        try:
            return plus(now, timedelta(seconds=parse_length(text)))
        except ValueError as error:
            raise UsageError(f"'{text}' cannot be used: {error}", hint=FORMS) from None
    moment = start_of(parse_moment(text), None, now=now)
    if moment <= now:
        raise UsageError(f"'{text}' is {moment_text(moment)} (UTC), which has passed", hint=FORMS)
    return moment
