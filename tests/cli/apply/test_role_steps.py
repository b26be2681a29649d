"""How a role differs from the one that there is."""

from typing import Any

import pytest

from svcctl.api.models import Role
from svcctl.cli.apply.plan import FieldDifference
from svcctl.cli.apply.role_steps import differences

CURRENT = Role.from_json(
    {
        "name": "a",
        "policies": ["Search", "Alerts"],
        "applications": "*",
        "resourceIds": {"ids": [1, 2, 3]},
        "defaultApplicationName": "explorer",
        "alertPermissions": [],
        "maxVault": 1,
    }
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"name": "a"}, []),
        ({"policies": ["Alerts", "Search", "Alerts"]}, []),
        ({"applications": ["*"]}, []),
        ({"resourceIds": {"x": [3, 1], "y": [2, 1], "z": []}}, []),
        ({"description": "", "finderName": ""}, []),
        ({"policies": "Search"}, [FieldDifference("policies", "Alerts, Search", "Search")]),
        ({"policies": "*"}, [FieldDifference("policies", "Alerts, Search", "all")]),
        ({"policies": []}, [FieldDifference("policies", "Alerts, Search", None)]),
        ({"applications": ["all"]}, [FieldDifference("applications", "all", "all")]),
        ({"resourceIds": {"*": []}}, [FieldDifference("resourceIds", "1, 2, 3", "all")]),
        ({"resourceIds": {"x": [1, 2]}}, [FieldDifference("resourceIds", "1, 2, 3", "1, 2")]),
        ({"defaultApplicationName": ""}, [FieldDifference("defaultApplicationName", "explorer", None)]),
        ({"description": "d"}, [FieldDifference("description", None, "d")]),
    ],
)
def test_only_what_a_service_would_change_is_a_difference(wanted: dict[str, Any], found: list[FieldDifference]) -> None:
    assert differences(CURRENT, Role.from_json(wanted)) == found


def test_everything_that_says_something_differs_from_no_role() -> None:
    wanted = Role.from_json({"name": "a", "policies": "*", "applications": [], "resourceIds": {}})
    assert differences(Role(), wanted) == [FieldDifference("name", None, "a"), FieldDifference("policies", None, "all")]
