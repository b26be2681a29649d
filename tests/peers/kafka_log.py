"""Reads a topic from the broker's record batches, without a client library.

A reader of committed records normally trusts the broker's list of aborted transactions. Tansu sends no such list, so
its readers see aborted records too. This reader uses the markers in the log instead, which say the same.

Message formats before record batches (Kafka < 0.11) are not read here.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa

FETCH, FETCH_VERSION = 1, 4
COMPRESSION = {1: "gzip", 3: "lz4", 4: "zstd"}
TRANSACTIONAL, CONTROL = 0x10, 0x20
COMMIT = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a topic; `timestamp` is in epoch milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The records of one batch; `producer` is None outside a transaction, `marker` True or False when it ends one."""

    next_offset: int
    producer: int | None
    marker: bool | None
    rows: tuple[Row, ...]


def committed(address: tuple[str, int], topic: str, partition: int) -> list[Row]:
    """The records of a partition that are in no transaction or in a committed one, in offset order."""
    rows: list[Row] = []
    pending: dict[int, list[Row]] = {}
    for batch in batches(address, topic, partition):
        if batch.producer is None:
            rows += batch.rows
        elif batch.marker is None:
            pending.setdefault(batch.producer, []).extend(batch.rows)
        else:
            ended = pending.pop(batch.producer, [])
            rows += ended if batch.marker else []
    return sorted(rows, key=lambda row: row.offset)


def batches(address: tuple[str, int], topic: str, partition: int) -> Iterator[Batch]:
    """Every batch of a partition from its beginning to its present end."""
    offset = 0
    with socket.create_connection(address, timeout=10) as broker:
        while records := _fetch(broker, topic, partition, offset):
            found = [batch for batch in _batches(records, partition) if batch.next_offset > offset]
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


def _batches(records: bytes, partition: int) -> Iterator[Batch]:
    source = BytesIO(records)
    while len(header := source.read(12)) == 12:
        first, size = struct.unpack(">qi", header)
        body = source.read(size)
        if len(body) < size:
            return  # the broker cuts the last batch where the limit is; the next fetch begins with it
        _, magic, _, flags, last, time, _, producer, _, _, count = struct.unpack_from(">ibIhiqqqhii", body)
        if magic != 2:
            raise ValueError(f"record batches have format 2, not {magic}")
        rows = tuple(_rows(_plain(body[49:], flags & 7), count, partition, first, time))
        transactional = producer if flags & TRANSACTIONAL else None
        marker = struct.unpack(">hh", rows[0].key or b"")[1] == COMMIT if flags & CONTROL else None
        yield Batch(first + last + 1, transactional, marker, rows)


def _plain(data: bytes, compression: int) -> bytes:
    if compression == 0:
        return data
    with pa.input_stream(pa.py_buffer(data), compression=COMPRESSION[compression]) as stream:
        return bytes(stream.read())


def _rows(data: bytes, count: int, partition: int, first: int, time: int) -> Iterator[Row]:
    source = BytesIO(data)
    for _ in range(count):
        _varint(source)  # the record's length
        source.read(1)  # its attributes, of which there are none
        timestamp, offset = time + _varint(source), first + _varint(source)
        key, value = _bytes(source), _bytes(source)
        headers = tuple(((_bytes(source) or b"").decode(), _bytes(source)) for _ in range(_varint(source)))
        yield Row(partition, offset, key, value, headers, timestamp)


def _bytes(source: BytesIO) -> bytes | None:
    size = _varint(source)
    return None if size < 0 else source.read(size)


def _varint(source: BytesIO) -> int:
    """A number in groups of seven bits, lowest first; its own lowest bit is the sign."""
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
