"""`svcctl export` as a user's shell runs it, against the real service: files, zones, faults, and what it says."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow.parquet
import pytest
from peers.processes import free_port
from support.faults import FaultyProxy
from support.shells import SVCCTL, Shell
from support.timed_events import (
    BERLIN,
    HOURS,
    QUERY,
    START,
    Moved,
    all_whole,
    broken,
    forgets,
    hourly,
    left,
    summary,
    timeless,
)

from svcctl.profiles import default_store


def test_a_range_becomes_one_file_and_a_line_says_what_it_holds(home: Shell) -> None:
    done = home("export", QUERY, *HOURS, "-o", "all.csv")
    told = {"rows": "72", "bytes": "1946", "windows": "6"}
    assert (done.returncode, done.stdout, told.items() <= summary(done.stderr).items()) == (0, "", True)
    assert (home.home / "all.csv").read_text() == home("query", QUERY, *HOURS, "-f", "csv").stdout


def test_a_query_in_a_pipe_is_exported(home: Shell) -> None:
    done = home("export", *HOURS, "-o", "all.csv", stdin=f"{QUERY} where n < 3\n")
    assert (done.returncode, len((home.home / "all.csv").read_text().splitlines())) == (0, 4)


def test_the_same_command_again_asks_for_nothing(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    for target in ("all.csv", "{from:%FT%H}.csv", "{start:%H}.csv"):
        proxy.asked.clear()
        assert shell("export", QUERY, *HOURS, "-o", target).returncode == 0
        again = shell("export", QUERY, *HOURS, "-o", target)
        assert (again.returncode, "already" in again.stderr) == (0, True)
        assert proxy.asked.total() == 6


def test_a_pattern_makes_a_file_a_window(home: Shell) -> None:
    done = home("export", QUERY, *HOURS, "--window", "3h", "-o", "out/{start:%Y/%m/%d/%H}.csv.gz")
    assert done.returncode == 0, done.stderr
    assert left(home.home) == ["out/2024/01/31/00.csv.gz", "out/2024/01/31/03.csv.gz"]
    text = gzip.decompress((home.home / "out/2024/01/31/03.csv.gz").read_bytes()).decode()
    assert text == home("query", QUERY, "--from", "2024-01-31T03:00:00Z", "--to", "3h", "-f", "csv").stdout


def test_a_start_without_its_unit_is_noted(home: Shell) -> None:
    done = home("export", QUERY, "--from", "30", "--to", "1h", "--dry-run", "-o", "x.csv")
    told = "svcctl: --from 30 is 1970-01-01 00:00:30 UTC; write 30m for minutes\n"
    assert (done.returncode, done.stderr) == (0, told)


def test_a_query_from_standard_input_with_its_variables(home: Shell) -> None:
    done = home("export", "-", *HOURS, "-o", "n.ndjson", "--var", "n=7", stdin="from timed.events where str(n) = {{n}}")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["n"] for line in (home.home / "n.ndjson").read_text().splitlines()] == [7]


def test_a_failure_leaves_no_file_and_the_next_run_completes_it(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(5)
    done = shell("export", QUERY, *HOURS, "-o", "all.csv", "--retries", "1", "--workers", "1")
    assert (done.returncode, "2024-01-31 05:00:00 to 2024-01-31 06:00:00" in done.stderr) == (6, True)
    assert left(shell.home) == []
    asked = proxy.asked.total()
    proxy.choose = lambda body: None
    assert shell("export", QUERY, *HOURS, "-o", "all.csv").returncode == 0
    assert proxy.asked.total() - asked == 1


def test_a_file_that_is_replaced_is_named(home: Shell) -> None:
    assert home("export", QUERY, "--from", "2024-01-31", "--to", "3h", "-o", "all.csv").returncode == 0
    done = home("export", QUERY, *HOURS, "-o", "all.csv")
    assert [word in done.stderr.splitlines()[1] for word in ("all.csv", "2024-01-31 03:00:00")] == [True, True]


def test_a_link_is_followed_and_stays_and_the_export_is_known_by_its_name(home: Shell) -> None:
    real, link = home.home / "real.csv", home.home / "latest.csv"
    link.symlink_to("real.csv")
    assert home("export", QUERY, "--from", "2024-01-31", "--to", "3h", "-o", "latest.csv").returncode == 0
    real.write_bytes(b"old")
    assert home("export", QUERY, *HOURS, "-o", "latest.csv", "--force").returncode == 0
    assert str(link.readlink()) == "real.csv"
    assert real.read_text() == home("query", QUERY, *HOURS, "-f", "csv").stdout
    assert home("export", "verify", "latest.csv").returncode == 0
    link.unlink()
    link.symlink_to("none/real.csv")
    assert f"mkdir -p {real.parent}/none\n" in home("export", QUERY, *HOURS, "-o", "latest.csv").stderr


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
    assert "2024-01-31.csv to 2024-02-01.csv" in again.stderr.splitlines()[-1]
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
def test_an_export_that_began_with_names_in_utc_is_another_one_than_that_in_a_zone(
    home: Shell, state: tuple[str, ...]
) -> None:
    to = ("--window", "1d", "-o", "{start:%F}.ndjson", *state)
    assert home("export", QUERY, "--from", "2024-01-30T23:00:00Z", "--to", "25h", *to).returncode == 0
    before = {path.name: path.read_bytes() for path in home.home.glob("2*")}
    done = home("export", QUERY, *BERLIN, *to)
    assert (done.returncode, "another time zone" in done.stderr) == (2, True), done.stderr
    assert before == {path.name: path.read_bytes() for path in home.home.glob("2*")}


SUNDAY = ("--from", "2024-10-26T22:00Z", "--to", "2024-10-28T23:00Z", "--window", "1d")
"""The 27th of October 2024 in Berlin, whose clocks go back at 01:00 UTC, and the day after it."""
IN_BERLIN = ("--time-zone", "Europe/Berlin")


@pytest.fixture(scope="module")
def autumn(events: Shell, tmp_path_factory: pytest.TempPathFactory) -> list[datetime]:
    """The dates of the events of the table autumn.events, one each half hour of the two days."""
    moments = [datetime(2024, 10, 26, 22, tzinfo=UTC) + n * timedelta(minutes=30) for n in range(98)]
    file = tmp_path_factory.mktemp("autumn") / "events.csv"
    file.write_text("\n".join(["eventdate", *(f"{each:%F %T}" for each in moments), ""]))
    assert events("service", "load", str(file), "--table", "autumn.events").returncode == 0
    return moments


NOTES = {
    "all": "all dates are written in GMT+2",
    "{start:%F}": "the dates of a file are written with the offset at its start",
}


def rows_of(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


@pytest.mark.parametrize("iso", [True, False])
@pytest.mark.parametrize("ending", ["csv", "tsv.gz"])
@pytest.mark.parametrize("name", NOTES)
def test_rows_of_a_day_on_which_the_clocks_change_have_their_own_offset_in_iso_and_that_of_their_file_elsewhere(
    home: Shell, autumn: list[datetime], name: str, ending: str, iso: bool
) -> None:
    format = ("--date-format", "iso") if iso else ()
    done = home("export", "from autumn.events", *SUNDAY, *IN_BERLIN, *format, "-o", f"{name}.{ending}")
    *notes, _ = done.stderr.splitlines()
    assert (done.returncode, [note.split(": ")[2].partition(";")[0] for note in notes]) == (
        0,
        [NOTES[name]] * (not iso),
    )
    files = {"all": autumn} if name == "all" else {"2024-10-27": autumn[:50], "2024-10-28": autumn[50:]}
    assert left(home.home) == [f"{each}.{ending}" for each in files]
    for each, moments in files.items():
        offset = (
            moments[0].astimezone(ZoneInfo("Europe/Berlin")).tzinfo
            if iso
            else timezone(moments[0].astimezone(ZoneInfo("Europe/Berlin")).utcoffset() or timedelta())
        )
        dates = [f"{moment.astimezone(offset):{'%FT%T.000%z' if iso else '%F %T.000'}}" for moment in moments]
        assert rows_of(home.home / f"{each}.{ending}") == ["eventdate", *dates]


@pytest.mark.parametrize("ending", ["ndjson", "parquet"])
@pytest.mark.parametrize("name", NOTES)
def test_dates_that_are_numbers_have_no_offset_and_need_no_note(
    home: Shell, autumn: list[datetime], name: str, ending: str
) -> None:
    done = home("export", "from autumn.events", *SUNDAY, *IN_BERLIN, "-o", f"{name}.{ending}")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    counts = {"all": 98} if name == "all" else {"2024-10-27": 50, "2024-10-28": 48}
    for each, count in counts.items():
        path = home.home / f"{each}.{ending}"
        rows = pyarrow.parquet.read_table(path).num_rows if ending == "parquet" else len(rows_of(path))
        assert rows == count


CHANGE = int(datetime(2024, 10, 27, 1, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("where", "broken"),
    [
        ("", CHANGE - 2 * 3600),
        ("", CHANGE + 3 * 3600),
        (f" where epoch(eventdate) >= {1000 * (CHANGE + 3600)}", CHANGE + 3 * 3600),
    ],
)
def test_a_merged_file_keeps_no_part_of_a_run_that_began_with_another_offset(
    proxied: tuple[Shell, FaultyProxy], autumn: list[datetime], where: str, broken: int
) -> None:
    shell, proxy = proxied
    proxy.choose = lambda body: "503" if json.loads(body or b"{}").get("from") == broken else None
    query = f"from autumn.events{where}"
    command = ("--retries", "0", "export", query, *IN_BERLIN, "--workers", "1", "-o", "all.csv")
    hours = ("--window", "1h", "--to", "2024-10-27T05:00Z")
    assert shell(*command, *hours, "--from", "2024-10-26T22:00Z").returncode == 6
    assert not (shell.home / "all.csv").exists()
    proxy.choose = lambda body: None
    done = shell(*command, *hours, "--from", "2024-10-27T02:00Z")
    assert (done.returncode, "clocks" in done.stderr) == (0, False)
    assert rows_of(shell.home / "all.csv")[1::2] == [f"2024-10-27 0{hour}:00:00.000" for hour in (3, 4, 5)]
    again = shell("export", "reconcile", "all.csv", "--deep")
    assert (again.returncode, again.stderr.split()[1:]) == (0, ["3", "windows", "compared,", "0", "replaced"])


@pytest.mark.parametrize("name", NOTES)
def test_reconcile_asks_for_the_dates_of_a_file_with_its_offset(home: Shell, autumn: list[datetime], name: str) -> None:
    target = f"{name}.csv"
    given = ("--from", "2024-10-26T22:00Z", "--to", "2024-10-27T23:00Z", "--window", "2h", *IN_BERLIN)
    assert home("export", "from autumn.events", *given, "-o", target.replace("%F", "%FT%H")).returncode == 0
    again = home("export", "reconcile", target.replace("%F", "%FT%H"), "--deep")
    assert (again.returncode, again.stderr.split()[4:]) == (0, ["0", "replaced"])


def test_a_run_that_resumes_begins_with_the_first_request_of_such_a_day(
    proxied: tuple[Shell, FaultyProxy], autumn: list[datetime]
) -> None:
    shell, proxy = proxied
    starts = list[int]()

    def fails(body: bytes) -> str | None:
        starts.append(json.loads(body or b"{}").get("from"))
        return "503" if starts[-1] == CHANGE and starts.count(CHANGE) == 1 else None

    proxy.choose = fails
    iso = ("--date-format", "iso")
    command = ("export", "from autumn.events", *SUNDAY, *IN_BERLIN, *iso, "-o", "{start:%F}.csv", "--workers", "1")
    assert shell("--retries", "0", *command).returncode == 6
    assert "2024-10-27.csv" not in left(shell.home)
    assert shell("--retries", "0", *command).returncode == 0
    first = CHANGE - 3 * 3600
    assert [start for start in starts if start in (first, CHANGE)] == [first, CHANGE, first, CHANGE]
    assert len((shell.home / "2024-10-27.csv").read_text().splitlines()) == 51


def test_groups_of_a_day_on_which_the_clocks_change_keep_the_earlier_offset(
    home: Shell, autumn: list[datetime]
) -> None:
    query = "from autumn.events group every 1h select count() as n"
    done = home("export", query, *SUNDAY, *IN_BERLIN, "-o", "{start:%F}.csv")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 2)
    first, second = ((home.home / f"2024-10-{day}.csv").read_text().splitlines() for day in (27, 28))
    assert (len(first), first[-1], second[1]) == (26, "2024-10-28 00:00:00.000,2", "2024-10-28 00:00:00.000,2")


COUNTS_IN_UTC = "svcctl: 'group every' counts in UTC: a period begins at 01:00 Europe/Berlin"


def test_the_note_about_periods_of_utc_has_no_formula_that_cannot_be_exported(home: Shell) -> None:
    query = f"{QUERY} group every 1d select count() as n"
    done = home("export", query, *BERLIN, "-o", "days.csv")
    assert done.stderr.splitlines()[0] == COUNTS_IN_UTC


def test_periods_that_a_service_counts_in_utc_keep_files_in_utc(home: Shell) -> None:
    query = f"{QUERY} group every 1d select count() as n"
    done = home("export", query, *BERLIN, "-o", "{start:%F}.csv", "--dry-run")
    assert done.stdout.splitlines() == [
        "from,to,file",
        "2024-01-30T00:00:00Z,2024-01-31T00:00:00Z,2024-01-30.csv",
        "2024-01-31T00:00:00Z,2024-02-01T00:00:00Z,2024-01-31.csv",
        "2024-02-01T00:00:00Z,2024-02-02T00:00:00Z,2024-02-01.csv",
    ]


def test_a_range_that_ends_within_windows_is_extended_for_files_and_exact_in_a_merged_one(moved: Moved) -> None:
    folder = moved.shell.home
    moved.now = START + 2 * 3600 + 1800
    between = ("--from", "2024-01-31T00:20:00", "--to", "2024-01-31T01:40:00")
    extended = "svcctl: each file covers a whole window: exporting 2024-01-31T00:00:00Z to 2024-01-31T02:00:00Z\n"
    assert moved("export", QUERY, *between, "-o", f"{folder}/all.csv")[1].splitlines()[1:] == []
    pattern = f"{folder}/a/{{start:%H}}.csv"
    assert moved("export", QUERY, *between, "-o", pattern, "--dry-run") == (0, extended)
    code, said = moved("export", QUERY, *between, "-o", pattern)
    assert (code, said[: said.index("svcctl: rows=24 ")]) == (0, extended)
    rows = [len((folder / name).read_text().splitlines()) - 1 for name in ("all.csv", "a/00.csv", "a/01.csv")]
    assert rows == [16, 12, 12]
    begun = ("--from", "2024-01-31T00:20:00", "-o", f"{folder}/b/{{start:%H}}.csv")
    assert moved("export", QUERY, *begun, "--dry-run")[1] == (
        f"{extended}svcctl: left out 2024-01-31T02:00:00Z to 2024-01-31T02:30:00Z: "
        "these windows have not ended, or ended less than --lag ago\n"
    )
    berlin = ("--window", "1d", "--time-zone", "Europe/Berlin", "-o", f"{folder}/c/{{start:%F}}.csv")
    moved.now += 2 * 86_400
    assert (
        "exporting 2024-01-31T00:00:00+01:00 to 2024-02-01T00:00:00+01:00\n"
        in moved("export", QUERY, *between, *berlin)[1]
    )


@pytest.mark.slow
def test_a_local_service_that_is_stopped_starts_for_what_asks_it_before_a_run(shell: Shell) -> None:
    shell = Shell(shell.home, {"SVCCTL_DEMO": "0"})
    started = "svcctl: started the local service (stop it with 'svcctl service stop')\n"
    command = ("export", "from service.access", *HOURS, "-o", "all.csv", "--force")
    try:
        for more, said in ((("--dry-run",), ""), ((), "svcctl: rows=0 bytes=73 windows=6 seconds=…\n")):
            done = shell(*command, *more)
            assert (done.returncode, timeless(done.stderr)) == (0, started + said)
            assert shell("service", "stop").returncode == 0
    finally:
        shell("service", "stop")


def test_comments_and_white_space_do_not_make_another_query(moved: Moved) -> None:
    moved.now = START + 2 * 3600
    asked = ("--from", "2024-01-31", "--state", "timed", "-o", f"{moved.shell.home}/out/{{start:%FT%H}}.csv")
    assert moved("export", f"// all\n{QUERY}\n  where n >= 0  // most", *asked)[0] == 0
    moved.now += 3600
    assert moved("export", f"{QUERY} where n >= 0", *asked)[0] == 0
    shown = moved.shell("export", "status", "timed").stdout.splitlines()
    assert (shown[2], shown[-1]) == (f"query,{QUERY} where n >= 0", "next run from,2024-01-31T02:00:00Z")


def test_another_service_or_path_of_an_export_is_refused_with_a_hint(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    service = moved.shell.environment["SVCCTL_BASE_URL"]
    moved.shell.variables["SVCCTL_BASE_URL"] = "http://127.0.0.1:9"
    assert hourly(moved) == (
        2,
        f"svcctl: error: {target} belongs to another export: another service ({service})\n"
        "hint: write to another path, or give the "
        "profile of that service with -p\n",
    )
    assert moved("export", QUERY, "--from", "2024-01-31", "--to", "1h", "-o", target) == (
        2,
        f"svcctl: error: {target} belongs to another export: another service ({service})\n"
        "hint: write to another path, or give the profile of that service with -p\n",
    )
    (moved.shell.home / "out" / "2024-01-31T01.csv").unlink()
    lost = (
        f"svcctl: error: {moved.shell.home}/out/2024-01-31T01.csv is missing\n{forgets('timed')}"
        f"svcctl: error: the export to {target} is not intact\n"
    )
    fetch = (
        f"fetch the missing windows with: svcctl export '{QUERY}' -o '{target}' "
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
    store.set("stage", {"base_url": service, "token": "t"})
    assert moved("export", "verify", "timed") == (
        7,
        f"{lost}hint: with a profile of {service}, {fetch}",
    )
    moved.shell.variables["SVCCTL_BASE_URL"] = service
    assert moved("export", "verify", "timed") == (7, f"{lost}hint: {fetch}")
    assert moved("export", QUERY, "--state", "timed", "-o", f"{target}.gz")[1].splitlines()[1] == (
        "hint: give another name to --state, with --from 2024-01-31T02:00:00Z"
    )


def test_a_target_that_does_not_answer_is_named_with_what_to_check(home: Shell) -> None:
    url = f"hdfs://127.0.0.1:{free_port()}"
    done = home("export", QUERY, *HOURS, "-o", f"{url}/out/all.csv")
    assert (done.returncode, f"{url}/out/.all.csv.export" in done.stderr, "NameNode" in done.stderr) == (6, True, True)


def test_an_export_is_the_same_from_every_directory(moved: Moved, monkeypatch: pytest.MonkeyPatch) -> None:
    moved.now = START + 7 * 3600
    folder = moved.shell.home / "q"
    folder.mkdir()
    asked = ("export", QUERY, *HOURS, "--window", "1h")
    for name, there in (("one.csv", all_whole(1, 1946)), ("{start:%H}.csv", all_whole(6, 2006))):
        monkeypatch.chdir(moved.shell.home)
        assert moved(*asked, "-o", f"q/{name}")[0] == 0
        monkeypatch.chdir(folder)
        for target in (name, f"{folder}/{name}", f"../q/{name}"):
            assert moved("export", "verify", target) == (0, there)
            place = target.removesuffix(name)
            files = f"6 files are already complete: {place}00.csv to {place}05.csv; --force fetches them again"
            said = f"{target} is already complete; --force fetches it again" if name == "one.csv" else files
            assert moved(*asked, "-o", target) == (0, f"svcctl: nothing to do: {said}\n")
    (folder / "01.csv").unlink()
    assert moved(*asked, "-o", f"{folder}/{{start:%H}}.csv")[0] == 0
    monkeypatch.chdir(moved.shell.home)
    assert moved("export", "verify", "q/{start:%H}.csv") == (0, all_whole(6, 2006))


def test_ctrl_c_leaves_no_file_and_the_next_run_completes_it(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    command = ("export", QUERY, *HOURS, "-o", "all.csv", "--workers", "2")
    proxy.choose = broken(4, fault="stall")
    process = shell.start(*command, stderr=subprocess.PIPE)
    proxy.await_requests(6)  # the others are there, and one hangs
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == (
        b"svcctl: interrupted\nhint: the same command again fetches only what is missing\n"
    )
    assert (process.returncode, left(shell.home)) == (130, [])
    proxy.choose = lambda body: None
    assert shell(*command).returncode == 0
    assert (shell.home / "all.csv").read_text() == shell("query", QUERY, *HOURS, "-f", "csv").stdout


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


@pytest.mark.parametrize(("fault", "code"), [("503", 6), ("cut", 7)])
def test_the_exit_code_of_missing_windows_is_that_of_the_worst(
    proxied: tuple[Shell, FaultyProxy], fault: str, code: int
) -> None:
    shell, proxy = proxied
    first, second = broken(1), broken(3, fault=fault)
    proxy.choose = lambda body: first(body) or second(body)
    done = shell("export", QUERY, *HOURS, "-o", "{start:%H}.csv", "--retries", "0")
    assert (done.returncode, left(shell.home)) == (code, ["00.csv", "02.csv", "04.csv", "05.csv"])
