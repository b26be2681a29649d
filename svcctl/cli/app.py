"""The classes of svcctl's Typer app. They add help pages, other names for options, and errors for unknown commands.

A noun is a group of commands, such as `svcctl job`. The commands of a noun are called verbs.

Typer has no public types for Click's classes, so such parameters have the type Any here.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from svcctl.cli import mistakes, spellings
from svcctl.cli.help import PAGE_WIDTH
from svcctl.errors import Advice, CommandLine, UsageError
from svcctl.terminal.size import terminal_size

CHECK = "svcctl.check"
"""A key of `meta`, the dictionary in a Typer context. The value is a function to call before each command of a group.

Each group that needs a check stores such a function, which may raise an error to prevent the command.
"""

Function = TypeVar("Function", bound=Callable[..., Any])


def _page(command: Any, ctx: Any) -> str:
    """Return the help page of a command. On a narrow terminal, the page is narrower."""
    from svcctl.cli.help.command import described, text

    width = min(terminal_size(default=(PAGE_WIDTH, 24)).columns, PAGE_WIDTH)
    return text(described(command, ctx.command_path), width)


@contextmanager
def _in_plain_words(command: Any, ctx: Any, args: list[str]) -> Iterator[None]:
    """Convert Typer's errors in the block to UsageErrors."""
    typed = list(args)  # Typer removes the arguments from the list
    try:
        yield
    except typer.TyperException as error:
        if isinstance(error, typer.BadParameter) and error.param is not None:
            ctx.meta[mistakes.VALUE] = command.make_parser(ctx).parse_args(typed)[0].get(error.param.name)
        raise mistakes.in_plain_words(error, ctx) from error


class Command(TyperCommand):
    """A command that also accepts the names that other tools use for its options."""

    allow_extra_args = True
    """Makes Typer pass extra arguments on to `parse_args`, which refuses them with a hint."""

    commands: Mapping[str, Any]
    """The verbs to list on the help page. Only the class `_Default` sets this attribute."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[spellings.WORDS] = tuple(args)
        with _in_plain_words(self, ctx, args):
            mistakes.check_names(self.make_parser(ctx).parse_args(list(args))[-1], self.params)
            if (others := super().parse_args(ctx, args)) and not ctx.resilient_parsing:
                raise mistakes.unexpected(ctx, others)
            return others

    def get_help(self, ctx: Any) -> str:
        return _page(self, ctx)

    def invoke(self, ctx: Any) -> Any:
        if (check := ctx.meta.get(CHECK)) is not None:
            check(ctx)
        return super().invoke(ctx)

    def make_parser(self, ctx: Any) -> Any:
        """Return Typer's parser, which also accepts the names that other tools use for an option."""
        parser = super().make_parser(ctx)
        taken = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for parameter in self.params:
            names = {name for option in parameter.opts for name in spellings.OPTIONS.get(option, ())} - taken
            for name in names if parameter.param_type_name == "option" else ():
                other = copy.copy(parameter)
                other.opts = [name]
                other.add_to_parser(parser, ctx)
        return parser


class NoVerb(UsageError):
    """An error for a noun without a verb, such as `svcctl job`. The message is the help page of the noun."""


