"""One connection of the client. It sends a request, and reads the answer in blocks.

A block contains all bytes that have arrived. A read never waits until a block is full. While an answer is read, the
socket is non-blocking.
"""

from __future__ import annotations

import math
import re
import select
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from svcctl.api.wire.bodies import Framing
from svcctl.api.wire.failures import ReadError, ReadTimeout, RemoteProtocolError, WriteTimeout
from svcctl.api.wire.heads import MAX_HEAD, Head, read_head
from svcctl.errors import ReaderClosed
from svcctl.words import size_text

if TYPE_CHECKING:
    from svcctl.api.wire.layered_tls import LayeredTLS

RECEIVED_BYTES = 256 * 1024
"""The maximum number of bytes of an answer that are received at once."""
LEFTOVER_BYTES = 128 * 1024
"""The number of bytes that are reserved before each block for the unparsed rest of the previous block.

This number must be larger than the maximum size of a head or of trailers.
"""
PARSED_BYTES = 128 * 1024
"""The number of bytes of a body that are parsed at once.

This number must be larger than the maximum size of trailers. It is smaller than the cache of a processor core.
"""
SIGNAL_SECONDS = 0.5
"""The maximum number of seconds that Python does not notice a signal while an answer is awaited.

The system call of a wait is not interrupted by a signal that comes just before the call, or that the system delivers
to another thread. So a wait consists of several short calls.
"""

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MAX_INTERIM = 100


