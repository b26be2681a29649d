"""`svcctl service`: the commands of the local service."""

from __future__ import annotations

import typer

from svcctl.cli.app import CHECK
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


READS = frozenset({"status", "accounts list", "queries list", "queries show"})
"""The commands of `svcctl service` that change nothing. A read-only profile refuses all other commands."""


def register(app: typer.Typer) -> None:
    app.add_typer(control.app, name="service", callback=_checks)


def _checks(ctx: typer.Context) -> None:
    ctx.meta[CHECK] = _check


def _check(ctx: typer.Context) -> None:
    """Raise UsageError if the profile is for another service.

    Also raises UsageError if the profile is read-only and the command would change something.
    """
    svc: Context = ctx.obj
    command = ctx.command_path.partition(" service ")[2]
    is_started = ctx.params.get("ready_fd") is not None  # by a query or by 'service start', which was checked before
    if command not in READS and not is_started:
        svc.profile.guard.refuse_change(f"'svcctl service {command}'")
    if (name := svc.flags.profile) is not None and name not in BUILT_IN:
        raise UsageError(
            f"'svcctl service' controls the service on this machine, not that of profile {name}",
            hint=_LOADS_ELSEWHERE if command == "load" else "leave out --profile",
        )
