"""`svcctl role`: what is sent for which options, files and their errors, grants that are asked about, and apply."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from svcctl.cli.commands.role import FINDINGS
from svcctl.cli.inputs.role_files import Located
from svcctl.service.accounts import domains, users

OPTIONS: dict[str, list[tuple[list[str], dict[str, Any]]]] = {
    "description": [([], {}), (["--description", "d e"], {"description": "d e"})],
    "policies": [
        ([], {}),
        (["--policies", "Search"], {"policies": ["Search"]}),
        (["--policies", "Search,Alerts", "--policies", '"A, B"'], {"policies": ["Search", "Alerts", "A, B"]}),
        (["--policies", "*"], {"policies": "*"}),
        (["--policies", ""], {"policies": []}),
    ],
    "applications": [([], {}), (["--applications", "explorer"], {"applications": ["explorer"]})],
    "resources": [
        ([], {}),
        (["--resource-ids", "t=1, 2", "--resource-ids", "l=-3"], {"resourceIds": {"t": [1, 2], "l": [-3]}}),
        (["--resource-ids", "*"], {"resourceIds": {"*": []}}),
        (["--resource-ids", ""], {"resourceIds": {}}),
        (["--resource-ids", "t="], {"resourceIds": {"t": []}}),
    ],
    "finder": [([], {}), (["--finder-name", "f"], {"finderName": "f"})],
    "default": [([], {}), (["--default-application-name", "explorer"], {"defaultApplicationName": "explorer"})],
}
COMBINATIONS = [*itertools.product(*OPTIONS.values())]


def joined(combination: tuple[tuple[list[str], dict[str, Any]], ...]) -> tuple[list[str], dict[str, Any]]:
    words = [word for option, _ in combination for word in option]
    return words, {key: value for _, body in combination for key, value in body.items()}


def accepting(request: httpx.Request) -> httpx.Response:
    shown = request.method == "GET" and not request.url.path.endswith("/roles")
    return httpx.Response(200, json={"name": "a"} if shown else None)


@pytest.mark.slow
def test_a_create_sends_the_interfaces_fields_and_nothing_more_for_every_combination_of_options(reseller: Any) -> None:
    wrong = []
    for words, body in map(joined, COMBINATIONS):
        done = reseller("role", "create", "acme", "--name", "R 1", *words, "--yes", answer=accepting)
        sent = [("POST", "/domain/acme/roles", {"name": "R 1", **body})]
        granted = not {"policies", "applications", "resourceIds"} & body.keys()
        sound = granted or body.get("policies") not in (None, []) or "applications" in body
        defaulted = "defaultApplicationName" not in body or "applications" in body or granted
        expected = (0, sent) if sound and defaulted else (2, [])
        if (done.code, done.sent) != expected:
            wrong.append((words, done))
    assert wrong == []


@pytest.mark.parametrize("which", [*OPTIONS])
def test_an_update_sends_what_is_given_and_no_name(reseller: Any, which: str) -> None:
    for words, body in OPTIONS[which][1:]:
        done = reseller("role", "update", "acme", "R/1", *words, "--yes", answer=accepting)
        assert (done.code, done.sent) == (0, [("PUT", "/domain/acme/roles/R%2F1", body)])


def test_labels_that_are_lost_are_told_when_they_are_given(reseller: Any) -> None:
    given = ("--policies", "Search", "--resource-ids", "tables=1", "--resource-ids", "lookups=2")
    for words in (("create", "acme", "--name", "R"), ("update", "acme", "R")):
        told = reseller("role", *words, *given, answer=accepting).stderr
        assert [label in told for label in ("'tables'", "'lookups'", "labels")] == [True] * 3
    for none in ("ids=1", "*"):
        told = reseller("role", "update", "acme", "R", "--resource-ids", none, "--yes", answer=accepting).stderr
        assert "labels" not in told


def test_an_update_may_rename_and_remove_the_default(reseller: Any) -> None:
    words = ("--name", "R2", "--default-application-name", "")
    done = reseller("role", "update", "acme", "R1", *words, answer=accepting)
    assert done.sent == [("PUT", "/domain/acme/roles/R1", {"name": "R2", "defaultApplicationName": ""})]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "acme"), "no role given\nhint: describe it with options or with --file"),
        (("create", "acme", "--policies", "x"), "the options: the name is missing (rule 1)"),
        (
            ("create", "acme", "--name", "a", "--policies", ""),
            "the options: no policies, so there must be at least one application (rule 4)",
        ),
        (
            ("create", "acme", "--name", "a", "--resource-ids", "1,2"),
            "--resource-ids '1,2' is not of the form LABEL=1,2,3",
        ),
        (
            ("create", "acme", "--name", "a", "--resource-ids", "t=1,x"),
            "--resource-ids 't=1,x' is not of the form LABEL=1,2,3",
        ),
        (
            ("create", "acme", "--name", "a", "--policies", "*", "--policies", "x"),
            "the options: policies: '*' means all and cannot be combined with others (rule 2)",
        ),
        (
            ("create", "acme", "--name", "a", "-F", "role.yaml"),
            "a role is given by --file and by options\nhint: change the file, or leave out --file",
        ),
        (("update", "acme", "--policies", "x"), "the options: no role is named\nhint: put its name after the domain"),
        (
            ("update", "acme", "r"),
            "nothing to change: no field is given\nhint: describe it with options or with --file",
        ),
    ],
)
def test_what_cannot_be_sent_is_not(reseller: Any, arguments: tuple[str, ...], message: str) -> None:
    done = reseller("role", *arguments, "--yes")
    assert (done.code, done.sent, done.stderr) == (2, [], f"svcctl: error: {message}\n")


# Grants that are asked about

GRANTS = [
    (("create", "acme", "--name", "a"), "role 'a' grants all policies, all applications and all resources of acme"),
    (("create", "acme", "--name", "a", "--policies", "*"), "role 'a' grants all policies of acme"),
    (
        ("create", "acme", "--name", "a", "--applications", "*", "--resource-ids", "*"),
        "role 'a' grants all applications and all resources of acme",
    ),
    (("update", "acme", "a", "--policies", "*"), "the role grants all policies of acme"),
]


@pytest.mark.parametrize(("arguments", "grant"), GRANTS)
def test_a_role_that_grants_everything_is_asked_about(reseller: Any, arguments: tuple[str, ...], grant: str) -> None:
    question = f"{grant}, including future ones. Continue?"
    looked = ("GET", f"/domain/acme/roles{'/a' if arguments[0] == 'update' else ''}", None)
    alone = reseller("role", *arguments, answer=accepting)
    assert (alone.code, alone.sent, "--yes" in alone.stderr) == (2, [looked], True)
    no = reseller("role", *arguments, answer=accepting, answers=["n"])
    assert (no.code, no.sent, no.questions) == (130, [looked], [question])
    yes = reseller("role", *arguments, answer=accepting, answers=["y"])
    assert (yes.code, len(yes.sent), yes.questions) == (0, 2, [question])
    assert reseller("role", *arguments, "--yes", answer=accepting).sent == yes.sent[1:]


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("create", "acne", "--name", "a"), "acne@demo"),
        (("update", "acne", "a", "--policies", "*"), "acne@demo"),
        (("update", "acme", "a", "--policies", "*"), "'a'"),
    ],
)
def test_nobody_is_asked_about_a_role_of_what_does_not_exist(
    reseller: Any, arguments: tuple[str, ...], missing: str
) -> None:
    done = reseller("role", *arguments, answers=["y"])
    assert (done.code, done.questions, missing in done.stderr) == (4, [], True)


def test_a_role_that_grants_what_it_says_is_not_asked_about(reseller: Any) -> None:
    words = ("--name", "a", "--policies", "Search", "--resource-ids", "t=1")
    assert reseller("role", "create", "acme", *words, answer=accepting).code == 0
    assert reseller("role", "update", "acme", "a", "--description", "d", answer=accepting).code == 0


# Files

ROLES = """\
- name: Night shift
  description: Looks
  policies: [Search, Alerts]
  applications: explorer
  resourceIds: {tables: [1, 2], lookups: [7]}
  defaultApplicationName: explorer
