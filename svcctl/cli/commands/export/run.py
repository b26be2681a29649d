"""`svcctl export`: a long range in windows, into files that are whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from svcctl.cli.commands.export import report
from svcctl.cli.commands.export.options import (
    LAG,
    LOG_FORMATS,
    ON_ERROR,
    AgainOpt,
    DryRunOpt,
    EndOpt,
    ExportFormatOpt,
    LagOpt,
    LogFormatOpt,
    MaxTimeOpt,
    MetricsOpt,
    MostOpt,
    OnErrorOpt,
    PaceOpt,
    SchedulerOpt,
    StartOpt,
    StateOpt,
    TargetOpt,
    WindowOpt,
    WorkersOpt,
)
from svcctl.cli.commands.export.range import Given, counts_from_start, notes, resolve
from svcctl.cli.context import Context, Flags
from svcctl.cli.inputs import query_text
from svcctl.cli.options import DateFormatOpt, QueryFileOpt, QueryTextArg, TimeZoneOpt, VarOpt
from svcctl.dates.lengths import length_text
from svcctl.errors import (
    IncompleteResult,
    Interrupted,
    Locked,
    ProfileError,
    SvcctlError,
    Terminated,
    Unavailable,
    UsageError,
)
from svcctl.exports.windows import moment
from svcctl.io.time_limit import time_limit

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.exports.export import Export, Summary
    from svcctl.exports.plan import Asked
    from svcctl.exports.state import State, States
    from svcctl.exports.workers import Workers


def export(
    ctx: typer.Context,
    target: TargetOpt,
    text: QueryTextArg = None,
    from_: StartOpt = None,
    to: EndOpt = "now",
    time_zone: TimeZoneOpt = None,
    state: StateOpt = None,
    lag: LagOpt = None,
    format: ExportFormatOpt = None,
    force: AgainOpt = False,
    date_format: DateFormatOpt = None,
    file: QueryFileOpt = None,
    var: VarOpt = None,
    window: WindowOpt = "1h",
    workers: WorkersOpt = None,
    max_requests_per_second: PaceOpt = None,
    limit_per_window: MostOpt = None,
    scheduler: SchedulerOpt = None,
    on_error: OnErrorOpt = "continue",
    max_time: MaxTimeOpt = None,
    metrics: MetricsOpt = None,
    log_format: LogFormatOpt = "text",
    dry_run: DryRunOpt = False,
) -> None:
    """A run that fails leaves no incomplete file under its final name; run again, it fetches only what is missing.
    'svcctl help export' explains it and has recipes for cron, systemd and Kubernetes.

    \b
    svcctl export 'from auth.all' --from 7ad --to today -o week.csv.gz
    svcctl export -F auth.q --from 1ad --state auth -o 'out/{start:%F/%H}.csv.gz'
    svcctl export status auth       what is there, and where the next run starts
    svcctl export verify auth       hashes all files again
    """
    from svcctl.exports.state import default_states, placed

    svc: Context = ctx.obj
    svc.diagnostics.structured = log_format == "json"
    svc.closing.push(query_text.explains(var or []))
    svc.closing.push(report.names_profiles(svc))
    target = target.replace("\\%", "%")  # crontabs escape the percent sign
    with report.measured(svc, None if dry_run else metrics, state or placed(target)) as figures:
        states = default_states(svc.environment)
        before = None if state is None else states.load(state)
        if before is not None:
            figures["until_seconds"] = before.until
        _one_of("--log-format", log_format, LOG_FORMATS)
        stops = _one_of("--on-error", on_error, ON_ERROR) == "stop"
        waits = lag if lag is not None or state is None else LAG
        asked = _asked(
            svc,
            query_text.fill(query_text.read(text, file), var or []),
            _target(target, everywhere=scheduler is not None, incremental=state is not None),
            window,
            None if waits is None else math.floor(svc.clock() - waits),
            format=format,
            date_format=date_format,
            time_zone=time_zone,
            most=limit_per_window,
            overwrite=force,
            incremental=state is not None,
            state=state,
        )
        crew = workers_of(svc, asked.target, workers, max_requests_per_second, scheduler)
        # A first run that is refused leaves nothing, not even the folder of its lock.
        planned = _planned(svc, states, asked, None, from_, to) if before is None else None
        if dry_run:
            _rehearse(svc, planned or _planned(svc, states, asked, before, from_, to), asks=scheduler is None)
            return
        with nullcontext() if state is None else _recorded(svc, states, state):
            found = None if state is None else states.load(state)
            if planned is None or found is not None:
                planned = _planned(svc, states, asked, found, from_, to)
            figures["until_seconds"] = planned.export.whole.start
            run = _Run(svc, states, state, found, asked.target, planned.export, figures)
            if not planned.export.windows:
                run.stay()
                planned.tell(svc)
                return
            planned.tell(svc)
            with time_limit(max_time, partial(late, svc)):
                run(crew, lambda summary: planned.tell_end(svc, summary, to), asks=force and not scheduler, stops=stops)


@dataclass(frozen=True)
class _Planned:
    """The export of a run, and what to say about its range."""

    export: Export
    notes: tuple[str, ...]
    settled: int | None

    def tell(self, svc: Context) -> None:
        for note in self.notes:
            svc.diagnostics.note(note)

    def tell_end(self, svc: Context, summary: Summary, to: Any) -> None:
        """Say what a run replaced, and what it left for others."""
        report.tell_replaced(svc, summary)
        if not summary.idle:
            report.tell_offsets(svc, self.export)
        if self.export.incremental and self.settled is not None and counts_from_start(to):
            report.tell_due(svc, self.export, self.settled)


@dataclass
class _Run:
    """A run, with the state that moves with it: `found` is the state before, None for the first run."""

    svc: Context
    states: States
    name: str | None
    found: State | None
    target: str
    export: Export
    figures: dict[str, float]

    def __call__(self, workers: Workers, tell: Callable[[Summary], None], *, asks: bool, stops: bool) -> None:
        """Run the export, and `tell` how it ended. `asks` says that the query is tried before files are touched."""
        from svcctl.exports.fetch import check
        from svcctl.exports.run import opened

        export = self.export
        with resumable(self.svc):
            if asks:  # a mistake in the query must not cost existing files
                check(export.request, export.format, self.svc.client)
            with opened(export) as journal:
                if self.found is None:
                    self._save(export.whole.start)
                summary = report.report(self.svc, journal, workers, self.figures, stops=stops)
                if summary.until > export.whole.start:
                    self._save(summary.until)
            tell(summary)
            report.refuse_gaps(self.svc, summary)

    def stay(self) -> None:
        """Fix where the state begins, or check that it is that of the export, when there is nothing to export."""
        from svcctl.exports.claim import claim
        from svcctl.exports.run import opened

        if self.found is not None:
            claim(self.export)
            if self.found.failed:
                self._save(self.found.until)
        elif self.name is not None:
            with opened(self.export):
                self._save(self.export.whole.start)
        self.figures["success"] = 1.0

    def _save(self, until: int) -> None:
        from svcctl.exports.state import State, directory_of

        if self.name is not None:
            self.states.save(self.name, State(self.target, until, directory_of(self.target)))


@contextmanager
def _recorded(svc: Context, states: States, name: str) -> Iterator[None]:
    """Hold the lock of a state, and note in it when the run failed, and why, unless a person typed a mistake."""
    with states.locked(name):
        try:
            yield
        except Locked:
            raise
        except (SvcctlError, Terminated, KeyboardInterrupt) as error:
            if isinstance(error, UsageError) and svc.is_attended:
                raise
            why = error.message if isinstance(error, SvcctlError) else "interrupted"
            with suppress(SvcctlError):  # what failed first is raised
                if (state := states.load(name)) is not None:
                    said = " ".join(why.split())
                    states.save(name, replace(state, failed=f"{moment(math.floor(svc.clock()))}: {said}"))
            raise


def _target(text: str, *, everywhere: bool, incremental: bool) -> str:
    """The path to write to; for a cluster's workers, which run in directories of their own, it is absolute."""
    from svcctl.exports.plan import check_target

    check_target(text, incremental=incremental)
    return str(Path(text).absolute()) if everywhere and "://" not in text else text


