"""The packages that are built from this folder, and rules of pyproject.toml."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from support import ROOT


def sources(target: Path) -> Path:
    """A copy of the files that packages are built from."""
    ignored = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "tests", "*_cache", ".hypothesis", "dist")
    return Path(shutil.copytree(ROOT, target, ignore=ignored))


def build(source: Path, target: Path) -> dict[str, bytes]:
    """The bytes of the sdist and of the wheel, by file name."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in target.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist and the wheel."""
    target = tmp_path_factory.mktemp("built")
    build(sources(tmp_path_factory.mktemp("sources") / "one"), target)
    return target


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    [path] = built.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_packages_are_the_same_bytes_wherever_and_whenever_they_are_built(built: Path, tmp_path: Path) -> None:
    other = sources(tmp_path / "another" / "folder")
    for path in other.rglob("*"):
        os.utime(path, (10**9, 10**9))
    packages = {path.name: path.read_bytes() for path in built.iterdir()}
    assert len(packages) == 2
    assert build(other, tmp_path / "built") == packages


def test_the_sdist_has_all_that_the_wheel_needs(built: Path, tmp_path: Path) -> None:
    [sdist], [wheel] = built.glob("*.tar.gz"), built.glob("*.whl")
    subprocess.run(["tar", "-xzf", sdist, "-C", tmp_path], check=True)
    [unpacked] = tmp_path.iterdir()
    assert build(unpacked, tmp_path / "built")[wheel.name] == wheel.read_bytes()


def test_the_wheel_has_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "svcctl").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == package
    assert "svcctl/py.typed" in names
    assert [name for name in names if re.search(r"(^|/)(\.|tests?/)", name)] == []


def test_the_long_description_leads_to_no_files_of_the_repository(metadata: Message) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert re.findall(r"\]\((?!https?:)|<img|<a |^\[[^\]]+\]:", text, re.MULTILINE) == []
    headings = re.compile(r"^#+ .*$", re.MULTILINE)
    assert headings.findall(text) == headings.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_version_of_the_metadata_is_one_that_upload_tools_know(built: Path, metadata: Message) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        described = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert described is not None
        versions = {metadata["Metadata-Version"], Parser().parsestr(described.read().decode())["Metadata-Version"]}
    assert versions == {"2.4"}


def test_the_classifiers_begin_with_the_oldest_python(metadata: Message) -> None:
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(metadata.get_all("Classifier", [])), re.MULTILINE)
    assert metadata["Requires-Python"] == f">={versions[0]}"
    assert metadata["Keywords"]


def test_the_extra_dev_is_everything_and_the_group_dev() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["optional-dependencies"]["dev"] == ["svcctl[all]", *project["dependency-groups"]["dev"]]
