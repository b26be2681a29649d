"""The messages of a run of an export: its windows, its summary, its gaps, and its figures for collectors."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svcctl.cli.context import Context
from svcctl.dates.lengths import UNITS, length_text
from svcctl.dates.shorthand import named_zone, offset_name
from svcctl.errors import IncompleteResult, Locked, SvcctlError, UsageError
from svcctl.exports.moments import ends, moment
from svcctl.io import home
from svcctl.terminal.records import WINDOWS
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.exports.export import Export, Summary
    from svcctl.exports.gone import Ranges
    from svcctl.exports.manifest import Entry, Manifest
    from svcctl.exports.windows import Window
    from svcctl.exports.workers import Workers

RESUMES = "the same command again fetches only what is missing"


def names_profiles(svc: Context) -> Callable[[object, BaseException | None, object], None]:
    """An exit function for a block: it puts the profile's name into the hint of OfAnotherService."""
    from svcctl.exports.refetch import THAT_PROFILE, OfAnotherService

    def name(kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OfAnotherService) and (profiles := svc.profiles_at(error.service)):
            error.hint = str(error.hint).replace(
                THAT_PROFILE, " or ".join(f"-p {shlex.quote(str(each))}" for each in profiles)
            )

    return name


def print_windows(svc: Context, export: Export) -> None:
    tasks = export.tasks() if export.target.per_window else {}
    rows = (
        [moment(window.start), moment(window.end), tasks[window].path if tasks else export.path]
        for window in export.windows
    )
    svc.output.records(WINDOWS, rows, svc.format(None, lists=True))


def tell_nothing(svc: Context, export: Export, end: int, now: int, settled: int | None) -> None:
    """Say why a run up to `end` has no window: all are exported, none has ended, or --lag leaves out the ended ones."""
    from svcctl.exports.windows import around

    start = export.whole.start
    until = around(start, export.about.window, export.target.zone).end
    why = f" yet: no window has ended since {moment(start)}"
    if end <= start and end < now:
        why = f": all windows up to --to, {moment(end)}, are exported"
    elif settled is not None and settled < until <= min(end, now):
        lag = length_text(now - settled)
        ended = f"{moment(start)} to {moment(until)} ended less than {lag} ago"
        why = f" yet: the window {ended}; --lag leaves it for the next run"
    svc.diagnostics.note(f"nothing to export{why}")


def tell_gone(svc: Context, name: str | None, export: Export, found: Manifest | None, known: Ranges) -> Ranges:
    """Report that files of earlier runs, or their manifest, are gone; returns the ranges reported so far.

    `known` are the ranges that earlier runs have reported.
    """
    from svcctl.exports.gone import gone

    if found is None:
        which = f"'svcctl export verify {name}' tells of which files"
        svc.diagnostics.warning(f"the manifest of earlier runs is gone: {which}")
        return known
    new, ranges = gone(export, found, known)
    if new and svc.diagnostics.quiet:
        return known
    if new:
        first = export.storage.address(new[0].path)
        which = f"1 file of an earlier window is gone: {first}"
        if len(new) > 1:
            which = f"{len(new)} files of earlier windows are gone (first: {first})"
        svc.diagnostics.note(f"{which}; see 'svcctl export verify {name}'")
    return ranges


