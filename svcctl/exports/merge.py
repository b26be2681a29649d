"""The merged file: its heading, the parts behind it, each hashed again as it is read, and the hash of the whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from svcctl.compression import COMPRESSIONS, Compressed
from svcctl.errors import UsageError
from svcctl.exports.manifest import Entry
from svcctl.exports.windows import Window

if TYPE_CHECKING:
    from svcctl.compression import Sink
    from svcctl.storage import Storage


class Damaged(Exception):
    """A part is not what the manifest says of it."""

    def __init__(self, window: Window) -> None:
        super().__init__(str(window))
        self.window = window


class Hashed:
    """A sink that counts and hashes what it passes on."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes | memoryview, /) -> None:
        self._sink.write(data)
        self._digest.update(data)
        self.bytes += len(data)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def write_head(head: str, compression: str, sink: Sink) -> None:
    """Write the heading, compressed as a member of its own."""
    heading = head.encode("utf-8", "surrogateescape")
    if compression:
        compressed = Compressed(sink, COMPRESSIONS[compression]())
        compressed.write(heading)
        compressed.end()
    else:
        sink.write(heading)


def checked(storage: Storage, entry: Entry) -> Iterator[bytes]:
    """The bytes of a part; Damaged when they are not those that were stored."""
    digest = hashlib.sha256()
    try:
        for piece in storage.read(entry.path):
            digest.update(piece)
            yield piece
    except UsageError:
        raise Damaged(entry.window) from None
    if digest.hexdigest() != entry.sha256:
        raise Damaged(entry.window)


def sha256_of(storage: Storage, name: str) -> str:
    """The hash of an object, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in storage.read(name):
        digest.update(piece)
    return digest.hexdigest()
