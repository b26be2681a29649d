"""One connection of a client: how much it may send before it is authenticated, how long it may take, and which HTTP.

uvicorn's protocol has no such limits, so anybody who can connect could fill its memory and use up its descriptors. A
request that exceeds a limit is answered by an error envelope, and the connection is closed; a connection without a
request is just closed. A body that is too large is refused where it is read.

The connection stays HTTP/1.1: an `Upgrade` is ignored, as HTTP allows. Clients of HTTP/1.0 get answers without chunks.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

import httptools
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from svcctl.dates.lengths import length_text
from svcctl.errors import ServiceError
from svcctl.service.http.envelope import common_headers, encoded, error_content
from svcctl.service.settings import CONNECTIONS
from svcctl.words import size_text

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100

NOT_HTTP = (400, "the request is not HTTP/1.1")
TUNNEL = (501, "the service is not a proxy: CONNECT is not supported")


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
        self._refusal = NOT_HTTP
        """Status and message for a request that the parser gives up."""
        self._upgrades = False
        """Whether the request asks for another protocol, so that the parser takes its body for that protocol."""
        self._application = self.app

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
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(*self._refusal)
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
            self._refusal = (431, f"the request has more than {MAX_HEADERS} headers")
        elif len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refusal = (431, f"the head of the request is larger than {size_text(MAX_HEAD_BYTES)}")
        elif self.parser.get_method() == b"CONNECT":
            self._refusal = TUNNEL
        if self._refusal is not NOT_HTTP:
            raise ValueError(self._refusal)  # ends the parsing with an HttpParserError
        self._upgrades = self.parser.should_upgrade()
        if self._upgrades:
            return
        if self.parser.get_http_version() == "1.1":
            self.app = self._application
            super().on_headers_complete()
            return
        self.expect_100_continue = False
        self.app = unchunked = Unchunked(self._application)
        super().on_headers_complete()
        unchunked.cycle = self.cycle  # its task has not begun

    def on_message_complete(self) -> None:
        if self._upgrades:
            return
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

    def _parse(self, data: bytes) -> None:
        """Feed the parser. HttpParserError for what is not a request.

        The parser stops behind the head of a request with an `Upgrade`. Another parser then gets the same head without
        it, and what follows.
        """
        rest = memoryview(data)
        while True:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as stop:
                rest = rest[stop.args[0] :]
            head = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
            head += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own one
            self.parser.feed_data(b"\r\n".join([*head, b"", b""]))

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
        path = self.url.decode("latin-1").partition("?")[0]
        body = encoded(error_content(path, cid, time.time(), ServiceError(message, code=status)))
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
            *map(": ".join, common_headers(cid).items()),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()


class Unchunked:
    """The application for a client that cannot read chunks: an answer without a length ends when the connection closes.

    An answer that fails after its head ends in a reset, since a closed connection would be its end.
    """

    cycle: RequestResponseCycle
    """uvicorn's part of the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_length = False

        async def unchunked(message: Message) -> None:
            nonlocal has_length
            if message["type"] == "http.response.start":
                has_length = any(name.lower() == b"content-length" for name, _ in message["headers"])
            if not has_length:  # uvicorn then takes each piece of the body for a body of known length
                self.cycle.chunked_encoding = False
                self.cycle.expected_content_length = len(message.get("body", b""))
                self.cycle.keep_alive = False
            await send(message)

        try:
            await self._app(scope, receive, unchunked)
        finally:
            if self.cycle.response_started and not self.cycle.response_complete:
                _reset(self.cycle.transport)


def _reset(transport: asyncio.Transport) -> None:
    """Close a connection so that its client notices; on a Unix socket, which knows no reset, it is just closed."""
    at_once = struct.pack("ii", 1, 0)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    transport.abort()


async def left(request: Request) -> None:
    """Return when the client of a request leaves, or has its answer."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


_log = logging.getLogger("svcctl.service.connection")
_log.setLevel(logging.ERROR)  # a warning for each malformed request would let anybody fill the disk
