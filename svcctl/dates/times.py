"""Times of day as people type them."""

import re

MAX_DATE_CHARS = 64
"""The maximum number of characters of a date."""
TIME = r"\d?\d:\d{2}(?::\d{2}(?:\.\d+)?)?"
"""A pattern for a time of day."""


def two_digits(text: str) -> str:
    """Pad the hour of a date to two digits: 2024-01-31 9:30 becomes 2024-01-31 09:30."""
    return re.sub(r"(?<=[T ])(?=\d:)", "0", text)
