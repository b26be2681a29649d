"""The range of a run: from --from or from where the state ends, to --to; and what to say about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from svcctl.api.query import outline
from svcctl.cli.inputs import query_text
from svcctl.dates.lengths import UNITS, length_text
from svcctl.dates.operators import operator_of
from svcctl.dates.range import both_ago, choose, shifted
from svcctl.dates.shorthand import EVERY
from svcctl.errors import UsageError
from svcctl.exports.windows import Window, around, moment

if TYPE_CHECKING:
    from svcctl.exports.export import Export


@dataclass(frozen=True, slots=True)
class Given:
    """The dates on a command line, and what else decides a range.

    `until` is where the state ends, None without one; `incremental` says that there is a state, or will be. With
    `settled`, the end may be in the future. `writes_dates` says that the service writes the dates of this format.
    """

    from_: Any
    to: Any
    date_format: str | None
    zone: str | None
    until: int | None
    incremental: bool
    settled: int | None
    writes_dates: bool
    query: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """A range in epoch seconds, how dates are written, and what the user should know about it."""

    start: int
    end: int
    date_format: str | None
    zone: str
    notes: tuple[str, ...]


def resolve(given: Given, now: datetime, *, terminal: bool) -> Resolved:
    """The range of a run that begins now. UsageError when there is none."""
    until = given.until
    if until is None and given.from_ is None:
        first = ", on the first run at least" * given.incremental
        raise UsageError("the range has no start", hint=f"give it with --from{first}")
    if until is not None:
        now = max(now, datetime.fromtimestamp(until, UTC))  # if the clock went back, there is nothing to export
        _refuse_an_end_before(until, given, now)
    start_from = given.from_ if until is None else until
    chosen = choose(start_from, given.to, given.date_format, given.zone, now=now, written=given.writes_dates)
    start, end = chosen.range.start, chosen.range.end
    assert end is not None
    if end > now and given.settled is None:
        raise UsageError(
            f"the range ends in the future, at {end:%Y-%m-%d %H:%M:%S} UTC",
            hint=(both_ago(given.from_, given.to) if until is None else None)
            or "give --to now, or add --lag 10m to leave out the windows that have not ended",
        )
    every = outline(given.query).every
    notes = (
        chosen.summary if (terminal and not chosen.plain) or _looks_back(given.to) else None,
        chosen.slip if until is None else None,
        chosen.short,
        shifted(chosen, every, formula=False) if every else None,  # the formula's groups cannot be exported
        *query_text.slips(given.query),
    )
    ends = int(start.timestamp()), int(end.timestamp())
    return Resolved(*ends, chosen.date_format, chosen.zone_name, tuple(filter(None, notes)))


def _refuse_an_end_before(start: int, given: Given, now: datetime) -> None:
    """UsageError when --to lies before the start that a state gives, which the command does not show."""
    if counts_from_start(given.to):
        return  # as it does in a range without a state
    end = choose(0, given.to, None, given.zone, now=now, written=False).range.end
    if end is not None and end.timestamp() < start:
        raise UsageError(
            f"--to is {end:%Y-%m-%d %H:%M:%S} UTC, before the start that comes from the state: "
            f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC",
            hint="leave out --to to go on from there, or leave out --state to export another range",
        )


def counts_from_start(to: Any) -> bool:
    """Whether --to is relative to the start, as 1d is and today is not."""
    operator = operator_of(to, EVERY)
    return operator is not None and not operator.plain


def _looks_back(to: Any) -> bool:
    """Whether --to is relative to --from but written like a date before now, as 2ad is."""
    operator = operator_of(to, EVERY)
    return operator is not None and operator.name in ("<N>ad", "<N>ah")


# What to say about the windows of a range


def notes(export: Export, given: Given, end: int, now: int) -> Iterator[str]:
    """What to say about the windows of a run up to `end`, and about those that are not in it."""
    yield from export.notes
    if given.until is None and export.target.per_window and export.windows:
        yield from _cut_files(export, given.from_, now)
    if not export.windows:
        yield f"nothing to export{_why_nothing(export, end, now, given.settled)}"
    elif not given.incremental and export.whole.end < end:
        left = Window(export.whole.end, end)
        one = left.count(export.about.window, export.target.zone) == 1
        which = "a window that has" if one else "windows that have"
        ends = f"{moment(left.start)} to {moment(left.end)}"
        yield f"left out {ends}: {which} not ended, or ended less than --lag ago"


def _why_nothing(export: Export, end: int, now: int, settled: int | None) -> str:
    """Why a run up to `end` has no window: all are exported, none has ended, or --lag leaves out the ended ones."""
    start = export.whole.start
    until = around(start, export.about.window, export.target.zone).end
    if end <= start and end < now:
        return f": all windows up to --to, {moment(end)}, are exported"
    if settled is not None and settled < until <= min(end, now):
        lag = length_text(now - settled)
        ended = f"{moment(start)} to {moment(until)} ended less than {lag} ago"
        return f" yet: the window {ended}; --lag leaves it for the next run"
    return f" yet: no window has ended since {moment(start)}"


def _cut_files(export: Export, from_: Any, now: int) -> Iterator[str]:
    """The first or last file that has only a part of its window, if its name is that of the whole window.

    Nothing is said about a window that has not ended by `now`, of which a part is expected.
    """
    target, length = export.target, export.about.window

    def told(window: Window, whole: Window, what: str) -> Iterator[str]:
        name = target.path(export.whole, window)
        if whole != window and target.path(export.whole, whole) == name:
            yield f"{export.storage.address(name)} has a part of its window: {what}"

    first, last = export.windows[0], export.windows[-1]
    start = around(first.start, length, target.zone).start
    begin, given = moment(start, target.zone), re.fullmatch(r"(\d+)d", str(from_))
    # In a crontab, a start in whole days before today is right every night; hours have no such form.
    aligned = begin if given is None or UNITS["d"] % length else f"{given[1]}ad"
    begins = f"its events begin at {moment(first.start, target.zone)}, not at {begin}"
    yield from told(first, Window(start, first.end), f"{begins}; --from {aligned} begins with a whole one")
    full = around(last.start, length, target.zone)
    if full.end <= now:
        end = moment(full.end, target.zone)
        out = "" if first == last else f"--to {moment(full.start, target.zone)} leaves it out, "
        ends = f"its events end at {moment(last.end, target.zone)}, not at {end}"
        yield from told(last, Window(last.start, full.end), f"{ends}; {out}--to {end} ends with a whole one")
