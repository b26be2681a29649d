"""`svcctl service`: the service of one's own. The one module that imports it, and only to run it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl.commands import verbs_of
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import NotFound, UsageError
from svcctl.options import FormatOpt, YesOpt
from svcctl.profiles import LOCAL
from svcctl.service.events.readers import FILE_KINDS
from svcctl.terminal.records import STATUS

if TYPE_CHECKING:
    from svcctl.api.own_service import Loaded

ListenOpt = Annotated[
    str | None, typer.Option("--listen", metavar="HOST:PORT", help="Listen on TCP instead of the Unix socket.")
]
ReadyFdOpt = Annotated[int | None, typer.Option("--ready-fd", hidden=True)]
FileArg = Annotated[Path, typer.Argument(metavar="FILE", help="File to load; - is standard input."), Completes(FILES)]
TableOpt = Annotated[
    str, typer.Option("--table", "-t", metavar="NAME", help="Table to load into, as a.b.c."), Completes("tables")
]
TimeFieldOpt = Annotated[
    str | None, typer.Option("--time-field", metavar="F", help="The field that holds each event's date.")
]
LoadFormatOpt = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(FILE_KINDS)}; found out unless given."),
    Completes(words=FILE_KINDS),
]

app = verbs_of("service")


@app.command()
def start(ctx: typer.Context) -> None:
    """Start the local service in the background"""
    svc: Context = ctx.obj
    if not svc.start_local():
        svc.diagnostics.note("the local service already runs")


@app.command()
def stop(ctx: typer.Context) -> None:
    """Stop the local service and wait until it has gone"""
    from svcctl import local_service

    svc: Context = ctx.obj
    if not local_service.stop(svc.files):
        svc.diagnostics.note("the local service does not run")


@app.command()
def status(ctx: typer.Context, format: FormatOpt = None) -> None:
    """Show whether the local service runs, and what it holds; exit 4 when it does not run"""
    from svcctl import local_service
    from svcctl.api import own_service

    svc: Context = ctx.obj
    pid = local_service.running(svc.files)
    if pid is None or not local_service.answers(svc.files):
        raise NotFound("the local service does not run", hint="start it with 'svcctl service start'")
    found = own_service.status(svc.with_flags(profile=LOCAL).client)
    rows: list[list[object]] = [
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
    """Run the service in the foreground, until Ctrl-C or SIGTERM"""
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

    csv, tsv, ndjson, parquet, gz of them, access logs (common and combined), and logs whose lines begin with a date.

    \b
    svcctl service load /var/log/dpkg.log --table debian.dpkg
    zcat old.csv.gz | svcctl service load - -t shop.orders --time-field created
    """
    svc: Context = ctx.obj
    if format not in (None, *FILE_KINDS):
        raise UsageError(f"format '{format}' is not one", hint=f"formats are: {', '.join(FILE_KINDS)}")
    if str(file) == "-":
        import tempfile

        with tempfile.NamedTemporaryFile(dir=svc.files.directory) as spool:
            while block := sys.stdin.buffer.read(1 << 20):
                spool.write(block)
            spool.flush()
            loaded = _load(svc, Path(spool.name), table, time_field, format)
    else:
        if not file.is_file():
            raise UsageError(f"no file {file}")
        loaded = _load(svc, file.absolute(), table, time_field, format)
    svc.diagnostics.note(f"loaded {loaded.rows} events into {loaded.table}")
    if loaded.skipped:
        lines = "1 line that is" if loaded.skipped == 1 else f"{loaded.skipped} lines that are"
        svc.diagnostics.note(f"left out {lines} no event; the first: {loaded.first_skipped}")


def _load(svc: Context, path: Path, table: str, time_field: str | None, format: str | None) -> Loaded:
    from svcctl.api import own_service

    client = svc.with_flags(profile=LOCAL).client
    return own_service.load(client, str(path), table, time_field=time_field, format=format)


@app.command()
def reset(ctx: typer.Context, yes: YesOpt = False) -> None:
    """Stop the local service and delete its events and state; the next start makes the demo events anew"""
    from svcctl import local_service

    svc: Context = ctx.obj
    if not yes:
        svc.ask(f"Delete all events and state in {svc.files.directory}?")
    local_service.stop(svc.files)
    local_service.reset(svc.files)
