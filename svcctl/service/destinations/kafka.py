"""Kafka: a job sends its rows as messages to one partition of a topic, in the query's order.

The job's ID decides the partition, so the jobs are spread evenly over the partitions of a topic. Each message has the
key `<job>/<row>`, with the ID of the job and the number of the row. Each batch of rows is sent in a transaction.

The service may die while it sends a batch. Then the next run of the job finds out which rows were delivered. This run
uses two sources:
- The number of delivered rows. Each transaction commits this number as the offset of the consumer group `svcctl-<job>`.
  The number is exact even if another producer's open transaction hides messages from consumers.
- The last messages of the partition, which the run reads as a consumer. The run does not send the rows of these
  messages again. The messages may include rows that were sent without a transaction. Some brokers also show rows of
  aborted transactions.

All runs of a job have the same transactional ID. So the broker refuses late requests of an earlier run.

Brokers before version 0.11 have no transactions, so they cannot refuse late requests. A late request can deliver rows
for a second time. Then both messages of a row have the same key.

The parameters in PASSED_SETTINGS are passed on to the client library.

An event that is larger than a batch is sent alone. The size of such an event has two limits: MAX_EVENT_BYTES, and the
topic's `max.message.bytes`, which the broker checks. Smaller events are sent in sets of several messages. If the broker
reports the topic's limit, a set never exceeds this limit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Protocol

import pyarrow as pa
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from svcctl.dates.epochs import from_ms
from svcctl.dates.lengths import length_text
from svcctl.dates.operators import moment_text
from svcctl.errors import Unavailable
from svcctl.service.destinations import JobDestination, Memo
from svcctl.service.destinations.params import Params
from svcctl.service.hosts.allowed_hosts import EVERYTHING, AllowedHosts
from svcctl.service.hosts.kafka_brokers import Brokers
from svcctl.service.rendering import arrow
from svcctl.service.rendering.rows import ARRAY, OBJECT

PASSED_SETTINGS = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "ssl.ca.pem",
    "compression.type",
    "api.version.request",
    "broker.version.fallback",
)
"""The only parameters that are passed on to the client library as settings.

Other settings could read files on the service's machine, or run programs.
"""

FIXED_SETTINGS: dict[str, Any] = {"log_level": 0, "queue.buffering.max.messages": 10_000_000}
"""The settings that every Kafka client of the service has.

A client writes no log, because the job's error already has the reason for a failure. The queue of a client can hold any
batch.
"""

MAX_EVENT_BYTES = 10 << 20
"""The maximum size of an event, in bytes. This limit is somewhat larger than the largest batch of several events."""
MAX_SET_BYTES = 1_000_000
"""The maximum size of a set of several messages, in bytes. By default, brokers accept somewhat larger sets."""
FRAMING_BYTES = 1 << 12
"""An upper limit, in bytes, for the size of a message's key and headers together."""

FIRST_WAIT, WAIT = 5.0, 20.0
"""The maximum numbers of seconds to wait for an answer of the brokers.

FIRST_WAIT is for the first request, and WAIT is for each later request.
"""

MODES = {"json": OBJECT, "array": ARRAY}
"""The format of a message, by the parameter `mode`: an object, or an array of values in the order of the columns."""


MESSAGE_LIMIT = "max.message.bytes"
"""The name of the setting that limits the size of the messages of a topic."""

_MOMENT = re.compile(r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)")
_NO_CONNECTION = re.compile(r"(?:\w+://)?([^/]+)/\S+: (?:Connect to \S+ failed|Failed to resolve '[^']*'): (.*)")
CHECK = "check the port, and security.protocol if the broker requires TLS"
_REPLACED_MESSAGES = {
    # The library takes the first four bytes of an answer as its length, even if the answer comes from a web server.
    "Receive failed: Invalid response size": f"answers, but not as Kafka: {CHECK}",
    ".*(?:Disconnected|wrong version number).* in state SSL_HANDSHAKE": (
        "answers, but not with TLS: check the port, and security.protocol if the broker does not use TLS"
    ),
    ".*certificate verify failed": "has a certificate that is not trusted: check ssl.ca.pem, and the host's name",
}
"""Texts that replace the library's messages about a broker. Each key is a pattern for a message of the library."""
_UNREACHED = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE)


