"""The messages of `svcctl role` on stderr, each as a whole once, where 'Readers' is the role of two people."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reseller import Machine, Reseller
from support.roles import ROLES

from svcctl.service.accounts import users

CONFIRM = "svcctl: error: this needs confirmation:"
LABELS = "a service keeps the integers of resourceIds without their labels: they come back as 'ids', not as"
WORDS: list[tuple[tuple[str, ...], str]] = [
    (
        ("create", "acme", "--name", "R", "--policies", "Search", "--resource-ids", "t=1", "--resource-ids", "l=2"),
        f"svcctl: created role 'R' in acme\nsvcctl: {LABELS} 't', 'l'\n",
    ),
    (("update", "acme", "Readers", "--policies", "Search"), "svcctl: updated role 'Readers' in acme\n"),
    (
        ("create", "acme", "--name", "a", "--policies", "*"),
        f"{CONFIRM} role 'a' grants all policies of acme, including future ones. Continue?\nhint: add --yes\n",
    ),
    (
        ("update", "acne", "a", "--policies", "*"),
        "svcctl: error: no domain acne@demo (code 106)\nhint: did you mean 'acme'?\n",
    ),
    (
        ("update", "acme", "a", "--policies", "*"),
        "svcctl: error: domain acme@demo has no role 'a' (code 140)\nhint: roles are: Night shift, Readers\n",
    ),
    (
        ("update", "acme", "Readers", "-F", "{roles}"),
        "svcctl: error: {roles} contains 2 roles\nhint: leave out 'Readers': each is updated by its name\n",
    ),
    (
        ("create", "acme", "-F", "{wrong}"),
        "svcctl: error: {wrong}, line 2: unknown field 'polices' (did you mean 'policies'?)\n",
    ),
    (("lint", "{wrong}", "{empty}"), "svcctl: error: 2 errors in {wrong}, {empty}\n"),
    (("lint", "{wrong}"), "svcctl: error: 1 error in {wrong}\n"),
    (("apply", "acme", "-F", "{roles}"), "svcctl: nothing to do: the roles in acme are already as in {roles}\n"),
    (
        ("apply", "acme", "-F", "{fresh}"),
        "svcctl: error: {fresh}, line 1: no policies, so there must be at least one application (rule 4)\n",
    ),
    (
        ("apply", "acme", "-F", "{all}"),
        f"{CONFIRM} role 'All' grants all policies of acme, including future ones. Apply these changes?\n"
        "hint: add --yes\n",
    ),
    (
        ("show", "acme", "readrs"),
        "svcctl: error: domain acme@demo has no role 'readrs' (code 140)\nhint: did you mean 'Readers'?\n",
    ),
    (
        ("rm", "acme", "Readers"),
        f"{CONFIRM} Delete role 'Readers' of acme, the role of amy@acme.example, bob@acme.example?\nhint: add --yes\n",
    ),
    (
        ("rm", "acme", "Readers", "--yes"),
        "svcctl: deleted role 'Readers' of acme, the role of amy@acme.example, bob@acme.example\n"
        "svcctl: amy@acme.example, bob@acme.example need another role\n",
    ),
    (("list", "nemo"), "svcctl: error: no domain nemo@demo (code 106)\nhint: domains are: acme\n"),
    (
        ("rm", "acme", "nobody", "--yes", "--if-needed"),
        "svcctl: nothing to do: domain acme@demo has no role 'nobody'\n",
    ),
]


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(("arguments", "said"), WORDS)
def test_a_command_prints_its_whole_message(
    reseller: Reseller, machine: Machine, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    files = {
        "roles": ROLES,
        "wrong": "name: Third\npolices: x\n",
        "empty": "",
        "fresh": "name: Fresh\nresourceIds: {t: [1]}\n",
        "all": "name: All\npolicies: '*'\n",
    }
    paths = {name: tmp_path / f"{name}.yaml" for name in files}
    for name, text in files.items():
        paths[name].write_text(text)
    reseller("role", "create", "acme", "-F", str(paths["roles"]))
    for person in ("bob", "amy"):
        users.assign(machine.store, "acme@demo", f"{person}@acme.example", "Readers")
    assert reseller("role", *(word.format_map(paths) for word in arguments)).stderr == said.format_map(paths)
