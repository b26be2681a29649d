"""A client's connection to the service, with limits for requests that are not authenticated yet.

The HTTP connections of uvicorn have no limits of size and time. Without such limits, anybody who can connect could fill
the service's memory and use up its file descriptors. If the head of a request is too large, or the request takes too
long, the client gets an error, and the connection is closed. The module `body` limits the size of bodies. An idle
connection is closed without an answer.

A client may send several requests without waiting for the answers. Each request is parsed only after the previous
request was answered.

The connection always uses HTTP/1.x. The header `Upgrade` is ignored, as HTTP allows. Clients of HTTP/1.0 get answers
without chunks.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, NoReturn

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
"""The maximum number of bytes in the path, the headers and the trailers of a request, added together."""
MAX_HEADERS = 100
"""The maximum number of headers and trailers of a request, added together."""
PIECE_BYTES = 2048
"""The maximum number of bytes that are parsed at once.

Before each piece is parsed, the service checks whether a request on the connection still waits for its answer.
"""
CLOSING_SECONDS = 2.0
"""The number of seconds that a refused client has to read the answer before its connection is closed."""
MAX_IGNORED_BYTES = 2**20
"""The maximum number of bytes that a refused client may send. After more bytes, the connection is closed at once."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits for the connections of a service."""

    connections: int = CONNECTIONS.default_value
    """The maximum number of open connections.

    If one more client connects, the service closes the connection that has waited longest for a complete request.
    """
    idle_seconds: float = 60.0
    """The maximum number of seconds that a connection stays open without a request."""
    request_seconds: float = 30.0
    """The maximum number of seconds from the first byte of a request's head to the last byte of its body."""


