"""A server that accepts connections, reads requests, and never answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Silent:
    """`asked` is set when a client has sent something."""

    port: int
    sockets: list[socket.socket]
    asked: threading.Event = field(default_factory=threading.Event)

    def hang_up(self) -> None:
        """Close all connections and accept no more."""
        for one in self.sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def silent() -> Iterator[Silent]:
    """Listens on a port of this machine; at the end of the block all connections are closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Silent(listener.getsockname()[1], [listener])

        def hear(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                while connection.recv(1 << 16):
                    server.asked.set()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    server.sockets.append(connection)
                    threading.Thread(target=hear, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server
        finally:
            server.hang_up()
