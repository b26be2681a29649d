"""Server processes of peers: started in order, ready when they answer their own protocol, stopped with the tests."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

HOST = "127.0.0.1"
LOG_TAIL = 4000
RESERVATIONS: list[socket.socket] = []
"""Sockets that reserve the ports of `free_port` for this process."""


class PeerFailed(Exception):
    """A server did not start; the message ends with its last log lines."""


class Server(Protocol):
    """Can be stopped and started again at the same address; a second start or stop does nothing."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


def free_port(ports: Sequence[int] | None = None) -> int:
    """Return a free port that no other call gets while this process lives, in whatever process of the tests.

    Without `ports` it is outside the range that the system hands out by itself. While a server is down, an outgoing
    connection could take a port of that range, even the client that tries this very port: it would then be connected
    to itself.
    """
    if ports is None:
        bottom = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
        ports = range(10_000, max(bottom, 20_000))
    for port in (random.SystemRandom().choice(ports) for _ in range(1000)):
        # A server needs a second or more until it listens. Until then, only the name of this socket shows other
        # processes that the port is taken. The system forgets the name when the process ends.
        reservation = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                reservation.bind(f"\0svcctl-tests-port-{port}")
                probe.bind((HOST, port))
            except OSError:
                reservation.close()
                continue
        RESERVATIONS.append(reservation)
        return port
    raise PeerFailed("no port is free")


@dataclass(slots=True)
class Process:
    """A server process in its own process group; its output goes to `<directory>/<name>.log`.

    The server ends at the latest with the thread that started it. `ready` sends the server a request over its own
    protocol, and raises one of `not_yet` while there is no answer.
    """

    name: str
    arguments: Sequence[str | Path]
    directory: Path
    ready: Callable[[], object]
    environment: Mapping[str, str] = field(default_factory=dict)
    not_yet: tuple[type[Exception], ...] = (OSError,)
    seconds_to_start: float = 60
    stop_signal: signal.Signals = signal.SIGTERM
    child: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    def start(self) -> None:
        if self.child is not None:
            return
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                # When this process is killed, only the system can end the server.
                ["setpriv", "--pdeathsig", "KILL", *self.arguments],
                cwd=self.directory,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + self.seconds_to_start
        while True:
            try:
                self.ready()
                return
            except self.not_yet as problem:
                reason = f"exited with {code}" if (code := self.child.poll()) is not None else f"{problem}"
                if code is not None or time.monotonic() > deadline:
                    self.stop()
                    raise PeerFailed(f"{self.name} did not start: {reason}\n{self._tail()}") from problem
            time.sleep(0.02)  # between two requests to the server; no event says that it is ready

    def stop(self) -> None:
        if self.child is None:
            return
        self._signal(self.stop_signal)
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(10)
        self._signal(signal.SIGKILL)
        self.child.wait()
        self.child = None

    def kill(self) -> None:
        """End the server as a crash would."""
        self._signal(signal.SIGKILL)
        if self.child is not None:
            self.child.wait()
            self.child = None

    def _signal(self, number: signal.Signals) -> None:
        if self.child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.child.pid, number)

    def _tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:]


@dataclass(frozen=True, slots=True)
class Together:
    """Servers that make up one peer: starts them in order, stops them in reverse."""

    servers: Sequence[Server]

    def start(self) -> None:
        for server in self.servers:
            server.start()

    def stop(self) -> None:
        for server in reversed(self.servers):
            server.stop()


@contextmanager
def running(server: Server) -> Iterator[None]:
    """Start the server, and stop it at the end of the block, however the block ends."""
    try:
        server.start()
        yield
    finally:
        server.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A server that can be stopped and started again at the same address with its data."""

    server: Server

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()

    @contextmanager
    def down(self) -> Iterator[None]:
        """Stop the peer inside the block and start it again afterwards, for the next tests too."""
        self.stop()
        try:
            yield
        finally:
            self.start()
