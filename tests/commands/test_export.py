"""`svcctl export` as a user's shell runs it, against the real service: files, states, what it says, and how it ends."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.exports import left
from support.faults import FaultyProxy
from support.shells import Shell

START = 1_706_659_200
"""2024-01-31, the day of the events that are loaded for these tests: one each five minutes for six hours."""
EVENTS = 72
HOURS = ("--from", "2024-01-31", "--to", "6h")
QUERY = "from timed.events"


@pytest.fixture(scope="module")
def events(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    rows = [f"{datetime.fromtimestamp(START + 300 * n, UTC):%Y-%m-%d %H:%M:%S}.000,{n}" for n in range(EVENTS)]
    file = tmp_path_factory.mktemp("events") / "events.csv"
    file.write_text("\n".join(["eventdate,n", *rows, ""]), encoding="utf-8")
    loaded = service("service", "load", str(file), "--table", "timed.events")
    assert loaded.returncode == 0, loaded.stderr
    return service


@pytest.fixture
def home(events: Shell, tmp_path: Path) -> Shell:
    """A home of its own, in which the service of the events is the local one."""
    data, state = events.environment["SVCCTL_DATA"], str(tmp_path / "states")
    return Shell(tmp_path, {"SVCCTL_DATA": data, "SVCCTL_STATE": state})


@pytest.fixture
def proxied(home: Shell) -> Iterator[tuple[Shell, FaultyProxy]]:
    """The same behind a proxy that can break answers."""
    data = Path(home.environment["SVCCTL_DATA"])
    credentials = json.loads((data / "credentials.json").read_text())["local"]
    proxy = FaultyProxy(data / "service.sock")
    with proxy.serving():
        given = {
            "SVCCTL_BASE_URL": proxy.url,
            "SVCCTL_API_KEY": credentials["api_key"],
            "SVCCTL_API_SECRET": credentials["api_secret"],
        }
        yield Shell(home.home, home.variables | given), proxy


def broken(*hours: int, fault: str = "503") -> Callable[[bytes], str | None]:
    """Chooses a fault for the windows that begin at these hours."""
    wanted = {START + 3600 * hour for hour in hours}
    return lambda body: fault if json.loads(body or b"{}").get("from") in wanted else None


def timeless(stderr: str) -> str:
    return re.sub(r"seconds=\d+\.\d", "seconds=…", stderr)


def test_a_range_becomes_one_file_and_a_line_says_what_it_holds(home: Shell) -> None:
    done = home("export", QUERY, *HOURS, "-o", "all.csv")
    assert (done.returncode, done.stdout, timeless(done.stderr)) == (
        0,
        "",
        "svcctl: rows=72 bytes=1946 windows=6 retries=0 seconds=…\n",
    )
    assert (home.home / "all.csv").read_text() == home("query", QUERY, *HOURS, "-f", "csv").stdout


def test_the_same_command_again_asks_for_nothing(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    for _ in range(2):
        assert shell("export", QUERY, *HOURS, "-o", "all.csv").returncode == 0
    assert proxy.asked.total() == 6


def test_a_pattern_makes_a_file_a_window(home: Shell) -> None:
    done = home("export", QUERY, *HOURS, "--window", "3h", "-o", "out/{start:%Y/%m/%d/%H}.csv.gz")
    assert done.returncode == 0, done.stderr
    assert left(home.home) == ["out/2024/01/31/00.csv.gz", "out/2024/01/31/03.csv.gz"]
    text = gzip.decompress((home.home / "out/2024/01/31/03.csv.gz").read_bytes()).decode()
    assert text == home("query", QUERY, "--from", "2024-01-31T03:00:00Z", "--to", "3h", "-f", "csv").stdout


def test_a_dry_run_prints_the_windows_and_asks_nobody(shell: Shell) -> None:
    query = "from timed.events group every 2h select count()"
    done = shell("export", query, *HOURS, "-o", "{start:%H}.csv", "--window", "3h", "--dry-run")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "from,to,file\n2024-01-31T00:00:00Z,2024-01-31T06:00:00Z,00.csv\n",
        "svcctl: windows are 6h long: the query's periods do not divide 3h\n",
    )
    assert left(shell.home) == ["data/credentials.json"]


def test_a_query_from_standard_input_with_its_variables(home: Shell) -> None:
    done = home("export", "-", *HOURS, "-o", "n.ndjson", "--var", "n=7", stdin="from timed.events where str(n) = {{n}}")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["n"] for line in (home.home / "n.ndjson").read_text().splitlines()] == [7]


def test_a_failure_leaves_no_file_and_the_next_run_completes_it(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(5)
    done = shell("export", QUERY, *HOURS, "-o", "all.csv", "--retries", "1", "--workers", "1")
    assert (done.returncode, done.stderr) == (
        6,
        "svcctl: error: window 2024-01-31 05:00:00 to 2024-01-31 06:00:00 UTC: "
        "the service answered HTTP 503: not now\n",
    )
    assert left(shell.home) == []
    asked = proxy.asked.total()
    proxy.choose = lambda body: None
    assert shell("export", QUERY, *HOURS, "-o", "all.csv").returncode == 0
    assert proxy.asked.total() - asked == 1


def test_going_on_after_errors_lists_the_gaps_and_status_knows_them(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(1, 2, 4)
    target = "{start:%H}.csv"
    done = shell("export", QUERY, *HOURS, "-o", target, "--retries", "0", "--on-error", "continue")
    assert (done.returncode, timeless(done.stderr)) == (
        7,
        "svcctl: rows=36 bytes=998 windows=6 missing=3 retries=0 seconds=…\n"
        "svcctl: error: 2024-01-31 01:00:00 to 2024-01-31 03:00:00 UTC is missing: "
        "the service answered HTTP 503: not now\n"
        "svcctl: error: 2024-01-31 04:00:00 to 2024-01-31 05:00:00 UTC is missing: "
        "the service answered HTTP 503: not now\n"
        "svcctl: error: 3 windows are missing of 6\n"
        "hint: the same command again fetches only what is missing\n",
    )
    status = shell("export", "status", target)
    assert status.stdout == (
        "what,value\n"
        "target,{start:%H}.csv\n"
        "query,from timed.events\n"
        "format,csv\n"
        f"service,{proxy.url}\n"
        "window,1h\n"
        "range,2024-01-31T00:00:00Z to 2024-01-31T06:00:00Z\n"
        "windows,3\n"
        "rows,36\n"
        "bytes,998\n"
        "missing,3\n"
        "gap,2024-01-31T01:00:00Z to 2024-01-31T03:00:00Z\n"
        "gap,2024-01-31T04:00:00Z to 2024-01-31T05:00:00Z\n"
    )
    proxy.choose = lambda body: None
    assert shell("export", QUERY, *HOURS, "-o", target).returncode == 0
    assert "missing,0\n" in shell("export", "status", target).stdout


def test_verify_names_what_is_damaged_or_missing(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    fine = home("export", "verify", "{start:%H}.csv")
    assert (fine.returncode, fine.stderr) == (0, "svcctl: 6 files, 2006 bytes: all as they were exported\n")
    (home.home / "01.csv").write_text("eventdate,n\n")
    (home.home / "04.csv").unlink()
    done = home("export", "verify", "{start:%H}.csv")
    assert (done.returncode, done.stderr) == (
        7,
        "svcctl: error: 01.csv is damaged\n"
        "svcctl: error: 04.csv is missing\n"
        "svcctl: error: the export to {start:%H}.csv is not whole\n"
        "hint: run the export again: it fetches only what is missing\n",
    )
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    assert home("export", "verify", "{start:%H}.csv").returncode == 0


def test_every_event_is_logged_as_json_for_collectors(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(3)
    done = shell(
        *("export", QUERY, *HOURS, "--window", "3h", "-o", "all.csv"),
        *("--log-format", "json", "--retries", "0", "--workers", "1"),
    )
    start, window, error = map(json.loads, done.stderr.splitlines())
    assert (done.returncode, start) == (
        6,
        {"event": "start", "from": "2024-01-31T00:00:00Z", "to": "2024-01-31T06:00:00Z", "windows": 2},
    )
    assert window == {
        "event": "window",
        "from": "2024-01-31T00:00:00Z",
        "to": "2024-01-31T03:00:00Z",
        "rows": 36,
        "bytes": 962,
        "seconds": window["seconds"],
        "attempts": 1,
    }
    assert error == {
        "event": "error",
        "message": "window 2024-01-31 03:00:00 to 2024-01-31 06:00:00 UTC: the service answered HTTP 503: not now",
        "hint": None,
        "exit": 6,
    }
