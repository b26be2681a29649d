"""The sockets on which the service listens: always a Unix socket, and with --listen also a TCP socket."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from svcctl.errors import UsageError, reason
from svcctl.io import unix_sockets

MAX_PORT = 65_535


class UnixListener:
    """A Unix socket on which the service listens.

    A file at the socket's path is replaced, so the process must hold the lock of the service. The constructor raises
    UsageError if the socket cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.listen()
        except OSError as error:
            raise UsageError(
                f"the service cannot listen on {path}: {reason(error)}",
                hint="remove what is there, or set SVCCTL_DATA to another directory",
            ) from None

    def listen(self) -> None:
        """Listen on a new socket, which replaces any file at the path. Raises OSError if the socket cannot be made."""
        self.socket = unix_sockets.listen(self.path)
        self._file = self.path.stat()

    def is_found(self) -> bool:
        """Whether clients find this socket at its path.

        A client cannot find a socket if its file was deleted or replaced.
        """
        try:
            return os.path.samestat(self.path.stat(), self._file)
        except OSError:
            return False

    def close(self) -> None:
        self.socket.close()


def tcp_listener(listen: str) -> socket.socket:
    """Listen on a TCP socket at HOST:PORT.

    Port 0 means any free port. Raises UsageError if the socket cannot be made.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--listen '{listen}' is not of the form HOST:PORT")
    if int(port) > MAX_PORT:
        raise UsageError(f"the port in --listen '{listen}' is not between 0 and {MAX_PORT}")
    host = host.strip("[]") or "127.0.0.1"
    try:
        return socket.create_server((host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = (getattr(error, "strerror", None) or str(error)).partition(" (while attempting")[0]
        raise UsageError(f"the service cannot listen on {listen}: {why}", hint="choose another address") from None


def address_of(listener: socket.socket) -> str:
    """Return the address HOST:PORT of a TCP socket."""
    host, port, *_ = listener.getsockname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
