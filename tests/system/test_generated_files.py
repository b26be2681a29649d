"""The files that are made from the code, and are kept in the repository, are up to date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import ROOT


def test_generated_files_are_up_to_date(tmp_path: Path) -> None:
    environment = os.environ | {"BIN": str(Path(sys.executable).parent), "HOME": str(tmp_path)}
    subprocess.run([ROOT / ".ci" / "generate", tmp_path / "made"], env=environment, check=True)
    made = {path.relative_to(tmp_path / "made"): path for path in (tmp_path / "made").rglob("*") if path.is_file()}
    assert len(made) == 4
    assert [name for name, path in made.items() if (ROOT / name).read_bytes() != path.read_bytes()] == [], (
        "run .ci/generate"
    )
