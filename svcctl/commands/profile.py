"""`svcctl profile`: the credential store from the command line."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated

import typer

from svcctl import profiles
from svcctl.context import Context
from svcctl.errors import UsageError
from svcctl.options import FormatOpt, YesOpt
from svcctl.tables import TableColumn

NameArg = Annotated[str, typer.Argument(metavar="NAME", help="Name of a profile.")]
FieldsArg = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUE…", help="Fields to change; an empty value removes one. See 'svcctl help profiles'."
    ),
]

_app = typer.Typer(help="Say where a service is and who you are there.", rich_markup_mode=None, no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="profile")


@_app.command("list")
def list_(ctx: typer.Context, format: FormatOpt = None) -> None:
    """List the profiles; the one in use is marked"""
    svc: Context = ctx.obj
    used = svc.profile.name
    stored = svc.store.load()["profiles"]
    rows = [[name, name == used, (stored.get(name) or {}).get("base_url")] for name in svc.store.names()]
    columns = [TableColumn("name"), TableColumn("used"), TableColumn("base_url")]
    svc.output.records(columns, rows, svc.format(format, lists=True))


@_app.command()
def show(
    ctx: typer.Context, name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None, format: FormatOpt = None
) -> None:
    """Show every setting and where it comes from, secrets masked"""
    svc: Context = ctx.obj
    if name is not None:
        svc.flags = {**svc.flags, "profile": name}
    profile = svc.profile
    rows = [["profile", profile.name, profile.name_source]]
    rows += [[value.setting.name, value.masked(), value.source] for value in profile.values.values()]
    rows += [
        [f"{group}.{key}", text, f"profile {profile.name}"]
        for group, names in profile.mappings.items()
        for key, text in names.items()
    ]
    columns = [TableColumn("setting"), TableColumn("value"), TableColumn("source")]
    svc.output.records(columns, rows, svc.format(format, lists=True))


@_app.command("set")
def set_(ctx: typer.Context, name: NameArg, fields: FieldsArg = None) -> None:
    """Make or change a profile

    \b
    svcctl profile set prod base_url=https://api.example.com api_key=KEY api_secret_file=~/.secret
    svcctl profile set prod api_secret=- < secret.txt
    """
    svc: Context = ctx.obj
    changes = profiles.parse_assignments(fields or [])
    if not changes:
        raise UsageError("nothing to set", hint="give fields as FIELD=VALUE, base_url=https://… for example")
    for key, text in changes.items():
        if text == "-":
            changes[key] = _read_secret(key)
    svc.store.set(name, changes)


@_app.command()
def use(ctx: typer.Context, name: NameArg) -> None:
    """Make a profile the default"""
    svc: Context = ctx.obj
    svc.store.use(name)


@_app.command()
def rm(ctx: typer.Context, name: NameArg, yes: YesOpt = False) -> None:
    """Forget a profile and its credentials"""
    svc: Context = ctx.obj
    if not yes:
        svc.ask(f"Forget profile {name} and its credentials?")
    svc.store.remove(name)


def _read_secret(key: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"{key}: ")
    secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise UsageError(f"standard input holds no {key}")
    return secret
