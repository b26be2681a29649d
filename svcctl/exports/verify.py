"""Verify an export: what is damaged or missing, and the command that fetches it again and nothing that is there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from svcctl.errors import UsageError
from svcctl.exports.export import folder_of
from svcctl.exports.formats import format_of
from svcctl.exports.record import read, write
from svcctl.exports.run import alone
from svcctl.exports.status import Found
from svcctl.exports.windows import Window, moment

if TYPE_CHECKING:
    from svcctl.exports.record import About

RUN_AGAIN = "run the export again: it fetches only what is missing"

MOST = 3
"""The most ranges that a hint names."""


def damage(found: Found) -> Iterator[tuple[str, Window]]:
    """What is wrong, and in which range, for each file that is not as it was written and each missing range."""
    replacing = found.record.replacing
    for entry in found.files():
        address = found.storage.address(entry.path)
        wanted = {entry.sha256}
        wanted.update(new.sha256 for new in replacing[:1] if new.path == entry.path)
        try:
            if found.storage.sha256(entry.path) not in wanted:
                yield f"{address} is damaged", found.named_by(entry)
        except UsageError:
            yield f"{address} is missing", found.named_by(entry)
    for gap in found.gaps():
        yield f"{gap} is not exported yet", gap


def keep(found: Found, date: int) -> Found:
    """Note in the record that files of windows that ended by a date are not kept; returns the export from then on."""
    if found.one is not None:
        raise UsageError(
            f"{found.place} is one file of an export", hint="name its state, or the pattern as given to -o"
        )
    folder = folder_of(found.stored)
    with alone(found.storage, found.stored):
        record = read(found.storage, folder) or found.record
        write(found.storage, folder, record.later(date))
    return found.later(date)


def repair(found: Found, lost: Sequence[Window], profile: str | None) -> str:
    """The command that fetches the lost ranges again: the next run of a state does not, once it has moved past them."""
    if found.is_running:
        return "a run of this export is going on: verify it again when that has ended"
    past = list(dict.fromkeys(filter(found.is_past, lost)))
    command = command_of(found.record.about, found.given, profile)
    if not past:
        return f"{RUN_AGAIN}: {shlex.join([*command, '--state', str(found.name)])}"
    if found.one is not None:
        ranges = past
    elif found.pattern.is_one_file:
        if past == [entry.window for entry in found.record.merged]:
            return _asked("fetch the whole file again", past, command)
        ranges = [Window(start, end) for start, end in found.record.ranges]
    elif found.pattern.per_run:  # each file has a range of its own, and a run that left no file is unknown
        files = {found.named_by(entry) for entry in found.published}
        ranges = [window for window in past if window in files]
    else:
        ranges = list(_spans(past, found.record.ranges))
    return _asked("fetch what is missing", ranges, command) if ranges else RUN_AGAIN


def _spans(lost: Sequence[Window], claimed: Sequence[tuple[int, int]]) -> Iterator[Window]:
    """One range around all losses in each exported range, so that one command fetches them."""
    for start, end in claimed:
        inside = [one for one in lost if start <= one.start < end]
        if inside:
            yield Window(min(one.start for one in inside), max(one.end for one in inside))


def _asked(what: str, ranges: Sequence[Window], command: Sequence[str]) -> str:
    """How to run a command for ranges, one after the other."""
    options = [f"--from {moment(one.start)} --to {moment(one.end)}" for one in ranges]
    part = f"{what}, the first {MOST} of {len(options)} files," if len(options) > MOST else what
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
