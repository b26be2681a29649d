"""Times of the day as people type them."""

MAX_DATE_CHARS = 64
"""The most characters of a date."""
TIME = r"\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
"""A time of the day, as a pattern."""
