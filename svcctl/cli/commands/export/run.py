"""`svcctl export`: a long range in windows, into files that are whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from svcctl.api.query import outline
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
from svcctl.cli.context import Context, Flags
from svcctl.cli.inputs import query_text
from svcctl.cli.options import DateFormatOpt, QueryFileOpt, QueryTextArg, TimeZoneOpt, VarOpt
from svcctl.dates.lengths import length_text
from svcctl.dates.operators import operator_of
from svcctl.dates.range import Dates, both_ago, choose, shifted
from svcctl.dates.shorthand import EVERY
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
from svcctl.exports.moments import moment
from svcctl.io.time_limit import time_limit

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.exports.export import Export
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
    on_error: OnErrorOpt = "stop",
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
    from svcctl.exports.fetch import check
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
        asked = _asked(
            svc,
            query_text.fill(query_text.read(text, file), var or []),
            _target(target, everywhere=scheduler is not None, incremental=state is not None),
            window,
            lag if lag is not None or state is None else LAG,
            format=format,
            date_format=date_format,
            time_zone=time_zone,
            most=limit_per_window,
            overwrite=force,
            state=state,
        )
        keep_going = _one_of("--on-error", on_error, ON_ERROR) == "continue"
        crew = _workers(svc, asked.target, workers, max_requests_per_second, scheduler)
        if dry_run:
            planned, _ = _planned(svc, asked, before, from_, to)
            _rehearse(svc, planned, asks=scheduler is None)
            return
        # A first run that is refused leaves nothing, not even the folder of its lock.
        first = _planned(svc, asked, None, from_, to) if before is None else None
        with nullcontext() if state is None else _recorded(svc, states, state):
            found = None if state is None else states.load(state)
            planned, after = first if first and found is None else _planned(svc, asked, found, from_, to)
            figures["until_seconds"] = start = planned.whole.start
            if state is not None and found != (begun := _begun(found, after, planned, from_)):
                states.save(state, begun)
            if not planned.windows:
                figures["success"] = 1.0
                return
            with (
                _moving(svc, states, state, after, start) as moving,
                time_limit(max_time, partial(_late, svc)),
            ):
                if force and scheduler is None:  # a mistake in the query must not cost existing files
                    check(planned.request, planned.format, svc.client)
                summary = report.report(svc, planned, crew, figures, keep_going=keep_going)
                moving.reached = summary.until
            report.tell_replaced(svc, summary)
            if not summary.idle:
                report.tell_offsets(svc, planned)
            if state is not None and asked.settled is not None and _counts_from_start(to):
                report.tell_due(svc, planned, asked.settled)
            report.tell_gaps(svc, summary)


def _begun(found: State | None, after: State, planned: Export, from_: Any) -> State:
    """The state to save when a run begins: `found` is the state before the run, `after` the state it leads to."""
    start = planned.whole.start
    begun = replace(after, until=start, failed=found.failed if found is not None and planned.windows else "")
    if after.since != start:
        return begun
    # The next run starts here too, even if this one fails: by then, the same --from means a later day.
    begin = str(from_) if found is None else found.begin
    due = after.until if start < after.until else None
    return replace(begun, due=due, about=asdict(planned.about), begin=begin)


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


def _asked(svc: Context, query: str, target: str, window: int, waits: float | None, **options: Any) -> Asked:
    """The export before its range is known."""
    from svcctl.exports.plan import Asked

    return Asked(
        query=query,
        target=target,
        start=None,
        end=0,
        window=int(window),
        service=svc.profile.base_url,
        retries=svc.profile.retries,
        settled=None if waits is None else math.floor(svc.clock() - waits),
        **options,
    )


def _workers(svc: Context, target: str, count: int | None, per_second: float | None, scheduler: str | None) -> Workers:
    from svcctl.exports.workers import Workers

    here = svc.with_flags(retries=0)
    there = Elsewhere(replace(svc.flags, profile=svc.profile.name, retries=0), svc.profile.base_url)
    return Workers(lambda: here.client, there, target, count, per_second, scheduler)


@dataclass
class _Moving:
    """How far a run has come, in epoch seconds."""

    reached: int


@contextmanager
def _moving(svc: Context, states: States, name: str | None, after: State, start: int) -> Iterator[_Moving]:
    """Save in the state how far a run comes, however it ends; errors say that the run can be resumed."""
    moving = _Moving(start)
    try:
        yield moving
    except KeyboardInterrupt:
        error = Interrupted()
        error.hint = report.RESUMES
        raise error from None
    except Terminated as error:  # the hint is for whoever reads the job's log
        error.hint = report.RESUMES
        raise
    except Unavailable as error:
        error.add_note(report.RESUMES)
        raise
    finally:
        if name is not None and moving.reached > start:
            states.save(name, replace(after, until=moving.reached))


def _late(svc: Context, seconds: float) -> SvcctlError:
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


def _planned(svc: Context, asked: Asked, state: State | None, from_: Any, to: Any) -> tuple[Export, State]:
    """The export over the requested range, from where the state ends if there is one; and the state after it."""
    from svcctl.exports.formats import format_of
    from svcctl.exports.plan import earlier, plan
    from svcctl.exports.state import default_states
    from svcctl.terminal.formats import FORMATS, check_file, refuse_packed

    if state is None and from_ is None:
        raise UsageError(
            "the range has no start", hint="give it with --from" + ", on the first run at least" * asked.incremental
        )
    refuse_packed(Path(asked.target))
    format = format_of(asked.target, asked.format)[0]
    check_file(asked.target, FORMATS[format.name], svc.diagnostics.note, given=True)
    writes_dates = format.heading  # the interface takes a date format in csv and tsv
    now = svc.now()
    if state is not None and now.timestamp() < state.until:
        now = datetime.fromtimestamp(state.until, UTC)  # if the clock went back, there is nothing to export
    zone = asked.time_zone or svc.profile.time_zone
    if state is not None:
        _refuse_an_end_before(state.until, to, now, zone)
        _tell_start(svc, asked, state, from_, now, zone)
    chosen = choose(
        from_ if state is None else state.until,
        to,
        asked.date_format or (svc.profile.date_format if writes_dates else None),
        zone,
        now=now,
        written=writes_dates,
    )
    _tell_dates(svc, asked, state, chosen, to)
    start, end = chosen.range.start, chosen.range.end
    assert end is not None
    if end > now and asked.settled is None:
        raise UsageError(
            f"the range ends in the future, at {end:%Y-%m-%d %H:%M:%S} UTC",
            hint=(both_ago(from_, to) if state is None else None)
            or "give --to now, or add --lag 10m to leave out the windows that have not ended",
        )
    asked = replace(
        asked,
        start=int(start.timestamp()),
        end=int(end.timestamp()),
        date_format=chosen.date_format,
        time_zone=chosen.zone_name or None if writes_dates else None,  # each window has its own offset
        clock=chosen.zone_name,
    )
    export, after = plan(asked, state, svc.environment, svc.diagnostics.note)
    if state is None:
        states = default_states(svc.environment).writing(asked.target)
        export = replace(export, owner=next((name for name, each in states if each.since != each.until), None))
    if state is not None and state.since != state.until:
        found = earlier(export, state)
        after = replace(after, gone=report.tell_gone(svc, asked.state, export, found, state.gone))
    if state is None:
        report.tell_cut(svc, export, from_, math.floor(now.timestamp()))
    if not export.windows:
        report.tell_nothing(svc, export, asked.end, math.floor(now.timestamp()), asked.settled)
    elif not asked.incremental and export.whole.end < asked.end:
        report.tell_left_out(svc, export, asked.end)
    return export, after


def _tell_dates(svc: Context, asked: Asked, state: State | None, chosen: Dates, to: Any) -> None:
    """Say what range and periods the query has, if they may differ from those that were meant."""
    if (svc.diagnostics.is_terminal and not chosen.plain) or _looks_back(to):
        svc.diagnostics.note(chosen.summary)
    every = outline(asked.query).every
    for text in (
        chosen.slip if state is None else None,
        chosen.short,
        shifted(chosen, every, formula=False) if every else None,  # the formula's groups cannot be exported
        *query_text.slips(asked.query),
    ):
        if text is not None:
            svc.diagnostics.note(text)


def _tell_start(svc: Context, asked: Asked, state: State, from_: Any, now: datetime, zone: str | None) -> None:
    """Say that this run does not start at --from, if the state has not moved yet: --from may be a correction.

    The --from of the first run is not a correction when it is given again: 1d means a later moment on the next day.
    """
    if from_ is None or state.since != state.until or str(from_) == state.begin:
        return
    given = choose(from_, None, None, zone, now=now, written=False).range.start
    if int(given.timestamp()) != state.until:
        svc.diagnostics.note(
            f"the state '{asked.state}' starts where its first run did, at {moment(state.until)}, not at --from; "
            f"to begin elsewhere: svcctl export rm {asked.state}"
        )


def _refuse_an_end_before(start: int, to: Any, now: datetime, zone: str | None) -> None:
    """UsageError when --to lies before the start that a state gives, which the command does not show."""
    if _counts_from_start(to):
        return  # as it does in a range without a state
    end = choose(0, to, None, zone, now=now, written=False).range.end
    if end is not None and end.timestamp() < start:
        raise UsageError(
            f"--to is {end:%Y-%m-%d %H:%M:%S} UTC, before the start that comes from the state: "
            f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC",
            hint="leave out --to to go on from there, or leave out --state to export another range",
        )


def _counts_from_start(to: Any) -> bool:
    """Whether --to is relative to the start, as 1d is and today is not."""
    operator = operator_of(to, EVERY)
    return operator is not None and not operator.plain


def _looks_back(to: Any) -> bool:
    """Whether --to is relative to --from but written like a date before now, as 2ad is."""
    operator = operator_of(to, EVERY)
    return operator is not None and operator.name in ("<N>ad", "<N>ah")


def _rehearse(svc: Context, export: Export, *, asks: bool) -> None:
    """Print the windows, or fail as the run would: on a mistake in the query, or on a file of another export.

    `asks` is False for a cluster, whose workers have credentials of their own: the query is not checked.
    """
    from svcctl.exports.fetch import check
    from svcctl.exports.journal import Journal

    if export.windows:
        Journal(export).check()
        if asks:
            check(export.request, export.format, svc.client)
    report.print_windows(svc, export)
