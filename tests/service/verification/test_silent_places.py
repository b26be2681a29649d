"""A check of a destination that accepts connections and never answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from time import monotonic

import pytest

from svcctl.service.hosts.allowed_hosts import AllowedHosts, parse
from svcctl.service.jobs.step_log import FileEntry
from svcctl.service.verification import DeliveredJob, ExpectedRows
from svcctl.service.verification.verify import check

FILES = (FileEntry(0, 0, 9, ("x",)),)


@pytest.fixture
def silent() -> Iterator[str]:
    """The host and the port of a server that reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("allowed", ["*", "127.0.0.1"])
@pytest.mark.parametrize(
    ("type_", "params"),
    [
        ("kafka", {"topic": "t", "bootstrap.servers": "{}"}),
        ("s3", {"aws.bucket": "b", "aws.accesskey": "k", "aws.secretkey": "s", "aws.endpoint": "http://{}"}),
        ("hdfs", {"fs.defaultFS": "hdfs://{}", "file": "/t.csv"}),
    ],
    ids=["kafka", "s3", "hdfs"],
)
def test_a_check_that_waits_for_an_answer_ends_soon_when_it_is_stopped(
    type_: str, params: dict[str, str], allowed: str, silent: str
) -> None:
    place = {key: value.format(silent) for key, value in params.items()}
    job = DeliveredJob("job", type_, place, 9, 0, 0, 9, [(0, 0)], FILES, lambda: False, dict, None)
    hosts: AllowedHosts = parse(allowed)
    end = monotonic() + 0.3
    items = list(check(job, [ExpectedRows(0, 9)], allowed=hosts, stopped=lambda: monotonic() > end))
    assert items == []
    assert monotonic() - end < 3
