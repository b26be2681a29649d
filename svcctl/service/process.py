"""The process of the local service: its files, its start on demand, and its stop.

The module `server` has the code that runs in the process. Only the command `service serve` imports it.

A running service holds a lock on the file `service.lock`. The kernel releases the lock when the process ends, even
after a crash. The lock file also contains the process ID. If the service runs on another host or in another PID
namespace, this ID may belong to a different process here.

The service listens on its socket as soon as it holds the lock, but it answers only when its start is complete. While
the service starts or stops, it touches the lock file every second, so that other processes see that it does not hang.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from svcctl.dates.lengths import length_text
from svcctl.errors import Advice, CommandLine, SvcctlError, Unavailable, UsageError, as_svcctl_error, reason
from svcctl.io import extras, home, unix_sockets
from svcctl.io.files import is_locked, lock, write
from svcctl.profiles.settings import BUILT_IN, LOCAL_URL

STOP_SECONDS = 30.0
"""The maximum number of seconds that a service may take to stop."""
STOP_ANSWER_SECONDS = 2.0
"""The maximum number of seconds that a service may take to accept a request to stop.

A service that takes longer gets a signal.
"""
SILENT_SECONDS = 5.0
"""The maximum number of seconds that a running service may take to answer.

Within this time, the service also makes its socket again if the file of the socket was deleted.
"""
STARTING_SECONDS = 2.0
"""The number of seconds after which a waiting command prints that the service is starting or stopping."""
TOUCH_SECONDS = 1.0
"""The interval, in seconds, at which a service touches its lock file while it starts or stops."""
_LOOK_SECONDS = 0.1

PING_PATH, STOP_PATH = "/service/ping", "/service/stop"
_STATUS_LINE = rb"HTTP/1\.[01] (\d{3})"
_STATUS_BYTES = len("HTTP/1.1 200")

DATA_ENVIRONMENT = "SVCCTL_DATA"
WAITING = "waiting for the local service, which is starting or stopping"
LOCKED_EXIT = 9
_CREDENTIALS: Mapping[str, Callable[[], str]] = {
    "api_key": lambda: os.urandom(16).hex(),
    "api_secret": lambda: os.urandom(32).hex(),
    "token": lambda: urlsafe_b64encode(os.urandom(32)).decode().rstrip("="),
}
"""The names of a built-in profile's credentials, each with a function that makes a new value."""


class ServiceFiles(NamedTuple):
    """The files of the local service, all in one directory of mode 0700."""

    directory: Path

    @property
    def lock(self) -> Path:
        return self.directory / "service.lock"

    @property
    def log(self) -> Path:
        return self.directory / "service.log"

    @property
    def credentials(self) -> Path:
        return self.directory / "credentials.json"

    @property
    def serve_command(self) -> Path:
        """The path of the file with the saved command line of a service that was started with --listen."""
        return self.directory / "serve.txt"

    @property
    def events(self) -> Path:
        return self.directory / "events.duckdb"

    @property
    def state(self) -> Path:
        return self.directory / "state.db"

    @property
    def reset(self) -> Path:
        """The path of a file that marks a reset.

        The function `reset` makes the file. The next start of the service removes the file. If this file exists, the
        start does not report the deleted events as lost.
        """
        return self.directory / "reset"

    @property
    def socket(self) -> Path:
        """The path of the service's Unix socket. The path may be too long for programs other than svcctl."""
        return self.directory / "service.sock"

    def size(self) -> int:
        """Return the total size of the service's files in bytes."""
        return sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())

    def make(self) -> Path:
        """Create the directory with access for the user only, and return it.

        Raises UsageError if other users have access to an existing directory.
        """
        with self.within():
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._require_private()
        return self.directory

    def _require_private(self) -> None:
        """Raise UsageError if other users can access the directory.

        The directory contains the socket, the events and the credentials. Its mode is not changed automatically,
        because other users may need other files in the directory.
        """
        status = self.directory.stat()
        if status.st_uid not in (os.getuid(), 0) or status.st_mode & 0o077:
            mode = status.st_mode & 0o7777
            raise UsageError(
                f"directory {self.directory} can be used by others (its mode is {mode:04o})",
                hint=Advice(
                    "make it private: ",
                    CommandLine(f"chmod 700 {shlex.quote(str(self.directory))}"),
                    f"; or set {DATA_ENVIRONMENT} to a new directory",
                ),
            )

    @contextmanager
    def within(self) -> Iterator[None]:
        """Turn an OSError in the block into a UsageError that names the directory."""
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"the local service cannot keep its data in {self.directory}: {reason(error)}",
                hint=f"set {DATA_ENVIRONMENT} to a directory that can be written",
            ) from None


