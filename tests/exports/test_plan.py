"""From what is asked to the windows of a run: queries that cannot be cut, and targets that a state cannot have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from svcctl.errors import UsageError
from svcctl.exports.manifest import About, Manifest
from svcctl.exports.plan import Asked, check_target, check_window, plan
from svcctl.exports.state import State

ASKED = Asked("from auth.all", "all.csv", 0, 7200, 3600, "https://events.example.com")


@pytest.mark.parametrize(
    ("query", "length"),
    [
        ("from auth.all", 3600),
        ("from auth.all group every 10m by user select count() as n", 3600),
        ("from auth.all group every 7m select count() as n", 7 * 3600),
        ("from auth.all group every 1d select count() as n", 86_400),
        ('from auth.all where reason = "limit 5 group by user"', 3600),
    ],
)
def test_windows_are_as_long_as_the_periods_of_the_query_allow(query: str, length: int) -> None:
    assert check_window(query, 3600) == length


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from auth.all limit 5", "a query with limit cannot be exported: it would count in each window by itself"),
        ("from auth.all offset 5", "a query with offset cannot be exported: it would count in each window by itself"),
        (
            "from auth.all group by user select count() as n",
            "a query that groups without every cannot be exported: its groups reach over all windows",
        ),
        (
            "from auth.all group every 1w by user select count() as n",
            "the period of a group is a number with s, m, h or d, which '1w' is not",
        ),
        ("from auth.all group every day", "the period of a group is a number with s, m, h or d, which 'day' is not"),
    ],
)
def test_a_query_that_cannot_be_cut_is_refused(query: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_window(query, 3600)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("all.csv", "every run of a state needs a file of its own, and all runs would write all.csv"),
        ("{from}-{to}.csv", "{from}-{to}.csv names the end of a run, which differs when a run of a state is repeated"),
    ],
)
def test_a_target_that_runs_of_a_state_cannot_share_is_refused(target: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_target(target, incremental=True)
    assert caught.value.message == message
    check_target(target, incremental=False)


@pytest.mark.parametrize("there", [True, False])
def test_the_state_of_an_earlier_version_keeps_the_key_that_its_comments_gave_it(tmp_path: Path, there: bool) -> None:
    began = "// everyone\nfrom auth.all"
    about = About(began, "csv", 3600, ASKED.service)
    target = f"{tmp_path}/{{start:%FT%H}}.csv"
    asked = replace(ASKED, target=target, state="timed", end=10_800)
    if there:
        folder = Path(plan(asked, None, {}, lambda note: None)[0].folder)
        folder.mkdir()
        (folder / "manifest.json").write_text(Manifest(about).to_text())
    for query in [began] + ["from  auth.all // all of them"] * there:
        export, after = plan(replace(asked, query=query), State(about.key, target, 7200, 3600), {}, lambda note: None)
        assert (export.about, export.whole.start, after.key) == (about, 7200, about.key)
