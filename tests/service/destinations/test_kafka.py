"""Kafka gets every row once, in order, wherever in its protocol the service is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from peers.kafka import KafkaPeer
from peers.kafka_relay import Api, Moment
from support.shells import Shell

from svcctl.service import process

ROWS = 3000
HIDING, SHOWING = "kafka_peer", "showing_kafka_peer"


def load(shell: Shell) -> None:
    """Store events whose number grows with their date."""
    lines = (f"2024-01-01 00:{n // 60:02}:{n % 60:02},{n},{'x' * (n % 100)}\n" for n in range(ROWS))
    (shell.home / "events.csv").write_text("eventdate,n,text\n" + "".join(lines))
    assert shell("service", "load", str(shell.home / "events.csv"), "--table", "t").returncode == 0


def launch(shell: Shell, peer: KafkaPeer, topic: str) -> str:
    """Start a job of several batches, and return its ID."""
    params = {"topic": topic, "maxBytesPerCommit": "30000", **peer.client}
    (shell.home / "destination.json").write_text(json.dumps({"type": "kafka", "params": params}))
    [job] = shell.ndjson(
        *("query", "from t select n, text", "--from", "1704067200", "--to", "1704153600"),
        *("--dest-json", str(shell.home / "destination.json")),
    )
    return str(job["id"])


class Killer:
    """Kills the service when it is called."""

    def __init__(self, shell: Shell) -> None:
        self._files = process.Files(Path(shell.environment["SVCCTL_DATA"]))
        self.done = threading.Event()

    def __call__(self) -> None:
        pid = process.running(self._files)
        assert pid
        os.kill(pid, signal.SIGKILL)
        while process.running(self._files) is not None:
            pass  # until the kernel has released its lock
        self.done.set()


CASES = [
    (SHOWING, Moment(Api.END, answered=False)),
    (HIDING, Moment(Api.END, answered=True)),
    (SHOWING, Moment(Api.END, answered=True)),
    (HIDING, Moment(Api.END, answered=False)),
    (SHOWING, Moment(Api.PRODUCE, answered=True)),
    (HIDING, Moment(Api.PRODUCE, answered=True)),
    (SHOWING, Moment(Api.COMMIT_OFFSETS, answered=True)),
    (HIDING, Moment(Api.COMMIT_OFFSETS, answered=True)),
]
QUICK = 2
"""So many cases are part of every run."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broker", "moment"),
    [
        pytest.param(broker, moment, id=f"{broker}, {moment}", marks=() if index < QUICK else pytest.mark.slow)
        for index, (broker, moment) in enumerate(CASES)
    ],
)
def test_a_kill_in_any_moment_of_a_transaction_loses_and_repeats_nothing(
    shell: Shell, request: pytest.FixtureRequest, broker: str, moment: Moment
) -> None:
    peer: KafkaPeer = request.getfixturevalue(broker)
    assert peer.relay is not None
    topic = peer.fresh_topic()
    shell = replace(shell, variables={"SVCCTL_DEMO": "0"})
    load(shell)
    killer = Killer(shell)
    try:
        with peer.relay.at(moment, killer, number=2):
            job = launch(shell, peer, topic)
            assert killer.done.wait(50)
        assert shell("service", "start").returncode == 0
        done = shell("job", "wait", job, "--max-time", "50")
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        shell("service", "stop")
    rows = peer.rows(topic)
    assert [json.loads(row.value or b"")["n"] for row in rows] == list(range(ROWS))
    assert [row.key for row in rows] == [f"{job}/{n}".encode() for n in range(ROWS)]