def default_files(environment: Mapping[str, str]) -> ServiceFiles:
    """Return the service's files.

    The directory is SVCCTL_DATA, or by default a directory in the user's data directory.
    """
    if directory := environment.get(DATA_ENVIRONMENT):
        return ServiceFiles(home.expanded_path(directory).absolute())
    return ServiceFiles(home.directory("data", DATA_ENVIRONMENT) / "service")


def profile_fields(files: ServiceFiles, name: str) -> dict[str, Any]:
    """Return the fields of a built-in profile.

    Credentials are returned as functions, because reading a credential may create it.
    """
    fields = {field: partial(_credential, files, name, field) for field in _CREDENTIALS}
    return {"base_url": LOCAL_URL, "socket": str(files.socket), "auth": "signature", **fields}


def credentials(files: ServiceFiles, name: str) -> dict[str, str]:
    """Return the credentials of a built-in profile.

    The first call creates the credentials, in a file that only this user can read.
    """
    files.make()
    with files.within():
        try:
            return _read_credentials(files)[name]
        except FileNotFoundError:
            return _make_credentials(files)[name]


def _credential(files: ServiceFiles, name: str, field: str) -> str:
    return credentials(files, name)[field]


def _read_credentials(files: ServiceFiles) -> dict[str, dict[str, str]]:
    """Read the credentials of all built-in profiles. Raises SvcctlError if the file of credentials is damaged."""
    try:
        content = json.loads(files.credentials.read_text(encoding="utf-8"))
        return {name: {field: "" + content[name][field] for field in _CREDENTIALS} for name in BUILT_IN}
    except (ValueError, TypeError, LookupError, RecursionError):
        raise SvcctlError(
            f"credentials file {files.credentials} is damaged", hint="remove it: the next start makes a new one"
        ) from None


def all_credentials(files: ServiceFiles) -> list[dict[str, str]]:
    """Return the credentials of all built-in profiles, in the order of BUILT_IN."""
    return [credentials(files, name) for name in BUILT_IN]


def _make_credentials(files: ServiceFiles) -> dict[str, dict[str, str]]:
    content = {name: {field: make() for field, make in _CREDENTIALS.items()} for name in BUILT_IN}
    try:
        write(files.credentials, json.dumps(content).encode(), overwrite=False, private=True)
    except FileExistsError:  # another process created the credentials first, and both processes use them
        content = _read_credentials(files)
    return content


def place(files: ServiceFiles) -> str:
    """Return the identifier of the service that uses these files. Copies of the files have the same identifier."""
    import hashlib

    return hashlib.sha256(credentials(files, BUILT_IN[0])["api_key"].encode()).hexdigest()[:16]


def running_process(files: ServiceFiles) -> int | None:
    """Return the process ID of the running service, or 0 if the service has not written its process ID yet.

    Return None if no service runs. Raises SvcctlError if the lock file is damaged.
    """
    with files.within():
        try:
            return int(files.lock.read_text(encoding="ascii") or 0) if is_locked(files.lock) else None
        except ValueError:
            raise SvcctlError(
                f"file {files.lock} is damaged: it does not say which process holds it",
                reason="lock-file-damaged",
            ) from None


def hold_lock(files: ServiceFiles) -> int:
    """Lock the lock file until this process ends, and return the descriptor of the file.

    The process ID is written to the file. Raises Locked if a service holds the lock.
    """
    files.make()
    # Wait a moment for the lock, because `running_process` takes the lock for an instant to test it.
    with files.within():
        busy = f"the local service is already running in {files.directory}"
        handle = lock(files.lock, busy, reason="service-running", patience=0.2)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


def holds_lock(files: ServiceFiles, handle: int) -> bool:
    """Whether the lock file is still the file that `hold_lock` locked.

    The result is False if the lock file was deleted or replaced.
    """
    try:
        return files.lock.stat().st_ino == os.fstat(handle).st_ino
    except OSError:
        return False


