"""A service that sends exactly the bytes that a test scripts, over a real socket."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

LOST = b""
"""An answer that never comes: the request is read, then the connection closes."""


@dataclass
class Script:
    """The answers to requests in turn (the last one is repeated), and the requests that were received."""

    answers: list[Any]
    url: str = ""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return [line for line, _, _ in self.requests]

    @property
    def access(self) -> dict[str, str]:
        """The variables of a command that asks this service, once for each request."""
        return {
            "SVCCTL_BASE_URL": self.url,
            "SVCCTL_API_KEY": "key",
            "SVCCTL_API_SECRET": "secret",
            "SVCCTL_RETRIES": "0",
        }


def head(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Connection: close", *headers, "", ""]).encode()


def http(status: str, body: str = "", *headers: str) -> bytes:
    data = body.encode()
    return head(status, f"Content-Length: {len(data)}", *headers) + data


def ok(body: str) -> bytes:
    return http("200 OK", body, "Content-Type: application/json")


Serve = Callable[..., Script]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server for some answers: bytes sent at once, or a list of bytes sent one after the other."""
    servers: list[tuple[socket.socket, threading.Thread]] = []

    def start(*answers: Any) -> Script:
        listener = socket.create_server(("127.0.0.1", 0))
        script = Script(list(answers), f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=answer_all, args=(listener, script))
        thread.start()
        servers.append((listener, thread))
        return script

    yield start
    for listener, thread in servers:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        listener.close()


def answer_all(listener: socket.socket, script: Script) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            script.requests.append(read_request(connection))
            answer = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            try:
                for piece in [answer] if isinstance(answer, bytes) else answer:
                    connection.sendall(piece)
            except OSError:
                continue


def read_request(connection: socket.socket) -> tuple[str, dict[str, str], bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or b"\r\n\r\n"
    start, _, body = data.partition(b"\r\n\r\n")
    line, *lines = start.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return line.removesuffix(" HTTP/1.1"), headers, body
