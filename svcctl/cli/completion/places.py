"""The table of a completion script: the words that can be offered at each place of a command line.

A script reads the words before the cursor, and so finds the *place* of the cursor. Then it looks up the place in the
table:

    svcctl job 0            the first word after `svcctl job`: its commands
    svcctl job stop *       any argument of `svcctl job stop`
    svcctl job stop -       its options
    svcctl query --format   the values of its option
    * --color               the values of an option of any command
    svcctl query --dest-param kafka
                            the values of its option after `--dest kafka`

Names, help and order come from the command tree, which Typer makes from an app. Values come from the `Completes`
markers in the signatures of the commands. The tree has the type Any, because Typer has no public type for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import unwrap
from typing import Any, get_type_hints

from svcctl.cli.completion.words import Completes, Word, as_words
from svcctl.cli.spellings import OPTIONS

COMPLETES_NOTHING = Completes()


@dataclass(frozen=True, slots=True)
class Values:
    """The words to offer at a place of a command line: known words, names of a kind such as jobs, or both."""

    words: tuple[Word, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class CompletionPlace:
    """A row of the completion table: a place of a command line, and the words to offer there."""

    name: str
    values: Values


@dataclass(frozen=True, slots=True)
class CompletionTable:
    """The content of a completion script: the places in order, the commands, and the options that take a value."""

    places: tuple[CompletionPlace, ...]
    commands: tuple[str, ...]
    valued: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompletedParameter:
    """An option or an argument of a command, with its `Completes` marker. `names` is empty for an argument."""

    names: tuple[str, ...]
    accepted: tuple[str, ...]
    """The names of the option in other tools. Values are completed after these names, but the names are not offered."""
    meaning: str
    takes_value: bool
    repeats: bool
    completes: Completes

    @property
    def values(self) -> Values:
        return Values(self.completes.known(), self.completes.kind)

    @property
    def typed(self) -> tuple[str, ...]:
        """All names after which a value of the option can be completed; empty if the option takes no value."""
        return (*self.names, *self.accepted) if self.takes_value else ()

    @property
    def long_names(self) -> tuple[str, ...]:
        """The names that are offered. The short name is offered only if there is no long name."""
        return tuple(name for name in self.names if name.startswith("--")) or self.names


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """A command: its full name, options, arguments and subcommands. Global options come last."""

    path: str
    options: tuple[CompletedParameter, ...]
    arguments: tuple[CompletedParameter, ...]
    commands: tuple[Word, ...] = ()


def commands(tree: Any) -> Iterator[CompletedCommand]:
    """Yield all visible commands. Each group, such as `svcctl job`, comes before its commands."""
    own, _ = _parameters(tree)
    return _commands(tree, "svcctl", [option for option in own if "--version" not in option.names])


def _commands(tree: Any, path: str, everywhere: Iterable[CompletedParameter]) -> Iterator[CompletedCommand]:
    options, arguments = _parameters(tree)
    own = {name for option in options for name in option.names}
    others = (replace(option, names=tuple(name for name in option.names if name not in own)) for option in everywhere)
    inner = {name: command for name, command in getattr(tree, "commands", {}).items() if not command.hidden}
    words = tuple(Word(name, command.get_short_help_str(120)) for name, command in inner.items())
    yield CompletedCommand(path, (*options, *(option for option in others if option.names)), tuple(arguments), words)
    for name, command in inner.items():
        yield from _commands(command, f"{path} {name}", everywhere)


def _parameters(command: Any) -> tuple[list[CompletedParameter], list[CompletedParameter]]:
    """Return the visible options and the arguments of a command."""
    marked = markers(command)
    options, arguments = [], []
    for typer_parameter in command.params:
        is_argument = typer_parameter.param_type_name == "argument"
        parameter = CompletedParameter(
            names=() if is_argument else (*typer_parameter.opts, *typer_parameter.secondary_opts),
            accepted=tuple(name for option in typer_parameter.opts for name in OPTIONS.get(option, ())),
            meaning=getattr(typer_parameter, "help", None) or "",
            takes_value=is_argument or not typer_parameter.is_flag,
            repeats=typer_parameter.nargs < 0,
            completes=marked.get(typer_parameter.name, COMPLETES_NOTHING),
        )
        if is_argument:
            arguments.append(parameter)
        elif not typer_parameter.hidden:
            options.append(parameter)
    return options, arguments


def _declared(callback: Any) -> Any:
    """Return a function that has the options and arguments of a command as its parameters.

    This is the command's own function, or a wrapper with the attribute `__signature__`.
    """
    return unwrap(callback, stop=lambda function: hasattr(function, "__signature__"))


def markers(command: Any) -> Mapping[str, Completes]:
    """Return the `Completes` markers of a command's parameters, by the name of the parameter."""
    hints = get_type_hints(_declared(command.callback), include_extras=True) if command.callback else {}
    return {
        name: member
        for name, hint in hints.items()
        for member in getattr(hint, "__metadata__", ())
        if isinstance(member, Completes)
    }


def table(tree: Any) -> CompletionTable:
    """Return the completion table of a command tree."""
    tree_commands = tuple(commands(tree))
    usual = _usual(tree_commands)
    return CompletionTable(
        places=tuple(dict.fromkeys(place for command in tree_commands for place in _places(command, usual))),
        commands=tuple(command.path for command in tree_commands[1:]),
        valued=tuple(sorted(usual)),
    )


def _usual(tree_commands: Iterable[CompletedCommand]) -> Mapping[str, Values]:
    """Return the values that most commands offer for an option, by the name of the option."""
    counts: dict[str, Counter[Values]] = {}
    for command in tree_commands:
        for option in command.options:
            for name in option.typed:
                counts.setdefault(name, Counter())[option.values] += 1
    return {name: count.most_common(1)[0][0] for name, count in counts.items()}


def _places(command: CompletedCommand, usual: Mapping[str, Values]) -> Iterator[CompletionPlace]:
    """Yield the places of a command.

    If most commands offer the same values for an option, these values are at a place for all commands, such as
    `* --color`.
    """
    names = (Word(name, option.meaning) for option in command.options for name in option.long_names)
    yield CompletionPlace(f"{command.path} -", Values((*names, Word("--help", "Show the help page."))))
    for option in command.options:
        for name in option.typed:
            if option.values == usual[name] != Values():
                yield CompletionPlace(f"* {name}", option.values)
            elif option.values != usual[name]:
                yield CompletionPlace(f"{command.path} {name}", option.values)
            for destination, words in option.completes.by_destination().items():
                yield CompletionPlace(f"{command.path} {name} {destination}", Values(as_words(words)))
    if command.commands:
        kind = next((argument.values.kind for argument in command.arguments), "")
        yield CompletionPlace(f"{command.path} 0", Values(command.commands, kind))
    for at, argument in enumerate(command.arguments):
        if argument.values != Values() and not (at == 0 and command.commands):
            yield CompletionPlace(f"{command.path} {'*' if argument.repeats else at}", argument.values)
