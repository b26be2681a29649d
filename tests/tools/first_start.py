"""First starts of a service that are killed at a random moment; the next start must have all that belongs to it.

Processes are forked from one that has all modules, so that a kill costs what the service does, and not Python's start.

    python tests/tools/first_start.py --kills 1000         (with a state in PostgreSQL: --state URL; see --help)
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
from support.killed import contents

from svcctl.cli.main import run as svcctl
from svcctl.service import (
    process,
    server,  # noqa: F401 - the processes have it when they begin
)
from svcctl.service.process import ServiceFiles
from svcctl.service.state.postgresql import PostgreSQL
from svcctl.service.state.store import Store

SECONDS = 0.3
"""Within how long a process is killed, after it has made its directory."""
START_SECONDS = 60.0


@dataclass
class Outcome:
    """Counts kills, and those after which the service was not ready yet; what is wrong after which."""

    kills: int = 0
    early: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.kills} kills, {self.early} of them before it was ready: {self.wrong or 'all whole'}"


def run(directory: Path, *, kills: int, seed: int, state: str | None = None, seconds: float = SECONDS) -> Outcome:
    """Kill first starts; each service has a directory of its own below this one, and a schema in a shared `state`."""
    print(f"seed {seed}", flush=True)
    dice, outcome = random.Random(seed), Outcome()
    whole = _next_start(ServiceFiles(directory / "whole"), _of_its_own(state, f"whole_{seed}"))
    while outcome.kills < kills:
        files, url = ServiceFiles(directory / str(outcome.kills)), _of_its_own(state, f"kill_{seed}_{outcome.kills}")
        after = dice.uniform(0, seconds)
        with _service(files, url):
            while not files.directory.exists():
                time.sleep(0.0005)
            time.sleep(after)
            outcome.early += not _answers(files)
        outcome.kills += 1
        try:
            found = _next_start(files, url)
        except Exception as error:
            found = {"error": repr(error), "log": (files.directory.parent / f"{files.directory.name}.log").read_text()}
        if found != whole:
            outcome.wrong.append(f"killed after {after * 1000:.1f} ms: {_difference(found, whole)}")
            print(outcome.wrong[-1], flush=True)
        shutil.rmtree(files.directory)
    return outcome


def _answers(files: ServiceFiles) -> bool:
    """Whether the service answers at once, which it does when it has started."""
    with httpx.Client(transport=httpx.HTTPTransport(verify=False, uds=str(files.socket)), timeout=0.1) as client:
        try:
            return client.get(f"http://localhost{process.PING_PATH}").is_success
        except httpx.TransportError:
            return False


@contextmanager
def _service(files: ServiceFiles, state: str | None) -> Iterator[int]:
    """A service in a process that is killed at the end."""
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        log = os.open(files.directory.parent / f"{files.directory.name}.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ[process.DATA_ENVIRONMENT] = str(files.directory)
        os._exit(svcctl(["service", "serve", *(() if state is None else ("--state", state))]))
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _next_start(files: ServiceFiles, state: str | None) -> dict[str, Any]:
    """Start the service and wait until it answers; what is stored and which files there are."""
    with _service(files, state) as child:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(files):
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) or time.monotonic() > deadline:
                raise RuntimeError("the service does not start")
            time.sleep(0.002)
        names = sorted(path.name for path in files.directory.iterdir() if not path.name.endswith((".wal", ".tmp")))
        with closing(Store(files.state if state is None else PostgreSQL(state))) as store:
            return {"files": names, **contents(store, files)}


def _of_its_own(state: str | None, schema: str) -> str | None:
    """The URL of a new schema of the database."""
    if state is None:
        return None
    import psycopg

    with psycopg.connect(state, autocommit=True) as connection:
        connection.execute(f"create schema {schema}".encode())
    return f"{state}{'&' if '?' in state else '?'}options=-csearch_path%3D{schema}"


def _difference(found: dict[str, Any], whole: dict[str, Any]) -> str:
    different = sorted(key for key in {*found, *whole} if found.get(key) != whole.get(key))
    return json.dumps({key: found.get(key) for key in different})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="within how long after its directory is made")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--state", metavar="URL", help="a PostgreSQL database; its password is in PGPASSWORD")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svcctl-") as directory:
        outcome = run(Path(directory), kills=given.kills, seed=given.seed, state=given.state, seconds=given.seconds)
    print(outcome)
    sys.exit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
