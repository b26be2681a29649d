"""`svcctl export` as a user's shell runs it, against the real service: files, states, what it says, and how it ends."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from peers.processes import free_port
from support.faults import FaultyProxy
from support.reseller import Scripted, Terminal
from support.shells import SVCCTL, Shell

from svcctl.cli import run
from svcctl.context import Context
from svcctl.exports.export import folder_of
from svcctl.exports.manifest import Manifest
from svcctl.exports.moments import moment
from svcctl.exports.state import State, States, default_states
from svcctl.exports.windows import Target
from svcctl.profiles import default_store
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.prompt import Prompt

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


def left(folder: Path) -> list[str]:
    """The files that a person sees."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts))


def hinted(target: str, *ranges: str, what: str = "fetch what is missing") -> str:
    """The hint that fetches ranges of an export again."""
    command = f"svcctl export '{QUERY}' -o {shlex.quote(target)}"
    return f"hint: {what} with: {' && '.join(f'{command} {given}' for given in ranges)}\n"


def forgets(name: str) -> str:
    """What is said of files that are missing."""
    return f"svcctl: if files were removed on purpose: svcctl export forget {shlex.quote(name)}\n"


def pasted(stderr: str) -> list[str]:
    """The command at the end of a hint, as a shell reads it."""
    return shlex.split(stderr.splitlines()[-1].partition(": svcctl ")[2])


def timeless(stderr: str) -> str:
    """What is said, without the seconds, and the range and files behind them."""
    return re.sub(r"seconds=\d+\.\d\d from=\S+ to=\S+( files?=.*)?", "seconds=…", stderr)


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
    for target, first, there in (
        ("all.csv", "", "all.csv is already whole; --force fetches it again"),
        ("{from:%FT%H}.csv", " file=2024-01-31T00.csv", "2024-01-31T00.csv is already whole; --force fetches it again"),
        (
            "{start:%H}.csv",
            " files=6 first=00.csv last=05.csv",
            "6 files are already whole: 00.csv to 05.csv; --force fetches them again",
        ),
    ):
        proxy.asked.clear()
        done = shell("export", QUERY, *HOURS, "-o", target)
        assert (
            re.sub(r".* seconds=\d+\.\d\d from=2024-01-31T00:00:00Z to=2024-01-31T06:00:00Z", "", done.stderr)
            == f"{first}\n"
        )
        again = shell("export", QUERY, *HOURS, "-o", target)
        assert (again.returncode, again.stderr) == (0, f"svcctl: nothing to do: {there}\n")
        assert proxy.asked.total() == 6


def test_a_pattern_makes_a_file_a_window(home: Shell) -> None:
    done = home("export", QUERY, *HOURS, "--window", "3h", "-o", "out/{start:%Y/%m/%d/%H}.csv.gz")
    assert done.returncode == 0, done.stderr
    assert left(home.home) == ["out/2024/01/31/00.csv.gz", "out/2024/01/31/03.csv.gz"]
    text = gzip.decompress((home.home / "out/2024/01/31/03.csv.gz").read_bytes()).decode()
    assert text == home("query", QUERY, "--from", "2024-01-31T03:00:00Z", "--to", "3h", "-f", "csv").stdout


def test_a_start_without_its_unit_is_told(home: Shell) -> None:
    done = home("export", QUERY, "--from", "30", "--to", "1h", "--dry-run", "-o", "x.csv")
    told = "svcctl: --from 30 is 1970-01-01 00:00:30 UTC; write 30m for minutes\n"
    assert (done.returncode, done.stderr) == (0, told)


def test_a_dry_run_prints_the_windows_and_leaves_nothing(home: Shell) -> None:
    query = "from timed.events group every 2h select percentile(n, 0.5)"
    done = home("export", query, *HOURS, "-o", "{start:%H}.csv", "--window", "3h", "--dry-run")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "from,to,file\n2024-01-31T00:00:00Z,2024-01-31T06:00:00Z,00.csv\n",
        "svcctl: percentile(…, 0.5) is the 0.5th percentile; p50 is percentile(…, 50)\n"
        "svcctl: windows are 6h long: the query's periods do not divide 3h\n",
    )
    assert [path.name for path in home.home.iterdir()] == []


@pytest.mark.parametrize(("query", "code"), [(QUERY, 2), (f"{QUERY} select m", 1)])
def test_a_dry_run_fails_as_the_run_does(home: Shell, query: str, code: int) -> None:
    target = "all.csv" if code == 2 else "other.csv"
    (home.home / "all.csv").write_text("mine")
    command = ("export", query, *HOURS, "-o", target)
    run, rehearsal = home(*command), home(*command, "--dry-run", "--metrics", "a.prom")
    assert re.sub(r"cid \w+", "", run.stderr) == re.sub(r"cid \w+", "", rehearsal.stderr)
    assert (run.returncode, rehearsal.returncode, left(home.home)) == (code, code, ["all.csv"])


def test_a_dry_run_for_a_cluster_asks_nobody_since_its_workers_have_their_own_credentials(shell: Shell) -> None:
    done = shell("export", QUERY, *HOURS, "-o", "{start:%H}.csv", "--dry-run", "--scheduler", "tcp://127.0.0.1:1")
    assert (done.returncode, done.stdout.count("\n"), left(shell.home)) == (0, 7, ["data/credentials.json"])


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
        "the service answered HTTP 503: not now\n"
        "hint: the same command again fetches only what is missing\n",
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
    rest = shell("export", QUERY, *HOURS, "-o", target)
    assert (rest.returncode, timeless(rest.stderr)) == (
        0,
        "svcctl: rows=72 bytes=2006 windows=6 kept=3 retries=0 seconds=…\n",
    )
    assert "missing,0\n" in shell("export", "status", target).stdout


def counts(shell: Shell, name: str) -> dict[str, str]:
    """What status counts of an export, and which files it does not find."""
    lines = dict(line.split(",", 1) for line in shell("export", "status", name).stdout.splitlines())
    return {what: lines[what] for what in ("windows", "rows", "bytes", "missing", "no file") if what in lines}


def test_the_status_of_a_finished_file_counts_what_is_in_it_until_it_is_removed(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "all.csv").returncode == 0
    assert counts(home, "all.csv") == {"windows": "6", "rows": "72", "bytes": "1946", "missing": "0"}
    (home.home / "all.csv").unlink()
    gone = {"windows": "0", "rows": "0", "bytes": "0", "missing": "6", "no file": "all.csv"}
    assert counts(home, "all.csv") == gone


def test_the_status_of_an_unfinished_file_counts_the_bytes_of_its_rows(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(3)
    assert shell("export", QUERY, *HOURS, "-o", "all.csv", "--workers", "1", "--retries", "0").returncode == 6
    whole = shell("query", QUERY, "--from", "2024-01-31", "--to", "3h", "-f", "csv").stdout
    size = str(len(whole) - len("eventdate,n\n"))
    assert counts(shell, "all.csv") == {"windows": "3", "rows": "36", "bytes": size, "missing": "3"}


def test_status_misses_a_file_that_was_removed(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    (home.home / "04.csv").unlink()
    told = {"windows": "5", "rows": "60", "bytes": "1670", "missing": "1", "no file": "04.csv"}
    assert counts(home, "{start:%H}.csv") == told


def test_status_counts_a_file_of_another_size_as_missing_and_names_verify(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    (home.home / "04.csv").write_text("eventdate,n\n")
    status = home("export", "status", "{start:%H}.csv")
    assert status.stdout.splitlines()[-2:] == ["missing,1", "damaged,04.csv"]
    assert status.stderr == "svcctl: files were removed or changed: svcctl export verify '{start:%H}.csv'\n"


def test_a_file_that_is_replaced_is_named(home: Shell) -> None:
    assert home("export", QUERY, "--from", "2024-01-31", "--to", "3h", "-o", "all.csv").returncode == 0
    done = home("export", QUERY, *HOURS, "-o", "all.csv")
    assert timeless(done.stderr).splitlines()[1:] == [
        "svcctl: replaced all.csv, which held 2024-01-31 00:00:00 to 2024-01-31 03:00:00 UTC"
    ]


def test_a_link_is_followed_and_stays_and_the_export_is_known_by_its_name(home: Shell) -> None:
    real, link = home.home / "real.csv", home.home / "latest.csv"
    link.symlink_to("real.csv")
    assert home("export", QUERY, "--from", "2024-01-31", "--to", "3h", "-o", "latest.csv").returncode == 0
    real.write_bytes(b"old")
    assert home("export", QUERY, *HOURS, "-o", "latest.csv", "--force").returncode == 0
    assert str(link.readlink()) == "real.csv"
    assert real.read_text() == home("query", QUERY, *HOURS, "-f", "csv").stdout
    assert home("export", "verify", "latest.csv").stderr == "svcctl: 1 file, 1946 bytes: all as they were exported\n"
    link.unlink()
    link.symlink_to("none/real.csv")
    assert home("export", QUERY, *HOURS, "-o", "latest.csv").stderr == (
        f"svcctl: error: the directory {real.parent}/none does not exist\n"
        f"hint: make it with: mkdir -p {real.parent}/none\n"
    )


BERLIN = ("--from", "2024-01-30T23:00:00Z", "--to", "2d", "--window", "1d", "--time-zone", "Europe/Berlin")


def test_the_last_line_says_the_range_in_the_zone_that_is_asked_for(home: Shell) -> None:
    for name, more, ends in (
        ("a.csv", (), "from=2024-01-31T00:00:00Z to=2024-01-31T06:00:00Z"),
        ("b.csv", ("--time-zone", "Europe/Madrid"), "from=2024-01-31T01:00:00+01:00 to=2024-01-31T07:00:00+01:00"),
    ):
        done = home("export", QUERY, "--from", "2024-01-31T00:00:00Z", "--to", "6h", *more, "-o", name)
        assert re.sub(r".* seconds=\d+\.\d\d ", "", done.stderr.splitlines()[-1]) == ends


def test_files_are_days_of_the_zone_that_is_given_and_may_be_written_as_in_a_crontab(home: Shell) -> None:
    for target in (r"run-{from:\%F}.csv", "{start:%F}.csv"):
        done = home("-q", "export", QUERY, *BERLIN, "-o", target)
        assert (done.returncode, done.stderr) == (0, "")
    assert left(home.home) == ["2024-01-31.csv", "2024-02-01.csv", "run-2024-01-31.csv"]
    again = home("export", QUERY, *BERLIN, "-o", "{start:%F}.csv")
    assert again.stderr.splitlines()[-1] == (
        "svcctl: nothing to do: 2 files are already whole: 2024-01-31.csv to 2024-02-01.csv; --force fetches them again"
    )
    (home.home / "2024-02-01.csv").unlink()
    damaged = home("export", "verify", "{start:%F}.csv").stderr
    assert damaged.startswith("svcctl: error: 2024-02-01.csv is missing\n")
    status = home("export", "status", "{start:%F}.csv").stdout.splitlines()
    assert [line for line in status if line.startswith(("windows", "missing", "no file"))] == [
        "windows,1",
        "missing,1",
        "no file,2024-02-01.csv",
    ]


@pytest.mark.parametrize("state", [(), ("--state", "days")])
def test_an_export_that_began_with_names_in_utc_goes_on_with_them(home: Shell, state: tuple[str, ...]) -> None:
    to = ("--window", "1d", "-o", "{start:%F}.ndjson", *state)
    assert home("export", QUERY, "--from", "2024-01-30T23:00:00Z", "--to", "25h", *to).returncode == 0
    before = {path.name: path.read_bytes() for path in home.home.glob("2*")}
    done = home("export", QUERY, *BERLIN, *to)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        0,
        "svcctl: the names of files are in UTC, not in Europe/Berlin, as in earlier runs of this export",
    )
    assert left(home.home)[:3] == ["2024-01-30.ndjson", "2024-01-31.ndjson", "2024-02-01.ndjson"]
    assert before.items() <= {path.name: path.read_bytes() for path in home.home.glob("2*")}.items()


def test_periods_that_a_service_counts_in_utc_keep_files_in_utc(home: Shell) -> None:
    query = f"{QUERY} group every 1d select count() as n"
    done = home("export", query, *BERLIN, "-o", "{start:%F}.csv", "--dry-run")
    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "from,to,file",
            "2024-01-30T23:00:00Z,2024-01-31T00:00:00Z,2024-01-30.csv",
            "2024-01-31T00:00:00Z,2024-02-01T00:00:00Z,2024-01-31.csv",
            "2024-02-01T00:00:00Z,2024-02-01T23:00:00Z,2024-02-01.csv",
        ],
        "svcctl: the names of files are in UTC, not in Europe/Berlin, as the periods of the query are\n"
        "svcctl: 2024-01-30.csv has a part of its window: its events begin at 2024-01-30T23:00:00Z, not at "
        "2024-01-30T00:00:00Z; --from 2024-01-30T00:00:00Z begins with a whole one\n"
        "svcctl: 2024-02-01.csv has a part of its window: its events end at 2024-02-01T23:00:00Z, not at "
        "2024-02-02T00:00:00Z; --to 2024-02-01T00:00:00Z leaves it out, --to 2024-02-02T00:00:00Z ends with a "
        "whole one\n",
    )


