"""Roles as lists."""

from typing import Any

import pytest
from support.listings import laid_out

from svcctl.api.models import Role
from svcctl.cli.columns.role import ROLE, ROLES


@pytest.mark.parametrize(
    ("shown", "row"),
    [
        (False, ["a", "*", ["x"], {"ids": [2, 1]}, None, None]),
        (True, ["a", "all", "x", "1, 2", None, None]),
    ],
)
def test_the_grants_of_a_role_are_words_in_a_table(shown: bool, row: list[Any]) -> None:
    role = Role("a", policies=("*",), applications=("x",), resource_ids={"ids": (2, 1)}, max_vault=3)
    assert laid_out(ROLES, [role], shown=shown)[1] == [row]
    columns, data = laid_out(ROLE, [role], shown=shown)
    assert [column.name for column in columns][6:] == ["finderName", "alertPermissions", "defVault", "maxVault"]
    assert data == [[*row, None, None, None, 3]]
