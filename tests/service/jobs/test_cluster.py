"""Two service processes on one state and shared tables; tests/tools/losses.py loses them more often."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest
from peers.kafka import KafkaPeer
from peers.postgresql import PostgreSQLPeer
from peers.s3 import S3Peer
from tools import chaos, losses


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_destination_has_every_event_once_whatever_process_is_lost(
    tmp_path: Path, kafka_peer: KafkaPeer, s3_peer: S3Peer, postgresql_peer: PostgreSQLPeer
) -> None:
    targets = [*chaos.kafka_targets(kafka_peer), chaos.s3_target(s3_peer)]
    dice = random.Random(seed := random.randrange(1 << 32))
    print("seed", seed)
    with closing(losses.Cluster(tmp_path, postgresql_peer, targets, 500, dice)) as processes:
        outcome = losses.run(processes, losses=4)
    print(outcome)
    assert outcome.wrong == []
    assert max(processes.taken_over) < 10
