"""The root command: global options, and the nouns, each loaded only when the arguments name it.

`main` is the only exit of the process.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NoReturn, get_args

import typer

from svcctl import __version__, encoding
from svcctl.commands import NOUNS, VERBS
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import UsageError
from svcctl.terminal import streams
from svcctl.terminal.diagnostics import EXIT_CODES, exit_code, wants_color

HIDDEN = {"complete": "completion"}
"""The command that completion scripts run, which no help page lists, and the noun whose module adds it."""

WHOLE = ("completion",)
"""Nouns that read the command tree itself: all the others are loaded with them."""

START = """\
svcctl queries stored events and manages jobs, domains and roles.

Try it now; a local demo service starts by itself:
  svcctl query 'from auth.all' --from 1h
  svcctl query 'from auth.all group every 1h select count()' --from 1d --chart

Connect to another service:
  svcctl profile set prod       prompts for its address and your credentials
  svcctl profile check prod     tests the connection and suggests fixes
  svcctl profile use prod       makes it the default

More:
  svcctl --help                 all commands; svcctl COMMAND --help for one
  svcctl help                   topics: dates, formats, query-language, …
  svcctl completion bash        or zsh or fish; --install installs the script"""

INTERRUPTED = 130

PLAINER = (
    (r"^got unexpected extra arguments?(?:\(s\))? \((\S+)\)$", r"unexpected argument: \1"),
    (r"^got unexpected extra arguments?(?:\(s\))? \((.+)\)$", r"unexpected arguments: \1"),
    (r"is not a valid int(?:eger)?(?: range)?$", "is not a whole number"),
    (r"is not a valid float(?: range)?$", "is not a number"),
    (r"is not in the range x>=(\S+)$", r"is less than \1"),
    (r"is not in the range (\S+)<=x<=(\S+)$", r"is not between \1 and \2"),
    (r" \(Possible options: (.+)\)$", r". Did you mean: \1?"),
)
"""Typer's own words for mistakes on the command line, and plainer ones."""

TAKE_A_QUERY = ("svcctl query", "svcctl export", "svcctl service queries set")
"""Commands that get too many arguments when a query has no quotes."""

EPILOG = "\n\n".join(
    (
        "Exit codes:",
        "\b\n" + "\n".join(f"{row.code:>4}  {row.meaning}" for row in EXIT_CODES),
    )
)


def _show_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.obj.output.text(f"svcctl {__version__}")
        raise typer.Exit


COLORS = ("auto", "always", "never")

ProfileOpt = Annotated[
    str | None, typer.Option("--profile", "-p", metavar="NAME", help="Profile to use."), Completes("profiles")
]
ConfigOpt = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="Profiles file to use."), Completes(FILES)
]
TimeoutOpt = Annotated[
    float | None, typer.Option("--timeout", metavar="S", min=0.001, help="Seconds to wait for the network.")
]
RetriesOpt = Annotated[
    int | None, typer.Option("--retries", metavar="N", min=0, help="How often a failed request is retried.")
]
ColorOpt = Annotated[
    str, typer.Option("--color", metavar="WHEN", help="auto, always or never."), Completes(words=COLORS)
]
QuietOpt = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
VerboseOpt = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log requests and responses to stderr (secrets masked).")
]
VersionOpt = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
]


def _words(*options: Any) -> dict[str, bool]:
    """The names of option types, and whether each takes a value."""
    found: dict[str, bool] = {}
    for option in options:
        kind, *marks = get_args(option)
        for mark in marks:
            if isinstance(mark, typer.models.OptionInfo):  # Typer holds the first name as the default
                found.update(dict.fromkeys((str(mark.default), *(mark.param_decls or ())), kind is not bool))
    return found


GLOBAL_OPTIONS = _words(ProfileOpt, ConfigOpt, TimeoutOpt, RetriesOpt, ColorOpt, QuietOpt, VerboseOpt)
"""The options of every command: they may come before the command or after it."""
OWN_OPTIONS: Mapping[tuple[str, ...], tuple[str, ...]] = {("job", "wait"): ("--timeout",)}
"""The commands that have an option of their own with the name of a global one."""


