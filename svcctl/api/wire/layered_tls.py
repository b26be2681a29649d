"""TLS with a service over a connection that is already encrypted, such as a connection to an https proxy.

The module uses an SSLObject, which encrypts in memory, because an SSLSocket cannot wrap another SSLSocket.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Self, TypeVar

_PIECE_BYTES = 16 * 1024
"""The maximum number of bytes that are received or encrypted at once."""

T = TypeVar("T")


class LayeredTLS:
    """A TLS connection inside another TLS connection. The outer connection is called the carrier.

    The class has the methods of an SSLSocket that svcctl uses. Reading raises SSLEOFError if the carrier ends before
    the inner connection has received the message close_notify.
    """

    def __init__(self, carrier: ssl.SSLSocket, trust: ssl.SSLContext, host: str) -> None:
        self._carrier = carrier
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trust.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._run(self._tls.do_handshake)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def recv_into(self, buffer: memoryview) -> int:
        return self._run(lambda: self._tls.read(len(buffer), buffer))  # type: ignore[return-value]

    def sendall(self, data: bytes) -> None:
        sent = 0
        while sent < len(data):
            sent += self._run(partial(self._tls.write, data[sent : sent + _PIECE_BYTES]))

    def pending(self) -> int:
        return self._tls.pending()

    def version(self) -> str | None:
        return self._tls.version()

    def getpeercert(self) -> Any:
        return self._tls.getpeercert()

    def settimeout(self, seconds: float | None) -> None:
        self._carrier.settimeout(seconds)

    def setblocking(self, flag: bool) -> None:
        self._carrier.setblocking(flag)

    def fileno(self) -> int:
        return self._carrier.fileno()

    def close(self) -> None:
        self._carrier.close()

    def _run(self, step: Callable[[], T]) -> T:
        """Repeat a TLS operation of the inner connection, such as a read, until the operation has a result.

        Between attempts, bytes are sent to the carrier and received from the carrier. If the carrier is non-blocking,
        the method may raise SSLWantReadError. The caller must then call the method again later.
        """
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._flush()
            else:
                self._flush()
                return result
            if data := self._carrier.recv(_PIECE_BYTES):
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self._carrier.sendall(data)
