"""Dates and ranges of time: as the interface has them, as people type them, and what a pair resolves to."""
