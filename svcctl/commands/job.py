"""`svcctl job`: the jobs that run queries with a destination."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Annotated

import typer

from svcctl.api.jobs import looks, wait_for
from svcctl.api.models import Job, JobStatus
from svcctl.commands import verbs_of
from svcctl.completion import words
from svcctl.completion.words import Completes
from svcctl.context import Context
from svcctl.errors import Unavailable, UsageError
from svcctl.inputs import text
from svcctl.options import FormatOpt, YesOpt
from svcctl.terminal.records import JOBS, WATCHED
from svcctl.time_limit import time_limit

_IDS = typer.Argument(metavar="ID…", help="Job IDs; - reads them from standard input.")
IdsArg = Annotated[list[str], _IDS, Completes("jobs")]
RunningIdsArg = Annotated[list[str], _IDS, Completes("running")]
StoppedIdsArg = Annotated[list[str], _IDS, Completes("stopped")]
WatchedIdsArg = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]…", help="Job IDs (default: all jobs)."), Completes("jobs")
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
OnlyIdsOpt = Annotated[bool, typer.Option("--ids", help="Print only IDs, one per line.")]
ForOpt = Annotated[
    str, typer.Option("--for", metavar="STATE[,STATE]", help="States to wait for."), Completes(words=tuple(JobStatus))
]
WaitOpt = Annotated[
    float | None, typer.Option("--max-time", "--timeout", metavar="S", min=0, help="Give up after S seconds.")
]
WatchOpt = Annotated[float | None, typer.Option("--max-time", metavar="S", min=0, help="Stop after S seconds.")]
IntervalOpt = Annotated[float, typer.Option("--interval", metavar="S", min=0.1, help="Seconds between refreshes.")]

LAST_LOOK = 5.0
"""Seconds behind --max-time in which the service may still say how the jobs are; then the command ends regardless."""

_app = verbs_of("job")


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
    svc.output.records(JOBS, jobs, chosen)


@_app.command()
def show(ctx: typer.Context, ids: IdsArg, format: FormatOpt = None) -> None:
    """Show jobs"""
    svc: Context = ctx.obj
    _each(svc, text.words(ids), svc.client.job, format)


@_app.command()
def stop(ctx: typer.Context, ids: RunningIdsArg, format: FormatOpt = None) -> None:
    """Stop jobs; 'svcctl job start' resumes where they stopped"""
    svc: Context = ctx.obj
    _each(svc, text.words(ids), svc.client.stop_job, format)


@_app.command()
def start(ctx: typer.Context, ids: StoppedIdsArg, format: FormatOpt = None) -> None:
    """Resume stopped jobs where they stopped"""
    svc: Context = ctx.obj
    _each(svc, text.words(ids), svc.client.start_job, format)


@_app.command()
def rm(ctx: typer.Context, ids: IdsArg, yes: YesOpt = False, format: FormatOpt = None) -> None:
    """Remove jobs, even running ones; delivered data is kept"""
    svc: Context = ctx.obj
    named = text.words(ids)
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
    """Wait until jobs reach a state; fail if one has an error

    Fails at once when a job cannot reach the state by itself: a stopped job does not complete.

    \b
    svcctl job wait "$id" && svcctl job rm --yes "$id"
    """
    svc: Context = ctx.obj
    wanted = _states(for_)
    if not wanted:
        raise UsageError(f"--for '{for_}' contains no state")
    deadline = None if max_time is None else time.monotonic() + max_time
    with time_limit(
        None if max_time is None else max_time + LAST_LOOK,
        lambda: Unavailable(f"the service does not answer, and the {max_time:g} s of --max-time are over"),
    ):
        _each(svc, text.words(ids), lambda job_id: wait_for(svc.client, job_id, wanted, deadline), format)


@_app.command()
def watch(
    ctx: typer.Context,
    ids: WatchedIdsArg = None,
    interval: IntervalOpt = 1.0,
    max_time: WatchOpt = None,
    format: FormatOpt = None,
) -> None:
    """Show status, events, rate, lag and errors of jobs, live

    Prints a live table on a terminal. Elsewhere prints one row per job and interval, with the time of each.
    """
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)

    def read() -> tuple[Job, ...]:
        return svc.client.jobs()  # the client is made here, when the screen is there to show what it waits for

    seen = looks(read, text.words(ids or []), interval=interval, seconds=max_time, clock=svc.clock)
    svc.output.watch(WATCHED, seen, chosen)


def _each(svc: Context, ids: Sequence[str], act: Callable[[str], Job], format: str | None) -> None:
    """Print what `act` returns for each job; one that fails is reported, and the next one follows."""
    chosen = svc.format(format, lists=True)
    jobs = svc.diagnostics.each(ids, act)
    for first in jobs:  # when every one failed there is nothing to print, not even a heading
        svc.output.records(JOBS, chain([first], jobs), chosen)


def _states(text: str | None) -> frozenset[str]:
    return frozenset(word.strip().upper() for word in (text or "").split(",") if word.strip())
