"""Runs svcctl in forks of a process that has imported it, so that a command starts in 10 ms instead of 100.

Each fork has its own environment, directory and standard streams. A service that a command starts, and a command that
imports parts of the service, is a fork of another process, which has imported the service: this saves 0.6 s of CPU.
Services of other processes, as those of `Shell.start`, start as they do for a user.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PACKAGES = [f"svcctl.{name}" for name in ("api", "cli", "dates", "profiles", "terminal")]
LIBRARIES = ["msgpack", "rich.cells", "ssl", "yaml", "zoneinfo"]
IMPORTS_SERVICE = {"accounts", "compact", "queries", "serve"}
"""The commands of `svcctl service` that import the service, and start none."""
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
        environment["OPENBLAS_NUM_THREADS"] = "1"  # otherwise numpy starts threads when it is imported
        with theirs:
            command = [sys.executable, "-m", "support.launcher", str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
        atexit.register(self.close)

    def close(self) -> None:
        """End the process, which reads the end of its requests."""
        self._socket.close()
        self._process.wait()

    def send(self, request: bytes, streams: Sequence[int]) -> None:
        with self._lock:
            socket.send_fds(self._socket, [request], streams)


@cache
def _launcher() -> _Launcher:
    return _Launcher()


def _serve(requests: socket.socket, services: socket.socket | None = None) -> tuple[list[str], dict[str, str]] | None:
    """Fork for each request. Returns in a fork, with its arguments and environment; in the parent, None at the end.

    A descriptor beside the standard streams is the last argument of the fork. A command of IMPORTS_SERVICE is handed on
    to the process that listens at `services`.
    """
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
                    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    with suppress(BrokenPipeError):  # a service outlives the command that started it
                        os.write(ended, STATUS.pack(code))
                    os.close(ended)
                    continue
                data, streams, _, _ = socket.recv_fds(requests, 1 << 20, 5)
                if not data:
                    return None
                standard, ended, passed = streams[:3], streams[3], streams[4:]
                arguments, environment, directory = json.loads(data)
                if services and "service" in arguments and not IMPORTS_SERVICE.isdisjoint(arguments):
                    socket.send_fds(services, [data], streams)
                    for stream in streams:
                        os.close(stream)
                    continue
                if pid := os.fork():
                    os.write(ended, STATUS.pack(pid))
                    watched[fd := os.pidfd_open(pid)] = pid, ended
                    selector.register(fd, selectors.EVENT_READ)
                    for stream in (*standard, *passed):
                        os.close(stream)
                    continue
                for number, stream in enumerate(standard):
                    os.dup2(stream, number)
                    os.close(stream)
                for other in (ended, requests.fileno(), *watched, *(end for _, end in watched.values())):
                    os.close(other)
                os.chdir(directory)
                return [*arguments, *map(str, passed)], environment


class _Service:
    """The part of `subprocess.Popen` that starts a service, as a fork of the process that listens at `services`."""

    def __init__(self, services: socket.socket, command: Sequence[str], **given: Any) -> None:
        assert [*command[:3], given["start_new_session"]] == [sys.executable, "-m", "svcctl", True]
        assert command[-1:] == [str(passed) for passed in given["pass_fds"]]
        request = json.dumps([[*command[3:-1]], given["env"], given["cwd"]]).encode("utf-8", "surrogatepass")
        self.returncode: int | None = None
        self._status, ended = os.pipe()
        with Path(os.devnull).open("rb") as stdin:
            streams = [stdin.fileno(), given["stdout"], given["stderr"], ended, *given["pass_fds"]]
            socket.send_fds(services, [request], streams)
        os.close(ended)

    def wait(self) -> int:
        with os.fdopen(self._status, "rb") as status:
            _, (code,) = STATUS.iter_unpack(status.read())
        return int(code)


def main() -> None:
    """Import svcctl, and run it in forks."""
    import svcctl.cli.main
    from svcctl import __main__ as process
    from svcctl.io.imports import prevent_imports
    from svcctl.service import process as control

    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            importlib.import_module(module.name)
    for library in LIBRARIES:
        importlib.import_module(library)
    requests = socket.socket(fileno=int(sys.argv[1]))
    services, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if serves := os.fork() == 0:
        requests.close()
        services.close()
        requests = theirs
        select.select([requests], [], [])  # until the first service is started
        with prevent_imports("numpy"):  # as `svcctl service serve` does
            import svcctl.service.server  # noqa: F401 (what every service loads)
    else:
        theirs.close()
    gc.freeze()
    if (asked := _serve(requests, None if serves else services)) is None:
        os._exit(0)
    if serves:
        os.setsid()
    else:
        started = SimpleNamespace(DEVNULL=subprocess.DEVNULL, Popen=partial(_Service, services))
        control.subprocess = started  # type: ignore[attr-defined, assignment]
    arguments, environment = asked
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = [process.__file__, *arguments]
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8", "surrogateescape")
    process.main()


if __name__ == "__main__":
    main()
