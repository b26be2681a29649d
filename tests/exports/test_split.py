"""Files of windows that one request fetches: the bytes of a request for each, whatever breaks or is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support import stepped
from support.exports import START, Exports, contents
from support.faults import FAULTS, FaultyProxy
from support.shells import Shell

from svcctl.dates.zones import named_zone
from svcctl.errors import IncompleteResult, ServiceError, Unavailable
from svcctl.exports.record import Record
from svcctl.exports.state import States
from svcctl.exports.verify import damage
from svcctl.exports.windows import Target
from svcctl.storage.local import LocalStorage

WINDOW = 30
"""Seconds; there are so many windows that one request fetches up to seven of them."""
WINDOWS = 3600 // WINDOW
PATTERN = "day/{start:%H%M%S}"
NAMES = (f"{PATTERN}.csv", f"{PATTERN}.ndjson", f"{PATTERN}.tsv.gz")
MADRID = {"zone": named_zone("Europe/Madrid")}
RUNS = 6
"""The last of them is without faults."""
QUICK = [name for name in FAULTS if name != "stall"]


@pytest.fixture(scope="session")
def alone() -> dict[str, dict[str, bytes]]:
    """The files of exports that request each window by itself, by the target's name and the options."""
    return {}


def known(exports: Exports, alone: dict[str, dict[str, bytes]], name: str, **changes: Any) -> dict[str, bytes]:
    """The files that an export is to make: those of a request for each window."""
    key = f"{name} {changes}"
    if key not in alone:
        choose, exports.proxy.choose = exports.proxy.choose, lambda body: None
        with TemporaryDirectory(dir="/dev/shm") as folder:
            replace(exports, folder=Path(folder)).alone(name, **changes, window=WINDOW)
            alone[key] = contents(Path(folder))
        exports.proxy.choose = choose
        exports.proxy.asked.clear()
    return alone[key]


@pytest.fixture
def exact(exports: Exports) -> Exports:
    """Exports from a service whose answers say that they are of svcctl's own."""
    exports.proxy.exact = True
    return exports


