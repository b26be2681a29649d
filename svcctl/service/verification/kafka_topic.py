"""The check of a Kafka topic: the committed messages of a job's partition are read back.

The check changes nothing in Kafka. It commits no offset, and does not join the consumer group of the job. It only reads
whether an offset of this group was committed. Each transaction of the job commits such an offset.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from time import monotonic, sleep
from typing import Any, TypeVar

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from svcctl.api.destinations import Destination, text_of
from svcctl.errors import CredentialsError, Unavailable
from svcctl.service.hosts.allowed_hosts import AllowedHosts
from svcctl.service.hosts.kafka_brokers import Brokers
from svcctl.service.verification import DeliveredJob, FaultKind
from svcctl.service.verification.comparison import ExpectedCursor
from svcctl.service.verification.findings import FaultLog
from svcctl.service.verification.keyed_rows import PartitionComparison
from svcctl.words import counted

T = TypeVar("T")
CLIENT_SETTINGS = (
    *("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.pem"),
    *("api.version.request", "broker.version.fallback"),
)
"""The parameters of the destination that are passed to the client library as settings for reading."""
FIRST_WAIT_SECONDS, WAIT_SECONDS = 5.0, 20.0
"""The maximum numbers of seconds to wait for an answer of the brokers.

FIRST_WAIT_SECONDS is for the first request, and WAIT_SECONDS is for each later request.
"""
REQUEST_SECONDS = 1.5
"""The number of seconds after which a request without an answer is sent again.

This time is short, because a request cannot be interrupted when the check is stopped.
"""
POLL_SECONDS = 0.1
"""The maximum number of seconds that a call waits for messages, and the pause before a request is repeated."""
MAX_MESSAGES, BATCH_BYTES = 2000, 8 << 20
"""The maximum number of messages that are read at once, and the approximate maximum of their size in bytes."""
FETCHED_KILOBYTES, FETCHED_MESSAGES = 8 << 10, 10_000
"""The library fetches messages ahead until it holds this number of kilobytes, or this number of messages.

