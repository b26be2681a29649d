"""`svcctl export`: a long range in windows, into files that are whole; what is there, and whether it still is."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.commands import page_of
from svcctl.completion import words
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context, Flags
from svcctl.errors import IncompleteResult, ProfileError, SvcctlError, UsageError
from svcctl.inputs import dates, query_text
from svcctl.options import (
    DateFormatOpt,
    ForceOpt,
    FormatOpt,
    FromOpt,
    QueryFileOpt,
    QueryTextArg,
    TimeZoneOpt,
    ToOpt,
    VarOpt,
)
from svcctl.terminal.records import STATUS, WINDOWS
from svcctl.time_limit import time_limit

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.exports.export import Export, Summary
    from svcctl.exports.manifest import Entry
    from svcctl.exports.perform import Workers
    from svcctl.exports.plan import Asked
    from svcctl.exports.state import State
    from svcctl.exports.status import Found
    from svcctl.exports.windows import Window

LAG = "10m"
"""How long late events are waited for, where a state moves."""
NO_LAG = ("0", "0s", "0m", "0h", "0d")
ON_ERROR = ("stop", "continue")
_RESUMES = "the same command again fetches only what is missing"
LOG_FORMATS = ("text", "json")

WindowOpt = Annotated[str, typer.Option("--window", metavar="LENGTH", help="Length of a window, as 30s, 5m, 1h or 1d.")]
WorkersOpt = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, max=64, help="Windows fetched at the same time.  [4]")
]
TargetOpt = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="One file, or a pattern such as out/{start:%Y/%m/%d/%H}.csv.gz for one file per window; also s3:// and "
        "hdfs://. Names ending in .gz or .zst are compressed.",
    ),
    Completes(FILES),
]
ExportFormatOpt = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="FORMAT", help="csv, tsv, ndjson or parquet; by default, PATH's ending."),
    Completes(words=words.export_formats),
]
StateOpt = Annotated[
    str | None,
    typer.Option("--state", metavar="NAME", help="Start where the last run of NAME ended; --from is for the first."),
    Completes("states"),
]
LagOpt = Annotated[
    str | None,
    typer.Option("--lag", metavar="LENGTH", help=f"Leave out windows younger than this.  [{LAG} with --state]"),
]
OnErrorOpt = Annotated[
    str,
    typer.Option("--on-error", metavar="WHAT", help="When a window fails: stop, or continue and list the gaps."),
    Completes(words=ON_ERROR),
]
PaceOpt = Annotated[
    float | None,
    typer.Option("--max-requests-per-second", metavar="N", min=0.001, help="Shared by all workers."),
]
MostOpt = Annotated[
    int | None,
    typer.Option(
        "--limit-per-window", metavar="N", min=1, help="The service cuts results at N rows: halve windows that have N."
    ),
]
MetricsOpt = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", help="Write the run's figures for Prometheus' textfile collector."),
    Completes(FILES),
]
LogFormatOpt = Annotated[
    str,
    typer.Option("--log-format", metavar="NAME", help="text, or json: each event on stderr is an object."),
    Completes(words=LOG_FORMATS),
]
SchedulerOpt = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="URL", help="Let the workers of a Dask cluster fetch: tcp://HOST:8786."),
]
MaxTimeOpt = Annotated[
    float | None,
    typer.Option("--max-time", metavar="S", min=0, help="Stop after S seconds; the next run fetches what is missing."),
]
DryRunOpt = Annotated[bool, typer.Option("--dry-run", help="Print the windows and their files; export nothing.")]
NameArg = Annotated[
    str, typer.Argument(metavar="NAME|PATH", help="A state, or PATH as given to -o."), Completes("states")
]


def register(app: typer.Typer) -> None:
    app.command("export", help=page_of("export", export))(export)
    app.command("export status")(status)
    app.command("export verify")(verify)


def export(
    ctx: typer.Context,
    target: TargetOpt,
    text: QueryTextArg = None,
    from_: FromOpt = None,
    to: ToOpt = "now",
    window: WindowOpt = "1h",
    workers: WorkersOpt = None,
    format: ExportFormatOpt = None,
    file: QueryFileOpt = None,
    var: VarOpt = None,
    state: StateOpt = None,
    lag: LagOpt = None,
    on_error: OnErrorOpt = "stop",
    max_requests_per_second: PaceOpt = None,
    limit_per_window: MostOpt = None,
    date_format: DateFormatOpt = None,
    time_zone: TimeZoneOpt = None,
    force: ForceOpt = False,
    metrics: MetricsOpt = None,
    log_format: LogFormatOpt = "text",
    scheduler: SchedulerOpt = None,
    max_time: MaxTimeOpt = None,
    dry_run: DryRunOpt = False,
) -> None:
    """A run that fails leaves no file under its final name; the same command again fetches only what is missing.
    'svcctl help export' explains it and has recipes for cron, systemd and Kubernetes.

    \b
    svcctl export 'from auth.all' --from 7ad --to today -o week.csv.gz
    svcctl export -F auth.q --from 1ad --state auth -o 'out/{start:%F/%H}.csv.gz'
    svcctl export status auth       what is there, and where the next run starts
    svcctl export verify auth       hashes all files again
    """
    from svcctl.exports.perform import Workers
    from svcctl.exports.plan import Asked
    from svcctl.exports.state import default_states
    from svcctl.exports.windows import parse_length

    svc: Context = ctx.obj
    svc.diagnostics.structured = _one_of("--log-format", log_format, LOG_FORMATS) == "json"
    keep_going = _one_of("--on-error", on_error, ON_ERROR) == "continue"
    if target == "-":
        raise UsageError("an export is written to files", hint="to print rows: svcctl query")
    if scheduler is not None and "://" not in target:
        target = str(Path(target).absolute())  # the workers of a cluster have directories of their own
    waits = lag or (LAG if state is not None else None)
    asked = Asked(
        query=query_text.fill(query_text.read(text, file), var or []),
        target=target,
        start=None,
        end=0,
        window=parse_length(window),
        service=svc.profile.base_url,
        format=format,
        date_format=date_format,
        time_zone=time_zone,
        most=limit_per_window,
        retries=svc.profile.retries,
        overwrite=force,
        settled=None if waits is None else math.floor(svc.clock()) - (0 if waits in NO_LAG else parse_length(waits)),
        incremental=state is not None,
    )
    here = svc.with_flags(retries=0)
    there = Elsewhere(replace(svc.flags, profile=svc.profile.name, retries=0), svc.profile.base_url)
    crew = Workers(lambda: here.client, there, target, workers, max_requests_per_second, scheduler)
    states = default_states(svc.environment)
    if dry_run:
        _print_windows(svc, _planned(svc, asked, None if state is None else states.load(state), from_, to)[0])
        return
    with nullcontext() if state is None else states.locked(state), _measured(svc, metrics, state or target) as figures:
        found = None if state is None else states.load(state)
        planned, after = _planned(svc, asked, found, from_, to)
        if not planned.windows:
            svc.diagnostics.note(f"nothing to export yet: no window has ended since {_moment(planned.whole.start)}")
            figures |= {"success": 1.0, "until_seconds": planned.whole.start}
            return
        try:
            with time_limit(max_time, lambda: _late(max_time)):
                summary = _run(svc, planned, crew, figures, keep_going=keep_going)
        except KeyboardInterrupt:
            svc.diagnostics.note(_RESUMES)
            raise
        if state is not None and summary.until > planned.whole.start:
            states.save(state, replace(after, until=summary.until))
        _tell_gaps(svc, summary)


def _late(seconds: float | None) -> SvcctlError:
    return IncompleteResult(
        f"the export is not complete after {seconds:g} s",
        hint=_RESUMES,
    )


def status(ctx: typer.Context, name: NameArg, format: FormatOpt = None) -> None:
    """Show what an export has, what is missing, and where the next run starts

    \b
    svcctl export status auth
    svcctl export status 'out/{start:%F/%H}.csv.gz'
    """
    svc: Context = ctx.obj
    svc.output.records(STATUS, _rows(_found(svc, name)), svc.format(format, lists=True))


def verify(ctx: typer.Context, name: NameArg) -> None:
    """Hash the files of an export again; exit 7 when one is damaged or missing

    \b
    svcctl export verify auth && tar -cf auth.tar out
    """
    from svcctl.exports.status import damage

    svc: Context = ctx.obj
    found = _found(svc, name)
    lost: list[Window] = []
    for text, window in damage(found):
        repair = _repair([window]) if found.is_past(window) and not found.per_window else None
        svc.diagnostics.report(IncompleteResult(text, hint=repair))  # each file of a run has a range of its own
        lost.append(window)
    if lost:
        past = [window for window in lost if found.is_past(window)]
        repair = _repair(past) if past and found.per_window else None
        if not past:
            repair = "run the export again: it fetches only what is missing"
        raise IncompleteResult(f"the export to {found.target} is not whole", hint=repair)
    files = found.files()
    counted = "1 file" if len(files) == 1 else f"{len(files)} files"
    svc.diagnostics.note(f"{counted}, {sum(entry.bytes for entry in files)} bytes: all as they were exported")


def _repair(windows: list[Window]) -> str:
    """What fetches windows again that a state has moved past; it fetches nothing else."""
    start, end = min(window.start for window in windows), max(window.end for window in windows)
    return (
        f"the same command with --from {_moment(start)} --to {_moment(end)} and without --state "
        "fetches only what is missing"
    )


@dataclass(frozen=True)
class Elsewhere:
    """Makes the client of a cluster's worker from the profile that has this name where the worker runs."""

    flags: Flags
    service: str

    def __call__(self) -> Client:
        svc = Context(self.flags)
        if svc.profile.base_url != self.service:
            raise ProfileError(
                f"a worker would ask {svc.profile.base_url}, not {self.service}",
                hint="give the workers the same profile, or the same SVCCTL_… environment",
            )
        return svc.connect()


