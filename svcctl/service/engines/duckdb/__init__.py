"""DuckDB in this process: the embedded engine, and other work that DuckDB does for the service.

    engine.py        the tables in the service's file
    date_order.py    checks whether the rows of a load arrive in order of date
    positions.py     the positions of rows, on which marks are based
    opening.py       opens the service's file and checks its version; DuckDB in memory for other work
    widening.py      columns that get a wider type
    windows.py       windows of dates, which are sorted one after the other
    long_texts.py    slices of a table with long texts
    lake_reader.py   runs plans over the tables of a shared folder, see `engines.lake`
    matches.py       reads parts of a shared table together while they have few matches
    scanner.py       reads the files of a shared folder
    sorting.py       prepares rows for a shared folder
    reading.py       the common base of both readers
    dialect.py       the SQL of DuckDB where engines differ
    statement.py     runs a statement, and turns DuckDB's errors into errors of svcctl
    syntax.py        quoting, and the types of stored columns
    demo_events.py   the demo events, made in SQL

Besides this folder, `rendering` and `loading` use DuckDB: to write the rows of responses for every engine, and to read
files.
"""

from svcctl.service.engines.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
