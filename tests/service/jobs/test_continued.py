"""Jobs whose queries change while their service is killed: every event is at Kafka and S3 once."""

from __future__ import annotations

import csv
import os
import random
import signal
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer
from support.shells import Shell
from tools import chaos

from svcctl.service import process

TABLE = "changed.events"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Changing:
    """A service whose jobs, one for each destination, get another query with each batch of events."""

    def __init__(self, shell: Shell, targets: dict[str, chaos.Target], dice: random.Random) -> None:
        self.loaded = 0
        self.kills = 0
        self.shell, self.targets, self.dice = shell, targets, dice
        self.files = process.ServiceFiles(Path(shell.environment["SVCCTL_DATA"]))
        self.start = datetime.now(UTC) - timedelta(hours=1)
        self.jobs = shell.home / "jobs.yaml"

    def load(self, rows: int) -> None:
        """Load events in any order; each third one is dated before those of earlier batches."""
        file = self.shell.home / "events.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["eventdate", "n"])
            for n in self.dice.sample(range(self.loaded, self.loaded + rows), rows):
                at = self.start + timedelta(milliseconds=-n if n % 3 == 0 else n)
                writer.writerow([at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3], n])
        self.must("service", "load", str(file), "--table", TABLE)
        self.loaded += rows

    def change(self, version: int) -> None:
        """Apply another query; the service is killed at a random moment of that. Then apply it again."""
        jobs = [
            {
                "name": name,
                "query": f'from {TABLE} select n, "{version}" as version',
                "from": "1d",
                "destination": {"type": target.type, "params": dict(target.params)},
            }
            for name, target in self.targets.items()
        ]
        self.jobs.write_text(yaml.safe_dump(jobs))
        self.jobs.chmod(0o600)  # it has the keys of the bucket
        killer = threading.Timer(self.dice.uniform(0, 1.5), self.kill)
        killer.start()
        self.shell("--retries", "0", "job", "apply", "-F", str(self.jobs), "--yes")
        killer.join()
        self.must("service", "start")
        for _ in range(2):
            self.must("job", "apply", "-F", str(self.jobs), "--yes")
        self.must("job", "apply", "-F", str(self.jobs), "--check")

    def kill(self) -> None:
        pid = process.running_process(self.files)
        if pid is None:
            return
        os.kill(pid, signal.SIGKILL)
        self.kills += 1
        while process.running_process(self.files) is not None:
            threading.Event().wait(0.005)

    def must(self, *arguments: str) -> None:
        done = self.shell(*arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr, self.files.log.read_text()[-4000:])

    def delivered(self, name: str) -> list[int]:
        read = self.targets[name].read
        assert read is not None
        return read("")

    def finish(self) -> None:
        """Stop and start the jobs, which delivers what they have read, until all events are there."""
        for _ in range(60):
            self.must("job", "stop", *self.targets)
            if all(len(self.delivered(name)) >= self.loaded for name in self.targets):
                return
            self.must("job", "start", *self.targets)
            threading.Event().wait(1)


def test_every_event_is_delivered_once_while_queries_change_and_the_service_is_killed(
    shell: Shell, kafka_peer: KafkaPeer, s3_peer: S3Peer
) -> None:
    kafka, s3 = chaos.kafka_targets(kafka_peer)[0], chaos.s3_target(s3_peer)
    calm = Shell(shell.home, {"SVCCTL_DEMO": "0"})
    changing = Changing(calm, {"to-kafka": kafka, "to-s3": s3}, random.Random(7))
    try:
        changing.load(500)
        for version in range(6):
            changing.change(version)
            changing.load(500)
        changing.finish()
        changing.must("job", "verify", *changing.targets)  # with the jobs that these continue
    finally:
        calm("service", "stop")
    assert changing.kills >= 4
    for name in changing.targets:
        counts = Counter(changing.delivered(name))
        doubled = sorted(n for n, count in counts.items() if count > 1)
        lost = sorted(set(range(changing.loaded)) - counts.keys())
        assert (name, doubled[:5], lost[:5]) == (name, [], [])
