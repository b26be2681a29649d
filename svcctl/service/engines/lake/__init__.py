"""Tables of events in a shared folder: Delta Lake tables, which several processes and engines read and write.

    layout.py      columns of a table as Delta has them, and the hidden ones that give each row its place
    folder.py      the folder behind a URI: objects, and what libraries need to reach it
    log.py         the log of one table: commits of our own, one after the other
    snapshot.py    a version of a table: its columns, its files and what they hold
    writer.py      rows as files
    lake.py        the tables: made, appended to, replaced, dropped
    marks.py       which loads a mark encloses
    upkeep.py      small files made into large ones, and files that nobody needs removed

A table `web.access` is the Delta table `<URI>/web.access`, in partitions by day. Any tool that reads Delta tables reads
it. Commits are made here and not by the library, since replacing and dropping must be one commit, too, and since all
must agree on what happens where a store does not honour put-if-absent.

Each load has a number, `_load`, and each of its rows a number within it, `_row`. Both stay when files are made into
others, so that they order the rows of one date on every engine. The order of loads that were made at the same time is
that of their numbers, whichever was committed first; which loads a mark encloses is told by the log.
"""

from svcctl.service.engines.lake.lake import Lake

__all__ = ["Lake"]
