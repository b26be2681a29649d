"""Destinations on hosts that the service may, or may not, connect to."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from threading import Thread

import pyarrow as pa
import pytest
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer

from svcctl.errors import ServiceError, Unavailable
from svcctl.service.destinations import kinds
from svcctl.service.hosts.allowed_hosts import PUBLIC_ONLY, AllowedHosts, HostRefused, parse

KAFKA = {"topic": "t"}
S3 = {"aws.bucket": "b"}
HDFS = {"file": "/a/b.csv"}


def check(type_: str, params: Mapping[str, str], allowed: AllowedHosts = PUBLIC_ONLY) -> None:
    kinds.check(type_, params, endless=True, allowed=allowed)


@pytest.mark.parametrize(
    ("type_", "params", "peer"),
    [
        ("s3", S3 | {"aws.endpoint": "http://127.0.0.1:9000"}, "127.0.0.1:9000"),
        ("s3", S3 | {"aws.endpoint": "https://localhost/a"}, "localhost:443"),
        ("s3", S3 | {"aws.endpoint": "http://169.254.169.254/latest"}, "169.254.169.254:80"),
        ("s3", S3 | {"aws.endpoint": "http://8.8.8.8:80@127.0.0.1"}, "127.0.0.1:80"),
        ("s3", S3 | {"aws.endpoint": "http://127.0.0.1#@8.8.8.8"}, "127.0.0.1:80"),
        ("kafka", KAFKA | {"bootstrap.servers": "127.0.0.1"}, "127.0.0.1:9092"),
        ("kafka", KAFKA | {"bootstrap.servers": "8.8.8.8:1, localhost:2"}, "localhost:2"),
        ("kafka", KAFKA | {"bootstrap.servers": "PLAINTEXT://[::1]:9092"}, "[::1]:9092"),
    ],
)
def test_a_job_for_a_host_that_is_not_allowed_is_not_launched(type_: str, params: dict[str, str], peer: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check(type_, params)
    assert caught.value.message == (
        f"destination.params: the service may not connect to {peer}: SVCCTL_DESTINATIONS_ALLOWED does not allow it"
    )


@pytest.mark.parametrize(
    ("type_", "params", "rules"),
    [
        ("s3", S3 | {"aws.endpoint": "http://8.8.8.8"}, "public"),
        ("s3", S3 | {"aws.endpoint": "http://nowhere.invalid"}, "public"),
        ("s3", S3 | {"aws.endpoint": "http://127.0.0.1:9000"}, "127.0.0.0/8:9000"),
        ("kafka", KAFKA | {"bootstrap.servers": "8.8.8.8:1,localhost:2"}, "public, localhost"),
        ("kafka", KAFKA | {"bootstrap.servers": "nowhere.invalid:9092"}, "public"),
        ("hdfs", HDFS | {"fs.defaultFS": "hdfs://localhost:8020"}, "localhost:8020"),
        ("donothing", {}, "public"),
    ],
)
def test_a_job_for_allowed_hosts_is_launched(type_: str, params: dict[str, str], rules: str) -> None:
    check(type_, params, parse(rules))


def test_a_namenode_must_be_listed_since_it_sends_its_clients_to_other_hosts() -> None:
    with pytest.raises(ServiceError) as caught:
        check("hdfs", HDFS | {"fs.defaultFS": "hdfs://8.8.8.8:8020"})
    assert caught.value.message == (
        "destination.params: the service may not connect to 8.8.8.8:8020: SVCCTL_DESTINATIONS_ALLOWED does not name it"
    )
    check("hdfs", HDFS | {"fs.defaultFS": "hdfs://8.8.8.8:8020"}, parse("8.8.8.8"))
    with pytest.raises(ServiceError):
        check("hdfs", HDFS | {"fs.defaultFS": "hdfs://127.0.0.1:8020"})


@pytest.mark.parametrize("servers", ["8.8.8.8:1/127.0.0.1:2", "8.8.8.8:0", "8.8.8.8:99999", "::1", "[::1", "a:b"])
def test_a_list_of_brokers_that_may_be_read_in_two_ways_is_refused(servers: str) -> None:
    with pytest.raises(ServiceError, match="must be brokers as host:port, separated by commas"):
        check("kafka", KAFKA | {"bootstrap.servers": servers})


def test_a_region_cannot_change_the_host() -> None:
    with pytest.raises(ServiceError, match=r"aws\.region must be letters, digits and hyphens"):
        check("s3", S3 | {"aws.region": "@127.0.0.1/"})


def test_every_attempt_of_a_delivery_checks_its_host_again() -> None:
    addresses = iter(["8.8.8.8", "127.0.0.1"])
    allowed = replace(PUBLIC_ONLY, resolve=lambda host, port: [next(addresses)])
    params = S3 | {"aws.endpoint": "http://rebinding.example"}
    check("s3", params, allowed)
    with pytest.raises(HostRefused):
        kinds.destination("s3", "job", params, allowed=allowed)


def test_rows_get_to_an_allowed_bucket(s3_peer: S3Peer) -> None:
    bucket = s3_peer.fresh_bucket()
    params = {
        "aws.bucket": bucket.bucket,
        "aws.endpoint": bucket.endpoint,
        "aws.accesskey": bucket.key,
        "aws.secretkey": bucket.secret,
    }
    with closing(kinds.destination("s3", "job", params, allowed=parse("127.0.0.1"))) as files:
        files.open(0, {}, b"n\n")
        files.write(pa.array(["1\n"]), 0, pa.array([0]))
        files.commit()
    assert bucket.objects() == {"job_000.csv": b"n\n1\n"}


@contextmanager
def advertising(broker: KafkaPeer) -> Iterator[str]:
    """The address of another way to a broker, which advertises only the first one."""
    host, _, port = broker.bootstrap_servers.rpartition(":")

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):  # either side may hang up first
            while piece := source.recv(65_536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def relay(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client, socket.create_connection((host, int(port))) as server:
            answers = Thread(target=copy, args=(server, client))
            answers.start()
            copy(client, server)
            answers.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=relay, args=(listener,))
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_broker_that_the_cluster_advertises_must_be_allowed(kafka_peer: KafkaPeer) -> None:
    topic = kafka_peer.fresh_topic()
    with advertising(kafka_peer) as way:
        params = {"topic": topic, "bootstrap.servers": way}
        with (
            closing(kinds.destination("kafka", "job", params, allowed=parse(way))) as kafka,
            pytest.raises(Unavailable) as caught,
        ):
            kafka.open(0, {}, b"")
    assert caught.value.message == (
        f"the service may not connect to {kafka_peer.bootstrap_servers}: SVCCTL_DESTINATIONS_ALLOWED does not allow it"
    )


def test_rows_get_to_an_allowed_cluster(kafka_peer: KafkaPeer) -> None:
    topic = kafka_peer.fresh_topic()
    params = {"topic": topic, "bootstrap.servers": kafka_peer.bootstrap_servers}
    with closing(kinds.destination("kafka", "job", params, allowed=parse("127.0.0.1"))) as kafka:
        kafka.open(0, {}, b"")
        kafka.write(pa.array(['{"n":1}']), 0, pa.array([0]))
        kafka.commit()
    assert kafka_peer.values(topic) == [b'{"n":1}']