def test_a_first_file_whose_name_does_not_show_that_it_has_a_part_of_its_window_is_told(moved: Moved) -> None:
    moved.now = START + 3 * 3600 + 17 * 60
    folder = moved.shell.home

    def said(start: str, name: str, *more: str) -> str:
        code, text = moved("export", QUERY, "--from", start, *more, "-o", f"{folder}/{name}.csv")
        assert code == 0
        return text[: text.rindex("svcctl: rows=")]

    part = "has a part of its window: its events begin at"
    begins = f"svcctl: {folder}/a/02.csv {part} 2024-01-31T02:17:00Z, not at 2024-01-31T02:00:00Z"
    assert said("1h", "a/{start:%H}") == f"{begins}; --from 2024-01-31T02:00:00Z begins with a whole one\n"
    zone = ("--window", "1d", "--time-zone", "Asia/Kolkata", "--state", "cut", "--lag", "0")
    begins = f"svcctl: {folder}/b/2024-01-30.csv {part} 2024-01-30T08:47:00+05:30, not at 2024-01-30T00:00:00+05:30"
    assert said("1d", "b/{start:%F}", *zone) == f"{begins}; --from 1ad begins with a whole one\n"
    moved.now += 86_400
    assert (
        said("1d", "b/{start:%F}", *zone)
        == said("2024-02-01T02:00:00Z", "c/{start:%H}")
        == said("1h", "d/{start:%H%M}")
        == ""
    )
    assert said("90m", "e/{start:%H}").endswith(
        ", not at 2024-02-01T01:00:00Z; --from 2024-02-01T01:00:00Z begins with a whole one\n"
    )


def test_dates_in_utc_with_days_of_another_zone_are_told_at_both_ends(moved: Moved) -> None:
    moved.now = START + 5 * 86_400
    target = f"{moved.shell.home}/{{start:%F}}.csv"
    days = ("--time-zone", "Europe/Berlin", "--window", "1d", "-o", target)
    _, told = moved("export", QUERY, "--from", "2024-01-30", "--to", "2024-02-01", *days)
    part = "has a part of its window: its events"
    assert told.splitlines()[:-1] == [
        f"svcctl: {moved.shell.home}/2024-01-30.csv {part} begin at 2024-01-30T01:00:00+01:00, not at "
        "2024-01-30T00:00:00+01:00; --from 2024-01-30T00:00:00+01:00 begins with a whole one",
        f"svcctl: {moved.shell.home}/2024-02-01.csv {part} end at 2024-02-01T01:00:00+01:00, not at "
        "2024-02-02T00:00:00+01:00; --to 2024-02-01T00:00:00+01:00 leaves it out, "
        "--to 2024-02-02T00:00:00+01:00 ends with a whole one",
    ]
    whole = ("--from", "2024-01-30T00:00:00+01:00", "--to", "2024-02-01T00:00:00+01:00")
    assert moved("export", QUERY, *whole, *days, "--force", "--dry-run")[1] == ""


def test_an_end_that_reads_as_days_before_now_is_told(moved: Moved) -> None:
    moved.now = START + 6 * 3600
    target = f"{moved.shell.home}/all.csv"
    assert moved("export", QUERY, "--from", "3ad", "--to", "2ad", "-o", target, "--window", "1d") == (
        0,
        "svcctl: 2024-01-28 00:00 … 2024-01-30 00:00 UTC (2d)\nsvcctl: rows=0 bytes=12 windows=2 retries=0 seconds=…\n",
    )


def test_verify_names_what_is_damaged_or_missing(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    fine = home("export", "verify", "{start:%H}.csv")
    assert (fine.returncode, fine.stderr) == (0, "svcctl: 6 files, 2006 bytes: all as they were exported\n")
    (home.home / "01.csv").write_text("eventdate,n\n")
    (home.home / "04.csv").unlink()
    hours = [f"--from 2024-01-31T0{hour}:00:00Z --to 2024-01-31T0{hour + 1}:00:00Z" for hour in range(6)]
    one = home("export", "verify", "01.csv")
    assert (one.returncode, one.stderr) == (
        7,
        "svcctl: error: 01.csv is damaged\n"
        f"svcctl: error: the export to 01.csv is not whole\n{hinted('{start:%H}.csv', hours[1])}",
    )
    other = home("export", "verify", f"{home.home}/02.csv")
    assert (other.returncode, other.stderr) == (0, "svcctl: 1 file, 336 bytes: all as they were exported\n")
    gone = home("export", "verify", f"{home.home}/04.csv")
    assert (gone.returncode, gone.stderr) == (
        7,
        f"svcctl: error: {home.home}/04.csv is missing\n"
        f"svcctl: error: the export to {home.home}/04.csv is not whole\n"
        f"{hinted(f'{home.home}/{{start:%H}}.csv', hours[4])}",
    )
    assert home("export", "status", "04.csv").stdout.splitlines()[-2:] == ["missing,1", "no file,04.csv"]
    done = home("export", "verify", "{start:%H}.csv")
    assert (done.returncode, done.stderr) == (
        7,
        "svcctl: error: 01.csv is damaged\n"
        "svcctl: error: 04.csv is missing\n"
        f"{forgets('{start:%H}.csv')}"
        "svcctl: error: the export to {start:%H}.csv is not whole\n"
        f"{hinted('{start:%H}.csv', '--from 2024-01-31T01:00:00Z --to 2024-01-31T05:00:00Z')}",
    )
    for said in (one, gone):
        assert timeless(home(*pasted(said.stderr)).stderr).startswith("svcctl: rows=12 bytes=336 windows=1 retries=0 ")
    assert home("export", "verify", "{start:%H}.csv").returncode == 0


def test_verify_names_a_few_of_many_lost_files_and_one_command_for_all(home: Shell) -> None:
    target = "{start:%H%M}.csv"
    assert home("export", QUERY, *HOURS, "--window", "30m", "-o", target).returncode == 0
    for hour in range(6):
        (home.home / f"{hour:02}00.csv").unlink()
    lost = [f"svcctl: error: {hour:02}00.csv is missing\n" for hour in range(6)]
    given = "--window 30m -o '{start:%H%M}.csv' --from 2024-01-31T00:00:00Z --to 2024-01-31T05:30:00Z"
    end = (
        f"{forgets(target)}svcctl: error: the export to {target} is not whole\n"
        f"hint: fetch what is missing with: svcctl export '{QUERY}' {given}\n"
    )
    assert home("export", "verify", target).stderr == "".join([*lost, end])
    (home.home / "0030.csv").write_text("eventdate,n\n")
    lost.insert(1, "svcctl: error: 0030.csv is damaged\n")
    more = f"svcctl: error: 2 more are missing or damaged; to see all: svcctl -v export verify '{target}'\n"
    done = home("export", "verify", target)
    assert (done.returncode, done.stderr) == (7, "".join([*lost[:5], more, end]))
    assert home("-v", "export", "verify", target).stderr == "".join([*lost, end])
    assert home(*pasted(done.stderr)).returncode == home("export", "verify", target).returncode == 0


def test_an_export_with_options_comes_back_with_them(home: Shell) -> None:
    options = ["--window", "2h", "--date-format", "iso", "--time-zone", "GMT+1", "--limit-per-window", "50"]
    (home.home / "out 1").mkdir()
    command = ["export", f"{QUERY} // all", *HOURS, "-o", "out 1/{start:%H}.txt", "-f", "csv", *options]
    assert home(*command).returncode == 0
    (home.home / "out 1" / "02.txt").unlink()
    said = home("export", "verify", "out 1/02.txt").stderr
    assert said.splitlines()[-1] == (
        "hint: fetch what is missing with: svcctl export 'from timed.events' --window 2h --date-format iso "
        "--time-zone GMT+1 --limit-per-window 50 --format csv -o 'out 1/{start:%H}.txt' "
        "--from 2024-01-31T01:00:00Z --to 2024-01-31T03:00:00Z"
    )
    assert home(*pasted(said)).returncode == 0
    assert home("export", "verify", "out 1/{start:%H}.txt").returncode == 0


def test_a_file_whose_manifest_does_not_name_its_target_comes_back_with_the_command_that_a_person_has(
    home: Shell,
) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    (path,) = home.home.glob(".*.export/manifest.json")
    manifest = Manifest.from_text(path.read_text(), str(path))
    path.write_text(replace(manifest, target="").to_text())  # as an earlier version wrote it
    (home.home / "04.csv").unlink()
    assert home("export", "verify", "04.csv").stderr.splitlines()[-1] == (
        "hint: fetch what is missing with the same command, without --state and with "
        "--from 2024-01-31T04:00:00Z --to 2024-01-31T05:00:00Z"
    )


def test_verify_says_that_one_damaged_file_is_fetched_again_as_a_whole(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    shell("export", QUERY, *HOURS, "-o", "all.csv")
    (shell.home / "all.csv").write_text("eventdate,n\n")
    given = ("--from", "2024-01-31T00:00:00Z", "--to", "2024-01-31T06:00:00Z")
    assert shell("export", "verify", "all.csv").stderr == (
        "svcctl: error: all.csv is damaged\n"
        "svcctl: error: the export to all.csv is not whole\n"
        f"{hinted('all.csv', ' '.join(given), what='fetch the whole file again')}"
    )
    proxy.asked.clear()
    again = shell("export", QUERY, *given, "--window", "1h", "-o", "all.csv")
    assert timeless(again.stderr) == (
        "svcctl: rows=72 bytes=1946 windows=6 retries=0 seconds=…\n"
        "svcctl: replaced all.csv, which was not as it was exported\n"
    )
    assert proxy.asked.total() == 6


def test_an_export_that_is_whole_without_its_metrics_exits_7(home: Shell) -> None:
    (home.home / "a.prom").mkdir()
    done = home("export", QUERY, *HOURS, "-o", "all.csv", "--metrics", "a.prom")
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        7,
        [
            "svcctl: error: the metrics file a.prom cannot be written: Is a directory",
            "hint: the export itself is whole",
        ],
    )
    assert home("export", "verify", "all.csv").returncode == 0


def test_figures_go_to_standard_output_to_a_log_and_to_a_pipe(home: Shell) -> None:
    command = ("export", QUERY, *HOURS, "-o", "all.csv", "--metrics")
    success = f'svcctl_export_success{{export="{home.home}/all.csv"}} 1'
    assert success in home(*command, "/dev/stdout").stdout.splitlines()
    log, pipe = home.home / "log", home.home / "pipe"
    log.write_text("yesterday\n")
    with log.open("ab") as stderr:
        assert home.start(*command, "/dev/stderr", stderr=stderr).wait() == 0
    first, idle, *figures = log.read_text().splitlines()
    assert (first, idle) == ("yesterday", "svcctl: nothing to do: all.csv is already whole; --force fetches it again")
    assert success in figures
    os.mkfifo(pipe)
    with home.start(*command, str(pipe), stderr=subprocess.DEVNULL) as run:
        assert success in pipe.read_text().splitlines()
    assert run.returncode == 0


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
        "hint": "the same command again fetches only what is missing",
        "exit": 6,
    }


