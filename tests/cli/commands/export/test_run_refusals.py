"""`svcctl export` refuses what it cannot do, before anything is written; and dry runs."""

from __future__ import annotations

import re

import pytest
from support.shells import Shell
from support.timed_events import HOURS, QUERY, START, Moved, all_whole, hourly, left

from svcctl.exports.state import default_states


def test_a_dry_run_prints_the_windows_and_leaves_nothing(home: Shell) -> None:
    query = "from timed.events group every 2h select percentile(n, 50)"
    done = home("export", query, *HOURS, "-o", "{start:%H}.csv", "--window", "3h", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "from,to,file\n2024-01-31T00:00:00Z,2024-01-31T06:00:00Z,00.csv\n")
    assert "6h" in done.stderr
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
    assert (done.returncode, done.stdout.count("\n"), left(shell.home)) == (0, 7, [])


def test_a_query_that_is_refused_leaves_no_folders(home: Shell) -> None:
    done = home("export", "from timed.events wher n", *HOURS, "-o", "all/{start:%F/%H}.csv")
    assert (done.returncode, list(home.home.iterdir())) == (1, [])


@pytest.mark.parametrize("query", ["from timed.events where m = 1", "from timed.nothing", "from timed.events wher n"])
def test_force_with_a_mistake_in_the_query_costs_nothing(home: Shell, query: str) -> None:
    assert home("export", QUERY, *HOURS, "-o", "all.csv").returncode == 0
    assert home("export", query, *HOURS, "-o", "all.csv", "--force").returncode == 1
    assert home("export", "verify", "all.csv").returncode == 0


