"""The sockets on which the service listens: its Unix socket, and a TCP socket with --listen."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from svcctl.errors import UsageError, reason
from svcctl.io import unix_sockets

MAX_PORT = 65_535


class UnixListener:
    """A Unix socket on which the service listens.

    The process holds the service's lock, so no other process uses a file that is already at the socket's path. Raises
    UsageError when the socket cannot be made the first time.
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
        """Listen on a new `socket`. Its file replaces any other file at the path. Raises OSError if that fails."""
        self.socket = unix_sockets.listen(self.path)
        self._file = self.path.stat()

    def is_found(self) -> bool:
        """Whether clients find this socket at its path: its file was neither deleted nor replaced."""
        try:
            return os.path.samestat(self.path.stat(), self._file)
        except OSError:
            return False

    def close(self) -> None:
        self.socket.close()


def tcp_listener(listen: str) -> socket.socket:
    """Listen on a TCP socket at HOST:PORT; port 0 means any free port. Raises UsageError if that is not possible."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--listen '{listen}' is not of the form HOST:PORT")
    if int(port) > MAX_PORT:
        raise UsageError(f"--listen '{listen}' names no port: ports are 0 to {MAX_PORT}")
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
