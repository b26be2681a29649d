"""Which types of destinations there are, and what a launch says about any other."""

from __future__ import annotations

import sys

import pytest

from svcctl.api.destinations import TYPES
from svcctl.errors import MissingExtra, ServiceError
from svcctl.service.destinations import kinds

KAFKA = {"topic": "t", "bootstrap.servers": "b:9092"}


def test_every_type_that_the_interface_names_has_a_destination_here() -> None:
    assert set(kinds.KINDS) == set(TYPES)


@pytest.mark.parametrize(
    ("name", "known"), [("Kafka", "kafka"), ("HDFS", "hdfs"), ("S3", "s3"), ("DONOTHING", "donothing")]
)
def test_a_type_may_be_written_in_any_case(name: str, known: str) -> None:
    assert kinds.known_type(name) == known


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hfds", "unknown destination.type 'hfds' (did you mean 'HDFS'?)"),
        ("ftp", "unknown destination.type 'ftp' (known types are Kafka, S3, HDFS, donothing)"),
    ],
)
def test_another_type_is_refused(name: str, message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        kinds.known_type(name)
    assert caught.value.message == message


def test_a_destination_whose_extra_is_missing_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra) as caught:
        kinds.destination("kafka", "job", KAFKA)
    assert "destination kafka" in caught.value.message
    assert "'svcctl[kafka]'" in (caught.value.hint or "")


def test_a_mistake_in_a_module_of_ours_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "svcctl.service.destinations.kafka", None)
    with pytest.raises(ImportError):
        kinds.destination("kafka", "job", KAFKA)


@pytest.mark.parametrize(
    ("type_", "before", "after", "memo", "inherited"),
    [
        ("kafka", {"topic": "a"}, {"topic": "a", "mode": "array"}, {"partition": 2, "offset": 9}, {"partition": 2}),
        ("kafka", {"topic": "a"}, {"topic": "b"}, {"partition": 2, "offset": 9}, {}),
        ("s3", {"s3.fileName": "a"}, {"s3.fileName": "a"}, {"parts": 3, "owner": "x"}, {"parts": 3}),
        ("hdfs", {"file": "/a"}, {"file": "/b"}, {"parts": 3}, {}),
        ("donothing", {}, {}, {}, {}),
    ],
)
def test_a_job_that_continues_another_has_its_partition_or_the_number_of_its_next_file(
    type_: str, before: dict[str, str], after: dict[str, str], memo: dict[str, object], inherited: dict[str, object]
) -> None:
    assert kinds.inherited_memo(memo, (type_, before), (type_, after)) == inherited
    assert kinds.inherited_memo(memo, (type_, before), ("donothing", after)) == {}
