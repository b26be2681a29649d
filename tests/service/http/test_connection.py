"""What a client may do on a connection before it has said who it is: raw sockets on a real server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import anyio
import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from support.waiting import eventually

from svcctl.service.http.connection import Limits, ServerConnection

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


async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers in three pieces, of which one is empty, without a length; below /fails it fails after the first one."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for piece in (b"first ", b"", b"second"):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        if scope["path"] == "/fails":
            raise RuntimeError
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def serving(app: ASGIApp = application, **limits: Any) -> Iterator[Connect]:
    """A server with these limits, and what opens a connection to it."""
    with ExitStack() as closing:
        listener = socket.create_server(("127.0.0.1", 0))
        protocol = ServerConnection.limited(Limits(**limits))
        config = uvicorn.Config(app, http=protocol, lifespan="off", log_config=None, access_log=False, ws="none")
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
    assert b"x-svc-errors: exact" in head
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
        (b"what is this\r\n\r\n", (400, "the request is not HTTP/1.1: Invalid method encountered")),
        ("GET /é HTTP/1.1\r\n\r\n".encode(), (400, "the request is not HTTP/1.1: Invalid char in url path")),
    ],
    ids=["header", "path", "headers", "words", "bytes"],
)  # fmt: skip
def test_a_head_that_is_too_large_or_none_at_all_is_refused(request_: bytes, told: tuple[int, str]) -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(request_)
        assert refusal(connection) == told


CODED = b"transfer-encoding: chunked"
BAD = "the request is not HTTP/1.1: "
CODING = "the only supported Transfer-Encoding is chunked"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (b"content-length: 3\r\n" + CODED, f"{BAD}Transfer-Encoding can't be present with Content-Length"),
        (CODED + b"\r\ncontent-length: 3", f"{BAD}Content-Length can't be present with Transfer-Encoding"),
        (b"content-length: 3\r\ncontent-length: 3", f"{BAD}Duplicate Content-Length"),
        (b"content-length: 3\r\nContent-Length: 4", f"{BAD}Duplicate Content-Length"),
        (b"content-length: 3, 3", f"{BAD}Invalid character in Content-Length"),
        (b"content-length: +3", f"{BAD}Invalid character in Content-Length"),
        (b"content-length: -3", f"{BAD}Invalid character in Content-Length"),
        (b"content-length: 0x3", f"{BAD}Invalid character in Content-Length"),
        (b"content-length: 3 3", f"{BAD}Invalid character in Content-Length"),
        (b"content-length:", f"{BAD}Empty Content-Length"),
        (b"content-length: 99999999999999999999", f"{BAD}Content-Length overflow"),
        (b"transfer-encoding: gzip, chunked", CODING),
        (b"transfer-encoding: gzip\r\ntransfer-encoding: chunked", CODING),
        (b"transfer-encoding: identity", CODING),
        (b"transfer-encoding: xchunked", CODING),
        (b"transfer-encoding: chunked;q=1", CODING),
        (b'transfer-encoding: "chunked"', CODING),
        (b"transfer-encoding: chunked, identity", f"{BAD}Invalid `Transfer-Encoding` header value"),
        (CODED + b"\r\n" + CODED, f"{BAD}Invalid `Transfer-Encoding` header value"),
        (b"transfer-encoding:", f"{BAD}Empty Transfer-Encoding"),
        (b"transfer-encoding : chunked", f"{BAD}Invalid header field char"),
        (b"transfer-encoding:\x0bchunked", f"{BAD}Invalid header value char"),
        (b"a: b\r\n folded", f"{BAD}Unexpected whitespace after header value"),
        (b"a: b\0c", f"{BAD}Invalid header value char"),
        (b"a\0: b", f"{BAD}Invalid header token"),
        (b"a: b\rc", f"{BAD}Missing expected LF after header value"),
        (b"a: b\nc: d", f"{BAD}Missing expected CR after header value"),
        (b"host: y", "the request has several Host headers"),
    ],
)  # fmt: skip
def test_a_head_that_others_could_read_otherwise_is_refused_and_the_connection_is_closed(
    headers: bytes, message: str
) -> None:
    with serving() as connect:
        for body in (b"0\r\n\r\n", b"a" * 500_000):
            connection = connect()
            connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\n" + headers + b"\r\n\r\n")
            connection.sendall(body)
            assert refusal(connection) == (400, message)


def test_the_host_is_required_by_http_1_1_and_chunks_are_refused_in_http_1_0() -> None:
    with serving() as connect:
        for request, message in (
            (b"GET / HTTP/1.1\r\n\r\n", "the request has no Host header"),
            (
                b"POST / HTTP/1.0\r\n" + CODED + b"\r\n\r\n0\r\n\r\n",
                "a request of HTTP/1.0 cannot have a Transfer-Encoding",
            ),
        ):  # fmt: skip
            connection = connect()
            connection.sendall(request)
            assert refusal(connection) == (400, message)
        connection = connect()
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert answered(connection).startswith(OK)


CHUNKED = b"POST / HTTP/1.1\r\nhost: x\r\n" + CODED + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"0x3\r\nabc\r\n", "Invalid character in chunk size"),
        (b"3 3\r\nabc\r\n", "Invalid character in chunk size"),
        (b"-3\r\nabc\r\n", "Invalid character in chunk size"),
        (b"fffffffffffffffff\r\nabc\r\n", "Chunk size overflow"),
        (b"3\r\nabcd\r\n", "Expected LF after chunk data"),
        (b"3\nabc\r\n", "Missing expected CR after chunk size"),
        (b"0\r\na b\r\n", "Invalid header token"),
    ],
)
def test_a_chunk_without_a_size_is_refused(body: bytes, reason: str) -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(CHUNKED + body)
        assert refusal(connection) == (400, BAD + reason)


def test_trailers_are_ignored_and_do_not_pass_for_headers() -> None:
    seen: list[list[tuple[bytes, bytes]]] = []

    async def recording(scope: Scope, receive: Receive, send: Send) -> None:
        await application(scope, receive, send)
        seen.append([*scope["headers"]])

    body = b"3;name=value\r\nabc\r\n0\r\nauthorization: Bearer x\r\nx-empty:\r\n\r\n"
    with serving(recording) as connect:
        for size in (1, 1000):
            connection = connect()
            for at in range(0, len(CHUNKED + body), size):
                connection.sendall((CHUNKED + body)[at : at + size])
            assert answer(connection) == OK + b" 3"
    assert seen == [[(b"host", b"x"), (b"transfer-encoding", b"chunked")]] * 2


def test_head_and_trailers_together_have_one_limit() -> None:
    head = CHUNKED[:-2] + b"x: %b\r\n\r\n" % (b"a" * 40_000)
    with serving() as connect:
        connection = connect()
        for _ in range(2):
            connection.sendall(head + b"3\r\nabc\r\n0\r\nx: %b\r\n\r\n" % (b"a" * 20_000))
            assert answer(connection) == OK + b" 3"
        connection.sendall(head + b"3\r\nabc\r\n0\r\nx: %b\r\n\r\n" % (b"a" * 30_000))
        assert refusal(connection) == (431, "the head and the trailers of the request are larger than 66 kB")
        connection = connect()
        connection.sendall(CHUNKED + b"0\r\n" + b"a: b\r\n" * 99 + b"\r\n")
        assert refusal(connection) == (431, "the request has more than 100 headers")


@pytest.mark.parametrize("piece", [b"a: b\r\n" * 8000, b"a" * 65_536, b"\r\na:" * 8000])
@pytest.mark.parametrize("start", [b"", b"x: "])
def test_trailers_without_an_end_are_refused_while_they_are_sent(start: bytes, piece: bytes) -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(CHUNKED + b"3\r\nabc\r\n0\r\n" + start)
        sent = 0
        with pytest.raises(OSError, match=r"Broken pipe|reset by peer"):
            while sent < 200_000_000:
                sent += connection.send(piece)
        assert sent < 20_000_000


def test_a_refusal_waits_for_the_answers_to_earlier_requests() -> None:
    go_on = threading.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await anyio.to_thread.run_sync(go_on.wait, 10)
        await streaming(scope, receive, send)

    with serving(slow, request_seconds=0.2) as connect:
        for rest, status in (
            (b"what is this\r\n\r\n", b"400"),
            (CHUNKED + b"x\r\n", b"400"),
            (CHUNKED, b"408"),
            (b"GET / HTTP/1.1\r\nx: ", b"408"),
        ):
            go_on.clear()
            connection = connect()
            connection.sendall(GET + rest)
            connection.settimeout(0.4)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            connection.settimeout(20)
            go_on.set()
            first, end, last = answered(connection).partition(b"0\r\n\r\n")
            assert (first[: len(OK)], end[:1], last[:12]) == (OK, b"0", b"HTTP/1.1 " + status)


def test_requests_wait_as_bytes_while_an_earlier_one_has_no_answer() -> None:
    calls = 0
    go_on = threading.Event()

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal calls
        calls += 1
        await anyio.to_thread.run_sync(go_on.wait, 10)
        await application(scope, receive, send)

    request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
    with serving(counting) as connect:
        connection = connect()
        connection.sendall(request * 3000)
        eventually(lambda: calls == 1)
        go_on.set()
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert answered(connection).count(OK) == 3001
    assert calls == 3001


UPGRADES = {
    "h2c": b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n",
    "websocket": b"Connection: keep-alive, upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: x\r\n",
    "several": b"UPGRADE: TLS/1.0, h2c\r\nCONNECTION: UPGRADE\r\nUpgrade: other/2\r\n",
    "no connection": b"upgrade: h2c\r\n",
    "nothing": b"connection: upgrade\r\nupgrade:\r\n",
}


UPGRADE = b"GET / HTTP/1.1\r\nhost: x\r\n" + UPGRADES["h2c"]


@pytest.mark.parametrize("headers", UPGRADES.values(), ids=UPGRADES)
@pytest.mark.parametrize("size", [1, 70, 100_000])
def test_an_upgrade_is_ignored_and_the_body_is_read(headers: bytes, size: int) -> None:
    framed = (
        b"content-length: 3\r\n\r\nabc",
        b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        b"\r\n",
    )
    with serving() as connect:
        connection = connect()
        for body, length in zip(framed, (b"3", b"3", b"0"), strict=True):
            request = b"POST /a%20b?c=d HTTP/1.1\r\nhost: x\r\n" + headers + body
            for at in range(0, len(request), size):
                connection.sendall(request[at : at + size])
            assert answer(connection) == OK + b" " + length
        connection.sendall(request * 2 + GET + b"GET / HTTP/1.0\r\n" + headers + b"\r\n")  # all at once
        assert answered(connection).count(OK) == 4


def test_many_upgrades_at_once_are_answered() -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(
            b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: a\r\n\r\n" * 2000 + b"GET / HTTP/1.0\r\n\r\n"
        )
        assert answered(connection).count(OK) == 2001


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (b"CONNECT x:1 HTTP/1.1\r\n\r\nabc", (501, "the service is not a proxy: CONNECT is not supported")),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, "the request is not HTTP/1.1: Pause on PRI/Upgrade")),
        (UPGRADE + b"x: a\r\n" * 100 + b"\r\n", (431, "the request has more than 100 headers")),
        (UPGRADE + b"\r\nwhat is this\r\n\r\n", (400, "the request is not HTTP/1.1: Invalid method encountered")),
    ],
    ids=["connect", "preface", "headers", "words"],
)  # fmt: skip
def test_a_request_that_is_not_for_http_1_is_refused(request_: bytes, told: tuple[int, str]) -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(request_)
        head, _, body = answered(connection).rpartition(b"\r\n\r\n")
        assert (int(head.rpartition(b"HTTP/1.1 ")[2][:3]), json.loads(body)["msg"]) == told


@pytest.mark.parametrize("headers", [b"", b"connection: keep-alive\r\n", b"expect: 100-continue\r\n", UPGRADES["h2c"]])
def test_an_answer_to_http_1_0_has_no_chunks_and_ends_with_the_connection(headers: bytes) -> None:
    with serving(streaming) as connect:
        connection = connect()
        connection.sendall(b"POST / HTTP/1.0\r\n" + headers + b"content-length: 1\r\n\r\nx")
        head, _, body = answered(connection).partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        assert lines[0] == OK.lower()
        assert b"connection: close" in lines
        assert not any(line.startswith((b"transfer-encoding", b"content-length")) for line in lines)
        assert body == b"first second"


def test_an_answer_to_http_1_1_is_in_chunks() -> None:
    with serving(streaming) as connect:
        connection = connect()
        connection.sendall(GET + b"HEAD / HTTP/1.0\r\n\r\n")
        first, _, second = answered(connection).partition(b"0\r\n\r\n")
        assert b"transfer-encoding: chunked" in first
        assert first.endswith(b"\r\n\r\n6\r\nfirst \r\n6\r\nsecond\r\n")
        assert second.startswith(OK)
        assert second.endswith(b"connection: close\r\n\r\n")


def test_an_answer_with_a_length_keeps_it_for_http_1_0() -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(b"POST / HTTP/1.0\r\ncontent-length: 4\r\n\r\nabcd")
        head, _, body = answered(connection).partition(b"\r\n\r\n")
        assert b"content-length: 1" in head
        assert body == b"4"


def test_an_answer_to_http_1_0_that_fails_does_not_look_whole() -> None:
    with serving(streaming) as connect:
        connection = connect()
        connection.sendall(b"GET /fails HTTP/1.0\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            while connection.recv(1 << 16):
                pass


@pytest.mark.parametrize("path", ["/domain", "/domain/acme?x=1"])
def test_a_refused_request_for_a_domain_is_answered_without_an_envelope(path: str) -> None:
    with serving() as connect:
        connection = connect()
        connection.sendall(b"GET %b HTTP/1.1\r\nx: %b\r\n\r\n" % (path.encode(), b"a" * 65_536))
        _, _, body = answered(connection).partition(b"\r\n\r\n")
        assert json.loads(body) == {
            "error": {"code": 1, "message": LARGE_HEAD[1]},
            "reason": "refused",
            "data": {},
        }


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
    head = b"POST / HTTP/1.1\r\nhost: x\r\n" + b"x: %b\r\n" % (b"a" * 500) * 97
    with serving() as connect:
        connection = connect()
        for _ in range(3):
            connection.sendall(head + b"content-length: 300000\r\n\r\n" + b"b" * 300_000)
            assert answer(connection) == OK + b" 300000"
        connection.sendall(GET * 40 + b"GET / HTTP/1.0\r\n\r\n")
        assert answered(connection).count(OK) == 41


@pytest.mark.parametrize("piece", [b"x: y\r\n", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n"])
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
