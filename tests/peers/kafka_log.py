"""Finds the aborted transactions in a broker's record batches, without a client library.

Consumers of committed records skip the transactions that the broker lists as aborted. Tansu does not list any, but the
same can be read from the markers that end transactions in its log.

Message formats before record batches (Kafka < 0.11) are not read here.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO

FETCH, FETCH_VERSION = 1, 4
TRANSACTIONAL, CONTROL = 0x10, 0x20
COMMIT = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of records; `producer` is None outside a transaction, `marker` True or False when it ends one."""

    offset: int
    next_offset: int
    producer: int | None
    marker: bool | None


@dataclass(slots=True)
class Aborted:
    """The aborted transactions of a partition, as pairs (producer, first offset)."""

    found: list[tuple[int, int]] = field(default_factory=list)
    _read: int = 0
    _open: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read_to(self, end: int, address: tuple[str, int], topic: str, partition: int) -> None:
        """Find the transactions that ended before the offset `end`, which the log has reached."""
        with self._lock:  # several consumers may read the partition at once
            source = batches(address, topic, partition, self._read)
            while self._read < end and (batch := next(source, None)) is not None:
                self._add(batch)

    def _add(self, batch: Batch) -> None:
        self._read = batch.next_offset
        if batch.producer is None:
            return
        if batch.marker is None:
            self._open.setdefault(batch.producer, batch.offset)
        elif (first := self._open.pop(batch.producer, None)) is not None and not batch.marker:
            self.found.append((batch.producer, first))


def batches(address: tuple[str, int], topic: str, partition: int, offset: int = 0) -> Iterator[Batch]:
    """Every batch of a partition from an offset to the current end."""
    with socket.create_connection(address, timeout=10) as broker:
        while records := _fetch(broker, topic, partition, offset):
            found = [batch for batch in _batches(records) if batch.next_offset > offset]
            yield from found
            offset = found[-1].next_offset


def _fetch(broker: socket.socket, topic: str, partition: int, offset: int) -> bytes:
    name = topic.encode()
    request = (
        struct.pack(">hhih", FETCH, FETCH_VERSION, 0, -1)
        + struct.pack(">iiiibi", -1, 100, 1, 64 << 20, 0, 1)  # any replica, 100 ms, 64 MiB, uncommitted too, one topic
        + struct.pack(f">h{len(name)}sii", len(name), name, 1, partition)
        + struct.pack(">qi", offset, 64 << 20)
    )
    broker.sendall(struct.pack(">i", len(request)) + request)
    answer = BytesIO(_exactly(broker, *struct.unpack(">i", _exactly(broker, 4))))
    answer.read(4 + 4 + 4)  # correlation, throttle time, count of topics
    answer.read(*_unpack(">h", answer))
    _, _, error, _, _, aborted = _unpack(">iihqqi", answer)
    if error:
        raise LookupError(f"fetching {topic}[{partition}] at {offset}: broker error {error}")
    answer.read(16 * max(aborted, 0))
    (size,) = _unpack(">i", answer)
    return answer.read(max(size, 0))


def _batches(records: bytes) -> Iterator[Batch]:
    source = BytesIO(records)
    while len(header := source.read(12)) == 12:
        first, size = struct.unpack(">qi", header)
        body = source.read(size)
        if len(body) < size:
            return  # the broker cuts off the last batch at the limit; the next fetch begins with it
        _, magic, _, flags, last, _, _, producer = struct.unpack_from(">ibIhiqqq", body)
        if magic != 2:
            raise ValueError(f"record batches have format 2, not {magic}")
        transactional = producer if flags & TRANSACTIONAL else None
        yield Batch(first, first + last + 1, transactional, _marker(body[49:]) if flags & CONTROL else None)


def _marker(record: bytes) -> bool:
    """Whether a marker says that its transaction was committed."""
    source = BytesIO(record)
    _varint(source)  # the record's length
    source.read(1)  # its attributes, of which there are none
    for _ in ("timestamp", "offset", "length of the key"):
        _varint(source)
    _, kind = _unpack(">hh", source)
    return bool(kind == COMMIT)


def _varint(source: BytesIO) -> int:
    """Read a number in groups of seven bits, lowest first; the lowest bit of the number is its sign."""
    number = shift = 0
    while True:
        byte = source.read(1)[0]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)


def _unpack(layout: str, source: BytesIO) -> tuple[int, ...]:
    return struct.unpack(layout, source.read(struct.calcsize(layout)))


def _exactly(broker: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = broker.recv(size - len(received))
        if not part:
            raise ConnectionError("the broker closed the connection in the middle of an answer")
        received += part
    return bytes(received)
