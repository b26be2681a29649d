"""`svcctl service`: the service of one's own. The only module that imports it, and only to run it."""

from __future__ import annotations

from typing import Annotated

import typer

from svcctl import local
from svcctl.context import Context

ReadyFdOpt = Annotated[int | None, typer.Option("--ready-fd", hidden=True)]
ListenOpt = Annotated[
    str | None, typer.Option("--listen", metavar="HOST:PORT", help="Listen on TCP instead of the Unix socket.")
]

_app = typer.Typer(help="Run the service of one's own.", rich_markup_mode=None, no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="service")


@_app.command()
def start(ctx: typer.Context) -> None:
    """Start the local service in the background"""
    svc: Context = ctx.obj
    if not local.start(svc.files, svc.diagnostics.progress):
        svc.diagnostics.note("the local service already runs")


@_app.command()
def stop(ctx: typer.Context) -> None:
    """Stop the local service and wait until it has gone"""
    svc: Context = ctx.obj
    if not local.stop(svc.files):
        svc.diagnostics.note("the local service does not run")


@_app.command()
def serve(ctx: typer.Context, listen: ListenOpt = None, ready_fd: ReadyFdOpt = None) -> None:
    """Run the service in the foreground, until a signal"""
    svc: Context = ctx.obj
    from svcctl.service.server import serve as run

    run(svc.files, listen=listen, ready_fd=ready_fd)
