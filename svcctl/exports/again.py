"""How files that an export has lost are fetched again: a command for each range, and nothing that is there."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from svcctl.api.outline import one_line
from svcctl.errors import UsageError
from svcctl.exports.formats import format_of
from svcctl.exports.manifest import Damaged, stored
from svcctl.exports.moments import moment
from svcctl.exports.windows import Target, Window, cut

if TYPE_CHECKING:
    from svcctl.exports.manifest import About, Manifest
    from svcctl.exports.state import State
    from svcctl.exports.status import Found
    from svcctl.storage import Storage

MOST = 3
"""Ranges that a hint names."""
RUN_AGAIN = "run the export again: it fetches only what is missing"


def repair(found: Found, lost: Sequence[Window], profile: str | None) -> str:
    """What fetches the lost ranges again: by itself, the next run of a state fetches none that it has moved past."""
    if found.is_running:
        return "a run of this export is going on: verify it again when that has ended"
    past = list(dict.fromkeys(one for one in lost if found.state is None or found.is_past(one)))
    if not past:
        return RUN_AGAIN
    command = _command(found.manifest.about, found.given, profile)
    if forgotten := found.forgotten():  # files of these names may be there
        return refetched(forgotten, found.pattern, found.manifest.about.window, found.strangers(), command)
    if found.named is not None:
        ranges = past
    elif found.pattern.is_one_file:
        if past == [entry.window for entry in found.manifest.merged]:
            return _asked("fetch the whole file again", past, command)
        ranges = [Window(start, end) for start, end in found.manifest.claimed]
    elif found.per_run:  # each file has a range of its own, and a run that left none is not known
        files = {found.named_by(entry) for entry in found.published}
        ranges = [window for window in past if window in files]
    else:
        ranges = list(_spans(past, found.manifest.claimed))
    return _asked("fetch what is missing", ranges, command) if ranges else RUN_AGAIN


def stored_by(state: State | None, storage: Storage, folder: str) -> Manifest | None:
    """The manifest of a state's export; where it is damaged, the error says what fetches its files again."""
    try:
        return stored(storage, folder)
    except Damaged as error:
        if state is not None and state.since != state.until:
            error.hint = all_refetched(Target(state.target), state)
        raise


def all_refetched(pattern: Target, state: State) -> str:
    """What fetches all that a state has exported again, of which there is no manifest any more."""
    if state.since is None:  # as in states of earlier versions
        start = f"--from the start of what was there --to {moment(state.until)} --force"
        return f"fetch them again with the same command, without --state and with {start}"
    files = [] if "://" in state.target else pattern.paths_like(state.directory)
    return refetched([Window(state.since, state.until)], pattern, state.window, files)


def refetched(
    ranges: Sequence[Window], pattern: Target, length: int, files: Collection[str], command: Sequence[str] = ()
) -> str:
    """What fetches ranges again whose files are not known any more, cut in windows of a length; `files` are there.

    Where names depend on the run, one run over a range would write one file of all, beside those that are there. So
    each file is fetched by itself, or where the names do not tell all runs, the files have to go first.
    """
    runs, first = [Window(ranges[0].start, ranges[-1].end)], ""
    if pattern.per_run:
        windows = [one for each in ranges for one in cut(each.start, each.end, length, pattern.zone)]
        names = {pattern.path(one): one.start for one in windows}
        if names.keys() >= {*files} >= {pattern.path(each) for each in ranges}:
            edges = sorted(names[file] for file in files)
            runs = [
                Window(*ends)
                for each in ranges
                for ends in pairwise([*(edge for edge in edges if each.start <= edge < each.end), each.end])
            ]
        else:
            first = "move the files of this range to another folder; then "
    return _asked(f"{first}fetch them again", runs, command, " --force")


def _asked(what: str, ranges: Sequence[Window], command: Sequence[str], more: str = "") -> str:
    """What a command does for ranges, one after the other; without a command, it is the one that a person has."""
    options = [f"--from {moment(one.start)} --to {moment(one.end)}{more}" for one in ranges]
    part = f"{what}, the first {MOST} of {len(options)} files," if len(options) > MOST else what
    if not command:
        return f"{part} with the same command, without --state and with {', then with '.join(options[:MOST])}"
    return f"{part} with: {' && '.join(f'{shlex.join(command)} {given}' for given in options[:MOST])}"


def _command(about: About, target: str, profile: str | None) -> list[str]:
    """The command of an export but its range; empty when nobody knows where it went."""
    if not target:
        return []
    named = dict(about.named)
    query, format, _ = named.pop("query"), named.pop("format"), named.pop("service")
    if named["window"] == "1h":
        del named["window"]
    options = [text for name, value in named.items() for text in (f"--{name.replace(' ', '-')}", value)]
    try:
        format_of(target, None)
    except UsageError:  # the ending does not say it
        options += ["--format", format.partition(".")[0]]
    return ["svcctl", *(["-p", profile] if profile else []), "export", one_line(query), *options, "-o", target]


def _spans(lost: Sequence[Window], claimed: Sequence[tuple[int, int]]) -> Iterator[Window]:
    """A range for all that is lost of each range that was exported: what is there in between is not fetched again."""
    for start, end in claimed:
        inside = [one for one in lost if start <= one.start < end]
        if inside:
            yield Window(min(one.start for one in inside), max(one.end for one in inside))
