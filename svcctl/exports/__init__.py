"""Exports: a long range in windows, fetched in parallel, checked, resumed, and merged or written file by file."""
