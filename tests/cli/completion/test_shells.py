"""How a shell spells the table: quoting, the order of its cases, and the places that differ from the usual ones."""

from __future__ import annotations

import shutil
import subprocess
from typing import Annotated

import pytest
import typer
import typer.main

from svcctl.cli.completion.shells import SHELLS, quoted, script
from svcctl.cli.completion.words import FILES, Completes, Word

SizeOpt = Annotated[
    str, typer.Option("--size", "-s", help="How big."), Completes(words=[Word("it's", "a $(size)"), Word("xl:2")])
]


def app() -> typer.Typer:
    """Three commands with an option of one name; only two of them complete it."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def one(path: Annotated[str, typer.Argument(), Completes(FILES)], size: SizeOpt) -> None: ...

    @app.command()
    def two(size: SizeOpt) -> None: ...

    @app.command()
    def three(size: Annotated[str, typer.Option("--size")], quick: bool = False) -> None: ...

    return app


@pytest.mark.parametrize(("text", "word"), [("json", "json"), ("json/x", "'json/x'"), ("it's $(x)", "'it'\\''s $(x)'")])
def test_a_word_of_a_script_is_quoted_if_a_shell_could_read_something_else_in_it(text: str, word: str) -> None:
    assert quoted(text) == word


def test_the_cases_of_bash_go_from_the_particular_to_the_general() -> None:
    text = script(SHELLS["bash"], typer.main.get_command(app()))
    assert (
        text.split("    case $1 in\n")[1].split("    esac\n")[0]
        == """\
    'svcctl -')
        words=(--help)
        ;;
    'svcctl 0')
        words=(one two three)
        ;;
    'svcctl one -' | 'svcctl two -')
        words=(--size --help)
        ;;
    'svcctl one 0')
        kind=files
        ;;
    'svcctl three -')
        words=(--size --quick --no-quick --help)
        ;;
    'svcctl three --size')
        ;;
    *' --size' | *' -s')
        words=('it'\\''s' 'xl:2')
        ;;
"""
    )


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", """        words=('it'\\''s' 'xl:2')"""),
        ("zsh", """        entries=('it'\\''s:a $(size)' 'xl\\:2')"""),
        ("fish", """        set words 'it'\\''s' 'a $(size)' 'xl:2' ''"""),
    ],
)
def test_each_shell_has_its_own_way_to_write_words_and_meanings(shell: str, line: str) -> None:
    assert line in script(SHELLS[shell], typer.main.get_command(app())).split("\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_one_that_its_shell_can_read(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    text = script(SHELLS[shell], typer.main.get_command(app()))
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