@dataclass
class Moved:
    """Runs svcctl in this process with a clock that a test sets; a token has no time that a service could refuse."""

    shell: Shell
    now: float

    def __call__(
        self, *arguments: str, stderr: io.StringIO | None = None, prompt: Prompt | None = None
    ) -> tuple[int, str]:
        """The exit code and stderr."""
        told = stderr or io.StringIO()
        data = Path(self.shell.environment["SVCCTL_DATA"])
        token = json.loads((data / "credentials.json").read_text())["local"]["token"]
        environment = self.shell.environment | {"SVCCTL_AUTH": "token", "SVCCTL_TOKEN": token}
        context = Context(diagnostics=Diagnostics(told), environment=environment, clock=lambda: self.now, prompt=prompt)
        code = run([*arguments], context)
        return code, timeless(told.getvalue())


@pytest.fixture
def moved(proxied: tuple[Shell, FaultyProxy]) -> Moved:
    return Moved(proxied[0], START)


def hourly(moved: Moved, *more: str) -> tuple[int, str]:
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    return moved("export", QUERY, "--from", "2024-01-31", "--state", "timed", "-o", target, "--workers", "2", *more)


def test_runs_of_a_state_export_each_window_once_when_it_is_old_enough(moved: Moved) -> None:
    out = moved.shell.home / "out"
    moved.now = START + 3600 + 599
    left_out = "ended less than 10m ago; --lag leaves it for the next run"
    window = "2024-01-31T00:00:00Z to 2024-01-31T01:00:00Z"
    assert hourly(moved) == (0, f"svcctl: nothing to export yet: the window {window} {left_out}\n")
    moved.now = START + 3600 + 600
    assert hourly(moved) == (0, "svcctl: rows=12 bytes=326 windows=1 retries=0 seconds=…\n")
    nothing = (0, "svcctl: nothing to export yet: no window has ended since 2024-01-31T01:00:00Z\n")
    assert hourly(moved) == hourly(moved, "--dry-run") == nothing
    moved.now = START + 4 * 3600 + 1800  # two runs were missed
    assert hourly(moved) == (0, "svcctl: rows=36 bytes=1008 windows=3 retries=0 seconds=…\n")
    moved.now = START  # the clock goes back
    assert hourly(moved) == (0, "svcctl: nothing to export yet: no window has ended since 2024-01-31T04:00:00Z\n")
    moved.now = START + 9 * 3600
    reached = "all windows up to --to, 2024-01-31T04:00:00Z, are exported"
    assert hourly(moved, "--to", "2024-01-31T04:00:00Z") == (0, f"svcctl: nothing to export: {reached}\n")
    assert hourly(moved)[0] == 0
    numbers = [
        int(line.split(",")[1])
        for path in sorted(out.glob("*.csv"))
        for line in path.read_text().split()[1:]
        if "," in line
    ]
    assert numbers == [*range(EVENTS)]


def test_a_first_run_that_exports_nothing_fixes_where_the_state_starts(
    moved: Moved, proxied: tuple[Shell, FaultyProxy], tmp_path: Path
) -> None:
    figures = tmp_path / "a.prom"
    target = f"{tmp_path}/out/{{start:%FT%H}}.csv"
    began = "2024-01-31T00:00:00Z"
    held = (
        f"svcctl: the state 's' starts where its first run did, at {began}, not at --from; "
        "to begin elsewhere: svcctl export rm s\n"
    )
    left_out = "ended less than 10m ago; --lag leaves it for the next run\n"

    def nightly(query: str = QUERY, start: str = "1h") -> tuple[int, str]:
        command = ("--from", start, "--window", "1h", "--state", "s", "-o", target)
        return moved("export", query, *command, "--retries", "0", "--workers", "1", "--metrics", str(figures))

    moved.now = START + 3600  # the window has just ended
    window = f"svcctl: nothing to export yet: the window {began} to 2024-01-31T01:00:00Z {left_out}"
    assert nightly() == (0, window)
    assert moved.shell("export", "status", "s").stdout.splitlines() == [
        "what,value",
        f"target,{target}",
        f"query,{QUERY}",
        "format,csv",
        f"service,{proxied[1].url}",
        "window,1h",
        "windows,0",
        "rows,0",
        "bytes,0",
        "missing,0",
        f"next run from,{began}",
    ]
    assert moved("export", "verify") == (0, "svcctl: s: nothing is exported yet\n")
    moved.now += 3600
    code, told = nightly("from timed.nothing")  # a mistake in the first runs can be corrected
    assert (code, told.startswith("svcctl: error: ")) == (1, True)
    assert f'until_seconds{{export="s"}} {START}\n' in figures.read_text()
    proxied[1].choose = broken(0)
    for start, note in (("1h", ""), ("3h", held), ("1h", "")):  # another --from may be a correction
        code, told = nightly(start=start)
        assert (code, told.startswith(f"{note}svcctl: error: window ")) == (6, True)
    proxied[1].choose = broken()
    assert nightly() == (0, "svcctl: rows=12 bytes=326 windows=1 retries=0 seconds=…\n")
    moved.now += 3600
    assert nightly() == (0, "svcctl: rows=12 bytes=336 windows=1 retries=0 seconds=…\n")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["2024-01-31T00.csv", "2024-01-31T01.csv"]


def test_a_first_run_that_failed_leaves_windows_that_are_missing(
    moved: Moved, proxied: tuple[Shell, FaultyProxy], tmp_path: Path
) -> None:
    target = f"{tmp_path}/out/{{start:%FT%H}}.csv"
    ends = "2024-01-31T00:00:00Z to 2024-01-31T03:00:00Z"
    moved.now = START + 3 * 3600 + 1800

    def nightly(query: str = QUERY) -> int:
        command = ("export", query, "--from", "2024-01-31", "--state", "s", "-o", target)
        return moved(*command, "--retries", "0", "--workers", "1")[0]

    assert nightly("from timed.nothing") == 1
    state = json.loads((moved.shell.home / "states" / "s.json").read_text())
    nothing = state["failed"].partition(": ")[2]
    assert nothing.startswith("line 1, column 6: no table 'timed.nothing' (tables are ")
    proxied[1].choose = broken(0, 1, 2)
    for query, why in (
        ("from timed.nothing", nothing),
        (QUERY, "window 2024-01-31 00:00:00 to 2024-01-31 01:00:00 UTC: the service answered HTTP 503: not now"),
    ):
        failed = f"2024-01-31T03:30:00Z: {why}"
        shown = moved.shell("export", "status", "s").stdout.replace('"', "")
        assert shown.splitlines() == [
            "what,value",
            f"target,{target}",
            f"query,{query}",
            "format,csv",
            f"service,{proxied[1].url}",
            "window,1h",
            f"range,{ends}",
            "windows,0",
            "rows,0",
            "bytes,0",
            "missing,3",
            f"gap,{ends}",
            "next run from,2024-01-31T00:00:00Z",
            f"last run failed,{failed}",
        ]
        assert moved.shell("export", "status").stdout.replace('"', "") == (
            f"name,target,until,missing,failed\ns,{target},2024-01-31T00:00:00Z,3,{failed}\n"
        )
        command = shlex.join(["svcctl", "export", query, "-o", target, "--state", "s"])
        assert moved("export", "verify", "s") == (
            7,
            "svcctl: error: 2024-01-31 00:00:00 to 2024-01-31 03:00:00 UTC is not exported yet\n"
            f"svcctl: error: the export to {target} is not whole\n"
            f"hint: run the export again: it fetches only what is missing: {command}\n",
        )
        assert nightly() == 6
    proxied[1].choose = broken()
    assert nightly() == 0
    assert moved.shell("export", "status", "s").stdout.endswith("\nnext run from,2024-01-31T03:00:00Z\n")
    assert moved("export", "verify") == (0, "svcctl: s: 3 files, 998 bytes: all as they were exported\n")


def test_the_missing_days_of_a_first_run_that_failed_are_those_of_the_zone(
    moved: Moved, proxied: tuple[Shell, FaultyProxy]
) -> None:
    moved.now = START + 24 * 3600
    proxied[1].choose = lambda body: "503"
    target = f"{moved.shell.home}/{{start:%F}}.csv"
    command = (
        "--from",
        "2024-01-28T23:00:00Z",
        "--time-zone",
        "Europe/Madrid",
        "--window",
        "1d",
        "--state",
        "s",
        "-o",
        target,
    )
    assert moved("export", QUERY, *command, "--retries", "0")[0] == 6
    rows = moved.shell("export", "status", "s").stdout.splitlines()
    assert rows[-4:-1] == [
        "missing,3",
        "gap,2024-01-28T23:00:00Z to 2024-01-31T23:00:00Z",
        "next run from,2024-01-28T23:00:00Z",
    ]


@pytest.mark.parametrize("lag", ["0", "0s"])
def test_without_a_lag_a_window_is_exported_as_it_ends(moved: Moved, lag: str) -> None:
    moved.now = START + 3600
    assert hourly(moved, "--lag", lag) == (0, "svcctl: rows=12 bytes=326 windows=1 retries=0 seconds=…\n")


def test_a_lag_without_a_state_says_what_it_leaves_out(moved: Moved, tmp_path: Path) -> None:
    moved.now = START + 3 * 3600 + 1800
    command = ("export", QUERY, "--from", "2024-01-31", "--lag", "10m")
    written = "svcctl: rows=24 bytes=650 windows=1 retries=0 seconds=…\n"
    assert moved(*command, "--window", "2h", "-o", f"{tmp_path}/a.csv") == (
        0,
        "svcctl: left out 2024-01-31T02:00:00Z to 2024-01-31T03:30:00Z: a window that has not ended, "
        f"or ended less than --lag ago\n{written}",
    )
    moved.now -= 1500
    assert moved(*command, "-o", f"{tmp_path}/b.csv") == (
        0,
        "svcctl: left out 2024-01-31T02:00:00Z to 2024-01-31T03:05:00Z: windows that have not ended, "
        f"or ended less than --lag ago\n{written.replace('windows=1', 'windows=2')}",
    )
    assert moved("-q", *command, "-o", f"{tmp_path}/c.csv") == (0, "")
    assert moved(*command, "--to", "2h", "-o", f"{tmp_path}/d.csv")[1] == written.replace("windows=1", "windows=2")


def test_the_state_moves_to_the_first_gap(moved: Moved, proxied: tuple[Shell, FaultyProxy]) -> None:
    moved.now = START + 5 * 3600
    proxied[1].choose = broken(2)
    code, told = hourly(moved, "--retries", "0", "--on-error", "continue")
    assert (code, told.splitlines()[0]) == (7, "svcctl: rows=36 bytes=998 windows=4 missing=1 retries=0 seconds=…")
    states = States(moved.shell.home / "states")
    assert states.need("timed").until == START + 2 * 3600
    assert moved.shell("export", "status", "timed").stdout.splitlines()[-2:] == [
        "next run from,2024-01-31T02:00:00Z",
        "last run failed,2024-01-31T05:00:00Z: 1 window is missing of 4",
    ]
    assert moved.shell("export", "status", "timed/").stdout == moved.shell("export", "status", "timed").stdout
    asked = proxied[1].asked.total()
    proxied[1].choose = lambda body: None
    assert hourly(moved)[0] == 0
    assert (proxied[1].asked.total() - asked, states.need("timed").until) == (1, START + 4 * 3600)


