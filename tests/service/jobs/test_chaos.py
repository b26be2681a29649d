"""A little chaos on a real service with real peers; tests/bench/chaos.py does a lot of it."""

from __future__ import annotations

import random

from bench import chaos
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer
from support.shells import Shell

KILLS = 3
ROWS = 2000


def exactly_once(shell: Shell, target: chaos.Target) -> None:
    try:
        outcome = chaos.run(shell, target, kills=KILLS, rows=ROWS, dice=random.Random())
    finally:
        shell("service", "stop")
    assert outcome.loaded >= (KILLS + 1) * ROWS
    assert (outcome.sent, outcome.there) == (outcome.loaded, outcome.loaded)
    assert (outcome.lost, outcome.doubled) == (0, 0)


def test_counting_survives_a_service_that_is_killed(shell: Shell) -> None:
    exactly_once(shell, chaos.Target("donothing", {}))


def test_kafka_has_every_event_once(shell: Shell, kafka_peer: KafkaPeer) -> None:
    exactly_once(shell, chaos.kafka_target(kafka_peer))


def test_s3_has_every_event_once(shell: Shell, s3_peer: S3Peer) -> None:
    exactly_once(shell, chaos.s3_target(s3_peer))


def test_a_kafka_without_transactions_has_every_event_once(shell: Shell, old_kafka_peer: KafkaPeer) -> None:
    exactly_once(shell, chaos.kafka_target(old_kafka_peer))


def test_hdfs_has_every_event_once(shell: Shell, hdfs_peer: HdfsPeer) -> None:
    exactly_once(shell, chaos.hdfs_target(hdfs_peer))