def tell_cut(svc: Context, export: Export, from_: Any, now: int) -> None:
    """Say that the first or last file has only a part of its window, if its name is that of the whole window.

    Nothing is said about a window that has not ended by `now`, of which a part is expected.
    """
    from svcctl.exports.windows import Window, around

    target, length = export.target, export.about.window
    if not target.per_window or not export.windows:
        return

    def tell(window: Window, whole: Window, what: str) -> None:
        name = target.path(export.whole, window)
        if whole != window and target.path(export.whole, whole) == name:
            svc.diagnostics.note(f"{export.storage.address(name)} has a part of its window: {what}")

    first, last = export.windows[0], export.windows[-1]
    start = around(first.start, length, target.zone).start
    begin, given = moment(start, target.zone), re.fullmatch(r"(\d+)d", str(from_))
    # In a crontab, a start in whole days before today is right every night; hours have no such form.
    aligned = begin if given is None or UNITS["d"] % length else f"{given[1]}ad"
    begins = f"its events begin at {moment(first.start, target.zone)}, not at {begin}"
    tell(first, Window(start, first.end), f"{begins}; --from {aligned} begins with a whole one")
    full = around(last.start, length, target.zone)
    if full.end <= now:
        end = moment(full.end, target.zone)
        out = "" if first == last else f"--to {moment(full.start, target.zone)} leaves it out, "
        ends = f"its events end at {moment(last.end, target.zone)}, not at {end}"
        tell(last, Window(last.start, full.end), f"{ends}; {out}--to {end} ends with a whole one")


def tell_left_out(svc: Context, export: Export, end: int) -> None:
    """Say which windows at the end of the range --lag leaves out, if there is no next run to fetch them."""
    from svcctl.exports.windows import Window

    left = Window(export.whole.end, end)
    one = left.count(export.about.window, export.target.zone) == 1
    which = "a window that has" if one else "windows that have"
    svc.diagnostics.note(
        f"left out {moment(left.start)} to {moment(left.end)}: {which} not ended, or ended less than --lag ago"
    )


def tell_due(svc: Context, export: Export, settled: int) -> None:
    """Say that at least as many windows are due as this run exports: a --to relative to the start never catches up."""
    from svcctl.exports.windows import ended

    due = ended(export.whole.end, settled, export.about.window, export.target.zone)
    if due >= len(export.windows):
        have = counted(due, "more window has", "more windows have")
        svc.diagnostics.note(f"{have} ended: without --to, the next run exports all")


def tell_offsets(svc: Context, export: Export) -> None:
    """Say which dates of groups have the offset from before a clock change: a request has one offset for all dates."""
    from svcctl.exports.windows import with_one_offset

    zone = export.request.time_zone
    if zone is None or export.plain:
        return
    for _, after in pairwise(with_one_offset(export.whole, zone)):
        window = next(each for each in export.windows if each.start <= after.start < each.end)
        if window.start < after.start:
            svc.diagnostics.note(
                f"the clocks of {zone} change at {moment(after.start)}: dates after that, up to {moment(window.end)}, "
                f"have the earlier offset, {offset_name(zone, window.start)}"
            )


def report(svc: Context, export: Export, workers: Workers, figures: dict[str, float], *, keep_going: bool) -> Summary:
    """Run an export and report it; fills in `figures`, for collectors."""
    from svcctl.exports.workers import Going, perform

    if workers.scheduler is None:
        workers.connect()  # a local service starts before the line of progress does
    going = Going()

    def told(entry: Entry) -> None:
        figures["rows"] += entry.rows
        figures["bytes"] += entry.bytes
        svc.diagnostics.event("window", **ends(entry.window), **{name: getattr(entry, name) for name in _TOLD})

    def changed(before: str, now: str) -> None:
        svc.diagnostics.warning(f"the columns are not those of earlier files any more: {now} (before: {before})")

    svc.diagnostics.event("start", **ends(export.whole), windows=len(export.windows))
    try:
        with svc.diagnostics.working(going.line):
            summary = perform(export, workers, going, told, changed, keep_going=keep_going)
    finally:
        svc.diagnostics.trouble = going.progress.trouble
        figures |= {
            "retries": going.progress.retries,
            "windows": len(export.windows),
            "windows_fetched": going.fetched,
            "windows_missing": len(export.windows) - going.done,
        }
    figures |= {
        "success": float(not summary.gaps),
        "until_seconds": summary.until,
        "rows": summary.rows,
        "bytes": summary.bytes,
        "windows_fetched": summary.fetched,
        "windows_missing": len(summary.gaps),
    }
    counts = {
        "rows": summary.rows,
        "bytes": summary.bytes,
        "windows": summary.windows,
        **({"kept": summary.kept} if summary.kept else {}),
        **({"missing": len(summary.gaps)} if summary.gaps else {}),
        "retries": going.progress.retries,
        "seconds": round(going.seconds, 2),
    }
    if svc.diagnostics.structured:
        svc.diagnostics.event("summary", **counts, **ends(export.whole), **_files(summary.files, quote=str))
    elif summary.idle:
        first, *others = summary.files
        whole = f"{first} is already whole; --force fetches it again"
        if others:
            whole = f"{len(summary.files)} files are already whole: {first} to {others[-1]}; --force fetches them again"
        svc.diagnostics.note(f"nothing to do: {whole}")
    else:
        files = {} if export.target.is_one_file else _files(summary.files, quote=shlex.quote)
        zone = named_zone(export.clock or "GMT")
        exported = {
            "seconds": f"{counts['seconds']:.2f}",
            "from": moment(export.whole.start, zone),
            "to": moment(export.whole.end, zone),
        }
        svc.diagnostics.note(" ".join(f"{name}={value}" for name, value in (counts | exported | files).items()))
    return summary


