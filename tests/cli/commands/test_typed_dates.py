"""Dates that are typed without an offset, in the zone of --time-zone or of the profile, at a real service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.shells import OWN_FILE, Shell

BERLIN = ("--time-zone", "Europe/Berlin")
PROFILE = ("--config", "profiles.json")
"""A file whose default profile has that zone."""
SUNDAY = datetime(2026, 10, 24, 22, tzinfo=UTC)
"""The first moment of the 25th of October 2026 in Berlin, whose clocks go back at 01:00 UTC."""
EVENTS = [SUNDAY - timedelta(days=1) + n * timedelta(minutes=15) for n in range(73 * 4)]
"""One event each quarter of an hour of that day, the day before and the day after it: 73 hours."""


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell whose service has the table web.autumn, with EVENTS numbered from 0."""
    shell = Shell(tmp_path_factory.mktemp("clocks"), {**OWN_FILE, "SVCCTL_DEMO": "0"})
    rows = (f"{moment:%Y-%m-%dT%H:%M:%SZ},{number}" for number, moment in enumerate(EVENTS))
    (shell.home / "a.csv").write_text("\n".join(["eventdate,n", *rows, ""]), encoding="utf-8")
    assert shell("service", "load", "a.csv", "-t", "web.autumn").returncode == 0
    local = json.loads((shell.home / "data" / "credentials.json").read_text())["local"]
    fields = {"socket": str(shell.home / "data" / "service.sock"), "time_zone": "Europe/Berlin", **local}
    profile = {"base_url": "http://localhost", "auth": "signature", **fields}
    (shell.home / "profiles.json").write_text(json.dumps({"profiles": {"berlin": profile}, "default": "berlin"}))
    (shell.home / "profiles.json").chmod(0o600)
    yield shell
    shell("service", "stop")


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def sent(shell: Shell, *arguments: str) -> dict[str, Any]:
    done = shell("query", "from web.autumn", *arguments, "--dry-run")
    assert done.returncode == 0, done.stderr
    body: dict[str, Any] = json.loads(done.stdout.split("\n\n")[1])
    return body


def numbers(shell: Shell, from_: str, to: str, *zone: str) -> list[int]:
    done = shell("query", "from web.autumn select n", "--from", from_, "--to", to, *zone, "-f", "csv", "--no-header")
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize(
    ("from_", "to", "zone", "start", "end", "rows"),
    [
        ("2026-10-25", "2026-10-26", "Europe/Berlin", "2026-10-24T22:00Z", "2026-10-25T23:00Z", 100),
        ("2026-10-25", "2026-10-26", "UTC", "2026-10-25T00:00Z", "2026-10-26T00:00Z", 96),
        ("25/10/2026", "25/10/2026 12:00:00", "Europe/Berlin", "2026-10-24T22:00Z", "2026-10-25T11:00Z", 52),
        ("2026-10-25 01:30", "2026-10-25 03:30", "Europe/Berlin", "2026-10-24T23:30Z", "2026-10-25T02:30Z", 12),
        ("2026-10-25 02:00+02", "2026-10-25 02:00+01", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T01:00Z", 4),
        ("2026-10-25T01:00Z", "1h", "Europe/Berlin", "2026-10-25T01:00Z", None, 4),
        ("1792886400", "2026-10-25", "America/New_York", "2026-10-25T00:00Z", "2026-10-25T04:00Z", 16),
        ("2026-10", "2026-11", "Europe/Berlin", "2026-09-30T22:00Z", "2026-10-31T23:00Z", 292),
        ("2026/10/25 00:00", "endday", "Europe/Berlin", "2026-10-24T22:00Z", "2026-10-25T22:59:59Z", 100),
        ("2026-10-25", "1d", "Europe/Berlin", "2026-10-24T22:00Z", None, 96),
    ],
)
def test_the_range_is_sent_as_epoch_seconds_and_has_the_rows_between(
    clocks: Shell, from_: str, to: str, zone: str, start: str, end: str | None, rows: int
) -> None:
    body = sent(clocks, "--from", from_, "--to", to, "--time-zone", zone, "-f", "csv")
    assert body["from"] == seconds(start)
    assert body["to"] == (to if end is None else seconds(end))
    found = numbers(clocks, from_, to, "--time-zone", zone)
    assert found == list(range(found[0], found[0] + rows))
    assert EVENTS[found[0]] == max(datetime.fromisoformat(start), EVENTS[0])


def test_without_a_zone_dates_are_in_utc_and_the_form_of_the_interface_is_sent_as_written(clocks: Shell) -> None:
    body = sent(clocks, "--from", "25/10/2026 00:00:00", "--to", "2026-10-26")
    assert (body["from"], body["to"]) == ("25/10/2026 00:00:00", seconds("2026-10-26T00:00Z"))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "GMT+5:30", "America/Havana"])
