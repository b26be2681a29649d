"""Errors about mistakes on the command line. They replace Typer's errors, and say what to type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from svcctl.cli import spellings
from svcctl.errors import Advice, CommandLine, UsageError, advice_of
from svcctl.words import choices, nearest, plural

TAKE_A_QUERY = ("svcctl query", "svcctl export", "svcctl service queries set")
"""Commands that take a query. If the quotes around the query are missing, such a command gets too many arguments."""

EXAMPLES = {
    "DATE": "1h, 7d or 2024-01-31",
    "N": "10",
    "LENGTH": "30s, 5m or 1h",
    "ZONE": "GMT+2, Europe/Berlin or local",
    "TIME": "2024-01-31T10:00:00Z",
    "K=V": "name=value",
    "NAME:VALUE": "'x-note: text'",
}
"""Examples of values, by metavar. A metavar is the word for a value on help pages, such as DATE."""
DATES = ("DATE", "TIME")
"""The metavars of options that take a date."""
CONFIRM = ("--yes", "--force")
"""Options that are never suggested, because they let a command delete or overwrite something."""
VALUE = "svcctl.value"
"""A key of `meta`, the dictionary in a Typer context. The value is the typed text that caused an error."""
LIKENESS = 0.8
"""The minimum likeness of a mistyped option and a suggested option, from 0 to 1. The dashes are not compared.

