"""The nine rules offline: what is said, about which field, and what is only a warning."""

from typing import Any

import pytest

from svcctl.api.roles import RoleFinding, grants_all, lint

NAME_ONLY = RoleFinding(
    "warning", 1, None, "only a name: the role grants all policies, all applications and all resources"
)


def left_out(*keys: str) -> RoleFinding:
    message = f"{', '.join(keys)} not given: svcctl reads this as none, but services may read it as all"
    return RoleFinding("warning", 1, None, message)


WHOLE = {"policies": ["Search"], "applications": ["explorer"], "resourceIds": {"a": [1]}}
CREATES: list[tuple[dict[str, Any], list[RoleFinding]]] = [
    ({}, []),
    ({"name": 7}, [RoleFinding("error", 1, "name", "name is not text: put it in quotes")]),
    ({"name": None}, [RoleFinding("error", 1, "name", "name has no value")]),
    ({"name": " "}, [RoleFinding("error", 1, "name", "name is blank")]),
    ({"name": "a\tb"}, [RoleFinding("error", 1, "name", "name cannot be printed")]),
    (
        {"policies": "*"},
        [RoleFinding("warning", 2, "policies", "'*' grants all policies of the domain, including future ones")],
    ),
    (
        {"resourceIds": {"*": []}},
        [RoleFinding("warning", 2, "resourceIds", "'*' grants all resources of the domain, including future ones")],
    ),
    (
        {"applications": ["*", "explorer"]},
        [RoleFinding("error", 2, "applications", "applications: '*' means all and cannot be combined with others")],
    ),
    ({"policies": 7}, [RoleFinding("error", 3, "policies", "policies is not a list of names or a single name")]),
    (
        {"policies": ["Search", True]},
        [RoleFinding("error", 3, "policies", "policies: 'true' is not text: put it in quotes")],
    ),
    ({"policies": [None]}, [RoleFinding("error", 3, "policies", "policies: an element has no value")]),
    ({"applications": [""]}, [RoleFinding("error", 3, "applications", "applications has an empty name")]),
    (
        {"policies": [], "applications": []},
        [RoleFinding("error", 4, "applications", "no policies, so there must be at least one application")],
    ),
    (
        {"defaultApplicationName": "reports"},
        [
            RoleFinding(
                "error",
                5,
                "defaultApplicationName",
                "defaultApplicationName 'reports' is not among the applications",
            )
        ],
    ),
    ({"defaultApplicationName": "explorer"}, []),
    (
        {"defaultApplicationName": ""},
        [
            RoleFinding(
                "warning",
                6,
                "defaultApplicationName",
                "defaultApplicationName is empty: only an update can remove a default application",
            )
        ],
    ),
    (
        {"defaultApplicationName": 7},
        [
            RoleFinding(
                "error",
                6,
                "defaultApplicationName",
                "defaultApplicationName is not text: put it in quotes ('' is for none)",
            )
        ],
    ),
    (
        {"resourceIds": [1]},
        [
            RoleFinding(
                "error",
                8,
                "resourceIds",
                "resourceIds is not an object of labels with a list of integers each",
            )
        ],
    ),
    (
        {"resourceIds": {"a": 1, "b": [1, "2"]}},
        [
            RoleFinding("error", 8, "resourceIds.a", "resourceIds.a is not a list of integers"),
            RoleFinding("error", 8, "resourceIds.b[1]", "resourceIds.b: '2' is not an integer"),
        ],
    ),
    ({"defVault": 1}, [RoleFinding("error", 9, "defVault", "defVault cannot be set")]),
    (
        {"polices": ["Search"]},
        [RoleFinding("error", None, "polices", "unknown field 'polices' (did you mean 'policies'?)")],
    ),
    ({"zone": 1}, [RoleFinding("error", None, "zone", "unknown field 'zone'")]),
    ({"description": False}, [RoleFinding("error", None, "description", "description is not text: put it in quotes")]),
]


@pytest.mark.parametrize(("fields", "findings"), CREATES)
def test_a_new_role_has_findings(fields: dict[str, Any], findings: list[RoleFinding]) -> None:
    assert lint({"name": "ops", **WHOLE, **fields}) == findings


def test_a_role_without_a_name_has_a_finding() -> None:
    assert lint(WHOLE) == [RoleFinding("error", 1, None, "the name is missing")]


def test_a_name_only_is_a_warning() -> None:
    assert lint({"name": "ops"}) == [NAME_ONLY]
    assert lint({"name": "ops", "description": "d", "defaultApplicationName": "explorer"}) == [NAME_ONLY]


def test_a_value_that_services_read_differently_is_a_warning() -> None:
    assert lint({"name": "ops", "policies": "Search"}) == [left_out("applications", "resourceIds")]


def test_resources_alone_are_no_role() -> None:
    nothing = RoleFinding("error", 4, "applications", "no policies, so there must be at least one application")
    assert lint({"name": "ops", "resourceIds": {"a": [1]}}) == [nothing, left_out("policies", "applications")]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"policies": []},
        {"applications": []},
        {"defaultApplicationName": "reports"},
        {"defaultApplicationName": ""},
        {"applications": [], "defaultApplicationName": "reports"},
        {"policies": [], "applications": [], "defaultApplicationName": "reports"},
        {"resourceIds": {}},
    ],
)
def test_an_update_may_rest_on_what_the_role_has(fields: dict[str, Any]) -> None:
    assert lint(fields, update=True) == []


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"policies": [], "applications": []}, 4),
        ({"policies": [], "applications": [], "defaultApplicationName": ""}, 4),
        ({"applications": ["explorer"], "defaultApplicationName": "reports"}, 5),
        ({"name": ""}, 1),
    ],
)
def test_an_update_that_can_fit_no_role_is_refused(fields: dict[str, Any], rule: int) -> None:
    assert [(one.level, one.rule) for one in lint(fields, update=True)] == [("error", rule)]


@pytest.mark.parametrize(
    ("fields", "update", "words"),
    [
        ({"name": "ops"}, False, ["policies", "applications", "resources"]),
        ({"name": "ops"}, True, []),
        ({"policies": "*"}, False, ["policies"]),
        ({"policies": ["*"], "applications": ["explorer"]}, True, ["policies"]),
        ({"applications": "*", "resourceIds": "*"}, True, ["applications", "resources"]),
        ({"resourceIds": {"*": []}}, True, ["resources"]),
        (WHOLE, False, []),
    ],
)
def test_the_unlimited_grants_of_a_role_are_known(fields: dict[str, Any], update: bool, words: list[str]) -> None:
    assert grants_all(fields, update=update) == words