The number of messages is limited too, because each message takes several hundred additional bytes of memory.
"""
_DENIED = (
    *(KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED),
    *(KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED),
)
_NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
_NO_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


def check_topic(
    job: DeliveredJob, cursor: ExpectedCursor, log: FaultLog, allowed: AllowedHosts, stopped: Callable[[], bool]
) -> Generator[None]:
    """Compare a Kafka partition with the expected rows of a job. Yields from time to time."""
    comparison = PartitionComparison(job, cursor, log)
    log.uncertain = FaultKind.DUPLICATED
    with closing(PartitionReader(job, allowed, stopped)) as reader:
        if reader.is_there():
            for messages in reader.messages():
                comparison.add(messages)
                if reader.transactions:
                    log.uncertain = None
                yield
            comparison.finish(reader.low(), reader.first_hidden())
        else:
            log.tally.notes.append(f"topic '{reader.topic}' does not have the partition of the job")
            comparison.finish(0, None)
    if not reader.transactions and (twice := log.drop(FaultKind.DUPLICATED)):
        note = f"{counted(twice, 'row')} arrived twice, as may happen on brokers without transactions"
        log.tally.notes.append(note)
    if uncompared := comparison.not_compared:
        log.tally.notes.append(f"the values of {counted(uncompared, 'row')} far out of order were not compared")


class PartitionReader:
    """A consumer of the Kafka partition that a job writes to.

    Raises Unavailable if no broker answers or a broker is not allowed. Raises CredentialsError if access is denied.
    """

    def __init__(self, job: DeliveredJob, allowed: AllowedHosts, stopped: Callable[[], bool]) -> None:
        destination = Destination(job.type, job.params)
        settings = {key: text for key in CLIENT_SETTINGS if (text := text_of(destination, key))}
        self.topic = text_of(destination, "topic")
        self.transactions = False
        """Whether the job has written its rows in transactions. It becomes true when a sign of a transaction is found.

        Each transaction leaves two signs: a committed offset of the job's consumer group, and an offset without a
        message.
        """
        self._job = job
        self._stopped = stopped
        self._place = TopicPartition(self.topic, job.partition or 0)
        self._brokers = Brokers(allowed)
        self._servers = text_of(destination, "bootstrap.servers")
        self._denied = False
        self._client: dict[str, Any] = {
            "bootstrap.servers": self._brokers.bootstrap(self._servers, settings),
            "log_level": 0,
            "group.id": f"svcctl-{job.job_id}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",  # for messages that are deleted before they are read
            "queued.max.messages.kbytes": FETCHED_KILOBYTES,
            "queued.min.messages": FETCHED_MESSAGES,
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 5,  # the default of a second is too long, because a full queue is read faster
            **settings,
            **self._brokers.settings,
            "error_cb": self._note,
        }
        with self._explained():
            self._consumer = Consumer(self._client)

    def close(self) -> None:
        self._consumer.close()

    def is_there(self) -> bool:
        """Whether the topic has the job's partition. Also checks that all brokers are allowed."""
        with self._explained():
            cluster = self._answer(lambda wait: self._consumer.list_topics(self.topic, wait), FIRST_WAIT_SECONDS)
            self._brokers.check((broker.host, broker.port) for broker in cluster.brokers.values())
            topic = cluster.topics[self.topic]
            if topic.error is not None and topic.error.code() not in _NO_TOPIC:
                raise KafkaException(topic.error)
            return self._job.partition is not None and self._job.partition in topic.partitions

    def low(self) -> int:
        """Return the offset of the oldest message that the partition still has."""
        with self._explained():
            return self._watermarks(self._consumer)[0]

    def first_hidden(self) -> int | None:
        """Return the first offset at which an open transaction may hide rows of the job.

        Return None if no rows can be hidden. Must be called after `messages`.
        """
        with self._explained(), closing(Consumer({**self._client, "isolation.level": "read_uncommitted"})) as consumer:
            _, high = self._watermarks(consumer)
            return self._stable if self._stable < (self._job.offset or 0) <= high else None

    def messages(self) -> Iterator[list[Message]]:
        """Yield batches of all committed messages, in order, up to the present end of the partition."""
        with self._explained():
            (committed,) = self._answer(lambda wait: self._consumer.committed([self._place], wait))
            if committed.error is not None:
                raise KafkaException(committed.error)
            self.transactions = committed.offset != OFFSET_INVALID
            position, self._stable = self._watermarks(self._consumer)
            self._stable = max(self._stable, self._job.offset or 0)  # some brokers report a lower end
            self._consumer.assign([TopicPartition(self.topic, self._place.partition, position)])
            most, last_answer = 100, monotonic()
            while position < self._stable:
                messages = self._consumer.consume(min(most, self._stable - position), POLL_SECONDS)
                self._brokers.raise_refused()
                if not messages and monotonic() - last_answer > WAIT_SECONDS:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
                if not messages:
                    yield []
                    continue
                last_answer = monotonic()
                begin, position = position, (messages[-1].offset() or 0) + 1
                if any(map(Message.error, messages)):
                    if self._is_end(messages[-1]):
                        position -= 1
                        self._stable = position
                    messages = [message for message in messages if not self._is_end(message)]
                self.transactions = self.transactions or position - begin > len(messages)
                largest = max((len(message.value() or b"") for message in messages), default=1)
                most = max(1, min(MAX_MESSAGES, BATCH_BYTES // (largest + 1)))
                yield messages

    def _watermarks(self, consumer: Consumer) -> tuple[int, int]:
        return self._answer(lambda wait: consumer.get_watermark_offsets(self._place, wait))

    def _answer(self, request: Callable[[float], T], seconds: float = WAIT_SECONDS) -> T:
        """Call `request` with a timeout in seconds, and return its result.

        If no broker answers, the call is repeated for at most `seconds`, or until the check is stopped.
        """
        end = monotonic() + seconds
        while True:
            try:
                return request(max(0.1, min(REQUEST_SECONDS, end - monotonic())))
            except KafkaException as error:
                if _code(error) not in _NO_ANSWER or self._denied or self._stopped() or monotonic() >= end:
                    raise
                sleep(POLL_SECONDS)

    def _is_end(self, message: Message) -> bool:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        return error is not None

    def _note(self, error: KafkaError) -> None:
        self._denied = self._denied or error.code() in _DENIED

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            self._brokers.raise_refused()
            code = _code(error)
            if self._denied or code in _DENIED:
                raise CredentialsError("kafka: access is denied") from None
            reason = "the client library cannot use the settings" if code is None else KafkaError(code).str()
            raise Unavailable(f"kafka: {reason} ({self._servers})") from None


def _code(error: KafkaException) -> int | None:
    """Return the code of an error. Return None if the error has no code."""
    cause = error.args[0] if error.args else None
    return cause.code() if isinstance(cause, KafkaError) else None
