"""A proxy inside the service that connects only to allowed hosts. Libraries that follow redirects use this proxy.

The proxy checks each connection, and connects only to an address that it has checked. So a library cannot reach another
host through a redirect, or through a name with changing addresses. The proxy listens on a port of the loopback
interface.

The proxy has no password, because libraries do not send a password after a redirect. Other users of the machine can use
the proxy, but the proxy gives them access only to hosts that they can also reach without it.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit

from svcctl.errors import SvcctlError, Unavailable
from svcctl.service.hosts.allowed_hosts import AllowedHosts, shown

MAX_HEAD_BYTES = 1 << 16
PIECE_BYTES = 1 << 17
CONNECT_SECONDS = 5.0
SEND_SECONDS = 60.0
"""The maximum time, in seconds, for a client or a server to accept bytes.

A client may also take this time to send the head of a request.
"""
CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class CheckingProxy:
    """The proxy of one destination. A connection carries either a CONNECT for https, or one http request."""

    def __init__(self, allowed: AllowedHosts) -> None:
        self._allowed = allowed
        self._failure: SvcctlError | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def failure(self) -> SvcctlError | None:
        """Return the reason why the latest attempt to connect failed. Return None if this attempt succeeded."""
        return self._failure

    def close(self) -> None:
        """Close the listener and all connections."""
        with self._lock:
            self._closed = True
            for connection in (self._listener, *self._open):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with self._listener, suppress(OSError):
            while not self._closed:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), name="proxy", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, ValueError), self._tracked(client):
            client.settimeout(SEND_SECONDS)
            head, rest = _head(client)
            request, *fields = head.split("\r\n")
            method, target, version = request.split(" ")
            tunnel = method == "CONNECT"
            url = urlsplit(f"//{target}" if tunnel else target)
            server = self._connected(url.hostname or "", url.port or (443 if tunnel else 80))
            if server is None:
                client.sendall(REFUSED)
                return
            with self._tracked(server):
                if tunnel:
                    client.sendall(CONNECTED)
                    _pass_on(client, server, rest, None)
                else:
                    path = "/" + target.partition("://")[2].partition("/")[2]
                    lines = [f"{method} {path} {version}", *filter(_is_for_server, fields), "connection: close"]
                    server.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
                    _pass_on(client, server, rest, _body_bytes(fields))

    def _connected(self, host: str, port: int) -> socket.socket | None:
        """Connect to a checked address of the host. If no connection is possible, keep the reason and return None."""
        try:
            for address in self._allowed.addresses(host, port):
                try:
                    server = socket.create_connection((address, port), CONNECT_SECONDS)
                except OSError as error:
                    reason = error.strerror or "no answer in time"
                    self._failure = Unavailable(f"no connection to {shown(host, port)}: {reason}")
                else:
                    self._failure = None
                    return server
        except SvcctlError as error:
            self._failure = error
        return None

    @contextmanager
    def _tracked(self, connection: socket.socket) -> Iterator[None]:
        """Close a connection at the end of the block, or as soon as the proxy is closed."""
        with closing(connection):
            with self._lock:
                if self._closed:
                    raise OSError("the proxy is closed")
                self._open.add(connection)
            try:
                yield
            finally:
                with self._lock:
                    self._open.discard(connection)


def _head(client: socket.socket) -> tuple[str, bytes]:
    """Return the head of a request, and the bytes that follow the head.

    Raises ValueError if there is no complete head.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(PIECE_BYTES)
        if not piece or len(data) > MAX_HEAD_BYTES:
            raise ValueError("no head")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def _is_for_server(field: str) -> bool:
    return not field.lower().startswith(("proxy-", "connection:", "keep-alive:"))


def _body_bytes(fields: Iterable[str]) -> int:
    """Return the size of a request's body in bytes. Raises ValueError if the stated size is not a number."""
    sizes = (field.partition(":")[2] for field in fields if field.lower().startswith("content-length:"))
    return int(next(sizes, "0"))


def _pass_on(client: socket.socket, server: socket.socket, first: bytes, size: int | None) -> None:
    """Pass on bytes between client and server until one of them closes its connection.

    `first` has the bytes that the client has already sent. `size` is the number of bytes that the client may send,
    including `first`. If the client sends more than `size` bytes, the function returns. If `size` is None, there is no
    limit.
    """
    server.settimeout(SEND_SECONDS)
    server.sendall(first[:size])
    sent = len(first)
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, server)
        selector.register(server, selectors.EVENT_READ, client)
        while size is None or sent <= size:
            for key, _ in selector.select():
                source = client if key.data is server else server
                piece = source.recv(PIECE_BYTES)
                if not piece:
                    return
                if source is client:
                    sent += len(piece)
                    if size is not None and sent > size:
                        return
                key.data.sendall(piece)