- name: Readers
  policies: Search
  applications: []
  resourceIds: {}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "roles.yaml"
    path.write_text(ROLES)
    return path


@pytest.fixture
def acme(machine: Any) -> None:
    domains.create(machine.store, "demo", {"name": "acme", "plan": "full"})
    users.assign(machine.store, "acme@demo", "ann@acme.example", "OWNER")


def test_a_file_creates_and_updates_each_of_its_roles(reseller: Any, file: Path) -> None:
    night = {
        "name": "Night shift",
        "description": "Looks",
        "policies": ["Search", "Alerts"],
        "applications": ["explorer"],
        "resourceIds": {"tables": [1, 2], "lookups": [7]},
        "defaultApplicationName": "explorer",
    }
    readers = {"name": "Readers", "policies": ["Search"], "applications": [], "resourceIds": {}}
    created = reseller("role", "create", "acme", "-F", str(file), answer=accepting)
    assert created.sent == [("POST", "/domain/acme/roles", night), ("POST", "/domain/acme/roles", readers)]
    updated = reseller("role", "update", "acme", "-F", str(file), answer=accepting)
    del night["name"], readers["name"]
    assert updated.sent == [
        ("PUT", "/domain/acme/roles/Night%20shift", night),
        ("PUT", "/domain/acme/roles/Readers", readers),
    ]


