"""Which transport goes where: directly, through proxies that the pool speaks to, and through those left to httpx."""

import socket
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from svcctl.api.addresses import trust
from svcctl.api.wire.pool import http_client
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a SOCKS proxy": "the proxy of the environment is a SOCKS proxy, which needs a package that is not installed",
    "no proxy": "the proxy of the environment is not one of http, https or SOCKS",
}
HINTS = {
    "a SOCKS proxy": "install it with: pip install 'httpx[socks]'",
    "no proxy": "it is in HTTPS_PROXY or ALL_PROXY",
}


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch.setenv


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def first_bytes(listener: socket.socket, *, proxies: bool = True) -> bytes:
    """What arrives first at a listener that is the service and the proxy, and closes every connection."""
    seen: list[bytes] = []

    def close() -> None:
        connection, _ = listener.accept()
        with connection:
            seen.append(connection.recv(65536))

    thread = threading.Thread(target=close)
    thread.start()
    url = f"https://localhost:{listener.getsockname()[1]}/"
    with (
        http_client(trust=trust(False, (url,)), socket=None, proxies=proxies, transport=None) as http,
        pytest.raises(httpx.TransportError),
    ):
        http.get(url)
    thread.join(10)
    return seen[0]


HELLO = b"\x16\x03"
"""How TLS begins."""


@pytest.mark.parametrize(
    ("name", "value", "first"),
    [
        ("NOTHING", "x", HELLO),
        ("HTTPS_PROXY", "http://127.0.0.1:{}", b"CONNECT localhost:"),
        ("https_proxy", "127.0.0.1:{}", b"CONNECT localhost:"),
        ("ALL_PROXY", "http://127.0.0.1:{}", b"CONNECT localhost:"),
        ("HTTP_PROXY", "socks5://127.0.0.1:1", HELLO),  # plain http stays on this machine
        ("HTTPS_PROXY", "https://127.0.0.1:{}", HELLO),
    ],
)
def test_a_proxy_of_the_environment_is_spoken_to_in_its_own_way(
    proxies: Callable[[str, str], None], listener: socket.socket, name: str, value: str, first: bytes
) -> None:
    proxies(name, value.format(listener.getsockname()[1]))
    assert first_bytes(listener).startswith(first)
    assert first_bytes(listener, proxies=False).startswith(HELLO)


@pytest.mark.parametrize(
    ("case", "url"), [("a SOCKS proxy", "socks5://127.0.0.1:1"), ("no proxy", "ftp://127.0.0.1:1")]
)
def test_a_proxy_that_cannot_be_used_is_a_usage_error(proxies: Callable[[str, str], None], case: str, url: str) -> None:
    proxies("ALL_PROXY", url)
    with pytest.raises(UsageError) as caught:
        http_client(trust=None, socket=None, proxies=True, transport=None)
    assert (caught.value.message, caught.value.hint) == (WORDS[case], HINTS[case])
    http_client(trust=None, socket="/x", proxies=True, transport=None).close()