def test_a_run_with_a_file_of_its_own_moves_the_state_only_when_the_file_is_there(
    moved: Moved, proxied: tuple[Shell, FaultyProxy]
) -> None:
    target = f"{moved.shell.home}/{{from:%FT%H}}.csv"
    every = ("export", QUERY, "--from", "2024-01-31", "--state", "runs", "-o", target, "--retries", "0")
    moved.now = START + 3 * 3600
    proxied[1].choose = broken(1)
    assert moved(*every, "--on-error", "continue")[0] == 7
    state = States(moved.shell.home / "states").load("runs")
    # The state of a first run that failed is where it began, so that its status can be asked for.
    assert (state and state.until, left(moved.shell.home)) == (START, ["states/runs.json", "states/runs.lock"])
    assert "\nwindows,1\n" in moved.shell("export", "status", "runs").stdout
    proxied[1].choose = lambda body: None
    moved.now += 3600
    assert moved(*every)[0] == 0
    moved.now += 3600
    assert moved(*every)[0] == 0
    assert left(moved.shell.home) == ["2024-01-31T00.csv", "2024-01-31T03.csv", "states/runs.json", "states/runs.lock"]


def test_what_a_state_has_moved_past_comes_back_as_verify_says(
    moved: Moved, proxied: tuple[Shell, FaultyProxy]
) -> None:
    moved.now = START + 5 * 3600
    out = moved.shell.home / "out"
    target = f"{out}/{{start:%FT%H}}.csv"
    assert hourly(moved)[0] == 0
    (out / "2024-01-31T01.csv").unlink()
    (out / "2024-01-31T02.csv").write_text("eventdate,n\n")
    for name in ("timed", target):
        assert moved("export", "verify", name) == (
            7,
            f"svcctl: error: {out}/2024-01-31T01.csv is missing\n"
            f"svcctl: error: {out}/2024-01-31T02.csv is damaged\n{forgets(name)}"
            f"svcctl: error: the export to {target} is not whole\n"
            f"{hinted(target, '--from 2024-01-31T01:00:00Z --to 2024-01-31T03:00:00Z')}",
        )
    assert moved("export", "verify", f"{out}/2024-01-31T02.csv") == (
        7,
        f"svcctl: error: {out}/2024-01-31T02.csv is damaged\n"
        f"svcctl: error: the export to {out}/2024-01-31T02.csv is not whole\n"
        f"{hinted(target, '--from 2024-01-31T02:00:00Z --to 2024-01-31T03:00:00Z')}",
    )
    asked = proxied[1].asked.total()
    given = ("--from", "2024-01-31T01:00:00Z", "--to", "2024-01-31T03:00:00Z")
    assert moved("export", QUERY, *given, "-o", target) == (
        0,
        "svcctl: rows=24 bytes=672 windows=2 retries=0 seconds=…\n"
        f"svcctl: replaced {out}/2024-01-31T02.csv, which was not as it was exported\n",
    )
    assert proxied[1].asked.total() - asked == 2
    for hour in (1, 2):
        (out / f"2024-01-31T0{hour}.csv").write_text("eventdate,n\n")
    assert moved("export", QUERY, *given, "-o", target)[1].splitlines()[1] == (
        f"svcctl: replaced {out}/2024-01-31T01.csv, which was not as it was exported, and 1 other file"
    )
    assert moved("export", "verify", "timed")[0] == 0
    assert moved.shell("export", "status", "timed").stdout.splitlines()[-1] == "next run from,2024-01-31T04:00:00Z"


@pytest.mark.parametrize("name", ["start", "from"])
def test_a_run_tells_once_which_files_of_earlier_windows_are_gone(moved: Moved, name: str) -> None:
    out = moved.shell.home / "out"

    def night(*hours: int, quiet: bool = False) -> str:
        """What a run says after the files of these hours were removed, but for its last line."""
        for hour in hours:
            (out / f"2024-01-31T{hour:02}.csv").unlink()
        moved.now += 3600
        target = f"{out}/{{{name}:%FT%H}}.csv"
        command = ("export", QUERY, "--from", "2024-01-31", "--state", "timed", "--lag", "0", "-o", target)
        code, said = moved(*["-q"] * quiet, *command)
        assert code == 0
        return "" if quiet else said[: said.rindex("svcctl: rows=")]

    see = "; see 'svcctl export verify timed'\n"
    for _ in range(6):
        assert night() == ""
    assert night(2, quiet=True) == ""
    assert night() == f"svcctl: 1 file of an earlier window is gone: {out}/2024-01-31T02.csv{see}"
    assert night() == ""
    assert night(0, 1, 4) == (f"svcctl: 3 files of earlier windows are gone (first: {out}/2024-01-31T00.csv){see}")
    assert night(3) == ""  # files that were shipped are removed, the oldest first
    assert night(5, 6, 8) == f"svcctl: 1 file of an earlier window is gone: {out}/2024-01-31T08.csv{see}"
    (out / "2024-01-31T08.csv").touch()
    assert night() == ""
    assert night(8) == f"svcctl: 1 file of an earlier window is gone: {out}/2024-01-31T08.csv{see}"


@pytest.mark.parametrize("name", ["start", "from"])
def test_files_that_were_removed_on_purpose_are_not_missed_and_count_again_when_they_are_fetched(
    moved: Moved, name: str
) -> None:
    out = moved.shell.home / "out"
    target = f"{out}/{{{name}:%FT%H}}.csv"
    command = ("export", QUERY, "--from", "2024-01-31", "--state", "timed", "--lag", "0", "-o", target)
    for _ in range(6):
        moved.now += 3600
        assert moved(*command)[0] == 0
    for hour in (0, 1, 4):
        (out / f"2024-01-31T0{hour}.csv").unlink()
    note = forgets("timed")
    assert note in moved("export", "verify", "timed")[1]
    assert moved("export", "forget", "timed", "--before", "2024-01-31T02:00:00Z") == (
        0,
        f"svcctl: 2 files count as removed on purpose: {out}/2024-01-31T00.csv to {out}/2024-01-31T01.csv\n",
    )
    assert moved("export", "forget", "timed", "--before", "2024-01-31T02:00:00Z") == (
        0,
        "svcctl: nothing to forget: no file of a window that ended by 2024-01-31T02:00:00Z is gone\n",
    )
    assert moved("export", "forget", "timed", "--before", "30") == (
        2,
        "svcctl: error: --before 30 is 1970-01-01T00:00:30Z\nhint: write 30ad for days\n",
    )
    given = "--from 2024-01-31T04:00:00Z --to 2024-01-31T05:00:00Z"
    assert moved("export", "verify", "timed") == (
        7,
        f"svcctl: error: {out}/2024-01-31T04.csv is missing\n{note}"
        f"svcctl: error: the export to {target} is not whole\n{hinted(target, given)}",
    )
    assert moved("export", "forget", target) == (
        0,
        f"svcctl: 1 file counts as removed on purpose: {out}/2024-01-31T04.csv\n",
    )
    whole = "files, 1008 bytes: all as they were exported; 3 removed on purpose\n"
    assert moved("export", "verify", "timed") == (0, f"svcctl: 3 {whole}")
    shown = moved.shell("export", "status", "timed").stdout.splitlines()
    assert {"windows,3", "missing,0", "removed,3"} <= {*shown}
    assert moved.shell("export", "status").stdout.splitlines()[1].split(",")[3] == "0"
    moved.now += 3600
    assert moved(*command) == (0, "svcctl: rows=0 bytes=12 windows=1 retries=0 seconds=…\n")  # and no file is gone
    assert moved("export", QUERY, *given.split(), "-o", target)[0] == 0
    assert moved("export", "verify", "timed")[1].endswith(
        "5 files, 1356 bytes: all as they were exported; 2 removed on purpose\n"
    )
    (out / "2024-01-31T04.csv").unlink()
    assert f"{out}/2024-01-31T04.csv is missing" in moved("export", "verify", "timed")[1]
    (out / "2024-01-31T00.csv").touch()
    assert f"{out}/2024-01-31T00.csv is damaged" in moved("export", "verify", "timed")[1]
    assert moved("export", "forget", f"{out}/2024-01-31T04.csv") == (
        2,
        f"svcctl: error: {out}/2024-01-31T04.csv is one file of an export\n"
        "hint: name its state, or the pattern as given to -o\n",
    )
    for file in out.glob("*.csv"):
        file.unlink()
    assert moved("export", "forget", "timed")[0] == 0
    assert moved("export", "verify", "timed") == (0, "svcctl: no file is left: 7 removed on purpose\n")