@pytest.mark.parametrize(
    ("name", "changes", "splits"),
    [
        (f"{PATTERN}.csv", {}, True),
        (f"{PATTERN}.ndjson", {}, True),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (f"{PATTERN}.csv", MADRID | {"date_format": "iso"}, True),
                (f"{PATTERN}.tsv.gz", MADRID, True),
                (f"{PATTERN}.ndjson.zst", {"query": "from exported.events where ok select eventdate, n"}, True),
                (f"{PATTERN}.csv", {"query": "from exported.events select name, eventdate"}, False),
                (f"{PATTERN}.csv", {"query": "from exported.events select name"}, False),
                (f"{PATTERN}.csv", {"query": "from exported.events group every 10s by ok select count() as n"}, False),
                (f"{PATTERN}.parquet", {}, False),
            )
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_files_are_those_of_a_request_for_each_window(
    exact: Exports, alone: dict[str, dict[str, bytes]], name: str, changes: dict[str, Any], splits: bool
) -> None:
    expected = known(exact, alone, name, **changes)
    summary = exact(name, **changes, window=WINDOW)
    assert contents(exact.folder) == expected
    assert (summary.fetched, len(expected)) == (WINDOWS, WINDOWS)
    assert (exact.windows_asked() <= WINDOWS * 3 / 4) == splits
    record = Record.find(f"{exact.folder}/{name}", States(exact.folder), {})
    assert (list(damage(record)), record.gaps()) == ([], [])


def test_csv_from_another_service_is_fetched_window_by_window(
    exports: Exports, alone: dict[str, dict[str, bytes]]
) -> None:
    expected = known(exports, alone, NAMES[0])
    exports(NAMES[0], window=WINDOW)
    assert contents(exports.folder) == expected
    assert WINDOWS <= exports.windows_asked() <= WINDOWS + 8


def faulty_runs(exports: Exports, alone: dict[str, dict[str, bytes]], seed: int, faults: list[str]) -> None:
    """One target, run until it is whole: never a wrong file."""
    random = Random(seed)
    name, share = random.choice(NAMES), random.choice((0.05, 0.2, 0.5))
    expected = known(exports, alone, name)
    proxy = exports.proxy
    proxy.seed = seed
    with TemporaryDirectory(dir="/dev/shm") as folder:  # what reaches the disk when is not the question here
        exports = replace(exports, folder=Path(folder), timeout=0.4 if "stall" in faults else 60.0)
        for run in range(1, RUNS + 1):
            proxy.choose = lambda body: random.choice(faults) if random.random() < share else None
            if run == RUNS:
                proxy.choose = lambda body: None
                exports.timeout = 60.0
            try:
                policy = {"retries": random.choice((0, 2)), "workers": random.choice((1, 3))}
                if exports(name, **policy, window=WINDOW, stops=random.choice((True, False))).gaps:
                    raise IncompleteResult("windows are missing")
                break
            except (Unavailable, IncompleteResult, ServiceError):
                assert run < RUNS, f"seed {seed}: failed without a fault"
                assert contents(exports.folder).items() <= expected.items(), f"seed {seed}"
        assert contents(exports.folder) == expected, f"seed {seed}"


@pytest.mark.parametrize("seed", range(3))
def test_faults_never_make_a_wrong_file(exact: Exports, alone: dict[str, dict[str, bytes]], seed: int) -> None:
    faulty_runs(exact, alone, seed, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_faults_never_make_a_wrong_file_however_often(
    exact: Exports, alone: dict[str, dict[str, bytes]], seed: int
) -> None:
    faulty_runs(exact, alone, seed, list(FAULTS))


# Kills between the steps of a file: its bytes, its name, its directory, the record


def command(name: str) -> list[str]:
    ends = ["--from", str(START), "--to", "1h", "--window", f"{WINDOW}s", "--workers", "2"]
    return ["export", "from exported.events", *ends, "-o", f"out/{name}"]


@pytest.fixture
def home(events: Shell, exact: Exports, proxy: FaultyProxy, tmp_path: Path) -> Iterator[Shell]:
    credentials = json.loads((events.home / "data" / "credentials.json").read_text())["local"]
    given = {"SVCCTL_API_KEY": credentials["api_key"], "SVCCTL_API_SECRET": credentials["api_secret"]}
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Shell(Path(folder), given | {"SVCCTL_BASE_URL": proxy.url})


def run_until(home: Shell, name: str, step: int | Path, code: int = 0) -> list[str]:
    """Run the command, killed before a step or failing at a path; returns the steps that were made."""
    log = home.home / "steps"
    log.unlink(missing_ok=True)
    program = [sys.executable, stepped.__file__, str(log), str(step), *command(name)]
    done = subprocess.run(program, cwd=home.home, env=home.environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return log.read_text().splitlines()


def check_durable(home: Shell, steps: list[str]) -> None:
    """Assert that the record names only files whose bytes, name and directory reached the disk before it."""
    (document,) = home.home.rglob("record.json")
    last = max(at for at, step in enumerate(steps) if step == f"replace {document}")
    reached = {step: at for at, step in enumerate(steps[:last])}
    target = Target(f"{document.parent.parent}/PLACE")
    record = Record.from_text(document.read_text(), LocalStorage(), target)
    for entry in record.entries.values():
        path = Path(entry.path)
        named = reached[f"replace {path}"]
        assert reached[f"fsync {path}.part"] < named < reached[f"fsync {path.parent}"], entry.path


def killed_runs(home: Shell, expected: dict[str, bytes], name: str, random: Random) -> None:
    """Kill a run before any of its steps, check what it left, and run it again."""
    out = home.home / "out"
    out.mkdir()
    run_until(Shell(home.home, home.variables), name, 0)
    whole = (home.home / "steps").read_text().splitlines()
    check_durable(home, whole)
    assert contents(out) == expected
    for step in sorted(random.sample(range(1, len(whole)), 4)):
        subprocess.run(["rm", "-rf", out], check=True)
        out.mkdir()
        steps = run_until(home, name, step, -9)
        if any(one.endswith("record.json") for one in steps):
            check_durable(home, steps)
        assert contents(out).items() <= expected.items(), f"step {step}"
        done = home(*command(name))
        assert done.returncode == 0, done.stderr
        assert contents(out) == expected, f"step {step}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(9))
def test_a_run_that_is_killed_between_two_steps_names_only_what_is_on_the_disk_and_is_completed(
    home: Shell, exact: Exports, alone: dict[str, dict[str, bytes]], seed: int
) -> None:
    name = NAMES[seed % len(NAMES)]
    killed_runs(home, known(exact, alone, name), name, Random(seed))


def test_the_record_names_a_file_after_its_bytes_its_name_and_its_directory_are_on_the_disk(home: Shell) -> None:
    (home.home / "out").mkdir()
    steps = run_until(home, NAMES[1], 0)
    check_durable(home, steps)
    folder = f"fsync {home.home}/out/day"
    assert steps.count(folder) <= WINDOWS * 3 / 4
    assert steps.index(f"fsync {home.home}/out") < next(at for at, one in enumerate(steps) if one.startswith("replace"))


def test_a_directory_that_is_not_on_the_disk_is_an_error_and_the_next_run_completes_its_files(
    home: Shell, exact: Exports, alone: dict[str, dict[str, bytes]]
) -> None:
    expected, out, name = known(exact, alone, NAMES[0]), home.home / "out", "{start:day/%H%M%S}.csv"
    out.mkdir()
    check_durable(home, run_until(home, name, out / "day", 7))
    assert len(contents(out)) > 0
    done = home(*command(name))
    assert done.returncode == 0, done.stderr
    assert contents(out) == expected
