"""Temporary directories: gone with their use, or with the next service when a process was killed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from svcctl.service.temporary import remove_left_over, temporary


def test_directories_of_killed_processes_are_removed_and_those_in_use_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary("load") as used:
        (used / "a").write_text("a")
        left = tmp_path / "svcctl-xls-left"
        left.mkdir()
        (left / "b").write_text("b")
        (tmp_path / "other").mkdir()
        remove_left_over()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["other", used.name]
        assert (used / "a").read_text() == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
