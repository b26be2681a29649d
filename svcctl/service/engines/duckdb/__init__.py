"""DuckDB in this process: the embedded engine, and other work that DuckDB does for the service.

    engine.py        the tables in the service's file
    date_order.py    whether the rows of a load arrive in order of date
    positions.py     the positions of rows, by which marks work
    opening.py       opens the service's file and checks its version; DuckDB in memory for other work
    widening.py      columns that get a wider type
    windows.py       windows of dates, which are sorted one after the other
    long_texts.py    slices of a table with long texts
    lake_reader.py   runs plans over the tables of a shared folder, see `engines.lake`
    matches.py       reads parts of a shared table together while they have few matches
    scanner.py       reads the files of a shared folder
    sorting.py       prepares rows for a shared folder
    reading.py       what both readers share
    dialect.py       the SQL of DuckDB where engines differ
    statement.py     one running statement, and DuckDB's errors as errors of svcctl
    syntax.py        quoting, and the types of stored columns
    demo_events.py   the demo events, made in SQL

Only this folder and `rendering` know DuckDB; it writes the rows of responses for every engine.
"""

from svcctl.service.engines.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
