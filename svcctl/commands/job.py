"""`svcctl job`: the jobs that queries with a destination have become, for people and for scripts."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, TypeVar

import typer

from svcctl.api.models import Job, JobStatus
from svcctl.completion import words
from svcctl.completion.words import Completes
from svcctl.context import Context
from svcctl.errors import Conflict, NotFound, ServiceError, SvcctlError, Unavailable, UsageError
from svcctl.options import FormatOpt, YesOpt
from svcctl.terminal import tables
from svcctl.terminal.formats import Format
from svcctl.terminal.tables import TableColumn

T = TypeVar("T")

POLL_SECONDS = 0.5

_IDS = typer.Argument(metavar="ID…", help="IDs of jobs; - reads them from standard input.")
IdsArg = Annotated[list[str], _IDS, Completes("jobs")]
RunningIdsArg = Annotated[list[str], _IDS, Completes("running")]
StoppedIdsArg = Annotated[list[str], _IDS, Completes("stopped")]
WatchedIdsArg = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]…", help="IDs of jobs; all jobs without."), Completes("jobs")
]
StatusOpt = Annotated[
    str | None,
    typer.Option("--status", metavar="STATE[,STATE]", help="Only jobs in these states."),
    Completes(words=tuple(JobStatus)),
]
TypeOpt = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="Only jobs with this destination."),
    Completes(words=words.destinations),
]
OnlyIdsOpt = Annotated[bool, typer.Option("--ids", help="Print IDs alone, one a line.")]
ForOpt = Annotated[
    str, typer.Option("--for", metavar="STATE[,STATE]", help="States to wait for."), Completes(words=tuple(JobStatus))
]
WaitOpt = Annotated[
    float | None, typer.Option("--max-time", "--timeout", metavar="S", min=0, help="Give up after S seconds.")
]
WatchOpt = Annotated[float | None, typer.Option("--max-time", metavar="S", min=0, help="End after S seconds.")]
IntervalOpt = Annotated[float, typer.Option("--interval", metavar="S", min=0.1, help="Seconds between two looks.")]

_app = typer.Typer(
    help="List, stop, start, remove and watch jobs (queries launched with --dest).",
    rich_markup_mode=None,
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="job")


@_app.command("list")
def list_(
    ctx: typer.Context,
    status: StatusOpt = None,
    type: TypeOpt = None,
    ids: OnlyIdsOpt = False,
    format: FormatOpt = None,
) -> None:
    """List jobs

    \b
    svcctl job list --status RUNNING --ids | svcctl job stop -
    """
    svc: Context = ctx.obj
    wanted = _states(status)
    chosen = svc.format(format, lists=True)
    jobs = [
        job
        for job in svc.client.jobs()
        if (not wanted or job.status.upper() in wanted) and (type is None or (job.type or "").lower() == type.lower())
    ]
    if ids:
        for job in jobs:
            svc.output.text(job.id)
        return
    _print(svc, jobs, chosen)


@_app.command()
def show(ctx: typer.Context, ids: IdsArg, format: FormatOpt = None) -> None:
    """Show jobs"""
    svc: Context = ctx.obj
    _each(svc, ids, svc.client.job, format)


@_app.command()
def stop(ctx: typer.Context, ids: RunningIdsArg, format: FormatOpt = None) -> None:
    """Stop running jobs; 'svcctl job start' goes on where they stopped"""
    svc: Context = ctx.obj
    _each(svc, ids, svc.client.stop_job, format)


@_app.command()
def start(ctx: typer.Context, ids: StoppedIdsArg, format: FormatOpt = None) -> None:
    """Start stopped jobs again, from where they stopped"""
    svc: Context = ctx.obj
    _each(svc, ids, svc.client.start_job, format)


@_app.command()
def rm(ctx: typer.Context, ids: IdsArg, yes: YesOpt = False, format: FormatOpt = None) -> None:
    """Remove jobs, running ones too; what they delivered stays where it is"""
    svc: Context = ctx.obj
    named = _expanded(ids)
    if named and not yes:
        svc.ask(f"Remove {named[0] if len(named) == 1 else f'{len(named)} jobs'}?")
    _each(svc, named, svc.client.remove_job, format)


@_app.command()
def wait(
    ctx: typer.Context,
    ids: IdsArg,
    for_: ForOpt = JobStatus.COMPLETED.value,
    max_time: WaitOpt = None,
    format: FormatOpt = None,
) -> None:
    """Wait until jobs are in a state, without errors

    Fails at once when that state cannot come by itself: a stopped job does not complete.

    \b
    svcctl job wait "$id" && svcctl job rm --yes "$id"
    """
    svc: Context = ctx.obj
    wanted = _states(for_)
    if not wanted:
        raise UsageError(f"--for '{for_}' names no state")
    deadline = None if max_time is None else time.monotonic() + max_time
    _each(svc, ids, lambda job_id: _wait(svc, job_id, wanted, deadline), format)


@_app.command()
def watch(
    ctx: typer.Context,
    ids: WatchedIdsArg = None,
    interval: IntervalOpt = 1.0,
    max_time: WatchOpt = None,
    format: FormatOpt = None,
) -> None:
    """Show jobs as they go on: status, events, rate, lag behind now, errors

    On a terminal a table that stays in place; elsewhere a row for each job at each look, with its time.
    """
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    looks = _looks(svc, _expanded(ids or []), interval, max_time)
    if svc.output.is_terminal and chosen.name == "table":
        _draw(svc, looks)
        return
    if not chosen.lines:
        raise UsageError(f"{chosen.name} has an end, and watching has none", hint="watch in csv, tsv or ndjson")
    rows = ([look.at, *_watched(job, look, shown=False)] for look in looks for job in look.jobs)
    svc.output.live([TableColumn("time", "int8"), *_WATCHED], rows, chosen, svc.output.sink)


# Several jobs, one after the other


def _each(svc: Context, ids: Sequence[str], act: Callable[[str], Job], format: str | None) -> None:
    chosen = svc.format(format, lists=True)
    failures: list[int] = []
    jobs = collect(svc, _expanded(ids), act, failures)
    for first in jobs:
        _print(svc, chain([first], jobs), chosen)
    if failures:
        raise typer.Exit(max(failures))


def collect(svc: Context, names: Sequence[str], act: Callable[[str], T], failures: list[int]) -> Iterator[T]:
    """What `act` makes of each name. One that fails is reported, its exit code added, and the next one follows."""
    for name in names:
        try:
            found = act(name)
        except SvcctlError as error:
            failures.append(svc.diagnostics.report(error))
        else:
            yield found


def _expanded(ids: Sequence[str]) -> list[str]:
    """The IDs, `-` being those that standard input holds; each once."""
    words = [word for one in ids for word in (sys.stdin.read().split() if one == "-" else [one])]
    return list(dict.fromkeys(words))


def _states(text: str | None) -> frozenset[str]:
    return frozenset(word.strip().upper() for word in (text or "").split(",") if word.strip())


# Waiting


def _wait(svc: Context, job_id: str, wanted: frozenset[str], deadline: float | None) -> Job:
    """The job in a wanted state and without errors. A service that is away for a while is waited for, too."""
    while True:
        state = "unknown"
        try:
            job = svc.client.job(job_id)
        except NotFound:
            if JobStatus.REMOVED in wanted:
                return Job(job_id, JobStatus.REMOVED)
            raise
        except Unavailable:
            if deadline is None:
                raise
        else:
            state = job.status
            if job.status in wanted and not job.error:
                return job
            _check_hope(job, wanted)
            if job.error:
                state += f" ({'; '.join(job.error)})"
        if deadline is not None and time.monotonic() >= deadline:
            raise Unavailable(f"job {job_id} is {state}, not {' or '.join(sorted(wanted))}, and the time is up")
        pause = POLL_SECONDS if deadline is None else min(POLL_SECONDS, max(0.0, deadline - time.monotonic()))
        time.sleep(pause)


def _check_hope(job: Job, wanted: frozenset[str]) -> None:
    """Whether a job that is not as wanted can still become so without anybody's doing."""
    resting = job.status in (JobStatus.COMPLETED, JobStatus.STOPPED)
    if resting and job.error:
        raise ServiceError(f"job {job.id} is {job.status} with an error: {'; '.join(job.error)}")
    others = {
        JobStatus.COMPLETED: wanted & {JobStatus.REMOVED},
        JobStatus.STOPPED: wanted - {JobStatus.COMPLETED, JobStatus.STOPPED},
    }
    if resting and not others[JobStatus(job.status)]:
        raise Conflict(f"job {job.id} is {job.status}: it does not become {' or '.join(sorted(wanted))} by itself")


