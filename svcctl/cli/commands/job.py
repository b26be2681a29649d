"""`svcctl job`: the jobs that run queries with a destination."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.api import models
from svcctl.api.job_names import MIN_ID_CHARS, Chosen, choose, shortest, split_name
from svcctl.api.job_watch import Watched, at_moment, failing_first, looks
from svcctl.api.jobs import Changed, progress, restart, wait_for
from svcctl.api.models import FAILING, Job, JobStatus
from svcctl.cli import hints
from svcctl.cli.apply.options import ApplyOptions
from svcctl.cli.columns.job import JOB, JOBS, WATCHED
from svcctl.cli.commands import verbs_of
from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.context import Context
from svcctl.cli.idempotence import change_job, done_if
from svcctl.cli.inputs import job_ids, job_states, text
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import (
    ColumnsOpt,
    FormatOpt,
    ObjectsOpt,
    YesOpt,
    length_option,
    spread,
    start_option,
)
from svcctl.dates.epochs import seconds_to_ms, to_ms
from svcctl.dates.lengths import length_text, parse_length
from svcctl.dates.operators import moment_text
from svcctl.errors import NotFound, ServiceError, Unavailable, UsageError
from svcctl.io.time_limit import time_limit
from svcctl.terminal.diagnostics import Reported, Work
from svcctl.terminal.escapes import visible
from svcctl.terminal.records import Listing
from svcctl.terminal.selection import NO_SELECTION, Selection, selection_of
from svcctl.words import DESTINATION_TYPES, counted

_HELP = "Friendly names, job IDs or their beginnings"
_IDS = typer.Argument(metavar="ID…", help=f"{_HELP}; - reads them from standard input.")
_CHANGED = typer.Argument(
    metavar="ID…",
    help=f"Friendly names, job IDs or their first {MIN_ID_CHARS} characters or more; - reads them from standard input.",
)
IdsArg = Annotated[list[str], _IDS, Completes("jobs")]
ChangedIdsArg = Annotated[list[str], _CHANGED, Completes("jobs")]
RunningIdsArg = Annotated[list[str], _CHANGED, Completes("running")]
StoppedIdsArg = Annotated[list[str], _CHANGED, Completes("stopped")]
WatchedIdsArg = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]…", help=f"{_HELP} (default: all jobs)."), Completes("jobs")
]
StatusOpt = Annotated[
    str | None,
    typer.Option("--status", metavar="STATE[,STATE]", help="Only jobs in these states."),
    Completes(words=(*JobStatus, FAILING)),
]
TypeOpt = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="Only jobs with this destination."),
    Completes(words=DESTINATION_TYPES),
]
FailingOpt = Annotated[bool, typer.Option("--failing", help="Only FAILING jobs: they run and have an error.")]
OnlyIdsOpt = Annotated[bool, typer.Option("--ids", help="Print only IDs, one per line.")]
ForOpt = Annotated[
    str, typer.Option("--for", metavar="STATE[,STATE]", help="States to wait for."), Completes(words=tuple(JobStatus))
]
WaitOpt = Annotated[float | None, length_option("--max-time", "Give up after 30s, 5m, ….")]
KeepWaitingOpt = Annotated[
    bool, typer.Option("--keep-waiting", help="Keep waiting while a job is FAILING: it may recover.")
]
IfNeededOpt = Annotated[bool, typer.Option("--if-needed", help="Do not fail if a job is already in this state.")]
IfThereOpt = Annotated[bool, typer.Option("--if-needed", help="Do not fail if there is no such job.")]
WatchOpt = Annotated[float | None, length_option("--max-time", "Stop after 30s, 5m, ….")]
IntervalOpt = Annotated[
    Any, length_option("--interval", "Time between refreshes.", None, partial(parse_length, least=0.1))
]

ExportedIdsArg = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]…", help=f"{_HELP} (default: all jobs)."), Completes("jobs")
]
RelaunchOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--relaunch",
        metavar="NAME",
        help="Continue this job with a new one even if only a secret differs; repeat for more.",
    ),
    Completes("jobs"),
]
PruneOpt = Annotated[
    bool, typer.Option("--prune", help="Remove jobs that were applied from files and are no longer in any file.")
]

VerifiedIdsArg = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]…", help=f"{_HELP}; - reads them from standard input."),
    Completes("jobs"),
]
AllOpt = Annotated[
    bool, typer.Option("--all", help="Verify all jobs, except those to donothing, which delivers nothing.")
]
OldestOpt = Annotated[
    Any, start_option(start="Rows with an earlier date may be gone"), Completes(words=words.start_dates)
]
KeepOpt = Annotated[bool, typer.Option("--keep", help="Use the date of --from in later checks, too.")]
FiguresOpt = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", help="Write the results for Prometheus' textfile collector."),
    Completes(FILES),
]

Change = Callable[[str], Changed]
"""A function that takes the ID of a job, changes the job, and returns the changed job."""

LAST_LOOK = 5.0
"""How many seconds the command still waits for the service to answer when --max-time is over."""

_app = verbs_of(
    "job", "FAILING means that a running job has an error. Programs get 'status' RUNNING and 'failing' true."
)


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="job")


@_app.command("list")
@spread
def list_(
    ctx: typer.Context,
    status: StatusOpt = None,
    type: TypeOpt = None,
    failing: FailingOpt = False,
    ids: OnlyIdsOpt = False,
    *,
    options: ListOptions,
) -> None:
    """List jobs

    A table shows the beginning of each ID; every command accepts this beginning. Jobs with an error come first. On a
    terminal, the error is printed below its job. FAILING means that a running job has an error. The lag is the time
    since lastDatetime, the date up to which the job has read events.

    csv and JSON have whole IDs. In these formats, a FAILING job has 'status' RUNNING and 'failing' true.

    \b
    svcctl job list --status RUNNING --ids | svcctl job stop -
    svcctl job list --failing --ids | svcctl job restart -
    """
    svc: Context = ctx.obj
    output_format = svc.format(options.format, lists=True)
    for option, value in {"--format": options.format, "--columns": options.columns}.items():
        if ids and value is not None:
            raise UsageError(f"{option} has no effect on --ids, which prints only IDs", hint="leave out one of the two")
    jobs = svc.client.jobs()
    states, kind = job_states.to_list(status, lambda: jobs), (type or "").lower()
    known = {*map(str.lower, DESTINATION_TYPES), *((job.type or "").lower() for job in jobs)}
    if kind and kind not in known:
        raise UsageError(f"there is no type '{type}'", hint=f"types are {', '.join(DESTINATION_TYPES)}")
    chosen_jobs = [
        job
        for job in jobs
        if (not states or states & {job.status.upper(), models.status_text(job)})
        and (not kind or (job.type or "").lower() == kind)
        and (not failing or models.status_text(job) == FAILING)
    ]
    listed = at_moment(chosen_jobs, _now(svc), shortest(job.id for job in jobs))
    if ids:
        for row in JOBS.in_order(listed, options.selection):
            svc.output.text(row.job.id)
        return
    ordered = listed if output_format.raw else failing_first(listed)
    print_list(svc, JOBS, lambda: ordered, options, f"none of {counted(len(jobs), 'job')}" if jobs else "no jobs")


@_app.command()
def show(ctx: typer.Context, ids: IdsArg, format: FormatOpt = None, columns: ColumnsOpt = None) -> None:
    """Show all that the service returns about jobs

    FAILING means that a running job has an error. In csv and JSON, such a job has 'status' RUNNING and 'failing' true.

    In json, a single named job is an object, and several jobs are a list.

    svcctl's own service also returns the job's range and parameters, and the dates of its launch and its last delivery.
    It returns the date since which the job has failed (failingSince), the date up to which 'job verify' found no gap,
    and the process that runs the job (host/process ID).

    Other services do not return the range and the parameters. No service returns secrets. So keep the command or the
    file that launches the job.
    """
    svc: Context = ctx.obj
    single = len(ids) == 1 and ids != [text.STDIN]
    _print_each(
        svc, _chosen(svc, ids), svc.client.job, format, JOB, selection_of(columns, None, None, False), single=single
    )


@_app.command()
def stop(ctx: typer.Context, ids: RunningIdsArg, if_needed: IfNeededOpt = False, format: FormatOpt = None) -> None:
    """Stop jobs; 'svcctl job start' resumes where they stopped"""
    svc: Context = ctx.obj
    chosen = _chosen(svc, ids, changes=True)
    _change(svc, chosen, _to(svc, svc.client.stop_job, JobStatus.STOPPED, if_needed), "stopped", format)


@_app.command()
def start(ctx: typer.Context, ids: StoppedIdsArg, if_needed: IfNeededOpt = False, format: FormatOpt = None) -> None:
    """Resume stopped jobs where they stopped; completed jobs stay unchanged"""
    svc: Context = ctx.obj
    chosen = _chosen(svc, ids, changes=True)
    _change(svc, chosen, _to(svc, svc.client.start_job, JobStatus.RUNNING, if_needed), "started", format)


@_app.command("restart")
def restart_(ctx: typer.Context, ids: ChangedIdsArg, format: FormatOpt = None) -> None:
    """Stop jobs and start them again where they stopped

    Prints the error that each job had. Stopped jobs are started, and completed jobs stay unchanged.

    \b
    svcctl job list --failing --ids | svcctl job restart -
    """
    svc: Context = ctx.obj
    chosen = _chosen(svc, ids, changes=True)
    _change(svc, chosen, lambda job_id: restart(svc.client, job_id, svc.diagnostics.note), "restarted", format)


@_app.command()
def rm(
    ctx: typer.Context,
    ids: ChangedIdsArg,
    yes: YesOpt = False,
    if_needed: IfThereOpt = False,
    format: FormatOpt = None,
) -> None:
    """Remove jobs, even running ones; delivered data is kept"""
    svc: Context = ctx.obj
    chosen = _chosen(svc, ids, changes=True)
    if if_needed:
        chosen = _there(svc, chosen)
    if chosen.ids and not yes:
        svc.ask(_removal(svc, chosen))
    _change(svc, chosen, lambda job_id: Changed(svc.client.remove_job(job_id)), "removed", format)


@_app.command()
def export(ctx: typer.Context, ids: ExportedIdsArg = None) -> None:
    """Print jobs as a file for 'svcctl job apply'

    'from' is the date up to which a job has read, so a new launch continues from this date. Add the secrets of
    destinations, because no service returns them. For a service other than svcctl's own, also add 'to' and the other
    parameters of destinations.

    \b
    svcctl job export > jobs.yaml
    """
    from svcctl.cli.apply.job_steps import current, exported
    from svcctl.cli.inputs import yaml_files

    svc: Context = ctx.obj
    names = job_ids.read(ids or [])
    jobs = [svc.client.job(job_id) for job_id in _chosen(svc, names).ids] if names else current(svc.client.jobs())
    svc.output.text(yaml_files.to_yaml([exported(job) for job in jobs]))
    if any((job.type or "").lower() != "donothing" for job in jobs):
        missing = "secrets" if all("params" in job.extra for job in jobs) else "'to' and the parameters of destinations"
        svc.diagnostics.note(f"jobs are shown without {missing}: add them where they are needed")


@_app.command("apply")
@spread
def apply_(ctx: typer.Context, options: ApplyOptions, relaunch: RelaunchOpt = None, prune: PruneOpt = False) -> None:
    """Launch, change, start and stop jobs as files say, showing the differences

    A changed job continues where it stopped: no event is lost, and no event is sent twice. Jobs that are in no file
    stay unchanged, unless --prune is given. Applying a file twice changes nothing the second time. Asks before the
    first change. See 'svcctl help apply'.

    \b
    A file holds one job, a list of them, or several documents:
      name: nightly-auth                 required; commands take it
      query: from auth.all               required
      from: 1ad                          required, for the first launch
      to: 2027-01-01                     if the job should end
      time_zone: Europe/Berlin           of from and to; UTC without it
      destination:                       required; see 'svcctl help destinations'
        type: Kafka
        params: {bootstrap.servers: broker:9092, topic: fails}
      state: running                     or stopped
    A secret has its own file: sasl.password_file: PATH, or ..._command: COMMAND.
    """
    from svcctl.cli.apply.job_steps import DomainJobs
    from svcctl.cli.apply.steps import carry_out
    from svcctl.cli.inputs import job_files, yaml_files

    svc: Context = ctx.obj
    documents = yaml_files.read(options.file, "job", options.var or ())
    written = list(svc.diagnostics.for_each(documents, partial(job_files.written, now=svc.now())))
    jobs = DomainJobs(svc.client, svc.diagnostics.note, relaunch=relaunch or ())
    steps = jobs.steps(written, prune=prune)
    carry_out(svc, jobs, steps, options)


@_app.command()
def verify(
    ctx: typer.Context,
    ids: VerifiedIdsArg = None,
    all_: AllOpt = False,
    from_: OldestOpt = None,
    keep: KeepOpt = False,
    metrics: FiguresOpt = None,
    format: ObjectsOpt = None,
) -> None:
    """Compare what destinations have with the rows that jobs delivered

    svcctl's own service produces the rows again, and compares them with the rows that it reads from Kafka, S3 or HDFS.
    Jobs may run during the check. The exit code is 7 if rows are missing, altered or out of order. It is 10 if rows are
    only duplicated or foreign (not delivered by a job). It is 6 if a destination does not answer. For several jobs, the
    exit code is the first of these codes that occurs: 3, 6, 7, other failures, 10.

    Missing rows are not a failure if the topic no longer keeps them, or if their date is before --from. A gap is
    printed with the query that returns the missing rows. In 'job show', 'verified' is the date up to which no gap was
    found.

    \b
    svcctl job verify failed-logins
    svcctl job verify --all --metrics jobs.prom
    svcctl job verify failed-logins --from 30ad --keep
    """
    from svcctl.api import own_service
    from svcctl.cli.verification import DeliveryChecks

    svc: Context = ctx.obj
    if all_ == bool(ids):
        raise UsageError("name the jobs, or give --all", hint="'svcctl job list' has their names")
    if keep and from_ is None:
        raise UsageError("--keep needs the date before which rows may be gone", hint="add --from, as in --from 30ad")
    since = None if from_ is None else _oldest(svc, from_)
    chosen = _delivering(svc) if ids is None or all_ else _chosen(svc, ids)
    jobs = {job.id: job for job in chosen.listed()}
    checks = DeliveryChecks(
        svc,
        {job_id: jobs[job_id].extra.get("verified") or 0 if job_id in jobs else 0 for job_id in chosen.ids},
        {job_id: split_name(job.friendly_name or job_id)[0] for job_id, job in jobs.items()},
        several=all_ or len(chosen.ids) > 1,
        programs=format is not None,
    )

    def check(job_id: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        with _hinting(chosen, job_id):
            yield from own_service.verify(svc.client, job_id, since=since, keep=keep)

    with checks.measured(metrics):
        code = checks(check)
    if code:
        raise Reported(code)


@_app.command()
def wait(
    ctx: typer.Context,
    ids: IdsArg,
    for_: ForOpt = JobStatus.COMPLETED.value,
    max_time: WaitOpt = None,
    keep_waiting: KeepWaitingOpt = False,
    format: FormatOpt = None,
) -> None:
    """Wait until jobs are in a state, without an error

    Fails if a job reports an error, or cannot reach the state by itself: a stopped job does not complete. A FAILING job
    may recover, for example when its broker is back. With --keep-waiting, the command prints the error and waits. A job
    launched with --follow has no end and never completes.

    \b
    svcctl job wait "$id" && svcctl job rm --yes "$id"
    """
    svc: Context = ctx.obj
    deadline = None if max_time is None else time.monotonic() + max_time
    with time_limit(
        None if max_time is None else max_time + LAST_LOOK,
        lambda seconds: svc.late(
            seconds - LAST_LOOK,
            Unavailable(f"the service does not answer, and --max-time {length_text(seconds - LAST_LOOK)} is over"),
        ),
    ):
        chosen = _chosen(svc, ids)
        wanted = job_states.to_wait_for(for_, chosen.jobs)
        last = "waiting for the service"
        errors: dict[str, tuple[Any, ...]] = {}
        endless: set[str] = set()
        start_ms = _now(svc)

        def report(job: Job) -> None:
            nonlocal last
            last = progress(job, wanted)
            # Services do not return the end of a job's range. A job that has read up to now would have passed any
            # earlier end.
            if JobStatus.COMPLETED in wanted and (job.last_datetime or 0) >= start_ms and job.id not in endless:
                endless.add(job.id)
                svc.diagnostics.note(
                    f"job {job.id} has read all events up to now: "
                    "it waits for new events, until the end of its range, or for ever if it was launched with --follow"
                )
            if job.error and errors.get(job.id) != job.error:
                errors[job.id] = job.error
                state = f"job {job.id} is {models.status_text(job)} and reports: {job.reason}"
                if not keep_waiting:
                    raise ServiceError(state, hint="--keep-waiting waits until it recovers")
                svc.diagnostics.note(f"{state} (still waiting)")

        with svc.diagnostics.working(lambda: Work(last)):
            _print_each(svc, chosen, lambda job_id: wait_for(svc.client, job_id, wanted, deadline, seen=report), format)


@_app.command()
def watch(
    ctx: typer.Context,
    ids: WatchedIdsArg = None,
    interval: IntervalOpt = "1s",
    max_time: WatchOpt = None,
    format: FormatOpt = None,
) -> None:
    """Show status, events, rate, lag and errors of jobs, live

    On a terminal, prints a live table with failing jobs first. Elsewhere, prints one row per job and interval, with the
    time of the row and the lag in seconds. The rate is the number of sent events per second. It is the number of
    generated events per second if the service returns eventsSent only for completed jobs. While the service does not
    answer, the last known jobs are shown. If the service still does not answer at the end of --max-time, the exit code
    is 6. Ctrl-C ends the command with exit code 0; so does q on a terminal.
    """
    svc: Context = ctx.obj
    output_format = svc.format(format, lists=True)

    def read() -> tuple[Job, ...]:
        return svc.client.jobs()  # the client is made late, so that the screen shows the wait

    seen = looks(read, job_ids.read(ids or []), interval=interval, seconds=max_time, clock=svc.clock)
    svc.output.watch(WATCHED, seen, output_format)


def _chosen(svc: Context, names: Sequence[str], *, changes: bool = False) -> Chosen:
    texts = job_ids.read(names)
    if not texts:
        svc.diagnostics.done("no IDs: nothing done")
    return choose(texts, svc.client.jobs, changes=changes)


def _oldest(svc: Context, typed: Any) -> int:
    """Convert --from to epoch milliseconds.

    If the date was typed without a zone, a note names the zone that is used.
    """
    from svcctl.dates.range import read_in, start_of

    zone = svc.profile.time_zone
    date = start_of(typed, zone, now=svc.now())
    if date > svc.now():
        raise UsageError(f"--from {moment_text(date)} (UTC) is in the future")
    if (note := read_in(zone, svc.now(), {"--from": typed})) is not None:
        svc.diagnostics.note(note)
    return max(0, to_ms(date))


def _delivering(svc: Context) -> Chosen:
    """Return all jobs except those with the destination `donothing`. A note says how many jobs were left out."""
    jobs = svc.client.jobs()
    idle = [job for job in jobs if (job.type or "").lower() == "donothing"]
    if idle:
        svc.diagnostics.note(f"left out: {counted(len(idle), 'job')} to donothing, which delivers nothing")
    elif not jobs:
        svc.diagnostics.note("no jobs")
    return Chosen([job.id for job in jobs if job not in idle], lambda: jobs)


def _there(svc: Context, chosen: Chosen) -> Chosen:
    """Return the chosen jobs that exist. Notes name the jobs that do not exist."""
    ids = []
    for job_id in chosen.ids:
        with done_if(True, lambda error: isinstance(error, NotFound), svc.diagnostics.note):
            _hinted(chosen, svc.client.job, job_id)
            ids.append(job_id)
    return Chosen(ids, chosen.jobs)


def _print_each(
    svc: Context,
    chosen: Chosen,
    act: Callable[[str], Job],
    format: str | None,
    listing: Listing[Watched] = JOBS,
    selection: Selection = NO_SELECTION,
    *,
    single: bool = False,
) -> None:
    """Call `act` for each job, and print the returned jobs.

    An error for one job is reported, and the next job follows.
    """
    output_format = svc.format(format, lists=True)

    def acted(job_id: str) -> Watched:
        return at_moment([_hinted(chosen, act, job_id)], _now(svc), chosen.short(job_id))[0]

    jobs = svc.diagnostics.for_each(chosen.ids, acted)
    for first in jobs:  # if all jobs failed, nothing is printed, not even a heading
        svc.output.records(listing, chain([first], jobs), output_format, selection, single=single)


def _hinted(chosen: Chosen, act: Callable[[str], Job], job_id: str) -> Job:
    """Call `act` for a job. If there is no such job, the error has a hint."""
    with _hinting(chosen, job_id):
        return act(job_id)


@contextmanager
def _hinting(chosen: Chosen, job_id: str) -> Iterator[None]:
    """Add a hint to the error of an unknown job."""
    try:
        yield
    except NotFound as error:
        if not error.hint:
            error.add_note(chosen.hint(job_id) or hints.LIST_JOBS)
        raise


def _to(svc: Context, change: Callable[[str], Job], wanted: JobStatus, if_needed: bool) -> Change:
    """Return a function that starts or stops a job. The function reports a completed job as unchanged."""

    def act(job_id: str) -> Changed:
        changed = change_job(change, svc.client, job_id, wanted, if_needed=if_needed)
        if changed.job.status == JobStatus.COMPLETED:
            return Changed(changed.job, f"job {job_id} is COMPLETED")
        return changed

    return act


def _change(svc: Context, chosen: Chosen, change: Change, changed: str, format: str | None) -> None:
    """Change jobs with the function `change`. Notes name the unchanged jobs, and say how many jobs were changed.

    `changed` is the participle for the change, such as `stopped`.
    """
    ids = []

    def act(job_id: str) -> Job:
        result = change(job_id)
        if result.left is None:
            ids.append(job_id)
        else:
            svc.diagnostics.note(f"nothing to do: {result.left}")
        return result.job

    try:
        _print_each(svc, chosen, act, format)
    finally:
        if len(chosen.ids) > 1:
            svc.diagnostics.done(f"{changed} {len(ids)} of {len(chosen.ids)} jobs")


def _removal(svc: Context, chosen: Chosen) -> str:
    """Return the question to ask before jobs are removed.

    The question names the jobs. If nobody can be asked, the question becomes part of an error message, and several jobs
    are counted instead of named. Raises Reported if a job is unknown.
    """
    known = {job.id: job for job in chosen.listed()}

    def find(job_id: str) -> Job:
        return known.get(job_id) or _hinted(chosen, svc.client.job, job_id)  # a service may not list all jobs

    try:
        jobs = list(svc.diagnostics.for_each(chosen.ids, find))
    except Reported:
        svc.diagnostics.done("nothing was removed")
        raise
    if len(jobs) == 1:
        return f"Remove job {_about(jobs[0], shortest(known) if svc.is_attended else None)}?"
    if not svc.is_attended:  # the question becomes part of an error message, in one line
        return f"Remove {len(jobs)} jobs?"
    named = [_about(job, shortest(known)) for job in jobs]
    return "\n  ".join(["Jobs:", *named]) + f"\nRemove these {len(jobs)} jobs?"


def _about(job: Job, size: int | None = None) -> str:
    return visible("  ".join(filter(None, (job.id[:size], models.status_text(job), job.friendly_name))))


def _now(svc: Context) -> int:
    return seconds_to_ms(svc.clock())
