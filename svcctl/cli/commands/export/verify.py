"""`svcctl export status`, `verify` and `rm`: the files and states of earlier exports."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.cli.completion.words import EXPORTS, Completes
from svcctl.cli.context import Context
from svcctl.cli.options import FormatOpt, YesOpt
from svcctl.dates.range import dates_of
from svcctl.dates.shorthand import parse_moment
from svcctl.errors import IncompleteResult, SvcctlError, UsageError
from svcctl.exports.state import Damaged, default_states
from svcctl.exports.windows import moment
from svcctl.terminal.records import STATES, STATUS
from svcctl.words import counted, size_text

if TYPE_CHECKING:
    from svcctl.exports.inventory import Inventory
    from svcctl.exports.record import Entry

NameArg = Annotated[
    str | None,
    typer.Argument(metavar="[NAME|PATH]", help="A state, or PATH as given to -o (default: all states)."),
    Completes(EXPORTS),
]
NamesArg = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME|PATH]…", help="States, or PATHs as given to -o (default: all states)."),
    Completes(EXPORTS),
]
FromOpt = Annotated[
    Any,
    typer.Option(
        "--from", parser=parse_moment, metavar="DATE", help="Look only at windows that ended after this, as 30ad."
    ),
]
KeepOpt = Annotated[
    bool,
    typer.Option("--keep", help="Keep --from in the record: older files were removed on purpose, nobody misses them."),
]
NAMED = 5
"""Damaged and missing files that `verify` names; it counts the others."""
NOTHING = "nothing is exported yet"
StateArg = Annotated[str, typer.Argument(metavar="STATE", help="Name of a state."), Completes("states")]


def status(ctx: typer.Context, name: NameArg = None, format: FormatOpt = None) -> None:
    """Show what an export has, what is missing, and where the next run starts; 'verify' finds all damage

    Without a name, lists the states: where each exports to, where its next run starts ('until'; a run that failed may
    have exported more), how many windows are missing, and why its last run failed.
    In s3:// and hdfs:// only 'status NAME' looks.

    \b
    svcctl export status
    svcctl export status auth
    svcctl export status 'out/{start:%F/%H}.csv.gz'
    """
    svc: Context = ctx.obj
    if name is None:
        _list(svc, format)
        return
    found = _found(svc, name)
    holdings = found.holdings()
    svc.output.records(STATUS, _rows(found, *holdings), svc.format(format, lists=True))
    if found.record.is_empty and not found.gaps():
        svc.diagnostics.note(NOTHING)
    if holdings[1]:
        svc.diagnostics.note(f"files were removed or changed: svcctl export verify {shlex.quote(name)}")


def _list(svc: Context, format: str | None) -> None:
    states = default_states(svc.environment)

    def row(name: str) -> list[Any]:
        state = states.need(name)
        missing = None if "://" in state.target else _missing(svc, name)
        return [name, state.target, moment(state.until), missing, state.failed or None]

    names = states.names()
    svc.output.records(STATES, svc.diagnostics.each(names, row), svc.format(format, lists=True))
    if not names:
        svc.diagnostics.done("no states")


def _missing(svc: Context, name: str) -> int | None:
    """How many windows of a state are missing; None, with a note that says why, if that cannot be found out."""
    try:
        found = _found(svc, name)
        return found.missing(found.holdings()[1])
    except SvcctlError as error:
        svc.diagnostics.note(error.message)
        return None


def rm(ctx: typer.Context, name: StateArg, yes: YesOpt = False) -> None:
    """Remove a state: its next run starts at --from again; the files that it has exported stay

    \b
    svcctl export rm auth --yes
    """
    svc: Context = ctx.obj
    states = default_states(svc.environment)
    try:
        state = states.need(name)
        lost = f"the state '{name}' of {state.target}, up to {moment(state.until)}"
    except Damaged:
        lost = f"the damaged state '{name}'"
    if not yes:
        svc.ask(f"Remove {lost}? Its files stay.")
    with states.locked(name):
        states.remove(name)
    svc.diagnostics.note(f"removed {lost}; its files stay")


def verify(ctx: typer.Context, names: NamesArg = None, from_: FromOpt = None, keep: KeepOpt = False) -> None:
    """Hash the files of exports again; exit 7 when one is damaged or missing

    Without a name, verifies the exports of all states. Of a state, the last 10000 windows are verified, or files of
    runs. With --keep, neither status, runs nor reconcile look at anything before --from any more. Days such as
    30ad are those of the export's zone.

    \b
    svcctl export verify auth && tar -cf auth.tar out
    svcctl export verify auth --from 30ad --keep
    """
    svc: Context = ctx.obj
    if keep and from_ is None:
        raise UsageError("--keep needs the date before which files were removed", hint="add --from, as in --from 30ad")
    if names is not None and len(names) == 1:
        svc.diagnostics.note(_verified(svc, names[0], from_, keep))
        return
    states = default_states(svc.environment)
    names = names or states.names()
    for text in svc.diagnostics.each(names, lambda name: _verified(svc, name, from_, keep, f"{name}: ")):
        svc.diagnostics.note(text)
    if not names:  # in a crontab too, where the directory may be another one
        svc.diagnostics.note(f"no states in {states.folder}")


def _verified(svc: Context, name: str, from_: Any, keeps: bool, label: str = "") -> str:
    """A sentence about the files of an export, all unchanged, behind a label; IncompleteResult when some are not."""
    from svcctl.exports.verify import damage, keep, repair

    found = _found(svc, name)
    if from_ is not None:
        date, _ = range_of(svc, found, from_, None)
        since = found.record.since
        if keeps and date < since:
            svc.diagnostics.note(f"{label}kept from {moment(since)} already: an earlier date brings nothing back")
        elif keeps:
            windows, there = keep(found, date)
            gone = f"{counted(windows, 'window')} not looked at any more, files still there: {there}"
            svc.diagnostics.note(f"{label}kept from {moment(date)}; {gone}")
        found = replace(found, record=found.record.later(date))
    lost = [*damage(found)]
    _tell_lost(svc, [text for text, *_ in lost], name)
    if lost:
        if any(gone for *_, gone in lost):
            removed = f"svcctl export verify {shlex.quote(name)} --from DATE --keep"
            svc.diagnostics.warning(f"{label}if files before a date were removed on purpose: {removed}")
        profiles = svc.profiles_at(found.record.about.service)
        hint = repair(found, [window for _, window, _ in lost], profiles)
        raise IncompleteResult(f"{label}the export to {found.target} is not whole", hint=hint)
    if found.record.is_empty and not found.record.since:
        return f"{label}{NOTHING}"
    files = found.files()
    size = sum(entry.bytes for entry in files)
    return f"{label}{counted(len(files), 'file')}, {size_text(size)}: all as they were exported"


def range_of(svc: Context, found: Inventory, from_: Any, to: Any) -> tuple[int, int]:
    """The epoch seconds of --from and --to, in the zone of the export's windows."""
    zone = found.record.about.options.get("clock")
    chosen = dates_of(0 if from_ is None else from_, to, None, zone, now=svc.now(), written=False).range
    return math.floor(chosen.start.timestamp()), sys.maxsize if chosen.end is None else int(chosen.end.timestamp())


