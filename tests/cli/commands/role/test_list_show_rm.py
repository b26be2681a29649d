"""`svcctl role list`, `show` and `rm`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.reseller import Machine, Reseller

from svcctl.service.accounts import users


@pytest.mark.usefixtures("acme")
def test_roles_are_listed_shown_and_removed(reseller: Reseller, machine: Machine, file: Path) -> None:
    reseller("role", "create", "acme", "-F", str(file))
    listed = reseller("role", "list", "acme", "-f", "table")
    assert [line.rstrip() for line in listed.stdout.splitlines()] == [
        "name         policies        applications  resourceIds  defaultApplicationName  description",
        "-----------  --------------  ------------  -----------  ----------------------  -----------",
        "Night shift  Alerts, Search  explorer      1, 2, 7      explorer                Looks",
        "Readers      Search          -             -            -                       -",
    ]
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
    mistyped = reseller("role", "show", "acme", "readrs")
    assert (mistyped.code, "'Readers'" in mistyped.stderr) == (4, True)
    assert reseller("role", "rm", "acme", "Readers").code == 2
    mistyped = reseller("role", "rm", "acme", "readrs", answers=["y"])
    assert (mistyped.code, mistyped.questions, "'Readers'" in mistyped.stderr) == (4, [], True)
    users.assign(machine.store, "acme@demo", "bob@acme.example", "Readers")
    users.assign(machine.store, "acme@demo", "amy@acme.example", "Readers")
    lost = "role 'Readers' of acme, the role of amy@acme.example, bob@acme.example"
    done = reseller("role", "rm", "acme", "Readers", answers=["y"])
    assert (done.code, done.questions, lost in done.stderr) == (0, [f"Delete {lost}?"], True)
    gone = reseller("role", "rm", "acme", "Readers", "--yes")
    assert (gone.code, "Night shift" in gone.stderr) == (4, True)
    for words in (("list", "nemo"), ("show", "nemo", "Readers"), ("rm", "nemo", "Readers", "--yes")):
        nowhere = reseller("role", *words)
        assert (nowhere.code, "nemo@demo" in nowhere.stderr) == (4, True)
    assert reseller("role", "rm", "acme", "Readers", "--yes", "--if-needed").code == 0
    assert reseller("role", "rm", "nemo", "Readers", "--yes", "--if-needed").code == 4
