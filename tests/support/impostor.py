"""A process that holds the lock of a service, or listens on its socket, and is not the service of this version.

Arguments: the directory of the data; the answer to each request ("" to read and never answer, "-" not to listen); and
the process ID that the lock file has ("" for its own, "-" not to take the lock).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from svcctl.io import unix_sockets
from svcctl.service.process import ServiceFiles, hold_lock


def main() -> None:
    directory, answer, claimed = sys.argv[1:]
    files = ServiceFiles(Path(directory))
    if claimed != "-":
        lock = hold_lock(files)
        if claimed:
            os.ftruncate(lock, 0)
            os.pwrite(lock, claimed.encode(), 0)
        os.utime(lock, (0, 0))  # it took the lock long ago
    listener = None if answer == "-" else unix_sockets.listen(files.socket)
    print("ready", flush=True)
    connections = []
    while listener is not None:
        connection, _ = listener.accept()
        if connection.recv(1 << 16) and answer:  # or the other side only looks whether it can connect
            connection.sendall(answer.encode())
            connection.close()
        connections.append(connection)
    signal.pause()


if __name__ == "__main__":
    main()