def test_the_hint_about_a_damaged_record_starts_the_state_over(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    (record,) = moved.shell.home.glob("out/.*.export/record.json")
    record.write_text(record.read_text().replace("2024", "2025"))
    moved.now += 2 * 3600
    refused = (
        2,
        f"svcctl: error: the record {record} is damaged\n"
        "hint: start over: 'svcctl export rm timed --yes', then the same command with --from DATE --force\n",
    )
    assert moved("export", "verify", "timed") == refused
    assert hourly(moved) == hourly(moved, "--force") == hourly(moved, "--force", "--dry-run") == refused
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    given = ("--from", "2024-01-31", "--to", "2024-01-31T02:00:00Z", "-o", target, "--force")
    assert moved("export", QUERY, *given) == refused  # the files of the state's runs would be unknown
    assert moved("export", "rm", "timed", "--yes")[0] == 0
    assert hourly(moved, "--force") == (
        0,
        f"svcctl: rows=48 bytes=1334 windows=4 seconds=…\nsvcctl: replaced {record}, which was damaged\n",
    )
    assert moved("export", "verify", "timed") == (0, all_whole(4, 1334))


def test_a_state_refuses_a_path_that_all_runs_would_share(moved: Moved) -> None:
    assert moved("export", QUERY, "--from", "2024-01-31", "--state", "timed", "-o", "nowhere/all.csv") == (
        2,
        "svcctl: error: every run of a state needs a file of its own, and all runs would write nowhere/all.csv\n"
        "hint: name a file for each window, out/{start:%Y%m%dT%H}.csv, or for each run, out/{from:%Y%m%dT%H}.csv\n",
    )


def test_a_command_that_is_refused_is_no_failed_run_of_its_state(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    assert moved("export", "from timed.events where n > 1", "--state", "timed", "-o", target)[0] == 2
    assert default_states(moved.shell.environment).need("timed").failed == ""


def test_a_range_that_has_not_ended_is_refused(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert moved("export", QUERY, *HOURS, "-o", "all.csv") == (
        2,
        "svcctl: error: the range ends in the future, at 2024-01-31 06:00:00 UTC\n"
        "hint: give --to now, or add --lag 10m to leave out the windows that have not ended\n",
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("export", QUERY, "-o", "all.csv"),
            "svcctl: error: the range has no start\nhint: give --from\n",
        ),
        (
            ("export", QUERY, "--from", "2024-01-31 10:00:53.718", "-o", "all.csv"),
            "svcctl: error: '2024-01-31 10:00:53.718' has a fraction of a second\n"
            "hint: dates here are whole seconds: 2024-01-31T10:00:53 or 2024-01-31T10:00:54\n",
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
            "svcctl: error: new/ ends with /, so it is not a file\nhint: name a file in it, as in -o new/events.csv\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "~/all.csv"),
            "svcctl: error: ~/all.csv begins with ~, which the shell does not replace within quotes\n"
            'hint: write "$HOME/all.csv"\n',
        ),
        (
            ("export", QUERY, *HOURS, "-o", "out/${NO_NAME}/{start:%H}.csv"),
            "svcctl: error: out/${NO_NAME}/{start:%H}.csv has ${NO_NAME} in it, which the shell does not replace "
            'within single quotes\nhint: write "out/${NO_NAME}/{start:%H}.csv"\n',
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
            "svcctl: error: the ending of 'all.json' does not name an export format\n"
            "hint: endings are .csv, .tsv, .ndjson or .jsonl, each with .gz or .zst, and .parquet; "
            "other endings need --format\n",
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
            "svcctl: error: cannot write /proc/.all.csv.export/run: No such file or directory\n"
            "hint: a run keeps its lock and its parts next to /proc/all.csv\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--max-time", "soon"),
            "svcctl: error: --max-time 'soon' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--metrics", "nowhere/a.prom"),
            "svcctl: error: the metrics file nowhere/a.prom cannot be written: no such directory, or no permission\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--metrics", "$NO_NAME/a.prom"),
            "svcctl: error: $NO_NAME/a.prom has $NO_NAME in it, which the shell does not replace within single quotes\n"
            'hint: write "$NO_NAME/a.prom"\n',
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--window", "1x"),
            "svcctl: error: --window '1x' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv", "--on-error", "ignore"),
            "svcctl: error: unknown --on-error 'ignore'\nhint: it is one of: continue, stop\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.ndjson", "--date-format", "iso"),
            "svcctl: error: --date-format works only with csv and tsv, not with ndjson\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "a.parquet", "--date-format", "iso", "--time-zone", "Europe/Berlin"),
            "svcctl: error: --date-format works only with csv and tsv, not with parquet\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "out/{start:"),
            "svcctl: error: 'out/{start:' is not a pattern: unmatched '{' in format spec\n"
            "hint: in a crontab, write \\% for %: cron ends the command at %\n",
        ),
        (
            ("export", QUERY, *HOURS, "-o", "all.csv.xz", "-f", "csv"),
            "svcctl: error: svcctl cannot write .xz files\nhint: write .gz or .zst instead\n",
        ),
    ],
)
def test_impossible_exports_are_refused_with_a_hint(home: Shell, arguments: tuple[str, ...], told: str) -> None:
    done = home(*arguments)
    assert (done.returncode, done.stderr, left(home.home)) == (2, told, [])


@pytest.mark.parametrize(("name", "ending"), [("all.pdf", "pdf"), ("{from:%H}.json", "json")])
def test_an_ending_of_another_format_has_the_message_of_a_query(home: Shell, name: str, ending: str) -> None:
    done = home("export", QUERY, *HOURS, "-o", name, "-f", "csv")
    assert (done.returncode, done.stderr.splitlines()[0].endswith(f" {ending}")) == (0, True)


def test_a_mistake_in_the_query_is_shown_once_and_not_as_that_of_a_window(home: Shell) -> None:
    done = home("export", f"{QUERY} select m", *HOURS, "-o", "all.csv", "--on-error", "continue")
    assert (done.returncode, done.stderr.count("column 'm'"), "window" in done.stderr, left(home.home)) == (
        1,
        1,
        False,
        [],
    )
