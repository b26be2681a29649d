"""`svcctl export verify`: find damaged and missing files of exports."""

from __future__ import annotations

import math
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.cli.completion.words import EXPORTS, Completes
from svcctl.cli.context import Context
from svcctl.cli.options import ObjectsOpt
from svcctl.dates.epochs import seconds_to_ms
from svcctl.dates.range import dates_of
from svcctl.dates.shorthand import parse_moment
from svcctl.errors import Advice, CommandLine, IncompleteResult, SvcctlError, UsageError
from svcctl.exports.state import default_states
from svcctl.exports.windows import Window, moment
from svcctl.terminal.diagnostics import Work
from svcctl.terminal.records import row_listing
from svcctl.words import counted, size_text

if TYPE_CHECKING:
    from svcctl.exports.identity import Identity
    from svcctl.exports.record import Record
    from svcctl.exports.verify import LostRange

NamesArg = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME|PATH]…", help="States, or PATHs as given to -o (default: all states)."),
    Completes(EXPORTS),
]
FromOpt = Annotated[
    Any,
    typer.Option(
        "--from",
        parser=parse_moment,
        metavar="DATE",
        help="Only verify windows that ended after this date, such as 30ad.",
    ),
]
KeepOpt = Annotated[
    bool,
    typer.Option("--keep", help="Drop the windows before --from from the record: their files were removed on purpose."),
]
NAMED = 5
"""The number of damaged and missing files that `verify` lists. Further files are only counted."""
NOTHING_EXPORTED = "nothing is exported yet"
RUN_AGAIN = "run the export again: it fetches only what is missing"


def verify(
    ctx: typer.Context,
    names: NamesArg = None,
    from_: FromOpt = None,
    keep: KeepOpt = False,
    format: ObjectsOpt = None,
) -> None:
    """Hash the files of exports again; exit 7 when a file is damaged or missing

    Without a name, verifies all exports that have a state. For such an export, svcctl remembers the last 10000 windows,
    or the last 10000 files if each run writes a file. Older files are not verified. With --keep, 'status', later runs
    and 'reconcile' ignore all windows before --from. In 'export status', 'verified' is the date up to which all files
    were intact. Dates are in the export's zone; in ndjson, they are epoch milliseconds.

    \b
    svcctl export verify auth && tar -cf auth.tar out
    svcctl export verify auth --from 30ad --keep
    """
    svc: Context = ctx.obj
    if keep and from_ is None:
        raise UsageError("--keep needs the date before which files were removed", hint="add --from, as in --from 30ad")
    if names is not None and len(names) == 1:
        svc.diagnostics.note(_verified(svc, names[0], from_, keep, format))
        return
    states = default_states(svc.environment)
    names = names or states.names()
    for text in svc.diagnostics.for_each(names, lambda name: _verified(svc, name, from_, keep, format, f"{name}: ")):
        svc.diagnostics.note(text)
    if not names:  # noted even without a terminal: a crontab may use another directory
        svc.diagnostics.note(f"no states in {states.folder}")


def _verified(svc: Context, name: str, from_: Any, keeps: bool, format: str | None, label: str = "") -> str:
    """Verify an export. Returns the result as text, which begins with `label`.

    Raises IncompleteResult if files are missing or damaged, or if a range is not exported.
    """
    from svcctl.exports.verify import MISSING, keep, verified_until

    record = record_of(svc, name)
    date = 0
    if from_ is not None:
        date, _ = range_of(svc, record, from_, None)
        if keeps and date < record.since:
            since = moment(record.since)
            svc.diagnostics.note(f"{label}windows before {since} were already dropped; an earlier date changes nothing")
        elif keeps:
            windows, there = keep(record, date)
            dropped = f"{counted(windows, 'window')} dropped from the record; {there} of their files still exist"
            svc.diagnostics.note(f"{label}kept from {moment(date)}: {dropped}")
    later = record.later(date) if date else record
    lost = _lost(svc, later)
    verified = verified_until(later if keeps else record, lost, date)
    _remember(svc, record, verified, label)
    if format is not None:
        _print_objects(svc, later, name, lost, verified, format)
    else:
        _tell_lost(svc, [loss.text for loss in lost], name)
    if lost:
        if any(loss.kind == MISSING for loss in lost):
            removed = f"svcctl export verify {shlex.quote(name)} --from DATE --keep"
            svc.diagnostics.warning(f"{label}if files before a date were removed on purpose: {removed}")
        hint = _repair(svc, later, [loss.window for loss in lost])
        raise IncompleteResult(f"{label}the export to {record.output} is not intact", hint=hint)
    if later.is_empty and not later.since:
        return f"{label}{NOTHING_EXPORTED}"
    files = later.files()
    size = sum(entry.bytes for entry in files)
    return f"{label}{counted(len(files), 'file')}, {size_text(size)}: all unchanged"


