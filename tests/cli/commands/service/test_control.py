"""`svcctl service`: one service, found, started, stopped and started again whatever happened before."""

import csv
import io
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.shells import OWN_FILE, SVCCTL, Shell
from support.waiting import eventually

from svcctl.service import process

STARTED = "svcctl: started the local service (stop it with 'svcctl service stop')\n"
STOPPED = "svcctl: the local service has stopped; its jobs continue when it is started again\n"


def pid(shell: Shell) -> int:
    return int((shell.home / "data" / "service.lock").read_text())


def settings(shell: Shell) -> dict[str, str]:
    done = shell("service", "status", "-f", "csv")
    assert done.returncode == 0, done.stderr
    [found] = csv.DictReader(io.StringIO(done.stdout))
    return found


def test_a_service_is_started_found_and_stopped(shell: Shell) -> None:
    before = shell("service", "status")
    assert (before.returncode, before.stdout) == (4, "")
    first = shell("query", "from auth.all group by result select count() as n", "--from", "1h")
    assert (first.returncode, first.stderr) == (0, STARTED)
    started = pid(shell)
    again = shell("service", "start")
    assert again.returncode == 0
    assert pid(shell) == started
    assert settings(shell)["pid"] == str(started)
    shown = shell("service", "status", "-f", "table").stdout
    facts, tables = shown.split("\n\n")
    assert re.search(r"^since +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \(UTC\)$", facts, re.MULTILINE)
    assert [line.split()[0] for line in tables.splitlines()] == [
        *("name", "-" * 19, "auth.all", "demo.ecommerce.data", "firewall.all", "service.access")
    ]
    restarted = shell("service", "restart")
    assert (restarted.returncode, restarted.stderr) == (0, STARTED)
    assert started != pid(shell) == int(settings(shell)["pid"])
    stopped = shell("service", "stop")
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (0, "", STOPPED)
    assert shell("service", "status").returncode == 4
    stopped = shell("service", "stop")
    assert stopped.returncode == 0


def test_a_service_that_does_not_listen_yet_is_not_said_to_be_down(shell: Shell) -> None:
    lock = process.hold_lock(process.ServiceFiles(shell.home / "data"))
    done = shell("service", "status")
    os.close(lock)
    assert (done.returncode, done.stdout, "not running" in done.stderr) == (4, "", False)


def test_the_files_of_the_service_are_private(service: Shell) -> None:
    data = service.home / "data"
    assert data.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o077 for path in data.iterdir() if not path.is_dir()}
    assert {name: mode for name, mode in modes.items() if mode} == {}
    assert {"credentials.json", "events.duckdb", "service.lock", "service.log", "service.sock", "state.db"} <= set(
        modes
    )
    assert (data / "service.sock").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows which files a process has mapped")
def test_the_service_does_not_hold_libraries_in_memory_that_it_never_uses(service: Shell) -> None:
    import numpy  # fails if numpy is not installed, because then the test would say nothing

    loaded = service(
        "service",
        "load",
        "-",
        "--table",
        "light",
        "--format",
        "ndjson",
        stdin='{"at": "2024-01-31 10:00:00", "n": 1.5}\n',
    )
    assert loaded.returncode == 0, loaded.stderr
    for mode in ("csv", "msgpack", "xls", "parquet"):
        assert service("query", "from light", "--from", "2024-01-31", "-f", mode, "-o", mode).returncode == 0
    maps = Path(f"/proc/{pid(service)}/maps").read_text()
    assert "/pyarrow/" in maps
    assert [name for name in (numpy.__name__, "pandas") if f"/{name}/" in maps] == []


def test_the_log_has_no_password_of_a_url(service: Shell) -> None:
    body = '{"query": "from sample", "from": "1h", "to": "now", "https://user:word@host": 1}'
    assert service("api", "POST", "/search/query", "--data", body).returncode == 0
    log = (service.home / "data" / "service.log").read_text()
    assert "ignored unknown members 'https://****@host'" in log
    assert "user:word" not in log


