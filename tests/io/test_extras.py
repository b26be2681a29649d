"""A missing extra is told apart from a mistake of ours, and the table agrees with the project's own."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import ROOT
from support.shells import Shell

from svcctl.errors import MissingExtra
from svcctl.io import extras

# What the errors say, each once; the tests state their kind.
WORDS = {
    "no packages": "the destination s3 needs packages that are not installed",
}
HINTS = {
    "no packages": "install them with: pip install 'svcctl[s3]' (in a clone: pip install '.[s3]')",
}

PROJECT = ROOT / "pyproject.toml"


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
    monkeypatch.setitem(sys.modules, "pyzipper", None)  # Python takes it for a package that is not there
    with pytest.raises(MissingExtra) as caught:
        extras.need("s3", "the destination s3")
    assert caught.value.message == WORDS["no packages"]
    assert caught.value.hint == HINTS["no packages"]


ONLY = """
import sys
from importlib.machinery import PathFinder

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {absent!r} else super().find_spec(name, path, target)

sys.meta_path = [Installed if finder is PathFinder else finder for finder in sys.meta_path]
"""
"""What Python runs at its start so that it finds only some of the packages that are installed."""


def required(distribution: str, extra: str = "") -> set[str]:
    """The distributions that one installs, with itself; names as pip compares them."""
    found = {distribution}
    for text in requires(distribution) or ():
        one = Requirement(text)
        if (one.marker is None or one.marker.evaluate({"extra": extra})) and (name := canonicalize_name(one.name)):
            found |= required(name, next(iter(one.extras), "")) if name not in found else set()
    return found


@pytest.mark.slow
def test_the_local_service_needs_no_packages_but_those_of_its_extra(tmp_path: Path) -> None:
    present = required("svcctl", "service")
    absent = {
        package
        for package, distributions in packages_distributions().items()
        if not {canonicalize_name(distribution) for distribution in distributions} & present
    }
    assert {"deltalake", "pyspark", "psycopg", "pytest"} <= absent
    (tmp_path / "sitecustomize.py").write_text(ONLY.format(absent=absent), encoding="utf-8")
    shell = Shell(tmp_path, {"PYTHONPATH": str(tmp_path)})
    try:
        done = shell("query", "from auth.all group select count() > 0 as found", "--from", "1d", "-f", "csv")
        assert (done.stdout, done.returncode) == ("found\ntrue\n", 0), done.stderr
        done = shell("service", "load", "-", "--table", "web", "--tables", str(tmp_path / "tables"), stdin="time,a\n")
        assert "pip install 'svcctl[lake]'" in done.stderr
    finally:
        shell("service", "stop")
