"""Kafka: a row is a message, a batch is a transaction, and a job writes to one partition, in the query's order.

The partition follows from the job's ID, so several jobs share a topic evenly. Each transaction also commits the number
of rows so far, as the offset of a consumer group named after the job (`svcctl-<job>`). So a service that dies between
the transaction and saving the job finds out what was committed, and consumers with isolation level read_committed read
every row once.

Brokers before 0.11 have no transactions. There each message has the key `<job>/<row>`, and after a failure the end of
the partition is read back for the rows that arrived. A request that the broker carries out only after that reading
delivers its rows twice, with the same keys.

The parameters in SETTINGS are passed on to the client library.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

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
"""Other settings could read files of the service's machine, or run programs on it."""

QUIET: dict[str, Any] = {"log_level": 0, "queue.buffering.max.messages": 10_000_000}
"""The library logs nothing, since the job's error says what matters; its queue holds the largest batch."""

FIRST_WAIT, WAIT = 5.0, 20.0
"""Seconds to wait for an answer of the brokers: to the first request, and to any other."""

MODES = {"json": OBJECT, "array": ARRAY}
"""How a message is written: as an object, or as the values in the order of the columns."""


class Kafka(Destination):
    """A topic, written to in one of two ways that `open` chooses by what the broker can do."""

    counts = True

    def __init__(self, job_id: str, params: Params) -> None:
        self._job = job_id
        self._topic = params.text("topic")
        self._client: dict[str, Any] = {
            "bootstrap.servers": params.text("bootstrap.servers"),
            **QUIET,
            **{key: value for key in SETTINGS if (value := params.text(key))},
            "error_cb": self._note,
        }
        self.rows = MODES[params.choice("mode", tuple(MODES))]
        self._most = params.number("maxBytesPerCommit", 1, 10_000_000, 1_000_000)
        self.patience = params.number("maxTimeWithoutCommit", 1000, 3_600_000, 10_000) / 1000
        self._batch: list[bytes] = []
        self._bytes = 0
        self._first = 0
        self._trouble = ""
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        with self._explained():
            self._consumer = consumer = Consumer(
                {
                    **self._client,
                    "group.id": f"svcctl-{self._job}",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                }
            )
            partition = memo.get("partition", zlib.crc32(self._job.encode()) % self._partitions(consumer))
            place = TopicPartition(self._topic, partition)
            self._way: _Way
            if (producer := self._transactional()) is not None:
                self._way = _Transactions(producer, consumer, place)
            else:
                producer = self._ordered()
                self._way = _Keys(producer, consumer, place, self._job, memo.get("offset"))
            self._producer = producer
            return self._way.there(sent)

    def _partitions(self, consumer: Consumer) -> int:
        """The number of partitions of the topic. The first request, which soon shows whether anybody answers."""
        topic = consumer.list_topics(self._topic, timeout=FIRST_WAIT).topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        return len(topic.partitions)

    def _transactional(self) -> Producer | None:
        """A producer that fences any earlier one of this job; None when the broker has no transactions."""
        if str(self._client.get("api.version.request")).lower() == "false":
            return None  # a broker that cannot say what it supports is older than transactions
        producer = Producer({**self._client, "transactional.id": f"svcctl-{self._job}"})
        try:
            producer.init_transactions(WAIT)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._UNSUPPORTED_FEATURE:
                return None
            raise
        return producer

    def _ordered(self) -> Producer:
        """A producer that delivers in order, since it neither retries nor sends the next request early."""
        settings = {"acks": "all", "retries": 0, "max.in.flight": 1, "message.timeout.ms": int(WAIT * 1000)}
        return Producer({**self._client, **settings})

    @property
    def memo(self) -> Memo:
        return self._way.memo

    def room(self) -> int:
        return self._most - self._bytes

    def write(self, lines: pa.StringArray, row: int) -> None:
        if not self._batch:
            self._first = row
        self._batch += arrow.each(lines)
        self._bytes += len(arrow.text(lines))

    def commit(self) -> Memo:
        with self._explained():
            self._way.send(self._batch, self._first)
        self._batch = []
        self._bytes = 0
        return self.memo

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None

    def _note(self, error: KafkaError) -> None:
        """The library reports the reason why an answer does not come here, and not in the exception."""
        self._trouble = error.str()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except _Unanswered as error:
            raise Unavailable(f"kafka: {self._trouble or error}") from None
        except KafkaException as error:
            reason = error.args[0].str() if error.args and isinstance(error.args[0], KafkaError) else str(error)
            raise Unavailable(f"kafka: {reason}" + (f" ({self._trouble})" if self._trouble else "")) from None


