"""The service and the commands beside it refuse the files of a newer svcctl."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from support.shells import Shell

from svcctl import __version__


def test_a_service_does_not_start_on_the_state_of_a_newer_svcctl_and_says_what_to_install(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"SVCCTL_DEMO": "0"})
    assert shell("service", "queries", "list").returncode == 0
    with closing(sqlite3.connect(shell.home / "data" / "state.db")) as connection:
        connection.execute("update alembic_version set version_num = '0009'")
        connection.commit()
    said = (
        f"state file {shell.home}/data/state.db has version 9, and svcctl {__version__} reads versions up to 4\n"
        "hint: install a newer svcctl: pip install --upgrade 'svcctl[service]'\n"
    )
    done = shell("service", "queries", "list")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"svcctl: error: {said}")
    done = shell("service", "start")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"svcctl: error: the local service did not start: {said}",
    )
