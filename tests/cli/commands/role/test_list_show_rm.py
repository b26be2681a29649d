"""`svcctl role list`, `show` and `rm`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.reseller import Machine, Reseller

from svcctl.service.accounts import users

pytestmark = pytest.mark.usefixtures("created")


@pytest.fixture
def created(reseller: Reseller, acme: None, file: Path) -> None:
    """The domain acme with the roles of the file."""
    assert reseller("role", "create", "acme", "-F", str(file)).code == 0


def test_a_list_has_a_line_for_each_role(reseller: Reseller) -> None:
    listed = reseller("role", "list", "acme", "-f", "table")
    assert [line.rstrip() for line in listed.stdout.splitlines()] == [
        "name         policies        applications  resourceIds  defaultApplicationName  description",
        "-----------  --------------  ------------  -----------  ----------------------  -----------",
        "Night shift  Alerts, Search  explorer      1, 2, 7      explorer                Looks",
        "Readers      Search          -             -            -                       -",
    ]


def test_all_fields_of_a_role_are_shown(reseller: Reseller) -> None:
    shown = reseller("role", "show", "acme", "Readers", "-f", "json")
    assert json.loads(shown.stdout) == {
        "name": "Readers",
        "policies": ["Search"],
        "applications": [],
        "resourceIds": {"ids": []},
        "defaultApplicationName": None,
        "description": None,
        "finderName": None,
        "alertPermissions": [],
        "defVault": 1,
        "maxVault": 1,
    }


def test_a_removal_names_the_people_who_lose_the_role(reseller: Reseller, machine: Machine) -> None:
    assert reseller("role", "rm", "acme", "Readers").code == 2
    users.assign(machine.store, "acme@demo", "bob@acme.example", "Readers")
    users.assign(machine.store, "acme@demo", "amy@acme.example", "Readers")
    lost = "role 'Readers' of acme, the role of amy@acme.example, bob@acme.example"
    done = reseller("role", "rm", "acme", "Readers", answers=["y"])
    assert (done.code, done.questions, lost in done.stderr) == (0, [f"Delete {lost}?"], True)
    gone = reseller("role", "rm", "acme", "Readers", "--yes")
    assert (gone.code, "Night shift" in gone.stderr) == (4, True)
    assert reseller("role", "rm", "acme", "Readers", "--yes", "--if-needed").code == 0
    assert reseller("role", "rm", "nemo", "Readers", "--yes", "--if-needed").code == 4


@pytest.mark.parametrize("verb", ["show", "rm"])
def test_the_role_of_a_mistyped_name_is_suggested(reseller: Reseller, verb: str) -> None:
    mistyped = reseller("role", verb, "acme", "readrs", answers=["y"])
    assert (mistyped.code, mistyped.questions, "'Readers'" in mistyped.stderr) == (4, [], True)


@pytest.mark.parametrize("words", [("list", "nemo"), ("show", "nemo", "Readers"), ("rm", "nemo", "Readers", "--yes")])
def test_an_unknown_domain_exits_4(reseller: Reseller, words: tuple[str, ...]) -> None:
    nowhere = reseller("role", *words)
    assert (nowhere.code, "nemo@demo" in nowhere.stderr) == (4, True)
