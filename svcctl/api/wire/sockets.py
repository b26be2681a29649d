"""How sockets are opened: to a host or a Unix socket, through a proxy if the environment names one, with TLS on top."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import proxy_bypass

import httpx

from svcctl.api.wire.connection import Connection
from svcctl.api.wire.heads import request_head

if TYPE_CHECKING:
    import ssl

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where requests go; connections to one origin can be used for any of its URLs."""

    secure: bool
    host: str
    port: int


KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 20, "TCP_KEEPCNT": 6}
"""Seconds until a silent connection is probed, seconds between probes, and how many may be lost: a dead connection is
noticed after three minutes, however long an answer may take."""


def origin(url: httpx.URL) -> Origin:
    """The origin of a URL; UnsupportedProtocol when it is not of http or https."""
    if url.scheme not in PORTS or not url.host:
        raise httpx.UnsupportedProtocol("the URL is not of http or https")
    return Origin(url.scheme == "https", url.raw_host.decode("ascii"), url.port or PORTS[url.scheme])


@dataclass(frozen=True, slots=True)
class Route:
    """How hosts are reached; `path` is the path of a Unix socket that stands for all of them."""

    trust: ssl.SSLContext | None = None
    path: str | None = None
    proxies: Mapping[str, str] | None = None
    """The URLs of proxies by `https` and `all`, as the environment names them; None to connect directly."""

    def proxy(self, origin: Origin) -> SplitResult | None:
        """The proxy in front of an origin. Plain http stays on this machine, so it never takes one."""
        if self.path or not self.proxies or not origin.secure:
            return None
        if proxy_bypass(f"{origin.host}:{origin.port}") or proxy_bypass(origin.host):
            return None
        url = self.proxies.get("https") or self.proxies.get("all")
        return urlsplit(url if "://" in url else f"http://{url}") if url else None

    def dial(self, origin: Origin, timeout: float | None) -> socket.socket:
        """A connection on which the request of an origin can be sent; `timeout` is for each step, in seconds."""
        proxy = self.proxy(origin)
        try:
            connection = self._connected(origin, proxy, timeout)
            try:
                if proxy is not None:
                    _tunnel(connection, origin, proxy, timeout)
                connection.settimeout(timeout)
                if origin.secure:
                    assert self.trust is not None
                    return self.trust.wrap_socket(connection, server_hostname=origin.host)
            except BaseException:
                connection.close()
                raise
        except TimeoutError:
            raise httpx.ConnectTimeout("no connection in time") from None
        except (OSError, UnicodeError) as error:  # an impossible host name raises UnicodeError
            raise httpx.ConnectError(str(error)) from error
        return connection

    def _connected(self, origin: Origin, proxy: SplitResult | None, timeout: float | None) -> socket.socket:
        if self.path:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.settimeout(timeout)
                connection.connect(self.path)
            except BaseException:
                connection.close()
                raise
            return connection
        to = (origin.host, origin.port) if proxy is None else (proxy.hostname or "", proxy.port or PORTS["http"])
        connection = socket.create_connection(to, timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEP_ALIVE.items():
            if hasattr(socket, name):  # not on every system
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return connection


def _tunnel(connected: socket.socket, origin: Origin, proxy: SplitResult, timeout: float | None) -> None:
    """Ask a proxy for a connection to the origin. ProxyError when the proxy makes none."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    target = f"{host}:{origin.port}".encode()
    fields = [(b"Host", target)]
    if proxy.username or proxy.password:
        secret = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
        fields.append((b"Proxy-Authorization", b"Basic " + b64encode(secret.encode())))
    connection = Connection(connected)
    try:
        connection.send(request_head(b"CONNECT", target, fields), timeout)
        head = connection.head(timeout)
    except httpx.TimeoutException:
        raise TimeoutError from None
    except (httpx.ReadError, httpx.RemoteProtocolError) as error:
        raise httpx.ProxyError(f"the proxy failed: {error}") from error
    if not 200 <= head.status < 300:
        raise httpx.ProxyError(f"the proxy answered {head.status}")
    if not connection.leave(True):
        raise httpx.ProxyError("the proxy sent more than its answer")
