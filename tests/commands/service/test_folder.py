"""`svcctl service` with tables in a shared folder: loading with and without a service, compacting, moving."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.shells import OWN_FILE, Shell

EVENTS = "eventdate,n\n2024-01-01T00:00:00Z,1\n2024-01-02T00:00:00Z,2\n"
LOADED = "svcctl: loaded 2 events into web.a, from 2024-01-01 00:00:00 to 2024-01-02 00:00:00 (UTC)\n"
QUERY = ("query", "from web.a select n", "--from", "2024-01-01", "--to", "2024-02-01", "-f", "csv", "--no-header")


@pytest.fixture
def shared(tmp_path: Path) -> Shell:
    """A shell whose service, once it starts, has its tables in a folder."""
    shell = Shell(tmp_path, {**OWN_FILE, "SVCCTL_TABLES": "tables", "SVCCTL_DEMO_DAYS": "0"})
    (shell.home / "a.csv").write_text(EVENTS, encoding="utf-8")
    return shell


def test_tables_of_a_folder_are_loaded_with_and_without_a_service_compacted_and_moved(shared: Shell) -> None:
    folder = str(shared.home / "tables")
    direct = ("service", "load", "a.csv", "-t", "web.a", "--tables", folder, "--id", "one")
    (shared.home / "b.csv").write_text(EVENTS.replace("-01-02T", "-01-x"), encoding="utf-8")
    strict = shared("service", "load", "b.csv", "-t", "web.a", "--tables", folder, "--strict")
    assert (strict.returncode, strict.stderr, Path(folder).exists()) == (
        2,
        "svcctl: error: b.csv could not be read: line 3: eventdate '2024-01-x00:00:00Z' is not a time\n"
        "hint: nothing was changed; without --strict such lines are skipped\n",
        False,
    )
    assert shared(*direct).stderr == f"svcctl: made the folder {folder}\n{LOADED}"
    assert shared(*direct).stderr == "svcctl: web.a has the load one already: nothing was loaded\n"
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert shared("service", "start").returncode == 0
    try:
        assert f"\nfolder   {folder}\n" in shared("service", "status", "-f", "table").stdout
        held = "svcctl: web.a already held 2 events; --replace would have replaced them\n"
        assert shared("service", "load", "a.csv", "-t", "web.a").stderr == LOADED + held
        assert shared(*QUERY).stdout == "1\n1\n2\n2\n"
        again = shared("service", "load", "a.csv", "-t", "web.a", "--id", "one", SVCCTL_TABLES="")
        assert (again.returncode, again.stderr) == (0, "svcctl: web.a has the load one already: nothing was loaded\n")
        hinted = shared("service", "compact", SVCCTL_TABLES="").stderr.splitlines()[-1]
        assert hinted == f"hint: name that of the local service: --tables {folder}"
        compacted = "svcctl: web.a: 4 small files made into 2, 4 old files removed\n"
        assert shared("service", "compact", "--keep", "0").stderr == compacted
        for place, told in (("file", "file"), ("folder", "shared folder")):
            moved = shared("service", "copy", "web.a", "--to", place)
            assert moved.stderr == f"svcctl: moved web.a to the {told}: 4 events\n"
            assert shared(*QUERY).stdout == "1\n1\n2\n2\n"
        job = ("query", "from web.a", "--from", "2024-01-01", "--to", "2030-01-01", "--dest", "donothing")
        assert shared(*job, "--dest-param", "friendlyName=night").returncode == 0
        unattended = shared("service", "copy", "web.a", "--to", "file")
        asked = "Move web.a, and stop 1 job on it with an error (night)?"
        assert unattended.stderr == f"svcctl: error: this needs confirmation: {asked}\nhint: add --yes\n"
        again = shared("service", "copy", "web.a", "--yes")
        assert (again.returncode, again.stderr.partition(" (")[0]) == (
            1,
            "svcctl: error: table 'web.a' is in the shared folder already",
        )
        anew = shared("service", "load", "a.csv", "-t", "web.a", "--tables", f"{folder}/", "--replace")
        ends = "svcctl: replaced the 4 events of web.a, read by 1 job (night): jobs on it stop with an error\n"
        assert anew.stderr == ends + LOADED
        Path(folder).rename(f"{folder}.away")
        deadline, said = time.monotonic() + 30, f"cannot read the shared folder {folder}: it is not there"
        while not (away := shared("service", "status", "-f", "table")).stderr.startswith(f"svcctl: error: {said}\n"):
            assert time.monotonic() < deadline, away
        assert away.returncode == 6
        assert f"\nfolder   {folder}\n" in away.stdout
        Path(f"{folder}.away").rename(folder)
        restarted = shared("service", "restart", SVCCTL_TABLES="")
        dropped = f"svcctl: its folder is none now, and was {folder}: SVCCTL_TABLES sets it"
        assert (restarted.returncode, restarted.stderr.splitlines()[1:]) == (0, [dropped])
        shared("service", "stop")
        found = f"svcctl: its folder is {folder} now, and was none: SVCCTL_TABLES sets it"
        assert shared("tables").stderr.splitlines()[1:] == [found]
    finally:
        shared("service", "stop")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compact", "--tables", "nowhere"), "there is no folder nowhere"),
        (("compact", "web.a", "--tables", "nowhere"), "there is no folder nowhere"),
        (("compact", "--tables", "."), "no tables in ."),
        (("copy", "web.a", "--to", "s3"), "unknown place 's3'"),
        (("compact",), "no shared folder of tables was named"),
        (("compact", "--tables", "x", "--keep", "soon"), "--keep 'soon' is not a length of time"),
        (("load", "a.csv", "-t", "t", "--tables", "x", "--id", ""), "--id is empty"),
        (("load", "a.csv", "-t", "t", "--tables", "ftp://x/y"), "'ftp://x/y' cannot hold tables"),
        (("load", "a.csv", "-t", "t", "--tables", "s3:/bucket/x"), "'s3:/bucket/x' cannot hold tables"),
        (("serve", "--tables", "s3://"), "'s3://' names no bucket"),
        (
            ("load", "a.csv", "-t", "t", "--tables", "/no/such/folder"),
            "cannot make the shared folder /no/such/folder: there is no folder /no/such",
        ),
    ],
)
def test_what_cannot_be_done_with_a_folder_is_refused(shell: Shell, arguments: tuple[str, ...], message: str) -> None:
    (shell.home / "a.csv").write_text(EVENTS, encoding="utf-8")
    shell = Shell(shell.home, {**OWN_FILE, "SVCCTL_DEMO_DAYS": "0"})
    refused = shell("service", *arguments)
    said = [line for line in refused.stderr.splitlines() if line.startswith("svcctl")]
    assert (refused.returncode, said) == (
        4 if message.startswith(("no tables", "there is no")) else 2,
        [f"svcctl: error: {message}"],
    )


def test_a_store_that_cannot_be_reached_is_told_in_plain_words(shell: Shell) -> None:
    (shell.home / "a.csv").write_text(EVENTS, encoding="utf-8")
    load = ("service", "load", "a.csv", "-t", "t", "--tables", "s3://bucket/x", "--id", "one")
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    done = shell(*load, **keys)
    assert (done.returncode, done.stderr) == (
        6,
        "svcctl: error: s3://bucket/x: no connection to http://127.0.0.1:1: Connection refused\n"
        "hint: check the endpoint, and that its service is running\n",
    )
