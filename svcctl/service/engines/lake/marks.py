"""The marks of tables in a shared folder.

A mark consists of the ID of a table and the version of the table's latest load. All loads up to this version come
before the mark. Compacting and trimming a table also make versions. But these versions have no loads, so the mark at
the end of the table stays the same. The rows of a load are found by the number of the load, even if the rows were moved
to other files.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from svcctl.errors import ServiceError, UsageError
from svcctl.service.engines import Mark
from svcctl.service.engines.lake.log import CommitEntry, Log
from svcctl.service.engines.lake.snapshot import Loads, Snapshot
from svcctl.service.engines.table_rules import moved, replaced


def mark(log: Log, snapshot: Snapshot) -> Mark:
    """Return the mark at the end of a table at the time of a snapshot."""
    version = snapshot.version
    while version > 0:
        made = _entry(log, snapshot.name, version)
        if made.load is not None or made.begun == snapshot.id:
            break
        version -= 1
    return f"{version}.{snapshot.id}"


def check(snapshot: Snapshot | None, name: str, of: Mark) -> int:
    """Return the version of a mark. Raises ServiceError if the mark does not belong to the snapshot's table."""
    if isinstance(of, int):
        raise moved(name)
    version, _, id_ = of.partition(".")
    if snapshot is None or id_ != snapshot.id:
        raise replaced(name)
    return int(version)


def loads(log: Log, snapshot: Snapshot, since: Mark | None, until: Mark | None) -> Loads | None:
    """Return the loads after the mark `since`, up to the mark `until`.

    Return None if both marks are None.
    """
    first = None if since is None else check(snapshot, snapshot.name, since)
    last = None if until is None else check(snapshot, snapshot.name, until)
    if first is not None:
        end = snapshot.version if last is None else last
        return Loads(_between(log, snapshot.name, first, end))
    if last is not None:
        return Loads(_between(log, snapshot.name, last, snapshot.version), excluded=True)
    return None


def cuts(log: Log, snapshot: Snapshot, until: Mark | None) -> Iterator[datetime]:
    """Yield a date for each commit that comes after the mark `until` and may have removed events.

    The removed events are earlier than this date.
    """
    last = snapshot.version if until is None else check(snapshot, snapshot.name, until)
    entries = (_entry(log, snapshot.name, version) for version in range(last + 1, snapshot.version + 1))
    return (entry.cut for entry in entries if entry.cut is not None)


def _between(log: Log, name: str, first: int, last: int) -> frozenset[int]:
    entries = (_entry(log, name, version) for version in range(first + 1, last + 1))
    return frozenset(entry.load for entry in entries if entry.load is not None)


def _entry(log: Log, name: str, version: int) -> CommitEntry:
    try:
        return log.entry(version)
    except UsageError:
        raise ServiceError(
            f"the log of table '{name}' no longer has version {version}, so the query cannot continue",
            hint="a new query or job reads all events of the table",
        ) from None
