"""Variables that are filled into the text of a query."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from svcctl.cli.inputs.query_text import fill, read
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a table alone": "'auth.all' is not a query",
    "an empty file": "{path} contains no query",
    "a file's name": "'{sign}{path}' is a file, not a query",
    "quotes twice": "{{u}} becomes a text in quotes, so it must not be in quotes itself",
}
HINTS = {
    "a table alone": "did you mean 'from auth.all'?",
    "a file's name": "read the query from it: -F {path}",
    "quotes twice": "leave out the quotes around {{u}}",
}


def test_a_table_alone_is_answered_with_the_query_of_it() -> None:
    with pytest.raises(UsageError) as caught:
        read("auth.all", None)
    assert (caught.value.message, caught.value.hint) == (WORDS["a table alone"], HINTS["a table alone"])


@pytest.mark.parametrize("piped", ["from auth.all\n", "", " \n"])
def test_a_query_that_is_not_given_is_read_from_a_pipe_and_an_empty_pipe_is_none(piped: str) -> None:
    code = "from svcctl.cli.inputs.query_text import read\ntry: print(read(None, None), end='')\n"
    code += "except Exception as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], input=piped, capture_output=True, text=True, check=True)
    assert done.stdout == (piped if piped.strip() else "no query given\n")


def test_a_file_without_a_query_is_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.q"
    path.write_text(" \n")
    with pytest.raises(UsageError) as caught:
        read(None, path)
    assert caught.value.message == WORDS["an empty file"].format(path=path)


@pytest.mark.parametrize("sign", ["", "@"])
def test_the_name_of_a_file_is_answered_with_the_option_that_reads_it(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "auth.q"
    path.write_text("from auth.all")
    with pytest.raises(UsageError) as caught:
        read(f"{sign}{path}", None)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a file's name"].format(sign=sign, path=path),
        HINTS["a file's name"].format(path=path),
    )


def test_a_variable_becomes_a_text_in_quotes() -> None:
    assert fill('where user = {{u}} or n = "a"', ["u=x"]) == 'where user = "x" or n = "a"'


def test_a_variable_has_one_value() -> None:
    with pytest.raises(UsageError) as caught:
        fill("where user = {{u}}", ["u=x", "u=y"])
    assert (caught.value.message, caught.value.hint) == ("--var u is given twice", None)


@pytest.mark.parametrize("quoted", ['"{{u}}"', "'{{ u }}'"])
def test_quotes_around_a_variable_are_refused(quoted: str) -> None:
    with pytest.raises(UsageError) as caught:
        fill(f"where user = {quoted}", ["u=x"])
    assert (caught.value.message, caught.value.hint) == (
        WORDS["quotes twice"],
        HINTS["quotes twice"],
    )
    assert fill(f"where user = {quoted}", []) == f"where user = {quoted}"
