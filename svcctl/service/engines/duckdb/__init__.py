"""DuckDB in this process: the embedded engine, and other work that DuckDB does for the service.

    engine.py        the tables, in one file
    lake.py          the tables of a shared folder, see `engines.lake`; arranging.py has rows on their way into them
    reading.py       what both have in common
    positions.py     which rows a mark means, and what trimming and dropping do to them
    opening.py       that file: its version, and a connection that reaches nothing else
    dialect.py       what DuckDB says in its own way
    statement.py     one running statement, and DuckDB's errors as ours
    text.py          quoting, and the types by which columns are stored
    scratch.py       a DuckDB aside from the tables, in memory
    files.py         files of events, read for loading
    demo_events.py   the demo events, made in SQL

Only this folder and `rendering` know DuckDB; it writes the rows of responses for every engine.
"""

from svcctl.service.engines.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
