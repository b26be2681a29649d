"""Macros for expressions that are written once for each column of a query.

A macro is expanded where it is called, so it runs as fast as its body. But the body is parsed once, not in each query,
and parsing is most of what a query over a short range costs.
"""

from __future__ import annotations

SEPARATED = "memory.main.separated"
"""A text as a cell of csv or tsv: quoted when it holds the separator, a quote, CR or LF, or is empty."""

DEFINED = f"""
    CREATE MACRO {SEPARATED}(value, separator) AS CASE
        WHEN contains(value, separator) OR contains(value, '"') OR contains(value, chr(10)) OR contains(value, chr(13))
            OR value = ''
        THEN concat('"', replace(value, '"', '""'), '"') ELSE value END;
"""
"""Defines them in the database that each connection to memory begins with, `memory`. It is never stored."""