def keep_serve_command(files: ServiceFiles, command: str | None) -> None:
    """Save the command line of a service that listens on TCP.

    If `command` is None, the saved command line is deleted, and commands may start the service by themselves.
    """
    with files.within():
        if command is None:
            files.serve_command.unlink(missing_ok=True)
        else:
            write(files.serve_command, command.encode(), private=True)


def serve_command(files: ServiceFiles) -> str | None:
    """Return the saved command line of the service. Return None if no command line is saved.

    While a command line is saved, other svcctl commands do not start the service by themselves.
    """
    with files.within(), suppress(FileNotFoundError):
        return files.serve_command.read_text(encoding="utf-8", errors="replace")
    return None


NOT_RUNNING = "service-not-running"
"""The `reason` of an error that says that the service does not run. `last_start` returns the data of such an error."""


def last_start(files: ServiceFiles) -> dict[str, str | None]:
    """Return the data of a NOT_RUNNING error: `command` is the saved command line, or None."""
    return {"command": serve_command(files)}


def require_background(files: ServiceFiles) -> None:
    """Raise Unavailable if the latest service listened on TCP. Call this function only when no service runs.

    A supervisor such as systemd usually starts a service that listens on TCP. If a command started the service first,
    the supervisor's start would fail.
    """
    if serve_command(files) is not None:
        raise Unavailable(
            "the local service is not running, and commands do not start one that was run with --listen",
            reason=NOT_RUNNING,
            data=last_start(files),
        )


def listens(files: ServiceFiles) -> bool:
    """Whether a process listens on the service's socket. A service already listens while it starts."""
    try:
        unix_sockets.connect(files.socket, _LOOK_SECONDS).close()
    except BlockingIOError:  # the system accepts no more connections, because too many are waiting
        return True
    except OSError:
        return False
    return True


def await_answer(files: ServiceFiles, starting: Callable[[], object], silent_seconds: float = SILENT_SECONDS) -> bool:
    """Wait until the service answers. Return False if no service runs.

    While the service starts or stops, there is no time limit. At any other time, Unavailable is raised if the service
    does not answer within `silent_seconds`. `starting` is called once if the wait takes longer than STARTING_SECONDS.
    """
    began = time.monotonic()
    is_announced = False

    def go_on() -> bool:
        nonlocal is_announced
        waited, untouched = time.monotonic() - began, _seconds_untouched(files)
        if min(waited, untouched) > silent_seconds:
            raise _silent(files)
        if not is_announced and waited > STARTING_SECONDS and untouched < silent_seconds:
            is_announced = True
            starting()
        return True

    ping = _request("GET", PING_PATH)
    while running_process(files) is not None and go_on():
        if _answer(files, ping, go_on) is not None:
            return True
        time.sleep(_LOOK_SECONDS)
    return False


def _seconds_untouched(files: ServiceFiles) -> float:
    """Return the seconds since the lock file was last written or touched. Return 0 if there is no lock file.

    The service writes the file when it takes the lock, and touches the file while it starts or stops.
    """
    try:
        return abs(time.time() - files.lock.stat().st_mtime)
    except OSError:
        return 0.0  # the lock file is being made


def _silent(files: ServiceFiles) -> Unavailable:
    fault = "does not answer" if listens(files) else "holds its lock, but does not listen on its socket"
    return Unavailable(
        f"{_name(files)} {fault}",
        reason="service-silent",
    )


def _name(files: ServiceFiles) -> str:
    """Return the name of the service for messages.

    The name has the directory, and also the process ID if it is known.
    """
    process = running_process(files)
    return f"the local service in {files.directory}" + (f" (process {process})" if process else "")


def _request(method: str, path: str, token: str | None = None) -> bytes:
    authorization = "" if token is None else f"Authorization: Bearer {token}\r\n"
    length = "Content-Length: 0\r\n" if method == "POST" else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}{length}Connection: close\r\n\r\n".encode()


