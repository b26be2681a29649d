"""Dates and lengths of time as people type them, dates in requests, time zones, and the date ranges of queries."""
