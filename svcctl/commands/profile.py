"""`svcctl profile`: the credential store from the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl.completion import words
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import SvcctlError, UsageError, reason
from svcctl.options import FormatOpt, YesOpt
from svcctl.profiles import given
from svcctl.terminal.formats import find_format
from svcctl.terminal.records import PROFILES, SETTINGS, STEPS

NameArg = Annotated[str, typer.Argument(metavar="NAME", help="Name of a profile."), Completes("profiles")]
OptionalNameArg = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Name of a profile; the one in use unless given."),
    Completes("profiles"),
]
FieldsArg = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUE…", help="Fields to change; an empty value removes one. See 'svcctl help profiles'."
    ),
    Completes(words=words.profile_fields),
]

if TYPE_CHECKING:
    from svcctl.profiles.diagnosis import Result

FromEnvOpt = Annotated[bool, typer.Option("--from-env", help="Take what SVCCTL_BASE_URL and its like say.")]
FromFileOpt = Annotated[
    Path | None,
    typer.Option("--from-file", metavar="FILE", help="Take fields from FILE: YAML, JSON or NAME=VALUE lines."),
    Completes(FILES),
]

_app = typer.Typer(help="Say where a service is and who you are there.", rich_markup_mode=None, no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="profile")


@_app.command("list")
def list_(ctx: typer.Context, format: FormatOpt = None) -> None:
    """List the profiles; the one in use is marked"""
    svc: Context = ctx.obj
    used = svc.profile.name
    stored = svc.store.load()
    rows = [[name, name == used, stored.fields(name).get("base_url")] for name in stored.names]
    svc.output.records(PROFILES, rows, svc.format(format, lists=True))


@_app.command()
def show(ctx: typer.Context, name: OptionalNameArg = None, format: FormatOpt = None) -> None:
    """Show every setting and where it comes from, secrets masked"""
    svc: Context = ctx.obj
    if name is not None:
        svc = svc.with_flags(profile=name)
    profile = svc.profile
    rows = [["profile", profile.name, profile.name_source]]
    rows += [[value.setting.name, value.masked(), value.source] for value in profile.values.values()]
    rows += [
        [f"{group}.{key}", text, f"profile {profile.name}"]
        for group, names in profile.mappings.items()
        for key, text in names.items()
    ]
    svc.output.records(SETTINGS, rows, svc.format(format, lists=True))


@_app.command("set")
def set_(
    ctx: typer.Context,
    name: NameArg,
    fields: FieldsArg = None,
    from_env: FromEnvOpt = False,
    from_file: FromFileOpt = None,
) -> None:
    """Make or change a profile; on a terminal it asks for what is missing

    \b
    svcctl profile set prod
    svcctl profile set prod base_url=https://api.example.com api_key=KEY
    svcctl profile set prod api_secret_file=~/.secret timeout=20
    svcctl profile set prod api_secret=- < secret.txt
    svcctl profile set prod --from-env
    """
    svc: Context = ctx.obj
    changes = given.in_text(_text(from_file), f"file {from_file}") if from_file else {}
    changes |= given.in_environment(svc.environment) if from_env else {}
    changes |= given.assigned(fields or [], lambda key: _secret(svc, key))
    typed = {}
    if svc.is_attended:
        typed = given.typed(svc.store.load().fields(name), changes, svc.ask_for, svc.diagnostics.note)
    if not changes and not typed:
        raise UsageError("nothing to set", hint="give fields as FIELD=VALUE, base_url=https://… for example")
    svc.store.set(name, changes | typed)
    if typed:
        svc.diagnostics.note(f"try it with 'svcctl profile check {name}', use it with 'svcctl profile use {name}'")


@_app.command()
def check(ctx: typer.Context, name: OptionalNameArg = None, format: FormatOpt = None) -> None:
    """Say what works with a profile, step by step, and what to do where it does not

    The exit code is that of the first step that failed.
    """
    from svcctl.profiles import diagnosis

    svc: Context = ctx.obj
    svc = svc.with_flags(profile=name or svc.flags.profile, retries=svc.flags.retries or 0)
    chosen = find_format(format or "auto", is_terminal=svc.output.is_terminal, lists=True)
    subject = diagnosis.Subject(
        svc.store,
        resolve=lambda: svc.profile,
        connect=lambda profile, observe: svc.connect(observe),
        clock=svc.clock,
    )
    failures: list[SvcctlError] = []
    svc.output.records(STEPS, _noting(diagnosis.run(subject), failures), chosen)
    if failures:
        raise failures[0]


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


def _secret(svc: Context, key: str) -> str:
    """The value of a field given as `-`: typed without being shown, or a line of standard input."""
    if sys.stdin.isatty():
        return svc.ask_for(key, hidden=True)
    secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise UsageError(f"standard input holds no {key}")
    return secret


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"file {file} cannot be read: {reason(error)}") from None


def _noting(results: Iterator[Result], failures: list[SvcctlError]) -> Iterator[Result]:
    for result in results:
        if result.error is not None:
            failures.append(result.error)
        yield result