def test_an_update_of_one_role_from_a_file_of_many_is_refused(reseller: Any, file: Path) -> None:
    done = reseller("role", "update", "acme", "Readers", "-F", str(file))
    assert (done.code, done.sent, "'Readers'" in done.stderr) == (2, [], True)


def test_an_error_in_a_file_stops_everything_before_it_begins(reseller: Any, file: Path) -> None:
    file.write_text(ROLES + "- name: Third\n  polices: x\n")
    for command in ("create", "update", "apply"):
        done = reseller("role", command, "acme", "-F", str(file), "--yes")
        assert (done.code, done.sent, f"{file}, line 12: " in done.stderr) == (2, [], True)


def test_lint_goes_on_past_a_file_that_it_cannot_read_and_says_which_files_are_clean(
    reseller: Any, file: Path, tmp_path: Path
) -> None:
    twice, empty, torn = tmp_path / "twice.yaml", tmp_path / "empty.yaml", tmp_path / "torn.yaml"
    twice.write_text("- name: A\n  policies: Search\n- name: A\n")
    empty.write_text("")
    torn.write_text("name: [\n")
    absent = tmp_path / "absent.yaml"
    done = reseller("role", "lint", *map(str, (twice, file, empty, torn, absent)), "-f", "ndjson")
    assert [(one["file"], one["line"], one["message"]) for one in map(json.loads, done.stdout.splitlines())] == [
        (str(twice), 3, f"role 'A' appears twice, first in {twice}, line 1"),
        (str(empty), None, "it holds no role"),
        (str(torn), 2, "not YAML: expected the node content, but found '<stream end>' (column 1)"),
        (str(absent), None, f"roles cannot be read from {absent}: No such file or directory"),
    ]
    assert (done.code, str(file) in done.stderr, f"{twice}, {empty}, {torn}, {absent}" in done.stderr) == (
        2,
        False,
        True,
    )
    people = reseller("role", "lint", str(file), str(empty), "-f", "table").stdout
    assert " ".join(people.split()) == f"{empty}: error: it holds no role {file}: 2 roles, no findings"
    people = reseller("role", "lint", str(file), "-f", "table")
    assert (people.code, people.stdout, people.stderr) == (0, f"{file}: 2 roles, no findings\n", "")


def test_a_dry_run_shows_what_a_role_with_only_a_name_grants(reseller: Any, acme: None, file: Path) -> None:
    file.write_text("name: Everything\n")
    assert reseller("role", "apply", "acme", "-F", str(file), "--dry-run").stdout == (
        "new role 'Everything' in acme\n+ policies: all\n+ applications: all\n+ resourceIds: all\n"
    )


def test_lint_says_where_what_is_wrong_and_exits_2_for_errors(reseller: Any, file: Path) -> None:
    sound = reseller("role", "lint", str(file), "-f", "csv")
    assert (sound.code, sound.stdout, sound.stderr, sound.sent) == (0, "file,line,role,level,rule,message\n", "", [])
    file.write_text("name: Everything\n---\nname: Odd\npolicies: '*'\napplications: []\nresourceIds: {t: [x]}\n")
    odd = reseller("role", "lint", str(file), "-f", "ndjson")
    assert [json.loads(line) for line in odd.stdout.splitlines()] == [
        {
            "file": str(file),
            "line": 1,
            "role": "Everything",
            "level": "warning",
            "rule": 1,
            "message": "only a name: the role grants all policies, all applications and all resources",
        },
        {
            "file": str(file),
            "line": 6,
            "role": "Odd",
            "level": "error",
            "rule": 8,
            "message": "resourceIds.t: 'x' is not an integer",
        },
        {
            "file": str(file),
            "line": 4,
            "role": "Odd",
            "level": "warning",
            "rule": 2,
            "message": "'*' grants all policies of the domain, later ones too",
        },
    ]
    assert (odd.code, str(file) in odd.stderr) == (2, True)


# Apply

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
def test_apply_creates_changes_and_then_has_nothing_to_do(reseller: Any, file: Path) -> None:
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
def test_apply_asks_once_about_everything_and_a_dry_run_changes_nothing(reseller: Any, file: Path) -> None:
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


