"""`svcctl service`: the commands of the local service."""

from __future__ import annotations

import typer

from svcctl.commands.service import accounts, control, saved_queries

control.app.add_typer(accounts.app, name="accounts")
control.app.add_typer(saved_queries.app, name="queries")


def register(app: typer.Typer) -> None:
    app.add_typer(control.app, name="service")
