"""Apache Kafka 0.9 with its ZooKeeper: a broker from before transactions, record headers and requests for versions."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException

from peers.installed import DIRECTORY, java
from peers.kafka import KafkaPeer, answers
from peers.processes import HOST, Process, Together, free_port, running

SETTINGS = {"api.version.request": "false", "broker.version.fallback": "0.9.0.1"}


@contextmanager
def apache_kafka(directory: Path) -> Iterator[KafkaPeer]:
    """A broker of Apache Kafka 0.9; its topics survive a stop."""
    port, keeper_port = free_port(), free_port()
    settings: dict[str, dict[str, object]] = {
        "zookeeper": {
            "dataDir": directory / "zookeeper",
            "clientPort": keeper_port,
            "clientPortAddress": HOST,
        },
        "kafka": {
            "broker.id": 0,
            "listeners": f"PLAINTEXT://{HOST}:{port}",
            "log.dirs": directory / "topics",
            "zookeeper.connect": f"{HOST}:{keeper_port}",
            "offsets.topic.num.partitions": 1,
            "group.max.session.timeout.ms": 300000,
            "log.cleaner.enable": "false",  # the buffers of the cleaner are 128 MB
        },
    }
    for name, lines in settings.items():
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (directory / f"{name}.properties").write_text(text, encoding="utf-8")
    run = [*java(directory), "-cp", f"{DIRECTORY / 'kafka'}/*"]
    keeper = Process(
        name="zookeeper",
        arguments=[*run, "org.apache.zookeeper.server.quorum.QuorumPeerMain", directory / "zookeeper.properties"],
        directory=directory,
        ready=lambda: _is_ok(keeper_port),
    )
    broker = Process(
        name="kafka",
        arguments=[*run, "kafka.Kafka", directory / "kafka.properties"],
        directory=directory,
        ready=answers(f"{HOST}:{port}", **SETTINGS),
        not_yet=(KafkaException,),
    )

    def create(peer: KafkaPeer, topic: str, partitions: int) -> None:
        words = {
            "--zookeeper": f"{HOST}:{keeper_port}",
            "--topic": topic,
            "--partitions": str(partitions),
            "--replication-factor": "1",
        }
        command = [*run, "kafka.admin.TopicCommand", "--create", *(word for pair in words.items() for word in pair)]
        subprocess.run(command, capture_output=True, check=True, timeout=60)

    both = Together([keeper, broker])
    with running(both):
        yield KafkaPeer(
            server=both,
            bootstrap_servers=f"{HOST}:{port}",
            settings=SETTINGS,
            transactions=False,
            creator=create,
        )


def _is_ok(port: int) -> None:
    """Raise OSError unless the ZooKeeper reports that it is well."""
    with socket.create_connection((HOST, port), timeout=5) as keeper:
        keeper.sendall(b"ruok")
        if (answer := keeper.recv(4)) != b"imok":
            raise OSError(f"the ZooKeeper says {answer!r}")
