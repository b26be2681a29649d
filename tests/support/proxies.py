"""Proxies on ports of this machine: HTTP with or without TLS, and SOCKS 5. Whatever host they are asked for, they
connect to one port of this machine."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CONNECTED = b"HTTP/1.1 200 Connected\r\nA: b\r\n\r\n"


@dataclass(frozen=True)
class ProxyServer:
    """A proxy's port, and what it was asked."""

    port: int
    seen: list[bytes] = field(default_factory=list)


Greeting = Callable[[socket.socket, list[bytes]], bool]
"""Answers the first bytes on a connection; returns whether to connect."""


def http(answer: bytes = CONNECTED) -> Greeting:
    def greet(connection: socket.socket, seen: list[bytes]) -> bool:
        data = b""
        while b"\r\n\r\n" not in data and (piece := connection.recv(65536)):
            data += piece
        seen.append(data)
        connection.sendall(answer)
        return answer.startswith(b"HTTP/1.1 200")

    return greet


def answering(answer: bytes) -> Greeting:
    """Answers whatever comes first, and connects to nothing."""

    def greet(connection: socket.socket, seen: list[bytes]) -> bool:
        seen.append(connection.recv(65536))
        connection.sendall(answer)
        return False

    return greet


def socks(*, method: int = 0, status: int = 0, reply: int = 0, version: int = 5) -> Greeting:
    """Records the methods that are offered, the user name and password, and the wanted address."""

    def greet(connection: socket.socket, seen: list[bytes]) -> bool:
        with connection.makefile("rb") as stream:
            seen.append(stream.read(stream.read(2)[1]))
            connection.sendall(bytes([version, method]))
            if method == 2:
                user = stream.read(stream.read(2)[1])
                seen.append(user + b":" + stream.read(stream.read(1)[0]))
                connection.sendall(bytes([1, status]))
            if method == 255 or status or version != 5:
                return False
            kind = stream.read(4)[3]
            seen.append(bytes([kind]) + stream.read({1: 4, 4: 16}.get(kind) or stream.read(1)[0]) + stream.read(2))
            connection.sendall(bytes([5, reply, 0, 3, 4]) + b"here" + b"\0\1")
            return reply == 0

    return greet


@contextmanager
def proxy(greet: Greeting, service_port: int = 1, tls: ssl.SSLContext | None = None) -> Iterator[ProxyServer]:
    """A proxy that serves one connection after the other."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = ProxyServer(listener.getsockname()[1])

    def accept() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            try:
                with tls.wrap_socket(accepted, server_side=True) if tls else accepted as connection:
                    connection.settimeout(10)
                    if greet(connection, server.seen):
                        _pass_on(connection, service_port)
            except OSError:
                continue

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        listener.close()


def _pass_on(connection: socket.socket, port: int) -> None:
    """Copy bytes in both directions until one side ends. One thread does it: two must not share an SSLSocket."""
    with socket.create_connection(("127.0.0.1", port)) as service:
        ways = {connection: service, service: connection}
        while True:
            buffered = isinstance(connection, ssl.SSLSocket) and connection.pending()
            for source in [connection] if buffered else select.select([*ways], [], [], 10)[0]:
                if not (data := source.recv(65536)):
                    return
                ways[source].sendall(data)
