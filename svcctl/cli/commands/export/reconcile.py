"""`svcctl export reconcile`: compare an export with the service, and replace changed windows."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.cli.commands.export import metrics
from svcctl.cli.commands.export.options import MaxTimeOpt, MetricsOpt, PaceOpt, WorkersOpt
from svcctl.cli.commands.export.report import tell_left_out
from svcctl.cli.commands.export.run import late, resumable, workers_of
from svcctl.cli.commands.export.verify import range_of
from svcctl.cli.completion.words import EXPORTS, Completes
from svcctl.cli.context import Context
from svcctl.cli.options import FormatOpt
from svcctl.dates.shorthand import parse_moment
from svcctl.errors import Differs, IncompleteResult, Unavailable, UsageError
from svcctl.exports.state import default_states, placed
from svcctl.exports.windows import moment
from svcctl.io.time_limit import time_limit
from svcctl.terminal.diagnostics import Work
from svcctl.terminal.escapes import visible
from svcctl.terminal.notes import loss_notes
from svcctl.terminal.records import row_listing
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.exports.reconcile import Reconcile
    from svcctl.exports.record import Record

ExportArg = Annotated[
    str, typer.Argument(metavar="NAME|PATH", help="A state, or PATH as given to -o."), Completes(EXPORTS)
]
FromOpt = Annotated[
    Any,
    typer.Option(
        "--from", parser=parse_moment, metavar="DATE", help="Compare windows that end after this date.  [all]"
    ),
]
ToOpt = Annotated[
    Any,
    typer.Option(
        "--to", parser=parse_moment, metavar="DATE", help="Compare windows that begin before this date.  [all]"
    ),
]
DeepOpt = Annotated[bool, typer.Option("--deep", help="Fetch all windows and compare their bytes, not only counts.")]
DryRunOpt = Annotated[bool, typer.Option("--dry-run", help="Only compare; exit 10 when something differs.")]
FewerOpt = Annotated[
    bool, typer.Option("--allow-fewer", help="Also replace windows that now have fewer rows at the service.")
]

RECONCILED = row_listing("start", "before", "now", "file", before="int8", now="int8")


def reconcile(
    ctx: typer.Context,
    name: ExportArg,
    from_: FromOpt = None,
    to: ToOpt = None,
    deep: DeepOpt = False,
    allow_fewer: FewerOpt = False,
    dry_run: DryRunOpt = False,
    workers: WorkersOpt = None,
    max_requests_per_second: PaceOpt = None,
    max_time: MaxTimeOpt = None,
    metrics: MetricsOpt = None,
    format: FormatOpt = None,
) -> None:
    """Compare an export with the service, and fetch again only the windows that differ

    Prints a row for each replaced window: its start, its number of rows before and now, and its file. Dates are in the
    export's zone.

    One query counts the events of all windows. Counts do not show changed events. So with --deep, and for queries with
    'group', all windows are fetched again and compared.

    A window may have fewer rows now, for example because old events were removed. Without --allow-fewer, the file of
    this window is kept, and the exit code is 10. If files are missing or have a wrong size, the exit code is 7; see
    'verify'.

    \b
    svcctl export reconcile auth --from 7ad
    svcctl export reconcile auth --from 30ad --deep --dry-run
    """
    from svcctl.exports.reconcile import Reconcile, export_of
    from svcctl.exports.record import PROFILE, Record
    from svcctl.exports.run import locked
    from svcctl.exports.workers.dispatch import RunProgress

    svc: Context = ctx.obj
    states = default_states(svc.environment)
    record = Record.find(name, states, svc.environment)
    if (service := record.identity.service) != svc.profile.base_url:
        raise UsageError(f"the export to {record.output} comes from another service ({service})", hint=PROFILE)
    start, end = range_of(svc, record, from_, to)
    export = export_of(record, svc.environment, svc.profile.retries)
    crew, going = workers_of(svc, record.output, workers, max_requests_per_second), RunProgress()
    crew.connect()  # the local service starts here, before the progress line appears
    with (
        nullcontext() if record.name is None else states.locked(record.name),
        locked(record.storage, record.target),
        time_limit(max_time, partial(late, svc)),
        resumable(svc),
    ):
        with crew.working(record.storage, going.progress) as ready:
            run = Reconcile(export, ready, svc.diagnostics.note, dry=dry_run, fewer=allow_fewer)
            windows = record.identity.count(entry.window for entry in run.entries(start, end))
            figures = {"windows": windows, "success": 0.0}
            try:
                with svc.diagnostics.working(lambda: Work(f"comparing {counted(windows, 'window')}")):
                    gaps = run(start, end, svc.client, deep=deep)
                figures["success"] = float(not gaps)
            finally:
                _print(svc, run, format, dry=dry_run)
                _measure(svc, metrics, record, run, figures)
        if gaps:
            window, error = next(iter(sorted(gaps.items(), key=lambda gap: gap[0])))
            kind = (
                Unavailable if all(isinstance(failure, Unavailable) for failure in gaps.values()) else IncompleteResult
            )
            raise kind(f"{counted(len(gaps), 'window')} could not be fetched, from {window}: {error.message}")
    _require_files(replace(run.record, name=record.name), start, end)
    _conclude(svc, run, windows, dry=dry_run)


def _require_files(record: Record, start: int, end: int) -> None:
    """Raise IncompleteResult if files of an export are missing or have a wrong size.

    Only files with events between `start` and `end` are checked.
    """
    lost = [entry.path for _, entry in record.holdings()[1] if entry.start < end and start < entry.end]
    if lost:
        address = visible(record.storage.address(lost[0]))
        name = shlex.quote(record.name or record.output)
        raise IncompleteResult(
            f"{counted(len(lost), 'file is', 'files are')} missing or damaged, such as {address}",
            hint=f"'svcctl export verify {name}' lists all of them, and shows how to repair them",
        )


def _print(svc: Context, run: Reconcile, format: str | None, *, dry: bool) -> None:
    """Print a row for each time window that was replaced, in chronological order.

    In a dry run, nothing is replaced, and a row is printed for each window that differs.
    """
    differences = sorted(
        (difference for difference in run.differences if dry or not difference.fewer),
        key=lambda difference: difference.entry.window,
    )
    rows = (
        [moment(difference.entry.start), difference.entry.rows, difference.rows, difference.file]
        for difference in differences
    )
    svc.output.records(RECONCILED, rows, svc.format(format, lists=True))
    tell_left_out(svc, run.left_out)
    for text in loss_notes(run.losses):
        svc.diagnostics.note(text)


def _measure(svc: Context, path: Path | None, record: Record, run: Reconcile, figures: dict[str, float]) -> None:
    """Write the metrics of `export reconcile` to a file for the textfile collector of Prometheus."""
    if path is None:
        return
    changed = [difference for difference in run.differences if not difference.fewer]
    figures |= {
        "timestamp_seconds": svc.clock(),
        "windows_changed": len(changed),
        "windows_changed_again": sum(difference.times > 1 for difference in changed),
        "windows_fewer": len(run.differences) - len(changed),
    }
    values = {f"reconcile_{name}": value for name, value in figures.items()}
    metrics.write(path, record.name or placed(record.output), values, metrics.RECONCILED)


def _conclude(svc: Context, run: Reconcile, windows: int, *, dry: bool) -> None:
    """Raise Differs if time windows still differ from the service. Otherwise, print a note with the result."""
    fewer = [difference for difference in run.differences if difference.fewer]
    changed = len(run.differences) - len(fewer)
    if fewer and not dry:
        first = min(fewer, key=lambda difference: difference.entry.window)
        now = f"{first.entry.window} now has {first.rows} instead of {first.entry.rows}"
        raise Differs(
            f"{counted(len(fewer), 'window has', 'windows have')} fewer rows at the service: {now}",
            hint="their files stay; --allow-fewer replaces them",
        )
    if run.differences and dry:
        raise Differs(f"{len(run.differences)} of {counted(windows, 'window')} differ from the service")
    svc.diagnostics.note(f"{counted(windows, 'window')} compared, {changed} replaced")
