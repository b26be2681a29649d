"""Tables of events in a shared folder.

The tables are Delta Lake tables. Several processes and engines read and write these tables.

    layout.py          the columns of a table in Delta, with the hidden columns that order its rows
    folder.py          the folder at a URI: its objects, and the settings with which libraries access the folder
    log.py             the log of one table; adds commits to the log
    snapshot.py        a version of a table: its columns, its files and what the files contain
    selects.py         changes plans: uses row counts from the log, and adds sort keys as columns
    writer.py          writes rows to files
    lake.py            makes, extends, replaces and drops tables, by adding commits to their logs
    shared_tables.py   reads, sorts and rewrites rows: loads, trims, compaction
    marks.py           finds the loads between two marks; a mark is the end of a table at some moment
    upkeep.py          merges small files, and removes files that are no longer needed

For example, the table `web.access` is the Delta table `<URI>/web.access`, partitioned by day. Any tool that reads Delta
tables can read this table. This package writes the commits itself instead of using the Delta library. There are two
reasons. Replacing or dropping a table must be one commit. Commits must also be safe on a store that always overwrites
existing objects.

Each load has a number in the hidden column `_load`. Each row of a load has a number in the hidden column `_row`. Rows
keep both numbers when files are rewritten. Rows with the same date are sorted by these numbers, so their order is the
same on every engine. The rows of simultaneous loads are ordered by the numbers of the loads, even if the loads were
committed in another order. The log of the table shows which loads come before a mark.
"""

from svcctl.service.engines.lake.lake import Lake

__all__ = ["Lake"]
