"""The commands that fetch ranges of an export again, also of an export whose manifest is lost."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from svcctl.errors import UsageError
from svcctl.exports.formats import format_of
from svcctl.exports.manifest import Damaged, stored
from svcctl.exports.moments import moment
from svcctl.exports.windows import Target, Window, cut

if TYPE_CHECKING:
    from svcctl.exports.manifest import About, Manifest
    from svcctl.exports.state import State
    from svcctl.storage import Storage


class OfAnotherService(UsageError):
    """A run that is refused because files or a state belong to another service.

    The hint contains THAT_PROFILE, which a caller that knows the profile may replace by its name.
    """

    def __init__(self, message: str, *, hint: str, service: str) -> None:
        super().__init__(message, hint=hint)
        self.service = service


THAT_PROFILE = "the profile of that service with -p"

MOST = 3
"""The most ranges that a hint names."""


def stored_by(state: State | None, storage: Storage, folder: str) -> Manifest | None:
    """The manifest of a state's export; if it is damaged, the error has the command that fetches its files again."""
    try:
        return stored(storage, folder)
    except Damaged as error:
        if state is not None and state.since != state.until:
            error.hint = all_refetched(Target(state.target), state)
        raise


def all_refetched(pattern: Target, state: State) -> str:
    """The command that fetches everything again that a state has exported, when its manifest is lost."""
    files = [] if "://" in state.target else pattern.paths_like(state.directory)
    return refetched([Window(state.since, state.until)], pattern, state.window, files)


def refetched(
    ranges: Sequence[Window], pattern: Target, length: int, files: Collection[str], command: Sequence[str] = ()
) -> str:
    """The command that fetches ranges again whose files no manifest describes; `files` exist, `length` is a window's.

    If names depend on the run, one run over a range would write one file for all of it, beside those that exist. So
    each file is fetched by itself; if the names do not show all runs, the files have to be moved first.
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
    return asked(f"{first}fetch them again", runs, command, " --force")


def asked(what: str, ranges: Sequence[Window], command: Sequence[str], more: str = "") -> str:
    """How to run a command for ranges, one after the other; without a command, the user is told to run their own."""
    options = [f"--from {moment(one.start)} --to {moment(one.end)}{more}" for one in ranges]
    part = f"{what}, the first {MOST} of {len(options)} files," if len(options) > MOST else what
    if not command:
        return f"{part} with the same command, without --state and with {', then with '.join(options[:MOST])}"
    return f"{part} with: {' && '.join(f'{shlex.join(command)} {given}' for given in options[:MOST])}"


def command_of(about: About, target: str, profile: str | None) -> list[str]:
    """The command of an export without its range."""
    named = dict(about.named)
    query, format, _ = named.pop("query"), named.pop("format"), named.pop("service")
    if named["window"] == "1h":
        del named["window"]
    options = [text for name, value in named.items() for text in (f"--{name.replace(' ', '-')}", value)]
    try:
        format_of(target, None)
    except UsageError:  # the ending does not name the format
        options += ["--format", format.partition(".")[0]]
    return ["svcctl", *(["-p", profile] if profile else []), "export", query, *options, "-o", target]
