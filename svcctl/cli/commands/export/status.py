"""`svcctl export status` and `rm`: show exports and their states, and remove states."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.cli.commands.export.verify import NOTHING_EXPORTED, record_of
from svcctl.cli.completion.words import EXPORTS, Completes
from svcctl.cli.context import Context
from svcctl.cli.options import FormatOpt, YesOpt
from svcctl.errors import Advice, CommandLine, SvcctlError
from svcctl.exports.state import DamagedState, default_states
from svcctl.exports.windows import moment
from svcctl.terminal.records import ListField, Listing, row_listing

if TYPE_CHECKING:
    from svcctl.exports.record import ExportedFile, Record

NameArg = Annotated[
    str | None,
    typer.Argument(metavar="[NAME|PATH]", help="A state, or PATH as given to -o (default: all states)."),
    Completes(EXPORTS),
]
StateArg = Annotated[str, typer.Argument(metavar="STATE", help="Name of a state."), Completes("states")]

STATUS = row_listing("what", "value")
STATES = Listing[Sequence[Any]](
    (
        ListField("name", itemgetter(0)),
        ListField("target", itemgetter(1), below=True),
        ListField("until", itemgetter(2)),
        ListField("verified", itemgetter(3)),
        ListField("missing", itemgetter(4), "int8"),
        ListField("failed", itemgetter(5), below=True),
    )
)
"""The columns of the list of states. In a narrow table, the target and the failure have their own lines."""


def status(ctx: typer.Context, name: NameArg = None, format: FormatOpt = None) -> None:
    """Show an export: its windows, its gaps and its next run; 'verify' finds all damage

    Without a name, lists all states, each with its target, the number of missing windows, and the reason why the last
    run failed. 'until' is the start of the next run. 'verified' is the date up to which 'verify' found all files
    intact. The files in s3:// and hdfs:// are checked only by 'status NAME'.

    \b
    svcctl export status
    svcctl export status auth
    svcctl export status 'out/{start:%F/%H}.csv.gz'
    """
    svc: Context = ctx.obj
    if name is None:
        _list(svc, format)
        return
    record = record_of(svc, name)
    present, lost = record.holdings()
    svc.output.records(STATUS, _rows(record, present, lost), svc.format(format, lists=True))
    if record.is_empty and not record.gaps():
        svc.diagnostics.note(NOTHING_EXPORTED)
    if lost:
        verify = CommandLine(f"svcctl export verify {shlex.quote(name)}")
        svc.diagnostics.note(Advice("files were removed or changed: ", verify))


def _list(svc: Context, format: str | None) -> None:
    states = default_states(svc.environment)

    def row(name: str) -> list[Any]:
        state = states.need(name)
        verified, missing = (None, None) if "://" in state.target else _whole(svc, name)
        return [name, state.target, moment(state.until), verified, missing, state.failed or None]

    names = states.names()
    svc.output.records(STATES, svc.diagnostics.for_each(names, row), svc.format(format, lists=True))
    if not names:
        svc.diagnostics.done("no states")


def _whole(svc: Context, name: str) -> tuple[str | None, int | None]:
    """Return two values: the date up to which the export `name` is verified, and the number of its missing windows.

    The date is None if the export was never verified. If the list of exported files cannot be read, both values are
    None, and a note gives the reason.
    """
    try:
        record = record_of(svc, name)
        _, lost = record.holdings()
        return moment(record.still_verified(lost)) if record.verified else None, record.count_missing(lost)
    except SvcctlError as error:
        svc.diagnostics.note(error.message)
        return None, None


def rm(ctx: typer.Context, name: StateArg, yes: YesOpt = False) -> None:
    """Remove the saved state of an export. The exported files stay, and the next run starts at --from

    \b
    svcctl export rm auth --yes
    """
    svc: Context = ctx.obj
    states = default_states(svc.environment)
    try:
        state = states.need(name)
        lost = f"the state '{name}' of {state.target}, up to {moment(state.until)}"
    except DamagedState:
        lost = f"the damaged state '{name}'"
    if not yes:
        svc.ask(f"Remove {lost}? Its files stay.", here=True)
    with states.locked(name):
        states.remove(name)
    svc.diagnostics.note(f"removed {lost}; its files stay")


def _rows(
    record: Record, present: Sequence[ExportedFile], lost: Sequence[tuple[str, ExportedFile]]
) -> Iterator[list[Any]]:
    """Yield the status of an export as rows. Each row has a name and a value."""
    yield ["target", record.output]
    yield from ([name, value] for name, value in record.identity.named.items() if value)
    if record.since:
        yield ["kept from", moment(record.since)]
    for start, end in record.ranges:
        if start < end:
            yield ["range", f"{moment(start)} to {moment(end)}"]
    yield ["windows", record.identity.count(entry.window for entry in present)]
    yield ["rows", sum(entry.rows for entry in present)]
    yield ["bytes", sum(entry.bytes for entry in present)]
    if record.verified:
        yield ["verified", moment(record.still_verified(lost))]
    yield ["missing", record.count_missing(lost)]
    for gap in record.gaps():
        yield ["gap", f"{moment(gap.start)} to {moment(gap.end)}"]
    for fault, entry in lost:
        yield [fault, record.storage.address(entry.path)]
    if record.state is not None:
        yield ["next run from", moment(record.state.until)]
        if record.state.failed:
            yield ["last run failed", record.state.failed]
