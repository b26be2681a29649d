"""DuckDB in this process: the embedded engine, and other work that DuckDB does for the service.

engine.py        the tables in the service's file
date_order.py    checks whether the rows of a load arrive in order of date
positions.py     the positions of rows; a mark is such a position
opening.py       opens the service's file and checks its version; opens DuckDB in memory for other work
widening.py      converts columns to a wider type
windows.py       splits a sort into windows of dates, which are sorted one after the other
long_texts.py    splits a table with long texts into slices
lake_reader.py   runs plans over the tables of a shared folder, see `engines.lake`
matches.py       reads several parts of a shared table at once if few rows match a query
scanner.py       reads the files of a shared folder
sorting.py       converts and sorts rows for a table in a shared folder
reading.py       the base class of the two readers that use DuckDB
dialect.py       the parts of DuckDB's SQL that differ from the SQL of other engines
statement.py     runs a statement, and turns DuckDB's errors into errors of svcctl
syntax.py        quoting, and the types of stored columns
demo_events.py   makes the demo events

Two other folders also use DuckDB. The folder `rendering` writes the rows of responses with DuckDB, for every engine.
The folder `loading` reads files with DuckDB.
"""

from svcctl.service.engines.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
