"""`svcctl query` around a clock change, against the real service: each row has its own offset."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from support.clock_changes import clock_changes
from support.faults import FaultyProxy
from support.pseudo_terminal import on_terminal
from support.shells import Shell

ALL = "from clocks.rows"
IN_BERLIN = ("--time-zone", "Europe/Berlin")
AUTUMN = ("--from", "2024-10-27T00:30Z", "--to", "2024-10-27T02:00Z", *IN_BERLIN)
"""Half an hour before the clocks go back from 03:00 to 02:00, and an hour after it."""
CHANGE = 1_729_990_800
ISO = ("--date-format", "iso")
SUMMARY = "svcctl: 2024-10-27 02:30 +0200 … 2024-10-27 03:00 +0100 Europe/Berlin (1h30m)"
CHANGES = "svcctl: the clocks of Europe/Berlin change within the range: all dates are written in GMT+2"
ADVICE = "; --date-format iso writes the offset with each date"


@pytest.fixture(scope="module")
def clocks(service: Shell) -> Shell:
    """The service with the table clocks.rows: events each half hour around the changes of three zones in 2024."""
    moments = sorted(
        change + 1800 * step
        for zone in ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe")
        for change in clock_changes(zone)
        if datetime.fromtimestamp(change, UTC).year == 2024
        for step in range(-6, 7)
    )
    rows = [f"{datetime.fromtimestamp(moment, UTC):%F %T},{n}" for n, moment in enumerate(moments)]
    file = service.home / "clocks.csv"
    file.write_text("\n".join(["eventdate,n", *rows, ""]))
    assert service("service", "load", str(file), "--table", "clocks.rows").returncode == 0
    return service


@pytest.fixture
def proxied(clocks: Shell) -> Iterator[tuple[Shell, FaultyProxy]]:
    """The service, reached through a proxy that can break answers."""
    data = Path(clocks.environment["SVCCTL_DATA"])
    credentials = json.loads((data / "credentials.json").read_text())["local"]
    with FaultyProxy(data / "service.sock").serving() as proxy:
        given = {
            "SVCCTL_BASE_URL": proxy.url,
            "SVCCTL_API_KEY": credentials["api_key"],
            "SVCCTL_API_SECRET": credentials["api_secret"],
        }
        yield Shell(clocks.home, clocks.variables | given), proxy


def dates(text: str) -> list[str]:
    """The first cells of the rows of csv or tsv."""
    return [line.replace("\t", ",").split(",")[0] for line in text.splitlines()[1:]]


def test_tables_and_vertical_blocks_show_the_offset_of_each_time(clocks: Shell) -> None:
    table = clocks("query", f"{ALL} select eventdate", *AUTUMN, "-f", "table")
    assert (table.stderr, table.stdout.splitlines()) == (
        "",
        [
            "eventdate (Europe/Berlin)",
            "-------------------------",
            "2024-10-27 02:30:00 +0200",
            "2024-10-27 02:00:00 +0100",
            "2024-10-27 02:30:00 +0100",
        ],
    )
    vertical = clocks("query", f"{ALL} select eventdate", *AUTUMN, "-f", "vertical")
    assert vertical.stdout.splitlines()[1::2] == [
        f"eventdate  2024-10-27 {time}" for time in ("02:30:00.000 +0200", "02:00:00.000 +0100", "02:30:00.000 +0100")
    ]
    chart = clocks("query", f"{ALL} group every 30m select count() as n", *AUTUMN, "-f", "chart")
    assert [line[:25] for line in chart.stdout.splitlines()[1:]] == table.stdout.splitlines()[2:]
    seen = on_terminal(clocks, "query", f"{ALL} select eventdate", *AUTUMN)
    assert (
        seen.screen.splitlines()[0] == "svcctl: 2024-10-27 02:30 +0200 … 2024-10-27 03:00 +0100 Europe/Berlin (1h30m)"
    )
    alone = clocks("query", f"{ALL} select eventdate", *AUTUMN[2:], "--from", "2024-10-27T01:00Z", "-f", "table")
    assert alone.stdout.splitlines()[2:] == ["2024-10-27 02:00:00", "2024-10-27 02:30:00"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"])
@pytest.mark.parametrize("name", ["csv", "tsv"])
def test_each_row_of_a_year_in_iso_has_the_offset_that_its_zone_has_then(clocks: Shell, name: str, zone: str) -> None:
    range = ("--from", "2024-01-01", "--to", "2024-12-31", "--time-zone", zone)
    done = clocks("query", ALL, *range, *ISO, "-f", name)
    moments = [row["eventdate"] for row in clocks.ndjson("query", ALL, *range)]
    assert (done.returncode, done.stderr, len(moments)) == (0, "", 6 * 13)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    local = [(epoch + timedelta(milliseconds=int(str(moment)))).astimezone(ZoneInfo(zone)) for moment in moments]
    assert dates(done.stdout) == [f"{moment:%FT%T.000%z}" for moment in local]
    assert len({f"{moment:%z}" for moment in local}) == 2
    written_here = clocks("query", ALL, *range, *ISO, "-f", name, "--sort", "eventdate")
    assert (written_here.stderr, written_here.stdout) == ("", done.stdout)


def test_a_request_for_each_offset_is_shown_by_dry_run(clocks: Shell) -> None:
    half_year = ("--from", "2024-03-01", "--to", "2024-11-01", *IN_BERLIN)
    shown = clocks("query", ALL, *half_year, *ISO, "-f", "csv", "--dry-run").stdout
    bodies = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert [(body["from"], body["to"], body["timeZone"]) for body in bodies] == [
        (1_709_247_600, 1_711_846_800, "GMT+1"),
        (1_711_846_800, CHANGE, "GMT+2"),
        (CHANGE, 1_730_415_600, "GMT+1"),
    ]


ONE_REQUEST = {
    "another date format": ((ALL,), CHANGES + ADVICE),
    "a group": ((f"{ALL} group every 30m select count() as n", *ISO), CHANGES),
    "a limit in the query": ((f"{ALL} limit 9", *ISO), CHANGES),
    "an offset in the query": ((f"{ALL} offset 0", *ISO), CHANGES),
    "--limit": ((ALL, *ISO, "--limit", "9"), CHANGES),
    "--skip": ((ALL, *ISO, "--skip", "0"), CHANGES),
}


@pytest.mark.parametrize("case", ONE_REQUEST)
@pytest.mark.parametrize("name", ["csv", "tsv"])
def test_one_answer_keeps_one_offset_and_a_note_says_which(clocks: Shell, name: str, case: str) -> None:
    arguments, note = ONE_REQUEST[case]
    done = clocks("query", *arguments, *AUTUMN, "-f", name)
    assert (done.returncode, done.stderr) == (0, f"{note}\n")
    times = ["02:30:00.000", "03:00:00.000", "03:30:00.000"]
    expected = [f"2024-10-27T{time}+0200" if "T" in dates(done.stdout)[0] else f"2024-10-27 {time}" for time in times]
    assert dates(done.stdout) == expected


@pytest.mark.parametrize("option", [("--sort", "n"), ("--columns", "eventdate,n")])
def test_rows_that_are_written_here_have_one_offset_too(clocks: Shell, option: tuple[str, str]) -> None:
    whole = clocks("query", ALL, *AUTUMN, "-f", "csv")
    here = clocks("query", ALL, *AUTUMN, "-f", "csv", *option)
    assert (here.stdout, here.stderr) == (whole.stdout, whole.stderr)


def test_spreadsheets_and_xml_have_one_offset(clocks: Shell, tmp_path: Path) -> None:
    for name, more in (("a.xlsx", ISO), ("b.xlsx", ("--columns", "eventdate,n", *ISO))):
        done = clocks("query", ALL, *AUTUMN, *more, "-o", str(tmp_path / name))
        assert (done.returncode, done.stderr) == (0, f"{CHANGES}\n")
        with zipfile.ZipFile(tmp_path / name) as book:
            days = re.findall(r'<c r="A\d+" s="\d+"><v>([\d.]+)', book.read("xl/worksheets/sheet1.xml").decode())
        assert [round(float(day) * 1440) % 1440 for day in days] == [150, 180, 210]  # minutes after midnight
    done = clocks("query", ALL, *AUTUMN, *ISO, "-f", "xml")
    assert (done.stderr, done.stdout.count("+0200")) == (f"{CHANGES}\n", 3)


@pytest.mark.parametrize("name", ["ndjson", "json", "json/compact", "parquet"])
def test_dates_that_are_numbers_need_no_note(clocks: Shell, tmp_path: Path, name: str) -> None:
    done = clocks("query", ALL, *AUTUMN, "-f", name, "-o", str(tmp_path / "rows"))
    assert (done.returncode, "clocks" in done.stderr) == (0, False)


def test_a_saved_query_is_one_request(clocks: Shell) -> None:
    assert clocks("service", "queries", "set", "around", f"{ALL} limit 2").returncode == 0
    done = clocks("query", "--query-id", "around", *AUTUMN, *ISO, "-f", "csv")
    assert clocks("service", "queries", "rm", "around", "--yes").returncode == 0  # other tests list all queries
    assert (done.stderr, len(dates(done.stdout))) == (f"{CHANGES}\n", 2)


def test_several_requests_make_one_file_with_one_heading(clocks: Shell, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(b"before")
    assert clocks("query", ALL, *AUTUMN, *ISO, "-o", str(path)).returncode == 2
    assert clocks("query", ALL, *AUTUMN, *ISO, "-o", str(path), "--force").returncode == 0
    assert gzip.decompress(path.read_bytes()).decode().count("eventdate") == 1
    bare = clocks("query", ALL, *AUTUMN, *ISO, "-f", "csv", "--no-header", "--fail-on-empty")
    assert (bare.returncode, bare.stdout.count("\n"), "eventdate" in bare.stdout) == (0, 3, False)
    late = ("--from", "2024-10-27T00:45Z", *AUTUMN[2:])
    assert clocks("query", ALL, *late, *ISO, "-f", "csv", "--fail-on-empty").returncode == 0
    none = clocks("query", f"{ALL} where n < 0", *AUTUMN, *ISO, "-f", "csv", "--fail-on-empty")
    assert (none.returncode, none.stdout) == (8, "")


def test_a_query_that_is_run_again_asks_for_each_offset_again(clocks: Shell) -> None:
    done = clocks("query", ALL, *AUTUMN, *ISO, "-f", "csv", "--every", "0.1s", "--max-time", "1")
    rows = dates(done.stdout)
    assert (done.returncode, len(rows) >= 6, rows[:3]) == (0, True, rows[3:6])
    assert [date[-5:] for date in rows[:3]] == ["+0200", "+0100", "+0100"]


@pytest.mark.parametrize(
    ("fault", "rows", "code"),
    [("503", 1, 7), ("page", 1, 7), ("cut", 1, 7), ("503", 0, 6)],
)
def test_an_error_of_a_later_request_leaves_an_incomplete_result(
    proxied: tuple[Shell, FaultyProxy], tmp_path: Path, fault: str, rows: int, code: int
) -> None:
    shell, proxy = proxied
    proxy.choose = lambda body: fault if json.loads(body or b"{}").get("from") == CHANGE else None
    query = ALL if rows else f"{ALL} where epoch(eventdate) >= {1000 * CHANGE}"
    done = shell("--retries", "0", "query", query, *AUTUMN, *ISO, "-f", "csv")
    assert (done.returncode, len(dates(done.stdout)) in (rows, rows + 1)) == (code, True), done.stderr
    file = tmp_path / "rows.csv"
    assert shell("--retries", "0", "query", query, *AUTUMN, *ISO, "-o", str(file)).returncode == code
    assert list(tmp_path.iterdir()) == []
    proxy.choose = lambda body: None
    assert shell("--retries", "0", "query", query, *AUTUMN, *ISO, "-o", str(file)).returncode == 0


def test_a_followed_query_shows_the_offset_since_its_clocks_will_change(clocks: Shell) -> None:
    follow = ("query", f"{ALL} select eventdate", "--from", "2024-10-27T00:30Z", "--follow", "--limit", "3", *IN_BERLIN)
    table = clocks(*follow, "-f", "table")
    assert [line[-5:] for line in table.stdout.splitlines()[2:]] == ["+0200", "+0100", "+0100"]
    times = {"csv": ["02:30", "03:00", "03:30"], "table": ["02:30", "02:00", "02:30"]}
    assert [line[11:16] for line in table.stdout.splitlines()[2:]] == times["table"]
    plain = clocks(*follow, "-f", "csv")
    assert [date[11:16] for date in dates(plain.stdout)] == times["csv"]
    assert plain.stderr.splitlines()[0] == f"{CHANGES}{ADVICE}".replace("within the range", "during the year")
    iso = clocks(*follow, "-f", "csv", *ISO)
    assert ("clocks" in iso.stderr, [date[11:16] for date in dates(iso.stdout)]) == (False, times["table"])


def test_the_dates_of_a_job_have_one_offset(clocks: Shell) -> None:
    done = clocks("query", ALL, *AUTUMN, "--dest", "donothing", "--dry-run")
    assert done.stderr.splitlines()[0] == CHANGES + ADVICE
