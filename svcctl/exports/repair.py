"""The command that fetches the lost files of an export again, and nothing that is there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from svcctl.exports.refetch import asked, command_of, refetched
from svcctl.exports.status import Found
from svcctl.exports.windows import Window

RUN_AGAIN = "run the export again: it fetches only what is missing"


def repair(found: Found, lost: Sequence[Window], name: str, profile: str | None) -> str:
    """The command that fetches the lost ranges again: the next run of a state does not, once it has moved past them.

    `name` is the one by which the export was found; it may be that of its state.
    """
    if found.is_running:
        return "a run of this export is going on: verify it again when that has ended"
    past = list(dict.fromkeys(one for one in lost if found.state is None or found.is_past(one)))
    command = command_of(found.manifest.about, found.given, profile)
    if not past:
        known = found.manifest.about.query and found.named is None and name != found.target == found.given
        return f"{RUN_AGAIN}: {shlex.join([*command, '--state', name])}" if known else RUN_AGAIN
    if forgotten := found.forgotten():  # files with these names may exist
        return refetched(forgotten, found.pattern, found.manifest.about.window, found.strangers(), command)
    if found.named is not None:
        ranges = past
    elif found.pattern.is_one_file:
        if past == [entry.window for entry in found.manifest.merged]:
            return asked("fetch the whole file again", past, command)
        ranges = [Window(start, end) for start, end in found.manifest.claimed]
    elif found.per_run:  # each file has a range of its own, and a run that left no file is unknown
        files = {found.named_by(entry) for entry in found.published}
        ranges = [window for window in past if window in files]
    else:
        ranges = list(_spans(past, found.manifest.claimed))
    return asked("fetch what is missing", ranges, command) if ranges else RUN_AGAIN


def _spans(lost: Sequence[Window], claimed: Sequence[tuple[int, int]]) -> Iterator[Window]:
    """One range around all losses in each exported range, so that one command fetches them."""
    for start, end in claimed:
        inside = [one for one in lost if start <= one.start < end]
        if inside:
            yield Window(min(one.start for one in inside), max(one.end for one in inside))
