"""Lengths of time in seconds, as people type them and as svcctl prints them.

A day has 24 hours and a week 7 days, even where the clocks change. All options and settings that are lengths accept the
same texts, and every printed length can be typed again.
"""

from __future__ import annotations

import re
from operator import mul

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""The seconds of each unit of length, in the order in which lengths are written."""
MIN_LENGTH_SECONDS = 0.001
"""The shortest accepted length; an option for which 0 has a meaning accepts 0, too, and says so."""
MAX_LENGTH_SECONDS = 36_500 * UNITS["d"]
"""The longest accepted length; timers and dates overflow beyond it."""

_LENGTH_PATTERN = re.compile(
    r"(?:(\d{1,12})w)?(?:(\d{1,12})d)?(?:(\d{1,12})h)?(?:(\d{1,12})m)?(?:(\d{1,12}(?:\.\d+)?)s)?", re.A
)
_SECONDS_PATTERN = re.compile(r"\d{1,12}(?:\.\d+)?|\.\d+", re.A)


def _seconds_of(text: str) -> float | None:
    match = _LENGTH_PATTERN.fullmatch(text)
    return sum(map(mul, (float(count or 0) for count in match.groups()), UNITS.values())) if text and match else None


def whole_seconds_of(text: str) -> int | None:
    """The whole seconds of a length with units, such as 1h30m.

    None for a number without a unit, a fraction of a second, or any other text.
    """
    seconds = None if "." in text else _seconds_of(text)
    return None if seconds is None else int(seconds)


def parse_length(
    text: str, *, least: float = MIN_LENGTH_SECONDS, most: float = MAX_LENGTH_SECONDS, whole: bool = False
) -> float:
    """The seconds of a length such as 90, 90s or 1h30m.

    ValueError outside `least` to `most`, for fractions if it must be `whole`, and for any other text. Its message is a
    sentence whose subject is `it`.
    """
    seconds = float(text) if _SECONDS_PATTERN.fullmatch(text) else _seconds_of(text)
    if seconds is None:
        raise ValueError("it is not a length such as 90, 30s, 5m, 1h30m or 1d")
    if not least <= seconds <= most:
        bound = f"at least {length_text(least)}" if seconds < least else f"at most {length_text(most)}"
        raise ValueError(f"it must be {bound}")
    if whole and seconds % 1:
        raise ValueError("it must be a number of whole seconds")
    return seconds


def length_text(seconds: float) -> str:
    """A length, rounded to the millisecond, in days, hours, minutes and seconds: 5400 seconds are 1h30m."""
    rest, parts = round(seconds * 1000), []
    for unit in "dhm":
        count, rest = divmod(rest, UNITS[unit] * 1000)
        parts += [f"{count}{unit}"] if count else []
    parts += [f"{rest / 1000:g}s"] if rest or not parts else []
    return "".join(parts)


def rough_text(seconds: float) -> str:
    """A length in its largest unit and the next one: 733.2 seconds are 12m13s. A negative length is 0s."""
    step = UNITS["h"] if seconds >= UNITS["d"] else UNITS["m"] if seconds >= UNITS["h"] else 1
    return length_text(max(0, seconds // step * step))
