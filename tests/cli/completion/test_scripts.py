"""The scripts in `completions` are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import ROOT

from svcctl.cli.completion.scripts import write
from svcctl.cli.completion.shells import SHELLS


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("completions")
    write(directory)
    return directory


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_are_up_to_date(shell: str, written: Path) -> None:
    name = SHELLS[shell].file_name
    now = (written / name).read_text(encoding="utf-8")
    kept = (ROOT / "completions" / name).read_text(encoding="utf-8")
    assert kept == now, "write them again: python -m svcctl.cli.completion.scripts completions"


def test_there_are_no_other_scripts(written: Path) -> None:
    names = {path.name for path in written.iterdir()}
    assert (
        names == {path.name for path in (ROOT / "completions").iterdir()} == {"svcctl.bash", "_svcctl", "svcctl.fish"}
    )
