"""Dates of the query interface, dates and lengths as people type them, time zones, and ranges of queries."""
