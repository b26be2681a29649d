"""Find the files of earlier runs that are missing when a run of a state starts: each is reported once.

Users who remove shipped files remove the oldest first. That is reported the first time only; a file that is missing
between others is always reported.
"""

from __future__ import annotations

import os
from bisect import bisect
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from svcctl.exports.manifest import union

if TYPE_CHECKING:
    from svcctl.exports.export import Export
    from svcctl.exports.manifest import Entry, Manifest

Ranges = tuple[tuple[int, int], ...]


def gone(export: Export, manifest: Manifest, known: Ranges) -> tuple[Sequence[Entry], Ranges]:
    """The local files of earlier runs that are missing and not reported yet, and the ranges of all missing files.

    `known` are the ranges that were reported. It only checks that files exist; on a server, even that takes too long.
    """
    if export.distant:
        return [], ()
    described = manifest.entries.values() if export.target.per_window else manifest.merged
    missed = (one for one in described if one.end <= export.whole.start and not one.removed)
    earlier = sorted(missed, key=lambda one: one.start)
    address = export.storage.address
    lost = {one.window for one in earlier if one.path and not os.access(address(one.path), os.F_OK)}

    def is_known(entry: Entry) -> bool:
        at = bisect(known, entry.start, key=lambda one: one[0]) - 1
        return at >= 0 and entry.end <= known[at][1]

    oldest = 0
    if lost and is_known(earlier[0]):
        oldest = sum(1 for _ in takewhile(lambda one: one.window in lost, earlier))
    new = [one for one in earlier[oldest:] if one.window in lost and not is_known(one)]
    return new, union((window.start, window.end) for window in lost)
