"""`svcctl role create` and `update`: the fields that are sent, grants that are asked about, and files."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.reseller import Reseller
from support.roles import ROLES, accepting

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


@pytest.mark.slow
def test_a_create_sends_the_interfaces_fields_and_nothing_more_for_every_combination_of_options(
    reseller: Reseller,
) -> None:
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
def test_an_update_sends_the_given_fields_and_no_name(reseller: Reseller, which: str) -> None:
    for words, body in OPTIONS[which][1:]:
        done = reseller("role", "update", "acme", "R/1", *words, "--yes", answer=accepting)
        assert (done.code, done.sent) == (0, [("PUT", "/domain/acme/roles/R%2F1", body)])


def test_a_note_names_the_labels_that_the_service_drops(reseller: Reseller) -> None:
    options = ("--policies", "Search", "--resource-ids", "tables=1", "--resource-ids", "lookups=2")
    for words in (("create", "acme", "--name", "R"), ("update", "acme", "R")):
        note = reseller("role", *words, *options, answer=accepting).stderr
        assert [label in note for label in ("'tables'", "'lookups'", "labels")] == [True] * 3
    for unlabelled in ("ids=1", "*"):
        note = reseller("role", "update", "acme", "R", "--resource-ids", unlabelled, "--yes", answer=accepting).stderr
        assert "labels" not in note


def test_an_update_may_rename_and_remove_the_default(reseller: Reseller) -> None:
    words = ("--name", "R2", "--default-application-name", "")
    done = reseller("role", "update", "acme", "R1", *words, answer=accepting)
    assert done.sent == [("PUT", "/domain/acme/roles/R1", {"name": "R2", "defaultApplicationName": ""})]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "acme"), "no role given\nhint: describe it with options or with --file"),
        (("create", "acme", "--policies", "x"), "the options: the name is missing (rule 1)"),
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
def test_an_invalid_role_is_not_sent(reseller: Reseller, arguments: tuple[str, ...], message: str) -> None:
    done = reseller("role", *arguments, "--yes")
    assert (done.code, done.sent, done.stderr) == (2, [], f"svcctl: error: {message}\n")


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
def test_a_role_that_grants_everything_is_asked_about(
    reseller: Reseller, arguments: tuple[str, ...], grant: str
) -> None:
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
def test_there_is_no_question_about_a_missing_domain_or_role(
    reseller: Reseller, arguments: tuple[str, ...], missing: str
) -> None:
    done = reseller("role", *arguments, answers=["y"])
    assert (done.code, done.questions, missing in done.stderr) == (4, [], True)


def test_there_is_no_question_about_a_role_with_named_grants(reseller: Reseller) -> None:
    words = ("--name", "a", "--policies", "Search", "--resource-ids", "t=1")
    assert reseller("role", "create", "acme", *words, answer=accepting).code == 0
    assert reseller("role", "update", "acme", "a", "--description", "d", answer=accepting).code == 0


def test_a_no_is_confirmed(reseller: Reseller) -> None:
    assert reseller("role", *GRANTS[0][0], answer=accepting, answers=["n"]).stderr == "svcctl: nothing was done\n"


def test_a_file_creates_and_updates_each_of_its_roles(reseller: Reseller, file: Path) -> None:
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


def test_an_update_of_one_role_from_a_file_of_many_is_refused(reseller: Reseller, file: Path) -> None:
    done = reseller("role", "update", "acme", "Readers", "-F", str(file))
    assert (done.code, done.sent, "'Readers'" in done.stderr) == (2, [], True)


def test_an_error_in_a_file_stops_everything_before_it_begins(reseller: Reseller, file: Path) -> None:
    file.write_text(ROLES + "- name: Third\n  polices: x\n")
    for command in ("create", "update", "apply"):
        done = reseller("role", command, "acme", "-F", str(file), "--yes")
        assert (done.code, done.sent, f"{file}, line 12: " in done.stderr) == (2, [], True)


def test_a_create_that_stops_says_how_many_roles_were_created(reseller: Reseller, file: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_first = b"Readers" not in request.content
        return httpx.Response(200, json={}) if is_first else httpx.Response(400, json={"error": {"message": "no"}})

    stopped = reseller("-q", "role", "create", "acme", "-F", str(file), answer=answer)
    assert (stopped.code, stopped.stderr.splitlines()[0]) == (1, "svcctl: 1 of 2 created")
