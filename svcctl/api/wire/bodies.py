"""The three framings of an answer's body. A framing is the way in which HTTP shows where a body ends.

The end is shown by the last chunk, by a length, or by the end of the connection. The bytes of the connection are in a
buffer, which the code calls the box. A framing takes the body out of the box. The box may contain hundreds of chunks,
and their contents are joined in one step.
"""

from __future__ import annotations

import re
from typing import Protocol

from svcctl.api.wire.failures import RemoteProtocolError

MAX_LINE = 4096
"""The maximum length, in bytes, of the line that states the size of a chunk."""
CUT = "the connection closed in the middle of the answer"

_CHUNK_SIZE = rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r\n"
_FIRST_CHUNK = re.compile(_CHUNK_SIZE)
_NEXT = re.compile(rb"\r\n" + _CHUNK_SIZE)
_TRAILER = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\r\n\x00]*\r\n)*\r\n")


class Framing(Protocol):
    """An object that takes a body out of the bytes of a connection, and finds the end of the body."""

    ended: bool

    def take(self, box: bytearray, start: int, end: int) -> tuple[bytes, int]:
        """Return the part of the body that arrived in `box[start:end]`, and the index at which the next call starts.

        `box` is the buffer of the connection. Between parts of a body, the buffer can also contain the sizes of chunks.
        """
        ...

    def closed(self) -> None:
        """Note that the connection has ended. Raises RemoteProtocolError if the body is not complete."""
        ...


class Length:
    """A body with a known length in bytes."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.ended = size == 0

    def take(self, box: bytearray, start: int, end: int) -> tuple[bytes, int]:
        stop = min(end, start + self._left)
        self._left -= stop - start
        self.ended = self._left == 0
        return bytes(memoryview(box)[start:stop]), stop

    def closed(self) -> None:
        raise RemoteProtocolError(CUT)


class UntilClose:
    """A body that ends with the connection."""

    ended = False

    def take(self, box: bytearray, start: int, end: int) -> tuple[bytes, int]:
        return bytes(memoryview(box)[start:end]), end

    def closed(self) -> None:
        self.ended = True


class Chunked:
    """A body in chunks. A line before each chunk states the size of the chunk.

    Trailers, which are headers after the body, are dropped. The trailers may have at most `max_trailer` bytes.
    """

    def __init__(self, max_trailer: int) -> None:
        self._max_trailer = max_trailer
        self._left = 0
        self._line = _FIRST_CHUNK
        self._last = False
        self.ended = False

    def take(self, box: bytearray, start: int, end: int) -> tuple[bytes, int]:
        view = memoryview(box)
        pieces: list[memoryview] = []
        at = start
        while at < end and not self._last:
            if self._left:
                stop = min(end, at + self._left)
                pieces.append(view[at:stop])
                self._left -= stop - at
                at = stop
                continue
            line = self._line.match(box, at, end)
            if line is None:
                self._refuse_bad_line(box, at, end)
                break
            border = line[0] if self._line is _NEXT else b"\r\n" + line[0]
            at = line.end()
            self._line = _NEXT
            self._left = int(line[1], 16)
            self._last = self._left == 0
            step = len(border) + self._left
            # Take this chunk, and the complete chunks after it that have the same line before them.
            while at + step <= end and not self._last and box.startswith(border, at + self._left):
                pieces.append(view[at : at + self._left])
                at += step
        if self._last:
            at = self._end(box, at, end)
        return b"".join(pieces), at

    def closed(self) -> None:
        raise RemoteProtocolError(CUT)

    def _refuse_bad_line(self, box: bytearray, at: int, end: int) -> None:
        """Raise RemoteProtocolError if `box[at:end]` is not the beginning of a line that states the size of a chunk."""
        lead = 0 if self._line is _FIRST_CHUNK else 2
        whole = box.find(b"\r\n", at + lead, end) >= 0
        if whole or end - at > MAX_LINE or not b"\r\n".startswith(bytes(box[at : at + lead])[: end - at]):
            raise RemoteProtocolError(f"its answer has the chunk size {bytes(box[at : min(end, at + 20)])!r}")

    def _end(self, box: bytearray, at: int, end: int) -> int:
        """Skip the trailers and the empty line after the last chunk, and return the index after them."""
        trailer = _TRAILER.match(box, at, end)
        if trailer is not None:
            self.ended = True
            return trailer.end()
        whole = box.find(b"\r\n\r\n", at, end) >= 0
        if whole or end - at > self._max_trailer:
            raise RemoteProtocolError("its answer has invalid trailers")
        return at
