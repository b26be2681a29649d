"""`svcctl export` for collectors: figures, events as JSON, and how a run ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.faults import FaultyProxy
from support.shells import Shell
from support.timed_events import HOURS, QUERY, START, Moved, broken, hourly, left

from svcctl.exports.state import States


@pytest.mark.slow
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


@pytest.mark.slow
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
    start, window, summary, error = map(json.loads, done.stderr.splitlines())
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
    assert (summary["event"], summary["missing"]) == ("summary", 1)
    assert error == {
        "event": "error",
        "message": "1 of 2 windows missing, from 2024-01-31 03:00:00 to 2024-01-31 06:00:00 UTC: "
        "the service answered HTTP 503: not now",
        "hint": "the same command again fetches only what is missing",
        "exit": 6,
    }


def test_the_figures_of_a_run_are_written_after_a_failure_too(
    moved: Moved, proxied: tuple[Shell, FaultyProxy], tmp_path: Path
) -> None:
    file = tmp_path / "svcctl.prom"
    moved.now = START + 3 * 3600

    def figures() -> dict[str, str]:
        lines = [line.split(" ") for line in file.read_text().splitlines() if not line.startswith("#")]
        return {name.removeprefix("svcctl_export_").removesuffix('{export="timed"}'): value for name, value in lines}

    proxied[1].choose = broken(1)
    assert hourly(moved, "--metrics", str(file), "--retries", "0", "--on-error", "stop")[0] == 6
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
    for mistake in (("--log-format", "xml"), ("--var", "x"), ("-f", "doc"), ("-F", "nowhere.q")):
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
