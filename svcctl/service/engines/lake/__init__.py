"""Tables of events in a shared folder: Delta Lake tables, which several processes and engines read and write.

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
read it. The commits are made by this code, not by the Delta library, for two reasons: replacing or dropping a table
must be one commit, and all commits must be safe on a store that does not honour put-if-absent.

Each load has a number, `_load`, and each row of a load has a number, `_row`. Rows keep both numbers when files are
rewritten, so that the numbers order the rows of one date on every engine. Loads that were made at the same time are
ordered by their numbers, whichever load was committed first. The log shows which loads come before a mark.
"""

from svcctl.service.engines.lake.lake import Lake

__all__ = ["Lake"]
