"""What `svcctl export` says on stderr: each text is here once, and the tests beside this file state what happens."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from peers.processes import free_port
from support.faults import FaultyProxy
from support.shells import Shell
from support.timed_events import BERLIN, HOURS, QUERY, broken, forgets, hinted, timeless

from svcctl.cli.commands.export.report import progress_line
from svcctl.exports.workers.dispatch import RunProgress

BOTH = "--from 2024-01-31T01:00:00Z --to 2024-01-31T05:00:00Z"
WHOLE = "--from 2024-01-31T00:00:00Z --to 2024-01-31T06:00:00Z"
PERIODS = f"{QUERY} group every 1d select count() as n"
MEDIANS = f"{QUERY} group every 2h select percentile(n, 50)"
HDFS = f"hdfs://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def exported(events: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A home in which exports are whole (`all.csv`, `hours`), have damaged files (`worn`, `odd`) or states."""
    folder = tmp_path_factory.mktemp("words")
    shell = Shell(folder, {"SVCCTL_DATA": events.environment["SVCCTL_DATA"], "SVCCTL_STATE": str(folder / "states")})
    options = ("--window", "2h", "--date-format", "iso", "--time-zone", "GMT+1")
    for command in (
        (QUERY, *HOURS, "-o", "all.csv"),
        (QUERY, *HOURS, "-o", "torn.csv"),
        (QUERY, "--from", "2024-01-31", "--to", "3h", "-o", "three.csv"),
        (QUERY, *HOURS, "-o", "hours/{start:%H}.csv"),
        (QUERY, *HOURS, "-o", "worn/{start:%H}.csv"),
        (f"{QUERY} // all", *HOURS, "-o", "odd 1/{start:%H}.txt", "-f", "csv", *options),
        (QUERY, *HOURS, "--state", "other", "-o", "other/{start:%FT%H}.csv"),
    ):
        target = folder / command[command.index("-o") + 1]
        target.parent.mkdir(exist_ok=True)
        done = shell("export", *command)
        assert done.returncode == 0, done.stderr
    for damaged in ("torn.csv", "worn/01.csv"):
        (folder / damaged).write_text("eventdate,n\n")
    for removed in ("worn/04.csv", "odd 1/02.txt"):
        (folder / removed).unlink()
    return shell


WORDS: dict[str, tuple[tuple[str, ...], str]] = {
    "a whole file": (("verify", "all.csv"), "svcctl: 1 file, 1.9 kB: all unchanged\n"),
    "whole files": (("verify", "hours/{start:%H}.csv"), "svcctl: 6 files, 2.0 kB: all unchanged\n"),
    "a file again": (
        (QUERY, *HOURS, "-o", "all.csv"),
        "svcctl: nothing to do: all.csv is already complete; --force fetches it again\n",
    ),
    "files again": (
        (QUERY, *HOURS, "-o", "hours/{start:%H}.csv"),
        "svcctl: nothing to do: 6 files are already complete: hours/00.csv to hours/05.csv; "
        "--force fetches them again\n",
    ),
    "a file of more time": (
        (QUERY, *HOURS, "-o", "three.csv"),
        "svcctl: rows=72 bytes=1946 windows=6 seconds=…\n"
        "svcctl: replaced three.csv, which held 2024-01-31 00:00:00 to 2024-01-31 03:00:00 UTC\n",
    ),
    "no directory": (
        (QUERY, *HOURS, "-o", "none/all.csv"),
        "svcctl: error: the directory none does not exist\nhint: make it with: mkdir -p none\n",
    ),
    "no HDFS": (
        (QUERY, *HOURS, "-o", f"{HDFS}/all.csv"),
        f"svcctl: error: {HDFS}/.all.csv.export/run: no connection to {HDFS}: Connection refused\n"
        "hint: check host and port of the NameNode, and that it runs; "
        "the same command again fetches only what is missing\n",
    ),
    "periods in UTC": (
        (PERIODS, *BERLIN, "-o", "{start:%F}.csv", "--dry-run"),
        "svcctl: 'group every' counts in UTC: a period begins at 01:00 Europe/Berlin\n"
        "svcctl: the names of files are in UTC, like the periods of the query, and not in Europe/Berlin\n"
        "svcctl: each file covers a whole window: exporting 2024-01-30T00:00:00Z to 2024-02-02T00:00:00Z\n",
    ),
    "windows of periods": (
        (MEDIANS, *HOURS, "-o", "{start:%H}.csv", "--window", "3h", "--dry-run"),
        "svcctl: windows are 6h long: the query's periods do not divide 3h\n",
    ),
    "another ending": (
        (QUERY, *HOURS, "-o", "a.pdf", "-f", "csv", "--dry-run"),
        "svcctl: a.pdf contains csv, not pdf\n",
    ),
    "a mistake in the query": (
        (f"{QUERY} select m", *HOURS, "-o", "m.csv"),
        "svcctl: error: line 1, column 26: no column 'm' (columns are eventdate, n) (code 1, cid …)\n"
        "  from timed.events select m\n"
        "                           ^\n",
    ),
    "status of damaged files": (
        ("status", "worn/{start:%H}.csv"),
        "svcctl: files were removed or changed: svcctl export verify 'worn/{start:%H}.csv'\n",
    ),
    "damaged and missing files": (
        ("verify", "worn/{start:%H}.csv"),
        "svcctl: error: worn/01.csv is damaged\nsvcctl: error: worn/04.csv is missing\n"
        + forgets("worn/{start:%H}.csv")
        + "svcctl: error: the export to worn/{start:%H}.csv is not intact\n"
        + hinted("worn/{start:%H}.csv", BOTH),
    ),
    "one damaged file": (
        ("verify", "torn.csv"),
        "svcctl: error: torn.csv is damaged\nsvcctl: error: the export to torn.csv is not intact\n"
        + hinted("torn.csv", WHOLE),
    ),
    "a damaged file again": (
        (QUERY, *HOURS, "-o", "torn.csv"),
        "svcctl: rows=72 bytes=1946 windows=6 seconds=…\n"
        "svcctl: replaced torn.csv, which had changed since its export\n",
    ),
    "options": (
        ("verify", "odd 1/{start:%H}.txt"),
        "svcctl: error: odd 1/02.txt is missing\n"
        + forgets("odd 1/{start:%H}.txt")
        + "svcctl: error: the export to odd 1/{start:%H}.txt is not intact\n"
        "hint: fetch the missing windows with: svcctl export 'from timed.events' --window 2h --date-format iso "
        "--time-zone GMT+1 --format csv -o 'odd 1/{start:%H}.txt' "
        "--from 2024-01-31T01:00:00Z --to 2024-01-31T03:00:00Z\n",
    ),
    "no export": (
        ("status", "nothing"),
        "svcctl: error: no export goes to 'nothing', and no state has that name\n"
        "hint: give the path as it was given to -o; the states are: other\n",
    ),
    "a state": (
        ("rm", "other"),
        "svcctl: error: this needs confirmation: Remove the state 'other' of <home>/other/{start:%FT%H}.csv, "
        "up to 2024-01-31T06:00:00Z? Its files stay.\nhint: add --yes\n",
    ),
    "no state": (("rm", "none", "--yes"), "svcctl: error: no export state 'none'\nhint: states are: other\n"),
}


