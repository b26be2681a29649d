"""A little chaos on a real service with real peers; tests/tools/chaos.py does a lot of it."""

from __future__ import annotations

import random

import pytest
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer
from support.shells import Shell
from tools import chaos

KILLS = 4
"""Each interrupts all jobs at once: one for each destination, and two for the old Kafka and for HDFS."""
ROWS = 500


@pytest.mark.timeout(600)
def test_every_destination_has_every_event_once_and_in_order(
    shell: Shell,
    kafka_peer: KafkaPeer,
    showing_kafka_peer: KafkaPeer,
    old_kafka_peer: KafkaPeer,
    s3_peer: S3Peer,
    ceph_peer: S3Peer,
    hdfs_peer: HdfsPeer,
) -> None:
    targets = [
        *(one for peer in (kafka_peer, showing_kafka_peer, old_kafka_peer) for one in chaos.kafka_targets(peer)),
        *(chaos.s3_target(peer) for peer in (s3_peer, ceph_peer)),
        chaos.hdfs_target(hdfs_peer),
    ]
    calm = Shell(shell.home, {"SVCCTL_DEMO": "0"})
    try:
        outcome = chaos.run(calm, targets, kills=KILLS, rows=ROWS, seed=random.randrange(1 << 32))
    finally:
        calm("service", "stop")
    print(outcome)
    assert outcome.loaded >= (KILLS + 1) * ROWS
    assert outcome.wrong == []
