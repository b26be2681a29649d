"""The completion scripts of bash, zsh and fish, and where each shell looks for its script.

A script is the template of its shell, filled with the table of places. The code of the template reads the command line.
The words in a script are known in advance, so completing a word does not start Python. Names that may change come from
`svcctl complete`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svcctl.cli.completion.words import Word
from svcctl.io import home

if TYPE_CHECKING:
    from svcctl.cli.completion.places import CompletionTable, Values


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell: the name and directory of a user's completion script, and the syntax of a `case` branch in the shell."""

    file_name: str
    case: Callable[[Iterable[str]], str]
    pattern: Callable[[str], str]
    end: tuple[str, ...]
    fill: Callable[[Values], str]
    place: Callable[[Mapping[str, str]], Path]
    afterwards: str
    """The note to print after the script was installed, with the placeholders `{path}` and `{directory}`."""


def script(shell: Shell, tree: Any) -> str:
    """Return the completion script of a shell for a command tree."""
    from importlib import resources

    from svcctl.cli.completion.places import (
        table,  # imported late, because 'svcctl complete' loads this module, too, and needs no table
    )

    script_table = table(tree)
    text = resources.files("svcctl.cli.completion").joinpath("templates", shell.file_name).read_text(encoding="utf-8")
    for name, lines in (
        ("PLACES", _cases(script_table, shell)),
        ("PATHS", iter([shell.case([f"'{path}'" for path in script_table.commands])])),
        ("VALUED", iter([shell.case(script_table.valued)])),
    ):
        text = text.replace(f"@{name}@", "\n".join(lines))
    return text


def _cases(script_table: CompletionTable, shell: Shell) -> Iterator[str]:
    """Yield the lines of a `case` statement, whose branches set the words to offer at each place.

    Places with the same words share a branch. The shell uses the first branch that matches, so places with a `*` come
    last.
    """
    answers: dict[tuple[int, Values], list[str]] = {}
    for place in script_table.places:
        rank = 2 if place.name.endswith("*") else 1 if place.name.startswith("*") else 0
        answers.setdefault((rank, place.values), []).append(shell.pattern(place.name))
    for (_, values), names in sorted(answers.items(), key=lambda item: item[0][0]):
        yield shell.case(names)
        if line := shell.fill(values):
            yield f"        {line}"
        yield from shell.end


def _starred(name: str) -> str:
    """Convert the name of a place, such as `* --color`, to a pattern of the shell.

    A star matches any text, and all other characters are quoted.
    """
    return f"{'*' * name.startswith('*')}'{name.strip('*')}'{'*' * name.endswith('*')}"


def quoted(text: str) -> str:
    """Quote a text, so that it is one word in each of the three shells."""
    return text if text.replace("-", "").isalnum() and text.isascii() else "'" + text.replace("'", "'\\''") + "'"


def _short(meaning: str) -> str:
    """Cut the description of a word to a length that fits a list."""
    first = meaning.partition(";")[0].strip().rstrip(".")
    return first if len(first) <= 60 else first[:59].rstrip() + "…"


def _array(values: Values, entry: Callable[[Word], str], to: str) -> str:
    words = [f"{to}=({' '.join(entry(word) for word in values.words)})"] if values.words else []
    return "; ".join([*words, *([f"kind={values.kind}"] if values.kind else [])])


def _zsh_entry(word: Word) -> str:
    text = word.text.replace(":", "\\:")
    return quoted(f"{text}:{_short(word.meaning)}" if word.meaning else text)


def _fish(values: Values) -> str:
    pairs = (f"{quoted(word.text)} {quoted(_short(word.meaning))}" for word in values.words)
    words = [f"set words {' '.join(pairs)}"] if values.words else []
    return "; ".join([*words, *([f"set kind {values.kind}"] if values.kind else [])])


def _data(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("XDG_DATA_HOME") or home.expanded_path("~") / ".local" / "share")


def manual_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory of a user's own manual pages.

    By default, `man` searches this directory if PATH contains ~/.local/bin.
    """
    return _data(environment) / "man" / "man1"


def config_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory of a user's settings."""
    return Path(environment.get("XDG_CONFIG_HOME") or home.expanded_path("~") / ".config")


SHELLS = {
    "bash": Shell(
        "svcctl.bash",
        case=lambda names: f"    {' | '.join(names)})",
        pattern=_starred,
        end=("        ;;",),
        fill=partial(_array, entry=lambda word: quoted(word.text), to="words"),
        place=lambda environment: _data(environment) / "bash-completion" / "completions" / "svcctl",
        afterwards="open a new shell to use it; without the package bash-completion, add to ~/.bashrc: source '{path}'",
    ),
    "zsh": Shell(
        "_svcctl",
        case=lambda names: f"    {' | '.join(names)})",
        pattern=_starred,
        end=("        ;;",),
        fill=partial(_array, entry=_zsh_entry, to="entries"),
        place=lambda environment: _data(environment) / "zsh" / "site-functions" / "_svcctl",
        afterwards="open a new shell to use it; ~/.zshrc must contain: "
        "fpath=('{directory}' $fpath); autoload -U compinit; compinit",
    ),
    "fish": Shell(
        "svcctl.fish",
        case=lambda names: f"        case {' '.join(names)}",
        pattern=lambda name: f"'{name}'",  # in fish, a quoted star is still a pattern
        end=(),
        fill=_fish,
        place=lambda environment: config_directory(environment) / "fish" / "completions" / "svcctl.fish",
        afterwards="open a new shell to use it",
    ),
}
