"""`svcctl service`: start, stop and fill the local service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svcctl.commands import verbs_of
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import NotFound, UsageError
from svcctl.inputs import text
from svcctl.options import FormatOpt, YesOpt
from svcctl.profiles import LOCAL
from svcctl.service.events.readers import FILE_KINDS
from svcctl.terminal.records import STATUS

ListenOpt = Annotated[
    str | None, typer.Option("--listen", metavar="HOST:PORT", help="Listen on TCP too, besides the Unix socket.")
]
ReadyFdOpt = Annotated[int | None, typer.Option("--ready-fd", hidden=True)]
FileArg = Annotated[
    Path, typer.Argument(metavar="FILE", help="File to load; - reads standard input."), Completes(FILES)
]
TableOpt = Annotated[
    str, typer.Option("--table", "-t", metavar="NAME", help="Table to load into, such as a.b.c."), Completes("tables")
]
TimeFieldOpt = Annotated[
    str | None,
    typer.Option("--time-field", metavar="F", help="Field with the date of each event (detected if not given)."),
]
LoadFormatOpt = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(FILE_KINDS)}; detected if not given."),
    Completes(words=FILE_KINDS),
]

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
    from svcctl import local_service

    svc: Context = ctx.obj
    if not local_service.stop(svc.files):
        svc.diagnostics.note("the local service is not running")


@app.command()
def status(ctx: typer.Context, format: FormatOpt = None) -> None:
    """Show whether the local service is running, and its tables

    The exit code is 4 when it is not running.
    """
    from svcctl import local_service
    from svcctl.api import own_service

    svc: Context = ctx.obj
    pid = local_service.running(svc.files)
    if pid is None or not local_service.answers(svc.files):
        raise NotFound("the local service is not running", hint="start it with 'svcctl service start'")
    found = own_service.status(svc.with_flags(profile=LOCAL).client)
    rows: list[list[object]] = [
        ["service", f"runs on {found.address or svc.files.socket}, pid {pid}"],
        ["pid", pid],
        ["version", found.version],
        ["socket", str(svc.files.socket)],
        ["log", str(svc.files.log)],
        ["data", str(svc.files.directory)],
    ]
    rows += [[f"table {table.name}", ", ".join(table.columns)] for table in found.tables]
    svc.output.records(STATUS, rows, svc.format(format, lists=True))


@app.command()
def serve(ctx: typer.Context, listen: ListenOpt = None, ready_fd: ReadyFdOpt = None) -> None:
    """Run the service in the foreground until Ctrl-C or SIGTERM"""
    from svcctl import extras

    svc: Context = ctx.obj
    extras.need("service", "the local service")
    from svcctl.service.server import serve as run

    run(svc.files, listen=listen, ready_fd=ready_fd)


@app.command()
def load(
    ctx: typer.Context,
    file: FileArg,
    table: TableOpt,
    time_field: TimeFieldOpt = None,
    format: LoadFormatOpt = None,
) -> None:
    """Load a file of events into a table of the local service

    Reads csv, tsv, ndjson and parquet, plain or compressed with gzip or zstd, access logs (common and combined), and
    logs whose lines begin with a date. Nothing is loaded from a file that is damaged or cut off.

    \b
    svcctl service load /var/log/dpkg.log --table debian.dpkg
    zcat old.csv.gz | svcctl service load - -t shop.orders --time-field created
    """
    from svcctl.api import own_service

    svc: Context = ctx.obj
    if format not in (None, *FILE_KINDS):
        raise UsageError(f"unknown format '{format}'", hint=f"formats are: {', '.join(FILE_KINDS)}")
    svc.files.make()
    with text.as_file(file, svc.files.directory) as path:
        loaded = own_service.load(
            svc.with_flags(profile=LOCAL).client, str(path), table, time_field=time_field, format=format
        )
    svc.diagnostics.note(f"loaded {_count(loaded.rows, 'event')} into {loaded.table}")
    if loaded.skipped:
        lines = _count(loaded.skipped, "line")
        svc.diagnostics.note(f"skipped {lines} that could not be read; the first: {loaded.first_skipped}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@app.command()
def reset(ctx: typer.Context, yes: YesOpt = False) -> None:
    """Stop the local service and delete its events and state

    The next start creates the demo events again.
    """
    from svcctl import local_service

    svc: Context = ctx.obj
    if not yes:
        svc.ask(f"Delete all events and state in {svc.files.directory}?")
    local_service.stop(svc.files)
    local_service.reset(svc.files)