class Kafka(JobDestination):
    """Writes rows to a topic. If the broker supports transactions, each batch of rows is sent in a transaction."""

    counts = True

    def __init__(
        self,
        job_id: str,
        params: Params,
        *,
        allowed: AllowedHosts = EVERYTHING,
        first_wait: float = FIRST_WAIT,
    ) -> None:
        self._job = job_id
        self._first_wait = first_wait
        self._topic = params.text("topic")
        self._servers = params.text("bootstrap.servers")
        settings = {key: value for key in PASSED_SETTINGS if (value := params.text(key))}
        self._brokers = Brokers(allowed)
        self._client: dict[str, Any] = {
            "bootstrap.servers": self._brokers.bootstrap(self._servers, settings),
            **FIXED_SETTINGS,
            **settings,
            **self._brokers.settings,
            "error_cb": self._note,
        }
        self.rows = MODES[params.text("mode")]
        self._most = params.number("maxBytesPerCommit")
        self.patience = params.number("maxTimeWithoutCommit") / 1000
        self._batch: list[bytes] = []
        self._dates: list[pa.Int64Array] = []
        self._bytes = 0
        self._first = 0
        self._limit: int | None = None
        """The topic's limit for the size of a message, in bytes. It is None if the limit is unknown."""
        self._trouble = ""
        self._unreachable: dict[str, str] = {}
        """The brokers that cannot be reached, each with the reason."""
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        with self._explained():
            self._consumer = consumer = Consumer(self._reading)
            number = memo.get("partition", zlib.crc32(self._job.encode()) % self._partitions(consumer))
            place = TopicPartition(self._topic, number)
            self._partition = _Partition(consumer, place, self._job, memo.get("offset"))
            self._limit = self._topic_limit()
            if (producer := self._transactional()) is not None:
                self._way: _Way = _Transactions(producer, consumer, self._partition)
            else:
                producer = self._ordered()
                self._way = _Requests(producer, self._partition)
            self._producer = producer
            row_count = self._partition.read_back(self._way.committed(sent), self._end(place))
        self._check_brokers()
        return row_count

    def _topic_limit(self) -> int | None:
        """Return the topic's `max.message.bytes`. Returns None if the broker does not report this setting."""
        if self._is_old:
            return None
        topic = ConfigResource(ConfigResource.Type.TOPIC, self._topic)
        try:
            admin = AdminClient(self._client)  # this reference keeps the client open until the answer arrives
            limit = admin.describe_configs([topic], request_timeout=self._first_wait)[topic].result().get(MESSAGE_LIMIT)
        except KafkaException:
            return None
        return int(limit.value) if limit is not None and limit.value else None

    @property
    def _is_old(self) -> bool:
        """Whether the parameter `api.version.request` is false.

        The user sets this value for brokers before version 0.10. Such brokers can neither report their features nor use
        transactions.
        """
        return str(self._client.get("api.version.request")).lower() == "false"

    @property
    def _sending(self) -> dict[str, Any]:
        """The settings of a producer. With these settings, no set of messages is larger than the limit of the topic."""
        limit = max(1, (self._limit or MAX_SET_BYTES + FRAMING_BYTES) - FRAMING_BYTES)
        most = MAX_EVENT_BYTES + FRAMING_BYTES
        return {**self._client, "message.max.bytes": most, "batch.size": min(MAX_SET_BYTES, self._most, limit)}

    @property
    def _reading(self) -> dict[str, Any]:
        return {
            **self._client,
            "group.id": f"svcctl-{self._job}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "auto.offset.reset": "earliest",  # used if the broker has deleted the messages at the saved offset
        }

    def _end(self, place: TopicPartition) -> int:
        """Return the offset after the last message of a partition, including messages of open transactions."""
        with closing(Consumer({**self._reading, "isolation.level": "read_uncommitted"})) as consumer:
            _, end = consumer.get_watermark_offsets(place, WAIT)
            return end

    def _partitions(self, consumer: Consumer) -> int:
        """Return how many partitions the topic has.

        This is the first request to the brokers. Raises _Unanswered if no broker answers within a few seconds.
        """
        try:
            cluster = consumer.list_topics(self._topic, timeout=self._first_wait)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TRANSPORT:
                raise
            raise _Unanswered(
                f"no Kafka broker answers at {self._servers} within {length_text(self._first_wait)}: {CHECK}"
            ) from None
        self._brokers.check((broker.host, broker.port) for broker in cluster.brokers.values())
        topic = cluster.topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        return len(topic.partitions)

    def _transactional(self) -> Producer | None:
        """Make a producer for transactions. The broker then refuses requests of all earlier producers of this job.

        Returns None if the broker has no transactions.
        """
        if self._is_old:
            return None
        producer = Producer({**self._sending, "transactional.id": f"svcctl-{self._job}"})
        try:
            producer.init_transactions(WAIT)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._UNSUPPORTED_FEATURE:
                return None
            raise
        return producer

    def _ordered(self) -> Producer:
        """Make a producer without transactions that delivers messages in order.

        The producer never retries a request, and waits for each answer before it sends the next request.
        """
        settings = {"acks": "all", "retries": 0, "max.in.flight": 1, "message.timeout.ms": int(WAIT * 1000)}
        return Producer({**self._sending, **settings})

    @property
    def memo(self) -> Memo:
        return self._partition.memo

    def room(self) -> int:
        return self._most - self._bytes

    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        if not self._batch:
            self._first = row
        self._batch += arrow.row_bytes(lines)
        self._dates.append(dates)
        self._bytes += len(arrow.text(lines))

    def commit(self) -> Memo:
        if self._bytes > MAX_EVENT_BYTES:  # a batch of this size has only one event
            raise Unavailable(f"kafka: {self._event(self._first)}, but a job sends at most {MAX_EVENT_BYTES:,}")
        self._check_brokers()
        with self._explained():
            try:
                self._way.send(self._batch, self._first)
            except KafkaException:
                if rows := self._refused():
                    raise Unavailable(f"kafka: {self._refusal(rows)}") from None
                raise
        self._batch, self._dates, self._bytes = [], [], 0
        return self.memo

    def _refused(self) -> Sequence[int]:
        """Return the numbers of the rows that the broker refused because a set of messages was too large."""
        assert self._producer is not None
        self._producer.poll(0)  # runs the callback that records the refused rows
        return self._partition.too_large

    def _refusal(self, rows: Sequence[int]) -> str:
        """Return the text of the error for rows that the broker refused because they are too large."""
        largest = max(rows, key=lambda row: len(self._batch[row - self._first]))
        known = self._limit is not None
        if len(rows) == 1 or (self._limit is not None and len(self._batch[largest - self._first]) > self._limit):
            takes = (
                f"accepts at most {self._limit:,} ({MESSAGE_LIMIT})"
                if known
                else f"does not accept that many (see its {MESSAGE_LIMIT})"
            )
            return f"{self._event(largest)}, but topic '{self._topic}' {takes}"
        return (
            f"topic '{self._topic}' refuses {len(rows)} events because they are too large together "
            f"({self._event(largest)}): set a smaller maxBytesPerCommit to send fewer events at once"
        )

    def _event(self, row: int) -> str:
        """Return the first words of an error message, which name an event and its size."""
        date = pa.chunked_array(self._dates)[row - self._first].as_py()
        named = f"event {row + 1} of the job" if date is None else f"the event of {_date_text(date)}"
        return f"{named} has {len(self._batch[row - self._first]):,} bytes"

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None

    def _note(self, error: KafkaError) -> None:
        """Record the reason why a broker does not answer.

        The library passes the reason only to this callback, and not to its exceptions.
        """
        text = _MOMENT.sub("", error.str())
        matches = (
            (re.match(rf"(?:\w+://)?([^/]+)/\S+: {pattern}", error.str()), fault)
            for pattern, fault in _REPLACED_MESSAGES.items()
        )
        if (match := _NO_CONNECTION.match(text)) is not None:
            self._unreachable[match[1]] = match[2]
        elif (
            sentence := next((f"{self._brokers.name(match[1])} {fault}" for match, fault in matches if match), None)
        ) is not None:
            self._trouble = sentence
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._trouble = _general(error)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except _Unanswered as error:
            raise Unavailable(f"kafka: {self._why() or error}") from None
        except KafkaException as error:
            known = error.args[0] if error.args and isinstance(error.args[0], KafkaError) else None
            why = self._why()
            if known is not None and known.code() in _UNREACHED and why:
                raise Unavailable(f"kafka: {why}") from None
            reason = "the client library cannot use the settings" if known is None else _general(known)
            raise Unavailable(f"kafka: {reason}" + (f" ({why})" if why else "")) from None

    def _check_brokers(self) -> None:
        """Raise HostRefused if the library has found a broker to which the service may not connect."""
        if self._brokers.settings:
            self._poll()
            self._brokers.raise_refused()

    def _poll(self) -> None:
        """Let the library run its callbacks.

        The library then passes its errors to `_note`, and the addresses of the brokers to `Brokers`.
        """
        clients: tuple[Consumer | Producer | None, ...] = (self._consumer, self._producer)
        for client in clients:
            if client is not None:
                with suppress(KafkaException, RuntimeError):
                    client.poll(0)

    def _why(self) -> str:
        """Return the reason why no broker answers. The result is empty if the library has not reported a reason.

        Raises HostRefused if the library has found a broker to which the service may not connect.
        """
        self._poll()
        self._brokers.raise_refused()
        brokers = [f"{self._brokers.name(at)}: {reason}" for at, reason in sorted(self._unreachable.items())]
        self._unreachable.clear()
        return f"no connection to {'; '.join(brokers)}" if brokers else self._trouble


