"""From what is asked to the windows of a run: queries that cannot be cut, and targets that a state cannot have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from svcctl.dates.zones import named_zone
from svcctl.errors import UsageError
from svcctl.exports.export import Export, Order
from svcctl.exports.plan import check_target, check_window, plan
from svcctl.exports.record import ExportedFile, Record

WEEK = 7 * 86_400
THURSDAY = 2_820 * WEEK
"""2024-01-18, a whole number of weeks after 1970 began."""
MONDAY = THURSDAY + 4 * 86_400


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
        ("from auth.all limit 5", "a query with limit cannot be exported: the limit would apply to each window"),
        ("from auth.all offset 5", "a query with offset cannot be exported: the offset would apply to each window"),
        (
            "from auth.all group by user select count() as n",
            "a query that groups without every cannot be exported: its groups span all windows",
        ),
        (
            "from auth.all group every 1w by user select count() as n",
            "'1w' is not the period of a group, which is a number with s, m, h or d",
        ),
        ("from auth.all group every day", "'day' is not the period of a group, which is a number with s, m, h or d"),
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
        (
            "{from}-{to}.csv",
            "{from}-{to}.csv contains the end of the run, but a repeated run of a state has a later end",
        ),
    ],
)
def test_a_target_that_runs_of_a_state_cannot_share_is_refused(target: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_target(target, incremental=True)
    assert caught.value.message == message
    check_target(target, incremental=False)


def test_no_message_names_a_file_of_a_window_that_is_not_exported(tmp_path: Path) -> None:
    """A check that looks for the file of some window would fail here, because its name is too long."""
    check_target(f"{tmp_path}/{{start}}{'x' * 255}.csv", incremental=False)


def _weekly(folder: Path, **changes: Any) -> Export:
    target = f"{folder}/{{start:%F}}.csv"
    order = Order("from auth.all", target, MONDAY, MONDAY + 2 * WEEK, WEEK, "https://events.example.com")
    return plan(replace(order, **changes), {})


def _days(export: Export) -> set[str]:
    return {f"{datetime.fromtimestamp(window.start, UTC):%A}" for window in export.windows}


@pytest.mark.parametrize(
    ("query", "window", "day", "notes"),
    [
        ("from auth.all", WEEK, "Monday", 0),
        ("from auth.all", 2 * WEEK, "Monday", 0),
        ("from auth.all group every 1d select count() as n", WEEK, "Monday", 0),
        ("from auth.all group every 7d select count() as n", WEEK, "Thursday", 1),
        ("from auth.all group every 7d select count() as n", 3600, "Thursday", 2),
    ],
)
def test_weeks_begin_on_monday_unless_they_would_cut_the_periods_of_the_query(
    tmp_path: Path, query: str, window: int, day: str, notes: int
) -> None:
    export = _weekly(tmp_path, query=query, window=window)
    assert (_days(export), len(export.notes)) == ({day}, notes)
    assert any("weeks begin on Thursday" in note for note in export.notes) == (day == "Thursday")


@pytest.mark.parametrize(
    ("changes", "day"),
    [
        ({}, "Thursday"),
        ({"overwrite": True}, "Thursday"),
        ({"start": THURSDAY, "incremental": True}, "Thursday"),
        ({"query": "from web.all"}, "Monday"),
        ({"window": 2 * WEEK}, "Monday"),
    ],
)
def test_an_export_whose_record_has_weeks_that_begin_on_thursday_continues_with_them(
    tmp_path: Path, changes: Mapping[str, Any], day: str
) -> None:
    new = _weekly(tmp_path)
    identity = replace(new.identity, window_origin=0)
    window = identity.grid.around(MONDAY)
    entry = ExportedFile(window.start, window.end, "", 0, 0, "", 0)
    ranges = ((window.start, window.end),)
    Record(new.storage, new.target, identity, "", {window: entry}, ranges=ranges).save()
    export = _weekly(tmp_path, **changes)
    assert _days(export) == {day}
    assert (export.identity.key == identity.key) == (day == "Thursday" and "query" not in changes)
    new.storage.remove(new.record_path)
    assert _days(_weekly(tmp_path, **changes)) == {"Monday"}


def test_a_damaged_record_has_no_weeks(tmp_path: Path) -> None:
    new = _weekly(tmp_path)
    Record(new.storage, new.target, replace(new.identity, window_origin=0)).save()
    with (tmp_path / new.record_path).open("a") as file:
        file.write("}")
    assert _days(_weekly(tmp_path)) == {"Monday"}


@pytest.mark.parametrize(("date_format", "ending"), [(None, "Z+0100.csv"), ("iso", "Z.csv")])
def test_the_parts_of_a_file_with_one_offset_are_named_by_it(
    tmp_path: Path, date_format: str | None, ending: str
) -> None:
    export = _weekly(tmp_path, zone=named_zone("Europe/Madrid"), date_format=date_format)
    assert export.part(export.whole).endswith(ending)


def test_only_files_of_windows_begin_by_the_time_zone_of_the_dates(tmp_path: Path) -> None:
    zone = named_zone("Europe/Madrid")
    assert _weekly(tmp_path, zone=zone).identity.window_zone == zone
    assert _weekly(tmp_path, zone=zone, target=f"{tmp_path}/all.csv").identity.window_zone is None