# Watching


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen at a moment (epoch milliseconds), and at the one before; `failure` when nothing was."""

    at: int
    jobs: tuple[Job, ...]
    before: dict[str, tuple[int, int | None]]
    failure: str | None = None


def _looks(svc: Context, ids: Sequence[str], interval: float, max_time: float | None) -> Iterator[_Look]:
    """One look after the other. While the service does not answer, jobs are as they were seen last."""
    deadline = None if max_time is None else time.monotonic() + max_time
    jobs: tuple[Job, ...] = ()
    before: dict[str, tuple[int, int | None]] = {}
    while True:
        failure = None
        try:
            found = svc.client.jobs()
        except Unavailable as error:
            failure = error.message
        else:
            jobs = tuple(job for job in found if not ids or job.id in ids)
        at = int(svc.clock() * 1000)
        yield _Look(at, jobs, before, failure)
        if failure is None:
            before = {job.id: (at, job.events_sent) for job in jobs}
        if deadline is not None and time.monotonic() + interval > deadline:
            return
        time.sleep(interval)


_WATCHED = (
    TableColumn("id", "id"),
    TableColumn("status", "id"),
    TableColumn("eventsSent", "int8"),
    TableColumn("rate", "float8"),
    TableColumn("lag", "float8"),
    TableColumn("error"),
    TableColumn("type", "id"),
    TableColumn("friendlyName"),
    TableColumn("eventGenerated", "int8"),
)
"""What a narrow terminal must show stands first."""


def _watched(job: Job, look: _Look, *, shown: bool) -> list[Any]:
    """A job's row: the rate in events a second, the lag of a running job behind now in seconds.

    `shown` is for a person: the beginning of the ID, and errors in words.
    """
    rate = lag = None
    then, sent = look.before.get(job.id, (0, None))
    if sent is not None and job.events_sent is not None and look.at > then:
        rate = round((job.events_sent - sent) * 1000 / (look.at - then), 1)
    if job.status == JobStatus.RUNNING and job.last_datetime:
        lag = round((look.at - job.last_datetime) / 1000, 1)
    error = "; ".join(job.error) or None if shown else list(job.error)
    job_id = job.id.partition("-")[0] if shown else job.id
    return [job_id, job.status, job.events_sent, rate, lag, error, job.type, job.friendly_name, job.event_generated]


def _draw(svc: Context, looks: Iterator[_Look]) -> None:
    """A frame at each look, on the terminal's other screen; the last one stays on the first."""
    write = svc.output.sink.write
    frame = ""
    write(b"\x1b[?1049h\x1b[?25l")
    try:
        for look in looks:
            frame = _frame(svc, look)
            write(f"\x1b[H\x1b[2J{frame}".encode())
    finally:
        write(f"\x1b[?25h\x1b[?1049l{frame}".encode())


