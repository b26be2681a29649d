"""What pyproject.toml says twice is the same in both places."""

from __future__ import annotations

import tomllib

from support import ROOT


def test_the_extra_dev_is_everything_and_the_group_dev() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["optional-dependencies"]["dev"] == ["svcctl[all]", *project["dependency-groups"]["dev"]]
