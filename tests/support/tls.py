"""A service over TLS whose connections end in every way, properly or not."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.scripted import Script, read_request
from support.terminal import need


@pytest.fixture(scope="session")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file that can be trusted."""
    need("openssl")
    path = tmp_path_factory.mktemp("tls") / "service.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -subj /CN=service"
    command = [
        "openssl",
        *made.split(),
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(path),
        "-out",
        str(path),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return path


def notify(connection: ssl.SSLSocket) -> None:
    """End TLS with close_notify."""
    connection.settimeout(0.1)
    with suppress(OSError):
        connection.unwrap()  # sends it, then waits for the client's
    connection.close()


def close(connection: ssl.SSLSocket) -> None:
    """Close the connection without a word, as anybody between client and service can."""
    socket.socket(fileno=connection.detach()).close()


def cut_record(connection: ssl.SSLSocket) -> None:
    """Close the connection in the middle of a record."""
    with socket.socket(fileno=connection.detach()) as plain:
        plain.sendall(b"\x17\x03\x03\x00\x50part")


def reset(connection: ssl.SSLSocket) -> None:
    """Break the connection."""
    with socket.socket(fileno=connection.detach()) as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass
class TlsScript(Script):
    """A script whose connections are reset when `seen` is set: a reset destroys what was sent and not read."""

    seen: threading.Event = field(default_factory=threading.Event)

    def see(self, _: object) -> None:
        """Note that the client has read an answer: an observer of a Client."""
        self.seen.set()


Ending = Callable[[ssl.SSLSocket], None]
ENDINGS: dict[str, Ending] = {"notify": notify, "close": close, "cut record": cut_record, "reset": reset}


@contextmanager
def tls_service(pem: Path, ending: Ending, *answers: bytes) -> Iterator[TlsScript]:
    """A service that sends these answers in turn (the last one is repeated), one a connection, which ends so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    listener = socket.create_server(("127.0.0.1", 0))
    script = TlsScript(list(answers), f"https://127.0.0.1:{listener.getsockname()[1]}")

    def serve() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            connection = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
            with connection, suppress(OSError):
                connection.do_handshake()
                script.requests.append(read_request(connection))
                script.seen.clear()
                connection.sendall(script.answers.pop(0) if len(script.answers) > 1 else script.answers[0])
                if ending is reset:
                    script.seen.wait(10)
                ending(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield script
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        listener.close()
