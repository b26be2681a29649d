"""The log of one table.

Each version of the table is a commit. A commit is an object in the log that only one writer can create.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from svcctl import __version__
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import Unavailable
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.engines.lake.layout import LOADED_KEY, REMOVED_KEY

Action = dict[str, Any]
ATTEMPTS = 200
WAIT_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """A commit in the log of a table.

    `load` is the number of the load that the commit stores. `begun` is the ID of the table if the commit creates the
    table or changes its columns. `removed` has the paths of the files that the commit removes. `loaded_ids` has the
    load IDs that the commit records (see `load_id` of `Tables.append`). `commit` is the ID of the commit. All events
    that the commit may have removed are dated before `cut`. If the commit has removed no events, `cut` is None.
    """

    load: int | None
    begun: str | None
    removed: frozenset[str]
    loaded_ids: frozenset[str]
    commit: str | None
    cut: datetime | None = None


class Log:
    """The versions of one table, counted from 0."""

    def __init__(self, folder: Folder, table: str) -> None:
        self._folder = folder
        self._table = table
        self._path = f"{table}/_delta_log"
        self._entries: dict[int, CommitEntry] = {}

    def has(self, version: int) -> bool:
        return self._folder.storage.size(self._folder.name(self._object(version))) is not None

    def holds(self, version: int) -> bool:
        """Whether the log has a version, as a commit or as a checkpoint."""
        checkpoint = f"{self._path}/{version:020}.checkpoint.parquet"
        return self.has(version) or self._folder.storage.size(self._folder.name(checkpoint)) is not None

    def entry(self, version: int) -> CommitEntry:
        """Return the commit of a version. Raises UsageError if the log no longer has this version."""
        if version not in self._entries:
            name = self._folder.name(self._object(version))
            with self._folder.checked():
                lines = b"".join(self._folder.storage.read(name)).splitlines()
            self._entries[version] = _entry([json.loads(line) for line in lines])
        return self._entries[version]

    def commit(
        self,
        version: int,
        actions: Callable[[], Sequence[Action]],
        operation: str,
        *,
        load: int | None = None,
        cut: datetime | None = None,
        conflict: Callable[[CommitEntry], None] | None = None,
    ) -> int:
        """Add a version to the log. Returns the number of the new version.

        `version` is the latest version that the caller knows. The new version comes after `version`. The function
        `actions` returns the content of the commit. If other writers have added versions meanwhile, `conflict` is
        called with each of their commits. If `conflict` raises an error, no version is added. Otherwise, `actions` is
        called again for the next attempt. Raises Unavailable if the previous version is missing from the log, or if too
        many other writers add versions.
        """
        mark = uuid.uuid4().hex
        info: Action = {
            "timestamp": seconds_to_ms(time.time()),
            "operation": operation,
            "operationParameters": {},
            "engineInfo": f"svcctl/{__version__}",
            "svcctl.commit": mark,
            **({} if load is None else {LOADED_KEY: load}),
            **({} if cut is None else {REMOVED_KEY: cut.isoformat()}),
        }
        for attempt in range(ATTEMPTS):
            with self._folder.writing():
                lines = [{"commitInfo": info}, *actions()]
                if version >= 0 and not self.holds(version):
                    raise Unavailable(
                        f"cannot write table '{self._table}': version {version} is no longer in {self._folder.uri}"
                    )
                data = "".join(json.dumps(line) + "\n" for line in lines).encode()
                if self._folder.put_new(self._object(version + 1), data):
                    return version + 1
            previous = version
            # Skip all new versions at once. Otherwise, a slow writer would never succeed.
            while self.has(version + 1):
                version += 1
                made = self.entry(version)
                if made.commit == mark:  # our own commit: the response was lost, and the request was repeated
                    return version
                if conflict is not None:
                    conflict(made)
            if version == previous:  # the writer that began this version has failed
                time.sleep(WAIT_SECONDS * min(attempt + 1, 20))
        raise Unavailable(f"{self._folder.uri}: too many other processes write to {self._table}")

    def _object(self, version: int) -> str:
        return f"{self._path}/{version:020}.json"


def _cut(info: Action, actions: Sequence[Action]) -> datetime | None:
    """Return a date that is later than every event that a commit may have removed.

    Return None if the commit has removed no events. For a commit that removes events but does not state the date,
    return the latest possible date.
    """
    if REMOVED_KEY in info:
        return datetime.fromisoformat(info[REMOVED_KEY])
    changes = any(action["remove"].get("dataChange", True) for action in actions if "remove" in action)
    return datetime.max if changes and LOADED_KEY not in info else None


def _entry(actions: Sequence[Action]) -> CommitEntry:
    info: Action = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    return CommitEntry(
        info.get(LOADED_KEY),
        next((action["metaData"]["id"] for action in actions if "metaData" in action), None),
        frozenset(action["remove"]["path"] for action in actions if "remove" in action),
        frozenset(action["txn"]["appId"] for action in actions if "txn" in action),
        info.get("svcctl.commit"),
        _cut(info, actions),
    )
