"""Mark missing files of an export as removed on purpose, for example by retention.

Their windows stay in the manifest, so no run takes them for a gap. A file that comes back is verified as others are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from svcctl.errors import NotFound, UsageError
from svcctl.exports.export import folder_of
from svcctl.exports.manifest import Entry, store, stored
from svcctl.exports.run import alone
from svcctl.exports.status import Found
from svcctl.exports.windows import Target
from svcctl.storage.targets import open_target


def forget(found: Found, before: float, environment: Mapping[str, str]) -> list[Entry]:
    """Mark all missing files whose time ends at or before an epoch second; returns them, the oldest first."""
    if found.named is not None:
        raise UsageError(
            f"{found.place} is one file of an export", hint="name its state, or the pattern as given to -o"
        )
    storage, path = open_target(found.place, environment)
    target = Target(path)
    with alone(storage, target):
        manifest = stored(storage, folder_of(target))
        if manifest is None:
            raise NotFound(f"nothing is exported to {found.place} yet")
        now = replace(found, storage=storage, manifest=manifest)
        gone = {entry for entry in now.gone() if entry.end <= before}

        def noted(entry: Entry) -> Entry:
            return replace(entry, removed=True) if entry in gone else entry

        entries = {window: noted(entry) for window, entry in manifest.entries.items()}
        store(storage, folder_of(target), replace(manifest, entries=entries, merged=tuple(map(noted, manifest.merged))))
    return sorted(gone, key=lambda entry: entry.start)
