"""Dates of the query interface, dates and lengths that people type, time zones, and the ranges of queries."""
