"""`svcctl service`: start, stop and reset the local service, and show its status.

Commands such as `service accounts` use functions of this module to read and change the state of the service directly.
For these commands, the service need not be running.
"""

from __future__ import annotations

import shlex
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl.cli.columns.tables import TABLES
from svcctl.cli.commands import verbs_of
from svcctl.cli.context import Context
from svcctl.cli.options import FormatOpt, YesOpt
from svcctl.errors import NotFound, Unavailable, UsageError
from svcctl.io import extras
from svcctl.profiles import LOCAL
from svcctl.service.settings import PLACES, STATE, places
from svcctl.terminal.escapes import visible
from svcctl.terminal.layout import iso_text, second_text
from svcctl.terminal.records import ListField, Listing
from svcctl.words import counted, size_text

if TYPE_CHECKING:
    from svcctl.api.own_service import Status
    from svcctl.service.process import ServiceFiles
    from svcctl.service.state.store import Store

ListenOpt = Annotated[
    str | None, typer.Option("--listen", metavar="HOST:PORT", help="Listen on TCP too, besides the Unix socket.")
]
StateOpt = Annotated[
    str | None,
    typer.Option("--state", metavar="URL", help="PostgreSQL database of the state, for several service processes."),
]
TablesOpt = Annotated[
    str | None,
    typer.Option("--tables", metavar="URI", help="Shared folder of tables: a path, hdfs://… or s3://…."),
]
EngineOpt = Annotated[
    str | None,
    typer.Option("--engine", metavar="ENGINE", help="With --tables: run queries on Spark, at sc://HOST:PORT."),
]
CreateOpt = Annotated[
    bool,
    typer.Option(
        "--create", help="Make the shared folder if the state has no folder yet; a missing folder is never made again."
    ),
]
ReadyFdOpt = Annotated[int | None, typer.Option("--ready-fd", hidden=True)]


@dataclass(frozen=True, slots=True)
class RunningService:
    """The running local service: its status, its process ID, its files, and the size of the files in bytes."""

    status: Status
    pid: int | None
    files: ServiceFiles
    size: int


def _fact_lines(running: RunningService, width: int) -> str:
    """Return the known facts about the service, each on its own line."""
    facts = ((fact.name, (fact.shown or fact.value)(running)) for fact in SERVICE.fields)
    return "\n".join(f"{name:<8} {visible(str(value))}" for name, value in facts if value is not None)


def _place(name: str) -> ListField[RunningService]:
    return ListField(name, lambda running: running.status.uses.get(name))


def _ending_keys(running: RunningService) -> str | None:
    """Describe the API keys that expire soon; None if no key expires soon."""
    ends = (f"{name} expires {second_text(expires)} (UTC)" for name, expires in running.status.expiring)
    return "; ".join(ends) or None


SERVICE: Listing[RunningService] = Listing(
    (
        ListField("address", lambda running: running.status.address),
        ListField("socket", lambda running: str(running.files.socket)),
        ListField("pid", lambda running: running.pid),
        ListField(
            "since",
            lambda running: iso_text(running.status.started),
            shown=lambda running: f"{second_text(running.status.started)} (UTC)",
        ),
        ListField("version", lambda running: running.status.version),
        ListField("size", lambda running: running.size, "int8", shown=lambda running: size_text(running.size)),
        ListField("data", lambda running: str(running.files.directory)),
        ListField("log", lambda running: "stderr" if running.status.foreground else str(running.files.log)),
        *map(_place, PLACES),
        ListField("lost", lambda running: running.status.lost),
        ListField("keys", _ending_keys),
    ),
    paragraph=_fact_lines,
)
"""The columns of `service status`: the address, the process, and the places of events and state."""

app = verbs_of("service")


@app.command()
def start(ctx: typer.Context) -> None:
    """Start the local service in the background"""
    svc: Context = ctx.obj
    if not svc.start_local():
        svc.diagnostics.note("the local service is already running")


@app.command()
def stop(ctx: typer.Context) -> None:
    """Stop the local service and wait until it has stopped"""
    from svcctl.service import process

    svc: Context = ctx.obj
    if not process.stop(svc.files):
        svc.diagnostics.note("the local service is not running")
    else:
        svc.diagnostics.note("the local service has stopped; its jobs continue when it is started again")


@app.command()
def restart(ctx: typer.Context) -> None:
    """Stop the local service and start it in the background

    A service that was started with 'svcctl service serve --listen' is not restarted, because a service in the
    background cannot listen at the address of --listen.
    """
    from svcctl.service import process

    svc: Context = ctx.obj
    before = None
    if process.running_process(svc.files) is None:
        process.require_background(svc.files)
    elif (command := process.serve_command(svc.files)) is not None:
        raise UsageError(
            f"the local service was not started in the background, but with: {command}",
            hint="restart it there, or in the background with 'svcctl service stop' and then 'svcctl service start'",
        )
    else:
        with suppress(Unavailable):  # a service that hangs is restarted, too
            before = _status(svc)
    process.stop(svc.files)
    svc.start_local()
    if before is None:
        return
    now = places(svc.environment)
    for name, setting in PLACES.items():
        current, previous = now.get(name, "none"), before.uses.get(name, "none")
        if current != previous and name != "folder":  # the service itself reports a change of the folder
            svc.diagnostics.note(f"its {name} is now {current} (before: {previous}); {setting.environment} sets it")


