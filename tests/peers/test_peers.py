"""Every peer accepts data from the client library of its destination, and returns it in another way."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import timedelta

import obstore
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from hdfs_native import Client, WriteOptions
from obstore.store import S3Store

from peers import kafka_log
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.processes import HOST
from peers.s3 import S3Peer

NO_HEADERS: tuple[()] = ()


def producer(peer: KafkaPeer, settings: dict[str, str | int | float | bool]) -> Producer:
    return Producer({**peer.client, "log_level": 0, **settings})


def began(peer: KafkaPeer, topic: str, name: str) -> Producer:
    """A producer with an open transaction that has a message."""
    writer = producer(peer, {"transactional.id": f"{topic}-{name}"})
    writer.init_transactions(20)
    writer.begin_transaction()
    writer.produce(topic, name.encode())
    assert writer.flush(20) == 0
    return writer


def refuses(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.slow
class TestKafka:
    def test_a_committed_transaction_is_read_back_whole(self, kafka_peer: KafkaPeer) -> None:
        topic = kafka_peer.fresh_topic(partitions=2)
        writer = producer(kafka_peer, {"transactional.id": topic})
        writer.init_transactions(20)
        writer.begin_transaction()
        writer.produce(topic, b"one", key=b"k", headers=[("h", b"v"), ("empty", None)], partition=0, timestamp=1000)
        writer.produce(topic, "two\n\u2028".encode(), partition=1, timestamp=2000)
        writer.produce(topic, b"three", partition=0, timestamp=3000)
        writer.flush(20)
        assert kafka_peer.rows(topic) == []
        writer.commit_transaction(20)
        assert [
            (row.partition, row.offset, row.key, row.value, row.headers, row.timestamp)
            for row in kafka_peer.rows(topic)
        ] == [
            (0, 0, b"k", b"one", (("h", b"v"), ("empty", None)), 1000),
            (0, 1, None, b"three", NO_HEADERS, 3000),
            (1, 0, None, "two\n\u2028".encode(), NO_HEADERS, 2000),
        ]

    def test_an_aborted_transaction_is_not_read_back(self, kafka_peer: KafkaPeer) -> None:
        topic = kafka_peer.fresh_topic()
        writer = producer(kafka_peer, {"transactional.id": topic})
        writer.init_transactions(20)
        for value, finish in (
            (b"kept", writer.commit_transaction),
            (b"dropped", writer.abort_transaction),
            (b"kept too", writer.commit_transaction),
        ):
            writer.begin_transaction()
            writer.produce(topic, value)
            writer.flush(20)
            finish(20)
        assert kafka_peer.values(topic) == [b"kept", b"kept too"]

    def test_a_second_writer_of_the_same_name_ends_the_first_ones_transaction(self, kafka_peer: KafkaPeer) -> None:
        topic = kafka_peer.fresh_topic()
        first = producer(kafka_peer, {"transactional.id": topic})
        first.init_transactions(20)
        first.begin_transaction()
        first.produce(topic, b"half of a batch")
        first.flush(20)
        second = producer(kafka_peer, {"transactional.id": topic})
        second.init_transactions(20)
        second.begin_transaction()
        second.produce(topic, b"whole")
        second.commit_transaction(20)
        first.produce(topic, b"too late")
        with pytest.raises(KafkaException) as caught:
            first.commit_transaction(20)
        assert caught.value.args[0].code() == KafkaError.PRODUCER_FENCED
        assert kafka_peer.values(topic) == [b"whole"]

    def test_the_stable_offset_can_stay_behind_overlapping_transactions_that_have_all_ended(
        self, kafka_peer: KafkaPeer
    ) -> None:
        """Tansu releases one generation of each writer when an overlapping transaction ends; Kafka releases all."""
        topic = kafka_peer.fresh_topic()
        other = began(kafka_peer, topic, "other")
        began(kafka_peer, topic, "restarted")
        restarted = began(kafka_peer, topic, "restarted")
        restarted.commit_transaction(20)
        other.commit_transaction(20)
        assert kafka_peer.relay is not None
        log = kafka_log.batches((HOST, kafka_peer.relay.target), topic, 0)
        assert [batch.marker for batch in log] == [None, None, False, None, True, True]
        assert kafka_peer.values(topic) == [b"other"]
        other.begin_transaction()
        other.produce(topic, b"next")
        other.commit_transaction(20)
        assert kafka_peer.values(topic) == [b"other", b"restarted", b"next"]

    @pytest.mark.parametrize("compression", ["none", "gzip", "lz4", "zstd"])
    def test_many_rows_arrive_in_order_whatever_the_compression(self, kafka_peer: KafkaPeer, compression: str) -> None:
        topic = kafka_peer.fresh_topic()
        writer = producer(kafka_peer, {"enable.idempotence": True, "compression.type": compression, "linger.ms": 20})
        values = [b"%d,%s" % (number, b"x" * (number % 300)) for number in range(20_000)]
        for value in values:
            writer.produce(topic, value)
        assert writer.flush(30) == 0
        assert kafka_peer.values(topic) == values

    def test_a_broker_that_went_away_comes_back_with_its_rows(self, kafka_peer: KafkaPeer) -> None:
        topic = kafka_peer.fresh_topic()
        writer = producer(kafka_peer, {"enable.idempotence": True, "reconnect.backoff.max.ms": 200})
        writer.produce(topic, b"before")
        assert writer.flush(20) == 0
        with kafka_peer.down():
            assert refuses(kafka_peer.bootstrap_servers)
            with pytest.raises(KafkaException):
                AdminClient({**kafka_peer.client, "log_level": 0}).list_topics(timeout=0.5)
            writer.produce(topic, b"meanwhile")
            assert writer.flush(0.2) == 1
        assert writer.flush(20) == 0
        assert kafka_peer.values(topic) == [b"before", b"meanwhile"]


class TestOldKafka:
    def test_rows_arrive_in_order_in_every_partition(self, old_kafka_peer: KafkaPeer) -> None:
        topic = old_kafka_peer.fresh_topic(partitions=2)
        writer = producer(old_kafka_peer, {"linger.ms": 20})
        values = [b"%d,%s" % (number, b"x" * (number % 300)) for number in range(20_000)]
        for number, value in enumerate(values):
            writer.produce(topic, value, key=b"k", partition=number % 2)
        assert writer.flush(30) == 0
        rows = old_kafka_peer.rows(topic)
        assert [(row.partition, row.offset, row.key) for row in rows] == [
            (partition, offset, b"k") for partition in (0, 1) for offset in range(10_000)
        ]
        assert [row.value for row in rows] == values[0::2] + values[1::2]

    def test_a_transaction_is_refused_by_the_client(self, old_kafka_peer: KafkaPeer) -> None:
        writer = producer(old_kafka_peer, {"transactional.id": "any"})
        with pytest.raises(KafkaException) as caught:
            writer.init_transactions(10)
        assert caught.value.args[0].name() == "_UNSUPPORTED_FEATURE"

    def test_a_broker_that_went_away_comes_back_with_its_rows(self, old_kafka_peer: KafkaPeer) -> None:
        topic = old_kafka_peer.fresh_topic()
        writer = producer(old_kafka_peer, {"acks": "all", "reconnect.backoff.max.ms": 200})
        writer.produce(topic, b"before")
        assert writer.flush(20) == 0
        with old_kafka_peer.down():
            assert refuses(old_kafka_peer.bootstrap_servers)
            writer.produce(topic, b"meanwhile")
            assert writer.flush(0.2) == 1
        assert writer.flush(30) == 0
        assert old_kafka_peer.values(topic) == [b"before", b"meanwhile"]


def store(peer: S3Peer, *, secret: str | None = None) -> S3Store:
    return S3Store(
        peer.bucket,
        endpoint=peer.endpoint,
        access_key_id=peer.key,
        secret_access_key=secret or peer.secret,
        region=peer.region,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=20)},
    )


@pytest.fixture(params=["s3_peer", "ceph_peer"])
def bucket(request: pytest.FixtureRequest) -> S3Peer:
    peer: S3Peer = request.getfixturevalue(request.param)
    return peer.fresh_bucket()


class TestS3:
    def test_objects_in_one_piece_and_in_parts_are_read_back(self, bucket: S3Peer) -> None:
        large = os.urandom(12_000_000)
        obstore.put(store(bucket), "small.csv", b"a,b\n1,2\n")
        obstore.put(store(bucket), "2024/01/large file+1.bin", large, use_multipart=True, chunk_size=5 << 20)
        assert bucket.objects() == {"2024/01/large file+1.bin": large, "small.csv": b"a,b\n1,2\n"}
        assert bucket.objects("2024/") == {"2024/01/large file+1.bin": large}

    def test_an_object_appears_when_its_writer_closes_and_not_before(self, bucket: S3Peer) -> None:
        writer = obstore.open_writer(store(bucket), "rows.csv", buffer_size=5 << 20)
        writer.write(b"x" * 6_000_000)
        writer.flush()
        assert bucket.objects() == {}
        writer.close()
        assert bucket.objects() == {"rows.csv": b"x" * 6_000_000}

    def test_a_wrong_secret_is_refused(self, bucket: S3Peer) -> None:
        with pytest.raises(obstore.exceptions.PermissionDeniedError):
            obstore.put(store(bucket, secret="wrong"), "rows.csv", b"1\n")
        assert bucket.objects() == {}

    def test_a_bucket_that_does_not_exist_is_refused(self, bucket: S3Peer) -> None:
        with pytest.raises(FileNotFoundError):
            obstore.put(store(replace(bucket, bucket="nobody-made-it")), "rows.csv", b"1\n")

    def test_a_server_that_went_away_comes_back_with_its_objects(self, bucket: S3Peer) -> None:
        obstore.put(store(bucket), "before.csv", b"1\n")
        with bucket.down():
            assert refuses(bucket.endpoint.removeprefix("http://"))
            with pytest.raises(obstore.exceptions.GenericError):
                obstore.put(store(bucket), "meanwhile.csv", b"2\n")
        obstore.put(store(bucket), "after.csv", b"3\n")
        assert bucket.objects() == {"after.csv": b"3\n", "before.csv": b"1\n"}


class TestCeph:
    def test_parts_below_five_mebibytes_are_refused(self, ceph_peer: S3Peer) -> None:
        bucket = ceph_peer.fresh_bucket()
        with pytest.raises(obstore.exceptions.GenericError, match="EntityTooSmall"):
            obstore.put(store(bucket), "rows.csv", b"x" * 6_000_000, use_multipart=True, chunk_size=4_000_000)
        assert bucket.objects() == {}

    def test_an_object_that_may_only_be_created_does_not_replace_one(self, ceph_peer: S3Peer) -> None:
        bucket = ceph_peer.fresh_bucket()
        obstore.put(store(bucket), "rows.csv", b"first", mode="create")
        with pytest.raises(obstore.exceptions.AlreadyExistsError):
            obstore.put(store(bucket), "rows.csv", b"second", mode="create")
        assert bucket.objects() == {"rows.csv": b"first"}


NO_RETRIES = {"dfs.client.failover.max.attempts": "1"}


def write(peer: HdfsPeer, path: str, content: bytes, *, overwrite: bool = False) -> None:
    with Client(peer.default_fs, NO_RETRIES).create(path, WriteOptions(overwrite=overwrite)) as file:
        file.write(content)


class TestHdfs:
    def test_a_file_is_written_appended_to_and_renamed(self, hdfs_peer: HdfsPeer) -> None:
        directory, client = hdfs_peer.fresh_directory(), Client(hdfs_peer.default_fs)
        write(hdfs_peer, f"{directory}/2024/rows.csv.part", b"a,b\n")
        with client.append(f"{directory}/2024/rows.csv.part") as file:
            file.write("1,\u2028\n".encode())
        client.rename(f"{directory}/2024/rows.csv.part", f"{directory}/2024/rows 1.csv", overwrite=True)
        assert hdfs_peer.files(directory) == {"2024/rows 1.csv": "a,b\n1,\u2028\n".encode()}
        assert hdfs_peer.status(f"{directory}/2024/rows 1.csv")["replication"] == 2

    def test_a_rename_replaces_a_file_only_when_told_to(self, hdfs_peer: HdfsPeer) -> None:
        directory, client = hdfs_peer.fresh_directory(), Client(hdfs_peer.default_fs)
        write(hdfs_peer, f"{directory}/old", b"old")
        write(hdfs_peer, f"{directory}/new", b"new")
        with pytest.raises(FileExistsError):
            client.rename(f"{directory}/new", f"{directory}/old")
        assert hdfs_peer.files(directory) == {"new": b"new", "old": b"old"}
        client.rename(f"{directory}/new", f"{directory}/old", overwrite=True)
        assert hdfs_peer.files(directory) == {"old": b"new"}

    def test_a_file_that_is_being_written_cannot_be_appended_to_by_another(self, hdfs_peer: HdfsPeer) -> None:
        path = f"{hdfs_peer.fresh_directory()}/open"
        with Client(hdfs_peer.default_fs).create(path, WriteOptions()) as file:
            file.write(b"mine")
            with pytest.raises(FileExistsError):
                Client(hdfs_peer.default_fs).append(path)
        assert hdfs_peer.read(path) == b"mine"

    def test_a_file_larger_than_a_packet_and_a_buffer_is_read_back_whole(self, hdfs_peer: HdfsPeer) -> None:
        path, content = f"{hdfs_peer.fresh_directory()}/large", os.urandom(20_000_000)
        write(hdfs_peer, path, content)
        assert hdfs_peer.read(path) == content

    def test_a_file_that_does_not_exist_is_not_found(self, hdfs_peer: HdfsPeer) -> None:
        with pytest.raises(FileNotFoundError):
            hdfs_peer.read("/nobody/made/it")

    def test_a_cluster_that_went_away_comes_back_with_its_files(self, hdfs_peer: HdfsPeer) -> None:
        directory = hdfs_peer.fresh_directory()
        write(hdfs_peer, f"{directory}/before", b"1\n")
        with hdfs_peer.down():
            assert refuses(hdfs_peer.default_fs.removeprefix("hdfs://"))
            with pytest.raises(OSError, match="Connection refused"):
                write(hdfs_peer, f"{directory}/meanwhile", b"2\n")
        write(hdfs_peer, f"{directory}/after", b"3\n")
        assert hdfs_peer.files(directory) == {"after": b"3\n", "before": b"1\n"}
