"""Kafka gets every row once, in order, wherever in its protocol the service is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from peers.kafka import KafkaPeer
from peers.kafka_relay import Api, Moment
from support.shells import Shell
from support.waiting import eventually

from svcctl.errors import Unavailable
from svcctl.service import process
from svcctl.service.destinations import JobDestination
from svcctl.service.destinations.kafka import MAX_EVENT_BYTES
from svcctl.service.destinations.kinds import destination

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
        self._files = process.ServiceFiles(Path(shell.environment["SVCCTL_DATA"]))
        self.done = threading.Event()

    def __call__(self) -> None:
        pid = process.running_process(self._files)
        assert pid
        os.kill(pid, signal.SIGKILL)
        while process.running_process(self._files) is not None:
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


LIMIT = 300_000
AT_MOST = "topic '{topic}' accepts at most 300,000 (max.message.bytes)"
UNKNOWN = "topic '{topic}' does not accept that many (see its max.message.bytes)"


def opened(peer: KafkaPeer, topic: str, **params: str) -> JobDestination:
    """The destination of a new job, once the topic has a leader."""
    made = destination("kafka", uuid4().hex, {**peer.client, "topic": topic, **params}, endless=False)

    def opens() -> bool:
        with suppress(Unavailable):
            return made.open(0, {}, b"") == 0
        return False

    eventually(opens)
    return made


def put(made: JobDestination, *sizes: int) -> None:
    """Deliver events of these sizes, a second after each other, as one batch."""
    dates = [1_706_695_201_250 + number * 1000 for number in range(len(sizes))]
    made.write(pa.array(["x" * size for size in sizes]), 0, pa.array(dates))
    made.commit()


def limited(peer: KafkaPeer) -> str:
    """A topic with a limit that a client can read."""
    topic = f"limited-{uuid4().hex[:12]}"
    admin = AdminClient(peer.client)
    admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": str(LIMIT)})])[topic].result(20)
    return topic


def test_the_error_names_the_event_that_the_topic_refuses_and_its_limit(kafka_peer: KafkaPeer) -> None:
    assert kafka_peer.relay is not None
    known, unknown = limited(kafka_peer), kafka_peer.fresh_topic()
    cases = [
        (known, [LIMIT + 1], f"the event of 2024-01-31 10:00:01.250 UTC has 300,001 bytes, but {AT_MOST}"),
        (known, [10, LIMIT + 1], f"the event of 2024-01-31 10:00:02.250 UTC has 300,001 bytes, but {AT_MOST}"),
        (unknown, [LIMIT + 1], f"the event of 2024-01-31 10:00:01.250 UTC has 300,001 bytes, but {UNKNOWN}"),
        (
            unknown,
            [10, 200_000, 200_001],
            f"topic '{unknown}' refuses 3 events because they are too large together (the event of 2024-01-31 "
            "10:00:03.250 UTC has 200,001 bytes): set a smaller maxBytesPerCommit to send fewer events at once",
        ),
    ]
    with kafka_peer.relay.taking(LIMIT):
        for topic, sizes, reason in cases:
            with closing(opened(kafka_peer, topic)) as made, pytest.raises(Unavailable) as caught:
                put(made, *sizes)
            assert caught.value.message == "kafka: " + reason.format(topic=topic)
    assert kafka_peer.values(known) == kafka_peer.values(unknown) == []


@pytest.mark.parametrize("size", [30, 100_000, LIMIT - 4096])
def test_what_a_topic_with_a_small_limit_takes_gets_there_in_smaller_sets(kafka_peer: KafkaPeer, size: int) -> None:
    assert kafka_peer.relay is not None
    topic, number = limited(kafka_peer), 1_000_000 // size
    with kafka_peer.relay.taking(LIMIT), closing(opened(kafka_peer, topic)) as made:
        put(made, *[size] * number)
    assert [len(value or b"") for value in kafka_peer.values(topic)] == [size] * number
    assert kafka_peer.relay.refused == []


def test_without_a_known_limit_a_smaller_batch_is_within_it(kafka_peer: KafkaPeer) -> None:
    """A set has no more bytes than the batch, keys included."""
    assert kafka_peer.relay is not None
    topic = kafka_peer.fresh_topic()
    with kafka_peer.relay.taking(LIMIT), closing(opened(kafka_peer, topic, maxBytesPerCommit="299000")) as made:
        put(made, *[10] * 29_900)
    assert len(kafka_peer.values(topic)) == 29_900


def test_no_event_is_larger_than_any_batch_may_be(kafka_peer: KafkaPeer) -> None:
    with closing(opened(kafka_peer, kafka_peer.fresh_topic())) as made, pytest.raises(Unavailable) as caught:
        put(made, MAX_EVENT_BYTES + 1)
    assert caught.value.message == (
        "kafka: the event of 2024-01-31 10:00:01.250 UTC has 10,485,761 bytes, but a job sends at most 10,485,760"
    )


def test_an_event_without_a_date_is_named_by_its_number(kafka_peer: KafkaPeer) -> None:
    with closing(opened(kafka_peer, kafka_peer.fresh_topic())) as made:
        made.write(pa.array(["x" * (MAX_EVENT_BYTES + 1)]), 16, pa.array([None], pa.int64()))
        with pytest.raises(Unavailable, match=r"^kafka: event 17 of the job has 10,485,761 bytes, but a job sends "):
            made.commit()


@pytest.mark.parametrize("broker", ["kafka_peer", "showing_kafka_peer"])
def test_the_largest_event_is_found_again_after_a_failure(request: pytest.FixtureRequest, broker: str) -> None:
    peer: KafkaPeer = request.getfixturevalue(broker)
    topic = peer.fresh_topic()
    params = {**peer.client, "topic": topic}
    with closing(destination("kafka", "job", params, endless=False)) as made:
        made.open(0, {}, b"")
        memo = made.memo
        put(made, MAX_EVENT_BYTES)
    with closing(destination("kafka", "job", params, endless=False)) as made:
        assert made.open(0, memo, b"") == 1


def test_a_real_broker_refuses_an_event_above_its_limit(old_kafka_peer: KafkaPeer) -> None:
    topic = old_kafka_peer.fresh_topic()
    with closing(opened(old_kafka_peer, topic)) as made:
        put(made, 10, 900_000)
        with pytest.raises(Unavailable) as caught:
            put(made, 1_500_000)
    assert caught.value.message == (
        "kafka: the event of 2024-01-31 10:00:01.250 UTC has 1,500,000 bytes, but "
        f"topic '{topic}' does not accept that many (see its max.message.bytes)"
    )
