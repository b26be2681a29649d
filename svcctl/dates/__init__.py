"""Dates of the query interface, typed dates and lengths of time, time zones, and the date ranges of queries."""
