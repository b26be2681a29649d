"""The marker `Completes` in an option's `Annotated`: the names and words that complete the option.

    ShellArg = Annotated[str, typer.Argument(metavar="SHELL"), Completes(words=SHELLS)]
    OutputOpt = Annotated[Path, typer.Option("--output"), Completes(FILES)]
    IdArg = Annotated[str, typer.Argument(metavar="ID"), Completes("jobs")]

Instead of words, a marker can have a function that returns words. The function is called only when words are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from svcctl.api.destinations import Parameter
    from svcctl.dates.operators import Operator

FILES, QUERY, EXPORTS = "files", "query", "exports"
"""The kinds of words with special code in the completion scripts. `svcctl.cli.completion.names` has the other kinds.

FILES are file names. In a QUERY, the names of tables are completed. EXPORTS are file names, and names of exports'
states.
"""


class Word(NamedTuple):
    """A word to offer. If the word ends in `=` or `@`, no space is added, because the user continues the word."""

    text: str
    meaning: str = ""


Words = Iterable[str | Word]


class Completes(NamedTuple):
    """The completions of an option or an argument: names of things such as jobs (see `kind`), known words, or both."""

    kind: str = ""
    words: Words | Callable[[], Words] = ()
    by_destination: Callable[[], Mapping[str, Words]] = dict
    """The words to offer for each value of --dest."""

    def known(self) -> tuple[Word, ...]:
        """Return the words that complete this argument. If `words` is a function, it is called."""
        return as_words(self.words() if callable(self.words) else self.words)


def as_words(words: Words) -> tuple[Word, ...]:
    return tuple(word if isinstance(word, Word) else Word(word) for word in words)


def formats() -> Iterator[Word]:
    """Yield the output formats of a query."""
    from svcctl.terminal.formats import AUTO, FORMATS

    yield Word(AUTO, "table on a terminal, csv in a pipe")
    yield from (Word(row.name, row.meaning) for row in FORMATS.values())


def list_formats() -> Iterator[Word]:
    """Yield the output formats of lists, such as `job list` and `domain list`."""
    from svcctl.terminal.formats import AUTO, FORMATS

    every = {AUTO, *(row.name for row in FORMATS.values() if row.lists)}
    return (word for word in formats() if word.text in every)


def export_formats() -> Iterable[str]:
    """Return the formats of an export."""
    from svcctl.exports.formats import FORMATS

    return FORMATS


def start_dates() -> Iterator[Word]:
    """Yield the date words that --from accepts."""
    return _dates(lambda row: row.from_meaning)


def end_dates() -> Iterator[Word]:
    """Yield the date words that --to accepts."""
    return _dates(lambda row: row.to_meaning)


def _dates(meaning: Callable[[Operator], str]) -> Iterator[Word]:
    """Yield date words such as `today`. A word that takes a number is offered with the numbers 1, 2 and 7."""
    from svcctl.dates.operators import with_number
    from svcctl.dates.shorthand import ALL_OPERATORS

    for row in ALL_OPERATORS:
        if " " in row.name:
            continue  # a date word with a space would have to be completed in quotes
        for number in (1, 2, 7) if row.counts else (0,):
            text = with_number(meaning(row), number)
            length, comma, rest = text.removeprefix("now minus ").partition(",")
            yield Word(row.written(number), text if length == text.partition(",")[0] else f"{length} ago{comma}{rest}")


def time_zones() -> Iterator[str]:
    return (f"GMT{hours:+d}" for hours in range(-12, 15))


def date_formats() -> Iterable[str]:
    """Return the formats of printed dates."""
    from svcctl.dates.operators import DATE_FORMATS

    return DATE_FORMATS


def destination_parameters() -> Iterator[Word]:
    """Yield the parameters of all destinations, without duplicates."""
    from svcctl.api.destinations import TYPES

    return _parameters(parameter for row in TYPES.values() for parameter in row.parameters)


def parameters_by_destination() -> Mapping[str, Words]:
    """Return the parameters of destinations, by type in lower case."""
    from svcctl.api.destinations import TYPES

    return {kind: tuple(_parameters(row.parameters)) for kind, row in TYPES.items()}


def _parameters(rows: Iterable[Parameter]) -> Iterator[Word]:
    """Yield `key=` for each parameter, and `key=@` for a secret, because secrets are read from files."""
    yield from {row.key: Word(f"{row.key}=" + "@" * row.secret, row.about) for row in rows}.values()


def profile_fields() -> Iterator[Word]:
    """Yield the fields of a profile.

    A secret has three fields: the secret itself, a file that has the secret, and a command that prints the secret.
    """
    from svcctl.profiles.settings import MAPPINGS, PROFILE_SETTINGS

    for setting in PROFILE_SETTINGS.values():
        if setting.choices:
            yield from (Word(f"{setting.name}={choice}") for choice in setting.choices)
        elif setting.secret:
            yield Word(f"{setting.name}=-", f"{setting.meaning}, prompted for or read from stdin")
            yield Word(f"{setting.name}_file=", f"file that holds the {setting.meaning}")
            yield Word(f"{setting.name}_command=", f"command that prints the {setting.meaning}")
        else:
            yield Word(f"{setting.name}=", setting.meaning)
    yield from (Word(f"{group}.{name}=") for group, names in MAPPINGS.items() for name in names)
