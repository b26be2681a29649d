"""Chaos in a cluster: two service processes share a state and tables, and the one that runs the jobs is lost.

It is killed or suspended. Then the other process takes the jobs over, more events arrive, and the lost one comes back.
In the end every event must be at every destination exactly once, in order.

    python tests/tools/losses.py kafka s3 --losses 30         (see --help)
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
if (here := str(Path(__file__).parent)) in sys.path:
    sys.path.remove(here)  # `bench` is a module there

from peers.postgresql import PASSWORD, PostgreSQLPeer, postgresql, programs
from support.shells import Shell, made
from tools.chaos import TARGETS, Chaos, Outcome, Target

from svcctl.service import process

TAKEN_OVER_SECONDS = 20


class Cluster(Chaos):
    """Two service processes with directories of their own, and the bad things that happen to the one that works."""

    def __init__(
        self, directory: Path, peer: PostgreSQLPeer, targets: Sequence[Target], rows: int, dice: random.Random
    ) -> None:
        self._peer = peer
        self._url = peer.fresh_database()
        variables = {
            "SVCCTL_SERVICE_STATE": self._url,
            "PGPASSWORD": PASSWORD,
            "SVCCTL_TABLES": made(directory / "tables"),
            "SVCCTL_DEMO": "0",
        }
        self.shells = [Shell(directory / name, variables) for name in ("a", "b")]
        self.taken_over: list[float] = []
        for shell in self.shells:
            shell.home.mkdir()
        super().__init__(self.shells[0], targets, rows, dice)

    def begin(self) -> None:
        for shell in self.shells:
            done = shell("service", "start")
            assert done.returncode == 0, done.stderr
        super().begin()

    def lose(self, *, kill: bool) -> None:
        """Kill or suspend the process that runs most jobs; the other one must take them over."""
        pid, lost, other = self._leader()
        time.sleep(self.dice.uniform(0, 1))
        os.kill(pid, signal.SIGKILL if kill else signal.SIGSTOP)
        since = time.monotonic()
        self._shell = other
        self.load()
        while pid in self._pids():
            assert time.monotonic() - since < TAKEN_OVER_SECONDS, self._log(other)
            time.sleep(0.02)
        self.taken_over.append(time.monotonic() - since)
        if kill:
            done = lost("service", "start")
            assert done.returncode == 0, done.stderr
        else:
            time.sleep(self.dice.uniform(0, 2))
            os.kill(pid, signal.SIGCONT)
        self.outcome.done["kill" if kill else "suspension"] += 1

    def close(self) -> None:
        for shell in self.shells:
            shell("service", "stop")

    def _leader(self) -> tuple[int, Shell, Shell]:
        while not (pids := self._pids()):
            time.sleep(0.02)
        [(pid, _)] = Counter(pids).most_common(1)
        running = [process.running_process(self._service_files(shell)) for shell in self.shells]
        lost = running.index(pid)
        return pid, self.shells[lost], self.shells[1 - lost]

    def _pids(self) -> list[int]:
        """The process of each job that one runs."""
        with self._peer.connection(self._url) as connection:
            rows = connection.execute("select holder from jobs where holder is not null").fetchall()
        return [int(str(holder).split("/")[1]) for (holder,) in rows]

    def _service_files(self, shell: Shell) -> process.ServiceFiles:
        return process.ServiceFiles(Path(shell.environment["SVCCTL_DATA"]))

    def _log(self, shell: Shell) -> str:
        return self._service_files(shell).log.read_text(encoding="utf-8")[-4000:]


def run(cluster: Cluster, *, losses: int) -> Outcome:
    """Lose the working process this often; every fourth time it is suspended, else killed."""
    started = time.monotonic()
    cluster.begin()
    for number in range(losses):
        cluster.load()
        cluster.lose(kill=number % 4 != 3)
    cluster.end()
    cluster.outcome.seconds = time.monotonic() - started
    return cluster.outcome


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Lose the service process that delivers jobs, and look at what arrives."
    )
    parser.add_argument("target", choices=TARGETS, nargs="+")
    parser.add_argument("--losses", type=int, default=14)
    parser.add_argument("--rows", type=int, default=2000, help="events per batch")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    commands = programs()
    assert commands, "PostgreSQL is not installed: run .ci/peers"
    print(f"seed {options.seed}", flush=True)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        targets: list[Target] = []
        for name in options.target:
            start, make = TARGETS[name]
            (home / name).mkdir()
            targets += make(stack.enter_context(start(home / name)))
        server = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-postgresql-")))
        peer = stack.enter_context(postgresql(server, commands))
        cluster = Cluster(home, peer, targets, options.rows, random.Random(options.seed))
        stack.callback(cluster.close)
        print(run(cluster, losses=options.losses), flush=True)
        print(f"taken over after {min(cluster.taken_over):.1f} to {max(cluster.taken_over):.1f} s", flush=True)
    sys.exit(bool(cluster.outcome.wrong))


if __name__ == "__main__":
    main()
