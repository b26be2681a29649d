"""Two service processes on one state and shared tables; tests/bench/losses.py loses them more often."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest
from bench import chaos, losses
from peers.postgresql import PostgreSQLPeer


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_destination_has_every_event_once_whatever_process_is_lost(
    tmp_path: Path, request: pytest.FixtureRequest, postgresql_peer: PostgreSQLPeer
) -> None:
    targets = [
        target for name in ("kafka", "s3") for target in chaos.TARGETS[name][1](request.getfixturevalue(f"{name}_peer"))
    ]
    dice = random.Random(seed := random.randrange(1 << 32))
    print("seed", seed)
    with closing(losses.Cluster(tmp_path, postgresql_peer, targets, 500, dice)) as processes:
        outcome = losses.run(processes, losses=4)
    print(outcome)
    assert outcome.wrong == []
    assert max(processes.taken_over) < 10