def _answer(files: ServiceFiles, request: bytes, go_on: Callable[[], bool]) -> int | None:
    """Send a request to the service, and return the HTTP status of the response.

    Return None if there is no response, or if `go_on` returns False before the response arrives.
    """
    answer = b""
    try:
        with unix_sockets.connect(files.socket, _LOOK_SECONDS) as connection:
            connection.sendall(request)
            while len(answer) < _STATUS_BYTES and go_on():
                with suppress(TimeoutError):
                    if not (part := connection.recv(_STATUS_BYTES)):
                        break
                    answer += part
    except OSError:
        return None
    status = re.match(_STATUS_LINE, answer)
    return int(status[1]) if status else None


def ensure_running(
    files: ServiceFiles, notify: Callable[[str], None], note: Callable[[str], None], *, unasked: bool = True
) -> bool:
    """Start the service if it does not run, and wait until it answers. Return False if the service was already running.

    `notify` is called with each message about the progress of the start, and `note` with every other message. `unasked`
    means that the user did not ask for the start. Raises Unavailable if the service hangs. Also raises Unavailable if
    the start is `unasked` and the latest service was run with --listen.
    """
    if await_answer(files, lambda: note(WAITING)):
        return False
    if unasked:
        require_background(files)
    notify("starting the local service")
    return start(files, notify, note)


def start(files: ServiceFiles, notify: Callable[[str], None], note: Callable[[str], None]) -> bool:
    """Start the service in the background, and wait until it answers. Return False if another process has started it.

    `notify` is called with the progress of the first start, which makes demo events. `note` is called with every other
    message of the service. Raises SvcctlError if the service does not start.
    """
    from svcctl.service.settings import absolute_locations

    extras.need("service", "the local service")
    files.make()
    with files.within():
        log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o600)
    reader, writer = os.pipe()
    with os.fdopen(log, "ab"):
        process = subprocess.Popen(
            [sys.executable, "-m", "svcctl", "--verbose", "service", "serve", "--ready-fd", str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, **absolute_locations(os.environ), DATA_ENVIRONMENT: str(files.directory)},
            start_new_session=True,
            pass_fds=(writer,),
        )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as lines:
        last = _relay_lines(lines, notify, note)
    if "ready" in last:
        process.returncode = 0  # prevents a warning of Popen, because the service outlives this process
        return True
    code = process.wait()
    if code == LOCKED_EXIT and await_answer(files, lambda: note(WAITING)):
        return False
    raise _did_not_start(files, code, last)


