"""The root command: where global options may be written, what its pages say, and what it answers to mistakes."""

import re

import pytest
from support import ROOT
from support.shells import Shell

from svcctl.cli.commands import NOUNS
from svcctl.cli.main import GLOBAL_OPTIONS, hoist, tree


@pytest.mark.parametrize(
    ("typed", "options", "rest"),
    [
        ("query x -v -p prod --from 1d", "-v -p prod", "query x --from 1d"),
        ("query x --timeout=5 --from 1d", "--timeout=5", "query x --from 1d"),
        ("job wait x --timeout 5", "--timeout 5", "job wait x"),
        ("query x --from 1d -q -- -v", "-q", "query x --from 1d -- -v"),
        ("-p a query", "-p a", "query"),
        ("service drop -yq t", "-q", "service drop -y t"),
        ("job rm -qy a -fcsv -- -yq", "-q", "job rm -y a -fcsv -- -yq"),
        ("query -v -p", "-p", ""),
        ("query -p -- -v", "-p", ""),
        ("query x --no-color --debug -- --no-color", "--color never --verbose", "query x -- --no-color"),
        ("--colour=never query", "--color=never", "query"),
        ("query --profiles x", "", "query --profiles x"),
        ("", "", ""),
    ],
)
def test_global_options_may_be_anywhere_before_two_dashes(typed: str, options: str, rest: str) -> None:
    assert hoist(typed.split()) == (options.split(), rest.split())


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
        "--no-pager": False,
    }


def test_the_help_page_lists_every_noun_with_what_it_is_for(shell: Shell) -> None:
    page = shell("--help").stdout
    listed = page[page.index("Commands:") : page.index("Options:")].rstrip().split("\n")[1:]
    assert [line.split(maxsplit=1) for line in listed] == [
        [noun, meaning.rstrip(".")] for noun, meaning in NOUNS.items()
    ]


@pytest.mark.parametrize("noun", NOUNS)
def test_a_nouns_own_page_begins_with_what_it_is_for(noun: str, shell: Shell) -> None:
    assert shell(noun, "--help").stdout.split("\n\n")[1].strip() == NOUNS[noun]


def test_the_version_is_the_changelogs(shell: Shell) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d.*)\]", changelog, re.MULTILINE)
    assert shell("--version").stdout == f"svcctl {versions[0]}\n"


@pytest.mark.parametrize(
    ("noun", "verb", "made"),
    [
        ("job", "list", ["list"]),
        ("export", "status", ["status"]),
        ("service", "stop", ["stop"]),
        ("job", "lst", "all"),
        ("job", "--help", "all"),
        ("job", "", "all"),
    ],
)
def test_only_the_called_verb_of_a_noun_is_built(noun: str, verb: str, made: list[str] | str) -> None:
    root = tree()
    root.load(noun, verb=verb)
    names = list(root.commands[noun].commands)
    assert names == made if isinstance(made, list) else len(names) > 5
    assert list(root.commands) == list(NOUNS)