class CommandGroup(TyperGroup):
    """A noun such as `svcctl job`, or the root command. Errors for unknown commands suggest a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args in ([], ["--"]) and self.no_args_is_help:
            raise NoVerb(ctx.get_help())
        with _in_plain_words(self, ctx, args):
            return super().parse_args(ctx, args)

    def get_help(self, ctx: Any) -> str:
        return _page(self, ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        verbs = [name for name, command in self.commands.items() if not command.hidden]
        name = spellings.verb(args[0], verbs)
        if name not in self.commands:
            raise unknown(ctx, args, verbs)
        return super().resolve_command(ctx, [name, *args[1:]])


class DefaultGroup(CommandGroup):
    """A noun that can run without a verb, such as `svcctl export`. Its callback then runs a query.

    A query contains blanks, so a single word is reported as a mistyped verb.
    """

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        verb = spellings.verb(args[0], self.commands) if args else ""
        if verb in self.commands:
            return self.commands[verb].make_context(f"{info_name} {verb}", args[1:], parent, **extra)
        return _Default(self).make_context(info_name, args, parent, **extra)


class _Default(Command):
    """The command that a noun runs if no verb is typed. The help page of this command lists the verbs."""

    def __init__(self, noun: CommandGroup) -> None:
        super().__init__(noun.name, callback=noun.callback, params=noun.params, help=noun.help)
        self.commands = noun.commands

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        word = self._word(ctx, args)
        if word[:1] not in ("", "-") and len(word.split()) == 1:
            others = list(args)
            others.remove(word)
            raise no_query(ctx, [word, *others], list(self.commands))
        return super().parse_args(ctx, args)

    def _word(self, ctx: Any, args: list[str]) -> str:
        """Return the first argument that is not an option; empty if the arguments contain `--` or ask for help."""
        if args and not args[0].startswith("-"):
            return args[0]
        if not {"--", *ctx.help_option_names}.isdisjoint(args):
            return ""
        with _in_plain_words(self, ctx, args):
            values, _, _ = self.make_parser(ctx).parse_args(list(args))
        return next(
            (values[parameter.name] or "" for parameter in self.params if parameter.param_type_name == "argument"), ""
        )


def unknown(ctx: Any, words: list[str], commands: list[str]) -> UsageError:
    """Return the error for an unknown command of a noun such as `svcctl job`.

    `words` are the words that were typed after the noun. `commands` are the commands of the noun.
    """
    message, hint = f"no such command '{words[0]}'", f"see '{ctx.command_path} --help'"
    if (command := spellings.meant(ctx.command_path.partition(" ")[2], words, commands)) is not None:
        return UsageError(message, hint=Advice("use: ", CommandLine(f"{_svcctl(ctx)} {command}")))
    if (near := spellings.alike(words[0], commands)) is not None:
        message += f". Did you mean '{near}'?"
    return UsageError(message, hint=hint)


def no_query(ctx: Any, words: list[str], verbs: list[str]) -> UsageError:
    """Return the error for a word in place of a query, such as `foo` in `svcctl export foo`.

    `words` are the words that were typed after the noun. `verbs` are the verbs of the noun.
    """
    noun, word = ctx.info_name, words[0]
    if word in verbs:
        message = f"'{word}' must come before its options"
        return UsageError(message, hint=Advice("use: ", CommandLine(f"{_svcctl(ctx)} {shlex.join((noun, *words))}")))
    if word != "from":
        command = spellings.meant(noun, words, verbs)
        near = spellings.alike(word, verbs)
        if command is None and near is not None:
            command = shlex.join((noun, near, *words[1:]))
        if command is not None:
            message = f"'{word}' is neither a query nor a verb of '{noun}'"
            return UsageError(message, hint=Advice("use: ", CommandLine(f"{_svcctl(ctx)} {command}")))
    quoted = Advice("put the query in single quotes: ", CommandLine(f"svcctl {noun} 'from …'"))
    return UsageError(f"'{word}' is not a query", hint=quoted)


def _svcctl(ctx: Any) -> str:
    """Return the beginning of a suggested command: `svcctl` with --profile and --config if they were typed."""
    flags = ctx.find_root().params
    words = [word for name in ("profile", "config") if flags.get(name) for word in (f"--{name}", flags[name])]
    return shlex.join(["svcctl", *words])


def _name(command: Any) -> str:
    """Return the name of a registered command: its own name, or else the name of its function."""
    return str(command.name or command.callback.__name__)


class App(typer.Typer):
    """A Typer app with groups of the class CommandGroup and commands of the class Command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": CommandGroup, "rich_markup_mode": None, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        return super().command(name, **{"cls": Command, **settings})

    def keep(self, verb: str) -> None:
        """In each group with a command `verb`, remove all other commands, so that Typer does not build them."""
        for group in self.registered_groups:
            noun = copy.copy(group.typer_instance)
            if noun and (commands := [command for command in noun.registered_commands if _name(command) == verb]):
                noun.registered_commands, noun.registered_groups = commands, []
                group.typer_instance = noun
