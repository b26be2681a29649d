"""Other tools' spellings: accepted where they mean the same, otherwise answered, and never with something worse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tree import TREE

from svcctl.cli import spellings
from svcctl.cli.main import run
from svcctl.terminal.formats import FORMATS, find_format
from svcctl.words import FORMAT_NAMES

CHANGE = {
    *("rm", "drop", "reset", "stop", "start", "restart", "set", "use", "edit", "load"),
    *("create", "update", "apply", "enable", "disable", "key", "reseller", "plan", "policy", "application", "user"),
}


def groups(command: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each noun with its visible verbs, and the root with its nouns."""
    inner = {name: each for name, each in getattr(command, "commands", {}).items() if not each.hidden}
    if inner:
        yield path, inner
    for name, each in inner.items():
        yield from groups(each, f"{path} {name}".strip())


GROUPS = dict(groups(TREE))


def is_command(words: list[str]) -> bool:
    """Whether the words begin with a command's name."""
    command = TREE
    for word in words:
        if not hasattr(command, "commands"):
            return True
        if word not in command.commands:
            return False
        command = command.commands[word]
    return True


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("--since 2024-01-31 --until 2024-02-01", "--from 2024-01-31 --to 2024-02-01"),
        ("--start=2024-01-31 --end=2024-02-01 -n 5", "--from 2024-01-31 --to 2024-02-01 --limit 5"),
        ("--earliest 2024-01-31 --latest 2024-02-01 --head 5", "--from 2024-01-31 --to 2024-02-01 --limit 5"),
        ("--from 2024-01-31 --max-time 5m", "--from 2024-01-31 --max-time 300"),
        ("--from 2024-01-31 -n5 --offset 2", "--from 2024-01-31 --limit 5 --skip 2"),
        (
            "--since 2024-01-31 --output-format JSONL --dryrun",
            "--from 2024-01-31 --format ndjson --dry-run",
        ),
        ("--from 2024-01-31 -f csv --tz GMT+2", "--from 2024-01-31 -f csv --time-zone GMT+2"),
        ("--from 2024-01-31 -f XLSX --timezone GMT+2", "--from 2024-01-31 -f xls --time-zone GMT+2"),
    ],
)
def test_an_accepted_spelling_sends_the_same_request(
    typed: str, right: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("BASE_URL", "https://events.example.com"), ("API_KEY", "k"), ("API_SECRET", "s")):
        monkeypatch.setenv(f"SVCCTL_{name}", value)
    sent = []
    for options in (typed, right):
        assert run(["query", "from t", *options.split(), "--dry-run"]) == 0
        sent.append([line for line in capsys.readouterr().out.split("\n") if "x-svc-" not in line])
    assert sent[0] == sent[1]
    assert len(sent[0]) > 3


def test_no_command_has_an_option_of_its_own_that_another_one_is_accepted_for() -> None:
    """Otherwise a habit that works in one command would do something else in the next."""
    own = {
        name
        for _, commands in groups(TREE)
        for command in commands.values()
        for parameter in command.params
        if parameter.param_type_name == "option"
        for name in parameter.opts
    }
    assert own & {name for names in spellings.OPTIONS.values() for name in names} == set()
    assert own & set(spellings.GLOBAL) == set()


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_format_has_several_names_in_any_case(name: str) -> None:
    expected = FORMATS[FORMAT_NAMES[name]]
    for written in (name, name.upper()):
        assert find_format(written, is_terminal=False) is expected
    for row in FORMATS.values():
        assert find_format(row.name.upper(), is_terminal=False) is row


def test_the_name_of_a_command_is_one_word() -> None:
    assert [name for commands in GROUPS.values() for name in commands if len(name.split()) != 1] == []


def test_each_suggested_spelling_exists() -> None:
    assert [text for text in spellings.COMMANDS.values() if not is_command(text.split("'")[0].split())] == []
    verbs = {verb for known in GROUPS.values() for verb in known}
    assert {verb for found in spellings.MEANT.values() for verb in found} <= verbs


def test_nothing_that_changes_or_deletes_is_suggested_by_letters() -> None:
    assert set() == spellings.READ & CHANGE


@given(noun=st.sampled_from(sorted(GROUPS)), data=st.data())
def test_a_mistyped_command_never_leads_to_one_that_changes_something(noun: str, data: st.DataObject) -> None:
    known = GROUPS[noun]
    verb = data.draw(st.sampled_from(sorted(known)))
    at = data.draw(st.integers(0, len(verb) - 1))
    letter = data.draw(st.sampled_from(["", "a", "e", "s", "t", "x"]))
    typed = data.draw(st.sampled_from([verb[:at] + letter + verb[at + 1 :], verb[:at] + letter + verb[at:]]))
    assert spellings.alike(typed, known) not in CHANGE


def test_a_command_that_deletes_everything_is_never_an_answer() -> None:
    for noun, known in GROUPS.items():
        for typed in {*spellings.MEANT, *spellings.VERBS, "restart", "clear", "wipe", "rest", "resett"} - set(known):
            assert "reset" not in (spellings.meant(noun, [typed], known) or "").split()
