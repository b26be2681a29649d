"""kill -9 at random moments of the real command: nothing wrong is left, and the next run completes it."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from support.exports import START, contents
from support.faults import FaultyProxy
from support.shells import Shell

from svcctl.exports.record import Record
from svcctl.exports.windows import Target
from svcctl.storage.local import LocalStorage

NAMES = ("all.csv.gz", "all.parquet", "day/{start:%H%M}.csv")


@dataclass
class Command:
    """The command in a folder of its own, and when it sent its first request."""

    shell: Shell
    proxy: FaultyProxy
    name: str
    window: int = 600

    def __post_init__(self) -> None:
        self.asking = threading.Event()
        self.folder.mkdir(parents=True)
        self.proxy.choose = self._slow

    def _slow(self, body: bytes) -> str:
        self.asking.set()
        return "slow"

    @property
    def folder(self) -> Path:
        return self.shell.home / "out"

    @property
    def arguments(self) -> list[str]:
        ends = ["--from", str(START), "--to", "1h", "--window", f"{self.window}s", "--workers", "2"]
        return ["export", "from exported.events", *ends, "-o", f"out/{self.name}"]

    def kill(self, seconds: float) -> None:
        """Start it, and kill it so many seconds after its first request, unless it ends without one."""
        self.asking.clear()
        process = self.shell.start(*self.arguments)
        try:
            while not self.asking.wait(0.01) and process.poll() is None:
                pass
            time.sleep(seconds)
        finally:
            process.kill()
            process.wait()

    def missing(self) -> set[int]:
        """The starts of the windows that the record lacks."""
        starts = set(range(START, START + 3600, self.window))
        record = Record.read(LocalStorage(), Target(str(self.folder / self.name)))
        if record is None:
            return starts
        if record.merged and (self.folder / self.name).exists():
            return set()
        return starts - {start for there in record.entries for start in range(there.start, there.end, self.window)}

    def requested(self) -> set[int]:
        """The starts of the windows that were requested, several of them at once or each by itself."""
        bodies = map(json.loads, self.proxy.asked)
        return {start for body in bodies for start in range(body["from"], body["to"], self.window)}


@pytest.fixture(scope="session")
def undisturbed() -> dict[str, tuple[dict[str, bytes], float]]:
    """What a run leaves that is not killed, and the seconds from its first request to its end; made once a name."""
    return {}


def killed(command: Command, known: dict[str, bytes], seconds: float, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2))):
        command.kill(random.uniform(0, seconds))
        there = contents(command.folder)
        assert there.items() <= known.items(), "a wrong file was left"
    missing = command.missing()
    command.proxy.asked.clear()
    done = command.shell(*command.arguments)
    assert done.returncode == 0, done.stderr
    assert contents(command.folder) == known
    assert command.requested() == missing


def kill_and_run_again(
    home: Shell,
    proxy: FaultyProxy,
    undisturbed: dict[str, tuple[dict[str, bytes], float]],
    seed: int,
    name: str,
    window: int = 600,
) -> None:
    random = Random(seed)
    command = Command(home, proxy, name, window)
    if name not in undisturbed:
        whole = Command(Shell(home.home / "whole", home.variables), proxy, name, window)
        process = whole.shell.start(*whole.arguments)
        assert whole.asking.wait(60)
        started = time.monotonic()
        assert process.wait(60) == 0
        undisturbed[name] = contents(whole.folder), time.monotonic() - started
    known, seconds = undisturbed[name]
    killed(command, known, seconds, random)


@pytest.fixture
def home(events: Shell, proxy: FaultyProxy, tmp_path: Path) -> Shell:
    credentials = json.loads((events.home / "data" / "credentials.json").read_text())["local"]
    given = {
        "SVCCTL_BASE_URL": proxy.url,
        "SVCCTL_API_KEY": credentials["api_key"],
        "SVCCTL_API_SECRET": credentials["api_secret"],
    }
    return Shell(tmp_path, given)


@pytest.mark.parametrize("seed", [0])
def test_a_killed_run_is_completed_by_the_next(
    home: Shell, proxy: FaultyProxy, undisturbed: dict[str, tuple[dict[str, bytes], float]], seed: int
) -> None:
    kill_and_run_again(home, proxy, undisturbed, seed, NAMES[seed % len(NAMES)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_a_killed_run_is_completed_by_the_next_however_often(
    home: Shell, proxy: FaultyProxy, undisturbed: dict[str, tuple[dict[str, bytes], float]], seed: int
) -> None:
    kill_and_run_again(home, proxy, undisturbed, seed, NAMES[seed % len(NAMES)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 205))
def test_a_killed_run_whose_requests_fetch_several_windows_is_completed_by_the_next(
    home: Shell, proxy: FaultyProxy, seed: int
) -> None:
    kill_and_run_again(home, proxy, {}, seed, "all.csv", window=20)
