"""One connection of a client: how much it may send before it is authenticated, and how long it may take.

uvicorn's protocol has no such limits, so anybody who can connect could fill its memory and use up its descriptors. A
request that exceeds a limit is answered by an error envelope, and the connection is closed; a connection without a
request is just closed. A body that is too large is refused where it is read.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

from starlette.requests import Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from svcctl.dates.lengths import length_text
from svcctl.errors import ServiceError
from svcctl.service.http.envelope import encoded, error_envelope
from svcctl.service.settings import CONNECTIONS
from svcctl.words import size_text

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that a service may choose."""

    connections: int = CONNECTIONS.read({})
    """The most open connections. One more closes the connection that has been without a request the longest."""
    idle_seconds: float = 60.0
    """How long a connection may be without a request."""
    request_seconds: float = 30.0
    """How long a request may take to arrive, from the first byte of its head to the last of its body."""


class Connection(HttpToolsProtocol):
    """A connection with limits; `limited` makes the class that uvicorn uses."""

    limits: ClassVar[Limits] = Limits()

    @classmethod
    def limited(cls, limits: Limits) -> type[Connection]:
        return type(cls.__name__, (cls,), {"limits": limits})

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.logger = _log
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since = time.monotonic()
        self._in_head = False
        self._arriving = False
        self._head_bytes = 0
        self._too_large = ""

    # What uvicorn calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle()
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        continued = self._in_head
        super().data_received(data)
        if continued and self._in_head:  # the parser buffers a head of any length
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431, f"the head of the request is larger than {size_text(MAX_HEAD_BYTES)}")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._arriving = True
        self._head_bytes = 0
        self._start_timer(self.limits.request_seconds, self._too_slow)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.headers) > MAX_HEADERS:
            self._too_large = f"the request has more than {MAX_HEADERS} headers"
        elif len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._too_large = f"the head of the request is larger than {size_text(MAX_HEAD_BYTES)}"
        if self._too_large:
            raise ValueError(self._too_large)  # ends the parsing; uvicorn then calls send_400_response
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._arriving = False
        self._stop_timer()
        if self.cycle.response_complete:
            self._idle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unset_keepalive_if_required()
        if not self._arriving and self.cycle.response_complete:
            self._idle()

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            self._refuse(431, self._too_large)
        else:
            self._refuse(400, "the request is not HTTP/1.1")

    # Limits

    @property
    def _waits(self) -> bool:
        """Whether the service waits for the client, not the client for the service."""
        return self._arriving or self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        others = [other for other in self.connections if isinstance(other, Connection) and other is not self]
        waiting = [other for other in others if other._waits and not other.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda other: other._waiting_since).transport.abort()
        else:
            self._refuse(503, f"all {self.limits.connections} connections are in use")

    def _idle(self) -> None:
        # Not the loop's clock, which counts in milliseconds: several connections become idle within one.
        self._waiting_since = time.monotonic()
        self._start_timer(self.limits.idle_seconds, self.transport.close)

    def _too_slow(self) -> None:
        if self.cycle is not None and self.cycle.response_complete:
            self.transport.close()  # the rest of a request that was already refused
        else:
            self._refuse(408, f"the request did not arrive within {length_text(self.limits.request_seconds)}")

    def _start_timer(self, seconds: float, work: Any) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, work)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, message: str) -> None:
        """Answer a request that the application has not received, at least not all of it, and close the connection."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        cid = secrets.token_hex(6)
        body = encoded(error_envelope(cid, time.time(), ServiceError(message, code=status)))
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\nx-svc-cid: {cid}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


async def left(request: Request) -> None:
    """Return when the client of a request leaves, or has its answer."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


_log = logging.getLogger("svcctl.service.connection")
_log.setLevel(logging.ERROR)  # a warning for each malformed request would let anybody fill the disk
