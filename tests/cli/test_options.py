"""Options that commands share, as the real parser reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.tree import TREE

from svcctl.errors import UsageError


def options(command: Any) -> Iterator[Any]:
    """The options of a command and of all commands below it."""
    yield from (each for each in command.params if each.param_type_name == "option")
    for inner in getattr(command, "commands", {}).values():
        yield from options(inner)


LENGTHS = {each.opts[0]: each for each in options(TREE) if each.metavar == "LENGTH"}


def test_every_option_that_is_a_length_is_known() -> None:
    several = {"--window", "--lag", "--every", "--max-time", "--timeout", "--interval", "--expires", "--keep-for"}
    assert set(LENGTHS) == several


@pytest.mark.parametrize("name", LENGTHS)
def test_no_length_is_zero_where_zero_means_nothing(name: str) -> None:
    if name in ("--lag", "--keep-for"):
        assert LENGTHS[name].type.convert("0", None, None) == 0
        return
    with pytest.raises(UsageError, match=f"^{name} '0' cannot be used: it must be at least "):
        LENGTHS[name].type.convert("0", None, None)


@pytest.mark.parametrize("name", LENGTHS)
def test_a_length_is_a_number_of_seconds_or_has_units_in_every_option(name: str) -> None:
    type_ = LENGTHS[name].type
    found = [type_.convert(text, None, None) for text in ("90", "90s", "5m", "1h30m", "1d")]
    assert found == [90, 90, 300, 5400, 86_400]
    with pytest.raises(UsageError, match=f"^{name} '1h30' cannot be used: it is not a length"):
        type_.convert("1h30", None, None)