def hoist(arguments: Sequence[str]) -> list[str]:
    """The arguments with global options moved to the front, so that they may be written anywhere before `--`."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        own = name in OWN_OPTIONS.get(tuple(rest[:2]), ())
        if word == "--":
            rest.append(word)
            rest.extend(words)
        elif name not in GLOBAL_OPTIONS or own or (equals and not name.startswith("--")):
            rest.append(word)
        else:
            front.append(word)
            if GLOBAL_OPTIONS[name] and not equals:
                front.extend(value for value in [next(words, None)] if value is not None)
    return [*front, *rest]


def root(
    ctx: typer.Context,
    profile: ProfileOpt = None,
    config: ConfigOpt = None,
    timeout: TimeoutOpt = None,
    retries: RetriesOpt = None,
    color: ColorOpt = "auto",
    quiet: QuietOpt = False,
    verbose: VerboseOpt = False,
    version: VersionOpt = False,
) -> None:
    """Put the global options into the context that every command finds in `ctx.obj`."""
    if color not in COLORS:
        raise UsageError(f"unknown color mode '{color}'", hint=f"color modes are: {', '.join(COLORS)}")
    svc: Context = ctx.obj
    colored = wants_color(color, svc.diagnostics.stream, svc.environment)
    svc.diagnostics.configure(quiet=quiet, verbose=verbose, color=colored)
    ctx.obj = svc.with_flags(profile=profile, config=config, timeout=timeout, retries=retries, color=color)
    if ctx.invoked_subcommand is None:
        ctx.obj.output.text(START)


def app_with(nouns: Iterable[str], context: Context | None = None) -> typer.Typer:
    """The app with the commands of some nouns."""
    app = typer.Typer(
        name="svcctl",
        help="Query stored events and manage jobs, domains and roles.",
        epilog=EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 80, "obj": context},
    )

    app.callback(invoke_without_command=True)(root)
    for noun in nouns:
        importlib.import_module(f"svcctl.commands.{noun}").register(app)
    return app


def build(arguments: Sequence[str], context: Context) -> typer.Typer:
    """The app with the noun that hoisted `arguments` name, or with the names of all for help and for mistakes."""
    at = _noun_at(arguments)
    noun = None if at is None else arguments[at].partition(" ")[0]
    if noun in WHOLE:
        return app_with(NOUNS, context)
    if noun in NOUNS or noun in HIDDEN:
        return app_with([HIDDEN.get(noun, noun)], context)
    app = app_with([], context)
    for name, meaning in NOUNS.items():
        app.command(name, help=meaning)(lambda: None)
    return app


def joined(arguments: Sequence[str]) -> list[str]:
    """Hoisted arguments in which a verb and a noun that is a command by itself are one word."""
    words = list(arguments)
    at = _noun_at(words)
    if at is not None and words[at + 1 : at + 2] and words[at + 1] in VERBS.get(words[at], ()):
        words[at : at + 2] = [" ".join(words[at : at + 2])]
    return words


def _noun_at(arguments: Sequence[str]) -> int | None:
    """The index of the first hoisted argument that is neither a global option nor its value."""
    words = iter(enumerate(arguments))
    for at, word in words:
        if GLOBAL_OPTIONS.get(word):
            next(words, None)
        elif not word.startswith("-"):
            return at
    return None


def run(arguments: Sequence[str], context: Context | None = None) -> int:
    """Run one command line; returns its exit code."""
    context = context or Context()
    diagnostics = context.diagnostics
    arguments = joined(hoist(arguments))
    try:
        with context.closing:
            code = build(arguments, context)(list(arguments), prog_name="svcctl", standalone_mode=False)
        if code == INTERRUPTED:  # Typer catches the KeyboardInterrupt and returns this number
            return diagnostics.report(KeyboardInterrupt())
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:
        if page := _page_of(error):
            diagnostics.page(page)
            return exit_code(UsageError(""))
        return diagnostics.report(_usage_error(error))
    except (Exception, KeyboardInterrupt) as error:
        return diagnostics.report(error)
    finally:
        diagnostics.clear_progress()


def _page_of(error: typer.TyperException) -> str | None:
    """The help page of a noun that was named without a verb: Typer raises it as an error."""
    context = getattr(error, "ctx", None)
    return error.format_message() if context is not None and error.format_message() == context.get_help() else None


def _usage_error(error: typer.TyperException) -> UsageError:
    """Typer's own error in one line, with a hint where to look."""
    context = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split())
    message = message[:1].lower() + message[1:].rstrip(".")
    for pattern, plainer in PLAINER:
        message = re.sub(pattern, plainer, message)
    hints = [f"see '{context.command_path} --help'"] if context else []
    if message.startswith("unexpected argument") and context and context.command_path in TAKE_A_QUERY:
        hints.insert(0, f"put the query in single quotes: {context.command_path} 'from …'")
    about = getattr(getattr(error, "param", None), "help", None)
    if about and message.startswith("missing"):
        hints.insert(0, str(about).rstrip("."))
    return UsageError(message, hint="; ".join(hints) or None)


def main() -> NoReturn:
    """Run the command line of this process and exit. `svcctl.__main__` answers what needs none."""
    encoding.use_utf8()
    streams.adopt()
    code = run([encoding.argument(word) for word in sys.argv[1:]])
    sys.stdout.flush()
    # Nothing is buffered and nothing is left to do; taking the interpreter apart would cost a person at a prompt
    # milliseconds, and would complain about a stdout that nobody reads.
    os._exit(code)
