"""The files of the local service: who may use their directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcctl.errors import UsageError
from svcctl.service.process import Files

# What the errors say, each once; the tests state their kind.
WORDS = {
    "open to others": "directory {directory} can be used by others (its mode is {mode:04o})",
}
HINTS = {
    "open to others": "make it private: chmod 700 '{directory}'; or set SVCCTL_DATA to a directory that is made anew",
}


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o1777])
def test_a_directory_that_others_can_use_is_refused_and_left_as_it_is(tmp_path: Path, mode: int) -> None:
    directory = tmp_path / "my data"
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(UsageError) as caught:
        Files(directory).make()
    assert (caught.value.message, caught.value.hint) == (
        WORDS["open to others"].format(directory=directory, mode=mode),
        HINTS["open to others"].format(directory=directory),
    )
    assert directory.stat().st_mode & 0o7777 == mode
    directory.chmod(0o700)
    Files(directory).make()
