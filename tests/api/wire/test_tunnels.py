"""Ways through proxies over real sockets: CONNECT, CONNECT over TLS and SOCKS 5, and the failures of each."""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.certificates import server_context
from support.proxies import CONNECTED, Greeting, answering, http, proxy, socks

from svcctl.api import retry
from svcctl.api.addresses import trust
from svcctl.api.wire.failures import ConnectError, ReadError
from svcctl.api.wire.messages import Headers, Request
from svcctl.api.wire.pool import Pool
from svcctl.api.wire.sockets import Route, origin
from svcctl.api.wire.tunnels import ProxyFailure

BODY = bytes(range(256)) * 4096
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
DIRECT_PORT = 1
"""A port where nothing listens: a request arrives only through the proxy."""


@contextmanager
def service(certificate: Path) -> Iterator[int]:
    """A service that answers requests on one connection after the other with BODY."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
                with server_context(certificate).wrap_socket(accepted, server_side=True) as connection:
                    while connection.recv(65536):
                        connection.sendall(ANSWER)
            except OSError:
                if listener.fileno() < 0:
                    return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def request(url: str, timeout: float = 10.0) -> Request:
    return Request("GET", url, Headers(), b"/", timeout=timeout, first=timeout, silence=timeout)


def pool(certificate: Path, **environment: str) -> Pool:
    return Pool(Route(trust(str(certificate), ("https://x",)), environment=environment))


AUTHORIZATION = b"Proxy-Authorization: Basic " + b64encode(b"us er:p@ss") + b"\r\n"
CONNECT = b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n"
NAMED = b"\3localhost\0\1"


@pytest.mark.parametrize(
    ("value", "greet", "secure", "seen"),
    [
        ("127.0.0.1:{}", http(), False, [CONNECT + b"\r\n"]),
        ("http://us%20er:p%40ss@127.0.0.1:{}/", http(), False, [CONNECT + AUTHORIZATION + b"\r\n"]),
        ("http://us%20er:p@ss@127.0.0.1:{}", http(), False, [CONNECT + AUTHORIZATION + b"\r\n"]),
        ("https://localhost:{}", http(), True, [CONNECT + b"\r\n"]),
        ("https://us%20er:p%40ss@localhost:{}", http(), True, [CONNECT + AUTHORIZATION + b"\r\n"]),
        ("socks5://127.0.0.1:{}", socks(), False, [b"\0", NAMED]),
        ("socks5h://us%20er:p%40ss@127.0.0.1:{}", socks(method=2), False, [b"\0\2", b"us er:p@ss", NAMED]),
        ("socks5://us%20er:p%40ss@127.0.0.1:{}", socks(), False, [b"\0\2", NAMED]),
    ],
)
def test_large_answers_come_through_a_proxy_whose_connection_is_used_again(
    certificate: Path, value: str, greet: Greeting, secure: bool, seen: list[bytes]
) -> None:
    tls = server_context(certificate) if secure else None
    with service(certificate) as port, proxy(greet, port, tls) as server:
        through = pool(certificate, HTTPS_PROXY=value.format(server.port))
        for _ in range(2):
            response = through.send(request(f"https://localhost:{DIRECT_PORT}/"))
            assert b"".join(response.blocks) == BODY
        through.close()
        assert server.seen == seen


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("10.1.2.3", b"\1\x0a\1\2\3"),
        ("[::1]", b"\4" + b"\0" * 15 + b"\1"),
        ("b\u00fccher.test", b"\3xn--bcher-kva.test"),
    ],
)
def test_a_socks_proxy_gets_an_address_as_one_and_a_name_in_ascii(certificate: Path, host: str, wanted: bytes) -> None:
    with proxy(socks(reply=5)) as server:
        with pytest.raises(ProxyFailure, match="did not make the connection: connection refused"):
            pool(certificate, HTTPS_PROXY=f"socks5://127.0.0.1:{server.port}").send(request(f"https://{host}/"))
        assert server.seen == [b"\0", wanted + b"\x01\xbb"]


USUAL = "check or unset HTTPS_PROXY; to reach service.test directly, add it to NO_PROXY"
ASKS = "set HTTPS_PROXY={}://USER:PASSWORD@{}"
CHECK = "check them in HTTPS_PROXY"


@pytest.mark.parametrize(
    ("value", "greet", "problem", "hint", "final"),
    [
        ("http://{}", http(b"HTTP/1.1 407 x\r\n\r\n"), "asks for a user name and a password", ASKS, True),
        (
            "http://a:hunter2@{}",
            http(b"HTTP/1.1 407 x\r\n\r\n"),
            "does not accept its user name and password",
            CHECK,
            True,
        ),
        (
            "http://{}",
            http(b"HTTP/1.0 403 x\r\n\r\nbody"),
            "did not make the connection: it answered HTTP 403",
            USUAL,
            True,
        ),
        (
            "http://{}",
            http(b"HTTP/1.1 502 x\r\n\r\n"),
            "did not make the connection: it answered HTTP 502",
            USUAL,
            False,
        ),
        ("http://{}", http(b""), "failed: it closed the connection without an answer", USUAL, False),
        (
            "http://{}",
            http(b"SSH-2.0\r\n" * 20_000),
            "failed: the head of its answer is longer than 102 kB",
            USUAL,
            False,
        ),
        ("http://{}", http(CONNECTED + b"more"), "failed: it sent more than its answer", USUAL, False),
        ("socks5://{}", socks(method=255), "asks for a user name and a password", ASKS, True),
        ("socks5://a:hunter2@{}", socks(method=255), "does not accept its user name and password", CHECK, True),
        ("socks5://a:hunter2@{}", socks(method=2, status=1), "does not accept its user name and password", CHECK, True),
        ("socks5://{}", socks(version=4), "failed: it does not speak SOCKS 5", USUAL, True),
        ("socks5://{}", socks(reply=2), "did not make the connection: its rules do not allow it", USUAL, True),
        ("socks5://{}", socks(reply=99), "did not make the connection: it replied 99", USUAL, False),
        ("socks5://{}", answering(b""), "failed: it closed the connection without an answer", USUAL, False),
    ],
)
def test_a_proxy_that_makes_no_connection_is_named_with_its_variable(
    certificate: Path, value: str, greet: Greeting, problem: str, hint: str, final: bool
) -> None:
    with proxy(greet) as server, pytest.raises(ProxyFailure) as caught:
        through = pool(certificate, HTTPS_PROXY=value.format(f"127.0.0.1:{server.port}"))
        through.send(request("https://service.test/"))
    address = f"127.0.0.1:{server.port}"
    assert str(caught.value) == f"the proxy {address} (from HTTPS_PROXY) {problem}"
    assert caught.value.hint("service.test") == hint.format(value.partition(":")[0], address)
    assert caught.value.is_final == final


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
def test_a_silent_proxy_is_a_failure_after_the_time_to_connect(certificate: Path, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        through = pool(certificate, all_proxy=f"{scheme}://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(ProxyFailure, match=r"\(from all_proxy\) does not answer in time"):
            through.send(request("https://service.test/", timeout=0.05))


def test_a_proxy_that_nobody_listens_for_or_whose_name_has_no_address_is_a_failure(certificate: Path) -> None:
    for place, problem, attempts in (
        ("127.0.0.1:1", "cannot be reached: Connection refused", None),
        ("nowhere.invalid", "has no address", 1),
    ):
        with pytest.raises(ProxyFailure, match=problem) as caught:
            pool(certificate, https_proxy=place).send(request("https://service.test/"))
        assert retry.attempts(caught.value) in (attempts, 3)  # 3 where no name can be looked up


def test_an_https_proxy_that_speaks_plain_http_is_a_failure_with_the_right_scheme_as_advice(certificate: Path) -> None:
    with proxy(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server, pytest.raises(ProxyFailure) as caught:
        through = pool(certificate, HTTPS_PROXY=f"https://localhost:{server.port}")
        through.send(request("https://service.test/"))
    assert str(caught.value).endswith("cannot be used with TLS: the port does not speak TLS")
    assert caught.value.hint("service.test") == "if the proxy speaks plain HTTP, begin HTTPS_PROXY with http://"


def test_an_https_proxy_with_a_certificate_of_nobody_trusted_is_a_failure_without_another_attempt(
    certificate: Path,
) -> None:
    with proxy(http(), tls=server_context(certificate)) as server, pytest.raises(ProxyFailure) as caught:
        route = Route(trust(True, ("https://x",)), environment={"HTTPS_PROXY": f"https://localhost:{server.port}"})
        Pool(route).send(request("https://service.test/"))
    assert str(caught.value).endswith(
        "cannot be used with TLS: its certificate is not accepted: self-signed certificate"
    )
    assert (caught.value.hint("service.test"), retry.attempts(caught.value)) == (None, 1)


def test_a_service_with_another_certificate_is_not_blamed_on_its_https_proxy(certificate: Path) -> None:
    with service(certificate) as port, proxy(http(), port, server_context(certificate)) as server:
        through = pool(certificate, HTTPS_PROXY=f"https://localhost:{server.port}")
        with pytest.raises(ConnectError, match="Hostname mismatch"):
            through.send(request("https://service.test/"))


@pytest.mark.parametrize("cut", [10, 100_000])
def test_the_end_of_a_connection_inside_another_one_is_noticed(certificate: Path, cut: int) -> None:
    """The outer connection ends, and the inner one has no close_notify."""
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, proxy(http(), listener.getsockname()[1], server_context(certificate)) as server:

        def serve() -> None:
            accepted, _ = listener.accept()
            with server_context(certificate).wrap_socket(accepted, server_side=True) as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + BODY[:cut])

        thread = threading.Thread(target=serve)
        thread.start()
        through = pool(certificate, HTTPS_PROXY=f"https://localhost:{server.port}")
        response = through.send(request("https://localhost/"))
        got = b""
        with pytest.raises(ReadError):
            for piece in response.blocks:
                got += piece
        response.close()
        assert got == BODY[:cut]
        thread.join(10)
        through.close()


@pytest.mark.parametrize(
    ("url", "path", "is_proxied"),
    [
        ("https://service.test", None, True),
        ("https://127.0.0.1", None, True),  # as curl and Python do
        ("https://service.test", "/socket", False),
        ("http://localhost", None, False),
        ("http://service.test", None, False),
    ],
)
def test_only_https_to_a_host_takes_a_proxy(url: str, path: str | None, is_proxied: bool) -> None:
    route = Route(path=path, environment={"ALL_PROXY": "p"})
    assert (route.proxy(origin(url)) is not None) == is_proxied