@app.command()
def status(ctx: typer.Context, format: FormatOpt = None) -> None:
    """Show whether the local service is running, and its tables

    The exit code is 4 while the service does not run, is starting or is stopping. It is 6 if the service hangs, cannot
    reach its state or its tables, or has a full disk. csv and JSON leave out the tables; 'svcctl tables' lists them.
    """
    from svcctl.api import own_service
    from svcctl.service import process

    svc: Context = ctx.obj

    def starting() -> None:
        raise NotFound("the local service is starting or stopping", hint="'svcctl service start' waits for it")

    if not process.await_answer(svc.files, starting):
        raise NotFound(
            "the local service is not running", reason=process.NOT_RUNNING, data=process.last_start(svc.files)
        )
    answer, chosen = _status(svc), svc.format(format, lists=True)
    running = RunningService(answer, process.running_process(svc.files), svc.files, svc.files.size())
    svc.output.records(SERVICE, [running], chosen, single=True)
    if answer.problems:
        raise Unavailable("; ".join(answer.problems))
    if not chosen.raw:
        svc.output.text("")
        svc.output.records(TABLES, own_service.tables(svc.with_flags(profile=LOCAL).client), chosen)


def _status(svc: Context) -> Status:
    from svcctl.api import own_service

    return own_service.status(svc.with_flags(profile=LOCAL).client)


@app.command()
def confirm_loss(ctx: typer.Context) -> None:
    """Acknowledge that events of the local service are lost, and stop the notes about this

    'svcctl service status' shows which events are lost. If you can, first restore the service's file of events from a
    backup.
    """
    from svcctl.api import own_service

    svc: Context = ctx.obj
    lost = own_service.confirm_loss(svc.with_flags(profile=LOCAL).client)
    svc.diagnostics.note("no events were lost" if lost is None else f"confirmed: {lost}")


@app.command()
def serve(
    ctx: typer.Context,
    listen: ListenOpt = None,
    state: StateOpt = None,
    tables: TablesOpt = None,
    engine: EngineOpt = None,
    create: CreateOpt = False,
    ready_fd: ReadyFdOpt = None,
) -> None:
    """Run the service in the foreground until Ctrl-C or SIGTERM

    After a start with --listen, other commands do not start the service by themselves. Start it with this command, or
    with 'svcctl service start'.
    """
    from svcctl.io.imports import prevent_imports

    svc: Context = ctx.obj
    need_service()
    from svcctl.service.process import StarterPipe

    pipe = StarterPipe(ready_fd)
    with pipe.sending_errors():
        with prevent_imports("numpy"):  # Arrow would import it if it is installed: 12 MB that the service does not use
            from svcctl.service.server import serve as run

        command = shlex.join(["svcctl", *svc.arguments])
        options = {"listen": listen, "state": state, "tables": tables, "engine": engine}
        run(svc.files, command, **options, create=create, pipe=pipe)


@app.command()
def reset(ctx: typer.Context, yes: YesOpt = False) -> None:
    """Stop the local service and delete its events and state

    The next start creates the demo events again.
    """
    from svcctl.service import process

    svc: Context = ctx.obj
    if not yes:
        svc.ask(f"Delete all events and state in {svc.files.directory}{_held(svc)}?")
    process.stop(svc.files)
    process.reset(svc.files)


def _held(svc: Context) -> str:
    """Describe the tables, jobs and saved queries that a reset deletes.

    Only a running service can count its tables.
    """
    from svcctl.api import own_service
    from svcctl.service import process

    facts = []
    if svc.files.events.exists():
        facts = ["all tables (only a running service can count them)"]
    with suppress(Unavailable):  # a service that hangs cannot count its tables
        if process.listens(svc.files):
            tables = own_service.tables(svc.with_flags(profile=LOCAL).client)
            facts = [counted(sum(not table.live for table in tables), "table") + " of your own"]
    if svc.files.state.exists() and STATE.read(svc.environment) is None:  # a reset leaves a database alone
        store = open_state(svc)
        from svcctl.service.jobs import job_table
        from svcctl.service.queries import saved_queries

        facts += [
            counted(len(job_table.every(store)), "job"),
            counted(len(saved_queries.list_queries(store)), "saved query"),
        ]
    return f": {', '.join(facts)}" if facts else ""


def known_state(svc: Context) -> Store | None:
    """Open the saved state of the service, such as its accounts and jobs; None if there is no state.

    The state is closed when the command ends.
    """
    made = svc.files.state if STATE.read(svc.environment) is None else svc.files.credentials
    return open_state(svc) if made.exists() else None


def need_service() -> None:
    """Raise MissingExtra if the packages of the service are not installed."""
    extras.need("service", "the local service")


def open_state(svc: Context) -> Store:
    """Open the saved state of the service, such as its accounts and jobs. If there is no state, it is created.

    The state is closed when the command ends.
    """
    need_service()
    from svcctl.service import process
    from svcctl.service.accounts.seed import open_store
    from svcctl.service.state.events_record import loss_of

    store = svc.closing.enter_context(closing(open_store(svc.files, svc.environment)))
    if loss_of(store, process.place(svc.files)) is not None:
        svc.diagnostics.report_loss()
    return store
