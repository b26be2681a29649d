"""What a job says of Kafka brokers that cannot be reached; no broker is needed for it."""

from __future__ import annotations

import pytest
from peers.processes import free_port

from svcctl.errors import Unavailable
from svcctl.service.destinations import kafka, kinds


def test_brokers_that_nobody_runs_are_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "FIRST_WAIT", 1.0)
    closed = f"127.0.0.1:{free_port()}"
    params = {"topic": "t", "bootstrap.servers": f"{closed},nowhere.invalid:9092"}
    destination = kinds.destination("kafka", "job", params)
    with pytest.raises(Unavailable) as caught:
        destination.open(0, {}, b"")
    destination.close()
    assert caught.value.message == (
        f"kafka: no connection to {closed}: Connection refused; nowhere.invalid:9092: Name or service not known"
    )
