"""Finds files of a table to merge, and removes old files that loads and compactions have replaced.

A query may still read files that were replaced after the query began. Marks may still need log entries that are older
than a checkpoint. So replaced files and old log entries are kept for some time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from svcctl.service.engines.lake.lake import Lake
from svcctl.service.engines.lake.snapshot import File, translated

DAY = timedelta(days=1)
SMALL_ROWS = 1_000_000
"""Adjacent files are merged if the merged file has at most this many rows."""


def vacuum(lake: Lake, name: str, keep: timedelta) -> int:
    """Remove the files that the table has not needed for the time `keep`. Returns the number of removed files.

    The removed files include the files of a dropped table. If `keep` is at least a day, files without a commit, which
    killed loads have left, are also removed. With a shorter time, a file without a commit could belong to a load that
    is still running.
    """
    reader = lake.reader(name)
    if reader.version < 0:
        return 0  # the folder is not the folder of a table
    table = reader.table
    with lake.folder.writing(), translated(name, lake.folder.table_uri(name)):
        table.update_incremental()
        hours = int(keep.total_seconds() // 3600)
        removed = table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=keep >= DAY)
        table.create_checkpoint()
        table.cleanup_metadata()
    return len(removed)


def together(files: Iterable[File]) -> list[list[File]]:
    """Return the groups of files to merge. All files of a group have the same day.

    Files are merged if their dates overlap, if the rows of a file are not in order, or if adjacent files are small.
    """
    groups: list[list[File]] = []
    for file in sorted(files, key=lambda file: (file.day, file.oldest, file.newest)):
        group = groups[-1] if groups else []
        if group and file.day == group[0].day:
            overlaps = file.oldest < max(member.newest for member in group)
            if overlaps or not file.ordered or sum(member.rows for member in (*group, file)) <= SMALL_ROWS:
                group.append(file)
                continue
        groups.append([file])
    return [group for group in groups if len(group) > 1 or not group[0].ordered]