def _asked(svc: Context, query: str, target: str, window: int, settled: int | None, **options: Any) -> Asked:
    """The export before its range is known."""
    from svcctl.exports.plan import Asked

    profile = svc.profile
    return Asked(
        query, target, 0, 0, int(window), profile.base_url, retries=profile.retries, settled=settled, **options
    )


def workers_of(
    svc: Context, target: str, count: int | None, per_second: float | None, scheduler: str | None = None
) -> Workers:
    """The workers of a run: threads here, or those of a cluster."""
    from svcctl.exports.workers import Workers

    here = svc.with_flags(retries=0)
    there = Elsewhere(replace(svc.flags, profile=svc.profile.name, retries=0), svc.profile.base_url)
    return Workers(lambda: here.client, there, target, count, per_second, scheduler)


@contextmanager
def resumable(svc: Context) -> Iterator[None]:
    """Say in errors that the run can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        error = Interrupted()
        error.add_note(report.RESUMES)
        raise error from None
    except (Terminated, Unavailable) as error:  # the note on the former is for whoever reads the job's log
        error.add_note(report.RESUMES)
        raise


def late(svc: Context, seconds: float) -> SvcctlError:
    why = "" if svc.diagnostics.trouble is None else f": {svc.diagnostics.trouble.message}"
    return IncompleteResult(f"the export is not complete after {length_text(seconds)}{why}", hint=report.RESUMES)


@dataclass(frozen=True)
class Elsewhere:
    """Makes the client of a cluster's worker, from the worker's own profile of the same name."""

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


def _planned(svc: Context, states: States, asked: Asked, state: State | None, from_: Any, to: Any) -> _Planned:
    """The export over the requested range, from where the state ends if there is one."""
    from svcctl.exports.formats import format_of
    from svcctl.exports.plan import plan
    from svcctl.terminal.formats import FORMATS, check_file, refuse_packed

    refuse_packed(Path(asked.target))
    format = format_of(asked.target, asked.format)[0]
    said = list[str]()
    check_file(asked.target, FORMATS[format.name], said.append, given=True)
    if state is not None and not state.is_of(asked.target):
        where = f"run it in {state.directory}, or " if state.directory else ""
        raise UsageError(
            f"the state '{asked.state}' belongs to the export to {state.place}",
            hint=f"{where}give another name to --state, with --from {moment(state.until)}",
        )
    writes_dates = format.heading  # the interface takes a date format in csv and tsv
    given = Given(
        from_,
        to,
        asked.date_format or (svc.profile.date_format if writes_dates else None),
        asked.time_zone or svc.profile.time_zone,
        None if state is None else state.until,
        asked.incremental,
        asked.settled,
        writes_dates,
        asked.query,
    )
    now = svc.now()
    resolved = resolve(given, now, terminal=svc.diagnostics.is_terminal)
    owner = (asked.state, state) if state is not None else states.writing(asked.target)
    asked = replace(
        asked,
        start=resolved.start,
        end=resolved.end,
        date_format=resolved.date_format,
        time_zone=resolved.zone or None if writes_dates else None,  # each window has its own offset
        clock=resolved.zone,
        state=asked.state if owner is None else owner[0],
        until=None if owner is None else owner[1].until,
    )
    export = plan(asked, svc.environment)
    about = notes(export, given, resolved.end, math.floor(now.timestamp()))
    return _Planned(export, (*said, *resolved.notes, *about), asked.settled)


def _rehearse(svc: Context, planned: _Planned, *, asks: bool) -> None:
    """Print the windows, or fail as the run would: on a mistake in the query, or on a file of another export.

    `asks` is False for a cluster, whose workers have credentials of their own: the query is not checked.
    """
    from svcctl.exports.claim import claim
    from svcctl.exports.fetch import check

    if planned.export.windows or planned.export.until is not None:
        claim(planned.export)
        if asks and planned.export.windows:
            check(planned.export.request, planned.export.format, svc.client)
    planned.tell(svc)
    report.print_windows(svc, planned.export)