class _Unanswered(Exception):
    """The broker did not answer in time."""


class _Way(Protocol):
    """How rows get to a partition so that each is there once."""

    @property
    def memo(self) -> Memo:
        """What the job saves, so that the same way is chosen again."""

    def there(self, sent: int) -> int:
        """Count the job's rows in the partition; at least `sent`."""

    def send(self, batch: Sequence[bytes], first: int) -> None:
        """Deliver rows, the first of which is number `first` of the job."""


class _Transactions(_Way):
    """A batch and the number of rows so far are committed in one transaction."""

    def __init__(self, producer: Producer, consumer: Consumer, place: TopicPartition) -> None:
        self._producer = producer
        self._consumer = consumer
        self._place = place

    @property
    def memo(self) -> Memo:
        return {"partition": self._place.partition}

    def there(self, sent: int) -> int:
        (committed,) = self._consumer.committed([self._place], WAIT)
        if committed.error is not None:
            raise KafkaException(committed.error)
        return max(sent, committed.offset) if committed.offset != OFFSET_INVALID else sent

    def send(self, batch: Sequence[bytes], first: int) -> None:
        self._producer.begin_transaction()
        _produce(self._producer, self._place, [{"value": value} for value in batch])
        reached = TopicPartition(self._place.topic, self._place.partition, first + len(batch))
        self._producer.send_offsets_to_transaction([reached], self._consumer.consumer_group_metadata(), WAIT)
        self._producer.commit_transaction(WAIT)


class _Keys(_Way):
    """Each message has its row's number in its key; `offset` is how far the partition was known to be written."""

    def __init__(
        self, producer: Producer, consumer: Consumer, place: TopicPartition, job: str, offset: int | None
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self._place = place
        self._job = job
        self._offset = offset
        self._there: frozenset[int] = frozenset()
        """Rows that are there behind a gap, and must not be sent again."""

    @property
    def memo(self) -> Memo:
        return {"partition": self._place.partition, "offset": self._offset}

    def there(self, sent: int) -> int:
        """The number of rows without a gap."""
        low, high = self._consumer.get_watermark_offsets(self._place, WAIT)
        self._offset = high if self._offset is None else max(low, self._offset)
        found = self._read_back(self._offset, high)
        there = sent
        while there in found:
            there += 1
        self._there = frozenset(row for row in found if row > there)
        return there

    def _read_back(self, start: int, end: int) -> set[int]:
        """The rows of the job between two offsets of the partition."""
        found = set()
        self._consumer.assign([TopicPartition(self._place.topic, self._place.partition, start)])
        deadline = time.monotonic() + WAIT
        position = start
        while position < end:
            message = self._consumer.poll(max(0.0, deadline - time.monotonic()))
            if message is None:
                raise _Unanswered("the end of the partition could not be read")
            if (problem := message.error()) is not None:
                if problem.code() == KafkaError._PARTITION_EOF:
                    break
                raise KafkaException(problem)
            position = (message.offset() or 0) + 1
            job, _, row = (message.key() or b"").decode(errors="replace").partition("/")
            if job == self._job:
                found.add(int(row))
        self._consumer.unassign()
        return found

    def send(self, batch: Sequence[bytes], first: int) -> None:
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                failures.append(error)
            else:
                self._offset = max(self._offset or 0, message.offset() + 1)

        rows = ((row, value) for row, value in enumerate(batch, first) if row not in self._there)
        messages = [{"key": f"{self._job}/{row}".encode(), "value": value} for row, value in rows]
        _produce(self._producer, self._place, messages, on_delivery=delivered)
        if self._producer.flush(WAIT):
            raise _Unanswered("the broker does not take the rows")
        if failures:
            raise KafkaException(failures[0])


def _produce(
    producer: Producer,
    place: TopicPartition,
    messages: list[dict[str, Any]],
    **more: Callable[[KafkaError | None, Any], None],
) -> None:
    """Queue messages all at once, which takes half the time of one by one."""
    if producer.produce_batch(place.topic, messages, partition=place.partition, **more) < len(messages):
        raise _Unanswered("the batch does not fit into the client library's queue")
