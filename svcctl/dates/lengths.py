"""Lengths of time in seconds, as people type them and as svcctl prints them.

A day always has 24 hours, and a week has 7 days, even if the clocks change. All options and settings for a length
accept the same texts. Every length that svcctl prints is also accepted as input.
"""

from __future__ import annotations

import re
from operator import mul

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""The number of seconds of each unit. A length is written with its units in this order."""
MIN_LENGTH_SECONDS = 0.001
"""The shortest accepted length. Some options also accept 0, which has a special meaning for each of these options."""
MAX_LENGTH_SECONDS = 36_500 * UNITS["d"]
"""The longest accepted length. A longer length could overflow timers and dates."""

_LENGTH_PATTERN = re.compile(
    r"(?:(\d{1,12})w)?(?:(\d{1,12})d)?(?:(\d{1,12})h)?(?:(\d{1,12})m)?(?:(\d{1,12}(?:\.\d+)?)s)?", re.A
)
_SECONDS_PATTERN = re.compile(r"\d{1,12}(?:\.\d+)?|\.\d+", re.A)


def _seconds_of(text: str) -> float | None:
    match = _LENGTH_PATTERN.fullmatch(text)
    return sum(map(mul, (float(count or 0) for count in match.groups()), UNITS.values())) if text and match else None


def whole_seconds_of(text: str) -> int | None:
    """Return the number of seconds of a length with units, such as 1h30m.

    Returns None for a number without a unit, for a fraction of a second, and for any other text.
    """
    seconds = None if "." in text else _seconds_of(text)
    return None if seconds is None else int(seconds)


def parse_length(
    text: str, *, least: float = MIN_LENGTH_SECONDS, most: float = MAX_LENGTH_SECONDS, whole: bool = False
) -> float:
    """Return the number of seconds of a length such as 90, 90s or 1h30m.

    Raises ValueError for a text that is not a length, and for a length below `least` or above `most`. With `whole`, a
    length with a fraction of a second also raises ValueError. The error's message begins with `it`, as in `it must be
    at most 1h`.
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
    """Return a length as text, such as 1h30m for 5400 s. The length is rounded to the millisecond.

    The units are days, hours, minutes and seconds.
    """
    rest, parts = round(seconds * 1000), []
    for unit in "dhm":
        count, rest = divmod(rest, UNITS[unit] * 1000)
        parts += [f"{count}{unit}"] if count else []
    parts += [f"{rest / 1000:g}s"] if rest or not parts else []
    return "".join(parts)


def rough_text(seconds: float) -> str:
    """Return a length as text, rounded down to its two largest units: 12m13s for 733.2 s.

    The result is 0s for a negative length.
    """
    step = UNITS["h"] if seconds >= UNITS["d"] else UNITS["m"] if seconds >= UNITS["h"] else 1
    return length_text(max(0, seconds // step * step))
