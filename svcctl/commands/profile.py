"""`svcctl profile`: the credential store from the command line."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl import profiles
from svcctl.completion import words
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import SvcctlError, UsageError
from svcctl.options import FormatOpt, YesOpt
from svcctl.terminal.formats import find_format
from svcctl.terminal.tables import TableColumn, visible

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
    from svcctl.checks import Result

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
    stored = svc.store.load()["profiles"]
    rows = [[name, name == used, (stored.get(name) or {}).get("base_url")] for name in svc.store.names()]
    columns = [TableColumn("name"), TableColumn("used"), TableColumn("base_url")]
    svc.output.records(columns, rows, svc.format(format, lists=True))


@_app.command()
def show(ctx: typer.Context, name: OptionalNameArg = None, format: FormatOpt = None) -> None:
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
    changes = profiles.read_fields(from_file) if from_file else {}
    changes |= profiles.fields_of(svc.environment) if from_env else {}
    for key, text in profiles.parse_assignments(fields or []).items():
        changes[key] = _read_secret(svc, key) if text == "-" else text
    asked = _ask_for_missing(svc, name, changes) if svc.is_attended else {}
    if not changes and not asked:
        raise UsageError("nothing to set", hint="give fields as FIELD=VALUE, base_url=https://… for example")
    svc.store.set(name, changes | asked)
    if asked:
        svc.diagnostics.note(f"try it with 'svcctl profile check {name}', use it with 'svcctl profile use {name}'")


@_app.command()
def check(ctx: typer.Context, name: OptionalNameArg = None, format: FormatOpt = None) -> None:
    """Say what works with a profile, step by step, and what to do where it does not

    The exit code is that of the first step that failed.
    """
    from svcctl import checks
    from svcctl.connect import connect

    svc: Context = ctx.obj
    svc.flags = {**svc.flags, "retries": svc.flags.get("retries") or 0}
    if name is not None:
        svc.flags["profile"] = name
    chosen = find_format(format or "auto", is_terminal=svc.output.is_terminal, lists=True)
    subject = checks.Subject(
        svc.store,
        resolve=lambda: svc.profile,
        connect=lambda profile, observe: svc.closing.enter_context(
            connect(profile, svc.diagnostics, svc.clock, observe)
        ),
        clock=svc.clock,
    )
    failures: list[SvcctlError] = []
    results = _noting(checks.run(subject), failures)
    if chosen.name == "table":
        width = min(shutil.get_terminal_size().columns, 100)
        for result in results:
            svc.output.text(_lines(result, width))
    else:
        columns = [TableColumn(column) for column in ("step", "result", "found", "next")]
        rows = ([result.step, result.outcome, result.text, result.next or None] for result in results)
        svc.output.records(columns, rows, chosen)
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


def _read_secret(svc: Context, key: str) -> str:
    if sys.stdin.isatty():
        return svc.ask_for(key, hidden=True)
    secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise UsageError(f"standard input holds no {key}")
    return secret


def _ask_for_missing(svc: Context, name: str, changes: Mapping[str, str]) -> dict[str, str]:
    """What a profile needs, and neither has nor gets, as a person types it; nothing typed leaves it out."""
    stored = svc.store.load()["profiles"].get(name) or {}
    known = {
        key.removesuffix("_file").removesuffix("_command") for key in (*stored, *(k for k, v in changes.items() if v))
    }
    answers: dict[str, str] = {}

    def ask(key: str, about: str, default: str = "") -> str:
        if key in known:
            return changes.get(key) or str(stored.get(key) or "")
        setting = profiles.SETTINGS[key]
        while True:
            text = svc.ask_for(f"{key} ({about})", hidden=setting.secret) or default
            try:
                answers.update({key: text and str(setting.parse(text))} if text else {})
                return text
            except ValueError as error:
                svc.diagnostics.note(f"that cannot be used: {error}")

    if "socket" not in known:
        ask("base_url", "https://…")
    if known & {"api_key", "api_secret"} or "token" not in known:
        method = "signature" if known & {"api_key", "api_secret"} and "auth" not in known else ""
        method = method or ask("auth", "signature, token or jwt; signature unless you say", "signature")
        for key in ("api_key", "api_secret") if method == "signature" else ("token",):
            ask(key, profiles.SETTINGS[key].meaning)
    return answers


def _noting(results: Iterator[Result], failures: list[SvcctlError]) -> Iterator[Result]:
    for result in results:
        if result.error is not None:
            failures.append(result.error)
        yield result


def _lines(result: Result, width: int) -> str:
    """A step for a person, its text beside it as far as there is room; an error says what to do at the end."""
    indent = " " * 21 if width >= 60 else " " * 4
    text = visible(f"{result.text}; {result.next}" if result.next and result.error is None else result.text)
    return textwrap.fill(
        text,
        width,
        initial_indent=f"{result.outcome:<8}{result.step:<13}",
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
