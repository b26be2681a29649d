"""Kafka: a row is a message, a batch is a transaction, and all of a job goes to one partition, in the query's order.

Which partition that is follows from the job's ID, so several jobs share a topic evenly. The number of rows so far is
committed with each transaction, as the offset of a consumer group named after the job (`svcctl-<job>`). So a service
that dies between the transaction and its own note of it learns what was committed, and readers with isolation level
read_committed get every row once.

A broker without transactions (before Kafka 0.11) is told from the others by its answer. There a message has the key
`<job>/<row>`, and after a failure the end of the partition is read back for the rows that have arrived. What remains is
a request that the broker carries out after that reading: its rows come twice, with the same keys.

Beside the keys seen in the field, the settings of SETTINGS are passed on to the client library.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from svcctl.errors import Unavailable
from svcctl.service.destinations import Destination, Memo
from svcctl.service.destinations.params import Params
from svcctl.service.rendering import arrow
from svcctl.service.rendering.rows import ARRAY, OBJECT

SETTINGS = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "ssl.ca.pem",
    "compression.type",
    "api.version.request",
    "broker.version.fallback",
)
"""Others could read files of the service's machine, or run programs on it."""

QUIET: dict[str, Any] = {"log_level": 0, "queue.buffering.max.messages": 10_000_000}
"""Nothing is logged, since what matters is in the job's error; the queue holds the largest batch."""

FIRST_WAIT, WAIT = 5.0, 20.0
"""Seconds for an answer of the brokers: to the first question, and to any other."""


MODES = {"json": OBJECT, "array": ARRAY}
"""How a message is written: as an object, or as the values in the order of the columns."""


class Kafka(Destination):
    counts = True

    def __init__(self, job_id: str, params: Params) -> None:
        self._job = job_id
        self._topic = params.text("topic")
        self._client: dict[str, Any] = {"bootstrap.servers": params.text("bootstrap.servers"), **QUIET}
        self._client |= {key: value for key in SETTINGS if (value := params.text(key))}
        self.rows = MODES[params.choice("mode", tuple(MODES))]
        self._most = params.number("maxBytesPerCommit", 1, 10_000_000, 1_000_000)
        self.patience = params.number("maxTimeWithoutCommit", 1000, 3_600_000, 10_000) / 1000
        self._batch: list[bytes] = []
        self._bytes = 0
        self._first = 0
        self._trouble = ""
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self._client["error_cb"] = self._note
        with self._explained():
            settings = {"group.id": f"svcctl-{self._job}", "enable.auto.commit": False, "enable.partition.eof": True}
            self._consumer = Consumer({**self._client, **settings})
            partitions = self._partitions(self._consumer)
            self._partition: int = memo.get("partition", zlib.crc32(self._job.encode()) % partitions)
            self._place = TopicPartition(self._topic, self._partition)
            self._offset: int | None = memo.get("offset")
            self._there: frozenset[int] = frozenset()
            self._producer = self._transactional()
            if self._producer is not None:
                (committed,) = self._consumer.committed([self._place], WAIT)
                if committed.error is not None:
                    raise KafkaException(committed.error)
                return max(sent, committed.offset) if committed.offset != OFFSET_INVALID else sent
            self._producer = Producer(
                {
                    **self._client,
                    "acks": "all",
                    "retries": 0,
                    "max.in.flight": 1,
                    "message.timeout.ms": int(WAIT * 1000),
                }
            )
            return self._read_back(self._consumer, sent)

    def _partitions(self, consumer: Consumer) -> int:
        """How many the topic has: the first question, which tells soon whether anybody answers."""
        topic = consumer.list_topics(self._topic, timeout=FIRST_WAIT).topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        return len(topic.partitions)

    def _transactional(self) -> Producer | None:
        """A producer whose predecessor, if it still lives, can do nothing more; None without transactions."""
        if str(self._client.get("api.version.request")).lower() == "false":
            return None  # a broker that cannot be asked what it knows is older than transactions
        producer = Producer({**self._client, "transactional.id": f"svcctl-{self._job}"})
        try:
            producer.init_transactions(WAIT)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._UNSUPPORTED_FEATURE:
                return None
            raise
        return producer

    def _read_back(self, consumer: Consumer, sent: int) -> int:
        """How many rows are there without a gap; those behind a gap are noted, and not sent again."""
        low, high = consumer.get_watermark_offsets(self._place, WAIT)
        start = high if self._offset is None else max(low, self._offset)
        self._offset = start
        found = set()
        consumer.assign([TopicPartition(self._topic, self._partition, start)])
        deadline = time.monotonic() + WAIT
        position = start
        while position < high:
            message = consumer.poll(max(0.0, deadline - time.monotonic()))
            if message is None:
                raise Unavailable(self._trouble or "kafka: the end of the partition could not be read")
            if (problem := message.error()) is not None:
                if problem.code() == KafkaError._PARTITION_EOF:
                    break
                raise KafkaException(problem)
            position = (message.offset() or 0) + 1
            job, _, row = (message.key() or b"").decode(errors="replace").partition("/")
            if job == self._job:
                found.add(int(row))
        consumer.unassign()
        there = sent
        while there in found:
            there += 1
        self._there = frozenset(row for row in found if row > there)
        return there

    @property
    def memo(self) -> Memo:
        return {"partition": self._partition} | ({} if self._offset is None else {"offset": self._offset})

    def room(self) -> int:
        return self._most - self._bytes

    def write(self, lines: pa.StringArray, row: int) -> None:
        if not self._batch:
            self._first = row
        self._batch += arrow.each(lines)
        self._bytes += len(arrow.text(lines))

    def commit(self) -> Memo:
        with self._explained():
            if self._offset is None:
                self._commit_transaction()
            else:
                self._send()
        self._batch = []
        self._bytes = 0
        return self.memo

    def _commit_transaction(self) -> None:
        assert self._producer is not None
        assert self._consumer is not None
        self._producer.begin_transaction()
        self._produce([{"value": value} for value in self._batch])
        reached = TopicPartition(self._topic, self._partition, self._first + len(self._batch))
        self._producer.send_offsets_to_transaction([reached], self._consumer.consumer_group_metadata(), WAIT)
        self._producer.commit_transaction(WAIT)

    def _send(self) -> None:
        assert self._producer is not None
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                failures.append(error)
            else:
                self._offset = max(self._offset or 0, message.offset() + 1)

        rows = ((row, value) for row, value in enumerate(self._batch, self._first) if row not in self._there)
        messages = [{"key": f"{self._job}/{row}".encode(), "value": value} for row, value in rows]
        self._produce(messages, on_delivery=delivered)
        if self._producer.flush(WAIT):
            raise Unavailable(self._trouble or "kafka: the broker does not take the rows")
        if failures:
            raise KafkaException(failures[0])

    def _produce(self, messages: list[dict[str, Any]], **more: Any) -> None:
        """Queue messages all at once, which takes half the time of one by one."""
        assert self._producer is not None
        if self._producer.produce_batch(self._topic, messages, partition=self._partition, **more) < len(messages):
            raise Unavailable(self._trouble or "kafka: the batch does not fit into the client library's queue")

    def _note(self, error: KafkaError) -> None:
        """What the library says by the way is the reason when an answer does not come."""
        self._trouble = f"kafka: {error.str()}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            told = error.args[0].str() if error.args and isinstance(error.args[0], KafkaError) else str(error)
            reason = f"kafka: {told}"
            raise Unavailable(
                f"{reason} ({self._trouble.removeprefix('kafka: ')})" if self._trouble else reason
            ) from None

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None
