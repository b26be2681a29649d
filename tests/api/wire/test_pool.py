"""Connections over real sockets: what is reused, what is given up, TLS, Unix sockets, and peers' mistakes."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.certificates import server_context

from svcctl.api import retry
from svcctl.api.addresses import trust
from svcctl.api.wire.connection import RECEIVED_BYTES
from svcctl.api.wire.failures import (
    ConnectError,
    ConnectTimeout,
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    UnsupportedProtocol,
)
from svcctl.api.wire.messages import Headers, Request
from svcctl.api.wire.pool import Pool
from svcctl.api.wire.sockets import KEEP_ALIVE, Route, origin

Serve = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def peer(serve: Serve, *, path: Path | None = None, tls: ssl.SSLContext | None = None) -> Iterator[list[bytes]]:
    """A peer whose connections `serve` answers, one after the other; yields its port as text, then what it received."""
    listener = socket.socket(socket.AF_UNIX) if path else socket.create_server(("127.0.0.1", 0))
    if path:
        listener.bind(str(path))
        listener.listen()

    def accept() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            try:
                with tls.wrap_socket(accepted, server_side=True) if tls else accepted as connection:
                    serve(connection)
            except OSError:
                continue

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield [b"" if path else str(listener.getsockname()[1]).encode()]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        listener.close()


def request_of(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65536)):
            return data
        data += piece
    return data


def answering(*answers: bytes, seen: list[bytes] | None = None) -> Serve:
    """Answers requests on one connection in turn, then closes it."""

    def serve(connection: socket.socket) -> None:
        for answer in answers:
            if not (data := request_of(connection)):
                return
            if seen is not None:
                seen.append(data)
            connection.sendall(answer)

    return serve


def asked(url: str, method: str = "GET", timeout: float = 20.0, *, whole: bool = False) -> Request:
    """A request whose answer may begin at any time if it is a whole one."""
    first = None if whole else timeout
    return Request(method, url, Headers(), b"/", timeout=timeout, first=first, silence=timeout)


def read(pool: Pool, request: Request) -> tuple[int, bytes]:
    response = pool.send(request)
    try:
        return response.status_code, b"".join(response.blocks)
    finally:
        response.close()


def ask(serve: Serve, method: str = "GET", timeout: float = 20.0) -> tuple[int, bytes]:
    """What a new pool reads from a peer."""
    with peer(serve) as [port]:
        pool = Pool(Route())
        try:
            return read(pool, asked(f"http://127.0.0.1:{port.decode()}/", method, timeout))
        finally:
            pool.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n"


@pytest.mark.parametrize("answer", [OK, CHUNKED, b"HTTP/1.1 204 No\r\n\r\n"])
def test_a_connection_is_used_again_when_its_answer_was_read(answer: bytes) -> None:
    connections = []

    def serve(connection: socket.socket) -> None:
        connections.append(connection)
        answering(*[answer] * 3)(connection)

    with peer(serve) as [port]:
        pool = Pool(Route())
        url = f"http://127.0.0.1:{port.decode()}/"
        assert {read(pool, asked(url))[0] for _ in range(3)} == {204 if b"204" in answer else 200}
        pool.close()
    assert len(connections) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        CHUNKED + b"\r\n",
    ],
)
def test_a_connection_is_not_used_again_when_it_ends_or_something_follows_the_answer(answer: bytes) -> None:
    connections = []

    def serve(connection: socket.socket) -> None:
        connections.append(connection)
        answering(answer, answer)(connection)

    with peer(serve) as [port]:
        pool = Pool(Route())
        url = f"http://127.0.0.1:{port.decode()}/"
        assert [read(pool, asked(url)) for _ in range(2)] == [(200, b"ok")] * 2
        pool.close()
    assert len(connections) == 2


def test_a_connection_that_the_peer_closed_meanwhile_is_not_used_again() -> None:
    closed = threading.Event()

    def serve(connection: socket.socket) -> None:
        answering(OK)(connection)
        connection.close()
        closed.set()

    with peer(serve) as [port]:
        pool = Pool(Route())
        url = f"http://127.0.0.1:{port.decode()}/"
        for _ in range(3):
            assert read(pool, asked(url)) == (200, b"ok")
            assert closed.wait(10)
            closed.clear()
        pool.close()


def test_a_connection_that_was_idle_for_long_is_not_used_again() -> None:
    connections = []

    def serve(connection: socket.socket) -> None:
        connections.append(connection)
        answering(OK, OK)(connection)

    with peer(serve) as [port]:
        pool = Pool(Route(), idle_seconds=0.0)
        assert [read(pool, asked(f"http://127.0.0.1:{port.decode()}/")) for _ in range(2)] == [(200, b"ok")] * 2
        pool.close()
    assert len(connections) == 2


def test_an_answer_closed_early_gives_its_connection_up() -> None:
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"
    seen: list[bytes] = []
    with peer(answering(long, seen=seen)) as [port]:
        pool = Pool(Route())
        for _ in range(2):
            response = pool.send(asked(f"http://127.0.0.1:{port.decode()}/"))
            assert next(response.blocks) == b"ok"
            response.close()
            response.close()
        pool.close()
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("method", "answer", "expected"),
    [
        ("GET", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK, (200, b"ok")),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", (200, b"")),
        ("GET", b"HTTP/1.1 304 Same\r\nContent-Length: 2\r\n\r\n", (304, b"")),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, b"")),
        ("GET", b"HTTP/1.1 200 OK\n\nuntil the end", (200, b"until the end")),
    ],
)
def test_answers_are_read(method: str, answer: bytes, expected: tuple[int, bytes]) -> None:
    assert ask(answering(answer), method) == expected

    def trickling(connection: socket.socket) -> None:
        request_of(connection)
        for at in range(len(answer)):
            connection.sendall(answer[at : at + 1])

    assert ask(trickling, method) == expected


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nA: b", "it closed the connection in the middle of the head of its answer"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 200_000, "the head of its answer is longer than 102 kB"),
        (b"HTTP/1.1 101 Other\r\n\r\n" + OK, "it answers with interim answers only"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 200, "it answers with interim answers only"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "the connection closed in the middle of the answer"),
        (CHUNKED[:-1], "the connection closed in the middle of the answer"),
        (CHUNKED.replace(b"0\r\n", b"zz\r\n"), r"its answer has the chunk size b'\r\nzz\r\nX: y\r\n\r\n'"),
    ],
)
def test_an_answer_that_is_not_whole_or_not_http_is_refused(answer: bytes, message: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        ask(answering(answer))
    assert str(caught.value) == message


def test_a_connection_that_ends_without_an_answer_is_an_error_of_reading() -> None:
    with pytest.raises(ReadError, match="without an answer"):
        ask(answering(b""))


def test_a_reset_after_some_bytes_is_not_the_end_of_the_body() -> None:
    """An answer that ends by closing, so that only the reset says that it was cut."""

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        delivered.wait(10)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    delivered = threading.Event()
    with peer(serve) as [port]:
        pool = Pool(Route())
        response = pool.send(asked(f"http://127.0.0.1:{port.decode()}/"))
        body = response.blocks
        assert next(body) == b"half"
        delivered.set()
        with pytest.raises(ReadError, match="Connection reset by peer"):
            next(body)
        response.close()
        pool.close()


def test_silence_ends_in_a_timeout_before_the_head_in_it_and_in_the_body() -> None:
    for beginning in (b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-", OK[:-1]):
        over = threading.Event()

        def serve(connection: socket.socket, beginning: bytes = beginning, over: threading.Event = over) -> None:
            answering(beginning)(connection)
            over.wait(10)

        with peer(serve) as [port]:
            pool = Pool(Route())
            with pytest.raises(ReadTimeout):
                read(pool, asked(f"http://127.0.0.1:{port.decode()}/", timeout=0.05))
            pool.close()
            over.set()


@pytest.mark.parametrize("beginning", [b"", OK[:-1]], ids=["before the head", "in the body"])
def test_a_signal_that_does_not_end_the_wait_itself_ends_it_soon(beginning: bytes) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        answering(beginning)(connection)
        time.sleep(0.2)  # in this time, the main thread begins to wait
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        over.wait(30)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with peer(serve) as [port]:
            pool = Pool(Route())
            since = time.monotonic()
            with pytest.raises(Interrupted):
                read(pool, asked(f"http://127.0.0.1:{port.decode()}/"))
            assert time.monotonic() - since < 15, "only the limit of 20 seconds ended the wait"
            pool.close()
            over.set()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_answer_that_begins_when_all_of_it_is_there_may_take_any_time_to_begin_but_not_to_go_on() -> None:
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        for piece in (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n", b"\r\n", b"ok"):
            assert not over.wait(0.3)
            connection.sendall(piece)
        over.wait(10)

    with peer(serve) as [port]:
        pool = Pool(Route())
        response = pool.send(asked(f"http://127.0.0.1:{port.decode()}/", timeout=0.1, whole=True))
        body = response.blocks
        assert next(body) == b"ok"
        with pytest.raises(ReadTimeout):
            next(body)
        over.set()
        response.close()
        pool.close()


def test_the_system_asks_a_silent_connection_for_signs_of_life() -> None:
    with peer(answering(OK)) as [port]:
        url = f"http://127.0.0.1:{port.decode()}/"
        with Route().open(origin(url), 5) as connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for name, value in KEEP_ALIVE.items():
                assert connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value


def test_a_head_that_trickles_has_a_limit_in_all() -> None:
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nA: ")
        while not over.wait(0.01):
            connection.sendall(b"a")

    with peer(serve) as [port]:
        pool = Pool(Route())
        with pytest.raises(ReadTimeout):
            read(pool, asked(f"http://127.0.0.1:{port.decode()}/", timeout=0.2))
        over.set()
        pool.close()


def test_a_refusal_before_the_request_is_sent_whole_is_read() -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 413 Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass

    with peer(serve) as [port]:
        pool = Pool(Route())
        url = f"http://127.0.0.1:{port.decode()}/"
        request = replace(asked(url, "POST"), body=b"x" * 30_000_000)
        assert read(pool, request) == (413, b"no")
        pool.close()


def test_no_peer_is_a_connect_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    for pool, message in (
        (Pool(Route()), "[Errno 111] Connection refused"),
        (Pool(Route(path=str(tmp_path / "none"))), "[Errno 2] No such file or directory"),
    ):
        with pytest.raises(ConnectError) as caught:
            pool.send(asked(f"http://127.0.0.1:{port}/"))
        assert str(caught.value) == message


@pytest.mark.parametrize(("code", "attempts"), [(socket.EAI_NONAME, 1), (socket.EAI_AGAIN, 3)])
def test_an_unknown_host_name_differs_from_a_failed_look_up(
    code: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*given: object, **options: object) -> None:
        raise socket.gaierror(code, "no address")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ConnectError) as caught:
        Pool(Route()).send(asked("http://nowhere.invalid/"))
    assert retry.attempts(caught.value) == attempts


@pytest.mark.parametrize("url", ["ftp://localhost/", "http://", "/x"])
def test_a_url_that_cannot_be_asked_is_refused(url: str) -> None:
    with pytest.raises(UnsupportedProtocol):
        Pool(Route()).send(asked(url))


def test_a_unix_socket_stands_for_every_host(tmp_path: Path) -> None:
    with peer(answering(OK), path=tmp_path / "sock"):
        pool = Pool(Route(path=str(tmp_path / "sock")))
        assert read(pool, asked("http://anywhere:1/")) == (200, b"ok")
        pool.close()


LARGE = bytes(range(256)) * 4096


@pytest.mark.parametrize("chunk", [1000, 16_384, 500_000])
def test_large_answers_over_tls_are_whole_and_connections_are_used_again(certificate: Path, chunk: int) -> None:
    pieces = (LARGE[at : at + chunk] for at in range(0, len(LARGE), chunk))
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"
    with peer(answering(answer, answer), tls=server_context(certificate)) as [port]:
        pool = Pool(Route(trust(str(certificate), ("https://localhost",))))
        url = f"https://localhost:{port.decode()}/"
        assert [read(pool, asked(url)) == (200, LARGE) for _ in range(2)] == [True, True]
        pool.close()


@pytest.mark.parametrize(
    ("host", "verify", "message"),
    [
        ("localhost", True, "certificate verify failed: self-signed certificate"),
        ("127.0.0.1", None, "certificate verify failed: IP address mismatch"),
    ],
)
def test_a_certificate_that_is_not_trusted_is_refused(
    certificate: Path, host: str, verify: bool | None, message: str
) -> None:
    with peer(answering(OK), tls=server_context(certificate)) as [port]:
        pool = Pool(Route(trust(str(certificate) if verify is None else verify, ("https://x",))))
        with pytest.raises(ConnectError, match=message) as caught:
            pool.send(asked(f"https://{host}:{port.decode()}/"))
        assert retry.attempts(caught.value) == 1


def test_no_certificate_is_checked_where_that_is_asked_for(certificate: Path) -> None:
    with peer(answering(OK), tls=server_context(certificate)) as [port]:
        pool = Pool(Route(trust(False, ("https://x",))))
        assert read(pool, asked(f"https://127.0.0.1:{port.decode()}/")) == (200, b"ok")
        pool.close()


def test_an_authority_of_the_environment_is_trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with peer(answering(OK), tls=server_context(certificate)) as [port]:
        pool = Pool(Route(trust(True, ("https://x",))))
        assert read(pool, asked(f"https://localhost:{port.decode()}/")) == (200, b"ok")
        pool.close()


def test_a_peer_that_does_not_finish_its_tls_is_a_connect_timeout() -> None:
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        over.wait(10)

    with peer(serve) as [port]:
        pool = Pool(Route(trust(False, ("https://x",))))
        with pytest.raises(ConnectTimeout):
            pool.send(asked(f"https://localhost:{port.decode()}/", timeout=0.05))
        over.set()


def test_many_threads_share_a_pool() -> None:
    servers: list[threading.Thread] = []

    def serve_all(connection: socket.socket) -> None:
        servers.append(threading.Thread(target=serve, args=(connection.dup(),)))
        servers[-1].start()

    def serve(connection: socket.socket) -> None:
        with connection:
            answering(*[OK] * 161)(connection)

    with peer(serve_all) as [port]:
        pool = Pool(Route())
        answers: list[tuple[int, bytes]] = []
        request = asked(f"http://127.0.0.1:{port.decode()}/")
        threads = [
            threading.Thread(target=lambda: answers.extend(read(pool, request) for _ in range(20))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        pool.close()
        for server in servers:
            server.join(20)
    assert answers == [(200, b"ok")] * 160


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the peer is a thread of the parent
@pytest.mark.parametrize("secure", [False, True])
def test_after_a_fork_the_parent_keeps_its_connections_and_the_child_has_others(
    secure: bool, certificate: Path
) -> None:
    seen: list[bytes] = []
    tls = server_context(certificate) if secure else None
    with peer(answering(OK, OK, OK, seen=seen), tls=tls) as [port]:
        url = f"{'https' if secure else 'http'}://localhost:{port.decode()}/"
        pool = Pool(Route(trust(False, ("https://x",))))
        assert read(pool, asked(url)) == (200, b"ok")
        if (child := os.fork()) == 0:
            try:  # the peer is busy with the connection of the parent
                read(pool, asked(url, timeout=0.2))
            except (ConnectTimeout, ReadTimeout):
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert read(pool, asked(url)) == (200, b"ok")
        assert len(seen) == 2
        pool.close()


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_no_descriptor_is_left_open() -> None:
    before = descriptors()
    for answer in (OK, OK[:-1], b"", b"HTTP/1.1 2", CHUNKED):
        try:
            ask(answering(answer))
        except (RemoteProtocolError, ReadError):
            continue
    assert descriptors() == before


LONG = bytes(range(256)) * (8 * RECEIVED_BYTES // 256)
LONG_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LONG)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(("more", "reused"), [(b"", 1), (b"HTTP/1.1 200", 2)])
def test_a_connection_lasts_beyond_a_large_answer_unless_more_follows_it(
    certificate: Path, secure: bool, more: bytes, reused: int
) -> None:
    connections = []

    def serve(connection: socket.socket) -> None:
        connections.append(connection)
        answering(LONG_HEAD + LONG + more, LONG_HEAD + LONG)(connection)

    with peer(serve, tls=server_context(certificate) if secure else None) as [port]:
        pool = Pool(Route(trust(str(certificate), ("https://localhost",))))
        url = f"http{'s' * secure}://localhost:{port.decode()}/"
        assert [read(pool, asked(url)) == (200, LONG) for _ in range(2)] == [True, True]
        assert len(connections) == reused
        pool.close()


def test_a_large_answer_that_breaks_has_all_its_bytes_before_the_error() -> None:
    over = threading.Event()

    def silent(connection: socket.socket) -> None:
        over.wait(10)

    def reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    def closed(connection: socket.socket) -> None:
        connection.close()

    for ending, error in ((silent, ReadTimeout), (reset, ReadError), (closed, RemoteProtocolError)):
        delivered = threading.Event()

        def serve(connection: socket.socket, ending: Serve = ending, delivered: threading.Event = delivered) -> None:
            answering(LONG_HEAD + LONG[:-1])(connection)
            delivered.wait(10)
            ending(connection)

        with peer(serve) as [port]:
            pool = Pool(Route())
            timeout = 0.2 if ending is silent else 20.0
            response = pool.send(asked(f"http://127.0.0.1:{port.decode()}/", timeout=timeout))
            left = len(LONG) - 1
            with pytest.raises(error):
                for piece in response.blocks:
                    left -= len(piece)
                    if not left:
                        delivered.set()
            assert left == 0
            response.close()
            over.set()
            pool.close()
