"""Unix sockets: at paths of any length, and with the process that listens at the other end."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_PATH_BYTES = 103
"""The longest path that every system takes for a socket; Linux takes 107 bytes."""
_SOL_LOCAL, _LOCAL_PEERPID = 0, 2
"""Options of macOS, for which Python has no names."""


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """The address of the socket at a path. A long path is replaced by one through a descriptor of its directory.

    The socket is in its directory all the same, so its place depends on nothing but the path. Systems without /proc
    refuse a long path with OSError.
    """
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}" if sys.platform == "linux" else str(path)
    finally:
        os.close(directory)


def connect(path: Path, timeout: float | None) -> socket.socket:
    """Connect to the socket at a path; `timeout` is also that of the connection."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        with _address(path) as address:
            connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def listen(path: Path) -> socket.socket:
    """Listen at a path, for this user only. A file that is there is replaced."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        with _address(path) as address:
            listener.bind(address)
        path.chmod(0o600)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def peer_process(connection: socket.socket) -> int | None:
    """The ID of the process that listens at the other end, as the kernel knows it.

    None where the system does not say it, or the process has no ID in this process's namespace.
    """
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        process, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    elif sys.platform == "darwin":
        process = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
    else:
        process = 0
    return process or None
