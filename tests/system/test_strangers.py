"""Clients without credentials cannot fill the memory of a service that listens, whatever they send."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.shells import Shell

pytestmark = pytest.mark.slow

MAX_ENDLESS_GROWTH_KB = 40_000
"""An endless request has 50 MB, of which a service keeps at most 20 MB."""
MAX_GROWTH_KB = 130_000
"""The objects of 1000 connections take 40 MB. On a busy machine, a piece of 64 kB may wait on each of them.

A service that keeps whole bodies needs 900 MB.
"""
ENDLESS_BYTES = 50_000_000
CONNECTIONS = 1000
BODY_BYTES = 60_000
POST = b"POST /search/query HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Listening:
    address: tuple[str, int]
    api_key: str
    process: subprocess.Popen[bytes]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=20)

    def peak(self) -> int:
        """The most memory that the service has had since `forget`, in kB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0])

    def forget(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def signed(self, key: str) -> bytes:
        """The head of a request whose timestamp is right and whose signature is not."""
        stamp = int(time.time() * 1000)
        names = f"x-svc-apikey: {key}\r\nx-svc-timestamp: {stamp}\r\nx-svc-sign: 0\r\nContent-Length: 1000000\r\n\r\n"
        return POST + names.encode()


@pytest.fixture(scope="module")
def listening() -> Iterator[Listening]:
    with tempfile.TemporaryDirectory(prefix="svcctl-") as home:
        shell = Shell(Path(home), {"SVCCTL_DEMO": "0"})
        process = shell.start("service", "serve", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
        assert process.stderr is not None
        line = next(line for line in process.stderr if b"listening" in line).decode()
        host, _, port = line.split()[-1].rpartition(":")
        credentials = json.loads((shell.home / "data" / "credentials.json").read_text())
        yield Listening((host, int(port)), credentials["local"]["api_key"], process)
        process.send_signal(signal.SIGTERM)
        process.stderr.close()
        process.wait(20)


def endless(first: bytes, piece: bytes) -> Callable[[Listening], None]:
    """A request that goes on until the service closes the connection."""

    def attack(listening: Listening) -> None:
        with listening.connect() as connection:
            sent = 0
            with suppress(OSError):
                connection.sendall(first)
                connection.settimeout(2)
                while sent < ENDLESS_BYTES:
                    sent += connection.send(piece)

    return attack


def many(request: Callable[[Listening], bytes]) -> Callable[[Listening], None]:
    """As much of a request as the service takes, on many connections at once."""

    def attack(listening: Listening) -> None:
        with ExitStack() as closing:
            for _ in range(CONNECTIONS):
                connection = closing.enter_context(listening.connect())
                connection.setblocking(False)
                with suppress(OSError):
                    connection.send(request(listening))
            time.sleep(0.5)  # the service reads what has arrived

    return attack


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(endless(CHUNKED + b"0\r\n", b"X-A: b\r\n" * 8000), id="trailers"),
        pytest.param(endless(CHUNKED + b"0\r\nX-A: ", b"a" * 65_536), id="the value of a trailer"),
        pytest.param(endless(CHUNKED + b"0\r\n", b"a" * 65_536), id="the name of a trailer"),
        pytest.param(endless(CHUNKED + b"0\r\n", b"a:\r\n" * 16_000), id="tiny trailers"),
        pytest.param(endless(CHUNKED, b"1\r\na\r\n" * 10_000), id="tiny chunks"),
        pytest.param(endless(CHUNKED + b"1;", b"a" * 65_536), id="an extension of a chunk"),
        pytest.param(endless(POST + b"x: ", b"a" * 65_536), id="a header"),
        pytest.param(endless(b"GET /", b"a" * 65_536), id="a path"),
        pytest.param(endless(b"", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 3000), id="requests in advance"),
    ],
)
def test_the_memory_stays_as_it_is_during_an_endless_request(
    listening: Listening, attack: Callable[[Listening], None]
) -> None:
    assert growth(listening, attack) < MAX_ENDLESS_GROWTH_KB


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(many(lambda _: POST + b"x: " + b"a" * 64_000), id="large heads"),
        pytest.param(many(lambda to: to.signed("nobody") + b"a" * 900_000), id="bodies of unknown keys"),
    ],
)
def test_many_requests_take_no_more_memory_than_their_connections(
    listening: Listening, attack: Callable[[Listening], None]
) -> None:
    assert growth(listening, attack) < MAX_GROWTH_KB


def test_slow_bodies_of_a_known_key_take_no_more_than_their_bytes(listening: Listening) -> None:
    attack = many(lambda to: to.signed(to.api_key) + b"a" * BODY_BYTES)
    assert growth(listening, attack) < MAX_GROWTH_KB + CONNECTIONS * BODY_BYTES // 1024


def growth(listening: Listening, attack: Callable[[Listening], None]) -> int:
    """The kB by which an attack makes the service larger, which answers afterwards."""
    listening.forget()
    before = listening.peak()
    attack(listening)
    with listening.connect() as connection:
        connection.sendall(b"GET /service/health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
    return listening.peak() - before
