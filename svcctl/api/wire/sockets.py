"""Connect to a host or a Unix socket, through a proxy if the environment names one, and with TLS for https."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from svcctl.api.wire.failures import ConnectError, ConnectTimeout, InvalidURL, UnsupportedProtocol
from svcctl.io import unix_sockets

if TYPE_CHECKING:
    import ssl

    from svcctl.api.wire.layered_tls import LayeredTLS
    from svcctl.api.wire.proxies import Proxy

    SecureConnection = ssl.SSLSocket | LayeredTLS

PORTS = {"http": 80, "https": 443}
MAX_URL_CHARS = 65_536


class Origin(NamedTuple):
    """The scheme, host and port of a URL. A connection to an origin can be used for all URLs with this origin."""

    secure: bool
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The host and the port, as in the header Host."""
        host = f"[{self.host.replace('%', '%25')}]" if ":" in self.host else self.host
        return host if self.port == PORTS["https" if self.secure else "http"] else f"{host}:{self.port}"


KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 20, "TCP_KEEPCNT": 6}
"""The settings of TCP keep-alive.

The values are the seconds of silence before the first probe, the seconds between probes, and the number of probes that
may be lost. So the kernel notices a dead connection after three minutes.
"""


def origin(url: str) -> Origin:
    """Return the origin of a URL.

    Raises InvalidURL for a text that is not a URL. Raises UnsupportedProtocol for a scheme other than http and https.
    """
    if len(url) > MAX_URL_CHARS or any(char.isascii() and not char.isprintable() for char in url):
        raise InvalidURL("the URL is too long, or has control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidURL(str(error)) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise UnsupportedProtocol("the URL is not of http or https")
    host = _in_ascii(parts.hostname).replace("%25", "%")  # in URLs, the % of an IPv6 zone is %25
    return Origin(parts.scheme == "https", host, port or PORTS[parts.scheme])


def _in_ascii(host: str) -> str:
    """Return a host in ASCII, for the lookup of its address.

    Raises InvalidURL for a name or an address that cannot exist.
    """
    if re.fullmatch(r"(?:[0-9]+\.){3}[0-9]+", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError as error:
            raise InvalidURL(str(error)) from None
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host).decode("ascii")
    except idna.IDNAError as error:
        raise InvalidURL(str(error)) from None


_NO_PROXIES: Mapping[str, str] = {}


class Route(NamedTuple):
    """Opens connections to hosts, directly or through a proxy.

    If `path` is set, every connection goes to the Unix socket at this path. `environment` contains the variables that
    may name a proxy. If no variable names a proxy, hosts are reached directly. `trust` is the context for TLS.
    """

    trust: ssl.SSLContext | None = None
    path: str | None = None
    environment: Mapping[str, str] = _NO_PROXIES

    def proxy(self, origin: Origin) -> Proxy | None:
        """Return the proxy for an origin; None if the origin is reached directly.

        Plain http is always direct, because its host is this machine.
        """
        if self.path or not origin.secure:
            return None
        from svcctl.api.wire.proxies import proxy_for

        return proxy_for(origin.host, origin.port, self.environment)

    def open(self, origin: Origin, timeout: float | None) -> socket.socket:
        """Connect to an origin, but do not begin TLS with its service. `timeout` limits each step, in seconds.

        Raises OSError or UnicodeError if no connection can be made. Raises ProxyFailure if a proxy is the reason.
        """
        if self.path:
            return unix_sockets.connect(Path(self.path), timeout)
        proxy = self.proxy(origin)
        if proxy is None:
            return _to_host(origin.host, origin.port, timeout)
        from svcctl.api.wire.tunnels import blaming, open_tunnel

        with blaming(proxy):
            connection = _to_host(proxy.host, proxy.port, timeout)
            return open_tunnel(connection, proxy, origin.host, origin.port, self.trust, timeout)

    def secure(self, connection: socket.socket, origin: Origin, timeout: float | None) -> SecureConnection:
        """Begin TLS with the service of an origin over an open connection. Raises OSError if the handshake fails."""
        assert self.trust is not None
        connection.settimeout(timeout)
        from ssl import SSLSocket

        if not isinstance(connection, SSLSocket):
            return self.trust.wrap_socket(connection, server_hostname=origin.host)
        from svcctl.api.wire.layered_tls import LayeredTLS

        return LayeredTLS(connection, self.trust, origin.host)

    def dial(self, origin: Origin, timeout: float | None) -> socket.socket | LayeredTLS:
        """Connect to an origin, with TLS for https. `timeout` is the limit for each step, in seconds.

        Raises ConnectTimeout, ConnectError or ProxyFailure if no connection can be made.
        """
        try:
            connection = self.open(origin, timeout)
            try:
                return self.secure(connection, origin, timeout) if origin.secure else connection
            except BaseException:
                connection.close()
                raise
        except TimeoutError:
            raise ConnectTimeout("no connection in time") from None
        except (OSError, UnicodeError) as error:  # a host name that cannot exist raises UnicodeError
            raise ConnectError(str(error)) from error


def _to_host(host: str, port: int, timeout: float | None) -> socket.socket:
    connection = socket.create_connection((host, port), timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # some systems lack some of these options
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection
