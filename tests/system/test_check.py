"""The script that checks a change before it is committed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import ROOT
from support.terminal import need

SUBJECTS = [
    ("export: keep the mode of replaced files", True),
    ("service, terminal: print dates as ISO 8601", True),
    ("x: " + "y" * 69, True),
    ("x: " + "y" * 70, False),
    ("Keep the mode of replaced files", False),
    ("What is replaced keeps its mode: files of exports", False),
    ("export:", False),
    ("export keeps the mode", False),
]


@pytest.mark.parametrize(("subject", "is_right"), SUBJECTS)
def test_subjects_of_commits_that_are_not_on_main_yet_are_checked(tmp_path: Path, subject: str, is_right: bool) -> None:
    need("git", "bash")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "check", tmp_path / ".ci")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    commit = ("git", "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-q", "--allow-empty", "-m")
    for words in (["git", "init", "-q"], [*commit, "An old subject that nobody checks"]):
        assert run(*words).returncode == 0
    assert run(*commit, subject).returncode == 0
    assert run(".ci/check", "commits").returncode == 0
    assert run("git", "update-ref", "refs/remotes/origin/main", "HEAD~1").returncode == 0
    checked = run(".ci/check", "commits")
    assert (checked.returncode, subject in checked.stderr) == ((0, False) if is_right else (1, True)), checked.stderr