def _date_text(milliseconds: int) -> str:
    return f"{moment_text(from_ms(milliseconds))} UTC"


def _general(error: KafkaError) -> str:
    """Return the library's general text for the code of an error.

    The error's own text is not used, because it may contain the broker's answer.
    """
    return KafkaError(error.code()).str()


class _Unanswered(Exception):
    """Raised if a broker did not answer in time."""


class _Partition:
    """The partition that a job writes to. The job's rows can be read back from the partition.

    `offset` is the saved offset after the last message of the job. It is None if no offset was saved yet.
    """

    def __init__(self, consumer: Consumer, place: TopicPartition, job: str, offset: int | None) -> None:
        self.place = place
        self._consumer = consumer
        self._job = job
        self._offset = offset
        self.too_large: Sequence[int] = ()
        """The numbers of the rows in the last batch that were too large for the broker."""
        self._after_gap: frozenset[int] = frozenset()
        """The numbers of rows that consumers already see, although an earlier row is missing.

        These rows must not be sent again.
        """

    @property
    def memo(self) -> Memo:
        return {"partition": self.place.partition, "offset": self._offset}

    def read_back(self, sent: int, end: int) -> int:
        """Count the job's rows that consumers see before the first missing row. The result is at least `sent`.

        Messages are read from the saved offset to the offset `end`.
        """
        self._offset = end if self._offset is None else min(end, self._offset)
        rows = {row for row in self._rows(self._offset, end) if row >= sent}
        count = sent
        while count in rows:
            count += 1
        self._after_gap = frozenset(row for row in rows if row > count)
        return count

    def _rows(self, position: int, end: int) -> Iterator[int]:
        """Yield the numbers of the job's rows between two offsets.

        The iteration ends early if another producer's open transaction hides the next messages from consumers.
        """
        if position >= end:
            return
        self._consumer.assign([TopicPartition(self.place.topic, self.place.partition, position)])
        stuck = False
        while position < end:
            message = self._consumer.poll(FIRST_WAIT if stuck else WAIT)
            if message is None and stuck:
                break
            if message is None:
                raise _Unanswered("the end of the partition could not be read")
            problem = message.error()
            if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(problem)
            stuck = problem is not None
            position = (message.offset() or 0) + (0 if stuck else 1)
            if not stuck and (row := self._row(message)) is not None:
                yield row
        self._consumer.unassign()

    def _row(self, message: Message) -> int | None:
        """Return the number of the row in a message of this job. Returns None for any other message."""
        job, _, row = (message.key() or b"").decode(errors="replace").partition("/")
        return int(row) if job == self._job and row.isdecimal() else None

    def produce(self, producer: Producer, batch: Sequence[bytes], first: int, failed: Callable[..., None]) -> None:
        """Queue the rows of a batch as messages.

        `first` is the number of the first row. Each error is passed to the function `failed`.
        """
        too_large: list[int] = []
        self.too_large = too_large

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed(error)
                if error.code() == KafkaError.MSG_SIZE_TOO_LARGE and (row := self._row(message)) is not None:
                    too_large.append(row)
            else:
                self._offset = max(self._offset or 0, (message.offset() or 0) + 1)

        messages: list[dict[str, Any]] = [
            {"key": f"{self._job}/{row}".encode(), "value": value}
            for row, value in enumerate(batch, first)
            if row not in self._after_gap
        ]
        queued = producer.produce_batch(self.place.topic, messages, self.place.partition, delivered)
        if queued < len(messages):
            raise _Unanswered("the batch does not fit into the client library's queue")


