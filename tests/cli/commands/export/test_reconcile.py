"""`svcctl export reconcile`: what it prints, its exit codes, and what it asks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from support.faults import FaultyProxy
from support.shells import Shell
from support.timed_events import START, Moved

from svcctl.exports.state import States


class Table:
    """A table of its own, an export of it in files of hours, and what arrives in it."""

    def __init__(self, moved: Moved, service: Shell, proxy: FaultyProxy) -> None:
        self.moved, self.service, self.proxy = moved, service, proxy
        self.name = f"late.t{uuid4().hex}"
        self.target = f"{moved.shell.home}/{{start:%FT%H}}.csv"
        self.number = 0

    def arrive(self, *hours: int) -> None:
        file = self.moved.shell.home / "arriving.csv"
        rows = [f"{datetime.fromtimestamp(START + 3600 * hour + 60, UTC):%F %T},{hour}" for hour in hours]
        file.write_text("\n".join(["eventdate,n", *rows, ""]))
        done = self.service("service", "load", str(file), "--table", self.name)
        assert done.returncode == 0, done.stderr
        file.unlink()
        self.proxy.forget()

    def export(self, *more: str, hours: int = 6) -> None:
        self.moved.now = START + 3600 * hours
        given = ("--from", "2024-01-31", "--state", "late", "--lag", "0", "-o", self.target, *more)
        code, told = self.moved("export", f"from {self.name}", *given)
        assert code == 0, told

    def reconcile(self, *more: str) -> tuple[int, str]:
        self.proxy.asked.clear()
        return self.moved("export", "reconcile", "late", *more)

    def printed(self, *more: str) -> tuple[int, str]:
        """The exit code and the data of the real command."""
        done = self.moved.shell("export", "reconcile", "late", *more)
        return done.returncode, done.stdout


@pytest.fixture
def table(moved: Moved, events: Shell, proxied: tuple[Shell, FaultyProxy]) -> Table:
    return Table(moved, events, proxied[1])


def test_a_window_that_changed_is_a_row_for_whoever_loads_the_files(table: Table) -> None:
    table.arrive(*range(6))
    table.export()
    home = table.moved.shell.home
    assert table.reconcile() == (0, "svcctl: 6 windows compared, 0 replaced\n")
    assert table.proxy.asked.total() == 1
    table.arrive(1, 4, 4)
    assert table.reconcile("--dry-run") == (10, "svcctl: error: 2 of 6 windows differ from the service\n")
    assert table.reconcile("--dry-run", "--to", "2024-01-31T02:00:00Z")[1].startswith("svcctl: error: 1 of 2 windows")
    code, rows = table.printed("-f", "ndjson")
    assert (code, [json.loads(row) for row in rows.splitlines()]) == (
        0,
        [
            {"start": "2024-01-31T01:00:00Z", "before": 1, "now": 2, "file": f"{home}/2024-01-31T01.csv"},
            {"start": "2024-01-31T04:00:00Z", "before": 1, "now": 3, "file": f"{home}/2024-01-31T04.csv"},
        ],
    )
    assert len((home / "2024-01-31T04.csv").read_text().splitlines()) == 4
    assert table.printed() == (0, "start,before,now,file\n")
    assert table.moved("export", "verify", "late")[0] == 0


def test_files_that_are_lost_are_no_export_that_equals_the_service(table: Table) -> None:
    table.arrive(*range(6))
    table.export()
    (table.moved.shell.home / "2024-01-31T02.csv").unlink()
    table.arrive(4)
    for options in ([], ["--deep"], ["--dry-run", "--from", "2024-01-31T02:00:00Z"]):
        code, told = table.reconcile(*options)
        assert (code, "2024-01-31T02.csv" in told, "svcctl export verify late" in told) == (7, True, True)
    assert table.reconcile("--from", "2024-01-31T03:00:00Z") == (0, "svcctl: 3 windows compared, 0 replaced\n")


def test_fewer_rows_are_reported_and_not_stored_unless_allowed(table: Table) -> None:
    table.arrive(*range(6), 2)
    table.export()
    assert table.service("service", "drop", table.name, "--yes").returncode == 0
    table.arrive(*range(6))
    assert table.reconcile() == (
        10,
        "svcctl: error: 1 window has fewer rows at the service: 2024-01-31 02:00:00 to 2024-01-31 03:00:00 UTC now has "
        "1 instead of 2\nhint: their files stay; --allow-fewer replaces them\n",
    )
    assert table.reconcile("--deep")[0] == 10
    assert table.moved("export", "verify", "late")[0] == 0
    assert table.printed("--allow-fewer")[1].splitlines()[1].startswith("2024-01-31T02:00:00Z,2,1,")
    assert table.reconcile()[0] == 0


@pytest.mark.parametrize("query", ["", " group every 1h by n % 2 as kind select count() as c"])
@pytest.mark.parametrize("day", ["2024-03-31", "2024-10-27"])
def test_days_of_23_and_25_hours_are_compared(table: Table, day: str, query: str) -> None:
    first = int(datetime.fromisoformat(f"{day}T12:00:00Z").timestamp() - START) // 3600
    table.arrive(first, first + 24)
    zone = ("--time-zone", "Europe/Berlin", "--window", "1d")
    target = f"{table.moved.shell.home}/{{start:%F}}.csv"
    ends = (f"{day}T00:00:00+0{1 if '03' in day else 2}:00", "3d")
    table.moved.now = START + 3600 * (first + 100)
    command = ("export", f"from {table.name}{query}", "--from", ends[0], "--to", ends[1], *zone, "-o", target)
    assert table.moved(*command)[0] == 0
    assert table.moved("export", "reconcile", target)[0] == 0
    table.arrive(first)
    assert table.moved("export", "reconcile", target, "--dry-run")[0] == 10
    assert table.moved("export", "reconcile", target)[0] == 0
    assert table.moved("export", "reconcile", target, "--dry-run")[0] == 0
    assert table.moved("export", "verify", target)[0] == 0


def test_parquet_is_fetched_again_whole_after_saying_so(table: Table) -> None:
    table.arrive(*range(6))
    target = f"{table.moved.shell.home}/all.parquet"
    table.moved.now = START + 6 * 3600
    given = ("--from", "2024-01-31", "--to", "6h", "-o", target)
    assert table.moved("export", f"from {table.name}", *given)[0] == 0
    table.arrive(2)
    code, told = table.moved("export", "reconcile", target)
    assert (code, told.splitlines()[0]) == (
        0,
        f"svcctl: {target} is fetched again as a whole: its windows cannot be replaced one by one",
    )
    assert table.moved("export", "reconcile", target, "--deep")[1] == "svcctl: 6 windows compared, 0 replaced\n"
    assert table.moved("export", "verify", target)[0] == 0


def test_a_window_of_a_merged_file_is_a_row_once_the_file_is_replaced(table: Table) -> None:
    table.arrive(*range(6))
    target = f"{table.moved.shell.home}/all.csv"
    table.moved.now = START + 6 * 3600
    given = ("--from", "2024-01-31", "--to", "6h", "-o", target)
    assert table.moved("export", f"from {table.name}", *given)[0] == 0
    table.arrive(1, 4)
    failing = START + 3600
    table.proxy.choose = lambda body: "503" if json.loads(body or b"{}").get("from") == failing else None

    def printed() -> tuple[int, list[str]]:
        done = table.moved.shell("export", "reconcile", target, "--retries", "0")
        return done.returncode, [row[:20] for row in done.stdout.splitlines()[1:]]

    assert printed() == (6, [])
    table.proxy.choose = lambda body: None
    assert printed() == (0, ["2024-01-31T01:00:00Z", "2024-01-31T04:00:00Z"])


def test_windows_that_cannot_be_fetched_do_not_stop_the_others_and_come_next_time(table: Table) -> None:
    table.arrive(*range(6))
    table.export()
    table.arrive(1, 4)
    failing = START + 3600
    table.proxy.choose = lambda body: "503" if json.loads(body or b"{}").get("from") == failing else None
    code, rows = table.printed("--retries", "0")
    assert (code, [row[:20] for row in rows.splitlines()[1:]]) == (6, ["2024-01-31T04:00:00Z"])
    table.proxy.choose = lambda body: None
    assert [row[:20] for row in table.printed()[1].splitlines()[1:]] == ["2024-01-31T01:00:00Z"]


def test_the_figures_of_a_reconcile_count_the_windows_that_change_twice(table: Table, tmp_path: Path) -> None:
    table.arrive(*range(6))
    table.export()
    file = tmp_path / "late.prom"

    def figures() -> tuple[str, ...]:
        assert table.reconcile("--metrics", str(file))[0] == 0
        told = dict(line.rsplit(" ", 1) for line in file.read_text().splitlines() if not line.startswith("#"))
        names = ("success", "windows", "windows_changed", "windows_changed_again")
        return tuple(told[f'svcctl_export_reconcile_{name}{{export="late"}}'] for name in names)

    table.arrive(3)
    assert figures() == ("1", "6", "1", "0")
    table.arrive(3, 4)
    assert figures() == ("1", "6", "2", "1")


def test_a_reconcile_waits_for_no_run_and_asks_no_other_service(table: Table) -> None:
    table.arrive(*range(6))
    table.export()
    with States(table.moved.shell.home / "states").locked("late"):
        assert table.reconcile()[0] == 9
    table.moved.shell.variables["SVCCTL_BASE_URL"] = "http://127.0.0.1:9"
    assert table.reconcile()[0] == 2
