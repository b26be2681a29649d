"""`svcctl export --state` run by run, and `export status`."""

from __future__ import annotations

import gzip
import hashlib
import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.faults import FaultyProxy
from support.shells import Shell
from support.timed_events import (
    EVENTS,
    HOURS,
    QUERY,
    START,
    Moved,
    all_whole,
    broken,
    counts,
    forgets,
    hinted,
    hourly,
    left,
    pasted,
    summary,
)

from svcctl.exports.record import folder_of
from svcctl.exports.state import State, States, default_states
from svcctl.exports.windows import Target

DAY, NOT_NOW = "2024-01-31", "the service answered HTTP 503: not now"
STOPS = ("--on-error", "stop")


def test_going_on_after_errors_lists_the_gaps_and_status_knows_them(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(1, 2, 4)
    target = "{start:%H}.csv"
    done = shell("export", QUERY, *HOURS, "-o", target, "--retries", "0")
    told = {"rows": "36", "bytes": "998", "windows": "6", "missing": "3"}
    assert (done.returncode, told.items() <= summary(done.stderr).items()) == (6, True)
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
    told = {"rows": "72", "bytes": "2006", "windows": "6", "kept": "3"}
    assert (rest.returncode, told.items() <= summary(rest.stderr).items()) == (0, True)
    assert "missing,0\n" in shell("export", "status", target).stdout


def test_the_status_of_a_finished_file_counts_what_is_in_it_until_it_is_removed(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "all.csv").returncode == 0
    assert counts(home, "all.csv") == {"windows": "6", "rows": "72", "bytes": "1946", "missing": "0"}
    (home.home / "all.csv").unlink()
    gone = {"windows": "0", "rows": "0", "bytes": "0", "missing": "6", "no file": "all.csv"}
    assert counts(home, "all.csv") == gone


def test_the_status_of_an_unfinished_file_counts_the_bytes_of_its_rows(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(3)
    assert shell("export", QUERY, *HOURS, "-o", "all.csv", "--workers", "1", "--retries", "0", *STOPS).returncode == 6
    whole = shell("query", QUERY, "--from", "2024-01-31", "--to", "3h", "-f", "csv").stdout
    size = str(len(whole) - len("eventdate,n\n"))
    assert counts(shell, "all.csv") == {"windows": "3", "rows": "36", "bytes": size, "missing": "3"}


def test_status_misses_a_file_that_was_removed(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    (home.home / "04.csv").unlink()
    told = {"windows": "5", "rows": "60", "bytes": "1670", "missing": "1", "no file": "04.csv"}
    assert counts(home, "{start:%H}.csv") == told


def test_runs_of_a_state_export_each_window_once_when_it_is_old_enough(moved: Moved) -> None:
    out = moved.shell.home / "out"
    moved.now = START + 3600 + 599

    def nothing(start: str, end: str) -> tuple[int, str]:
        return 0, f"svcctl: nothing to export yet: no window of {DAY}T{start}Z to {DAY}T{end}Z is ready\n"

    assert hourly(moved) == nothing("00:00:00", "01:09:59")
    moved.now = START + 3600 + 600
    assert hourly(moved) == (0, "svcctl: rows=12 bytes=326 windows=1 seconds=…\n")
    assert hourly(moved) == hourly(moved, "--dry-run") == nothing("01:00:00", "01:10:00")
    moved.now = START + 4 * 3600 + 1800  # two runs were missed
    assert hourly(moved) == (0, "svcctl: rows=36 bytes=1008 windows=3 seconds=…\n")
    moved.now = START  # the clock goes back
    assert hourly(moved) == nothing("04:00:00", "04:00:00")
    moved.now = START + 9 * 3600
    assert hourly(moved, "--to", "2024-01-31T04:00:00Z") == nothing("04:00:00", "04:00:00")
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

    def nightly(query: str = QUERY, start: str = "1h") -> tuple[int, str]:
        command = ("--from", start, "--window", "1h", "--state", "s", "-o", target)
        return moved("export", query, *command, "--retries", "0", "--workers", "1", "--metrics", str(figures))

    moved.now = START + 3600  # the window has just ended
    assert nightly()[0] == 0
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
    for start in ("1h", "3h"):
        code, told = nightly(start=start)
        assert (code, "2024-01-31 00:00:00 to 2024-01-31 01:00:00 UTC" in told) == (6, True)
    proxied[1].choose = broken()
    assert nightly() == (0, "svcctl: rows=12 bytes=326 windows=1 seconds=…\n")
    moved.now += 3600
    assert nightly() == (0, "svcctl: rows=12 bytes=336 windows=1 seconds=…\n")
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
        (QUERY, f"3 of 3 windows missing, from {DAY} 00:00:00 to {DAY} 03:00:00 UTC: {NOT_NOW}"),
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
            f"name,target,until,verified,missing,failed\ns,{target},2024-01-31T00:00:00Z,,3,{failed}\n"
        )
        command = shlex.join(["svcctl", "export", query, "-o", target, "--state", "s"])
        assert moved("export", "verify", "s") == (
            7,
            "svcctl: error: 2024-01-31 00:00:00 to 2024-01-31 03:00:00 UTC is not exported yet\n"
            f"svcctl: error: the export to {target} is not intact\n"
            f"hint: run the export again: it fetches only what is missing: {command}\n",
        )
        assert nightly() == 6
    proxied[1].choose = broken()
    assert nightly() == 0
    assert moved.shell("export", "status", "s").stdout.endswith("\nnext run from,2024-01-31T03:00:00Z\n")
    assert moved("export", "verify") == (0, "svcctl: s: 3 files, 998 bytes: all unchanged\n")


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
    assert hourly(moved, "--lag", lag) == (0, "svcctl: rows=12 bytes=326 windows=1 seconds=…\n")


def test_a_lag_without_a_state_says_what_it_leaves_out(moved: Moved, tmp_path: Path) -> None:
    moved.now = START + 3 * 3600 + 1800
    command = ("export", QUERY, "--from", "2024-01-31", "--lag", "10m")
    written = "svcctl: rows=24 bytes=650 windows=1 seconds=…\n"
    assert moved(*command, "--window", "2h", "-o", f"{tmp_path}/a.csv") == (
        0,
        "svcctl: left out 2024-01-31T02:00:00Z to 2024-01-31T03:30:00Z: these windows have "
        f"not ended, or ended less than --lag ago\n{written}",
    )
    moved.now -= 1500
    assert moved(*command, "-o", f"{tmp_path}/b.csv") == (
        0,
        "svcctl: left out 2024-01-31T02:00:00Z to 2024-01-31T03:05:00Z: these windows have "
        f"not ended, or ended less than --lag ago\n{written.replace('windows=1', 'windows=2')}",
    )
    assert moved("-q", *command, "-o", f"{tmp_path}/c.csv") == (0, "")
    assert moved(*command, "--to", "2h", "-o", f"{tmp_path}/d.csv")[1] == written.replace("windows=1", "windows=2")


def test_the_state_moves_to_the_first_gap(moved: Moved, proxied: tuple[Shell, FaultyProxy]) -> None:
    moved.now = START + 5 * 3600
    proxied[1].choose = broken(2)
    code, told = hourly(moved, "--retries", "0")
    assert (code, told.splitlines()[0]) == (6, "svcctl: rows=36 bytes=998 windows=4 missing=1 seconds=…")
    states = States(moved.shell.home / "states")
    assert states.need("timed").until == START + 2 * 3600
    assert moved.shell("export", "status", "timed").stdout.splitlines()[-2:] == [
        "next run from,2024-01-31T02:00:00Z",
        f'last run failed,"{DAY}T05:00:00Z: 1 of 4 windows missing, from {DAY} 02:00:00 to {DAY} 03:00:00 UTC: '
        f'{NOT_NOW}"',
    ]
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
    assert moved(*every)[0] == 6
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


def test_force_forgets_nothing_of_the_runs_before(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    whole = (0, all_whole(4, 1334))
    assert hourly(moved)[0] == 0
    moved.now += 2 * 3600
    assert hourly(moved, "--force") == (0, "svcctl: rows=24 bytes=672 windows=2 seconds=…\n")
    assert moved("export", "verify", "timed") == whole
    given = ("--from", "2024-01-31T01:00:00Z", "--to", "2024-01-31T02:00:00Z", "-o", target, "--force")
    (moved.shell.home / "out" / "2024-01-31T01.csv").write_text("eventdate,n\n")
    assert moved("export", QUERY, *given)[0] == 0
    assert moved("export", "verify", "timed") == whole


def test_a_percent_sign_in_a_folder_of_an_export(home: Shell) -> None:
    given = (*HOURS, "-o", "a%%b/{start:%H}.csv", "--window", "6h")
    assert home("export", QUERY, *given).returncode == 0
    assert [path.name for path in home.home.iterdir()] == ["a%b"]
    (home.home / "a%b").rename(home.home / "c")
    done = home("export", "verify", "c/{start:%H}.csv")
    assert (done.returncode, "1 file, 1.9 kB" in done.stderr) == (0, True)


def test_a_second_run_of_a_state_ends_at_once(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    with States(moved.shell.home / "states").locked("timed"):
        assert hourly(moved) == (9, "svcctl: error: another run of the export 'timed' has not ended yet\n")


@pytest.mark.parametrize(
    ("changed", "what", "same"),
    [
        (("from timed.events where n > 1",), "another query", "the same query"),
        ((QUERY, "--time-zone", "Europe/Madrid"), "another time zone", "no --time-zone"),
        (
            ("from timed.events where n > 1", "--window", "2h"),
            "another query and another window (1h)",
            "the same query and --window 1h",
        ),
    ],
)
def test_a_state_says_what_differs_from_its_export(
    moved: Moved, changed: tuple[str, ...], what: str, same: str
) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    assert moved("export", *changed, "--state", "timed", "-o", target) == (
        2,
        f"svcctl: error: {target} belongs to another export: {what}\n"
        f"hint: give {same}, write to another path, or start over: 'svcctl export rm timed --yes', then the same "
        "command with --from DATE --force\n",
    )


def test_a_state_with_another_path_says_where_one_of_another_name_starts(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    assert moved("export", QUERY, "--state", "timed", "-o", f"{moved.shell.home}/new/{{start:%FT%H}}.csv") == (
        2,
        f"svcctl: error: the state 'timed' belongs to the export to {target}\n"
        "hint: give another name to --state, with --from 2024-01-31T02:00:00Z\n",
    )


def test_two_states_do_not_export_to_one_path(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    code, told = moved("export", QUERY, "--from", "2024-01-31T02:00:00Z", "--state", "other", "-o", target)
    assert (code, "the state 'timed'" in told) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "query", "target"),
    [
        ("csv", "from {}", "{start:%FT%H}"),
        ("csv", "from {} where n > 0 select *, n + 1 as m", "{from:%FT%H}"),
        ("tsv.gz", "select * from {}", "{from:%FT%H}"),
        ("ndjson", "select *, n + 1 as m from {}", "{start:%FT%H}"),
        ("parquet", "from {}", "{from:%FT%H}"),
    ],
)
def test_an_export_of_all_columns_keeps_those_that_it_began_with(
    moved: Moved,
    proxied: tuple[Shell, FaultyProxy],
    events: Shell,
    tmp_path: Path,
    ending: str,
    query: str,
    target: str,
) -> None:
    table = "gaining.t" + hashlib.sha256(f"{ending}{query}{target}".encode()).hexdigest()[:8]
    file, query = tmp_path / "a.csv", query.format(table)

    def load(names: str, *rows: str) -> None:
        file.write_text("\n".join((f"eventdate,{names}", *rows, "")))
        assert events("service", "load", str(file), "--table", table).returncode == 0

    def hourly(folder: str, *options: str) -> str:
        moved.now += 3600
        path = f"{tmp_path}/{folder}/{target}.{ending}"
        code, said = moved("export", query, "--from", "2024-01-31", "--lag", "0", "-o", path, *options)
        assert code == 0, said
        return said

    load("n", "2024-01-31 00:00:00,1", "2024-01-31 03:00:00,3")
    state = f"a-{table}"
    hourly("a", "--state", state)
    load("x,n,y z`", "2024-01-31 01:30:00,q,2,1")
    note = (
        "svcctl: the table has new columns, which this export leaves out: x, y z`; to include them, export to another "
        "path, or export the whole range again with --force\n"
    )
    assert note in "".join(hourly("a", "--state", state) for _ in range(4))
    files = sorted(str(path) for path in (tmp_path / "a").iterdir() if not path.name.startswith("."))
    assert {_names(path) for path in files} - {()} == {("eventdate", "n", *["m"] * ("as m" in query))}
    load("x,n,y z`", "2024-01-31 00:10:00,q,9,1")
    proxied[1].forget()
    code, said = moved("export", "reconcile", state)
    assert (code, note in said, "1 replaced" in said) == (0, True, True), said
    assert moved("-q", "export", "verify", state) == (0, "")
    assert {_names(path) for path in files} - {()} == {("eventdate", "n", *["m"] * ("as m" in query))}
    assert note not in hourly("b", "--state", f"b-{table}")
    others = {_names(str(path)) for path in (tmp_path / "b").iterdir() if not path.name.startswith(".")} - {()}
    assert others == {("eventdate", "n", "x", "y z`", *["m"] * ("as m" in query))}


def _names(path: str) -> tuple[str, ...]:
    """The columns of a file; none of one without events that does not name them."""
    if path.endswith(".parquet"):
        return tuple(pq.read_schema(path).names)
    data = Path(path).read_bytes()
    rows = (gzip.decompress(data) if path.endswith(".gz") else data).decode().splitlines()
    if path.endswith(".ndjson"):
        found = {tuple(json.loads(row)) for row in rows}
        assert len(found) < 2
        return found.pop() if found else ()
    return tuple(rows[0].split("\t" if ".tsv" in path else ",")) if rows else ()


@pytest.mark.parametrize(
    ("ending", "before", "now"),
    [
        ("csv", "eventdate,n", "eventdate,m"),
        ("parquet", "eventdate timestamp, n int8", "eventdate timestamp, m int8"),
    ],
)
def test_columns_that_differ_from_earlier_runs_are_noted_once(
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
    load(f"eventdate,m\n{START},2\n")
    assert hourly() == (0, f"svcctl: the columns differ from those of earlier files: {now} (before: {before})\n")
    assert hourly() == (0, "")


def test_status_shows_the_options_that_a_run_of_a_state_has_to_repeat(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    given = ("--time-zone", "Europe/Madrid", "--date-format", "iso")
    assert hourly(moved, *given)[0] == 0
    code, told = hourly(moved, *given[:2])
    assert (code, told.splitlines()[0]) == (
        2,
        f"svcctl: error: {moved.shell.home}/out/{{start:%FT%H}}.csv belongs to another export: "
        "another date format (iso)",
    )
    assert moved.shell("export", "status", "timed").stdout.splitlines()[5:8] == [
        "window,1h",
        "date format,iso",
        "time zone,Europe/Madrid",
    ]


def test_states_are_listed_and_removed_and_their_files_stay(moved: Moved) -> None:
    assert moved.shell("export", "status").stdout == "name,target,until,verified,missing,failed\n"
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    given = ("--from", "2024-01-31", "--to", "1h", "--state", "other", "-o", "other/{start:%FT%H}.csv")
    assert moved.shell("export", QUERY, *given).returncode == 0
    listed = (
        "name,target,until,verified,missing,failed\n"
        f"other,{moved.shell.home}/other/{{start:%FT%H}}.csv,2024-01-31T01:00:00Z,,0,\n"
        f"timed,{moved.shell.home}/out/{{start:%FT%H}}.csv,2024-01-31T02:00:00Z,,0,\n"
    )
    assert moved.shell("export", "status").stdout == listed
    (moved.shell.home / "out" / "2024-01-31T01.csv").unlink()
    far = State("s3://bucket/{start:%H}.csv", START)
    new = State(f"{moved.shell.home}/new/{{start:%H}}.csv", START)
    default_states(moved.shell.environment).save("far", far)
    default_states(moved.shell.environment).save("new", new)
    record = next((moved.shell.home / "other").glob(".*.export/record.json"))
    record.write_text("{}")
    shown = moved.shell("export", "status")
    assert shown.stdout == (
        "name,target,until,verified,missing,failed\n"
        "far,s3://bucket/{start:%H}.csv,2024-01-31T00:00:00Z,,,\n"
        f"new,{moved.shell.home}/new/{{start:%H}}.csv,2024-01-31T00:00:00Z,,,\n"
        f"other,{moved.shell.home}/other/{{start:%FT%H}}.csv,2024-01-31T01:00:00Z,,,\n"
        f"timed,{moved.shell.home}/out/{{start:%FT%H}}.csv,2024-01-31T02:00:00Z,,1,\n"
    )
    assert (shown.returncode, str(record.relative_to(moved.shell.home)) in shown.stderr) == (0, True)
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


def test_a_length_as_the_end_counts_from_where_each_run_of_a_state_starts(moved: Moved) -> None:
    moved.now = START + 5 * 3600
    for _ in range(2):
        code, said = hourly(moved, "--to", "2h")
        assert (code, said.split(" bytes")[0]) == (0, "svcctl: rows=24")
    assert left(moved.shell.home / "out") == [f"2024-01-31T0{hour}.csv" for hour in range(4)]


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
        f"svcctl: error: the state 'there' belongs to the export to {one}/{{start:%FT%H}}.csv\n"
        f"hint: give another name to --state, with --from 2024-01-31T02:00:00Z\n",
    )
    assert moved("export", "verify", "there") == (0, all_whole(2, 662))
    (one / "2024-01-31T00.csv").rename(one / "2024-01-30T00.csv")
    assert moved("export", "verify", "there") == (
        7,
        f"svcctl: error: {one}/2024-01-31T00.csv is missing\n"
        f"{forgets('there')}"
        f"svcctl: error: the export to {one}/{{start:%FT%H}}.csv is not intact\n"
        f"{hinted(f'{one}/{{start:%FT%H}}.csv', '--from 2024-01-31T00:00:00Z --to 2024-01-31T01:00:00Z')}",
    )
    assert f"target,{one}/{{start:%FT%H}}.csv\n" in moved.shell("export", "status", "there").stdout
    (one / "2024-01-30T00.csv").rename(one / "2024-01-31T00.csv")
    hidden = folder_of(Target(f"{one}/{{start:%FT%H}}.csv"))
    shutil.move(hidden, one / "hidden")
    code, told = moved("export", "verify", "there")
    assert (code, f"{Path(hidden).name}/record.json" in told) == (2, True)
    shutil.move(one / "hidden", hidden)
    monkeypatch.chdir(one)
    moved.now += 3600
    assert moved(*command)[0] == 0


def test_a_first_run_that_goes_on_or_was_killed_has_a_status(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    proxy.choose = broken(1, fault="stall")
    process = shell.start(
        "export", QUERY, *HOURS, "--state", "first", "-o", "{start:%FT%H}.csv", stderr=subprocess.PIPE
    )
    try:
        proxy.await_requests(2)
        assert "next run from,2024-01-31T00:00:00Z" in shell("export", "status", "first").stdout
    finally:
        process.kill()
        process.communicate()
    assert "next run from,2024-01-31T00:00:00Z" in shell("export", "status", "first").stdout
    proxy.choose = broken()
    verified = shell("export", "verify", "first")
    assert verified.stderr.splitlines()[-1] == (
        "hint: run the export again: it fetches only what is missing: "
        f"svcctl export '{QUERY}' -o '{shell.home}/{{start:%FT%H}}.csv' --state first"
    )
    assert shell(*pasted(verified.stderr), "--to", "6h").returncode == 0
    assert shell("export", "verify", "first").returncode == 0


def test_an_export_that_never_ran_has_no_status(home: Shell) -> None:
    done = home("export", "status", "nothing")
    assert (done.returncode, done.stdout, "'nothing'" in done.stderr) == (4, "", True)
