"""From what is asked to the windows of a run: queries that cannot be cut, and targets that a state cannot have."""

from __future__ import annotations

import pytest

from svcctl.errors import UsageError
from svcctl.exports.plan import check_target, check_window


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