class StarterPipe:
    """The pipe from a new service to the process that starts the service. Each line is a JSON object.

    A line has a member `progress` or `note` with a text. The last line has either `ready`, or an `error` with its
    `hint`, `reason` and `data`. If the service runs in the foreground, `handle` is None, and nothing is written.
    """

    def __init__(self, handle: int | None) -> None:
        self._stream = None if handle is None else os.fdopen(handle, "w", encoding="utf-8")

    @property
    def is_open(self) -> bool:
        return self._stream is not None

    def send(self, **members: Any) -> None:
        """Write a line. The line is lost if the process that started the service has already ended."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write(f"{json.dumps(members)}\n")
                self._stream.flush()

    def end(self, **members: Any) -> None:
        """Write the last line and close the pipe."""
        self.send(**members)
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None

    @contextmanager
    def sending_errors(self) -> Iterator[None]:
        """If the block raises an error, write the error as the last line, and raise the error again."""
        try:
            yield
        except Exception as raised:
            error = as_svcctl_error(raised)
            if isinstance(error, SvcctlError):
                self.end(error=error.message, hint=error.hint, reason=error.reason, data=dict(error.data))
            else:
                self.end(error=f"{type(error).__name__}: {error}")
            raise


def _relay_lines(lines: Iterable[str], notify: Callable[[str], None], note: Callable[[str], None]) -> Mapping[str, Any]:
    """Pass on the messages in the lines that a new service writes to its pipe. Return the members of the last line.

    Return an empty mapping if the service ended before it wrote the last line.
    """
    for line in lines:
        try:
            members = json.loads(line)
        except ValueError:  # the service was killed while it wrote the line
            break
        match members:
            case {"progress": str(text)}:
                notify(text)
            case {"note": str(text)}:
                note(text)
            case _:
                return dict(members)
    return {}


def reset(files: ServiceFiles) -> None:
    """Delete the service's events and state. The credentials and the saved command line are kept.

    Raises Locked if the service runs.
    """
    with os.fdopen(hold_lock(files), "rb"), files.within():
        files.reset.touch(mode=0o600)
        _remove(files, files.events)
        _remove(files, files.state)


def complete_reset(files: ServiceFiles) -> None:
    """Delete the events if there was a reset since the last start.

    A reset that was interrupted may not have deleted all events.
    """
    if files.reset.exists():
        with files.within():
            _remove(files, files.events)


def _remove(files: ServiceFiles, stored: Path) -> None:
    """Delete a database file and the logs of the database. The names of the logs begin with the name of the file."""
    for path in files.directory.glob(f"{stored.name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def stop(files: ServiceFiles, silent_seconds: float = SILENT_SECONDS, stop_seconds: float = STOP_SECONDS) -> bool:
    """Stop the service, and wait until it has stopped. Return False if no service runs.

    The service first gets a request over its socket. If the service does not accept the request, it gets SIGTERM. The
    signal is sent only if the kernel confirms the service's process ID. SIGKILL is never sent.

    Raises Unavailable if the request is not accepted and no signal can be sent. Raises SvcctlError if the service does
    not stop within `stop_seconds`.
    """
    if running_process(files) is None:
        return False
    began = time.monotonic()
    stopping = False
    while running_process(files) is not None:
        stopping = stopping or _request_stop(files, silent_seconds) or _send_signal(files)
        seconds = time.monotonic() - began
        if not stopping and min(seconds, _seconds_untouched(files)) > silent_seconds:
            raise Unavailable(
                f"cannot stop {_name(files)}: it does not answer, and nothing proves which process it is",
                hint="stop it where it runs, perhaps on another host or in another container",
            )
        if seconds > stop_seconds:
            raise SvcctlError(
                f"{_name(files)} did not stop in {length_text(stop_seconds)}",
                hint=f"its log may have the reason: {files.log}",
            )
        time.sleep(0.02)
    return True


def _request_stop(files: ServiceFiles, silent_seconds: float) -> bool:
    """Ask the service to stop, and return whether it accepts the request.

    Waits at most `silent_seconds` for an answer. If a signal can be sent instead of the request, the wait is also
    limited to STOP_ANSWER_SECONDS.
    """
    try:
        token = _read_credentials(files)[BUILT_IN[0]]["token"]
    except (OSError, SvcctlError):  # without credentials no request is possible
        return False
    limit = silent_seconds if _proven_process(files) is None else min(silent_seconds, STOP_ANSWER_SECONDS)
    deadline = time.monotonic() + limit
    status = _answer(files, _request("POST", STOP_PATH, token), lambda: time.monotonic() < deadline)
    return status is not None and status < 300


def _send_signal(files: ServiceFiles) -> bool:
    """Send SIGTERM to the service, and return whether the signal was sent.

    No signal is sent if the kernel does not confirm the process ID. SIGCONT is sent before SIGTERM, so that a suspended
    process continues.
    """
    process = _proven_process(files)
    if process is None:
        return False
    try:
        os.kill(process, signal.SIGCONT)
        os.kill(process, signal.SIGTERM)
    except OSError:
        return False
    return True


def _proven_process(files: ServiceFiles) -> int | None:
    """Return the process ID in the lock file if the kernel confirms that this process listens on the socket.

    Return None if another process listens on the socket, for example in another PID namespace. Also return None if no
    process listens, for example because the service runs on another host.
    """
    with suppress(OSError), unix_sockets.connect(files.socket, _LOOK_SECONDS) as connection:
        if (process := unix_sockets.peer_process(connection)) == running_process(files):
            return process
    return None


def _did_not_start(files: ServiceFiles, code: int, last: Mapping[str, Any]) -> SvcctlError:
    """Make the error for a service that did not start.

    `code` is the exit code of the service. `last` is the last line that the service wrote to the pipe.
    """
    kind = {2: UsageError, 6: Unavailable}.get(code, SvcctlError)
    cause = last.get("error") or (f"signal {-code} ended it" if code < 0 else f"it ended with exit code {code}")
    return kind(
        f"the local service did not start: {cause}",
        hint=last.get("hint"),
        reason=last.get("reason") if "error" in last else "service-not-started",
        data={**(last.get("data") or {}), "service_log": str(files.log)},
    )
