"""What a client may do on a connection before it has said who it is: raw sockets on a real server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from svcctl.service.http.connection import Connection, Limits

Connect = Callable[[], socket.socket]
OK = b"HTTP/1.1 200 OK"
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body and answers with its length."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        more = message["more_body"]
    body = str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(**limits: Any) -> Iterator[Connect]:
    """A server with these limits, and what opens a connection to it."""
    with ExitStack() as closing:
        listener = socket.create_server(("127.0.0.1", 0))
        protocol = Connection.limited(Limits(**limits))
        config = uvicorn.Config(
            application, http=protocol, lifespan="off", log_config=None, access_log=False, ws="none"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        closing.callback(thread.join)
        closing.callback(setattr, server, "should_exit", True)

        def connect() -> socket.socket:
            return closing.enter_context(socket.create_connection(listener.getsockname(), timeout=20))

        yield connect


def answered(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    received = b""
    try:
        while block := connection.recv(1 << 16):
            received += block
    except ConnectionResetError:  # what was still on its way could not be delivered
        pass
    return received


def refusal(connection: socket.socket) -> tuple[int, str]:
    """Status and message of the refusal that ends a connection."""
    head, _, body = answered(connection).partition(b"\r\n\r\n")
    told = json.loads(body)
    status = int(head.split()[1])
    assert f"x-svc-cid: {told['cid']}".encode() in head
    assert told.keys() >= {"success", "msg", "status", "cid", "timestamp"}
    assert (told["success"], told["status"]) == (False, 1)
    return status, told["msg"]


def answer(connection: socket.socket) -> bytes:
    """The status line and the body of one answer, of less than ten bytes."""
    received = b""
    while b"\r\n\r\n" not in received or received.endswith(b"\r\n\r\n"):
        block = connection.recv(1 << 16)
        assert block, received
        received += block
    return received[: len(OK)] + b" " + received.rpartition(b"\r\n\r\n")[2]


LARGE_HEAD = (431, "the head of the request is larger than 66 kB")


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (b"GET / HTTP/1.1\r\n" + b"x: %b\r\n\r\n" % (b"a" * 65_536), LARGE_HEAD),
        (b"GET /%b HTTP/1.1\r\n\r\n" % (b"a" * 65_536), LARGE_HEAD),
        (b"GET / HTTP/1.1\r\n" + b"x: a\r\n" * 101 + b"\r\n", (431, "the request has more than 100 headers")),
        (b"what is this\r\n\r\n", (400, "the request is not HTTP/1.1")),
        (b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n", (400, "the request is not HTTP/1.1")),
        ("GET /é HTTP/1.1\r\n\r\n".encode(), (400, "the request is not HTTP/1.1")),
    ],
    ids=["header", "path", "headers", "words", "length", "bytes"],
)  # fmt: skip
def test_a_head_that_is_too_large_or_none_at_all_is_refused(request_: bytes, told: tuple[int, str]) -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(request_)
        assert refusal(connection) == told


def test_a_head_without_an_end_is_refused_while_it_is_sent() -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        sent = 0
        with pytest.raises(OSError, match=r"Broken pipe|reset by peer"):
            while sent < 200_000_000:
                sent += connection.send(b"a" * 65_536)
        assert sent < 20_000_000


def test_requests_within_the_limits_are_answered_on_one_connection() -> None:
    head = b"POST / HTTP/1.1\r\n" + b"x: %b\r\n" % (b"a" * 500) * 99
    with serving() as connect:
        connection = connect()
        for _ in range(3):
            connection.sendall(head + b"content-length: 300000\r\n\r\n" + b"b" * 300_000)
            assert answer(connection) == OK + b" 300000"
        connection.sendall(GET * 40 + b"GET / HTTP/1.0\r\n\r\n")
        assert answered(connection).count(OK) == 41


@pytest.mark.parametrize("piece", [b"x: y\r\n", b"POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n"])
def test_a_request_that_arrives_slowly_is_refused_although_it_goes_on(piece: bytes) -> None:
    with serving(request_seconds=0.3) as connect:
        connection = connect()
        connection.sendall(piece if piece.startswith(b"POST") else b"GET / HTTP/1.1\r\n" + piece)
        connection.settimeout(0.02)
        received = b""
        while not received:
            try:
                received = connection.recv(1 << 16)
            except TimeoutError:
                connection.sendall(b"a" if piece.startswith(b"POST") else piece)
        assert received.startswith(b"HTTP/1.1 408 Request Timeout")
        assert json.loads(received.rpartition(b"\r\n\r\n")[2])["msg"] == "the request did not arrive within 0.3s"


@pytest.mark.parametrize("before", [b"", GET, b"\r\n"], ids=["nothing", "request", "line"])
def test_a_connection_without_a_request_is_closed(before: bytes) -> None:
    with serving(idle_seconds=0.2) as connect:
        connection = connect()
        connection.sendall(before)
        assert answered(connection).count(OK) == (before == GET)


def test_a_new_connection_takes_the_place_of_the_one_that_was_idle_the_longest() -> None:
    with serving(connections=3) as connect:
        first, second, third = (connect() for _ in range(3))
        for used in (second, third, first):
            used.sendall(GET)
            assert answer(used) == OK + b" 0"
        fourth = connect()
        assert answered(second) == b""
        for living in (first, third, fourth):
            living.sendall(GET)
            assert answer(living) == OK + b" 0"


def test_slow_heads_do_not_keep_others_out() -> None:
    with serving(connections=5) as connect:
        slow = [connect() for _ in range(20)]
        for connection in slow:
            try:
                connection.sendall(b"GET / HTTP/1.1\r\nx: ")
            except OSError:
                continue
        honest = connect()
        honest.sendall(GET)
        assert answer(honest) == OK + b" 0"
