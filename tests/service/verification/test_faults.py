"""Each seeded fault in what real jobs delivered is found with its kind and its rows, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer
from tools import verify_faults
from tools.verify_faults import Outcome

SEED = 20261126


def run(one: Callable[[random.Random, Outcome, int], None], faults: int, *, each: int) -> None:
    dice, outcome = random.Random(SEED), Outcome()
    while (left := faults - outcome.made.total()) > 0:
        one(dice, outcome, min(each, left))
    assert (outcome.made.total(), outcome.wrong) == (faults, [])


def test_faults_in_messages_are_found(kafka_peer: KafkaPeer) -> None:
    run(lambda *given: verify_faults.messages_run(kafka_peer, *given), 30, each=30)


def test_faults_in_objects_are_found(s3_peer: S3Peer) -> None:
    run(lambda *given: verify_faults.files_run(verify_faults.s3_peer(s3_peer), *given), 30, each=10)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_faults_in_messages_are_found(kafka_peer: KafkaPeer) -> None:
    run(lambda *given: verify_faults.messages_run(kafka_peer, *given), 300, each=60)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_faults_in_objects_are_found(s3_peer: S3Peer) -> None:
    run(lambda *given: verify_faults.files_run(verify_faults.s3_peer(s3_peer), *given), 400, each=40)


@pytest.mark.timeout(600)
def test_many_faults_in_files_are_found(hdfs_peer: HdfsPeer) -> None:
    run(lambda *given: verify_faults.files_run(verify_faults.hdfs_peer(hdfs_peer), *given), 300, each=40)
