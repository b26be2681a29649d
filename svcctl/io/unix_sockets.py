"""Unix sockets with paths of any length, and the process ID of the other end of a connection."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_PATH_BYTES = 103
"""Every system accepts socket paths of at most this number of bytes. Linux accepts 107 bytes."""
_SOL_LOCAL, _LOCAL_PEERPID = 0, 2
"""Numbers of socket options of macOS, for which Python has no names."""


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """Yield the address for the socket at a path.

    For a long path on Linux, the address is a shorter path that contains a descriptor of the directory. Both paths lead
    to the same socket. On other systems, the use of a long path raises OSError.
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
    """Connect to the socket at a path.

    The timeout is in seconds. The timeout also applies to later operations of the connection.
    """
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
    """Listen on a socket at a path. Only this user has access to the socket.

    An existing file at the path is replaced.
    """
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
    """Return the ID of the process at the other end of a connection. The ID comes from the kernel.

    Returns None if the system does not report the ID, or if the other process has no ID in this process's namespace.
    """
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        process, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    elif sys.platform == "darwin":
        process = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
    else:
        process = 0
    return process or None