class Connection:
    """A connection to one origin (scheme, host and port). It carries one answer at a time.

    After `idle` seconds without use, the connection is not used again.
    """

    def __init__(self, connected: socket.socket | LayeredTLS, idle: float = 0.0) -> None:
        self._socket = connected
        self._secure = hasattr(connected, "pending")
        self._reads, self._writes = _waits(self._secure)
        self._poll = select.poll()
        self._box = bytearray(LEFTOVER_BYTES + RECEIVED_BYTES)
        self._start = self._end = LEFTOVER_BYTES
        self._broken: OSError | None = None
        self._reader: int | None = None
        self._over = False
        self._idle = idle
        self._idle_since = 0.0

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes, timeout: float | None, reader: int | None = None) -> None:
        """Send a request. If the peer stops reading, no error is raised, because the peer may already have answered.

        `reader` is a pipe. While the answer is read, ReaderClosed is raised as soon as no process reads this pipe any
        more.
        """
        self._socket.settimeout(timeout)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise WriteTimeout("the request could not be sent in time") from None
        except OSError:
            pass
        self._socket.setblocking(False)
        self._poll.register(self._socket, select.POLLIN)
        self._reader = reader
        if reader is not None:
            self._poll.register(reader, 0)  # even with the mask 0, poll reports errors of the pipe

    def head(self, seconds: float | None) -> Head:
        """Read the head of the answer within `seconds`.

        Interim answers (HTTP 1xx) are dropped. The time limit begins again after each interim answer.
        """
        for _ in range(_MAX_INTERIM):
            head = read_head(self._head_bytes(None if seconds is None else time.monotonic() + seconds))
            if head.status >= 200:
                return head
            if head.status == 101:
                break
        raise RemoteProtocolError("it answers with interim answers only")

    def body(self, framing: Framing, seconds: float | None, first: float | None) -> Iterator[bytes]:
        """Read the body in blocks.

        The wait for the first bytes takes at most `first` seconds. Each later wait takes at most `seconds`.
        """
        wait = first
        while True:
            stop = min(self._end, self._start + PARSED_BYTES)
            data, self._start = framing.take(self._box, self._start, stop)
            if data:
                wait = seconds
                yield data
            if framing.ended:
                return
            if stop < self._end:
                continue
            if not self._fill(wait):
                framing.closed()
                return

    def wait_for_end(self, seconds: float) -> None:
        """Wait until the peer closes the connection, and drop all bytes until then.

        Raises ReadTimeout if the peer does not close the connection in time. Raises ReadError if the connection is not
        closed properly.
        """
        deadline = time.monotonic() + seconds
        while self._fill(deadline - time.monotonic()):
            self._start = self._end

    def leave(self, lasting: bool) -> bool:
        """Finish an answer that was read to its end.

        Returns whether the connection can be kept for another request. `lasting` says whether the head of the answer
        allows another request.
        """
        self._idle_since = time.monotonic()
        if self._reader is not None:
            self._poll.unregister(self._reader)
        silent = self._start == self._end
        return lasting and silent and not self._over and self._broken is None

    @property
    def is_usable(self) -> bool:
        """Whether the connection can be used for another request.

        The result is True if the connection was idle for less than `idle` seconds, and the peer has neither sent bytes
        nor closed the connection.
        """
        return time.monotonic() - self._idle_since < self._idle and not self._poll.poll(0)

    def _head_bytes(self, deadline: float | None) -> bytes:
        while not (end := _HEAD_END.search(self._box, self._start, self._end)):
            if self._end - self._start > MAX_HEAD:
                raise RemoteProtocolError(f"the head of its answer is longer than {size_text(MAX_HEAD)}")
            begun = self._start < self._end
            if not self._fill(None if deadline is None else deadline - time.monotonic()):
                if begun:
                    raise RemoteProtocolError("it closed the connection in the middle of the head of its answer")
                raise ReadError("it closed the connection without an answer")
        data = bytes(self._box[self._start : end.end()])
        self._start = end.end()
        return data

    def _fill(self, seconds: float | None) -> bool:
        """Wait for bytes, and receive all bytes that have arrived. Returns False if the connection has ended."""
        rest = self._box[self._start : self._end]
        size = self._receive(seconds)
        self._start, self._end = LEFTOVER_BYTES - len(rest), LEFTOVER_BYTES + size
        self._box[self._start : LEFTOVER_BYTES] = rest
        return size > 0

    def _receive(self, seconds: float | None) -> int:
        """Wait for bytes, write all bytes that have arrived into the buffer, and return their number.

        The bytes are written after the first LEFTOVER_BYTES bytes of the buffer. The number is 0 at the end of the
        connection. If the connection fails after some bytes have arrived, the next call raises the error.
        """
        view = memoryview(self._box)
        end = LEFTOVER_BYTES
        while end < len(view) and not self._over and self._broken is None:
            try:
                size = self._socket.recv_into(view[end:])
            except self._reads:
                if end > LEFTOVER_BYTES:
                    break
                self._wait(select.POLLIN, seconds)
            except self._writes:
                self._wait(select.POLLOUT, seconds)
            except OSError as error:
                self._broken = error
            else:
                self._over = size == 0
                end += size
                if not self._secure:
                    break  # a plain socket delivers all bytes at once, but TLS only one record per read
        if end == LEFTOVER_BYTES and self._broken is not None:
            raise ReadError(str(self._broken)) from self._broken
        return end - LEFTOVER_BYTES

    def _wait(self, for_what: int, seconds: float | None) -> None:
        self._poll.modify(self._socket, for_what)
        came: list[int] = []
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not came and (left := deadline - time.monotonic()) > 0:
            part = min(left, SIGNAL_SECONDS)
            came = [number for number, _ in self._poll.poll(max(1, round(part * 1000)))]
        if not came:
            raise ReadTimeout("nothing came in time")
        if self._reader in came:
            raise ReaderClosed


def _waits(secure: bool) -> tuple[tuple[type[OSError], ...], tuple[type[OSError], ...]]:
    """Return the exceptions of a socket that is not readable yet, and those of a socket that is not writable yet."""
    if not secure:
        return (BlockingIOError,), ()
    from ssl import SSLWantReadError, SSLWantWriteError

    return (SSLWantReadError,), (SSLWantWriteError,)
