"""A missing extra is told apart from a mistake of ours, and the table agrees with the project's own."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from svcctl import extras
from svcctl.errors import MissingExtra

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_the_packages_of_an_extra_are_those_of_the_project(extra: str) -> None:
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"][extra]
    installed = {re.split(r"[\[<>=]", requirement)[0] for requirement in declared}
    distributions = packages_distributions()
    assert {distributions[package][0].lower() for package in extras.EXTRAS[extra]} == installed


def test_an_extra_that_is_installed_is_not_missing() -> None:
    for extra in extras.EXTRAS:
        extras.need(extra, "a feature")


def test_a_missing_extra_names_the_feature_and_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "EXTRAS", {"s3": ("json", "package_that_nobody_has")})
    with pytest.raises(MissingExtra) as caught:
        extras.need("s3", "the destination s3")
    assert caught.value.message == "the destination s3 needs packages that are not installed"
    assert caught.value.hint == "install them with: pip install 'svcctl[s3]' (in a clone: pip install '.[s3]')"