def _lost(svc: Context, record: Record) -> list[LostRange]:
    """Return the missing and damaged files, and the ranges that are not exported. A terminal shows the progress."""
    from svcctl.exports.verify import HashProgress, damage

    files, hashed = record.files(), HashProgress()
    size = sum(entry.bytes for entry in files)

    def work() -> Work:
        text = f"{hashed.files:,} of {counted(len(files), 'file')}, {size_text(hashed.bytes)} of {size_text(size)}"
        return Work(text, hashed.bytes, size or None)

    with svc.diagnostics.working(work):
        return list(damage(record, hashed))


def _remember(svc: Context, record: Record, verified: int, label: str) -> None:
    """Save the date up to which an export is verified.

    If the date cannot be saved, for example during a run of the export, only a note is printed.
    """
    from svcctl.exports.verify import remember

    try:
        remember(record, verified)
    except SvcctlError as error:
        svc.diagnostics.note(f"{label}the date of the verify was not saved: {error.message}")


def _print_objects(
    svc: Context, record: Record, name: str, lost: Sequence[LostRange], verified: int, format: str
) -> None:
    """Print a line of ndjson for each missing or damaged file, and for each range without a file.

    The last line is about the whole export.
    """
    chosen, files = svc.format(format, lists=True), record.files()
    for loss in lost:
        dates = {"from": seconds_to_ms(loss.since), "to": seconds_to_ms(loss.window.end)}
        finding = {"export": name, "kind": loss.kind} | ({"file": loss.file} if loss.file is not None else {}) | dates
        svc.output.records(row_listing("finding"), [[finding]], chosen)
    kinds = Counter(loss.kind for loss in lost)
    result = {
        "export": name,
        "target": record.output,
        "files": len(files),
        "bytes": sum(entry.bytes for entry in files),
        "damaged": kinds["damaged"],
        "missing": kinds["missing"],
        "notExported": kinds["not exported"],
        "verified": seconds_to_ms(verified) if verified else None,
    }
    svc.output.records(row_listing("result"), [[result]], chosen)


def _repair(svc: Context, record: Record, lost: Sequence[Window]) -> str:
    """Return the hint with the command that fetches the first lost range again.

    If the next run of the export fetches the lost ranges anyway, the hint is to run the export again.
    """
    from svcctl.exports.verify import ranges_to_fetch

    identity = record.identity
    profiles = svc.profiles_at(identity.service)
    has_one_profile = len(profiles) == 1
    command = _command_of(identity, record.output, profiles[0] if has_one_profile else None)
    start = "" if has_one_profile else f"with a profile of {identity.service}, "
    past = list(dict.fromkeys(filter(record.is_past, lost)))
    if not past:
        return f"{start}{RUN_AGAIN}: {shlex.join([*command, '--state', str(record.name)])}"
    ranges = ranges_to_fetch(record, past)
    if not ranges:
        return RUN_AGAIN
    first = shlex.join([*command, "--from", moment(ranges[0].start), "--to", moment(ranges[0].end)])
    again = "; then verify again for the next range" * (len(ranges) > 1)
    return f"{start}fetch the missing windows with: {first}{again}"


def _command_of(identity: Identity, target: str, profile: str | None) -> list[str]:
    """Return the words of the command that runs an export. The options of its range are left out."""
    from svcctl.exports.formats import format_of

    named = dict(identity.named)
    query, format, _ = named.pop("query"), named.pop("format"), named.pop("service")
    if named["window"] == "1h":
        del named["window"]
    options = [text for name, value in named.items() for text in (f"--{name.replace(' ', '-')}", value)]
    try:
        format_of(target, None)
    except UsageError:  # the ending of the target names no format
        options += ["--format", format.partition(".")[0]]
    return ["svcctl", *(["-p", profile] if profile else []), "export", query, *options, "-o", target]


def range_of(svc: Context, record: Record, from_: Any, to: Any) -> tuple[int, int]:
    """Convert --from and --to to epoch seconds, in the zone of the export's windows."""
    zone = record.identity.window_zone
    chosen = dates_of(0 if from_ is None else from_, to, None, zone, now=svc.now(), written=False).range
    return math.floor(chosen.start.timestamp()), sys.maxsize if chosen.end is None else int(chosen.end.timestamp())


def _tell_lost(svc: Context, texts: Sequence[str], name: str) -> None:
    """Report missing and damaged files. Without --verbose, only the first NAMED files are listed."""
    shown = len(texts) if svc.diagnostics.verbose or len(texts) == NAMED + 1 else NAMED
    for text in texts[:shown]:
        svc.diagnostics.report(IncompleteResult(text))
    if more := len(texts[shown:]):
        every = CommandLine(f"svcctl -v export verify {shlex.quote(name)}")
        svc.diagnostics.report(IncompleteResult(Advice(f"{more} more are missing or damaged; to see all: ", every)))


def record_of(svc: Context, name: str) -> Record:
    """Return the record of an export, which lists the exported files.

    `name` is the name of a state, or the path to which the export writes.
    """
    from svcctl.exports.record import Record

    return Record.find(name, default_states(svc.environment), svc.environment)