def _frame(svc: Context, look: _Look) -> str:
    """A table as wide and as high as the terminal is now."""
    size = shutil.get_terminal_size()
    style = replace(svc.output.style, width=size.columns, null="-")
    rows = [_watched(job, look, shown=True) for job in look.jobs]
    lines = list(tables.table(_WATCHED, rows, style, tables.Cuts()))[: size.lines - 2]
    count = "1 job" if len(rows) == 1 else f"{len(rows)} jobs"
    lines.append(f"{look.failure or count}, {tables.format_moment(look.at, style, fraction=False)}")
    return "".join(f"{line[: size.columns] if not style.color else line}\n" for line in lines)


# How jobs are printed


_COLUMNS = (
    ("id", "id"),
    ("status", "id"),
    ("type", "id"),
    ("friendlyName", None),
    ("eventGenerated", "int8"),
    ("eventsSent", "int8"),
    ("lastDatetime", "int8"),
    ("error", None),
    ("query", None),
)


def _print(svc: Context, jobs: Iterator[Job] | Sequence[Job], format: Format) -> None:
    """The interface's fields as they are; in a table dates as dates, and errors in words."""
    laid_out = not format.raw
    columns = [
        TableColumn(name, "timestamp" if laid_out and name == "lastDatetime" else kind) for name, kind in _COLUMNS
    ]
    svc.output.records(columns, (_row(job, laid_out=laid_out) for job in jobs), format)


def _row(job: Job, *, laid_out: bool) -> list[Any]:
    fields = job.to_json()
    if laid_out:
        fields["lastDatetime"] = job.last_datetime or None
        fields["error"] = "; ".join(job.error) or None
    return [fields.get(name) for name, _ in _COLUMNS]
