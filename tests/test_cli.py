"""The root command: where global options may be written, what its pages say, and what it answers to mistakes."""

import re

import pytest
from support import ROOT
from support.shells import Shell

from svcctl.cli import GLOBAL_OPTIONS, hoist
from svcctl.commands import NOUNS


@pytest.mark.parametrize(
    ("typed", "hoisted"),
    [
        ("query x -v -p prod --from 1d", "-v -p prod query x --from 1d"),
        ("query x --timeout=5 --from 1d", "--timeout=5 query x --from 1d"),
        ("query x --from 1d -q -- -v", "-q query x --from 1d -- -v"),
        ("-p a query", "-p a query"),
        ("query -p", "-p query"),
        ("query --profiles x", "query --profiles x"),
        ("", ""),
    ],
)
def test_global_options_may_be_anywhere_before_two_dashes(typed: str, hoisted: str) -> None:
    assert hoist(typed.split()) == hoisted.split()


def test_the_global_options_are_those_of_the_root_command() -> None:
    assert GLOBAL_OPTIONS == {
        "--profile": True,
        "-p": True,
        "--config": True,
        "--timeout": True,
        "--retries": True,
        "--color": True,
        "--quiet": False,
        "-q": False,
        "--verbose": False,
        "-v": False,
    }


def test_the_help_page_lists_every_noun_with_what_it_is_for(shell: Shell) -> None:
    page = shell("--help").stdout
    listed = page[page.index("Commands:") : page.index("Exit codes:")].rstrip().split("\n")[1:]
    assert [line.split(maxsplit=1) for line in listed] == [[noun, meaning] for noun, meaning in NOUNS.items()]


@pytest.mark.parametrize("noun", NOUNS)
def test_a_nouns_own_page_begins_with_what_it_is_for(noun: str, shell: Shell) -> None:
    assert shell(noun, "--help").stdout.split("\n\n")[1].strip() == NOUNS[noun]


def test_an_unknown_command_is_refused_with_the_nearest(shell: Shell) -> None:
    done = shell("qury")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: no such command 'qury'. Did you mean 'query'?\nhint: see 'svcctl --help'\n",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["range", "--from", "1h", "--retries", "x"], "invalid value for '--retries': 'x' is not a whole number"),
        (["range"], "missing option '--from'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_a_hint(arguments: list[str], said: str, shell: Shell) -> None:
    done = shell(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"svcctl: error: {said}")
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == ["svcctl", "hint"]


def test_a_query_without_quotes_is_answered_with_quotes(shell: Shell) -> None:
    done = shell("query", "from", "auth.all", "--from", "1h")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: unexpected argument: auth.all\n"
        "hint: put the query in single quotes: svcctl query 'from …'; "
        "see 'svcctl query --help'\n",
    )


def test_the_version_is_the_changelogs(shell: Shell) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d.*)\]", changelog, re.MULTILINE)
    assert shell("--version").stdout == f"svcctl {versions[0]}\n"
