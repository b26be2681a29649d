"""Models as lists: the interface's fields for programs, words and dates for people."""

from typing import Any

import pytest

from svcctl.api.jobs import Watched
from svcctl.api.models import Domain, Job, Role
from svcctl.terminal.records import DOMAINS, JOBS, ROLE, ROLES, STEPS, WATCHED, Listing, rows
from svcctl.terminal.tables import TableColumn

JOB = Job(
    "3f2a-1", "RUNNING", "kafka", "copy", 5, 4, 1_706_659_200_000, "from a", ("lost", "late"), extra={"unknown": 1}
)


def listed(listing: Listing[Any], models: list[Any], *, shown: bool) -> tuple[list[TableColumn], list[list[Any]]]:
    columns, found = listing.laid_out(models, shown=shown)
    return columns, list(found)


def test_programs_get_a_jobs_fields_as_they_are_and_people_get_dates_and_words() -> None:
    columns, data = listed(JOBS, [JOB], shown=False)
    assert [column.name for column in columns] == [
        *("id", "status", "type", "friendlyName", "eventGenerated", "eventsSent", "lastDatetime", "error", "query")
    ]
    assert data == [["3f2a-1", "RUNNING", "kafka", "copy", 5, 4, 1_706_659_200_000, ["lost", "late"], "from a"]]
    columns, data = listed(JOBS, [JOB], shown=True)
    assert (columns[6], data[0][6]) == (TableColumn("lastDatetime", "timestamp"), 1_706_659_200_000)
    assert data[0][7] == "lost; late"
    never_ran = Job("a", "STOPPED", last_datetime=0)
    assert listed(JOBS, [never_ran], shown=True)[1] == [["a", "STOPPED", None, None, None, None, None, None, None]]


def test_people_who_watch_get_the_beginning_of_an_id() -> None:
    watched = Watched(JOB, 1.5, 0.2)
    assert listed(WATCHED, [watched], shown=True)[1][0][:5] == ["3f2a", "RUNNING", 4, 1.5, 0.2]
    assert listed(WATCHED, [watched], shown=False)[1][0][:5] == ["3f2a-1", "RUNNING", 4, 1.5, 0.2]


def test_members_that_some_domains_have_become_columns() -> None:
    users = [{"email": "ann@a.example", "owner": True}, {"email": "bob@a.example"}]
    domains = [Domain("a@r", "basic", extra={"users": users}), Domain("b@r", extra={"region": "eu"})]
    columns, data = listed(DOMAINS, domains, shown=True)
    assert [column.name for column in columns] == ["name", "plan", "time", "volume", "status", "users", "region"]
    assert data == [
        ["a@r", "basic", None, None, None, "ann@a.example (owner), bob@a.example", None],
        ["b@r", None, None, None, None, None, "eu"],
    ]
    assert listed(DOMAINS, domains, shown=False)[1][0][5] == users


@pytest.mark.parametrize(
    ("shown", "row"),
    [
        (False, ["a", "*", ["x"], {"ids": [2, 1]}, None, None]),
        (True, ["a", "all", "x", "1, 2", None, None]),
    ],
)
def test_what_a_role_grants_is_said_in_words_to_people(shown: bool, row: list[Any]) -> None:
    role = Role("a", policies=("*",), applications=("x",), resource_ids={"ids": (2, 1)}, max_vault=3)
    assert listed(ROLES, [role], shown=shown)[1] == [row]
    columns, data = listed(ROLE, [role], shown=shown)
    assert [column.name for column in columns][6:] == ["finderName", "alertPermissions", "defVault", "maxVault"]
    assert data == [[*row, None, None, None, 3]]


def test_rows_without_a_model_have_the_named_columns() -> None:
    assert listed(rows("id", "query", id="id"), [("a", "from t")], shown=True) == (
        [TableColumn("id", "id"), TableColumn("query")],
        [["a", "from t"]],
    )


def test_an_empty_list_still_has_its_columns() -> None:
    assert listed(STEPS, [], shown=False) == (
        [TableColumn("step"), TableColumn("result"), TableColumn("found"), TableColumn("next")],
        [],
    )
