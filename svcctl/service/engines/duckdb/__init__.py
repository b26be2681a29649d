"""DuckDB in this process: the embedded engine, and whatever else the service has DuckDB do for it.

    engine.py      the tables, in one file
    statement.py   one running statement, and DuckDB's errors as ours
    text.py        quoting, and the types by which columns are stored

Beside this folder only `rendering` knows DuckDB, which writes the rows of responses for every engine.
"""

from svcctl.service.engines.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