@pytest.mark.slow
def test_many_first_starts_at_once_make_one_service(shell: Shell) -> None:
    processes = [shell.start("service", "start", stderr=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    running = subprocess.run(["pgrep", "-f", "-c", "service serve"], capture_output=True, check=False)
    assert int(settings(shell)["pid"]) == pid(shell)
    assert running.returncode == 0
    shell("service", "stop")


@pytest.mark.slow
def test_a_crash_leaves_nothing_that_blocks_the_next_start(shell: Shell) -> None:
    assert shell("service", "start").returncode == 0
    loaded = shell(
        "service", "load", "-", "--table", "kept", "--format", "csv", stdin="eventdate,n\n2024-01-31 10:00:00,1\n"
    )
    assert loaded.returncode == 0
    crashed = pid(shell)
    shell.kill_service()
    done = shell("query", "from kept select n", "--from", "2024-01-31")
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n1\n", STARTED)
    assert pid(shell) != crashed
    shell("service", "stop")


@pytest.mark.slow
def test_reset_forgets_events_and_asks_first(tmp_path: Path) -> None:
    shell = Shell(tmp_path, OWN_FILE)
    shell("service", "load", "-", "--table", "kept", "--format", "csv", stdin="eventdate,n\n2024-01-31 10:00:00,1\n")
    for tables in ("1 table of your own", "all tables (only a running service can count them)"):
        refused = shell("service", "reset")
        assert (refused.returncode, f"{tables}, 0 jobs, 0 saved queries" in refused.stderr) == (2, True)
        shell("service", "stop")
    assert shell("service", "reset", "--yes").returncode == 0
    assert not (shell.home / "data" / "events.duckdb").exists()
    done = shell("query", "from kept", "--from", "2024-01-31")
    assert done.returncode == 1
    assert "no table 'kept'" in done.stderr
    shell("service", "stop")


@pytest.mark.slow
def test_a_service_whose_files_are_deleted_ends(shell: Shell) -> None:
    assert shell("service", "start").returncode == 0
    started = pid(shell)
    shutil.rmtree(shell.home / "data")
    eventually(lambda: not Path(f"/proc/{started}").exists())


def test_a_service_that_could_write_nothing_gives_its_reason_and_not_that_of_an_earlier_one(shell: Shell) -> None:
    log = shell.home / "data" / "service.log"
    log.parent.mkdir(mode=0o700)
    log.write_text("an earlier reason\n")
    command = f"ulimit -f 0; exec {shlex.join([*SVCCTL, 'service', 'start'])}"
    done = subprocess.run(["bash", "-c", command], env=shell.environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "an earlier reason" not in done.stderr
    assert f"cannot keep its data in {log.parent}: File too large\n" in done.stderr


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("os.kill(os.getpid(), 9)", 1, "signal 9 ended it"),
        ('os.write(int(sys.orig_argv[-1]), b\'{"error": "cu\'); os._exit(6)', 6, "it ended with exit code 6"),
    ],
)
def test_a_service_that_ends_without_a_reason_points_to_its_log(tmp_path: Path, end: str, code: int, said: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import os, sys\nif '--ready-fd' in sys.orig_argv: {end}\n")
    shell = Shell(tmp_path, {"PYTHONPATH": str(tmp_path)})
    done = shell("service", "start")
    log = shell.home / "data" / "service.log"
    assert (done.returncode, done.stderr) == (
        code,
        f"svcctl: error: the local service did not start: {said}\n"
        f"hint: its log may have the reason: {log}; 'svcctl service serve' runs it in the foreground\n",
    )


def test_the_log_of_a_service_that_fails_at_a_defect_says_where(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['svcctl.service.server'] = None\n")
    shell = Shell(tmp_path, {"PYTHONPATH": str(tmp_path)})
    said = "ModuleNotFoundError: import of svcctl.service.server halted; None in sys.modules"
    log = shell.home / "data" / "service.log"
    done = shell("service", "start")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"svcctl: error: the local service did not start: {said}\nhint: its log has the reason: {log}\n",
    )
    first, *_, line, last = log.read_text().splitlines()
    assert (first, line, last) == ("Traceback (most recent call last):", said, f"svcctl: error: {said}")


@pytest.mark.slow
def test_serve_listens_on_tcp_until_it_is_stopped(shell: Shell) -> None:
    process = shell.start("service", "serve", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
    assert process.stderr is not None
    line = next(line for line in process.stderr if b"listening" in line).decode()
    address = line.strip().partition(" INFO listening on ")[2]
    second = shell("service", "serve", "--listen", "127.0.0.1:0")
    assert (second.returncode, f"{shell.home}/data" in second.stderr) == (9, True)
    found = settings(shell)
    assert (found["address"], found["pid"], found["log"]) == (address, str(process.pid), "stderr")
    again = shell("service", "start")
    assert again.returncode == 0
    rows = "eventdate,n\n2024-01-31 10:00:00,1\n"
    loaded = shell("service", "load", "-", "--table", "kept", "--format", "csv", stdin=rows)
    assert loaded.returncode == 0
    kept = shell("query", "from kept select n", "--from", "2024-01-31", "--to", "1d")
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "n\n1\n", "")
    done = shell(
        "query",
        "from auth.all select user limit 1",
        "--from",
        "1d",
        SVCCTL_BASE_URL=f"http://{address}",
        SVCCTL_TOKEN="x",
    )
    assert done.returncode == 3
    process.send_signal(signal.SIGTERM)
    process.stderr.close()
    assert process.wait(20) == 0


SERVE = "svcctl service serve --listen 127.0.0.1:0"
NOT_STARTED = (
    "svcctl: error: the local service is not running, and commands do not start one that was run with --listen\n"
    f"hint: start it with: {SERVE} (or in the background with 'svcctl service start')\n"
)


def serving(shell: Shell) -> subprocess.Popen[bytes]:
    """A service of SERVE that listens."""
    process = shell.start(*SERVE.split()[1:], stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert any(b"listening" in line for line in process.stderr)
    process.stderr.close()
    return process


@pytest.mark.slow
def test_a_service_that_listens_is_not_started_in_the_background_by_a_command_that_finds_it_down(shell: Shell) -> None:
    process = serving(shell)
    assert shell("tables").returncode == 0
    process.kill()
    process.wait()
    done = shell("tables")
    assert (done.returncode, done.stdout, done.stderr) == (6, "", NOT_STARTED)
    again = serving(shell)
    assert shell("service", "stop").returncode == 0
    assert again.wait(20) == 0
    assert shell("tables").returncode == 6


@pytest.mark.parametrize(
    "command",
    [
        ("query", "from auth.all", "--from", "1h"),
        ("job", "list"),
        ("service", "load", "-", "--table", "t", "--format", "csv"),
        ("service", "restart"),
        ("-p", "local-reseller", "domain", "list"),
    ],
    ids=" ".join,
)
def test_every_command_that_would_start_it_names_the_command_that_does(shell: Shell, command: tuple[str, ...]) -> None:
    files = process.ServiceFiles(shell.home / "data")
    files.make()
    process.keep_serve_command(files, SERVE)
    done = shell(*command, stdin="eventdate,n\n2024-01-31 10:00:00,1\n")
    assert (done.returncode, done.stdout, done.stderr) == (6, "", NOT_STARTED)
    assert process.running_process(files) is None
    assert not files.lock.exists()


@pytest.mark.slow
def test_a_start_in_the_background_lets_commands_start_the_service_again(shell: Shell) -> None:
    files = process.ServiceFiles(shell.home / "data")
    files.make()
    process.keep_serve_command(files, SERVE)
    down = shell("service", "status")
    assert (down.returncode, SERVE in down.stderr) == (4, True)
    assert shell("service", "reset", "--yes").returncode == 0
    assert shell("tables").returncode == 6
    started = shell("service", "start")
    assert (started.returncode, started.stderr) == (0, STARTED)
    shell("service", "stop")
    done = shell("tables")
    assert (done.returncode, done.stderr) == (0, STARTED)
    shell("service", "stop")


@pytest.mark.slow
def test_a_service_that_listens_is_not_restarted_in_the_background(shell: Shell) -> None:
    process = serving(shell)
    done = shell("service", "restart")
    assert (done.returncode, done.stderr) == (
        2,
        f"svcctl: error: the local service was not started in the background, but with: {SERVE}\n"
        "hint: restart it there, or in the background with 'svcctl service stop' and then 'svcctl service start'\n",
    )
    assert process.poll() is None
    process.terminate()
    assert process.wait(20) == 0


def test_a_command_waits_for_a_service_that_listens_and_is_starting(shell: Shell) -> None:
    files = process.ServiceFiles(shell.home / "data")
    lock = process.hold_lock(files)
    process.keep_serve_command(files, SERVE)
    waiting = shell.start("tables", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1)
    os.close(lock)
    assert waiting.communicate(timeout=20) == (b"", NOT_STARTED.encode())
    assert waiting.returncode == 6


@pytest.mark.slow
def test_a_service_in_the_foreground_says_what_it_does_and_is_stopped_like_any_other(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {**OWN_FILE, "SVCCTL_DEMO": "6d"})
    process = shell.start("service", "serve", "--listen", "[::1]:0", stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = [process.stderr.readline().decode() for _ in range(2)]
    process.stderr.close()
    assert re.fullmatch(r"[-\d]+ [:,\d]+ INFO making demo events \(once\)\n", said[0])
    assert re.fullmatch(r"[-\d]+ [:,\d]+ INFO listening on \[::1\]:\d+\n", said[1])
    stopped = shell("service", "stop")
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (0, "", STOPPED)
    assert process.wait(20) == 0


@pytest.mark.parametrize("listen", ["127.0.0.1:{taken}", "192.0.2.1:0"])
def test_an_address_that_cannot_be_had_is_named(shell: Shell, listen: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = listen.format(taken=other.getsockname()[1])
        done = shell("service", "serve", "--listen", address)
    assert done.returncode == 2
    assert f"cannot listen on {address}: " in done.stderr
    assert "(" not in done.stderr


def test_a_missing_extra_is_named(shell: Shell, tmp_path: Path) -> None:
    hidden = (
        "import sys; sys.modules['duckdb'] = None\nfrom svcctl.cli.main import main\nsys.argv[0] = 'svcctl'\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden, "service", "start"], env=shell.environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr.count(b"svcctl: "), b"svcctl[service]" in done.stderr) == (2, 1, True)


# The state of the service, a command, its exit code and what it says; the folder of the data is {data}.
NOT_RUNNING = "svcctl: error: the local service is not running\nhint: start it with"
SAID: list[tuple[str, str, int, str]] = [
    ("down", "status", 4, f"{NOT_RUNNING} 'svcctl service start'\n"),
    ("down", "stop", 0, "svcctl: the local service is not running\n"),
    (
        "down",
        "serve --listen 127.0.0.1:70000",
        2,
        "svcctl: error: the port in --listen '127.0.0.1:70000' is not between 0 and 65535\n",
    ),
    (
        "down",
        "serve --listen 192.0.2.1:0",
        2,
        "svcctl: error: the service cannot listen on 192.0.2.1:0: Cannot assign requested address\n"
        "hint: choose another address\n",
    ),
    ("served", "status", 4, f"{NOT_RUNNING}: {SERVE} (or in the background with 'svcctl service start')\n"),
    (
        "starting",
        "status",
        4,
        "svcctl: error: the local service is starting or stopping\nhint: 'svcctl service start' waits for it\n",
    ),
    ("running", "start", 0, "svcctl: the local service is already running\n"),
    (
        "running",
        "serve",
        9,
        "svcctl: error: the local service is already running in {data}\nhint: stop it with: svcctl service stop\n",
    ),
    (
        "down",
        "reset",
        2,
        "svcctl: error: this needs confirmation: Delete all events and state in {data}?\nhint: add --yes\n",
    ),
]


@pytest.mark.parametrize(("state", "command", "code", "said"), SAID)
def test_messages_about_the_state_of_the_service(
    shell: Shell, service: Shell, state: str, command: str, code: int, said: str
) -> None:
    files = process.ServiceFiles(shell.home / "data")
    lock = process.hold_lock(files) if state == "starting" else None
    if state == "served":
        files.make()
        process.keep_serve_command(files, SERVE)
    asked = service if state == "running" else shell
    done = asked("service", *command.split())
    if lock is not None:
        os.close(lock)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said.format(data=asked.home / "data"))


@pytest.mark.skipif(not Path("/var/log/dpkg.log").exists(), reason="this machine has no dpkg.log")
def test_a_real_log_counts_as_awk_counts(service: Shell) -> None:
    assert service("service", "load", "/var/log/dpkg.log", "--table", "debian.dpkg").returncode == 0
    rows = service.ndjson("query", "from debian.dpkg group every 1d select count() as n", "--from", "2000-01-01")
    counted = subprocess.run(
        ["awk", "{ n[$1]++ } END { for (day in n) print day, n[day] }", "/var/log/dpkg.log"],
        capture_output=True,
        text=True,
        check=True,
    )
    days = {time.strftime("%Y-%m-%d", time.gmtime(int(str(row["eventdate"])) / 1000)): row["n"] for row in rows}
    assert days == {day: int(n) for day, n in (line.split() for line in counted.stdout.splitlines())}


def test_a_service_with_a_limit_that_is_no_time_does_not_start_and_says_why(shell: Shell) -> None:
    done = shell("service", "start", SVCCTL_QUERY_TIME="soon")
    said = "SVCCTL_QUERY_TIME 'soon' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d"
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"svcctl: error: the local service did not start: {said}\n"
        f"hint: its log has the reason: {shell.home / 'data' / 'service.log'}\n",
    )


def test_service_refuses_the_profile_of_another_service(shell: Shell) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com")
    done = shell("-p", "prod", "service", "reset", "--yes")
    assert (done.returncode, "--profile" in done.stderr) == (2, True)
    done = shell("-p", "prod", "service", "load", "a.csv", "-t", "a.b")
    assert (done.returncode, "svcctl service load FILE -t TABLE --tables URI" in done.stderr) == (2, True)
