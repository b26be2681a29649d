"""Temporary directories: gone with their use, or with the next service when a process was killed."""

from __future__ import annotations

from pathlib import Path

from svcctl.io.temporary import remove_left_over, temporary


def test_directories_of_killed_processes_are_removed_and_those_in_use_stay(tmp_path: Path) -> None:
    with temporary("load", tmp_path) as used:
        (used / "a").write_text("a")
        left = tmp_path / "svcctl-xls-left"
        left.mkdir()
        (left / "b").write_text("b")
        (tmp_path / "other").mkdir()
        remove_left_over(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["other", used.name]
        assert (used / "a").read_text() == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
