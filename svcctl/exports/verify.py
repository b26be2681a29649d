"""Verify an export: what is damaged or missing, and the command that fetches it again and nothing that is there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from svcctl.errors import UsageError
from svcctl.exports.export import folder_of
from svcctl.exports.formats import format_of
from svcctl.exports.inventory import Inventory
from svcctl.exports.ownership import sizes_of
from svcctl.exports.record import read, write
from svcctl.exports.run import alone
from svcctl.exports.windows import Window, moment

if TYPE_CHECKING:
    from svcctl.exports.record import About

RUN_AGAIN = "run the export again: it fetches only what is missing"


def damage(found: Inventory) -> Iterator[tuple[str, Window, bool]]:
    """What is wrong, in which range, and whether a file is gone, for each damaged or lost file and missing range."""
    replacing = found.record.replacing
    for entry in found.files():
        address = found.storage.address(entry.path)
        wanted = {entry.sha256}
        wanted.update(new.sha256 for new in replacing[:1] if new.path == entry.path)
        try:
            if found.storage.sha256(entry.path) not in wanted:
                yield f"{address} is damaged", found.named_by(entry), False
        except UsageError:
            yield f"{address} is missing", found.named_by(entry), True
    for gap in found.gaps():
        yield f"{gap} is not exported yet", gap, False


def keep(found: Inventory, date: int) -> tuple[int, int]:
    """Remove from the record what ended by a date; returns how many windows that is, and how many of their files exist.

    UsageError for a date after all that was exported, and for an export that is one file.
    """
    if found.pattern.is_one_file:
        raise UsageError(f"{found.target} is one file, which is kept whole", hint="leave out --keep")
    end = max((end for _, end in found.record.ranges), default=found.record.since)
    if date > end:
        raise UsageError(f"{moment(date)} is after all that was exported, which ends at {moment(end)}")
    folder = folder_of(found.stored)
    with alone(found.storage, found.stored):
        record = read(found.storage, folder) or found.record
        write(found.storage, folder, record.later(date))
    gone = [entry for entry in (*record.entries.values(), *record.merged) if entry.end <= date]
    files = sizes_of(found.storage, [entry.path for entry in gone if entry.is_file], distant="://" in found.target)
    return record.about.count(entry.window for entry in gone), len(files)


def repair(found: Inventory, lost: Sequence[Window], profiles: Sequence[str | None]) -> str:
    """The command that fetches the first lost range again: the next run of a state does not, once it is past that.

    `profiles` are those of the export's service; the command names one if there is one.
    """
    past, about = list(dict.fromkeys(filter(found.is_past, lost))), found.record.about
    one = len(profiles) == 1
    command = command_of(about, found.target, profiles[0] if one else None)
    start = "" if one else f"with a profile of {about.service}, "
    if not past:
        return f"{start}{RUN_AGAIN}: {shlex.join([*command, '--state', str(found.name)])}"
    if found.pattern.is_one_file:
        ranges = [Window(start, end) for start, end in found.record.ranges]
    elif found.pattern.per_run:  # each file has a range of its own, and a run that left no file is unknown
        files = {found.named_by(entry) for entry in found.files()}
        ranges = [window for window in past if window in files]
    else:
        ranges = list(_spans(past, found.record.ranges))
    if not ranges:
        return RUN_AGAIN
    first = shlex.join([*command, "--from", moment(ranges[0].start), "--to", moment(ranges[0].end)])
    return f"{start}fetch what is missing with: {first}" + "; then verify again for the next" * (len(ranges) > 1)


def _spans(lost: Sequence[Window], claimed: Sequence[tuple[int, int]]) -> Iterator[Window]:
    """One range around all losses in each exported range, so that one command fetches them."""
    for start, end in claimed:
        inside = [one for one in lost if start <= one.start < end]
        if inside:
            yield Window(min(one.start for one in inside), max(one.end for one in inside))


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