class _Way(Protocol):
    """A way to send batches to the partition, either with or without transactions."""

    def committed(self, sent: int) -> int:
        """Return the number of delivered rows that the broker has recorded. The result is at least `sent`."""

    def send(self, batch: Sequence[bytes], first: int) -> None:
        """Deliver rows. `first` is the number of the first row, counted from the start of the job."""


class _Transactions(_Way):
    """Sends each batch in one transaction.

    The transaction also commits the number of rows that the job has sent so far, including this batch.
    """

    def __init__(self, producer: Producer, consumer: Consumer, partition: _Partition) -> None:
        self._producer = producer
        self._consumer = consumer
        self._partition = partition

    def committed(self, sent: int) -> int:
        (committed,) = self._consumer.committed([self._partition.place], WAIT)
        if committed.error is not None:
            raise KafkaException(committed.error)
        return max(sent, committed.offset) if committed.offset != OFFSET_INVALID else sent

    def send(self, batch: Sequence[bytes], first: int) -> None:
        place = self._partition.place
        self._producer.begin_transaction()
        self._partition.produce(self._producer, batch, first, lambda error: None)  # an error makes the commit fail
        reached = TopicPartition(place.topic, place.partition, first + len(batch))
        self._producer.send_offsets_to_transaction([reached], self._consumer.consumer_group_metadata(), WAIT)
        self._producer.commit_transaction(WAIT)


class _Requests(_Way):
    """Sends each batch without a transaction. Consumers see each message as soon as the broker accepts the message."""

    def __init__(self, producer: Producer, partition: _Partition) -> None:
        self._producer = producer
        self._partition = partition

    def committed(self, sent: int) -> int:
        return sent

    def send(self, batch: Sequence[bytes], first: int) -> None:
        failures: list[KafkaError] = []
        self._partition.produce(self._producer, batch, first, failures.append)
        if self._producer.flush(WAIT):
            raise _Unanswered("the broker does not take the rows")
        if failures:
            raise KafkaException(failures[0])
