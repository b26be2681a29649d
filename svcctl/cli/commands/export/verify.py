"""`svcctl export status`, `verify`, `forget` and `rm`: the files and states of earlier exports."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.cli.completion.words import EXPORTS, Completes
from svcctl.cli.context import Context
from svcctl.cli.options import FormatOpt, YesOpt
from svcctl.dates.range import choose
from svcctl.dates.shorthand import parse_moment
from svcctl.errors import IncompleteResult, SvcctlError, UsageError
from svcctl.exports.moments import moment
from svcctl.terminal.records import STATES, STATUS
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.exports.manifest import About, Entry
    from svcctl.exports.status import Found

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
ExportArg = Annotated[
    str, typer.Argument(metavar="NAME|PATH", help="A state, or PATH as given to -o."), Completes(EXPORTS)
]
BeforeOpt = Annotated[
    Any,
    typer.Option(
        "--before",
        parser=parse_moment,
        metavar="DATE",
        help="Only files of windows that ended by then, as 30ad (default: all that are gone).",
    ),
]
NAMED = 5
"""Damaged and missing files that `verify` names; it counts the others."""
NOTHING = "nothing is exported yet"
StateArg = Annotated[str, typer.Argument(metavar="STATE", help="Name of a state."), Completes("states")]


def status(ctx: typer.Context, name: NameArg = None, format: FormatOpt = None) -> None:
    """Show what an export has, what is missing, and where the next run starts; 'verify' finds all damage

    Without a name, lists the states: where each exports to, where its next run starts ('until'; a run that failed may
    have exported more), how many windows are missing, and why its last run failed.
    In s3:// and hdfs:// only 'status NAME' looks. PATH may also be one file of a pattern.

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
    if not found.manifest.claimed:
        svc.diagnostics.note(NOTHING)
    elif found.state is not None:
        _tell_due(svc, found.state.until, found.manifest.about)
    _tell_doubtful(svc, found)
    if holdings[1] or found.forgotten():
        lost = "files were removed or changed" if holdings[1] else "the manifest does not have all earlier files"
        svc.diagnostics.note(f"{lost}: svcctl export verify {shlex.quote(name)}")


def _list(svc: Context, format: str | None) -> None:
    from svcctl.exports.state import default_states

    states = default_states(svc.environment)

    def row(name: str) -> list[Any]:
        state = states.need(name)
        missing = None if "://" in state.target else _missing(svc, name)
        return [name, state.place, moment(state.until), missing, state.failed or None]

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


def forget(ctx: typer.Context, name: ExportArg, before: BeforeOpt = None) -> None:
    """Note that missing files were removed on purpose: 'verify' and 'status' no longer miss them

    Files that are there stay, and are verified. Runs with --state do not fetch the removed ones again; one over their
    range does. Of files that are gone and were not forgotten, a run says so once, but not with -q.

    \b
    svcctl export forget auth
    svcctl export forget auth --before 30ad
    """
    from svcctl.exports.forget import forget

    svc: Context = ctx.obj
    found = _found(svc, name)
    until = math.inf
    if before is not None:
        zone = found.manifest.about.options.get("clock")
        chosen = choose(before, None, None, zone, now=svc.now(), written=False)
        until = chosen.range.start.timestamp()
        if chosen.slip is not None:
            raise UsageError(f"--before {before} is {moment(int(until))}", hint=f"write {before}ad for days")
    files = [found.storage.address(entry.path) for entry in forget(found, until, svc.environment)]
    if not files:
        ended = "" if before is None else f" of a window that ended by {moment(int(until))}"
        svc.diagnostics.note(f"nothing to forget: no file{ended} is gone")
        return
    which = " to ".join(dict.fromkeys([files[0], files[-1]]))
    svc.diagnostics.note(f"{counted(len(files), 'file counts', 'files count')} as removed on purpose: {which}")


def rm(ctx: typer.Context, name: StateArg, yes: YesOpt = False) -> None:
    """Remove a state: its next run starts at --from again; the files that it has exported stay

    \b
    svcctl export rm auth --yes
    """
    from svcctl.exports.state import Damaged, default_states

    svc: Context = ctx.obj
    states = default_states(svc.environment)
    try:
        state = states.need(name)
        lost = f"the state '{name}' of {state.place}, up to {moment(state.until)}"
    except Damaged:
        lost = f"the damaged state '{name}'"
    if not yes:
        svc.ask(f"Remove {lost}? Its files stay.")
    with states.locked(name):
        states.remove(name)
    svc.diagnostics.note(f"removed {lost}; its files stay")


def _tell_due(svc: Context, since: int, about: About) -> None:
    """Tell a person how many windows wait for the next run."""
    from svcctl.exports.windows import ended

    if due := ended(since, math.floor(svc.clock()), about.window, about.zone):
        svc.diagnostics.done(f"{counted(due, 'window has', 'windows have')} ended since {moment(since)}")


