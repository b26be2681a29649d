"""The command `svcctl`: the global options, and the nouns such as `job`. A noun is imported only when it is typed.

The process exits only in the function `main`.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, NoReturn, get_args

import typer

from svcctl import __version__
from svcctl.cli import hints, spellings
from svcctl.cli.app import App, Command, CommandGroup, NoVerb
from svcctl.cli.commands import NOUNS
from svcctl.cli.context import Context
from svcctl.cli.help import TOPICS
from svcctl.cli.options import (
    COLORS,
    ColorOpt,
    ConfigOpt,
    NoPagerOpt,
    ProfileOpt,
    QuietOpt,
    RetriesOpt,
    TimeoutOpt,
    VerboseOpt,
)
from svcctl.errors import Terminated, UsageError, exit_code
from svcctl.io import encoding
from svcctl.terminal import standard_streams
from svcctl.terminal.standard_streams import wants_color

HIDDEN = {"complete": "completion", "manual-pages": "completion"}
"""The commands that no help page lists, each with the name of the module that has the command.

Completion scripts and packagers use these commands.
"""

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

ABOUT = """\
Query stored events and manage jobs, domains and roles.

\b
svcctl query 'from auth.all' --from 1h
svcctl query 'from auth.all group every 1h select count()' --from 1d --chart
svcctl export 'from auth.all' --from 1ad --to today -o yesterday.csv.gz
svcctl profile set prod"""

EPILOG = "'svcctl help' lists topics: dates, formats, recipes, the query language, exit-codes and more."


def _show_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.obj.output.text(f"svcctl {__version__}")
        raise typer.Exit


VersionOpt = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
]


def _words(*options: Any) -> dict[str, bool]:
    """Return the names of options. Each name is mapped to True if the option takes a value."""
    names: dict[str, bool] = {}
    for option in options:
        kind, *marks = get_args(option)
        for mark in marks:
            if isinstance(mark, typer.models.OptionInfo):  # Typer stores the first name as the default
                names.update(dict.fromkeys((str(mark.default), *(mark.param_decls or ())), kind is not bool))
    return names


GLOBAL_OPTIONS = _words(ProfileOpt, ConfigOpt, TimeoutOpt, RetriesOpt, ColorOpt, QuietOpt, VerboseOpt, NoPagerOpt)
"""The options that every command has. They may come before the command or after it."""


_SWITCHES = "-[iqvy]{2,}"
"""A pattern for options of one letter that are typed as one word, such as -yq."""


def hoist(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into the global options and the other arguments. Global options may be anywhere before `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options: list[str] = []
    rest: list[str] = []
    words = iter([usual for word in arguments[:end] for usual in _usual(word)])
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in GLOBAL_OPTIONS or (equals and not name.startswith("--")):
            rest.append(word)
            continue
        options.append(word)
        if GLOBAL_OPTIONS[name] and not equals:
            value = next(words, None)
            if value is None:
                return [word], []  # Typer would take the command for the option's value
            options.append(value)
    return options, [*rest, *arguments[end:]]


def _usual(word: str) -> list[str]:
    """Convert an argument to svcctl's spelling: replace another tool's global option, and split joined switches."""
    if re.fullmatch(_SWITCHES, word):
        return [f"-{letter}" for letter in word[1:]]
    name, equals, value = word.partition("=")
    first, *others = spellings.GLOBAL.get(name, (name,))
    return [f"{first}{equals}{value}", *others]


def root(
    ctx: typer.Context,
    profile: ProfileOpt = None,
    config: ConfigOpt = None,
    timeout: TimeoutOpt = None,
    retries: RetriesOpt = None,
    color: ColorOpt = "auto",
    quiet: QuietOpt = False,
    verbose: VerboseOpt = False,
    no_pager: NoPagerOpt = False,
    version: VersionOpt = False,
) -> None:
    """Put the global options into the Context object that every command finds in `ctx.obj`."""
    color = color.lower()
    if color not in COLORS:
        raise UsageError(f"unknown color mode '{color}'", hint=f"color modes are: {', '.join(COLORS)}")
    svc: Context = ctx.obj
    colored = wants_color(color, svc.diagnostics.stream, svc.environment)
    svc.diagnostics.configure(quiet=quiet, verbose=verbose, color=colored)
    ctx.obj = svc.with_flags(
        profile=profile, config=config, timeout=timeout, retries=retries, color=color, pager=not no_pager
    )
    if ctx.invoked_subcommand is None:
        ctx.obj.output.text(START)


class Root(CommandGroup):
    """The root command, which imports the module of a noun, such as `job`, only when a command line names the noun.

    Before the import, the noun is only a name and a description.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {noun: Command(noun, help=meaning) for noun, meaning in NOUNS.items()}

    def load(self, *nouns: str, verb: str = "") -> None:
        """Import the modules of nouns such as `job`. If a noun has the verb `verb`, its other verbs are left out."""
        app = App()
        for noun in nouns:
            importlib.import_module(f"svcctl.cli.commands.{noun}").register(app)
        app.keep(verb)
        self.commands.update(typer.main.get_group(app).commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args == ["version"]:
            _show_version(ctx, wanted=True)
        if args[0] == "help" and _is_command(args[1:]):
            args = [*args[1:], "--help"]
        noun = HIDDEN.get(args[0], args[0])
        if noun in NOUNS:
            self.load(noun, verb="".join(args[1:2]))
        return super().resolve_command(ctx, args)


def _is_command(words: Sequence[str]) -> bool:
    """Return whether the words after `help` name a command, and not a topic."""
    return bool(words) and words[0] in NOUNS and (len(words) > 1 or words[0] not in TOPICS)


def tree(context: Context | None = None) -> Any:
    """Return the root command, a `Root`. Its commands find the context in `ctx.obj`."""
    app = App(
        cls=Root,
        callback=root,
        invoke_without_command=True,
        help=ABOUT,
        epilog=EPILOG,
        context_settings={"help_option_names": ["--help", "-h"], "obj": context},
    )
    return typer.main.get_group(app)


def run(arguments: Sequence[str], context: Context | None = None) -> int:
    """Run one command line, and return its exit code."""
    context = context or Context()
    diagnostics = context.diagnostics
    diagnostics.hints = hints.hint_of
    try:
        options, words = hoist(arguments)
        with context.closing, _pages(options, words, context):
            code = tree(context)([*options, *words], prog_name="svcctl", standalone_mode=False)
        if code == INTERRUPTED:  # Typer catches the KeyboardInterrupt and returns this number
            return diagnostics.report(KeyboardInterrupt())
        return code if isinstance(code, int) else 0
    except NoVerb as error:
        diagnostics.page(error.message)
        return exit_code(error)
    except (Exception, KeyboardInterrupt, Terminated) as error:
        return diagnostics.report(error)
    finally:
        diagnostics.clear_progress()


def _pages(options: Sequence[str], words: Sequence[str], context: Context) -> AbstractContextManager[None]:
    """Return a context manager that shows the output of its block in a pager.

    The pager is used only if the command line asks for a help page without --no-pager.
    """
    asks = words[:1] == ["help"] or not {"--help", "-h"}.isdisjoint(words)
    return context.output.paged() if asks and "--no-pager" not in options else nullcontext()


def _terminate(*_: object) -> None:
    """Raise Terminated after SIGTERM, so that commands end in the same way as after Ctrl-C.

    A second SIGTERM is ignored, because the command `timeout` sends the signal twice.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    encoding.use_utf8()
    standard_streams.adopt()
    arguments = [encoding.argument(word) for word in sys.argv[1:]]
    context = Context(arguments=arguments)
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(arguments, context)
    sys.stdout.flush()
    # Nothing is buffered and nothing is left to do. An orderly shutdown of the interpreter would take milliseconds, and
    # would print an error if nobody reads stdout any more.
    os._exit(code)
