"""The peers as session fixtures: a server starts when the first test needs it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers import ceph, hdfs, installed, kafka, old_kafka, postgresql, s3

SLOW = {"ceph_peer", "hdfs_peer", "old_kafka_peer", "postgresql_peer", "terminal"}
"""The fixtures of programs that pip cannot install; `terminal` is tmux."""


@pytest.hookimpl(wrapper=True)  # before `-m` looks at the markers, and `--dist loadgroup` at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests that use a slow peer as slow, and run them on one worker, as those of one file (`--dist loadgroup`).

    A test uses a peer as a fixture, or names it in a parameter. Files that take long come first, so that all workers
    end together: those that need a slow peer or Spark, and then those of tests/system.
    """
    rank: dict[pytest.Item, int] = {}
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        named = {value for value in parameters if isinstance(value, str)}
        peers = sorted(SLOW & {*getattr(item, "fixturenames", ()), *named})
        if peers:
            item.add_marker(pytest.mark.slow)
        spark = "spark" in item.nodeid
        of_file = f"{item.nodeid.partition('::')[0]}{' on Spark' * spark}"
        item.add_marker(pytest.mark.xdist_group([*peers, of_file][0]))
        rank[item] = 0 if peers or spark else 1 if item.nodeid.startswith("tests/system/") else 2
    items.sort(key=rank.__getitem__)
    yield


@pytest.fixture(scope="session")
def kafka_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.KafkaPeer]:
    """A Kafka broker with transactions."""
    with kafka.tansu(tmp_path_factory.mktemp("tansu")) as peer:
        yield peer


@pytest.fixture(scope="session")
def showing_kafka_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.KafkaPeer]:
    """A Kafka broker that does not tell consumers which transactions were aborted, so they see their records."""
    with kafka.tansu(tmp_path_factory.mktemp("tansu"), hides_aborted=False) as peer:
        yield peer


@pytest.fixture(scope="session")
def old_kafka_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.KafkaPeer]:
    """A Kafka broker from before transactions."""
    installed.need("Apache Kafka", "java", folder="kafka")
    with old_kafka.apache_kafka(tmp_path_factory.mktemp("kafka")) as peer:
        yield peer


@pytest.fixture(scope="session")
def s3_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.S3Peer]:
    """An S3 server that checks signatures."""
    with s3.rclone(tmp_path_factory.mktemp("rclone")) as peer:
        yield peer


@pytest.fixture(scope="session")
def postgresql_peer() -> Iterator[postgresql.PostgreSQLPeer]:
    """A PostgreSQL server."""
    commands = postgresql.programs()
    if commands is None:
        installed.need("PostgreSQL", "postgres")
    with (
        tempfile.TemporaryDirectory(prefix="svcctl-postgresql-") as directory,  # a place that another user can reach
        postgresql.postgresql(Path(directory), commands or Path()) as peer,
    ):
        yield peer


@pytest.fixture(scope="session")
def ceph_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.S3Peer]:
    """An S3 server that also refuses, like real ones, parts that are too small, or a new object that exists."""
    installed.need("Ceph", *ceph.COMMANDS)
    with ceph.radosgw(tmp_path_factory.mktemp("ceph")) as peer:
        yield peer


@pytest.fixture(scope="session")
def hdfs_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hdfs.HdfsPeer]:
    """A Hadoop cluster with two DataNodes."""
    installed.need("Hadoop", "java", folder="hadoop")
    with hdfs.hadoop(tmp_path_factory.mktemp("hadoop")) as peer:
        yield peer