@pytest.mark.usefixtures("acme")
def test_a_difference_is_coloured(reseller: Any, file: Path) -> None:
    reseller("role", "apply", "acme", "-F", str(file), "--yes")
    file.write_text("name: Readers\npolicies: Alerts\n")
    assert reseller("role", "apply", "acme", "-F", str(file), "--dry-run", "--color", "always").stdout == (
        "role 'Readers' in acme\n\x1b[31m- policies: Search\x1b[0m\n\x1b[32m+ policies: Alerts\x1b[0m\n"
    )


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("trial", [("--dry-run",), ("--yes",)])
def test_apply_refuses_a_policy_that_the_domain_does_not_have_before_it_changes_anything(
    reseller: Any, file: Path, trial: tuple[str, ...]
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


def test_a_dry_run_says_that_names_are_not_checked_where_the_service_does_not_tell_them(
    reseller: Any, file: Path
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_list = request.url.path == "/domain/acme/roles"
        return httpx.Response(200, json=[]) if is_list else httpx.Response(404, json={"error": {"message": "no"}})

    done = reseller("role", "apply", "acme", "-F", str(file), "--dry-run", answer=answer)
    assert (done.code, done.stdout) == (0, NEW)
    assert done.stderr == (
        "svcctl: not checked: the names of policies and applications (rule 7), which this service does not list\n"
    )


def test_an_apply_that_stops_says_how_much_was_done(reseller: Any, file: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and b"Readers" not in request.content:
            return httpx.Response(200, json={})
        is_list = request.method == "GET" and request.url.path == "/domain/acme/roles"
        return httpx.Response(200, json=[]) if is_list else httpx.Response(400, json={"error": {"message": "no"}})

    for words, done in ((("apply",), "applied"), (("create",), "created")):
        stopped = reseller("-q", "role", *words, "acme", "-F", str(file), "--yes", answer=answer)
        assert (stopped.code, stopped.stderr.splitlines()[0]) == (1, f"svcctl: 1 of 2 {done}")


@pytest.mark.usefixtures("acme")
def test_apply_refuses_a_new_role_that_would_only_do_as_an_update(reseller: Any, file: Path) -> None:
    file.write_text("name: Fresh\nresourceIds: {t: [1]}\n")
    done = reseller("role", "apply", "acme", "-F", str(file), "--yes")
    assert (done.code, done.stdout, {method for method, _, _ in done.sent}) == (2, "", {"GET"})
    assert (f"{file}, line 1: " in done.stderr, "(rule 4)" in done.stderr) == (True, True)


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize("exists", [True, False])
def test_apply_updates_without_comparing_where_roles_cannot_be_read(
    reseller: Any, file: Path, status: int, exists: bool
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
    assert [one for one in done.sent if one[0] != "GET"] == ([update] if exists else [update, create])


@pytest.mark.parametrize("command", ["apply", "update"])
def test_an_unknown_domain_is_not_taken_for_an_unknown_role(reseller: Any, file: Path, command: str) -> None:
    done = reseller("role", command, "nemo", "-F", str(file), "--yes")
    assert (done.code, "nemo@demo" in done.stderr, [path for _, path, _ in done.sent[1:]]) == (4, True, ["/domain"])


@pytest.mark.usefixtures("acme")
def test_a_check_exits_10_while_something_differs(reseller: Any, file: Path) -> None:
    check = ("role", "apply", "acme", "-F", str(file), "--check")
    differs = reseller(*check)
    assert (differs.code, differs.stdout) == (10, NEW)
    assert differs.stderr == f"svcctl: error: 2 roles not as in {file}\n"
    rows = [json.loads(line) for line in reseller(*check, "-f", "ndjson").stdout.splitlines()]
    assert rows[-1] == {
        "action": "create",
        "kind": "role",
        "name": "Readers",
        "key": "policies",
        "before": None,
        "after": "Search",
    }
    reseller("role", "apply", "acme", "-F", str(file), "--yes")
    assert reseller(*check).code == 0


@pytest.mark.usefixtures("acme")
def test_a_prune_removes_the_roles_that_no_file_has_but_those_that_domains_are_born_with(
    reseller: Any, file: Path
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


# The rest


@pytest.mark.usefixtures("acme")
def test_roles_are_listed_shown_and_removed(reseller: Any, machine: Any, file: Path) -> None:
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


@pytest.mark.usefixtures("acme")
def test_exported_roles_are_a_file_that_changes_nothing(reseller: Any, file: Path, tmp_path: Path) -> None:
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


# What the commands say on stderr: each text is here once, and the tests above state what happens. Of these roles,
# 'Readers' is the role of two people.

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
        "svcctl: error: {roles} holds 2 roles\nhint: leave out 'Readers': each is updated by its name\n",
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
def test_what_a_command_of_roles_says(
    reseller: Any, machine: Any, tmp_path: Path, arguments: tuple[str, ...], said: str
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


def test_a_no_is_confirmed(reseller: Any) -> None:
    assert reseller("role", *GRANTS[0][0], answer=accepting, answers=["n"]).stderr == "svcctl: nothing was done\n"


def test_nothing_of_a_finding_about_a_role_is_cut() -> None:
    assert FINDINGS.paragraph is not None
    message = "only a name: the role grants all policies, all applications and all resources"
    assert FINDINGS.paragraph(Located("ns.yaml", 1, "Everything", "warning", 1, message), 60) == (
        "ns.yaml, line 1, role 'Everything': warning: only a name:\n"
        "    the role grants all policies, all applications and all\n"
        "    resources (rule 1)"
    )