_TOLD = ("rows", "bytes", "seconds", "attempts")
"""The fields of a window's entry that are reported."""


def _files(files: Sequence[str], quote: Callable[[str], str]) -> dict[str, str | int]:
    """The number of files that a pattern gave, and the names of the first and the last one."""
    if len(files) > 1:
        return {"files": len(files), "first": quote(files[0]), "last": quote(files[-1])}
    return {"file": quote(files[0])} if files else {}


def tell_replaced(svc: Context, summary: Summary) -> None:
    """Say which finished files were replaced."""
    if summary.replaced:
        more = len(summary.replaced) - 1
        others = f", and {counted(more, 'other file')}" if more else ""
        svc.diagnostics.note(f"replaced {summary.replaced[0]}{others}")


def tell_gaps(svc: Context, summary: Summary) -> None:
    """List the gaps, and fail if there are any. Adjacent windows with the same error are one gap."""
    if not summary.gaps:
        return
    ranges: list[tuple[Window, SvcctlError]] = []
    for window, error in summary.gaps:
        if ranges and ranges[-1][0].end == window.start and ranges[-1][1].message == error.message:
            ranges[-1] = replace(ranges[-1][0], end=window.end), error
        else:
            ranges.append((window, error))
    for window, error in ranges:
        svc.diagnostics.report(IncompleteResult(f"{window} is missing: {error.message}", hint=error.hint))
    windows = counted(len(summary.gaps), "window is", "windows are")
    raise IncompleteResult(f"{windows} missing of {summary.windows}", hint=RESUMES)


@contextmanager
def measured(svc: Context, path: Path | None, name: str) -> Iterator[dict[str, float]]:
    """The figures of a run, written when it ends, however it ends, unless another run holds the lock."""
    from svcctl.exports import metrics

    if path is not None and not metrics.is_writable(path):
        raise home.unexpanded(path) or UsageError(
            f"the metrics file {path} cannot be written: no such directory, or no permission"
        )
    figures = dict.fromkeys(metrics.METRICS, 0.0)  # an alert about a series that is not there would never fire
    started = svc.clock()

    def write() -> None:
        if path is not None:
            ended = svc.clock()
            metrics.write(path, name, figures | {"timestamp_seconds": ended, "duration_seconds": ended - started})

    try:
        yield figures
    except Locked:
        raise  # the metrics file belongs to the run that holds the lock
    except BaseException:
        try:
            write()
        except SvcctlError as error:
            svc.diagnostics.report(error)  # the first failure is raised
        raise
    try:
        write()
    except IncompleteResult as error:
        error.hint = "the export itself is whole"
        raise
