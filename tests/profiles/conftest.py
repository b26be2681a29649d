"""A store in a directory of the test's own."""

from pathlib import Path

import pytest

from svcctl.profiles.store import ProfileStore


@pytest.fixture
def store(tmp_path: Path) -> ProfileStore:
    return ProfileStore(tmp_path / "config" / "config.yaml")
