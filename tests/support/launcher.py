"""Runs svcctl in forks of a process that has imported it, so that a command starts in 10 ms instead of 100.

Each fork has its own environment, directory and standard streams.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

PACKAGES = [f"svcctl.{name}" for name in ("api", "cli", "dates", "profiles", "terminal")]
LIBRARIES = ["msgpack", "rich.cells", "ssl", "yaml", "zoneinfo"]
STATUS = struct.Struct("i")
MEASURED = {name: os.environ[name] for name in ("COVERAGE_PROCESS_CONFIG",) if name in os.environ}
"""What the environment of each process of ours has, so that `coverage run -m pytest` measures all of them."""


def can_run(environment: Mapping[str, str]) -> bool:
    """Whether a fork behaves like a new process. It does not if the interpreter reads a variable of the environment."""
    special = (name for name in environment if name.startswith(("PYTHON", "LC_")))
    return hasattr(os, "pidfd_open") and environment.get("LANG") == "C.UTF-8" and not any(special)


def run(
    arguments: Sequence[str], environment: Mapping[str, str], directory: Path, stdin: bytes, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as `subprocess.run` does; stdin, stdout and stderr are pipes."""
    request = json.dumps([[*arguments], {**environment}, str(directory)]).encode("utf-8", "surrogatepass")
    (input_, feed), (out, output), (err, errors), (status, ended) = (os.pipe() for _ in range(4))
    try:
        _launcher().send(request, [input_, output, errors, ended])
    finally:
        for given in (input_, output, errors, ended):
            os.close(given)
    (pid,) = STATUS.unpack(os.read(status, STATUS.size))
    feeder = threading.Thread(target=_feed, args=(feed, stdin), daemon=True)
    feeder.start()
    read = {out: bytearray(), err: bytearray(), status: bytearray()}
    until = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for end in read:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                assert isinstance(key.fileobj, int)
                if part := os.read(key.fileobj, 1 << 16):
                    read[key.fileobj] += part
                else:
                    selector.unregister(key.fileobj)
        late = bool(selector.get_map())
    for end in read:
        os.close(end)
    if late:
        os.kill(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired([*arguments], timeout, bytes(read[out]), bytes(read[err]))
    (code,) = STATUS.unpack(bytes(read[status]))
    return subprocess.CompletedProcess([*arguments], code, bytes(read[out]), bytes(read[err]))


def _feed(end: int, stdin: bytes) -> None:
    try:
        with open(end, "wb") as pipe:
            pipe.write(stdin)
    except BrokenPipeError:  # the command does not read all of stdin
        pass


class _Launcher:
    """The process that is forked. It has no threads, because a fork would lose them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        tests = str(Path(__file__).parents[1])
        paths = [tests, str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": os.pathsep.join(paths), **MEASURED}
        with theirs:
            command = [sys.executable, "-m", "support.launcher", str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])

    def send(self, request: bytes, streams: Sequence[int]) -> None:
        with self._lock:
            socket.send_fds(self._socket, [request], streams)


@cache
def _launcher() -> _Launcher:
    return _Launcher()


def _serve(requests: socket.socket) -> tuple[list[str], dict[str, str]] | None:
    """Fork for each request. Returns in a fork, with its arguments and environment; in the parent, None at the end."""
    watched: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not requests:
                    assert isinstance(key.fileobj, int)
                    pid, ended = watched.pop(key.fileobj)
                    selector.unregister(key.fileobj)
                    os.close(key.fileobj)
                    os.write(ended, STATUS.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                    os.close(ended)
                    continue
                data, streams, _, _ = socket.recv_fds(requests, 1 << 20, 4)
                if not data:
                    return None
                *standard, ended = streams
                if pid := os.fork():
                    os.write(ended, STATUS.pack(pid))
                    watched[fd := os.pidfd_open(pid)] = pid, ended
                    selector.register(fd, selectors.EVENT_READ)
                    for stream in standard:
                        os.close(stream)
                    continue
                for number, stream in enumerate(standard):
                    os.dup2(stream, number)
                    os.close(stream)
                for other in (ended, requests.fileno(), *watched, *(end for _, end in watched.values())):
                    os.close(other)
                arguments, environment, directory = json.loads(data)
                os.chdir(directory)
                return arguments, environment


def main() -> None:
    """Import svcctl, and run it in forks."""
    import svcctl.cli.main  # noqa: F401 (what every command loads)
    from svcctl import __main__ as process

    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            importlib.import_module(module.name)
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    if (asked := _serve(socket.socket(fileno=int(sys.argv[1])))) is None:
        return
    arguments, environment = asked
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = [process.__file__, *arguments]
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8", "surrogateescape")
    process.main()


if __name__ == "__main__":
    main()
