"""`svcctl export` for collectors: the figures of a run, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
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
            "hint: the export itself is complete",
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
    assert (first, idle) == (
        "yesterday",
        "svcctl: nothing to do: all.csv is already complete; --force fetches it again",
    )
    assert success in figures
    os.mkfifo(pipe)
    with home.start(*command, str(pipe), stderr=subprocess.DEVNULL) as run:
        assert success in pipe.read_text().splitlines()
    assert run.returncode == 0


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
    ended = {"timestamp_seconds": "1706670000", "duration_seconds": "0", "retries": "0", "verified_seconds": "0"}
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
    for mistake in (("--on-error", "xml"), ("--var", "x"), ("-f", "doc"), ("-F", "nowhere.q")):
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
        assert len(lines) == 11
        figures.unlink()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_collectors_learn_that_a_signal_ended_the_export(
    proxied: tuple[Shell, FaultyProxy], sent: signal.Signals, code: int
) -> None:
    shell, proxy = proxied
    proxy.choose = broken(4, fault="stall")
    command = ("export", QUERY, *HOURS, "-o", "all.csv", "--workers", "1", "--metrics", "a.prom")
    process = shell.start(*command, stderr=subprocess.PIPE)
    proxy.await_requests(5)
    process.send_signal(sent)
    process.communicate(timeout=20)
    assert (process.returncode, left(shell.home)) == (code, ["a.prom"])
    assert f'svcctl_export_success{{export="{shell.home}/all.csv"}} 0\n' in (shell.home / "a.prom").read_text()
