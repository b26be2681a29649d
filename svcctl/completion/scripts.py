"""The completion scripts of bash, zsh and fish, made from the app itself.

A script holds all words that are known in advance, so that completing one starts no Python. It walks the words before
the cursor to a *place* and looks that up in its table:

    svcctl job 0            the first word behind `svcctl job`: its commands
    svcctl job stop *       any argument of `svcctl job stop`
    svcctl job stop -       its options
    svcctl query --format   the values of its option
    * --color               the values of an option of any command
    svcctl query --dest-param kafka

The three shells differ in how they spell the same walk. Names that change (profiles, tables, jobs, domains) are a kind
of `svcctl complete`, which the script asks for them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

import typer
import typer.core
import typer.main

from svcctl.api import dates, destinations
from svcctl.api.models import JobStatus
from svcctl.cli import NOUNS, root
from svcctl.commands import api, complete, help, query
from svcctl.commands import completion as command
from svcctl.commands.service import accounts, control
from svcctl.profiles import AUTH_METHODS, MAPPINGS, SETTINGS
from svcctl.terminal.formats import AUTO, FORMATS

FILES, QUERY = "files", "query"
"""Kinds that the scripts know by themselves: names of files, and the text of a query, in which tables have names."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that may stand somewhere; one that ends in `=` or `@` goes on."""

    text: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Values:
    """What an option or an argument takes: known words, or a kind, or both."""

    words: tuple[Word, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a script's table."""

    name: str
    values: Values


def _words(texts: Iterable[str]) -> Values:
    return Values(tuple(map(Word, texts)))


def _formats(*, lists: bool) -> Values:
    rows = (Word(row.name, row.meaning) for row in FORMATS.values() if row.lists or not lists)
    return Values((Word(AUTO, "table on a terminal, csv in a pipe"), *rows))


def _keys(parameters: Iterable[destinations.Parameter]) -> Values:
    """The keys of a destination; a secret is read from a file."""
    words = {row.key: Word(f"{row.key}=" + "@" * row.secret, row.meaning) for row in parameters}
    return Values(tuple(words.values()))


def _fields() -> Iterator[Word]:
    for setting in SETTINGS.values():
        if setting.name == "auth":
            yield from (Word(f"auth={method}") for method in AUTH_METHODS)
        elif setting.secret:
            yield Word(f"{setting.name}=-", f"{setting.meaning}, asked for or read from stdin")
            yield Word(f"{setting.name}_file=", f"file that holds the {setting.meaning}")
            yield Word(f"{setting.name}_command=", f"command that prints the {setting.meaning}")
        else:
            yield Word(f"{setting.name}=", setting.meaning)
    yield from (Word(f"{group}.{name}=") for group, names in MAPPINGS.items() for name in names)


def _moments(meaning: Callable[[dates.Operator], str]) -> Values:
    """The operators, those of a number with some numbers."""
    words = []
    for row in dates.OPERATORS.values():
        if "<N>" in row.name:
            words += [Word(row.name.replace("<N>", n), meaning(row).replace(" N ", f" {n} ")) for n in ("1", "2", "7")]
        else:
            words.append(Word(row.name, meaning(row)))
    return Values(tuple(words))


_FILES = Values(kind=FILES)
_DOMAINS = Values(kind="domains")

VALUES: Mapping[str, Values] = {
    "--at": Values(),
    "--color": _words(("auto", "always", "never")),
    "--config": _FILES,
    "--date-format": _words(query.DATE_FORMATS),
    "--dest": _words(destinations.TYPES),
    "--dest-json": _FILES,
    "--dest-param": _keys(row for rows in destinations.TYPES.values() for row in rows),
    "--file": _FILES,
    "--for": _words(tuple(JobStatus)),
    "--format": _formats(lists=True),
    "--from": _moments(lambda row: row.from_meaning),
    "--from-file": _FILES,
    "--output": _FILES,
    "--profile": Values(kind="profiles"),
    "--status": _words(tuple(JobStatus)),
    "--table": Values(kind="tables"),
    "--time-zone": _words(f"GMT{hours:+d}" for hours in range(-12, 15)),
    "--to": _moments(lambda row: row.to_meaning),
    "--type": _words(destinations.TYPES),
    "api METHOD": _words(api.METHODS),
    "api PATH": _words(("/search/query", "/search/jobs", "/search/job/", "/domain", "/domain/")),
    "completion SHELL": _words(command.SHELLS),
    "domain NAME": _DOMAINS,
    "domain create NAME": Values(),
    "help TOPIC": _words(help.TOPICS),
    "job ID…": Values(kind="jobs"),
    "job start ID…": Values(kind="stopped"),
    "job stop ID…": Values(kind="running"),
    "profile NAME": Values(kind="profiles"),
    "profile set FIELD=VALUE…": Values(tuple(_fields())),
    "query --format": _formats(lists=False),
    "query TEXT|-": Values(kind=QUERY),
    "role DOMAIN": _DOMAINS,
    "role FILE…": _FILES,
    "service FILE": _FILES,
    "service accounts DOMAIN": _DOMAINS,
    "service accounts KIND": _words(accounts.KINDS),
    "service accounts STATUS": _words(accounts.STATES),
    "service load --format": _words(control.LOAD_FORMATS),
    "service queries TEXT|-": Values(kind=QUERY),
}
"""What stands where, by the option's name or the argument's metavar, behind the command or the beginning of it for
which it holds: the longest such beginning wins."""


def values_of(path: tuple[str, ...], name: str) -> tuple[str, Values]:
    """The row of VALUES for a parameter of the command at `path`, and its key; empty where there is none."""
    for length in range(len(path), -1, -1):
        key = " ".join((*path[:length], name))
        if key in VALUES:
            return key, VALUES[key]
    return "", Values()


def whole_app() -> typer.core.TyperGroup:
    """The command tree with all nouns; a command line builds only the one that it names."""
    app = typer.Typer(name="svcctl", add_completion=False)
    app.callback()(root)
    for noun in NOUNS:
        importlib.import_module(f"svcctl.commands.{noun}").register(app)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return group


@dataclass(frozen=True, slots=True)
class Table:
    """All that a script knows: the places in order, the commands there are, and the options that take a value."""

    places: tuple[Place, ...]
    paths: tuple[str, ...]
    valued: tuple[str, ...]


def table() -> Table:
    """The table of the app."""
    group = whole_app()
    places: list[Place] = []
    paths: list[str] = []
    valued: set[str] = set()
    flags: set[str] = set()
    everywhere = [option for option in _options(group) if option.name != "version"]

    def visit(command: typer.core.TyperCommand | typer.core.TyperGroup, path: tuple[str, ...]) -> None:
        full = " ".join(("svcctl", *path))
        options = list({option.opts[0]: option for option in (*_options(command), *everywhere)}.values())
        words = {name: Word(name, option.help or "") for option in reversed(options) for name in _names(option)}
        places.append(Place(f"{full} -", Values((*reversed(words.values()), Word("--help", "Show the help page.")))))
        for option in options:
            (flags if option.is_flag else valued).update((*option.opts, *option.secondary_opts))
            for name in () if option.is_flag else _names(option):
                key, values = values_of(path, name)
                place = "*" if key == name else full  # said of the option wherever it is
                places.extend(Place(f"{place} {each}", values) for each in option.opts if values != Values())
        if isinstance(command, typer.core.TyperGroup):
            inner = {name: each for name, each in command.commands.items() if not each.hidden}
            names = (Word(name, each.get_short_help_str(120)) for name, each in inner.items())
            places.append(Place(f"{full} 0", Values(tuple(names))))
            for name, each in inner.items():
                paths.append(f"{full} {name}")
                assert isinstance(each, typer.core.TyperCommand | typer.core.TyperGroup)
                visit(each, (*path, name))
            return
        arguments = [each for each in command.params if isinstance(each, typer.core.TyperArgument)]
        for at, argument in enumerate(arguments):
            _, values = values_of(path, str(argument.metavar).strip("[]"))
            if values != Values():
                places.append(Place(f"{full} {'*' if argument.nargs < 0 else at}", values))

    visit(group, ())
    for kind, parameters in destinations.TYPES.items():
        places.append(Place(f"svcctl query --dest-param {kind}", _keys(parameters)))
    assert not valued & flags, f"{valued & flags} take a value in one command and none in another"
    return Table(tuple(dict.fromkeys(places)), tuple(paths), tuple(sorted(valued)))


def _options(command: typer.core.TyperCommand | typer.core.TyperGroup) -> Iterator[typer.core.TyperOption]:
    for parameter in command.params:
        if isinstance(parameter, typer.core.TyperOption) and not parameter.hidden and parameter.name != "help":
            yield parameter


def _names(option: typer.core.TyperOption) -> list[str]:
    """The long names, and the short one where there is no other."""
    names = [*option.opts, *option.secondary_opts]
    return [name for name in names if name.startswith("--")] or names


# The scripts


def script(shell: str) -> str:
    """The script of a shell: its template, which is its way to walk, around the table in its spelling."""
    dialect = DIALECTS[shell]
    known = table()
    text = resources.files("svcctl.completion").joinpath("templates", FILE_NAMES[shell]).read_text(encoding="utf-8")
    for name, lines in (
        ("PLACES", _cases(known, dialect)),
        ("PATHS", iter([dialect.case([f"'{path}'" for path in known.paths])])),
        ("VALUED", iter([dialect.case(known.valued)])),
    ):
        text = text.replace(f"@{name}@", "\n".join(lines))
    return text


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a shell spells a case of its switch, and what is done in it."""

    case: Callable[[Iterable[str]], str]
    pattern: Callable[[str], str]
    end: tuple[str, ...]
    fill: Callable[[Values], str]


def _cases(known: Table, dialect: Dialect) -> Iterator[str]:
    """A case for each of the different answers; the first that matches counts, so places with a `*` come last."""
    answers: dict[tuple[int, Values], list[str]] = {}
    for place in known.places:
        rank = 2 if place.name.endswith("*") else 1 if place.name.startswith("*") else 0
        answers.setdefault((rank, place.values), []).append(dialect.pattern(place.name))
    for (_, values), names in sorted(answers.items(), key=lambda item: item[0][0]):
        yield dialect.case(names)
        yield "        " + dialect.fill(values)
        yield from dialect.end


def _starred(name: str) -> str:
    """A place as a pattern of a switch: its star is one, and everything else stands for itself."""
    return f"{'*' * name.startswith('*')}'{name.strip('*')}'{'*' * name.endswith('*')}"


def _quoted(text: str) -> str:
    """A word of any of the three shells that stands for the text."""
    return text if text.replace("-", "").isalnum() and text.isascii() else "'" + text.replace("'", "'\\''") + "'"


def _short(meaning: str) -> str:
    """The beginning of a meaning, as far as a list has room for it."""
    first = meaning.partition(";")[0].strip().rstrip(".")
    return first if len(first) <= 60 else first[:59].rstrip() + "…"


def _array(values: Values, entry: Callable[[Word], str], to: str) -> str:
    words = [f"{to}=({' '.join(entry(word) for word in values.words)})"] if values.words else []
    return "; ".join([*words, *([f"kind={values.kind}"] if values.kind else [])])


def _zsh_entry(word: Word) -> str:
    text = word.text.replace(":", "\\:")
    return _quoted(f"{text}:{_short(word.meaning)}" if word.meaning else text)


def _fish(values: Values) -> str:
    pairs = (f"{_quoted(word.text)} {_quoted(_short(word.meaning))}" for word in values.words)
    words = [f"set words {' '.join(pairs)}"] if values.words else []
    return "; ".join([*words, *([f"set kind {values.kind}"] if values.kind else [])])


DIALECTS = {
    "bash": Dialect(
        case=lambda names: f"    {' | '.join(names)})",
        pattern=_starred,
        end=("        ;;",),
        fill=partial(_array, entry=lambda word: _quoted(word.text), to="words"),
    ),
    "zsh": Dialect(
        case=lambda names: f"    {' | '.join(names)})",
        pattern=_starred,
        end=("        ;;",),
        fill=partial(_array, entry=_zsh_entry, to="entries"),
    ),
    "fish": Dialect(
        case=lambda names: f"        case {' '.join(names)}",
        pattern=lambda name: f"'{name}'",  # its switch takes a quoted star for one
        end=(),
        fill=_fish,
    ),
}
"""The shells."""

assert set(complete.KINDS) >= {values.kind for values in VALUES.values()} - {"", FILES, QUERY}
assert tuple(DIALECTS) == command.SHELLS


FILE_NAMES = {"bash": "svcctl.bash", "zsh": "_svcctl", "fish": "svcctl.fish"}
"""The scripts as packagers install them, in the directory `completions`."""

if __name__ == "__main__":
    for shell, name in FILE_NAMES.items():
        Path(sys.argv[1], name).write_text(script(shell), encoding="utf-8")
