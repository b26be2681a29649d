"""Connections through a proxy: by CONNECT over HTTP or HTTPS, or by SOCKS 5 (RFC 1928 and 1929)."""

from __future__ import annotations

import ipaddress
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from svcctl.api import addresses, retry
from svcctl.api.wire.connection import Connection
from svcctl.api.wire.failures import ProxyError, ReadError, RemoteProtocolError, TimeoutException
from svcctl.api.wire.heads import request_head
from svcctl.api.wire.proxies import MAX_SOCKS_BYTES, Proxy
from svcctl.errors import reason

if TYPE_CHECKING:
    import ssl

_NO_CREDENTIALS, _PASSWORD = 0, 2
"""The numbers that SOCKS assigns to the methods of authentication that svcctl offers to a proxy."""
_REPLIES = {
    2: "its rules do not allow it",
    3: "the network is unreachable",
    4: "the host is unreachable",
    5: "connection refused",
    6: "the connection timed out",
}
"""The meaning of each reply with which a SOCKS proxy refuses a connection."""
_RULES = 2


class ProxyFailure(ProxyError):
    """A proxy could not make a connection to the service.

    `problem` is the rest of a sentence that begins with the name of the proxy. `advice` replaces the usual hint.
    """

    def __init__(
        self,
        proxy: Proxy,
        problem: str,
        *,
        advice: str | None = None,
        status: int | None = None,
        is_final: bool = False,
    ) -> None:
        super().__init__(f"the proxy {proxy} (from {proxy.variable}) {problem}")
        self.proxy = proxy
        self.advice = advice
        self.status = status
        self.is_final = is_final or (status is not None and status not in retry.STATUSES)

    def hint(self, host: str) -> str | None:
        if addresses.is_untrusted(self):
            return None
        if self.advice:
            return self.advice
        return f"check or unset {self.proxy.variable}; to reach {host} directly, add it to {self.proxy.exceptions}"


def open_tunnel(
    connected: socket.socket, proxy: Proxy, host: str, port: int, trust: ssl.SSLContext | None, timeout: float | None
) -> socket.socket:
    """Connect to a host through a proxy. `connected` is a socket that is connected to the proxy.

    If the connection fails, the socket is closed. `timeout` is the limit for each step, in seconds. Raises ProxyFailure
    if the proxy does not make the connection.
    """
    try:
        connected.settimeout(timeout)
        if proxy.scheme == "https":
            assert trust is not None
            connected = trust.wrap_socket(connected, server_hostname=proxy.host)
        if proxy.scheme.startswith("socks"):
            _socks(connected, proxy, host, port)
        else:
            _http(connected, proxy, host, port, timeout)
    except BaseException:
        connected.close()
        raise
    return connected


@contextmanager
def blaming(proxy: Proxy) -> Iterator[None]:
    """Convert errors of the `with` block to ProxyFailure.

    The block connects to the proxy, and asks the proxy for a connection.
    """
    try:
        yield
    except (TimeoutError, TimeoutException) as error:
        raise ProxyFailure(proxy, "does not answer in time") from error
    except (ReadError, RemoteProtocolError) as error:
        raise ProxyFailure(proxy, f"failed: {addresses.plain(error)}") from error
    except (socket.gaierror, UnicodeError) as error:
        raise ProxyFailure(proxy, f"has no address: {reason(error)}") from error
    except OSError as error:
        if (failure := addresses.tls_failure(error)) is None:
            raise ProxyFailure(proxy, f"cannot be reached: {reason(error)}") from error
        advice = f"if the proxy speaks plain HTTP, begin {proxy.variable} with http://"
        raise ProxyFailure(proxy, f"cannot be used with TLS: {failure[0]}", advice=advice) from error


def _http(connected: socket.socket, proxy: Proxy, host: str, port: int, timeout: float | None) -> None:
    target = f"[{host}]:{port}".encode() if ":" in host else f"{host}:{port}".encode()
    fields = [(b"Host", target)]
    if proxy.has_credentials:
        secret = f"{proxy.user}:{proxy.password}".encode()
        fields.append((b"Proxy-Authorization", b"Basic " + b64encode(secret)))
    connection = Connection(connected)
    connection.send(request_head(b"CONNECT", target, fields), timeout)
    head = connection.head(timeout)
    if head.status == 407:
        raise _not_authorized(proxy, head.status)
    if not 200 <= head.status < 300:
        raise ProxyFailure(proxy, f"did not make the connection: it answered HTTP {head.status}", status=head.status)
    if not connection.leave(True):
        raise ProxyFailure(proxy, "failed: it sent more than its answer")


def _socks(connected: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    methods = bytes([_NO_CREDENTIALS, _PASSWORD]) if proxy.has_credentials else bytes([_NO_CREDENTIALS])
    connected.sendall(bytes([5, len(methods)]) + methods)
    version, method = _received(connected, 2)
    if version != 5:
        raise ProxyFailure(proxy, "failed: it does not speak SOCKS 5", is_final=True)
    if method == _PASSWORD and proxy.has_credentials:
        connected.sendall(b"\x01" + _counted(proxy.user) + _counted(proxy.password))
        _, status = _received(connected, 2)
        if status != 0:
            raise _not_authorized(proxy)
    elif method != _NO_CREDENTIALS:
        raise _not_authorized(proxy)
    if len(host) > MAX_SOCKS_BYTES:
        raise ProxyFailure(proxy, "cannot make the connection: the name of the host is too long", is_final=True)
    connected.sendall(b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big"))
    _, reply, _, kind = _received(connected, 4)
    if reply != 0:
        why = _REPLIES.get(reply, f"it replied {reply}")
        raise ProxyFailure(proxy, f"did not make the connection: {why}", is_final=reply == _RULES)
    size = {1: 4, 4: 16}.get(kind) or _received(connected, 1)[0]
    _received(connected, size + 2)  # the address and the port that the proxy uses


def _socks_address(host: str) -> bytes:
    """Encode a host for SOCKS. A host name is not resolved here, because the proxy looks up its address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return b"\x03" + _counted(host)
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed


def _counted(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data


def _received(connected: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (piece := connected.recv(size - len(data))):
            raise ReadError("it closed the connection without an answer")
        data += piece
    return data


def _not_authorized(proxy: Proxy, status: int | None = None) -> ProxyFailure:
    if proxy.has_credentials:
        problem = "does not accept its user name and password"
        return ProxyFailure(proxy, problem, advice=f"check them in {proxy.variable}", status=status, is_final=True)
    form = f"{proxy.variable}={proxy.scheme}://USER:PASSWORD@{proxy}"
    problem = "asks for a user name and a password"
    return ProxyFailure(proxy, problem, advice=f"set {form}", status=status, is_final=True)
