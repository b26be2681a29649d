"""Data that an export keeps on this machine for a moment: an answer until it is known to be whole, a part to be read,
and the rows of windows that wait for their turn in the merged file.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO

from svcctl.errors import IncompleteResult, reason
from svcctl.storage import Sink

MEMORY_BYTES = 1 << 20
"""The most bytes that a spool holds in memory; a longer one is a file."""
PIECE_BYTES = 1 << 18


def held_bytes(workers: int) -> int:
    """The most bytes of windows that wait in memory for their turn in the merged file; more windows go to parts.

    Each worker needs memory of its own, so few workers may hold more: their requests can then be larger, and fewer.
    """
    return (120 - 9 * min(workers, 8)) << 20


class Unstored(IncompleteResult):
    """This machine cannot store any more, so another attempt would fail too."""


class Memory:
    """The bytes that all windows of a run may hold together. Any thread may call its methods.

    Thanks to it, rows that arrive nearly in order are written only once, and not to a part first.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Reserve memory for more bytes; returns whether there was room."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        with self._lock:
            self._left += size


class Stored(Sink):
    """A part being written: hashed, and kept in memory while there is room. `create` begins it in the storage."""

    def __init__(self, create: Callable[[], Sink], memory: Memory | None) -> None:
        self._create = create
        self._memory = memory
        self._held: list[bytes] = []
        self._size = 0
        self._sink = None if memory is not None else create()
        self._digest = hashlib.sha256()
        self.complete_in_memory = False
        """Whether the part is whole and nothing of it is in the storage."""

    @property
    def sha256(self) -> str:
        """The hash of what was written."""
        return self._digest.hexdigest()

    def write(self, data: bytes | memoryview, /) -> None:
        self._digest.update(data)
        if self._sink is None:
            assert self._memory is not None
            if self._memory.take(len(data)):
                self._held.append(bytes(data))
                self._size += len(data)
                return
            self._spill()
        assert self._sink is not None
        self._sink.write(data)

    def complete(self) -> None:
        if self._sink is not None:
            self._sink.complete()
        self.complete_in_memory = self._sink is None

    def abandon(self) -> None:
        if self._sink is not None:
            self._sink.abandon()
        if not self.complete_in_memory:
            self._let_go()

    def pieces(self) -> Iterator[bytes]:
        """The bytes of a part in memory, which are forgotten when all have been read."""
        yield from self._held
        self._let_go()

    def store(self) -> None:
        """Write a part in memory to the storage."""
        try:
            self._spill()
            assert self._sink is not None
            self._sink.complete()
        finally:
            if self._sink is not None:
                self._sink.abandon()

    def _spill(self) -> None:
        self._sink = self._create()
        try:
            for piece in self._held:
                self._sink.write(piece)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._memory is not None:
            self._memory.give_back(self._size)
        self._held, self._size = [], 0


class Spool:
    """A temporary file that is written, read once and then gone. Close it, or use it in `with`."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  `close` closes it

    def write(self, data: bytes | memoryview, /) -> None:
        try:
            self.file.write(data)
        except OSError as error:
            raise Unstored(
                f"cannot write to the temporary directory {tempfile.gettempdir()}: {reason(error)}",
                hint="make room there, or set TMPDIR to another directory",
            ) from None

    def pieces(self) -> Iterator[bytes]:
        """What was written, from the beginning; closes the spool."""
        with self:
            self.file.seek(0)
            while piece := self.file.read(PIECE_BYTES):
                yield piece

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
