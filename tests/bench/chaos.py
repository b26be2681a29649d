"""Chaos: a job keeps running while its service is killed, stopped and started, and its destination goes away.

A real service runs a continuous job while events arrive in batches. After each batch something bad happens at a random
moment. In the end every event must be at the destination exactly once.

    python tests/bench/chaos.py kafka --kills 60        (or s3, hdfs, old_kafka, donothing; see --help)
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers import hdfs, kafka, old_kafka, s3
from peers.processes import Peer
from support.shells import Shell

from svcctl import local_service

TABLE = "chaos.events"


@dataclass(frozen=True)
class Target:
    """A destination under test: its type, its parameters, and its server.

    `read` returns the numbers of all delivered events; it is None where nothing is kept.
    """

    type: str
    params: Mapping[str, str]
    read: Callable[[], list[int]] | None = None
    peer: Peer | None = None


@dataclass
class Outcome:
    """Counts what was done, and what arrived."""

    loaded: int = 0
    sent: int = 0
    there: int = 0
    lost: int = 0
    doubled: int = 0
    seconds: float = 0.0
    done: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        done = ", ".join(f"{count} x {what}" for what, count in sorted(self.done.items()))
        return (
            f"{done}: {self.loaded} events, {self.sent} sent, {self.there} there, "
            f"{self.lost} lost, {self.doubled} doubled, {self.seconds:.0f} s"
        )


def run(shell: Shell, target: Target, *, kills: int, rows: int, dice: random.Random) -> Outcome:
    """Cause chaos until the service was killed this often; `rows` is the size of a batch."""
    chaos = Chaos(shell, target, rows, dice)
    started = time.monotonic()
    chaos.begin()
    while chaos.outcome.done["kill"] < kills:
        chaos.load()
        time.sleep(dice.uniform(0, 0.8))  # the next act comes at a random moment
        act = dice.choices([chaos.kill, chaos.restart, chaos.stop_and_start, chaos.cut], [8, 1, 2, 2])[0]
        chaos.outcome.done[act.__name__] += 1
        act()
    chaos.end()
    chaos.outcome.seconds = time.monotonic() - started
    return chaos.outcome


class Chaos:
    """One service, one job, and the bad things that can happen to them."""

    def __init__(self, shell: Shell, target: Target, rows: int, dice: random.Random) -> None:
        self.outcome = Outcome()
        self._shell = shell
        self._target = target
        self._rows = rows
        self._dice = dice
        self._files = local_service.Files(Path(shell.environment["SVCCTL_DATA"]))
        self._job = ""

    def begin(self) -> None:
        self.load()
        given = self._shell.home / "destination.json"
        given.write_text(json.dumps({"type": self._target.type, "params": dict(self._target.params)}))
        query = f"from {TABLE} select n, text"
        [job] = self._ndjson("query", query, "--from", "1d", "--follow", "--dest-json", str(given))
        self._job = str(job["id"])

    def load(self) -> None:
        """Load a batch of events of the last hour, in random order."""
        file = self._shell.home / "events.csv"
        now = datetime.now(UTC)
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["eventdate", "n", "text"])
            for n in range(self.outcome.loaded, self.outcome.loaded + self._rows):
                at = now - timedelta(milliseconds=self._dice.randrange(3_600_000))
                writer.writerow([at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3], n, f'{n} "é", ' + "x" * (n % 100)])
        self._must("service", "load", str(file), "--table", TABLE)
        self.outcome.loaded += self._rows

    def kill(self) -> None:
        """Kill the service with SIGKILL and start it again."""
        pid = local_service.running(self._files)
        assert pid
        os.kill(pid, signal.SIGKILL)
        while local_service.running(self._files) is not None:
            time.sleep(0.005)  # until the kernel has released its lock
        self._must("service", "start")

    def restart(self) -> None:
        self._must("service", "stop")
        self._must("service", "start")

    def stop_and_start(self) -> None:
        self._must("job", "stop", self._job)
        self._must("job", "start", self._job)

    def cut(self) -> None:
        """Take the destination away for a moment."""
        if self._target.peer is not None:
            with self._target.peer.down():
                time.sleep(self._dice.uniform(0, 1))

    def end(self) -> None:
        """Wait until everything was read, stop the job, which delivers the rest, and count the events."""
        patience = threading.Event()
        while True:
            [job] = self._ndjson("job", "show", self._job)
            if job["eventGenerated"] == self.outcome.loaded:
                break
            assert job["status"] == "RUNNING", job
            patience.wait(0.2)
        for _ in range(100):
            [job] = self._ndjson("job", "stop", self._job)
            if job["eventsSent"] == self.outcome.loaded:
                break
            self._must("job", "start", self._job)
            patience.wait(1)
        self.outcome.sent = int(str(job["eventsSent"]))
        if self._target.read is None:
            self.outcome.there = self.outcome.sent
            return
        there = Counter(self._target.read())
        self.outcome.there = there.total()
        self.outcome.lost = sum(n not in there for n in range(self.outcome.loaded))
        self.outcome.doubled = sum(count - 1 for count in there.values())

    def _must(self, *arguments: str) -> None:
        done = self._shell(*arguments)
        jobs = "" if done.returncode == 0 else self._shell("job", "list", "-f", "json").stdout
        assert done.returncode == 0, (arguments, done.stderr, jobs, self._files.log.read_text(encoding="utf-8")[-4000:])

    def _ndjson(self, *arguments: str) -> list[dict[str, object]]:
        return self._shell.ndjson(*arguments)


# Destinations


def kafka_target(peer: kafka.KafkaPeer) -> Target:
    topic = peer.fresh_topic()
    params = {"topic": topic, "maxTimeWithoutCommit": "1000", "maxBytesPerCommit": "50000", **peer.client}
    return Target(
        "kafka",
        {key: str(value) for key, value in params.items()},
        lambda: [json.loads(value or b"")["n"] for value in peer.values(topic)],
        peer,
    )


def s3_target(peer: s3.S3Peer, format: str = "gzip") -> Target:
    bucket = peer.fresh_bucket()
    params = {
        "aws.bucket": bucket.bucket,
        "aws.endpoint": bucket.endpoint,
        "aws.region": bucket.region,
        "aws.accesskey": bucket.key,
        "aws.secretkey": bucket.secret,
        "format": format,
    }
    return Target("s3", params, lambda: numbers(map(gzip.decompress, bucket.objects().values())), bucket)


def hdfs_target(peer: hdfs.HdfsPeer) -> Target:
    folder = peer.fresh_directory()
    params = {"fs.defaultFS": peer.default_fs, "file": f"{folder}/events.csv", "retention.time": "2"}

    def read() -> list[int]:
        return numbers(content for name, content in peer.files(folder).items() if not name.startswith("."))

    return Target("hdfs", params, read, peer)


def numbers(files: Iterator[bytes]) -> list[int]:
    """Return the column n of csv files."""
    return [int(row["n"]) for file in files for row in csv.DictReader(io.StringIO(file.decode("utf-8"), newline=""))]


@contextmanager
def nothing(directory: Path) -> Iterator[None]:
    yield None


TARGETS: Mapping[str, tuple[Callable[[Path], AbstractContextManager[Any]], Callable[[Any], Target]]] = {
    "kafka": (kafka.tansu, kafka_target),
    "old_kafka": (old_kafka.apache_kafka, kafka_target),
    "s3": (s3.rclone, s3_target),
    "hdfs": (hdfs.hadoop, hdfs_target),
    "donothing": (nothing, lambda _: Target("donothing", {})),
}
"""By name: starts the peer, and makes a target of it."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a service while it delivers a job, and count what arrives.")
    parser.add_argument("target", choices=TARGETS, nargs="+")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--rows", type=int, default=5000, help="events per batch")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    for name in options.target:
        start, make = TARGETS[name]
        with tempfile.TemporaryDirectory(prefix="chaos-") as home, start(Path(home)) as peer:
            shell = Shell(Path(home))
            try:
                outcome = run(
                    shell, make(peer), kills=options.kills, rows=options.rows, dice=random.Random(options.seed)
                )
            finally:
                shell("service", "stop")
            print(f"{name}: {outcome}", flush=True)


if __name__ == "__main__":
    main()
