"""`svcctl service`: the commands of the local service."""

from __future__ import annotations

import typer

from svcctl.cli.commands.service import accounts, control, loading, saved_queries, shared_folder
from svcctl.cli.context import Context
from svcctl.errors import Advice, CommandLine, UsageError
from svcctl.profiles import BUILT_IN

control.app.command()(loading.load)
control.app.command()(loading.drop)
control.app.command()(loading.trim)
control.app.command()(shared_folder.compact)
control.app.command()(shared_folder.copy)
control.app.add_typer(accounts.app, name="accounts")
control.app.add_typer(saved_queries.app, name="queries")


_LOADS_ELSEWHERE = Advice(
    "leave out --profile and load on the machine of that service, or into the folder that it shares: ",
    CommandLine("svcctl service load FILE -t TABLE --tables URI"),
)


def register(app: typer.Typer) -> None:
    app.add_typer(control.app, name="service", callback=_refuse_another_profile)


def _refuse_another_profile(ctx: typer.Context) -> None:
    svc: Context = ctx.obj
    if (name := svc.flags.profile) is not None and name not in BUILT_IN:
        raise UsageError(
            f"'svcctl service' is about the service on this machine, and not about profile {name}",
            hint=_LOADS_ELSEWHERE if ctx.invoked_subcommand == "load" else "leave out --profile",
        )