@pytest.mark.parametrize("case", WORDS)
def test_an_export_prints_its_whole_message(exported: Shell, tmp_path: Path, case: str) -> None:
    arguments, said = WORDS[case]
    shutil.copytree(exported.home, tmp_path, symlinks=True, dirs_exist_ok=True)
    shell = Shell(tmp_path, exported.variables)
    stderr = shell("export", *arguments).stderr.replace(str(exported.home), "<home>")
    assert timeless(re.sub(r"cid \w+", "cid …", stderr)) == said


def test_a_folder_where_a_record_is_damaged_is_named(exported: Shell) -> None:
    (record,) = (exported.home / "other").glob(".*.export/record.json")
    record.write_text("{}")
    damaged = f"svcctl: the record {record} is damaged\n"
    assert exported("export", "status").stderr == damaged


FAILED = {
    "stop": (
        (5,),
        "svcctl: error: window 2024-01-31 05:00:00 to 2024-01-31 06:00:00 UTC: "
        "the service answered HTTP 503: not now\n",
    ),
    "continue": (
        (1, 2, 4),
        "svcctl: rows=36 bytes=998 windows=6 missing=3 seconds=…\n"
        "svcctl: error: 2024-01-31 01:00:00 to 2024-01-31 03:00:00 UTC is missing: "
        "the service answered HTTP 503: not now\n"
        "svcctl: error: 2024-01-31 04:00:00 to 2024-01-31 05:00:00 UTC is missing: "
        "the service answered HTTP 503: not now\n"
        "svcctl: error: 3 of 6 windows missing, from 2024-01-31 01:00:00 to 2024-01-31 03:00:00 UTC: "
        "the service answered HTTP 503: not now\n",
    ),
}


@pytest.mark.parametrize("on_error", FAILED)
def test_an_export_with_missing_windows_prints_its_whole_message(
    proxied: tuple[Shell, FaultyProxy], on_error: str
) -> None:
    shell, proxy = proxied
    hours, said = FAILED[on_error]
    proxy.choose = broken(*hours)
    options = ("--retries", "0", "--workers", "1", "--on-error", on_error)
    done = shell("export", QUERY, *HOURS, "-o", "{start:%H}.csv", *options)
    assert timeless(done.stderr) == f"{said}hint: the same command again fetches only what is missing\n"


def test_a_rate_in_the_line_of_progress_and_its_unit_have_one_blank_between_them() -> None:
    going = RunProgress(clock=lambda: 0.0)
    going.take(0, 24)
    assert progress_line(going) == "0 of 24 windows, 0 bytes/s"
