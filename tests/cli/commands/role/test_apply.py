"""`svcctl role apply` and `export`: differences, changes, and files that change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from support.reseller import Reseller
from support.roles import ROLES

NEW = """\
new role 'Night shift' in acme
+ description: Looks
+ policies: Alerts, Search
+ applications: explorer
+ resourceIds: 1, 2, 7
+ defaultApplicationName: explorer
new role 'Readers' in acme
+ policies: Search
"""


@pytest.mark.usefixtures("acme")
def test_apply_creates_changes_and_then_has_nothing_to_do(reseller: Reseller, file: Path) -> None:
    apply = ("role", "apply", "acme", "-F", str(file))
    first = reseller(*apply, "--yes")
    assert (first.code, first.stdout, first.stderr.count("created")) == (0, NEW, 2)
    again = reseller(*apply)
    assert (again.code, again.stdout, "nothing to do" in again.stderr) == (0, "", True)
    assert {method for method, _, _ in again.sent} == {"GET"}
    file.write_text(ROLES.replace("[1, 2]", "[2, 1, 1]").replace("[Search, Alerts]", "Search").replace("Looks", "''"))
    changed = reseller(*apply, "--yes")
    assert changed.stdout.splitlines() == [
        "role 'Night shift' in acme",
        "- description: Looks",
        "+ description: none",
        "- policies: Alerts, Search",
        "+ policies: Search",
    ]
    assert [path for method, path, _ in changed.sent if method == "PUT"] == ["/domain/acme/roles/Night%20shift"]
    assert reseller(*apply).stdout == ""


@pytest.mark.usefixtures("acme")
def test_apply_asks_once_about_everything_and_a_dry_run_changes_nothing(reseller: Reseller, file: Path) -> None:
    file.write_text(ROLES.replace("policies: Search", "policies: '*'"))
    apply = ("role", "apply", "acme", "-F", str(file))
    dry = reseller(*apply, "--dry-run")
    shown = NEW.replace("+ policies: Search\n", "+ policies: all\n")
    assert (dry.code, dry.stdout, {method for method, _, _ in dry.sent}) == (0, shown, {"GET"})
    question = "role 'Readers' grants all policies of acme, including future ones. Apply these changes?"
    alone = reseller(*apply)
    assert (alone.code, question in alone.stderr) == (2, True)
    yes = reseller(*apply, answers=["y"])
    assert (yes.code, yes.questions, yes.stdout) == (0, [question], shown)
    assert reseller("role", "list", "acme", "-f", "csv").stdout.splitlines()[2].startswith("Readers,*,")


def test_a_dry_run_shows_the_grants_of_a_role_with_only_a_name(reseller: Reseller, acme: None, file: Path) -> None:
    file.write_text("name: Everything\n")
    assert reseller("role", "apply", "acme", "-F", str(file), "--dry-run").stdout == (
        "new role 'Everything' in acme\n+ policies: all\n+ applications: all\n+ resourceIds: all\n"
    )


@pytest.mark.usefixtures("acme")
def test_a_difference_is_coloured(reseller: Reseller, file: Path) -> None:
    reseller("role", "apply", "acme", "-F", str(file), "--yes")
    file.write_text("name: Readers\npolicies: Alerts\n")
    assert reseller("role", "apply", "acme", "-F", str(file), "--dry-run", "--color", "always").stdout == (
        "role 'Readers' in acme\n\x1b[31m- policies: Search\x1b[0m\n\x1b[32m+ policies: Alerts\x1b[0m\n"
    )


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("trial", [("--dry-run",), ("--yes",)])
def test_apply_refuses_a_policy_that_the_domain_does_not_have_before_it_changes_anything(
    reseller: Reseller, file: Path, trial: tuple[str, ...]
) -> None:
    file.write_text(ROLES.replace("policies: Search", "policies: [Nope]"))
    done = reseller("role", "apply", "acme", "-F", str(file), *trial)
    assert (done.code, done.stdout, {method for method, _, _ in done.sent}, done.stderr) == (
        2,
        "",
        {"GET"},
        f"svcctl: error: {file}, line 8: policies: 'Nope' does not exist or is not available in acme (rule 7)\n"
        "hint: available are Administration, Alerts, Lookups, Search\n",
    )


def test_a_dry_run_says_that_names_are_not_checked_if_the_service_does_not_list_them(
    reseller: Reseller, file: Path
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_list = request.url.path == "/domain/acme/roles"
        return httpx.Response(200, json=[]) if is_list else httpx.Response(404, json={"error": {"message": "no"}})

    done = reseller("role", "apply", "acme", "-F", str(file), "--dry-run", answer=answer)
    assert (done.code, done.stdout) == (0, NEW)
    assert done.stderr == (
        "svcctl: not checked: the names of policies and applications (rule 7), which this service does not list\n"
    )


@pytest.mark.usefixtures("acme")
def test_apply_refuses_a_new_role_that_would_only_do_as_an_update(reseller: Reseller, file: Path) -> None:
    file.write_text("name: Fresh\nresourceIds: {t: [1]}\n")
    done = reseller("role", "apply", "acme", "-F", str(file), "--yes")
    assert (done.code, done.stdout, {method for method, _, _ in done.sent}) == (2, "", {"GET"})
    assert (f"{file}, line 1: " in done.stderr, "(rule 4)" in done.stderr) == (True, True)


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize("exists", [True, False])
def test_apply_updates_without_comparing_where_roles_cannot_be_read(
    reseller: Reseller, file: Path, status: int, exists: bool
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(status, json={"msg": "no such thing", "status": 1})
        if request.method == "PUT" and not exists:
            return httpx.Response(404, json={"error": {"code": 9, "message": "no such role"}})
        return httpx.Response(200)

    file.write_text("name: Readers\npolicies: Search\n")
    done = reseller("role", "apply", "acme", "-F", str(file), "--yes", answer=answer)
    assert (done.code, done.stdout, "updated" in done.stderr) == (
        0,
        "role 'Readers' in acme\n- policies: unknown\n+ policies: Search\n",
        exists,
    )
    update = ("PUT", "/domain/acme/roles/Readers", {"policies": ["Search"]})
    create = ("POST", "/domain/acme/roles", {"name": "Readers", "policies": ["Search"]})
    assert [request for request in done.sent if request[0] != "GET"] == ([update] if exists else [update, create])


@pytest.mark.parametrize("command", ["apply", "update"])
def test_an_unknown_domain_is_not_taken_for_an_unknown_role(reseller: Reseller, file: Path, command: str) -> None:
    done = reseller("role", command, "nemo", "-F", str(file), "--yes")
    assert (done.code, "nemo@demo" in done.stderr, [path for _, path, _ in done.sent[1:]]) == (4, True, ["/domain"])


@pytest.mark.usefixtures("acme")
def test_programs_get_an_object_for_each_field(reseller: Reseller, file: Path) -> None:
    done = reseller("role", "apply", "acme", "-F", str(file), "--dry-run", "-f", "ndjson")
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "action": "create",
        "kind": "role",
        "name": "Readers",
        "key": "policies",
        "before": None,
        "after": "Search",
    }


@pytest.mark.usefixtures("acme")
def test_a_prune_removes_the_roles_that_no_file_has_but_those_that_domains_are_born_with(
    reseller: Reseller, file: Path
) -> None:
    reseller("role", "apply", "acme", "-F", str(file), "--yes")
    file.write_text("name: '{{which}}'\npolicies: Search\n")
    apply = ("role", "apply", "acme", "-F", str(file), "--var", "which=Readers")
    assert reseller(*apply, "--yes").stdout == ""
    pruned = reseller(*apply, "--yes", "--prune")
    assert (pruned.code, pruned.stdout) == (0, "removed role 'Night shift' in acme\n")

    def answer(request: httpx.Request) -> httpx.Response:
        role = {"name": "Readers", "policies": ["Search"]}
        is_list = request.url.path == "/domain/acme/roles"
        return httpx.Response(200, json=[role, {"name": "User"}] if is_list else role)

    assert reseller(*apply, "--prune", "--check", answer=answer).code == 0
    assert "User" not in reseller("role", "export", "acme", answer=answer).stdout
    for words in (("create", "acme"), ("update", "acme", "Readers")):
        built_in = reseller("role", *words, "--name", "User", "--policies", "Search")
        assert (built_in.code, built_in.sent) == (2, [])


@pytest.mark.usefixtures("acme")
def test_exported_roles_are_a_file_that_changes_nothing(reseller: Reseller, file: Path, tmp_path: Path) -> None:
    file.write_text(
        "- name: Readers\n  policies: '*'\n  applications: []\n"
        "- {name: 'yes', description: 'a: ü', policies: Search, resourceIds: {t: [2, 1]}, applications: explorer}\n"
    )
    assert reseller("role", "apply", "acme", "-F", str(file), "--yes").code == 0
    for role in ([], ["yes"]):
        exported = reseller("role", "export", "acme", *role)
        assert (exported.code, exported.stderr) == (0, "")
        copy = tmp_path / "copy.yaml"
        copy.write_text(exported.stdout)
        again = reseller("role", "apply", "acme", "-F", str(copy), "--yes")
        assert (again.code, again.stdout) == (0, "")
        assert {method for method, _, _ in again.sent} == {"GET"}
    assert exported.stdout == (
        "name: 'yes'\ndescription: 'a: ü'\npolicies: [Search]\napplications: [explorer]\nresourceIds:\n  ids: [1, 2]\n"
    )
