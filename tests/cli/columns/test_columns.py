"""The names of columns that completion offers for lists."""

import pytest

from svcctl.cli.columns import LISTS, column_names
from svcctl.cli.commands import NOUNS
from svcctl.cli.completion.places import commands
from svcctl.cli.main import tree

WITHOUT = {"query", "service accounts list", "service queries list"}
"""Lists without a row: the columns of the first two depend on arguments, those of saved queries are not completed."""


def test_every_command_that_sorts_a_list_has_a_row() -> None:
    root = tree()
    root.load(*NOUNS)
    sorting = {
        command.path.removeprefix("svcctl ")
        for command in commands(root)
        if any("--sort" in option.names for option in command.options)
    }
    assert sorting - WITHOUT == set(LISTS)


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("job list", ("id", "status", "friendlyName")),
        ("domain list", ("name", "plan", "time")),
        ("role list", ("name", "policies", "applications")),
        ("profile list", ("name", "used", "auth")),
        ("tables", ("name", "events", "from")),
        ("query", ()),
    ],
)
def test_the_columns_of_a_list_are_known_by_its_command(command: str, first: tuple[str, ...]) -> None:
    assert column_names(command)[:3] == first
