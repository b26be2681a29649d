"""`svcctl profile`: connection profiles from the command line."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl.cli.columns.profile import PROFILES
from svcctl.cli.commands import verbs_of
from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.context import Context
from svcctl.cli.inputs import text
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import FormatOpt, YesOpt, spread
from svcctl.errors import UsageError
from svcctl.io import home
from svcctl.profiles import assignments
from svcctl.profiles.resolve import profile_in_use
from svcctl.profiles.settings import names_file, setting_of
from svcctl.terminal.escapes import visible
from svcctl.terminal.formats import find_format
from svcctl.terminal.records import ListField, Listing, row_listing

if TYPE_CHECKING:
    from svcctl.profiles.diagnosis import Result

NameArg = Annotated[str, typer.Argument(metavar="NAME", help="Name of a profile."), Completes("profiles")]
OptionalNameArg = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Name of a profile (default: the one in use)."),
    Completes("profiles"),
]
FieldsArg = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUE…", help="Fields to change; an empty value removes one. See 'svcctl help profiles'."
    ),
    Completes(words=words.profile_fields),
]

FromEnvOpt = Annotated[bool, typer.Option("--from-env", help="Copy the values of the SVCCTL_* environment variables.")]
FromFileOpt = Annotated[
    Path | None,
    typer.Option("--from-file", metavar="FILE", help="Take fields from FILE: YAML, JSON or NAME=VALUE lines."),
    Completes(FILES),
]


def _step(result: Result, width: int) -> str:
    """Return the result of a step of `profile check` as wrapped text."""
    text = f"{result.text}; {result.next}" if result.next and result.error is None else result.text
    return textwrap.fill(
        visible(text),
        min(width, 100),
        initial_indent=f"{result.outcome:<8}{result.step:<13}",
        subsequent_indent=" " * 21 if width >= 60 else " " * 4,
        break_on_hyphens=False,
    )


SETTINGS_LISTING = replace(row_listing("setting", "value", "source"), keyed=True)
STEPS: Listing[Result] = Listing(
    (
        ListField("step", attrgetter("step")),
        ListField("result", attrgetter("outcome")),
        ListField("found", attrgetter("text")),
        ListField("next", lambda result: result.next or None),
    ),
    paragraph=_step,
)

_app = verbs_of("profile")


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="profile")


@_app.command("list")
@spread
def list_(ctx: typer.Context, options: ListOptions) -> None:
    """List profiles; the one in use is marked"""
    svc: Context = ctx.obj
    if svc.store.is_missing:
        svc.diagnostics.note(f"profiles file {svc.store.path} ({svc.store.origin}) does not exist")
    stored = svc.store.before()
    used, _ = profile_in_use(stored, {"profile": svc.flags.profile}, svc.environment)
    mark, no_mark = (True, False) if svc.format(options.format, lists=True).raw else ("*", "")
    rows = [
        [name, mark if name == used else no_mark, stored.method(name), stored.fields(name).get("base_url")]
        for name in stored.names
    ]
    print_list(svc, PROFILES, lambda: rows, options)


@_app.command()
def show(ctx: typer.Context, name: OptionalNameArg = None, format: FormatOpt = None) -> None:
    """Show every setting and where it comes from, secrets masked"""
    svc: Context = ctx.obj
    profile = svc.profile if name is None else replace(svc.with_flags(profile=name).profile, name_source="argument")
    svc.output.records(SETTINGS_LISTING, profile.shown(), svc.format(format, lists=True), single=True)


@_app.command("set")
def set_(
    ctx: typer.Context,
    name: NameArg,
    fields: FieldsArg = None,
    from_env: FromEnvOpt = False,
    from_file: FromFileOpt = None,
) -> None:
    """Create or change a profile

    On a terminal, the command prompts for missing values.

    \b
    svcctl profile set prod
    svcctl profile set prod base_url=https://api.example.com api_key=KEY
    svcctl profile set prod api_secret_file=~/.secret timeout=20
    svcctl profile set prod api_secret=- < secret.txt
    svcctl profile set prod --from-env
    """
    svc: Context = ctx.obj
    changes = assignments.in_text(text.read(from_file, "fields"), text.name(from_file)) if from_file else {}
    changes |= assignments.in_environment(svc.environment) if from_env else {}
    changes |= _assigned(svc, fields or [])
    changes = assignments.with_absolute_paths(changes)
    typed = {}
    if svc.is_attended and sys.stdin.isatty():  # without a terminal, standard input is data, such as a secret
        typed = assignments.ask_missing(svc.store.before().fields(name), changes, svc.ask_for, svc.diagnostics.note)
    if not changes and not typed:
        raise UsageError("nothing to set", hint="give fields as FIELD=VALUE, for example base_url=https://…")
    if format := changes.get("format"):
        find_format(format, is_terminal=False)
    svc.store.set(name, changes | typed)
    for key, path in changes.items():
        if path and names_file(key) and not home.expanded_path(path).exists():
            svc.diagnostics.note(f"{key} {path} does not exist yet")
    if typed:
        svc.diagnostics.note(f"test it with 'svcctl profile check {name}'")
        svc.diagnostics.note(f"make it the default with 'svcctl profile use {name}'")


@_app.command()
def check(ctx: typer.Context, name: OptionalNameArg = None, format: FormatOpt = None) -> None:
    """Test a profile step by step and suggest fixes

    The exit code is that of the first step that failed.
    """
    from svcctl.profiles import diagnosis

    svc: Context = ctx.obj
    svc = svc.with_flags(profile=name or svc.flags.profile, retries=svc.flags.retries or 0)
    layout = find_format(format or "auto", is_terminal=svc.output.is_terminal, lists=True)
    subject = diagnosis.TestedProfile(svc.store, lambda: svc.profile, svc.connect, svc.environment, svc.clock)
    svc.diagnostics.advice = partial(diagnosis.advice, subject)
    svc.output.records(STEPS, diagnosis.run(subject), layout)
    if subject.failure is not None:
        raise subject.failure


@_app.command()
def use(ctx: typer.Context, name: NameArg) -> None:
    """Make a profile the default"""
    svc: Context = ctx.obj
    svc.store.use(name)


@_app.command()
def rm(ctx: typer.Context, name: NameArg, yes: YesOpt = False) -> None:
    """Delete a profile and its credentials"""
    svc: Context = ctx.obj
    svc.store.load().stored(name)
    if not yes:
        svc.ask(f"Delete profile {name} and its credentials?", here=True)
    svc.store.remove(name)
    svc.diagnostics.note(f"deleted profile {name}")


def _assigned(svc: Context, words: list[str]) -> dict[str, str]:
    """Return the fields of a profile from words such as FIELD=VALUE.

    A secret is read from a prompt that does not show it, or from a line of standard input.
    """
    lines = text.InputLines(sys.stdin.fileno())
    last = None

    def secret(key: str) -> str:
        nonlocal last
        if sys.stdin.isatty():
            return svc.ask_for(key, hidden=True)
        last = key
        return setting_of(key).cleaned(lines.next(key), "standard input")

    fields = assignments.in_arguments(words, secret)
    if last is not None and not lines.is_over(last):
        raise UsageError(
            f"{last} (standard input) has more than one line", hint="if the secret is the first line: … | head -n 1"
        )
    return fields
