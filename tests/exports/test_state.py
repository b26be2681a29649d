"""States: saved, found again, damaged, and held by one run at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcctl.errors import Locked, NotFound, UsageError
from svcctl.exports.state import State, States, placed

# What the errors say, each once; the tests state their kind.
WORDS = {
    "an unknown state": "no export state 'daily'",
    "a damaged state": "state {hourly} is damaged",
    "not a name": "'{name}' cannot be the name of a state",
    "a run that goes on": "another run of the export 'hourly' has not ended yet",
    "a directory that is gone": "the current directory was removed",
}
HINTS = {
    "an unknown state": "states are: hourly",
    "a damaged state": (
        "remove it with 'svcctl export rm hourly', and give the next run --from: 'svcctl export status "
        "PATH', with PATH as given to -o, shows the end of the export"
    ),
    "a directory that is gone": "change to another directory",
}

STATE = State("out/{start}.csv", 1_706_698_800)


@pytest.fixture
def states(tmp_path: Path) -> States:
    return States(tmp_path / "exports")


def test_a_state_is_none_before_its_first_run_and_then_what_was_saved(states: States) -> None:
    assert states.load("hourly") is None
    states.save("hourly", STATE)
    assert states.load("hourly") == STATE
    assert states.names() == ["hourly"]


def test_an_unknown_state_is_refused_with_the_known_ones(states: States) -> None:
    states.save("hourly", STATE)
    with pytest.raises(NotFound) as caught:
        states.need("daily")
    assert (caught.value.message, caught.value.hint) == (WORDS["an unknown state"], HINTS["an unknown state"])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "key": "x"}', "null"])
def test_a_damaged_state_is_refused(states: States, text: str) -> None:
    states.save("hourly", STATE)
    states.path("hourly").write_text(text)
    with pytest.raises(UsageError) as caught:
        states.load("hourly")
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a damaged state"].format(hourly=states.path("hourly")),
        HINTS["a damaged state"],
    )


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", "-a", "é", "x" * 101])
def test_a_name_that_is_no_file_name_is_refused(states: States, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        states.load(name)
    assert caught.value.message == WORDS["not a name"].format(name=name)


def test_one_run_holds_a_state(states: States) -> None:
    with states.locked("hourly"), pytest.raises(Locked) as caught, states.locked("hourly"):
        pass
    assert caught.value.message == WORDS["a run that goes on"]
    with states.locked("hourly"), states.locked("daily"):
        pass


def test_a_current_directory_that_was_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert [placed(target) for target in ("/out/{start:%F}.csv", "s3://b/{start:%F}.csv")] == [
        "/out/{start:%F}.csv",
        "s3://b/{start:%F}.csv",
    ]
    with pytest.raises(UsageError) as caught:
        placed("{start:%F}.csv")
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a directory that is gone"],
        HINTS["a directory that is gone"],
    )