def verify(ctx: typer.Context, names: NamesArg = None) -> None:
    """Hash the files of exports again; exit 7 when one is damaged or missing

    Without a name, verifies the exports of all states. Of a state, the last 10000 windows are verified, or files of
    runs. PATH may also be one file of a pattern.

    \b
    svcctl export verify auth && tar -cf auth.tar out
    """
    svc: Context = ctx.obj
    if names is not None and len(names) == 1:
        svc.diagnostics.note(_verified(svc, names[0]))
        return
    from svcctl.exports.state import default_states

    states = default_states(svc.environment)
    names = names or states.names()
    for text in svc.diagnostics.each(names, lambda name: _verified(svc, name, f"{name}: ")):
        svc.diagnostics.note(text)
    if not names:  # in a crontab too, where the directory may be another one
        svc.diagnostics.note(f"no states in {states.folder}")


def _verified(svc: Context, name: str, label: str = "") -> str:
    """A sentence about the files of an export, all unchanged, behind a label; IncompleteResult when some are not."""
    from svcctl.exports.repair import repair
    from svcctl.exports.status import damage
    from svcctl.exports.windows import Window

    found = _found(svc, name)
    lost: list[Window] = []
    more: list[str] = []
    for text, window in damage(found):
        if len(lost) < NAMED or svc.diagnostics.verbose:
            svc.diagnostics.report(IncompleteResult(text))
        else:
            more.append(text)
        lost.append(window)
    if more:
        every = f"to see all: svcctl -v export verify {shlex.quote(name)}"
        text = more[0] if len(more) == 1 else f"{len(more)} more are missing or damaged; {every}"
        svc.diagnostics.report(IncompleteResult(text))
    _tell_doubtful(svc, found, label)
    if found.named is None and lost and found.gone():
        svc.diagnostics.warning(f"{label}if files were removed on purpose: svcctl export forget {shlex.quote(name)}")
    if lost:
        service = found.manifest.about.service
        profiles = svc.profiles_at(service)
        hint = repair(found, lost, name, profiles[0] if len(profiles) == 1 else None)
        if len(profiles) != 1 and "svcctl export" in hint:
            names = f" ({' or '.join(map(str, profiles))})" if profiles else ""
            hint = f"with a profile of {service}{names}, {hint}"
        raise IncompleteResult(f"{label}the export to {found.place} is not whole", hint=hint)
    if not found.manifest.claimed:
        return f"{label}{NOTHING}"
    removed = found.removed()
    files = {*found.files()}.difference(removed)
    if removed and not files:
        return f"{label}no file is left: {len(removed)} removed on purpose"
    besides = f"; {len(removed)} removed on purpose" if removed else ""
    size = sum(entry.bytes for entry in files)
    return f"{label}{counted(len(files), 'file')}, {size} bytes: all as they were exported{besides}"


def _tell_doubtful(svc: Context, found: Found, label: str = "") -> None:
    if overlapping := found.overlapping():
        more = f" and {len(overlapping) - 1} more" if len(overlapping) > 1 else ""
        first = f"{moment(overlapping[0].start)} to {moment(overlapping[0].end)}"
        svc.diagnostics.note(
            f"{label}files overlap, so these events are there, and counted, more than once: {first}{more}"
        )
    if strangers := found.strangers():
        are = counted(len(strangers), "file of this pattern is", "files of this pattern are")
        svc.diagnostics.note(
            f"{label}{are} not in its manifest, and not verified: "
            f"{', '.join(strangers[:3])}{', …' * (len(strangers) > 3)}"
        )


def _found(svc: Context, name: str) -> Found:
    from svcctl.exports.state import default_states
    from svcctl.exports.status import find

    return find(name, default_states(svc.environment), svc.environment)


def _rows(found: Found, there: Sequence[Entry], lost: Sequence[tuple[str, Entry]]) -> Iterator[list[Any]]:
    """The status of an export, as rows of what and value."""
    manifest, gaps = found.manifest, found.gaps()
    length, zone = manifest.about.window, manifest.about.zone
    yield ["target", found.place]
    yield from ([what, value] for what, value in manifest.about.named.items() if value)
    for start, end in manifest.claimed:
        yield ["range", f"{moment(start)} to {moment(end)}"]
    yield ["windows", sum(entry.window.count(length, zone) for entry in there)]
    yield ["rows", sum(entry.rows for entry in there)]
    yield ["bytes", sum(entry.bytes for entry in there)]
    yield ["missing", found.missing(lost)]
    if removed := found.removed():
        yield ["removed", sum(entry.window.count(length, zone) for entry in removed)]
    for gap in gaps:
        yield ["gap", f"{moment(gap.start)} to {moment(gap.end)}"]
    for gap in found.forgotten():
        yield ["unknown", f"{moment(gap.start)} to {moment(gap.end)}"]
    for what, entry in lost:
        yield [what, found.storage.address(entry.path)]
    if found.state is not None:
        yield ["next run from", moment(found.state.until)]
        if found.state.failed:
            yield ["last run failed", found.state.failed]
