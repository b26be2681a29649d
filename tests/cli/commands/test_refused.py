"""A command that is refused changes nothing: no folder of svcctl's own is made for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shells import Shell

STATE = ("export", "from auth.all", "--state", "x", "-o")
HOURLY = "{start:%Y%m%dT%H}.csv"


@pytest.mark.parametrize(
    "arguments",
    [
        (*STATE, HOURLY),
        (*STATE, "{start:%H}.csv", "--from", "1d"),
        (*STATE, HOURLY, "--from", "1d", "--format", "nope"),
        (*STATE, HOURLY, "--from", "1d", "--lag", "nope"),
        ("query", "from auth.all", "--from", "1h", "-o", "nodir/x.csv"),
        ("service", "load", "none.csv", "-t", "a.b"),
        ("service", "load", "-", "-t", "a.b", "--types", "x"),
        ("service", "queries", "set", "x", "nope"),
    ],
    ids=" ".join,
)
def test_a_refused_command_leaves_no_file_or_folder(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    shell = Shell(tmp_path, {"HOME": str(tmp_path / "home"), "SVCCTL_DATA": ""})
    done = shell(*arguments)
    assert (done.returncode in (1, 2), list(tmp_path.iterdir())) == (True, []), done.stderr
