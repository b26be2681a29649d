"""What a role may be on the service: the nine rules one by one, updates, and that the offline rules say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest

from svcctl.api.roles import lint
from svcctl.errors import ServiceError
from svcctl.service.accounts import rules
from svcctl.service.accounts.codes import Reason
from svcctl.service.accounts.rules import ALL_NAMES, Available, CustomRole

AVAILABLE = Available(("Alerts", "Lookups", "Search"), ("dashboards", "explorer"))
READ_ONLY = {"alertPermissions": [], "defVault": 1, "maxVault": 1}


def made(**fields: Any) -> dict[str, Any]:
    """The full read of the role that these fields make, without what every role has."""
    return read_of(rules.new_role(rules.read({"name": "ops", **fields}), AVAILABLE))


def read_of(role: CustomRole) -> dict[str, Any]:
    return {key: value for key, value in role.to_json().items() if key not in ("name", *READ_ONLY)}


def changed(role: dict[str, Any], **fields: Any) -> dict[str, Any]:
    current = rules.new_role(rules.read({"name": "ops", **role}), AVAILABLE)
    return read_of(rules.updated_role(current, rules.read(fields), AVAILABLE))


def refusal(call: Callable[[], object]) -> tuple[int | None, str]:
    with pytest.raises(ServiceError) as caught:
        call()
    return caught.value.code, caught.value.message


EVERYTHING = {"policies": "*", "applications": "*", "resourceIds": {"*": []}}


# Rule 1


def test_rule_1_a_name_alone_grants_everything() -> None:
    assert made() == EVERYTHING


def test_rule_1_texts_beside_the_name_change_nothing_of_that() -> None:
    texts = {"description": "all of it", "finderName": "default", "defaultApplicationName": "explorer"}
    assert made(**texts) == EVERYTHING | texts


def test_rule_1_a_role_gets_no_more_than_it_mentions() -> None:
    assert made(policies=["Search"]) == {"policies": ["Search"], "applications": [], "resourceIds": {"ids": []}}


def test_rule_1_the_name_is_required() -> None:
    message = "the role's name is missing"
    assert refusal(lambda: rules.new_role(rules.read({"policies": ["Search"]}), AVAILABLE)) == (131, message)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m", 7, None, ["ops"], True])
def test_rule_1_the_name_says_something(name: Any) -> None:
    message = "the role's name must be printable text and not blank"
    assert refusal(lambda: rules.read({"name": name})) == (131, message)


# Rule 2


@pytest.mark.parametrize(
    ("fields", "policies", "applications", "resource_ids"),
    [
        ({"policies": "*"}, "*", [], {"ids": []}),
        ({"policies": ["*"]}, "*", [], {"ids": []}),
        ({"applications": "*"}, [], "*", {"ids": []}),
        ({"applications": ["*"]}, [], "*", {"ids": []}),
        ({"policies": "Search", "resourceIds": "*"}, ["Search"], [], {"*": []}),
        ({"policies": "Search", "resourceIds": {"*": []}}, ["Search"], [], {"*": []}),
    ],
)
def test_rule_2_a_star_means_all(
    fields: dict[str, Any], policies: Any, applications: Any, resource_ids: dict[str, Any]
) -> None:
    assert made(**fields) == {"policies": policies, "applications": applications, "resourceIds": resource_ids}


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"policies": ["*", "Search"]}, "policies"),
        ({"applications": ["explorer", "*"]}, "applications"),
        ({"applications": ["*", "*"]}, "applications"),
        ({"policies": "*", "resourceIds": {"*": [], "a": [1]}}, "resourceIds"),
        ({"policies": "*", "resourceIds": {"*": [1]}}, "resourceIds"),
    ],
)
def test_rule_2_a_star_is_the_only_element(fields: dict[str, Any], key: str) -> None:
    others = "labels or IDs" if key == "resourceIds" else "names"
    assert refusal(lambda: made(**fields)) == (132, f"{key} has other {others} next to '*', which already means all")


def test_rule_2_all_means_all_available_if_any() -> None:
    for available in (Available(AVAILABLE.policies, ()), Available((), AVAILABLE.applications)):
        assert read_of(rules.new_role(rules.read({"name": "ops"}), available)) == EVERYTHING


# Rule 3


@pytest.mark.parametrize("key", ["policies", "applications"])
def test_rule_3_a_single_name_is_a_list_of_it(key: str) -> None:
    name = {"policies": "Search", "applications": "explorer"}[key]
    assert made(**{key: name}) == made(**{key: [name]}) == made(**{key: [name, name]})


@pytest.mark.parametrize("value", [7, None, True, {"Search": 1}, [7], [["Search"]], "", [""], [None]])
def test_rule_3_anything_else_is_refused(value: Any) -> None:
    for key in ("policies", "applications"):
        message = f"{key} must be a list of names, or a single name"
        assert refusal(partial(rules.read, {key: value})) == (133, message)


# Rule 4

NOTHING = (134, "role 'ops' would grant nothing: it needs at least one policy or application")


@pytest.mark.parametrize(
    "fields",
    [
        {"policies": [], "applications": []},
        {"policies": []},
        {"applications": []},
        {"resourceIds": {"tables": [1]}},
        {"policies": [], "applications": [], "resourceIds": "*"},
    ],
)
def test_rule_4_a_role_grants_a_policy_or_an_application(fields: dict[str, Any]) -> None:
    assert refusal(lambda: made(**fields)) == NOTHING


GRANTS: dict[str, list[Any]] = {
    "policies": [None, "*", ["*"], [], "Search", ["Alerts", "Search"]],
    "applications": [None, "*", ["*"], [], "explorer", ["dashboards", "explorer"]],
    "resourceIds": [None, "*", {"*": []}, {}, {"a": [1]}],
}
PLANS = [Available(policies, ()) for policies in ((), AVAILABLE.policies)]
PLANS += [replace(plan, applications=AVAILABLE.applications) for plan in PLANS]


def grants_something(role: dict[str, Any], available: Available) -> bool:
    """Whether a role, as it is read, grants a policy or an application, by a reading of its own."""

    def names(key: str, all_of: Collection[str]) -> set[str]:
        return set(all_of) if role[key] == "*" else set(role[key]) & set(all_of)

    return bool(names("policies", available.policies) | names("applications", available.applications))


def every_body() -> Iterator[dict[str, Any]]:
    for values in product(*GRANTS.values()):
        yield {key: value for key, value in zip(GRANTS, values, strict=True) if value is not None}


def in_plan(fields: dict[str, Any], available: Available) -> bool:
    """Whether all listed names are available (rule 7)."""
    names = [name for key in ("policies", "applications") for name in as_list(fields.get(key, []))]
    return set(names) <= {"*", *available.policies, *available.applications}


def as_list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def merged(current: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    return current | {
        key: "*" if as_list(fields[key]) == ["*"] else as_list(fields[key])
        for key in ("policies", "applications")
        if key in fields
    }


@pytest.mark.parametrize("available", PLANS)
def test_rule_4_a_create_is_accepted_if_and_only_if_the_role_grants_something(available: Available) -> None:
    for fields in every_body():
        if not in_plan(fields, available):
            continue
        grant = merged({"policies": [] if fields else "*", "applications": [] if fields else "*"}, fields)
        refused = refused_rule(lambda body: rules.new_role(rules.read({"name": "ops", **body}), available), fields)
        assert refused == (None if grants_something(grant, available) else 4), fields


@pytest.mark.parametrize("available", PLANS)
def test_rule_4_an_update_is_accepted_if_and_only_if_the_role_then_grants_something(available: Available) -> None:
    for before, fields in product(every_body(), every_body()):
        if refused_rule(lambda body: rules.new_role(rules.read({"name": "ops", **body}), available), before):
            continue
        if not in_plan(fields, available):
            continue
        role = rules.new_role(rules.read({"name": "ops", **before}), available)
        grant = merged(read_of(role), fields)
        refused = refused_rule(lambda role, body: rules.updated_role(role, rules.read(body), available), role, fields)
        assert refused == (None if grants_something(grant, available) else 4), (before, fields)


@pytest.mark.parametrize(
    ("available", "fields", "hint"),
    [
        (Available((), ("explorer",)), {"policies": "*"}, "'*' means all, but the domain has no policies"),
        (Available(("Search",), ()), {"applications": ["*"]}, "'*' means all, but the domain has no applications"),
        (Available((), ()), {}, "'*' means all, but the domain has no policies and no applications"),
        (Available((), ()), {"resourceIds": "*"}, None),
    ],
)
def test_rule_4_the_hint_says_what_the_domain_does_not_have(
    available: Available, fields: dict[str, Any], hint: str | None
) -> None:
    with pytest.raises(ServiceError) as caught:
        rules.new_role(rules.read({"name": "ops", **fields}), available)
    assert (caught.value.code, caught.value.hint) == (134, hint)


@pytest.mark.parametrize("role", [{"policies": "*"}, {"policies": "Search"}, {"applications": "*"}, {}])
def test_rule_4_what_a_domain_loses_changes_no_role_until_its_grants_are_changed(role: dict[str, Any]) -> None:
    current, nothing = rules.new_role(rules.read({"name": "ops", **role}), AVAILABLE), Available((), ())
    others: list[dict[str, Any]] = [{"description": "kept"}, {"name": "other"}, {"resourceIds": {}}, {}]
    for fields in others:
        rules.updated_role(current, rules.read(fields), nothing)
    grants: list[dict[str, Any]] = [{"policies": "*"}, {"applications": []}, {"policies": [], "applications": "*"}]
    for fields in grants:
        assert refusal(partial(rules.updated_role, current, rules.read(fields), nothing)) == NOTHING


def test_rule_4_either_will_do() -> None:
    assert made(policies=[], applications=["explorer"])["applications"] == ["explorer"]
    assert made(policies=["Search"], applications=[])["policies"] == ["Search"]


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        ({"policies": ["Search"]}, {"policies": []}),
        ({"applications": ["explorer"]}, {"applications": []}),
        ({"policies": ["Search"], "applications": ["explorer"]}, {"policies": [], "applications": []}),
        ({}, {"policies": [], "applications": []}),
    ],
)
def test_rule_4_holds_for_the_role_that_an_update_leaves(role: dict[str, Any], fields: dict[str, Any]) -> None:
    assert refusal(lambda: changed(role, **fields)) == NOTHING


def test_rule_4_an_update_may_empty_one_of_both() -> None:
    role = {"policies": ["Search"], "applications": ["explorer"]}
    assert changed(role, applications=[])["applications"] == []
    assert changed(role, policies=[])["policies"] == []


@pytest.mark.parametrize("role", [{"applications": ["dashboards", "explorer"]}, {"applications": "*"}, {}])
def test_rule_4_empty_applications_keep_the_one_that_the_update_refers_to(role: dict[str, Any]) -> None:
    assert changed(role, applications=[], defaultApplicationName="explorer")["applications"] == ["explorer"]


def test_rule_4_empty_applications_may_not_refer_to_one_that_the_role_does_not_have() -> None:
    message = "applications is empty, and role 'ops' does not have application 'explorer'"
    role = {"policies": ["Search"], "applications": ["dashboards"]}
    assert refusal(lambda: changed(role, applications=[], defaultApplicationName="explorer")) == (134, message)


# Rule 5


@pytest.mark.parametrize(
    ("fields", "default"),
    [
        ({"applications": ["explorer"]}, "explorer"),
        ({"applications": "explorer"}, "explorer"),
        ({"applications": "*"}, "dashboards"),
        ({}, "dashboards"),
    ],
)
def test_rule_5_the_default_is_one_of_the_applications(fields: dict[str, Any], default: str) -> None:
    assert made(**fields, defaultApplicationName=default)["defaultApplicationName"] == default


@pytest.mark.parametrize(
    "fields",
    [
        {"applications": ["explorer"], "defaultApplicationName": "dashboards"},
        {"policies": ["Search"], "defaultApplicationName": "dashboards"},
        {"policies": ["Search"], "applications": [], "defaultApplicationName": "dashboards"},
    ],
)
def test_rule_5_another_default_is_refused(fields: dict[str, Any]) -> None:
    message = "defaultApplicationName 'dashboards' is not among the applications of role 'ops'"
    assert refusal(lambda: made(**fields)) == (135, message)


def test_rule_5_a_default_among_all_must_be_available() -> None:
    message = "defaultApplicationName 'reports' is not among the applications of role 'ops'"
    assert refusal(lambda: made(applications="*", defaultApplicationName="reports")) == (135, message)


@pytest.mark.parametrize("policies", [[], ["Search"], "*"])
def test_rule_5_no_default_is_required(policies: Any) -> None:
    assert "defaultApplicationName" not in made(policies=policies, applications=["explorer"])


@pytest.mark.parametrize("applications", [["dashboards"], []])
def test_rule_5_an_update_may_not_take_the_defaults_application_away(applications: list[str]) -> None:
    role = {"policies": ["Search"], "applications": ["explorer"], "defaultApplicationName": "explorer"}
    message = "defaultApplicationName 'explorer' is not among the applications of role 'ops'"
    assert refusal(lambda: changed(role, applications=applications)) == (135, message)
    without = changed(role, applications=applications, defaultApplicationName="")
    assert without == {"policies": ["Search"], "applications": applications, "resourceIds": {"ids": []}}


# Rule 6


def test_rule_6_an_empty_default_removes_it() -> None:
    role = {"applications": ["explorer"], "defaultApplicationName": "explorer"}
    assert changed(role, defaultApplicationName="") == {
        "policies": [],
        "applications": ["explorer"],
        "resourceIds": {"ids": []},
    }
    assert changed(role)["defaultApplicationName"] == "explorer"


def test_rule_6_an_empty_default_on_create_is_none() -> None:
    assert "defaultApplicationName" not in made(applications=["explorer"], defaultApplicationName="")


@pytest.mark.parametrize("value", [None, 7, ["explorer"]])
def test_rule_6_a_default_is_text(value: Any) -> None:
    message = "defaultApplicationName must be a name, or '' for none"
    assert refusal(lambda: rules.read({"defaultApplicationName": value})) == (136, message)


# Rule 7


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"policies": ["Search", "Sorting"]}, 137, "policy 'Sorting' does not exist or is not available in the domain"),
        ({"applications": "reports"}, 142, "application 'reports' does not exist or is not available in the domain"),
    ],
)
def test_rule_7_what_is_listed_is_available(fields: dict[str, Any], code: int, message: str) -> None:
    assert refusal(lambda: made(**fields)) == (code, message)
    assert refusal(lambda: changed({}, **fields)) == (code, message)


def test_rule_7_does_not_hold_an_update_up_that_is_about_something_else() -> None:
    role = rules.new_role(rules.read({"name": "ops", "policies": ["Search"]}), AVAILABLE)
    gone = Available((), ())
    assert rules.updated_role(role, rules.read({"description": "kept"}), gone).description == "kept"


# Rule 8


@pytest.mark.parametrize(
    ("resource_ids", "flat"),
    [
        ({"a": [1], "b": [2]}, [1, 2]),
        ({"a": [1, 2]}, [1, 2]),
        ({"b": [2, 1], "a": [2]}, [1, 2]),
        ({"a": []}, []),
        ({}, []),
        ({"": [-5, 2**70]}, [-5, 2**70]),
    ],
)
def test_rule_8_only_the_integers_count(resource_ids: dict[str, list[int]], flat: list[int]) -> None:
    assert made(policies="Search", resourceIds=resource_ids)["resourceIds"] == {"ids": flat}


@pytest.mark.parametrize(
    ("resource_ids", "message"),
    [
        ([1, 2], "resourceIds must be an object that maps labels to lists of integers"),
        ("1", "resourceIds must be an object that maps labels to lists of integers"),
        (None, "resourceIds must be an object that maps labels to lists of integers"),
        ({"a": 1}, "resourceIds.a must be a list of integers"),
        ({"a": None}, "resourceIds.a must be a list of integers"),
        ({"a": [1.0]}, "resourceIds.a must be a list of integers"),
        ({"a": ["1"]}, "resourceIds.a must be a list of integers"),
        ({"a": [True]}, "resourceIds.a must be a list of integers"),
        ({"a": [1], "b": [[2]]}, "resourceIds.b must be a list of integers"),
    ],
)
def test_rule_8_anything_but_lists_of_integers_is_refused(resource_ids: Any, message: str) -> None:
    assert refusal(lambda: rules.read({"resourceIds": resource_ids})) == (138, message)


# Rule 9


@pytest.mark.parametrize("key", ["alertPermissions", "defVault", "maxVault"])
@pytest.mark.parametrize("value", [[], 1, None])
def test_rule_9_three_fields_cannot_be_set(key: str, value: Any) -> None:
    assert refusal(lambda: rules.read({"name": "ops", key: value})) == (139, f"{key} cannot be set")


def test_a_full_read_holds_the_fields_that_cannot_be_set() -> None:
    assert rules.new_role(rules.read({"name": "ops", "policies": "Search"}), AVAILABLE).to_json() == {
        "name": "ops",
        "policies": ["Search"],
        "applications": [],
        "resourceIds": {"ids": []},
        "alertPermissions": [],
        "defVault": 1,
        "maxVault": 1,
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"policy": "Search"}, "unknown field 'policy'"),
        ({"description": 7}, "description must be text"),
        ({"finderName": None}, "finderName must be text"),
    ],
)
def test_other_fields_are_refused(fields: dict[str, Any], message: str) -> None:
    assert refusal(lambda: rules.read(fields)) == (125, message)


def test_an_update_changes_what_it_mentions_and_nothing_else() -> None:
    role = {
        "description": "d",
        "policies": ["Search"],
        "applications": ["explorer"],
        "resourceIds": {"ids": [1]},
        "finderName": "f",
        "defaultApplicationName": "explorer",
    }
    assert changed(role) == role
    for key, value in (
        ("description", "e"),
        ("policies", ["Alerts"]),
        ("resourceIds", {"ids": [2]}),
        ("finderName", "g"),
    ):
        assert changed(role, **{key: value}) == role | {key: value}
    del role["description"], role["finderName"]
    assert changed(role | {"description": "d", "finderName": "f"}, description="", finderName="") == role


# The offline rules and the service, each by its own reading

VALUES: dict[str, list[Any]] = {
    "policies": [
        "*",
        "Search",
        "",
        7,
        None,
        ["*"],
        [],
        ["Search"],
        ["Alerts", "Search"],
        ["*", "Search"],
        ["Search", 7],
    ],
    "applications": [
        "*",
        "explorer",
        {},
        None,
        ["*"],
        [],
        [],
        ["explorer"],
        ["dashboards", "explorer"],
        [""],
        ["a", "*"],
    ],
    "resourceIds": ["*", "all", None, [], [1], {}, {"*": []}, {"*": [1]}, {"*": [], "a": []}, {"a": 1}, {"a": [1, -2]}],
    "description": ["", "text", "text", 7, None, ["text"]],
    "finderName": ["", "text", "text", True],
    "defaultApplicationName": [
        "",
        "explorer",
        "dashboards",
        "explorer",
        "dashboards",
        "dashboards",
        None,
        ["explorer"],
    ],
    "defVault": [1],
    "vault": [1],
}
NAMES = ["ops"] * 12 + ["", " ", "a\tb", "Ops / é", 7, None, ["ops"]]
IDS = [1, 2, -3, 2**65, 1, 2, 1.0, "1", True, None]


def random_body(random: Random) -> dict[str, Any]:
    """A few fields, right or wrong, and most often a name."""
    keys = random.sample([*VALUES], random.choice([0, 1, 1, 2, 2, 3, 3, 4]))
    body = {key: random.choice(VALUES[key]) for key in keys}
    if "resourceIds" in body and random.random() < 0.5:
        labels = random.sample(["a", "b", "*"], random.randrange(3))
        body["resourceIds"] = {label: random.choices(IDS, k=random.randrange(3)) for label in labels}
    if random.random() < 0.95:
        body["name"] = random.choice(NAMES)
    return body


def refused_rule(check: Callable[..., object], *given: object) -> int | str | None:
    """The rule that the service refuses a role by; `field` for the types of fields, None when it does not."""
    try:
        check(*given)
    except ServiceError as error:
        return "field" if error.code == Reason.BODY else int(error.code or 0) - 130
    return None


def lint_rules(fields: dict[str, Any], *, update: bool) -> set[int | str]:
    found = lint(fields, update=update)
    return {"field" if one.rule is None else one.rule for one in found if one.level == "error"}


def test_the_offline_rules_and_the_service_agree_on_ten_thousand_random_roles() -> None:
    random = Random(5)
    outcomes: Counter[int | str | None] = Counter()
    disagreements = []
    for _ in range(10_000):
        fields = random_body(random)
        refused = refused_rule(lambda fields: rules.new_role(rules.read(fields), AVAILABLE), fields)
        found = lint_rules(fields, update=False)
        outcomes[refused] += 1
        expected: set[int | str | None] = {*found} or {None}
        if refused not in expected:
            disagreements.append((fields, refused, found))
    assert min(disagreements, key=lambda one: len(one[0]), default=None) is None
    # Every rule that can be broken without asking the service was broken, and many roles were right.
    assert {refused for refused, times in outcomes.items() if times >= 25} == {None, "field", 1, 2, 3, 4, 5, 6, 8, 9}
    assert outcomes[None] > 1_000


CURRENT = [
    CustomRole("ops", None, ALL_NAMES, ALL_NAMES, None, None, None),
    CustomRole("ops", None, ("Search",), (), (), None, None),
    CustomRole("ops", None, (), ("dashboards", "explorer"), (1,), None, "explorer"),
    CustomRole("ops", None, ("Alerts",), ("dashboards", "explorer"), None, "f", None),
]


def test_the_offline_rules_refuse_just_the_updates_that_the_service_refuses_whatever_the_role_is() -> None:
    random = Random(6)
    disagreements = []
    for _ in range(3_000):
        fields = random_body(random)
        refused = {
            refused_rule(lambda role, fields: rules.updated_role(role, rules.read(fields), AVAILABLE), role, fields)
            for role in CURRENT
        }
        found = lint_rules(fields, update=True)
        if bool(found) != (None not in refused) or (found and not refused <= found):
            disagreements.append((fields, refused, found))
    assert min(disagreements, key=lambda one: len(one[0]), default=None) is None