def _tell_lost(svc: Context, texts: Sequence[str], name: str) -> None:
    """Report what is missing or damaged; of many, the first ones and how many there are."""
    shown = len(texts) if svc.diagnostics.verbose or len(texts) == NAMED + 1 else NAMED
    for text in texts[:shown]:
        svc.diagnostics.report(IncompleteResult(text))
    if more := len(texts[shown:]):
        every = f"to see all: svcctl -v export verify {shlex.quote(name)}"
        svc.diagnostics.report(IncompleteResult(f"{more} more are missing or damaged; {every}"))


def _found(svc: Context, name: str) -> Inventory:
    from svcctl.exports.inventory import find

    return find(name, default_states(svc.environment), svc.environment)


def _rows(found: Inventory, there: Sequence[Entry], lost: Sequence[tuple[str, Entry]]) -> Iterator[list[Any]]:
    """The status of an export, as rows of what and value."""
    record = found.record
    yield ["target", found.target]
    yield from ([what, value] for what, value in record.about.named.items() if value)
    if record.since:
        yield ["kept from", moment(record.since)]
    for start, end in record.ranges:
        if start < end:
            yield ["range", f"{moment(start)} to {moment(end)}"]
    yield ["windows", record.about.count(entry.window for entry in there)]
    yield ["rows", sum(entry.rows for entry in there)]
    yield ["bytes", sum(entry.bytes for entry in there)]
    yield ["missing", found.missing(lost)]
    for gap in found.gaps():
        yield ["gap", f"{moment(gap.start)} to {moment(gap.end)}"]
    for what, entry in lost:
        yield [what, found.storage.address(entry.path)]
    if found.state is not None:
        yield ["next run from", moment(found.state.until)]
        if found.state.failed:
            yield ["last run failed", found.state.failed]