def test_neighbouring_windows_neither_lose_nor_repeat_a_row(clocks: Shell, zone: str) -> None:
    days = [f"2026-10-{day}" for day in range(23, 29)]
    hours = ["2026-10-24", "2026-10-24 23:30", "2026-10-25 01:45", "2026-10-25 03:00", "2026-10-25 23:59:59.999"]
    for edges in (days, [days[0], *hours, days[-1]]):
        found = [number for pair in pairwise(edges) for number in numbers(clocks, *pair, "--time-zone", zone)]
        assert found == list(range(len(EVENTS)))


def test_the_zone_of_a_profile_is_noted_in_a_pipe_too(clocks: Shell) -> None:
    day = ("--from", "2026-10-24", "--to", "1d")
    note = "svcctl: --from in Europe/Berlin (profile berlin): 2026-10-23 22:00:00 UTC\n"
    query = ("query", "from web.autumn select n limit 1")
    for command in (query, (*query, "--dest", "donothing", "--dry-run"), ("range",)):
        assert clocks(*PROFILE, *command, *day).stderr == note
        assert clocks(*PROFILE, *command, *day, *BERLIN).stderr == ""
        assert clocks(*PROFILE, *command, "--from", "2026-10-24T00:00Z", "--to", "1d").stderr == ""
    export = ("export", "from web.autumn", *day, "-o", "day.csv")
    assert note in clocks(*PROFILE, *export).stderr
    assert len((clocks.home / "day.csv").read_text().splitlines()) == 97
    assert note in clocks(*PROFILE, "tables", "web.autumn", "--from", "2026-10-24").stderr


@pytest.mark.parametrize("options", [BERLIN, PROFILE])
def test_a_job_has_the_dates_of_the_zone_and_waits_for_an_end_in_the_future(
    clocks: Shell, options: tuple[str, str]
) -> None:
    job = ("query", "from web.autumn", "--from", "2026-10-25", "--to", "2030-01-01", "--dest", "donothing", "--dry-run")
    command = (*options, *job) if options is PROFILE else (*job, *options)
    body = json.loads(clocks(*command).stdout.split("\n\n")[1])
    assert (body["from"], body["to"]) == (seconds("2026-10-24T22:00Z"), seconds("2029-12-31T23:00Z"))
    assert ("timeZone" in body) == (options is BERLIN)


def test_an_export_with_a_state_continues_where_it_ended_however_from_is_read(clocks: Shell) -> None:
    command = ("export", "from web.autumn", "--window", "1h", "--lag", "0", "--state", "s", "-o", "s/{start:%F-%H}.csv")
    assert clocks(*command, "--from", "2026-10-24T22:00Z", "--to", "2026-10-25T01:00Z", *BERLIN).returncode == 0
    done = clocks(*command, "--from", "2026-10-25", "--to", "2026-10-25 05:00", *BERLIN)
    assert done.returncode == 0, done.stderr
    found = [
        line.split(",")[1] for path in sorted(clocks.home.glob("s/*.csv")) for line in path.read_text().splitlines()
    ]
    assert [number for number in found if number != "n"] == [str(number) for number in range(96, 120)]


def test_events_before_a_date_of_the_zone_are_removed(clocks: Shell, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("eventdate,n\n2026-10-24T21:59:59Z,1\n2026-10-24T22:00:00Z,2\n", encoding="utf-8")
    assert clocks("service", "load", str(tmp_path / "b.csv"), "-t", "web.trimmed").returncode == 0
    done = clocks("service", "trim", "web.trimmed", "--before", "2026-10-25", *BERLIN)
    assert (done.returncode, "before 2026-10-24 22:00:00 (UTC)" in done.stderr) == (2, True)
    unsure = ("service", "trim", "web.trimmed", "--before", "2026-10-25 02:30", *BERLIN, "--yes")
    assert (clocks(*unsure).returncode, "occurs twice" in clocks(*unsure).stderr) == (2, True)
    assert clocks("service", "trim", "web.trimmed", "--before", "2026-10-25", *BERLIN, "--yes").returncode == 0
    left = clocks("query", "from web.trimmed select n", "--from", "2026-10-01", "-f", "csv", "--no-header")
    assert left.stdout == "2\n"