def test_force_forgets_nothing_of_the_runs_before(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    whole = (0, "svcctl: 4 files, 1334 bytes: all as they were exported\n")
    assert hourly(moved)[0] == 0
    moved.now += 2 * 3600
    assert hourly(moved, "--force") == (0, "svcctl: rows=24 bytes=672 windows=2 retries=0 seconds=…\n")
    assert moved("export", "verify", "timed") == whole
    given = ("--from", "2024-01-31T01:00:00Z", "--to", "2024-01-31T02:00:00Z", "-o", target, "--force")
    (moved.shell.home / "out" / "2024-01-31T01.csv").write_text("eventdate,n\n")
    assert moved("export", QUERY, *given)[0] == 0
    assert moved("export", "verify", "timed") == whole


def test_a_local_service_that_is_stopped_starts_for_what_asks_it_before_a_run(shell: Shell) -> None:
    shell = Shell(shell.home, {"SVCCTL_DEMO_DAYS": "0"})
    started = "svcctl: starting the local service (stop it with 'svcctl service stop')\n"
    command = ("export", "from service.access", *HOURS, "-o", "all.csv", "--force")
    try:
        for more, said in ((("--dry-run",), ""), ((), "svcctl: rows=0 bytes=73 windows=6 retries=0 seconds=…\n")):
            done = shell(*command, *more)
            assert (done.returncode, timeless(done.stderr)) == (0, started + said)
            assert shell("service", "stop").returncode == 0
    finally:
        shell("service", "stop")


def test_a_query_that_is_refused_leaves_no_folders(home: Shell) -> None:
    done = home("export", "from timed.events wher n", *HOURS, "-o", "all/{start:%F/%H}.csv")
    assert (done.returncode, list(home.home.iterdir())) == (1, [])


def test_a_percent_sign_in_a_folder_of_an_export(home: Shell) -> None:
    given = (*HOURS, "-o", "a%%b/{start:%H}.csv", "--window", "6h")
    assert home("export", QUERY, *given).returncode == 0
    assert [path.name for path in home.home.iterdir()] == ["a%b"]
    (home.home / "a%b").rename(home.home / "c")
    done = home("export", "verify", "c/{start:%H}.csv")
    assert (done.returncode, done.stderr) == (0, "svcctl: 1 file, 1946 bytes: all as they were exported\n")


@pytest.mark.parametrize("query", ["from timed.events where m = 1", "from timed.nothing", "from timed.events wher n"])
def test_force_with_a_mistake_in_the_query_costs_nothing(home: Shell, query: str) -> None:
    assert home("export", QUERY, *HOURS, "-o", "all.csv").returncode == 0
    assert home("export", query, *HOURS, "-o", "all.csv", "--force").returncode == 1
    done = home("export", "verify", "all.csv")
    assert (done.returncode, done.stderr) == (0, "svcctl: 1 file, 1946 bytes: all as they were exported\n")


def test_force_with_a_state_is_refused_where_the_manifest_is_damaged(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    (manifest,) = moved.shell.home.glob("out/.*.export/manifest.json")
    manifest.write_text(manifest.read_text().replace("2024", "2025"))
    moved.now += 2 * 3600
    refused = (
        2,
        f"svcctl: error: manifest {manifest} is damaged\n"
        "hint: fetch them again with the same command, without --state and with "
        "--from 2024-01-31T00:00:00Z --to 2024-01-31T02:00:00Z --force\n",
    )
    assert moved("export", "verify", "timed") == refused
    assert hourly(moved) == hourly(moved, "--force") == hourly(moved, "--force", "--dry-run") == refused
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    given = ("--from", "2024-01-31", "--to", "2024-01-31T02:00:00Z", "-o", target, "--force")
    assert moved("export", QUERY, *given) == (
        0,
        "svcctl: rows=24 bytes=662 windows=2 retries=0 seconds=…\n"
        f"svcctl: replaced {manifest}, which was damaged: it describes this run only\n",
    )
    assert hourly(moved)[0] == 0
    assert moved("export", "verify", "timed") == (0, "svcctl: 4 files, 1334 bytes: all as they were exported\n")


def test_each_file_of_a_run_comes_back_as_verify_says(moved: Moved) -> None:
    target = f"{moved.shell.home}/{{from:%FT%H}}.csv"
    moved.now = START + 3 * 3600
    for _ in range(2):
        assert moved("export", QUERY, "--from", "2024-01-31", "--state", "runs", "-o", target)[0] == 0
        moved.now += 2 * 3600
    for file in moved.shell.home.glob("*.csv"):
        file.unlink()
    ranges = [("2024-01-31T00:00:00Z", "2024-01-31T02:00:00Z"), ("2024-01-31T02:00:00Z", "2024-01-31T04:00:00Z")]
    assert moved("export", "verify", "runs") == (
        7,
        f"svcctl: error: {moved.shell.home}/2024-01-31T00.csv is missing\n"
        f"svcctl: error: {moved.shell.home}/2024-01-31T02.csv is missing\n{forgets('runs')}"
        f"svcctl: error: the export to {target} is not whole\n"
        f"{hinted(target, *(f'--from {start} --to {end}' for start, end in ranges))}",
    )
    for start, end in ranges:
        assert moved("export", QUERY, "--from", start, "--to", end, "-o", target)[0] == 0
    assert moved("export", "verify", "runs")[0] == 0


def test_a_file_that_names_its_run_comes_back_as_verify_says(moved: Moved) -> None:
    target = f"{moved.shell.home}/{{from:%FT%H}}/{{start:%H}}.csv"
    moved.now = START + 3 * 3600
    for _ in range(2):
        assert moved("export", QUERY, "--from", "2024-01-31", "--state", "runs", "-o", target)[0] == 0
        moved.now += 2 * 3600
    lost = moved.shell.home / "2024-01-31T02" / "03.csv"
    lost.unlink()
    given = ("--from", "2024-01-31T02:00:00Z", "--to", "2024-01-31T04:00:00Z")
    assert moved("export", "verify", "runs") == (
        7,
        f"svcctl: error: {lost} is missing\n{forgets('runs')}"
        f"svcctl: error: the export to {target} is not whole\n"
        f"{hinted(target, ' '.join(given))}",
    )
    assert moved("export", "verify", str(lost)) == (
        7,
        f"svcctl: error: {lost} is missing\n"
        f"svcctl: error: the export to {lost} is not whole\n"
        f"{hinted(target, ' '.join(given))}",
    )
    assert moved("export", QUERY, *given, "-o", target)[0] == 0
    assert (moved("export", "verify", "runs")[0], lost.is_file()) == (0, True)


def test_a_second_run_of_a_state_ends_at_once(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    with States(moved.shell.home / "states").locked("timed"):
        assert hourly(moved) == (9, "svcctl: error: another run of the export 'timed' has not ended yet\n")


def test_a_state_refuses_a_path_that_all_runs_would_share(moved: Moved) -> None:
    assert moved("export", QUERY, "--from", "2024-01-31", "--state", "timed", "-o", "nowhere/all.csv") == (
        2,
        "svcctl: error: every run of a state needs a file of its own, and all runs would write nowhere/all.csv\n"
        "hint: name a file for each window, out/{start:%Y%m%dT%H}.csv, or for each run, out/{from:%Y%m%dT%H}.csv\n",
    )


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (("from timed.events where n > 1",), "another query"),
        ((QUERY, "--time-zone", "Europe/Madrid"), "another time zone (without --time-zone)"),
        (("from timed.events where n > 1", "--window", "2h"), "another query and another window (--window 1h)"),
    ],
)
def test_a_state_says_what_differs_from_its_export(moved: Moved, changed: tuple[str, ...], what: str) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    assert moved("export", *changed, "--state", "timed", "-o", target) == (
        2,
        f"svcctl: error: the state belongs to an export with {what}\n"
        f"hint: give the same export, which 'svcctl export status timed' shows, or another name to "
        "--state and another path, with --from 2024-01-31T02:00:00Z\n",
    )


def test_no_other_export_takes_the_files_of_a_state(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    other = ("export", "from timed.events where n > 1", "-o", target, "--from", "2024-01-31T01:00:00Z", "--to", "1h")
    for more in ([], ["--force"], ["--force", "--dry-run"], ["--force", "--state", "new"]):
        assert moved(*other, *more) == (
            2,
            f"svcctl: error: {target} belongs to another export: another query\n"
            "hint: write to another path, or first end the state 'timed', which writes to this one, with "
            "'svcctl export rm timed', and then give --force\n",
        ), more
    moved.now += 3600
    assert hourly(moved)[0] == 0
    assert moved("export", "verify", "timed")[0] == 0
    assert moved("export", "rm", "timed", "--yes")[0] == 0
    code, told = moved(*other, "--force")
    assert (code, told.splitlines()[1:]) == (
        0,
        [
            f"svcctl: replaced {moved.shell.home}/out/{folder_name(moved)}/manifest.json, which described another "
            "export: 2 other files of it stay, and are not verified any more"
        ],
    )
    assert (
        moved("export", "verify", target)[1]
        .splitlines()[0]
        .startswith("svcctl: 2 files of this pattern are not in its manifest, and not verified: ")
    )


def folder_name(moved: Moved) -> str:
    """The name of the folder that describes the files in `out`."""
    return next((moved.shell.home / "out").glob(".*.export")).name


def test_several_exports_are_verified_one_by_one(home: Shell) -> None:
    for name in ("a.csv", "b.csv"):
        assert home("export", QUERY, *HOURS, "-o", name).returncode == 0
    (home.home / "b.csv").write_text("")
    done = home("export", "verify", "a.csv", "b.csv", "c.csv")
    size = (home.home / "a.csv").stat().st_size
    assert (done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("hint: ")]) == (
        7,
        [
            f"svcctl: a.csv: 1 file, {size} bytes: all as they were exported",
            "svcctl: error: b.csv is damaged",
            "svcctl: error: b.csv: the export to b.csv is not whole",
            "svcctl: error: no export goes to 'c.csv', and no state has that name",
        ],
    )


def test_a_mistake_is_noted_in_a_state_when_nobody_saw_it(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    mistaken = ("export", "from timed.events where n > 1", "--state", "timed", "-o", target)
    states = default_states(moved.shell.environment)
    assert moved(*mistaken, prompt=Scripted(["y"]))[0] == 2
    assert states.need("timed").failed == ""
    assert moved(*mistaken)[0] == 2
    assert states.need("timed").failed.endswith("Z: the state belongs to an export with another query")


def test_a_state_with_another_path_says_where_one_of_another_name_starts(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    assert moved("export", QUERY, "--state", "timed", "-o", f"{moved.shell.home}/new/{{start:%FT%H}}.csv") == (
        2,
        f"svcctl: error: the state belongs to an export with another target ({target})\n"
        "hint: give the same export, which 'svcctl export status timed' shows, or another name to "
        "--state, with --from 2024-01-31T02:00:00Z\n",
    )


@pytest.mark.parametrize(
    ("ending", "before", "now"),
    [
        ("csv", "eventdate,n", "eventdate,n,m"),
        ("parquet", "eventdate timestamp, n int8", "eventdate timestamp, n str, m int8"),
    ],
)
def test_columns_that_are_not_those_of_earlier_runs_are_told_once(
    moved: Moved, events: Shell, tmp_path: Path, ending: str, before: str, now: str
) -> None:
    table = f"changing.{ending}"
    file, old = tmp_path / "a.csv", f"eventdate,n\n{START},1\n"

    def load(text: str) -> None:
        file.write_text(text)
        events("service", "drop", table, "--yes")
        assert events("service", "load", str(file), "--table", table).returncode == 0

    def hourly() -> tuple[int, str]:
        moved.now += 3600
        target = f"{tmp_path}/{{start:%FT%H}}.{ending}"
        command = ("--from", "2024-01-31", "--state", "s", "--lag", "0", "-o", target)
        return moved("-q", "export", f"from {table}", *command)

    load(old)
    assert hourly() == hourly() == (0, "")
    load(f"eventdate,n,m\n{START},x,2\n")
    assert hourly() == (0, f"svcctl: the columns are not those of earlier files any more: {now} (before: {before})\n")
    assert hourly() == (0, "")


def test_status_shows_the_options_that_a_run_of_a_state_has_to_repeat(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    given = ("--time-zone", "Europe/Madrid", "--date-format", "iso", "--limit-per-window", "500")
    assert hourly(moved, *given)[0] == 0
    code, told = hourly(moved, *given[:2])
    assert (code, told.splitlines()[0]) == (
        2,
        "svcctl: error: the state belongs to an export with another date format (--date-format iso) and another "
        "limit per window (--limit-per-window 500)",
    )
    assert moved.shell("export", "status", "timed").stdout.splitlines()[5:9] == [
        "window,1h",
        "date format,iso",
        "time zone,Europe/Madrid",
        "limit per window,500",
    ]


def test_comments_and_white_space_do_not_make_another_query(moved: Moved) -> None:
    moved.now = START + 2 * 3600
    asked = ("--from", "2024-01-31", "--state", "timed", "-o", f"{moved.shell.home}/out/{{start:%FT%H}}.csv")
    assert moved("export", f"// all\n{QUERY}\n  where n >= 0  // most", *asked)[0] == 0
    moved.now += 3600
    assert moved("export", f"{QUERY} where n >= 0", *asked)[0] == 0
    shown = moved.shell("export", "status", "timed").stdout.splitlines()
    assert (shown[2], shown[-1]) == (f"query,{QUERY} where n >= 0", "next run from,2024-01-31T02:00:00Z")


def test_a_state_whose_files_are_all_gone_says_how_to_fetch_them_again(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    moved.now += 3600
    assert hourly(moved)[0] == 0
    out = moved.shell.home / "out"
    target = f"{out}/{{start:%FT%H}}.csv"
    shutil.rmtree(out)
    told = (
        7,
        f"svcctl: error: the state 'timed' writes to '{target}', where all files are gone, and the folder that "
        f"describes them: {folder_of(Target(target))}\n"
        "hint: fetch them again with the same command, without --state and with "
        "--from 2024-01-31T00:00:00Z --to 2024-01-31T03:00:00Z --force\n",
    )
    assert moved("export", "verify", "timed") == moved("export", "status", "timed") == told
    by_path = moved("export", "verify", target)
    assert by_path == (7, told[1].replace("the state 'timed'", "a state"))
    path = States(moved.shell.home / "states").path("timed")
    document = json.loads(path.read_text())
    del document["since"]  # as an earlier version wrote it
    path.write_text(json.dumps(document))
    assert moved("export", "verify", "timed") == (
        7,
        told[1].replace("--from 2024-01-31T00:00:00Z", "--from the start of what was there"),
    )
    given = ("--from", "2024-01-31T00:00:00Z", "--to", "2024-01-31T03:00:00Z")
    assert moved("export", QUERY, *given, "--force", "-o", target)[0] == 0
    assert moved("export", "verify", "timed") == (0, "svcctl: 3 files, 998 bytes: all as they were exported\n")


def test_a_file_that_no_manifest_describes_is_told_from_one_that_no_export_wrote(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    out = moved.shell.home / "out"
    file, (folder,) = f"{out}/2024-01-31T01.csv", out.glob(".*.export")
    (folder / "manifest.json").write_text("{}")
    again = "--from 2024-01-31T00:00:00Z --to 2024-01-31T02:00:00Z --force"
    damaged = f"svcctl: error: manifest {folder}/manifest.json is damaged\nhint: "
    with_state = "fetch them again with the same command, without --state and with"
    assert moved("export", "verify", "timed") == (2, f"{damaged}{with_state} {again}\n")
    assert moved("export", "verify", file)[1].startswith(damaged)
    shutil.rmtree(folder)
    target = f"{out}/{{start:%FT%H}}.csv"
    assert moved("export", "verify", file) == (
        7,
        f"svcctl: error: the state 'timed' writes to '{target}', where the folder that describes its files is gone: "
        f"{folder}/\nhint: {with_state} {again}\n",
    )
    assert moved("export", "rm", "timed", "--yes")[0] == 0
    assert (
        moved("export", "verify", file)
        == moved("export", "status", file)
        == (
            4,
            f"svcctl: error: no manifest of an export describes {file}: whether it is whole cannot be told\n"
            "hint: if an export wrote it, its command with --force exports it again\n",
        )
    )
    assert moved("export", "verify", target)[1].startswith(
        f"svcctl: error: no manifest of an export describes {out}/2024-01-31T00.csv: "
    )


def test_another_service_or_path_of_an_export_is_told_with_what_to_give(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    service = moved.shell.environment["SVCCTL_BASE_URL"]
    moved.shell.variables["SVCCTL_BASE_URL"] = "http://127.0.0.1:9"
    assert hourly(moved) == (
        2,
        f"svcctl: error: the state belongs to an export with another service ({service})\n"
        "hint: give the profile of that service with -p, or another name to --state and another path, with "
        "--from 2024-01-31T02:00:00Z\n",
    )
    assert moved("export", QUERY, "--from", "2024-01-31", "--to", "1h", "-o", target) == (
        2,
        f"svcctl: error: {target} belongs to another export: another service ({service})\n"
        "hint: write to another path, or give the profile of that service with -p\n",
    )
    (moved.shell.home / "out" / "2024-01-31T01.csv").unlink()
    lost = (
        f"svcctl: error: {moved.shell.home}/out/2024-01-31T01.csv is missing\n{forgets('timed')}"
        f"svcctl: error: the export to {target} is not whole\n"
    )
    fetch = (
        f"fetch what is missing with: svcctl export '{QUERY}' -o '{target}' "
        "--from 2024-01-31T01:00:00Z --to 2024-01-31T02:00:00Z\n"
    )
    assert moved("export", "verify", "timed") == (7, f"{lost}hint: with a profile of {service}, {fetch}")
    moved.shell.variables["SVCCTL_CONFIG"] = f"{moved.shell.home}/config.yaml"
    store = default_store(moved.shell.environment, None)
    store.set("prod", {"base_url": f"{service}/", "token": "t"})
    named = f"{lost}hint: {fetch.replace('svcctl export', 'svcctl -p prod export')}"
    assert moved("-q", "export", "verify", "timed") == (7, named)
    assert moved("-q", "export", "verify") == (
        7,
        named.replace("the export to", "timed: the export to").replace("svcctl: if", "svcctl: timed: if"),
    )
    assert moved("export", "verify", "timed", "-p", "local") == moved("export", "verify", "timed", "-p", "prod")
    assert hourly(moved)[1].splitlines()[1] == (
        "hint: give -p prod, or another name to --state and another path, with --from 2024-01-31T02:00:00Z"
    )
    store.set("stage", {"base_url": service, "token": "t"})
    assert moved("export", "verify", "timed") == (
        7,
        f"{lost}hint: with a profile of {service} (prod or stage), {fetch}",
    )
    assert moved("export", QUERY, "--from", "2024-01-31", "--to", "1h", "-o", target)[1].splitlines()[1] == (
        "hint: write to another path, or give -p prod or -p stage"
    )
    moved.shell.variables["SVCCTL_BASE_URL"] = service
    assert moved("export", "verify", "timed") == (7, f"{lost}hint: {fetch}")
    assert moved("export", QUERY, "--state", "timed", "-o", f"{target}.gz")[1].splitlines()[1] == (
        "hint: give the same export, which 'svcctl export status timed' shows, or another name to --state, with "
        "--from 2024-01-31T02:00:00Z"
    )


def test_files_of_runs_that_overlap_are_told(moved: Moved) -> None:
    moved.now = START + 5 * 3600
    target = f"{moved.shell.home}/{{from:%FT%H}}.csv"
    for start, end in ((0, 2), (1, 3), (4, 5)):
        given = ("--from", f"2024-01-31T0{start}:00:00Z", "--to", f"2024-01-31T0{end}:00:00Z", "-o", target)
        assert moved("export", QUERY, *given)[0] == 0
    told = (
        "svcctl: files overlap, so these events are there, and counted, more than once: "
        "2024-01-31T01:00:00Z to 2024-01-31T02:00:00Z\n"
    )
    assert moved("export", "status", target) == (0, told)
    assert moved("export", "verify", target) == (0, f"{told}svcctl: 3 files, 1646 bytes: all as they were exported\n")


def test_files_of_windows_of_runs_that_overlap_are_told(moved: Moved) -> None:
    moved.now = START + 5 * 3600
    target = f"{moved.shell.home}/{{from:%H%M}}/{{start:%H%M}}.csv"
    for start, stderr in (("00:30", "rows=18 bytes=506"), ("00:00", "rows=24 bytes=662")):
        given = ("--from", f"2024-01-31T{start}:00Z", "--to", "2024-01-31T02:00:00Z", "-o", target)
        assert moved("export", QUERY, *given) == (0, f"svcctl: {stderr} windows=2 retries=0 seconds=…\n")
    assert moved("export", "status", target) == (
        0,
        "svcctl: files overlap, so these events are there, and counted, more than once: "
        "2024-01-31T00:30:00Z to 2024-01-31T01:00:00Z\n"
        "svcctl: 1 file of this pattern is not in its manifest, and not verified: "
        f"{moved.shell.home}/0030/0100.csv\n",
    )


def test_files_whose_manifest_was_lost_are_not_forgotten(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    out = moved.shell.home / "out"
    target = f"{out}/{{start:%FT%H}}.csv"
    (folder,) = out.glob(".*.export")
    shutil.rmtree(folder)
    moved.now += 2 * 3600
    assert hourly(moved, "-q") == (
        0,
        "svcctl: the manifest of earlier runs is gone: 'svcctl export verify timed' tells of which files\n",
    )
    told = (
        7,
        "svcctl: error: 2024-01-31 00:00:00 to 2024-01-31 02:00:00 UTC was exported, but the manifest does not have "
        "its files any more\n"
        "svcctl: 2 files of this pattern are not in its manifest, and not verified: "
        f"{out}/2024-01-31T00.csv, {out}/2024-01-31T01.csv\n"
        f"svcctl: error: the export to {target} is not whole\n"
        + hinted(target, "--from 2024-01-31T00:00:00Z --to 2024-01-31T02:00:00Z --force", what="fetch them again"),
    )
    assert moved("export", "verify", "timed") == told
    shown = moved.shell("export", "status", "timed")
    assert shown.stdout.splitlines()[-2] == "unknown,2024-01-31T00:00:00Z to 2024-01-31T02:00:00Z"
    assert shown.stderr == (
        "svcctl: 2 files of this pattern are not in its manifest, and not verified: "
        f"{out}/2024-01-31T00.csv, {out}/2024-01-31T01.csv\n"
        "svcctl: the manifest does not have all earlier files: svcctl export verify timed\n"
    )
    given = ("--from", "2024-01-31T00:00:00Z", "--to", "2024-01-31T02:00:00Z")
    assert moved("export", QUERY, *given, "--force", "-o", target)[0] == 0
    assert moved("export", "verify", "timed") == (0, "svcctl: 4 files, 1334 bytes: all as they were exported\n")


def test_files_of_runs_whose_manifest_was_lost_come_back_as_they_were(moved: Moved) -> None:
    target = f"{moved.shell.home}/{{from:%FT%H}}.csv"
    moved.now = START + 3 * 3600
    for _ in range(2):
        assert moved("export", QUERY, "--from", "2024-01-31", "--state", "runs", "-o", target)[0] == 0
        moved.now += 2 * 3600
    before = {file.name: file.read_bytes() for file in moved.shell.home.glob("*.csv")}
    (folder,) = moved.shell.home.glob(".*.export")
    shutil.rmtree(folder)
    span = ("--from", "2024-01-31T00:00:00Z", "--to", "2024-01-31T04:00:00Z")
    ranges = [(*span[:3], "2024-01-31T02:00:00Z"), ("--from", "2024-01-31T02:00:00Z", *span[2:])]
    each = [f"{' '.join(given)} --force" for given in ranges]
    gone = moved("export", "verify", "runs")[1]
    assert gone.splitlines()[1] == (
        f"hint: fetch them again with the same command, without --state and with {', then with '.join(each)}"
    )
    assert moved("export", QUERY, "--state", "runs", "-o", target)[0] == 0
    strange = moved.shell.home / "2024-01-30T02.csv"  # no run of the state wrote it
    strange.touch()
    assert moved("export", "verify", "runs")[1].splitlines(keepends=True)[-1] == (
        hinted(
            target,
            f"{' '.join(span)} --force",
            what="move the files of this range to another folder; then fetch them again",
        )
    )
    strange.unlink()
    hint = hinted(target, *each, what="fetch them again")
    assert moved("export", "verify", "runs")[1].splitlines(keepends=True)[-1] == hint
    for given in ranges:
        assert moved("export", QUERY, *given, "--force", "-o", target)[0] == 0
    assert moved("export", "verify", "runs") == (0, "svcctl: 3 files, 1970 bytes: all as they were exported\n")
    assert before.items() <= {file.name: file.read_bytes() for file in moved.shell.home.glob("*.csv")}.items()


def test_states_are_listed_and_removed_and_their_files_stay(moved: Moved) -> None:
    assert moved.shell("export", "status").stdout == "name,target,until,missing,failed\n"
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    given = ("--from", "2024-01-31", "--to", "1h", "--state", "other", "-o", "other/{start:%FT%H}.csv")
    assert moved.shell("export", QUERY, *given).returncode == 0
    listed = (
        "name,target,until,missing,failed\n"
        f"other,{moved.shell.home}/other/{{start:%FT%H}}.csv,2024-01-31T01:00:00Z,0,\n"
        f"timed,{moved.shell.home}/out/{{start:%FT%H}}.csv,2024-01-31T02:00:00Z,0,\n"
    )
    assert moved.shell("export", "status").stdout == listed
    (moved.shell.home / "out" / "2024-01-31T01.csv").unlink()
    far = State("key", "s3://bucket/{start:%H}.csv", START, 3600)
    new = State("key", f"{moved.shell.home}/new/{{start:%H}}.csv", START, 3600, since=START)
    default_states(moved.shell.environment).save("far", far)
    default_states(moved.shell.environment).save("new", new)
    manifest = next((moved.shell.home / "other").glob(".*.export/manifest.json"))
    manifest.write_text("{}")
    shown = moved.shell("export", "status")
    assert shown.stdout == (
        "name,target,until,missing,failed\n"
        "far,s3://bucket/{start:%H}.csv,2024-01-31T00:00:00Z,,\n"
        f"new,{moved.shell.home}/new/{{start:%H}}.csv,2024-01-31T00:00:00Z,0,\n"
        f"other,{moved.shell.home}/other/{{start:%FT%H}}.csv,2024-01-31T01:00:00Z,,\n"
        f"timed,{moved.shell.home}/out/{{start:%FT%H}}.csv,2024-01-31T02:00:00Z,1,\n"
    )
    assert (shown.returncode, shown.stderr) == (
        0,
        f"svcctl: manifest {manifest.relative_to(moved.shell.home)} is damaged\n",
    )
    lost = f"the state 'other' of {moved.shell.home}/other/{{start:%FT%H}}.csv, up to 2024-01-31T01:00:00Z"
    assert moved("export", "rm", "other") == (
        2,
        f"svcctl: error: this needs confirmation: Remove {lost}? Its files stay.\nhint: add --yes\n",
    )
    assert moved("export", "rm", "other", "--yes") == (0, f"svcctl: removed {lost}; its files stay\n")
    assert moved("export", "rm", "other", "--yes") == (
        4,
        "svcctl: error: no export state 'other'\nhint: states are: far, new, timed\n",
    )
    assert (moved.shell.home / "other" / "2024-01-31T00.csv").is_file()
    file = default_states(moved.shell.environment).path("timed")
    file.write_text("{")
    assert moved("export", "rm", "timed", "--yes") == (
        0,
        "svcctl: removed the damaged state 'timed'; its files stay\n",
    )
    assert not file.exists()


def test_verify_without_a_name_verifies_the_exports_of_all_states(moved: Moved, tmp_path: Path) -> None:
    moved.now = START + 3 * 3600
    assert moved("export", "verify") == (0, f"svcctl: no states in {moved.shell.home}/states\n")
    targets = {name: f"{tmp_path}/{name}/{{start:%FT%H}}.csv" for name in "abc"}
    for name, target in targets.items():
        assert moved("export", QUERY, "--from", "2024-01-31", "--state", name, "-o", target)[0] == 0
    whole = [f"svcctl: {name}: 2 files, 662 bytes: all as they were exported" for name in "abc"]
    assert moved("export", "verify") == (0, "".join(f"{line}\n" for line in whole))
    (tmp_path / "b" / "2024-01-31T00.csv").unlink()
    code, told = moved("export", "verify")
    assert (code, told.splitlines()) == (
        7,
        [
            whole[0],
            f"svcctl: error: {tmp_path}/b/2024-01-31T00.csv is missing",
            "svcctl: b: if files were removed on purpose: svcctl export forget b",
            f"svcctl: error: b: the export to {targets['b']} is not whole",
            hinted(targets["b"], "--from 2024-01-31T00:00:00Z --to 2024-01-31T01:00:00Z").rstrip(),
            whole[2],
        ],
    )


def test_a_hint_names_the_first_of_many_files_and_verify_the_next_ones(moved: Moved) -> None:
    moved.now += 3600
    target = f"{moved.shell.home}/{{from:%H%M}}.csv"
    starts = [START + minutes * 60 for minutes in range(0, 50, 10)]
    ranges = [f"--from {moment(start)} --to {moment(start + 600)}" for start in starts]
    for given in ranges:
        assert moved("export", QUERY, *given.split(), "-o", target)[0] == 0
    for path in moved.shell.home.glob("*.csv"):
        path.unlink()
    hint = moved("export", "verify", target)[1].splitlines(keepends=True)[-1]
    assert hint == hinted(target, *ranges[:3], what="fetch what is missing, the first 3 of 5 files,")


def test_an_end_before_the_start_that_a_state_gives_is_refused(moved: Moved) -> None:
    moved.now = START + 5 * 3600
    assert hourly(moved)[0] == 0
    assert hourly(moved, "--to", "today") == (
        2,
        "svcctl: error: --to is 2024-01-31 00:00:00 UTC, before the start that comes from the state: "
        "2024-01-31 04:00:00 UTC\n"
        "hint: leave out --to to go on from there, or leave out --state to export another range\n",
    )


def test_a_length_as_the_end_counts_from_where_each_run_of_a_state_starts(moved: Moved) -> None:
    moved.now = START + 5 * 3600
    more = "svcctl: 2 more windows have ended: without --to, the next run exports all\n"
    for due, waiting in ((more, 3), ("", 1)):
        code, said = hourly(moved, "--to", "2h")
        assert (code, said.split(" bytes")[0], said.partition("\n")[2]) == (0, "svcctl: rows=24", due)
        have = "windows have" if waiting > 1 else "window has"
        since = f"2024-01-31T0{5 - waiting}:00:00Z"
        told = f"svcctl: {waiting} {have} ended since {since}\n"
        assert moved("export", "status", "timed", stderr=Terminal()) == (0, told)
    assert moved("export", "status", "timed") == (0, "")
    assert left(moved.shell.home / "out") == [f"2024-01-31T0{hour}.csv" for hour in range(4)]


def test_an_export_whose_service_is_gone_says_how_it_goes_on(moved: Moved, proxied: tuple[Shell, FaultyProxy]) -> None:
    moved.now = START + 3 * 3600
    proxied[1].choose = broken(0, 1)
    code, said = hourly(moved, "--retries", "0")
    assert (code, said.splitlines()[1:]) == (6, ["hint: the same command again fetches only what is missing"])


def test_a_target_that_does_not_answer_is_named_with_what_to_check(home: Shell) -> None:
    url = f"hdfs://127.0.0.1:{free_port()}"
    done = home("export", QUERY, *HOURS, "-o", f"{url}/out/all.csv")
    assert (done.returncode, done.stderr) == (
        6,
        f"svcctl: error: {url}/out/all.csv: no connection to {url}: Connection refused\n"
        "hint: check host and port of the NameNode, and that it runs; "
        "the same command again fetches only what is missing\n",
    )


def test_the_figures_of_a_run_are_written_after_a_failure_too(
    moved: Moved, proxied: tuple[Shell, FaultyProxy], tmp_path: Path
) -> None:
    file = tmp_path / "svcctl.prom"
    moved.now = START + 3 * 3600

    def figures() -> dict[str, str]:
        lines = [line.split(" ") for line in file.read_text().splitlines() if not line.startswith("#")]
        return {name.removeprefix("svcctl_export_").removesuffix('{export="timed"}'): value for name, value in lines}

    proxied[1].choose = broken(1)
    assert hourly(moved, "--metrics", str(file), "--retries", "0")[0] == 6
    ended = {"timestamp_seconds": "1706670000", "duration_seconds": "0", "retries": "0"}
    failed = figures()
    fetched = int(failed["windows_fetched"])  # the other worker may have been at its window still
    assert failed == ended | {
        "success": "0",
        "until_seconds": "1706659200",
        "rows": str(12 * fetched),
        "bytes": failed["bytes"],
        "windows": "2",
        "windows_fetched": str(fetched),
        "windows_missing": str(2 - fetched),
    }
    proxied[1].choose = lambda body: None
    assert hourly(moved, "--metrics", str(file))[0] == 0
    assert figures() == ended | {
        "success": "1",
        "until_seconds": "1706666400",
        "rows": "24",
        "bytes": "662",
        "windows": "2",
        "windows_fetched": figures()["windows_fetched"],
        "windows_missing": "0",
    }
    nothing = ("rows", "bytes", "windows", "windows_fetched", "windows_missing")
    nothing_yet = ended | {"success": "1", "until_seconds": "1706666400", **dict.fromkeys(nothing, "0")}
    assert (hourly(moved, "--metrics", str(file))[0], figures()) == (0, nothing_yet)
    assert hourly(moved, "--metrics", str(file), "--to", "today")[0] == 2
    assert figures() == nothing_yet | {"success": "0"}
    assert hourly(moved, "--metrics", str(file))[0] == 0
    for mistake in (("--window", "1x"), ("--log-format", "xml"), ("--var", "x"), ("-f", "doc"), ("-F", "nowhere.q")):
        assert hourly(moved, "--metrics", str(file), *mistake)[0] == 2
        assert figures() == nothing_yet | {"success": "0"}
        assert hourly(moved, "--metrics", str(file))[0] == 0
    with States(moved.shell.home / "states").locked("timed"):
        assert hourly(moved, "--metrics", str(file))[0] == 9
    assert figures() == nothing_yet
    (moved.shell.home / "states" / "timed.json").write_text("{")
    assert hourly(moved, "--metrics", str(file))[0] == 2
    assert figures() == nothing_yet | {"success": "0", "until_seconds": "0"}


def test_a_mistake_in_a_query_is_in_the_figures(home: Shell) -> None:
    figures = home.home / "a.prom"
    for query, code in (
        ("from timed.events wher n = 1", 1),
        ("from timed.nothing", 1),
        ("from timed.events limit 1", 2),
    ):
        assert home("export", query, *HOURS, "-o", "all.csv", "--metrics", "a.prom").returncode == code
        lines = [line for line in figures.read_text().splitlines() if not line.startswith("#")]
        assert lines[0] == f'svcctl_export_success{{export="{home.home}/all.csv"}} 0'
        assert len(lines) == 10
        figures.unlink()


def test_a_state_belongs_to_a_directory_and_is_found_from_another_one(
    moved: Moved, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved.now = START + 3 * 3600
    one, other = moved.shell.home / "a", moved.shell.home / "b"
    command = ("export", QUERY, "--from", "2024-01-31", "--state", "there", "-o", "{start:%FT%H}.csv")
    for folder in (one, other):
        folder.mkdir()
    monkeypatch.chdir(one)
    assert moved(*command)[0] == 0
    monkeypatch.chdir(other)
    assert moved(*command) == (
        2,
        f"svcctl: error: the state belongs to the export to {one}/{{start:%FT%H}}.csv\n"
        f"hint: run it in {one}, or give another name to --state\n",
    )
    assert moved("export", "verify", "there") == (0, "svcctl: 2 files, 662 bytes: all as they were exported\n")
    (one / "2024-01-31T00.csv").rename(one / "2024-01-30T00.csv")
    assert moved("export", "verify", "there") == (
        7,
        f"svcctl: error: {one}/2024-01-31T00.csv is missing\n"
        "svcctl: 1 file of this pattern is not in its manifest, and not verified: "
        f"{one}/2024-01-30T00.csv\n{forgets('there')}"
        f"svcctl: error: the export to {one}/{{start:%FT%H}}.csv is not whole\n"
        f"{hinted(f'{one}/{{start:%FT%H}}.csv', '--from 2024-01-31T00:00:00Z --to 2024-01-31T01:00:00Z')}",
    )
    assert f"target,{one}/{{start:%FT%H}}.csv\n" in moved.shell("export", "status", "there").stdout
    (one / "2024-01-30T00.csv").rename(one / "2024-01-31T00.csv")
    hidden = folder_of(Target(f"{one}/{{start:%FT%H}}.csv"))
    shutil.move(hidden, one / "hidden")
    assert moved("export", "verify", "there")[1].startswith(
        f"svcctl: error: the state 'there' writes to '{one}/{{start:%FT%H}}.csv', "
        f"where the folder that describes its files is gone: {hidden}\n"
    )
    shutil.move(one / "hidden", hidden)
    path = States(moved.shell.home / "states").path("there")
    document = json.loads(path.read_text())
    del document["directory"]  # as an earlier version wrote it
    path.write_text(json.dumps(document))
    assert moved("export", "status", "there") == (
        4,
        "svcctl: error: the state 'there' writes to '{start:%FT%H}.csv', where nothing is exported\n"
        "hint: its path is relative: ask in the directory in which its export runs\n",
    )
    monkeypatch.chdir(one)
    moved.now += 3600
    assert moved(*command)[0] == 0


def test_a_state_knows_its_target_in_every_spelling(moved: Moved, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = moved.shell.home / "q"
    folder.mkdir()
    monkeypatch.chdir(moved.shell.home)
    spellings = ("q/{start:%FT%H}.csv", f"{folder}/{{start:%FT%H}}.csv", "./q/../q/{start:%FT%H}.csv")
    for hours, target in enumerate(spellings, 3):
        moved.now = START + hours * 3600
        assert moved("export", QUERY, "--from", "2024-01-31", "--window", "1h", "--state", "s", "-o", target)[0] == 0
    monkeypatch.chdir(folder)
    moved.now += 3600
    assert moved("export", QUERY, "--state", "s", "--window", "1h", "-o", "{start:%FT%H}.csv")[0] == 0
    assert sorted(path.name for path in folder.glob("*.csv")) == [f"2024-01-31T0{hour}.csv" for hour in range(5)]
    assert moved("export", "verify", "s")[0] == moved("export", "verify", "../q/{start:%FT%H}.csv")[0] == 0
    monkeypatch.chdir(moved.shell.home)
    assert moved("export", QUERY, "--state", "s", "--window", "1h", "-o", "{start:%FT%H}.csv")[1].startswith(
        f"svcctl: error: the state belongs to the export to {folder}/{{start:%FT%H}}.csv\n"
    )


def test_an_export_is_the_same_from_every_directory(moved: Moved, monkeypatch: pytest.MonkeyPatch) -> None:
    moved.now = START + 7 * 3600
    folder = moved.shell.home / "q"
    folder.mkdir()
    asked = ("export", QUERY, *HOURS, "--window", "1h")
    whole = "svcctl: 6 files, 2006 bytes: all as they were exported\n"
    for name, there in (("one.csv", whole.replace("6 files, 2006", "1 file, 1946")), ("{start:%H}.csv", whole)):
        monkeypatch.chdir(moved.shell.home)
        assert moved(*asked, "-o", f"q/{name}")[0] == 0
        monkeypatch.chdir(folder)
        for target in (name, f"{folder}/{name}", f"../q/{name}"):
            assert moved("export", "verify", target) == (0, there)
            place = target.removesuffix(name)
            files = f"6 files are already whole: {place}00.csv to {place}05.csv; --force fetches them again"
            said = f"{target} is already whole; --force fetches it again" if name == "one.csv" else files
            assert moved(*asked, "-o", target) == (0, f"svcctl: nothing to do: {said}\n")
    (folder / "01.csv").unlink()
    assert moved(*asked, "-o", f"{folder}/{{start:%H}}.csv")[0] == 0
    monkeypatch.chdir(moved.shell.home)
    assert moved("export", "verify", "q/{start:%H}.csv") == (0, whole)


def test_a_first_run_that_goes_on_or_was_killed_has_a_status(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(1, fault="stall")
    process = shell.start(
        "export", QUERY, *HOURS, "--state", "first", "-o", "{start:%FT%H}.csv", stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 30
        while proxy.asked.total() < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "next run from,2024-01-31T00:00:00Z" in shell("export", "status", "first").stdout
        hint = "hint: a run of this export is going on: verify it again when that has ended"
        assert shell("export", "verify", "first").stderr.splitlines()[-1] == hint
    finally:
        process.kill()
        process.communicate()
    assert "next run from,2024-01-31T00:00:00Z" in shell("export", "status", "first").stdout
    proxy.choose = broken()
    verified = shell("export", "verify", "first")
    assert verified.stderr.splitlines()[-1] == (
        "hint: run the export again: it fetches only what is missing: "
        f"svcctl export '{QUERY}' -o '{{start:%FT%H}}.csv' --state first"
    )
    assert shell(*pasted(verified.stderr), "--to", "6h").returncode == 0
    assert shell("export", "verify", "first").returncode == 0


def test_a_range_that_has_not_ended_is_refused(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert moved("export", QUERY, *HOURS, "-o", "all.csv") == (
        2,
        "svcctl: error: the range ends in the future, at 2024-01-31 06:00:00 UTC\n"
        "hint: give --to now, or add --lag 10m to leave out the windows that have not ended\n",
    )
    assert moved("export", QUERY, "--from", "1h", "--to", "2h", "-o", "all.csv")[1].endswith(
        "\nhint: --to 2h counts from --from; 1h to 2h ago is --from 2h --to 1h\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("export", QUERY, "-o", "all.csv"),
            "svcctl: error: the range has no start\nhint: give it with --from\n",
        ),
        (
            ("export", QUERY, "--from", "2024-01-31 10:00:53.718", "-o", "all.csv"),
            "svcctl: error: '2024-01-31 10:00:53.718' has a fraction of a second\n"
            "hint: dates here are whole seconds: 2024-01-31T10:00:53Z or 2024-01-31T10:00:54Z\n",
        ),
        (
            ("export", QUERY, *HOURS, "--to", "1706695253.718", "-o", "all.csv"),
            "svcctl: error: '1706695253.718' has a fraction of a second\n"
            "hint: dates here are whole seconds: 2024-01-31T10:00:53Z or 2024-01-31T10:00:54Z\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "-", "-f", "csv"),
            "svcctl: error: an export is written to files\nhint: to print rows: svcctl query\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "/dev/stdout", "-f", "csv"),
            "svcctl: error: an export is written to files\nhint: to print rows: svcctl query\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", ""),
            "svcctl: error: --output is empty\nhint: name a file, as in -o events.csv\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "."),
            "svcctl: error: . is a directory\nhint: name a file in it, as in -o events.csv\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "new/"),
            "svcctl: error: new/ ends with / and names no file\nhint: name one in it, as in -o new/events.csv\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "~/all.csv"),
            "svcctl: error: ~/all.csv begins with ~, which the shell replaces outside quotes only\n"
            'hint: write "$HOME/all.csv"\n',
        ),
        (
            ("export", QUERY, *HOURS, "-o", "out/${NO_NAME}/{start:%H}.csv"),
            "svcctl: error: out/${NO_NAME}/{start:%H}.csv has ${NO_NAME} in it, which the shell replaces outside "
            'single quotes only\nhint: write "out/${NO_NAME}/{start:%H}.csv"\n',
        ),
        (
            ("export", QUERY, *HOURS, "-o", "new/%Y/%m/%d.csv"),
            "svcctl: error: 'new/%Y/%m/%d.csv' has %Y/%m/%d outside of braces, where no date is filled in\n"
            "hint: write {start:%Y/%m/%d} for a file per window, {from:%Y/%m/%d} for a file per run; %% is a percent "
            "sign\n",
        ),
        (
            ("export", "--status", "auth"),
            "svcctl: error: no such option: --status\n"
            "hint: use: svcctl export status NAME; see 'svcctl export --help'\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.json"),
            "svcctl: error: the ending of 'all.json' is not that of an export format\n"
            "hint: endings are .csv, .tsv, .ndjson or .jsonl, each with .gz or .zst, and .parquet; "
            "another one needs --format\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "nowhere/all.csv"),
            "svcctl: error: the directory nowhere does not exist\nhint: make it with: mkdir -p nowhere\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "no%%F/all.csv"),
            "svcctl: error: the directory no%F does not exist\nhint: make it with: mkdir -p no%F\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "/proc/all.csv"),
            "svcctl: error: cannot write /proc/all.csv: No such file or directory\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--max-time", "soon"),
            "svcctl: error: 'soon' is not a time limit\nhint: write seconds such as 30, or a length such as 5m\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--metrics", "nowhere/a.prom"),
            "svcctl: error: the metrics file nowhere/a.prom cannot be written: no such directory, or no permission\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--metrics", "$NO_NAME/a.prom"),
            "svcctl: error: $NO_NAME/a.prom has $NO_NAME in it, which the shell replaces outside single quotes only\n"
            'hint: write "$NO_NAME/a.prom"\n',
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--window", "1x"),
            "svcctl: error: '1x' is not a valid length\nhint: write it as 30s, 5m, 1h or 1d\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--on-error", "ignore"),
            "svcctl: error: unknown --on-error 'ignore'\nhint: it is one of: stop, continue\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.ndjson", "--date-format", "iso"),
            "svcctl: error: --date-format goes with csv and tsv, not with ndjson\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "a.parquet", "--date-format", "iso", "--time-zone", "Europe/Berlin"),
            "svcctl: error: --date-format goes with csv and tsv, not with parquet\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "out/{start:"),
            "svcctl: error: 'out/{start:' is not a pattern: unmatched '{' in format spec\n"
            "hint: in a crontab, write \\% for %: cron ends the command at %\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv.xz", "-f", "csv"),
            "svcctl: error: svcctl writes no .xz files\nhint: write .gz or .zst instead\n",
        ),
    ],
)
def test_impossible_exports_are_refused_with_a_hint(home: Shell, arguments: tuple[str, ...], told: str) -> None:
    done = home(*arguments)
    assert (done.returncode, done.stderr, left(home.home)) == (2, told, [])


@pytest.mark.parametrize(("name", "ending"), [("all.pdf", "pdf"), ("{from:%H}.json", "json")])
def test_a_name_that_means_another_format_is_told_as_a_query_does(home: Shell, name: str, ending: str) -> None:
    done = home("export", QUERY, *HOURS, "-o", name, "-f", "csv")
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, f"svcctl: {name} holds csv, not {ending}")


def test_a_mistake_in_the_query_is_shown_once_and_not_as_that_of_a_window(home: Shell) -> None:
    done = home("export", f"{QUERY} select m", *HOURS, "-o", "all.csv", "--on-error", "continue")
    assert (done.returncode, re.sub(r"cid \w+", "cid …", done.stderr), left(home.home)) == (
        1,
        "svcctl: error: line 1, column 26: no column 'm' (columns are eventdate, n) (code 1, cid …)\n"
        "  from timed.events select m\n"
        "                           ^\n",
        [],
    )


def test_what_never_ran_has_no_status(home: Shell) -> None:
    done = home("export", "status", "nothing")
    assert (done.returncode, done.stderr) == (
        4,
        "svcctl: error: no export goes to 'nothing', and no state has that name\n"
        "hint: give the path as it was given to -o\n",
    )


def test_the_exports_to_a_folder_are_named_by_what_they_were_given(home: Shell) -> None:
    for target in ("out/{start:%H}.csv", "out/day.csv"):
        (home.home / "out").mkdir(exist_ok=True)
        assert home("export", QUERY, *HOURS, "-o", target).returncode == 0
    for folder, prefix in (("out", "out"), ("out/", "out"), (f"{home.home}/out", f"{home.home}/out")):
        done = home("export", "verify", folder)
        assert (done.returncode, done.stderr) == (
            4,
            f"svcctl: error: no export goes to '{folder}', and no state has that name\n"
            f"hint: exports to this folder are: '{prefix}/{{start:%H}}.csv', {prefix}/day.csv\n",
        )


def test_ctrl_c_leaves_no_file_and_the_next_run_completes_it(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    command = ("export", QUERY, *HOURS, "-o", "all.csv", "--workers", "2")
    proxy.choose = broken(4, fault="stall")
    process = shell.start(*command, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while proxy.asked.total() < 6:  # the others are there, and one hangs
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == (
        b"svcctl: interrupted\nhint: the same command again fetches only what is missing\n"
    )
    assert (process.returncode, left(shell.home)) == (130, [])
    proxy.choose = lambda body: None
    assert shell(*command).returncode == 0
    assert (shell.home / "all.csv").read_text() == shell("query", QUERY, *HOURS, "-f", "csv").stdout


@pytest.mark.parametrize(
    ("sent", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_collectors_learn_that_a_signal_ended_the_export(
    proxied: tuple[Shell, FaultyProxy], sent: signal.Signals, code: int, said: str
) -> None:
    shell, proxy = proxied
    proxy.choose = broken(4, fault="stall")
    collected = ("--metrics", "a.prom", "--log-format", "json")
    process = shell.start(
        "export", QUERY, *HOURS, "-o", "all.csv", "--workers", "1", *collected, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 30
    while proxy.asked.total() < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(sent)
    events = [json.loads(line) for line in process.communicate(timeout=20)[1].splitlines()]
    resumes = "the same command again fetches only what is missing"
    told = {"event": "error", "message": said, "hint": resumes, "exit": code}
    assert events[-1] == told
    assert (process.returncode, left(shell.home)) == (code, ["a.prom"])
    assert f'svcctl_export_success{{export="{shell.home}/all.csv"}} 0\n' in (shell.home / "a.prom").read_text()


def test_the_last_event_of_an_export_has_its_range_and_files(home: Shell) -> None:
    for name, files in (("all.csv", {"file": "all.csv"}), ("{start:%H}.csv", {"files": 6, "first": "00.csv"})):
        done = home("export", QUERY, *HOURS, "-o", name, "--log-format", "json")
        summary = json.loads(done.stderr.splitlines()[-1])
        assert (summary["event"], summary["rows"]) == ("summary", 72)
        assert summary.items() >= {"from": "2024-01-31T00:00:00Z", "to": "2024-01-31T06:00:00Z", **files}.items()


def test_a_job_with_an_empty_environment_exports(home: Shell) -> None:
    """cron and systemd give a job little more than a home."""
    variables = [f"{name}={home.environment[name]}" for name in ("HOME", "SVCCTL_DATA")]
    command = [*SVCCTL, "-q", "export", QUERY, *HOURS, "--state", "timed", "-o", "{start}.csv"]
    done = subprocess.run(
        ["env", "-i", *variables, *command], cwd=home.home, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (home.home / ".local/state/svcctl/exports/timed.json").exists()
    assert len(left(home.home)) == 6
