"""One connection of a client: how much it may send before it is authenticated, how long it may take, and which HTTP.

uvicorn's protocol has no such limits, so anybody who can connect could fill its memory and use up its descriptors. A
request that exceeds a limit is answered by an error envelope, and the connection is closed; a connection without a
request is just closed. A body that is too large is refused where it is read. Requests that follow before the answer
wait as bytes.

The connection stays HTTP/1.1: an `Upgrade` is ignored, as HTTP allows. Clients of HTTP/1.0 get answers without chunks.
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
"""The path, the headers and the trailers of a request together."""
MAX_HEADERS = 100

"""Headers and trailers together."""
PIECE_BYTES = 2048
"""The most that is parsed before the service looks whether a request is waiting for its answer."""
CLOSING_SECONDS = 2.0
"""How long a refused client may go on sending while it reads the refusal."""
MAX_IGNORED_BYTES = 2**20
"""How much of it is ignored before the connection is closed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that a service may choose."""

    connections: int = CONNECTIONS.default_value
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
        self._application = self.app
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since = time.monotonic()
        self._unread = bytearray()
        """Bytes that have arrived and are not parsed yet."""
        self._arriving = False
        self._current: RequestResponseCycle | None = None
        """The request of which the head was read and the end was not."""
        self._in_fields = False
        """Whether the parser may be in a head or in trailers, where it buffers a field of any length."""
        self._head_bytes = self._held_bytes = self._headers = 0
        self._upgrades = False
        """Whether the request asks for another protocol, so that the parser takes its body for that protocol."""
        self._answers_due = 0
        """How many requests were passed on and are not answered yet."""
        self._refusal: Refusal | None = None
        """The last answer of this connection; nothing is parsed after it."""
        self._refused = False
        self._ignored_bytes = 0

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
        if self._current is None:  # trailers are ignored: they must not pass for headers
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
            unchunked.cycle = self.cycle  # its task has not begun

    def on_chunk_header(self) -> None:
        self._in_fields = True  # of the last chunk, which the parser does not tell from others

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
        """Parse what has arrived, but no request before the one in front of it is answered.

        A piece may hold several requests, so it is small. Each of them takes far more memory than its bytes.
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
        """Feed the parser. HttpParserError for what is not a request.

        The parser stops after the head of a request with an `Upgrade`. Another parser then gets the same head without
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

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._headers > MAX_HEADERS:
            self._give_up(431, f"the request has more than {MAX_HEADERS} headers")
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(self._too_large())
            raise ValueError

    def _too_large(self) -> Refusal:
        fields = (
            "the head of the request is" if self._current is None else "the head and the trailers of the request are"
        )
        return Refusal(431, f"{fields} larger than {size_text(MAX_HEAD_BYTES)}")

    def _give_up(self, status: int, message: str) -> NoReturn:
        """Refuse the request from within a callback of the parser."""
        self._refuse(Refusal(status, message))
        raise ValueError(message)  # ends the parsing with an HttpParserError

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
            self._stop_timer()
            self._refusal = Refusal(503, f"all {self.limits.connections} connections are in use")
            self.transport.write(self._refusal.answer(self.url.decode("latin-1").partition("?")[0]))
            self.transport.close()

    def _idle(self) -> None:
        # Not the loop's clock, which counts in milliseconds: several connections become idle within one.
        self._waiting_since = time.monotonic()
        self._start_timer(self.limits.idle_seconds, self.transport.close)

    def _too_slow(self) -> None:
        self._refuse(Refusal(408, f"the request did not arrive within {length_text(self.limits.request_seconds)}"))

    def _start_timer(self, seconds: float, work: Any) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, work)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Refusals

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse the request that is arriving, and end the connection, after the answers to earlier requests.

        The application has not received the request, at least not all of it.
        """
        if self._refusal is not None or self.transport.is_closing():
            return
        self._stop_timer()
        self._refusal = refusal
        self._unread.clear()
        if (current := self._current) is not None:
            if current.response_complete:  # it was refused before its body was read
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
        """Send the refusal if no other answer is due, and close the connection when the client has had time to read it.

        A connection that is closed while bytes still arrive is reset, and the client may lose the answer.
        """
        if self._refusal is None or self._refused or self._answers_due or self.transport.is_closing():
            return
        self._refused = True
        self.flow.resume_reading()
        self.transport.write(self._refusal.answer(self.url.decode("latin-1").partition("?")[0]))
        self.transport.write_eof()
        self._start_timer(CLOSING_SECONDS, self.transport.abort)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request that never reaches the application."""

    status: int
    message: str

    def answer(self, path: str) -> bytes:
        """The whole answer to a request of this path."""
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


def _not_http(error: httptools.HttpParserError) -> Refusal:
    """The refusal of what the parser cannot read, with its reason."""
    reason = "" if isinstance(error, httptools.HttpParserCallbackError) else f": {error}"
    return Refusal(400, f"the request is not HTTP/1.1{reason}")


def _fault(headers: Sequence[tuple[bytes, bytes]], version: str) -> str | None:
    """Say why a proxy could take the end or the host of a request for another one; None if it could not."""
    codings, lengths, hosts = (
        [value for name, value in headers if name == wanted]
        for wanted in (b"transfer-encoding", b"content-length", b"host")
    )
    if codings and version != "1.1":
        return f"a request of HTTP/{version} has no Transfer-Encoding"
    if codings and [coding.strip().lower() for coding in codings] != [b"chunked"]:
        return "Transfer-Encoding is not chunked, the only one that is supported"
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
