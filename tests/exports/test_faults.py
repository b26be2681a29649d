"""Faults: seeded runs through a proxy that breaks answers, until the target is whole; and what they leave meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from support.exports import START, WINDOW, WINDOWS, Exports, contents
from support.faults import FAULTS

from svcctl.errors import IncompleteResult, ServiceError, Unavailable
from svcctl.exports.record import Record

NAMES = ("all.csv", "all.tsv", "all.ndjson", "all.parquet", "all.csv.gz", "day/{start:%H%M}.ndjson")
RUNS = 6
"""The last of them is without faults."""
QUICK = [name for name in FAULTS if name != "stall"]
STARTS = {START + number * WINDOW for number in range(WINDOWS)}


@pytest.fixture(scope="session")
def fault_free() -> dict[str, dict[str, bytes]]:
    """What a run without faults leaves, by the target's name: it is made once."""
    return {}


def have(exports: Exports, name: str) -> set[int]:
    """The starts of the windows that the record says are there."""
    export = exports.export(name)
    record = Record.read(export.storage, export.target)
    return set() if record is None else {window.start for window in record.entries}


def faulty_runs(exports: Exports, known: dict[str, dict[str, bytes]], seed: int, faults: list[str]) -> None:
    """One target, run until it is whole: never a wrong file, and never a window asked for that is there."""
    random = Random(seed)
    name = random.choice(NAMES)
    share = random.choice((0.1, 0.4, 0.8))
    with TemporaryDirectory(dir="/dev/shm") as folder:  # what reaches the disk when is not the question here
        proxy = exports.proxy
        proxy.seed = seed
        proxy.choose = lambda body: None
        if name not in known:
            exports(name)
            known[name] = contents(exports.folder)
        exports = replace(exports, folder=Path(folder), timeout=0.4 if "stall" in faults else 60.0)
        for run in range(1, RUNS + 1):
            if run < RUNS:
                proxy.choose = lambda body: random.choice(faults) if random.random() < share else None
            else:
                proxy.choose = lambda body: None
                exports.timeout = 60.0
            proxy.asked.clear()
            there = have(exports, name)
            try:
                policy = {"retries": random.choice((0, 1)), "workers": random.choice((1, 3))}
                if exports(name, **policy, stops=random.choice((True, False))).gaps:
                    raise IncompleteResult("windows are missing")
            except (Unavailable, IncompleteResult, ServiceError):
                assert run < RUNS, f"seed {seed}: failed without a fault"
                there_now = contents(exports.folder)
                assert there_now == {} if "{" not in name else there_now.items() <= known[name].items(), f"seed {seed}"
                asked = {json.loads(body)["from"] for body in proxy.asked}
                assert asked <= STARTS - there, f"seed {seed}: windows were asked for again"
                continue
            asked = {json.loads(body)["from"] for body in proxy.asked}
            assert asked == STARTS - there, f"seed {seed}: not what was missing"
            break
        assert contents(exports.folder) == known[name], f"seed {seed}"


@pytest.mark.parametrize("seed", range(3))
def test_faults_never_make_a_wrong_file(exports: Exports, fault_free: dict[str, dict[str, bytes]], seed: int) -> None:
    faulty_runs(exports, fault_free, seed, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1150))
def test_faults_never_make_a_wrong_file_however_often(
    exports: Exports, fault_free: dict[str, dict[str, bytes]], seed: int
) -> None:
    faulty_runs(exports, fault_free, seed, list(FAULTS))
