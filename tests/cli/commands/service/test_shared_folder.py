"""`svcctl service` with tables in a shared folder: loading with and without a service, compacting, moving."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.shells import OWN_FILE, Shell, made

EVENTS = "eventdate,n\n2024-01-01T00:00:00Z,1\n2024-01-02T00:00:00Z,2\n"
LOADED = "svcctl: loaded 2 events into web.a, from 2024-01-01 00:00:00 to 2024-01-02 00:00:00 (UTC)\n"
NOT_A_LENGTH = "--keep-for 'soon' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d"
QUERY = ("query", "from web.a select n", "--from", "2024-01-01", "--to", "2024-02-01", "-f", "csv", "--no-header")


@pytest.fixture
def shared(tmp_path: Path) -> Shell:
    """A shell whose service, once it starts, has its tables in a folder."""
    shell = Shell(tmp_path, {**OWN_FILE, "SVCCTL_TABLES": "tables", "SVCCTL_DEMO": "0"})
    (shell.home / "a.csv").write_text(EVENTS, encoding="utf-8")
    return shell


@pytest.mark.slow
def test_tables_of_a_folder_are_loaded_with_and_without_a_service_compacted_and_moved(shared: Shell) -> None:
    folder = str(shared.home / "tables")
    direct = ("service", "load", "a.csv", "-t", "web.a", "--tables", folder, "--id", "one")
    for refused in (shared(*direct), shared("service", "start"), shared("tables")):
        assert (refused.returncode, Path(folder).exists()) == (6, False)
        assert f"cannot read the shared folder {folder}: it does not exist\n" in refused.stderr
    assert shared(*direct, "--create").stderr == f"svcctl: made the shared folder {folder}\n{LOADED}"
    assert "nothing was loaded" in shared(*direct, "--create").stderr
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert shared("service", "start").returncode == 0
    try:
        assert f"\nfolder   {folder}\n" in shared("service", "status", "-f", "table").stdout
        held = "svcctl: web.a already had 2 events; --replace would have replaced them\n"
        assert shared("service", "load", "a.csv", "-t", "web.a").stderr == LOADED + held
        assert shared(*QUERY).stdout == "1\n1\n2\n2\n"
        again = shared("service", "load", "a.csv", "-t", "web.a", "--id", "one", SVCCTL_TABLES="")
        assert (again.returncode, "nothing was loaded" in again.stderr) == (0, True)
        compacted = "svcctl: web.a: 4 small files made into 2, 4 old files removed\n"
        assert shared("service", "compact", "--keep-for", "0", SVCCTL_TABLES="").stderr == compacted
        for place, told in (("file", "file"), ("folder", "shared folder")):
            moved = shared("service", "copy", "web.a", "--to", place)
            assert moved.stderr == f"svcctl: moved web.a to the {told}: 4 events\n"
            assert shared(*QUERY).stdout == "1\n1\n2\n2\n"
        job = ("query", "from web.a", "--from", "2024-01-01", "--to", "2030-01-01", "--dest", "donothing")
        assert shared(*job, "--dest-param", "friendlyName=night").returncode == 0
        unattended = shared("service", "copy", "web.a", "--to", "file")
        asked = "Move web.a, and stop 1 job on it with an error (night)?"
        assert (unattended.returncode, asked in unattended.stderr) == (2, True)
        again = shared("service", "copy", "web.a", "--yes")
        assert (again.returncode, "'web.a' is in the shared folder already" in again.stderr) == (1, True)
        anew = shared("service", "load", "a.csv", "-t", "web.a", "--tables", f"{folder}/", "--replace")
        ends = "svcctl: replaced the 4 events of web.a, read by 1 job (night): jobs on it stop with an error\n"
        assert anew.stderr == ends + LOADED
        Path(folder).rename(f"{folder}.away")
        deadline, said = time.monotonic() + 30, f"cannot read the shared folder {folder}: it does not exist"
        while not (away := shared("service", "status", "-f", "table")).stderr.startswith(f"svcctl: error: {said}\n"):
            assert time.monotonic() < deadline, away
        assert away.returncode == 6
        assert f"\nfolder   {folder}\n" in away.stdout
        Path(f"{folder}.away").rename(folder)
        restarted = shared("service", "restart", SVCCTL_TABLES="")
        dropped = f"svcctl: its shared folder is now none (before: {folder}); SVCCTL_TABLES sets it"
        assert (restarted.returncode, restarted.stderr.splitlines()[:-1]) == (0, [dropped])
        shared("service", "stop")
        found = f"svcctl: its shared folder is now {folder} (before: none); SVCCTL_TABLES sets it"
        assert shared("tables").stderr.splitlines()[:-1] == [found]
    finally:
        shared("service", "stop")


@pytest.mark.slow
def test_a_folder_that_is_away_fails_every_command_and_its_jobs_go_on_when_it_is_back(shared: Shell) -> None:
    folder, away, stranger = (shared.home / name for name in ("tables", "away", "stranger"))
    load = ("service", "load", "a.csv", "-t", "web.a")
    assert shared(*load, "--tables", made(folder)).returncode == 0
    assert shared(*load, "--tables", made(stranger)).returncode == 0
    assert shared("service", "start").returncode == 0
    try:
        job = ("--from", "2024-01-01", "--to", "2030-01-01", "--dest", "donothing", "--dest-param", "friendlyName=j")
        assert shared("query", "from web.a", *job).returncode == 0
        _wait_for(lambda: shared("job", "list", "-f", "ndjson").stdout, '"eventsSent":2')
        folder.rename(away)
        _refused(shared, f"cannot read the shared folder {folder}: it does not exist")
        assert not folder.exists()
        stranger.rename(folder)
        _refused(shared, f"cannot read the shared folder {folder}: another folder is in its place")
        _wait_for(lambda: shared("job", "list", "-f", "ndjson").stdout, "another folder is in its place")
        restarted = shared("service", "restart")
        assert (restarted.returncode, f"{folder} is another folder" in restarted.stderr) == (6, True)
        folder.rename(stranger)
        away.rename(folder)
        assert shared("service", "start").returncode == 0
        assert shared(*QUERY).stdout == "1\n2\n"
        assert shared(*load).returncode == 0
        _wait_for(lambda: shared("job", "list", "-f", "ndjson").stdout, '"eventsSent":4')
        assert shared("api", "GET", "/service/health").returncode == 0
    finally:
        shared("service", "stop")


@pytest.mark.slow
def test_the_backup_that_the_help_prints_has_tables_whole_that_are_loaded_meanwhile(shared: Shell) -> None:
    _, _, text = shared("help", "cluster").stdout.partition("pg_dump")
    begins, ends = text.index("  (cd /tables"), text.index("\n\n")
    logs, files = text[begins:ends].replace("/tables", "tables").replace("/backup", str(shared.home)).split("-T -)\n")
    load = ("service", "load", "a.csv", "-t", "web.a", "--tables", made(shared.home / "tables"))
    for command in (f"{logs}-T -)", files):
        assert shared(*load).returncode == 0
        subprocess.run(["sh", "-c", command], cwd=shared.home, check=True)
    copy = shared.home / "copy"
    copy.mkdir()
    for name in ("files", "logs"):
        subprocess.run(["tar", "-xf", f"{name}.tar", "-C", copy], cwd=shared.home, check=True)
    try:
        assert shared(*QUERY, SVCCTL_TABLES=str(copy)).stdout == "1\n2\n"
    finally:
        shared("service", "stop")


def _refused(shell: Shell, reason: str) -> None:
    """Every command that uses the folder of the service ends with exit code 6 and the reason."""
    for arguments in (
        QUERY,
        ("tables",),
        ("service", "load", "a.csv", "-t", "web.a"),
        ("service", "load", "a.csv", "-t", "web.a", "--tables", "tables"),
        ("service", "load", "a.csv", "-t", "web.a", "--tables", "tables", "--create"),
        ("service", "drop", "web.a", "--yes"),
        ("service", "copy", "web.a", "--to", "file", "--yes"),
        ("service", "compact"),
        ("service", "status"),
        ("api", "GET", "/service/health"),
    ):
        done = shell("--retries", "0", *arguments)
        assert (done.returncode, done.stdout if arguments[0] == "query" else "") == (6, ""), done
        assert reason in done.stderr, done


def _wait_for(told: Callable[[], str], part: str) -> None:
    deadline = time.monotonic() + 30
    while part not in (text := told()):
        assert time.monotonic() < deadline, text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compact", "--tables", "nowhere"), "cannot read the shared folder {}/nowhere: it does not exist"),
        (("compact", "web.a", "--tables", "nowhere"), "cannot read the shared folder {}/nowhere: it does not exist"),
        (("compact", "--tables", "."), "cannot read the shared folder {}: it has no file .svcctl"),
        (("compact", "--tables", "new"), "no tables in new"),
        (("copy", "web.a", "--to", "s3"), "unknown place 's3'"),
        (("compact",), "no shared folder of tables was named"),
        (("compact", "--tables", "x", "--keep-for", "soon"), NOT_A_LENGTH),
        (("load", "a.csv", "-t", "t", "--tables", "x", "--id", ""), "--id is empty"),
        (("load", "a.csv", "-t", "t", "--tables", "ftp://x/y"), "'ftp://x/y' cannot be a shared folder of tables"),
        (
            ("load", "a.csv", "-t", "t", "--tables", "s3:/bucket/x"),
            "'s3:/bucket/x' cannot be a shared folder of tables",
        ),
        (("serve", "--tables", "s3://"), "'s3://' has no bucket"),
        (
            ("load", "a.csv", "-t", "t", "--tables", "/no/such/folder", "--create"),
            "cannot make the shared folder /no/such/folder: there is no folder /no/such",
        ),
        (("load", "a.csv", "-t", "t", "--create"), "--create makes a shared folder"),
        (("serve", "--create"), "--create needs a shared folder of tables"),
    ],
)
def test_an_impossible_change_of_a_folder_is_refused(shell: Shell, arguments: tuple[str, ...], message: str) -> None:
    (shell.home / "a.csv").write_text(EVENTS, encoding="utf-8")
    made(shell.home / "new")
    shell = Shell(shell.home, {**OWN_FILE, "SVCCTL_DEMO": "0"})
    refused = shell("service", *arguments)
    said = [line for line in refused.stderr.splitlines() if line.startswith("svcctl")]
    code = 6 if message.startswith("cannot read") else 4 if message.startswith("no tables") else 2
    assert (refused.returncode, said) == (code, [f"svcctl: error: {message.format(shell.home)}"])


def test_an_unreachable_store_is_reported_plainly(shell: Shell) -> None:
    (shell.home / "a.csv").write_text(EVENTS, encoding="utf-8")
    load = ("service", "load", "a.csv", "-t", "t", "--tables", "s3://bucket/x", "--id", "one")
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    done = shell(*load, **keys)
    assert (done.returncode, done.stderr) == (
        6,
        "svcctl: error: s3://bucket/x/.svcctl: no connection to http://127.0.0.1:1: Connection refused\n"
        "hint: check the endpoint, and that its service is running\n",
    )