With a smaller number, --sort would be suggested for --port.
"""


def in_plain_words(error: typer.TyperException, context: Any) -> UsageError:
    """Convert an error of Typer to a UsageError with a message of one line and a hint.

    The attributes of Typer's error show the kind of the mistake:

    - `option_name` and `possibilities`: the option is unknown.
    - only `option_name`: the value of the option is missing, or the option takes no value but has one.
    - `param` and `param_type`: an argument or a required option is missing.
    - only `param`: the value of an argument or an option cannot be used.
    """
    message = " ".join(error.format_message().split())
    message, hint = message[:1].lower() + message[1:].rstrip("."), None
    name, parameter = (getattr(error, attribute, None) for attribute in ("option_name", "param"))
    if name is not None and hasattr(error, "possibilities"):
        message, hint = _no_option(name, context)
    elif name is not None:
        option = _option(context, name)
        message = f"{name} takes no value" if option.is_flag else f"{name} needs a value: {_metavar(option)}"
        hint = None if option.is_flag else "; ".join(_values(context, option))
    elif parameter is not None and hasattr(error, "param_type"):
        message, hint = f"missing {_name(parameter)}", _missing(parameter, context)
    elif parameter is not None:
        message = _not_a_number(parameter, context.meta.get(VALUE)) or message
    return UsageError(message, hint=advice_of(hint, _page(context)))


def unexpected(context: Any, words: Sequence[str]) -> UsageError:
    """Return the error for unexpected arguments. Usually, the quotes around a value are missing."""
    message = f"unexpected {plural(len(words), 'argument')}: {' '.join(words)}"
    if "--load" in context.meta.get(spellings.WORDS, ()):
        own = Advice("name each file with an option of its own: ", CommandLine("--load a.log --load b.log"))
        return UsageError(message, hint=advice_of(own, _page(context)))
    takes_a_query = context.command_path in TAKE_A_QUERY
    takes_a_date = any(_metavar(option) in DATES for option in context.command.params)
    quoted = ["the query"] * takes_a_query + ["a date with a time"] * takes_a_date
    example = (": ", CommandLine(f"{context.command_path} 'from …'")) if takes_a_query else ()
    hint = Advice(f"put {' and '.join(quoted)} in single quotes", *example) if quoted else None
    return UsageError(message, hint=advice_of(hint, _page(context)))


def _page(context: Any) -> str:
    return f"see '{context.command_path} --help'"


def _name(parameter: Any) -> str:
    return str(parameter.opts[0] if parameter.param_type_name == "option" else parameter.human_readable_name)


def _not_a_number(parameter: Any, value: Any) -> str | None:
    """Say why a value is not the number that a parameter needs.

    Returns None if the parameter does not need a number.
    """
    type_ = parameter.type
    kind = type_.name.partition(" ")[0]
    if kind not in ("int", "integer", "float"):
        return None
    try:
        float(value) if kind == "float" else int(value)
    except ValueError:
        return f"{_name(parameter)} '{value}' is not a {'number' if kind == 'float' else 'whole number'}"
    if type_.max is None:
        return f"{_name(parameter)} {value} is less than {type_.min}"
    return f"{_name(parameter)} {value} is not between {type_.min} and {type_.max}"


def check_names(occurrences: Iterable[Any], options: Iterable[Any]) -> None:
    """Raise UsageError if an option with a value was typed under two names, such as --from and --since.

    `occurrences` are the typed options. `options` are the options of the command.
    """
    names: dict[str, dict[str, None]] = {}
    for option in occurrences:
        names.setdefault(option.name, {})[option.opts[0]] = None
    for option in options:
        if len(typed := names.get(option.name, {})) > 1 and not option.is_flag:
            raise UsageError(f"{' and '.join(typed)} are the same option", hint=f"give {option.opts[0]} once")


def _missing(parameter: Any, context: Any) -> str:
    """Say how to give a missing argument or option."""
    if parameter.param_type_name == "argument":
        about = (parameter.help or "").rstrip(".")
        words = [argument.metavar for argument in context.command.params if argument.param_type_name == "argument"]
        return " ".join(
            ["usage:", context.command_path, *words, f"({parameter.metavar}: {about})" * bool(about)]
        ).strip()
    value = next((f", such as {parameter.opts[0]} {text.split(',')[0]}" for text in _examples(parameter)), "")
    about = "" if value else f": {(parameter.help or '').rstrip('.')}"
    return f"add {parameter.opts[0]} {_metavar(parameter)}{value or about}"


def _option(context: Any, name: str) -> Any:
    """Return the command's option or the global option with this name, or None. Other tools' names are accepted."""
    parameters = [option for source in (context, context.find_root()) for option in source.command.params]
    names = {name, *(spelling for spelling, others in spellings.OPTIONS.items() if name in others)}
    return next((option for option in parameters if names & set(option.opts)), None)


def _metavar(option: Any) -> str:
    return (getattr(option, "metavar", None) or "VALUE").strip()


def _examples(option: Any) -> Iterator[str]:
    if (example := EXAMPLES.get(_metavar(option))) is not None:
        yield example


def _values(context: Any, option: Any) -> Iterator[str]:
    """Yield a text with examples of the values of an option, or with all allowed values."""
    from svcctl.cli.completion.places import markers

    yield from (f"such as {text}" for text in _examples(option))
    marker = next(
        (
            candidate
            for source in (context, context.find_root())
            if (candidate := markers(source.command).get(option.name))
        ),
        None,
    )
    words = [] if marker is None else [word.text for word in marker.known()]
    if words and _metavar(option) not in EXAMPLES:
        yield f"one of {choices(words)}"


def _no_option(name: str, context: Any) -> tuple[str, str | None]:
    """Return the message for an option that a command does not have, and a hint."""
    message, typed = f"no such option: {name}", context.meta.get(spellings.WORDS, ())
    text = next((word for word in typed if word.startswith("-") and len(word.split()) > 1), None)
    if text is not None and context.command_path in TAKE_A_QUERY:
        return f"'{' '.join(text.split())}' is not a query", "a query begins with from, and a comment with //"
    options = [option for source in (context, context.find_root()) for option in source.command.params]
    names = [name for option in options if not getattr(option, "hidden", True) for name in option.opts]
    needs, answer = spellings.ANSWERED.get(name, ("-", ""))
    if not needs or needs in names:
        return message, answer
    verbs = getattr(context.command, "commands", {}).values()
    if any(name in option.opts for verb in verbs for option in verb.params):
        return message, f"{name} belongs after the verb"
    words = [option_name[2:] for option_name in names if option_name.startswith("--") and option_name not in CONFIRM]
    near = nearest(name[2:], words, LIKENESS) if name.startswith("--") else None
    return (f"{message}. Did you mean --{near}?" if near else message), None
