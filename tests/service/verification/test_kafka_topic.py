"""A partition on a real Kafka: rows that arrive twice, topics that are gone, brokers that do not answer."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from peers.kafka import KafkaPeer
from tools.verify_faults import Sent, checked, deliver_messages, replace_messages

from svcctl.errors import Unavailable
from svcctl.service.hosts.allowed_hosts import EVERYTHING, parse
from svcctl.service.verification import CheckTally, FaultKind
from svcctl.service.verification.verify import check


def stored(sent: Sent) -> list[tuple[bytes, bytes]]:
    return [(f"{sent.job.job_id}/{row}".encode(), line.encode()) for row, line in enumerate(sent.lines)]


def test_rows_that_arrive_twice_without_transactions_are_noted(kafka_peer: KafkaPeer) -> None:
    topic = kafka_peer.fresh_topic()
    sent = deliver_messages(kafka_peer, random.Random(2), 20)
    place = {**sent.job.params, "topic": topic}
    sent = replace(sent, job=replace(sent.job, job_id="plain", partition=0, offset=22, params=place))
    producer = Producer({**kafka_peer.client, "log_level": 0})
    for key, value in [*stored(sent)[:10], *stored(sent)[8:]]:
        producer.produce(topic, value, key, 0)
    producer.flush(20)
    found, tally = checked(sent)
    assert (found, tally.counts, len(tally.notes)) == (set(), {}, 1)
    assert tally.notes[0].startswith("2 rows arrived twice")


def test_rows_that_arrive_twice_in_transactions_are_found(kafka_peer: KafkaPeer) -> None:
    sent = deliver_messages(kafka_peer, random.Random(3), 100)
    replace_messages(kafka_peer, sent, [*stored(sent), stored(sent)[7]])
    assert checked(sent)[0] == {(FaultKind.DUPLICATED, 7, 8, None)}


def test_all_rows_are_missing_without_the_topic(kafka_peer: KafkaPeer) -> None:
    sent = deliver_messages(kafka_peer, random.Random(4), 50)
    topic = sent.job.params["topic"]
    admin = AdminClient(kafka_peer.client)  # without a reference, the client would be closed before it gets its answer
    admin.delete_topics([topic])[topic].result(20)
    found, tally = checked(sent)
    assert (found, len(tally.notes)) == ({(FaultKind.MISSING, 0, 50, None)}, 1)


def test_brokers_that_do_not_answer_are_no_result(kafka_peer: KafkaPeer) -> None:
    sent = deliver_messages(kafka_peer, random.Random(5), 5)

    def run(rules: str, more: Mapping[str, str]) -> None:
        job = replace(sent.job, params={**sent.job.params, **more})
        list(check(job, sent.expected(), allowed=parse(rules), stopped=lambda: False))

    with pytest.raises(Unavailable, match="kafka"):
        run("*", {"bootstrap.servers": "127.0.0.1:9"})
    with pytest.raises(Unavailable, match="may not connect"):
        run("public", {})


def test_a_check_that_is_stopped_has_no_result(kafka_peer: KafkaPeer) -> None:
    sent = deliver_messages(kafka_peer, random.Random(6), 50)
    items = list(check(sent.job, sent.expected(), allowed=EVERYTHING, stopped=lambda: True))
    assert not any(isinstance(item, CheckTally) for item in items)