def _one_of(option: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UsageError(f"unknown {option} '{value}'", hint=f"it is one of: {', '.join(known)}")
    return value


def _planned(svc: Context, asked: Asked, state: State | None, from_: Any, to: Any) -> tuple[Export, State]:
    """The export over the range that is asked for: from where the state ends, if it has one."""
    from svcctl.exports.formats import format_of
    from svcctl.exports.plan import plan

    if state is None and from_ is None:
        raise UsageError(
            "the range has no start", hint="give it with --from" + ", on the first run at least" * asked.incremental
        )
    writes_dates = format_of(asked.target, asked.format)[0].heading  # the interface takes a date format in csv and tsv
    now = svc.now()
    if state is not None and now.timestamp() < state.until:
        now = datetime.fromtimestamp(state.until, UTC)  # a clock that went back has no windows to export
    zone = asked.time_zone or svc.profile.time_zone
    if state is not None:
        _refuse_an_end_before(state.until, to, now, zone)
    chosen = dates.choose(
        from_ if state is None else state.until,
        to,
        asked.date_format or (svc.profile.date_format if writes_dates else None),
        zone,
        now=now,
        written=writes_dates,
    )
    if svc.diagnostics.is_terminal and not chosen.plain:
        svc.diagnostics.note(chosen.summary)
    start, end = chosen.range.start, chosen.range.end
    assert end is not None
    if end > now and asked.settled is None:
        raise UsageError(
            f"the range ends in the future, at {end:%Y-%m-%d %H:%M:%S} UTC",
            hint="give --to now, or add --lag 10m to leave out the windows that have not ended",
        )
    asked = replace(
        asked,
        start=int(start.timestamp()),
        end=int(end.timestamp()),
        date_format=chosen.date_format,
        time_zone=chosen.zone_name or None if writes_dates else None,  # each window has its own offset
    )
    return plan(asked, state, svc.environment, svc.diagnostics.note)


def _refuse_an_end_before(start: int, to: Any, now: datetime, zone: str | None) -> None:
    """UsageError when --to lies before the start that a state gives, which a person does not see in the command."""
    end = dates.choose(0, to, None, zone, now=now, written=False).range.end
    if end is not None and end.timestamp() < start:
        raise UsageError(
            f"--to is {end:%Y-%m-%d %H:%M:%S} UTC, before the start that comes from the state: "
            f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC",
            hint="leave out --to to go on from there, or leave out --state to export another range",
        )


def _print_windows(svc: Context, export: Export) -> None:
    tasks = export.tasks() if export.target.per_window else {}
    rows = (
        [_moment(window.start), _moment(window.end), tasks[window].path if tasks else export.path]
        for window in export.windows
    )
    svc.output.records(WINDOWS, rows, svc.format(None, lists=True))


def _run(svc: Context, export: Export, workers: Workers, figures: dict[str, float], *, keep_going: bool) -> Summary:
    """Run an export and report it; `figures` are those for collectors."""
    from svcctl.exports.perform import Going, perform

    if workers.scheduler is None:
        workers.connect()  # a local service starts before the line of progress does
    going = Going()

    def told(entry: Entry) -> None:
        svc.diagnostics.event("window", **_ends(entry.window), **{name: getattr(entry, name) for name in _TOLD})

    svc.diagnostics.event("start", **_ends(export.whole), windows=len(export.windows))
    try:
        with svc.diagnostics.working(going.line):
            summary = perform(export, workers, going, told, keep_going=keep_going)
    finally:
        figures["retries"] = going.progress.retries
    figures |= {
        "success": float(not summary.gaps),
        "until_seconds": summary.until,
        "rows": summary.rows,
        "bytes": summary.bytes,
        "windows": summary.windows,
        "windows_fetched": summary.fetched,
        "windows_missing": len(summary.gaps),
    }
    counts = {
        "rows": summary.rows,
        "bytes": summary.bytes,
        "windows": summary.windows,
        **({"missing": len(summary.gaps)} if summary.gaps else {}),
        "retries": going.progress.retries,
        "seconds": round(going.seconds, 1),
    }
    if svc.diagnostics.structured:
        svc.diagnostics.event("summary", **counts)
    elif summary.idle:
        svc.diagnostics.note(f"nothing to do: {workers.target} is already whole")
    else:
        svc.diagnostics.note(" ".join(f"{name}={value}" for name, value in counts.items()))
    return summary


_TOLD = ("rows", "bytes", "seconds", "attempts")
"""The facts of a window that are reported."""


def _tell_gaps(svc: Context, summary: Summary) -> None:
    """List the gaps, and fail if there are any. Windows beside each other that failed alike are one gap."""
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
    windows = "1 window is" if len(summary.gaps) == 1 else f"{len(summary.gaps)} windows are"
    raise IncompleteResult(f"{windows} missing of {summary.windows}", hint=_RESUMES)


@contextmanager
def _measured(svc: Context, path: Path | None, name: str) -> Iterator[dict[str, float]]:
    """The figures of a run, written when it ends, however it ends."""
    from svcctl.exports import metrics

    if path is not None and not os.access(path.parent, os.W_OK):
        raise UsageError(f"the metrics file {path} cannot be written: no such directory, or no permission")
    figures: dict[str, float] = {"success": 0.0}
    started = svc.clock()

    def write() -> None:
        if path is not None:
            ended = svc.clock()
            metrics.write(path, name, figures | {"timestamp_seconds": ended, "duration_seconds": ended - started})

    try:
        yield figures
    except BaseException:
        try:
            write()
        except SvcctlError as error:
            svc.diagnostics.report(error)  # what failed first is raised
        raise
    write()


def _found(svc: Context, name: str) -> Found:
    from svcctl.exports.state import default_states
    from svcctl.exports.status import find

    return find(name, default_states(svc.environment), svc.environment)


def _rows(found: Found) -> Iterator[list[Any]]:
    """The status of an export, as rows of what and value."""
    from svcctl.exports.windows import length_text

    manifest, gaps = found.manifest, found.gaps()
    there, gone = found.holdings()
    length = manifest.about.window
    yield ["target", found.target]
    yield ["query", " ".join(manifest.about.query.split())]
    yield ["format", manifest.about.format]
    yield ["service", manifest.about.service]
    yield ["window", length_text(length)]
    for start, end in manifest.claimed:
        yield ["range", f"{_moment(start)} to {_moment(end)}"]
    yield ["windows", sum(entry.window.count(length) for entry in there)]
    yield ["rows", sum(entry.rows for entry in there)]
    yield ["bytes", sum(entry.bytes for entry in there)]
    yield ["missing", sum(window.count(length) for window in [*gaps, *(entry.window for entry in gone)])]
    for gap in gaps:
        yield ["gap", f"{_moment(gap.start)} to {_moment(gap.end)}"]
    for entry in gone:
        yield ["no file", found.storage.address(entry.path)]
    if found.state is not None:
        yield ["next run from", _moment(found.state.until)]


def _ends(window: Window) -> dict[str, str]:
    return {"from": _moment(window.start), "to": _moment(window.end)}


def _moment(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
