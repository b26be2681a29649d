"""Tables of events in a shared folder.

The tables are Delta Lake tables, which several processes and engines read and write.

    layout.py          the columns of a table in Delta, with the hidden columns that order its rows
    folder.py          the folder at a URI: its objects, and the settings by which libraries reach it
    log.py             the log of one table; adds commits to it
    snapshot.py        a version of a table: its columns, its files and what the files contain
    selects.py         changes plans over files: takes row counts from the log, adds sort keys as columns
    writer.py          writes rows to files
    lake.py            makes, extends, replaces and drops tables, by their logs
    shared_tables.py   reads, sorts and rewrites rows: loads, trims, compaction
    marks.py           finds the loads before a mark
    upkeep.py          merges small files, and removes files that are no longer needed

A table `web.access` is the Delta table `<URI>/web.access`, in partitions by day. Any tool that reads Delta tables can
read this table. This code makes the commits, and does not use the Delta library for commits. There are two reasons.
Replacing or dropping a table must be one commit. All commits must be safe even on a store that overwrites an existing
object when a client asks for a new one.

Each load has a number in the hidden column `_load`. Each row of a load has a number in the hidden column `_row`. Rows
keep both numbers when files are rewritten. So the numbers order the rows of one date in the same way on every engine.
Loads that were made at the same time are ordered by their numbers, even if they were committed in another order. The
log shows which loads come before a mark.
"""

from svcctl.service.engines.lake.lake import Lake

__all__ = ["Lake"]
