"""What carries requests: the pool, and httpx where the environment or the caller needs more."""

import gzip
from collections.abc import Callable

import httpx
import pytest

from svcctl.api.wire import errors
from svcctl.api.wire.errors import LostError, NotSentError, WireError
from svcctl.api.wire.messages import Request
from svcctl.api.wire.opening import opened
from svcctl.api.wire.pool import Pool
from svcctl.api.wire.through_httpx import ThroughHttpx
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a SOCKS proxy": "the proxy of the environment is a SOCKS proxy, which needs a package that is not installed",
}
HINTS = {
    "a SOCKS proxy": "install it with: pip install 'httpx[socks]'",
}

REQUEST = Request("GET", "https://service.test/x", (("Accept", "*/*"), ("X-Mine", "1")), b"", 5, 5, 5)


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch.setenv


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("NOTHING", "x", Pool),
        ("HTTPS_PROXY", "http://127.0.0.1:1", Pool),
        ("https_proxy", "127.0.0.1:1", Pool),
        ("ALL_PROXY", "http://127.0.0.1:1", Pool),
        ("HTTP_PROXY", "socks5://127.0.0.1:1", Pool),  # plain http stays on this machine
        ("HTTPS_PROXY", "https://127.0.0.1:1", ThroughHttpx),
    ],
)
def test_a_proxy_that_the_pool_cannot_speak_to_is_left_to_httpx(
    proxies: Callable[[str, str], None], name: str, value: str, kind: type
) -> None:
    proxies(name, value)
    wire = opened(trust=None, socket=None, proxies=True, transport=None)
    assert type(wire) is kind
    wire.close()
    for plain in (
        opened(trust=None, socket=None, proxies=False, transport=None),
        opened(trust=None, socket="/x", proxies=True, transport=None),
    ):
        assert type(plain) is Pool


def test_a_socks_proxy_without_its_package_is_a_usage_error(proxies: Callable[[str, str], None]) -> None:
    proxies("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(UsageError) as caught:
        opened(trust=None, socket=None, proxies=True, transport=None)
    assert caught.value.message == WORDS["a SOCKS proxy"]
    assert caught.value.hint == HINTS["a SOCKS proxy"]


def test_a_transport_of_httpx_gets_the_request_and_gives_the_answer() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, str(request.url)) == (REQUEST.method, REQUEST.url)
        assert (request.headers["x-mine"], request.headers["accept"]) == ("1", "*/*")
        return httpx.Response(201, headers={"Content-Encoding": "gzip", "A": "b"}, content=gzip.compress(b"rows"))

    wire = opened(trust=None, socket=None, proxies=True, transport=httpx.MockTransport(answer))
    response = wire.send(REQUEST)
    assert (response.status, dict(response.headers), b"".join(response)) == (201, {"a": "b"}, b"rows")
    response.close()
    wire.close()


@pytest.mark.parametrize(
    ("error", "kind", "timed_out"),
    [
        (httpx.ConnectError("gone"), NotSentError, False),
        (httpx.ConnectTimeout("gone"), NotSentError, True),
        (httpx.ProxyError("gone"), NotSentError, False),
        (httpx.PoolTimeout("gone"), NotSentError, True),
        (httpx.ReadTimeout("gone"), LostError, True),
        (httpx.WriteError("gone"), LostError, False),
        (httpx.RemoteProtocolError("gone"), LostError, False),
        (httpx.InvalidURL("gone"), errors.UnsendableError, False),
        (httpx.DecodingError("gone"), errors.DecodingError, False),
        (httpx.TooManyRedirects("gone"), LostError, False),
    ],
)
def test_errors_of_httpx_become_errors_of_the_wire(error: Exception, kind: type[WireError], timed_out: bool) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(kind, match="gone") as caught:
        opened(trust=None, socket=None, proxies=True, transport=httpx.MockTransport(fail)).send(REQUEST)
    assert caught.value.timed_out is timed_out