class ServerConnection(HttpToolsProtocol):
    """An HTTP connection of uvicorn, with limits. The method `limited` returns the class that is passed to uvicorn."""

    limits: ClassVar[Limits] = Limits()

    @classmethod
    def limited(cls, limits: Limits) -> type[ServerConnection]:
        return type(cls.__name__, (cls,), {"limits": limits})

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.logger = _log
        self._application = self.app
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since = time.monotonic()
        self._unread = bytearray()
        """The bytes that have arrived and are not parsed yet."""
        self._arriving = False
        self._current: RequestResponseCycle | None = None
        """The request whose head has arrived and whose body is not complete. It is None if there is no such request."""
        self._in_fields = False
        """Whether the next bytes may belong to a head or to trailers.

        The parser does not limit the length of heads and trailers, so the connection counts these bytes.
        """
        self._head_bytes = self._held_bytes = self._headers = 0
        self._upgrades = False
        """Whether the current request asks for another protocol. The parser stops after the head of such a request."""
        self._answers_due = 0
        """The number of requests that were passed to the application and are not answered yet."""
        self._refusal: EarlyRefusal | None = None
        """The refusal that ends this connection. It is None until a request is refused."""
        self._refused = False
        self._ignored_bytes = 0

    # Callbacks of uvicorn

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle()
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._refusal is None:
            self._unread += data
            self._parse_unread()
            return
        self._ignored_bytes += len(data)
        if self._ignored_bytes > MAX_IGNORED_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_fields = self._arriving = True
        self._current = None
        self._head_bytes = self._held_bytes = self._headers = 0
        self._start_timer(self.limits.request_seconds, self._too_slow)

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        self._count(len(name) + len(value))
        if self._current is None:  # trailers are ignored, because they must not count as headers
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_fields = False
        if self.parser.get_method() == b"CONNECT":
            self._give_up(501, "the service is not a proxy: CONNECT is not supported")
        version = self.parser.get_http_version()
        if fault := _fault(self.headers, version):
            self._give_up(400, fault)
        self._upgrades = self.parser.should_upgrade()
        if self._upgrades:
            return
        self.app = self._application
        if version != "1.1":
            self.expect_100_continue = False
            self.app = unchunked = Unchunked(self._application)
        super().on_headers_complete()
        self._current = self.cycle
        self._answers_due += 1
        if version != "1.1":
            unchunked.cycle = self.cycle  # the task of the cycle has not begun yet

    def on_chunk_header(self) -> None:
        self._in_fields = True  # this may be the last chunk, and trailers may follow

    def on_body(self, body: bytes) -> None:
        self._in_fields = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_fields = False
        if self._upgrades:
            return
        super().on_message_complete()
        self._arriving = False
        self._current = None
        self._stop_timer()
        if self.cycle.response_complete:
            self._idle()

    def on_response_complete(self) -> None:
        self._answers_due -= 1
        super().on_response_complete()
        self._unset_keepalive_if_required()
        if self._refusal is not None:
            self._answer_refusal()
            return
        if not self._arriving and self.cycle.response_complete:
            self._idle()
        self._parse_unread()

    # Parsing

    def _parse_unread(self) -> None:
        """Parse the bytes that have arrived. A request is parsed only after the previous request was answered.

        The bytes are parsed in small pieces. A large piece could hold many requests, and parsed requests take far more
        memory than their bytes.
        """
        while self._unread and self._waits and self._refusal is None and not self.transport.is_closing():
            piece = bytes(self._unread[:PIECE_BYTES])
            del self._unread[:PIECE_BYTES]
            in_fields, head_bytes = self._in_fields, self._head_bytes
            try:
                self._parse(piece)
            except httptools.HttpParserError as error:
                self._refuse(_not_http(error))
            if in_fields and self._in_fields and head_bytes == self._head_bytes:
                self._held_bytes += len(piece)  # a part of a field
                if head_bytes + self._held_bytes > MAX_HEAD_BYTES:
                    self._refuse(self._too_large())
            else:
                self._held_bytes = 0
        if len(self._unread) > MAX_HEAD_BYTES:
            self.flow.pause_reading()

    def _parse(self, data: bytes) -> None:
        """Pass bytes to the parser. Raises HttpParserError if the bytes are not a part of an HTTP request.

        If a request has the header `Upgrade`, the parser stops after the head. Then a new parser gets the head without
        this header, followed by the remaining bytes.
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
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # like uvicorn's parser
            self.parser.feed_data(b"\r\n".join([*head, b"", b""]))

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._headers > MAX_HEADERS:
            self._give_up(431, f"the request has more than {MAX_HEADERS} headers")
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(self._too_large())
            raise ValueError

    def _too_large(self) -> EarlyRefusal:
        fields = (
            "the head of the request is" if self._current is None else "the head and the trailers of the request are"
        )
        return EarlyRefusal(431, f"{fields} larger than {size_text(MAX_HEAD_BYTES)}")

    def _give_up(self, status: int, message: str) -> NoReturn:
        """Refuse the request that is being parsed. Always raises ValueError, so that the parser stops."""
        self._refuse(EarlyRefusal(status, message))
        raise ValueError(message)  # ends the parsing with an HttpParserError

    # Limits

    @property
    def _waits(self) -> bool:
        """Whether the connection waits for bytes from the client. It is false while the client waits for an answer."""
        return self._arriving or self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        others = [other for other in self.connections if isinstance(other, ServerConnection) and other is not self]
        waiting = [other for other in others if other._waits and not other.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda other: other._waiting_since).transport.abort()
        else:
            self._stop_timer()
            self._refusal = EarlyRefusal(503, f"all {self.limits.connections} connections are in use")
            self.transport.write(self._refusal.answer(self.url.decode("latin-1").partition("?")[0]))
            self.transport.close()

    def _idle(self) -> None:
        # time.monotonic(), since the event loop's clock may show the same millisecond for several idle connections.
        self._waiting_since = time.monotonic()
        self._start_timer(self.limits.idle_seconds, self.transport.close)

    def _too_slow(self) -> None:
        self._refuse(EarlyRefusal(408, f"the request did not arrive within {length_text(self.limits.request_seconds)}"))

    def _start_timer(self, seconds: float, work: Any) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, work)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Refusals

    def _refuse(self, refusal: EarlyRefusal) -> None:
        """Refuse the request that is arriving, and end the connection after the answers to earlier requests."""
        if self._refusal is not None or self.transport.is_closing():
            return
        self._stop_timer()
        self._refusal = refusal
        self._unread.clear()
        if (current := self._current) is not None:
            if current.response_complete:  # the application answered the request before reading its body
                self.transport.close()
                return
            if current.response_started:
                self.transport.abort()
                return
            if self.pipeline and self.pipeline[0][0] is current:
                self.pipeline.popleft()
            current.disconnected = True
            current.message_event.set()
            self._answers_due -= 1
        self._answer_refusal()

    def _answer_refusal(self) -> None:
        """Send the refusal if all earlier requests are answered. Close the connection CLOSING_SECONDS later.

        If the connection were closed at once, the client could lose the answer.
        """
        if self._refusal is None or self._refused or self._answers_due or self.transport.is_closing():
            return
        self._refused = True
        self.flow.resume_reading()
        self.transport.write(self._refusal.answer(self.url.decode("latin-1").partition("?")[0]))
        self.transport.write_eof()
        self._start_timer(CLOSING_SECONDS, self.transport.abort)


@dataclass(frozen=True, slots=True)
class EarlyRefusal:
    """An error that the connection itself sends to a client. The application does not answer the refused request."""

    status: int
    message: str

    def answer(self, path: str) -> bytes:
        """Return the bytes of the answer to a request for `path`: the head and the body."""
        cid = secrets.token_hex(6)
        body = encoded(error_content(path, cid, time.time(), ServiceError(self.message, code=self.status)))
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
            *map(": ".join, common_headers(cid).items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


def _not_http(error: httptools.HttpParserError) -> EarlyRefusal:
    """Return the refusal of a request that the parser cannot read."""
    reason = "" if isinstance(error, httptools.HttpParserCallbackError) else f": {error}"
    return EarlyRefusal(400, f"the request is not HTTP/1.1{reason}")


def _fault(headers: Sequence[tuple[bytes, bytes]], version: str) -> str | None:
    """Return a message about a dangerous fault in a request's headers. Return None if there is no such fault.

    A fault is dangerous if a proxy and the service could disagree about the end of the request or about its host.
    """
    codings, lengths, hosts = (
        [value for name, value in headers if name == header]
        for header in (b"transfer-encoding", b"content-length", b"host")
    )
    if codings and version != "1.1":
        return f"a request of HTTP/{version} cannot have a Transfer-Encoding"
    if codings and [coding.strip().lower() for coding in codings] != [b"chunked"]:
        return "the only supported Transfer-Encoding is chunked"
    if codings and lengths:
        return "the request has Content-Length and Transfer-Encoding"
    if len(lengths) > 1:
        return "the request has several Content-Length headers"
    if len(hosts) > 1:
        return "the request has several Host headers"
    if not hosts and version == "1.1":
        return "the request has no Host header"
    return None


class Unchunked:
    """An ASGI application that sends its answers without chunks, for clients that cannot read chunks.

    For such a client, the end of the connection marks the end of the answer. If an answer fails after its head was
    sent, the connection is reset, so that the client notices the failure.
    """

    cycle: RequestResponseCycle
    """uvicorn's object for the current request and its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_length = False

        async def unchunked(message: Message) -> None:
            nonlocal has_length
            if message["type"] == "http.response.start":
                has_length = any(name.lower() == b"content-length" for name, _ in message["headers"])
            if not has_length:  # let uvicorn treat each piece of the body as a body of known length
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
    """Close a connection with a reset, so that the client notices the failure.

    A Unix socket cannot be reset, so it is closed normally.
    """
    at_once = struct.pack("ii", 1, 0)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    transport.abort()


async def left(request: Request) -> None:
    """Wait until the client of a request disconnects or the answer is complete."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


_log = logging.getLogger("svcctl.service.connection")
_log.setLevel(logging.ERROR)  # a warning for each malformed request would let anybody fill the disk
