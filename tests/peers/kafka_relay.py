"""A relay in front of a Kafka broker that reads requests and answers.

It can list aborted transactions in the answers to consumers, and refuse messages that are too large, as Kafka does and
Tansu does not. And a test can act just before a request or an answer passes.
"""

from __future__ import annotations

import asyncio
import struct
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import IntEnum
from io import BytesIO

from peers.kafka_log import FETCH_VERSION, Aborted
from peers.processes import HOST
from peers.relay import Relay

MESSAGE_TOO_LARGE = 10
"""The error of a set of messages that is larger than the topic takes."""


class Api(IntEnum):
    """Requests of the protocol, by their keys."""

    PRODUCE = 0
    FETCH = 1
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS = 24
    ADD_OFFSETS = 25
    END = 26
    COMMIT_OFFSETS = 28


@dataclass(frozen=True, slots=True)
class Moment:
    """A request that is about to reach the broker, or its answer that is about to reach the client."""

    api: int
    answered: bool

    def __str__(self) -> str:
        return f"{'answer' if self.answered else 'request'} {Api(self.api).name}"


@dataclass(slots=True)
class KafkaRelay(Relay):
    """A relay that passes whole requests and answers."""

    hides_aborted: bool = True
    refused: list[int] = field(default_factory=list)
    """The sizes of the sets of messages that were refused in the last `taking`."""
    _takes: int | None = None
    _watched: tuple[Moment, Callable[[], None]] | None = None
    _left: int = 0
    _aborted: dict[tuple[str, int], Aborted] = field(default_factory=dict)

    @contextmanager
    def at(self, moment: Moment, happens: Callable[[], None], *, number: int = 1) -> Iterator[None]:
        """Before this passes for the time `number`, cut the connection instead, and call `happens`."""
        self._watched, self._left = (moment, happens), number
        try:
            yield
        finally:
            self._watched = None

    @contextmanager
    def taking(self, size: int) -> Iterator[None]:
        """Refuse sets of messages with more bytes, as a topic does whose `max.message.bytes` this is."""
        self._takes = size
        self.refused.clear()
        try:
            yield
        finally:
            self._takes = None

    def ways(
        self, near: tuple[StreamReader, StreamWriter], far: tuple[StreamReader, StreamWriter]
    ) -> list[Coroutine[None, None, None]]:
        asked: dict[int, int] = {}
        return [self._requests(near, far[1], asked), self._answers(far[0], near[1], asked)]

    async def _requests(
        self, near: tuple[StreamReader, StreamWriter], sink: StreamWriter, asked: dict[int, int]
    ) -> None:
        with suppress(OSError, IncompleteReadError):
            while True:
                request = await _frame(near[0])
                api, _, correlation = struct.unpack_from(">hhi", request)
                if self._takes is not None and api == Api.PRODUCE and (answer := self._refusal(request)) is not None:
                    await _pass(near[1], answer)
                    continue
                asked[correlation] = api
                if self._ends_here(Moment(api, answered=False)):
                    return
                await _pass(sink, request)

    async def _answers(self, source: StreamReader, sink: StreamWriter, asked: dict[int, int]) -> None:
        with suppress(OSError, IncompleteReadError):
            while True:
                answer = await _frame(source)
                api = asked.pop(*struct.unpack_from(">i", answer))
                if self._ends_here(Moment(api, answered=True)):
                    return
                if self.hides_aborted and api == Api.API_VERSIONS:
                    answer = _with_known_fetches(answer)
                if self.hides_aborted and api == Api.FETCH:
                    answer = await asyncio.to_thread(self._with_aborted, answer)
                await _pass(sink, answer)

    def _ends_here(self, moment: Moment) -> bool:
        if self._watched is None or self._watched[0] != moment:
            return False
        self._left -= 1
        if self._left > 0:
            return False
        _, happens = self._watched
        self._watched = None
        happens()
        return True

    def _refusal(self, request: bytes) -> bytes | None:
        """The answer to a request (format 10) of one set of messages that is too large; None if it is not."""
        assert self._takes is not None
        source = BytesIO(request)
        _, _, correlation, client = struct.unpack(">hhih", source.read(10))
        source.read(client + 1)  # and its tags
        source.read(_varint(source) - 1 + 2 + 4 + 1)  # transactional ID, acks, timeout, one topic
        name = source.read(_varint(source) - 1)
        source.read(1)  # one partition
        (partition,) = struct.unpack(">i", source.read(4))
        size = _varint(source) - 1
        if size <= self._takes:
            return None
        self.refused.append(size)
        refused = struct.pack(">ihqqq", partition, MESSAGE_TOO_LARGE, -1, -1, -1) + bytes([1, 0, 0])
        return struct.pack(">ibb", correlation, 0, 2) + bytes([len(name) + 1]) + name + b"\2" + refused + bytes(6)

    def _with_aborted(self, answer: bytes) -> bytes:
        """Add the list of aborted transactions of each partition to an answer to a fetch."""
        source = BytesIO(answer)
        whole = bytearray(source.read(8))  # correlation, throttle time
        for _ in range(_count(source, whole)):
            size = source.read(2)
            name = source.read(*struct.unpack(">h", size))
            whole += size + name
            for _ in range(_count(source, whole)):
                head = source.read(4 + 2 + 8 + 8)
                partition, _, _, stable = struct.unpack(">ihqq", head)
                source.read(16 * max(0, _number(source)))
                size = source.read(4)
                records = source.read(max(0, *struct.unpack(">i", size)))
                aborted = self._aborted.setdefault((name.decode(), partition), Aborted())
                if records:
                    aborted.read_to(stable, (HOST, self.target), name.decode(), partition)
                whole += head + struct.pack(">i", len(aborted.found))
                whole += b"".join(struct.pack(">qq", *transaction) for transaction in aborted.found)
                whole += size + records
        return bytes(whole)


def _with_known_fetches(answer: bytes) -> bytes:
    """Change the list of the broker's versions (format 3) so that clients fetch in the format that is read here."""
    whole = bytearray(answer)
    for at in range(7, 7 + 7 * (answer[6] - 1), 7):  # after correlation, error and count; each ends with its tags
        api, least, most = struct.unpack_from(">hhh", answer, at)
        if api == Api.FETCH:
            struct.pack_into(">hhh", whole, at, api, least, min(most, FETCH_VERSION))
    return bytes(whole)


def _varint(source: BytesIO) -> int:
    number = shift = 0
    while (byte := source.read(1)[0]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
    return number | byte << shift


def _number(source: BytesIO) -> int:
    (number,) = struct.unpack(">i", source.read(4))
    return int(number)


def _count(source: BytesIO, whole: bytearray) -> int:
    """Copy the length of a list, and return it."""
    count = _number(source)
    whole += struct.pack(">i", count)
    return count


async def _frame(source: StreamReader) -> bytes:
    return await source.readexactly(*struct.unpack(">i", await source.readexactly(4)))


async def _pass(sink: StreamWriter, frame: bytes) -> None:
    sink.write(struct.pack(">i", len(frame)) + frame)
    await sink.drain()
