"""Many events to each destination, read back by another client, row for row the query's own csv."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer
from support.shells import Shell
from tools import chaos

ROWS = 300_000
EVENTS = "from demo.ecommerce.data"
NOW = int(time.time())
WINDOW = ("--from", str(NOW - 9 * 86_400), "--to", str(NOW), "--limit", str(ROWS))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("site"), {"SVCCTL_DEMO": "10d"})
    assert shell("service", "start").returncode == 0
    yield shell
    shell("service", "stop")


def delivered(shell: Shell, target: chaos.Target) -> None:
    """Launch a job over all these events and wait for its end."""
    given = shell.home / "destination.json"
    given.write_text(json.dumps({"type": target.type, "params": dict(target.params)}))
    started = time.monotonic()
    [job] = shell.ndjson("query", EVENTS, *WINDOW, "--dest-json", str(given))
    done = replace(shell, timeout=410)("job", "wait", str(job["id"]), "--max-time", "400", "-f", "ndjson")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["eventsSent"] == ROWS
    seconds = time.monotonic() - started
    print(f"{target.type}: {ROWS / seconds:,.0f} events/s ({seconds:.1f} s)")


def answer(shell: Shell, mode: str) -> list[str]:
    """The lines of the query's own answer, in the same range."""
    done = replace(shell, timeout=200)("query", EVENTS, *WINDOW, "-f", mode)
    assert done.returncode == 0, done.stderr
    lines: list[str] = done.stdout.split("\n")
    return lines[:-1]


def of_files(files: Iterable[bytes]) -> list[str]:
    """The lines of csv files without the header of each."""
    return [line for file in files for line in file.decode().split("\n")[1:-1]]


def same(one: list[str], other: list[str]) -> None:
    """So many lines are compared by hand: a difference is one line, not a report of all."""
    assert (len(one), len(other)) == (ROWS, ROWS)
    assert next(((n, *pair) for n, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]), None) is None


def test_kafka_takes_many_events(site: Shell, kafka_peer: KafkaPeer) -> None:
    target, *_ = chaos.kafka_targets(kafka_peer)
    delivered(site, chaos.Target("kafka", {**target.params, "maxBytesPerCommit": "1000000"}))
    same([(value or b"").decode() for value in kafka_peer.values(target.params["topic"])], answer(site, "ndjson"))


def test_a_kafka_without_transactions_takes_many_events(site: Shell, old_kafka_peer: KafkaPeer) -> None:
    target, *_ = chaos.kafka_targets(old_kafka_peer)
    delivered(site, chaos.Target("kafka", {**target.params, "maxBytesPerCommit": "1000000"}))
    same([(value or b"").decode() for value in old_kafka_peer.values(target.params["topic"])], answer(site, "ndjson"))


def s3_takes_many_events(site: Shell, peer: S3Peer) -> None:
    bucket = peer.fresh_bucket()
    target = chaos.s3_target(bucket)
    params = {**target.params, "aws.bucket": bucket.bucket, "format": "plain", "retention.size": "50"}
    delivered(site, chaos.Target("s3", params))
    objects = bucket.objects()
    assert len(objects) > 1
    same(of_files(objects.values()), answer(site, "csv")[1:])


def test_s3_takes_many_events(site: Shell, s3_peer: S3Peer) -> None:
    s3_takes_many_events(site, s3_peer)


def test_ceph_takes_many_events(site: Shell, ceph_peer: S3Peer) -> None:
    s3_takes_many_events(site, ceph_peer)


def test_hdfs_takes_many_events(site: Shell, hdfs_peer: HdfsPeer) -> None:
    folder = hdfs_peer.fresh_directory()
    params = {"fs.defaultFS": hdfs_peer.default_fs, "file": f"{folder}/web.csv", "retention.size": "50"}
    delivered(site, chaos.Target("hdfs", params))
    files = hdfs_peer.files(folder)
    assert len(files) > 1
    same(of_files(files.values()), answer(site, "csv")[1:])
