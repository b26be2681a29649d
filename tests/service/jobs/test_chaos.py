"""A little chaos on a real service with real peers; tests/bench/chaos.py does a lot of it."""

from __future__ import annotations

import random

import pytest
from bench import chaos
from support.shells import Shell

# Each kill interrupts all jobs at once: one for each destination, and two for the old Kafka. That makes 7 of them, and
# 28 interruptions in the long run.
QUICK = ("kafka", "showing_kafka", "s3")
ALL = (*QUICK, "old_kafka", "ceph", "hdfs")


@pytest.mark.parametrize(
    ("peers", "kills", "rows"),
    [
        pytest.param(QUICK, 3, 1000, id="quick", marks=pytest.mark.slow),
        pytest.param(ALL, 4, 500, id="long", marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
    ],
)
def test_every_destination_has_every_event_once_and_in_order(
    shell: Shell, request: pytest.FixtureRequest, peers: tuple[str, ...], kills: int, rows: int
) -> None:
    targets = [target for name in peers for target in chaos.TARGETS[name][1](request.getfixturevalue(f"{name}_peer"))]
    calm = Shell(shell.home, {"SVCCTL_DEMO": "0"})
    try:
        outcome = chaos.run(calm, targets, kills=kills, rows=rows, seed=random.randrange(1 << 32))
    finally:
        calm("service", "stop")
    print(outcome)
    assert outcome.loaded >= (kills + 1) * rows
    assert outcome.wrong == []
