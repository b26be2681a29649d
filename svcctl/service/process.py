"""The local service as a process: where its files are, starting it on demand, stopping it.

This module knows the process only by its files and signals; what the process does is in `server`, which is never
imported here. The running service holds a lock on `service.lock` until it ends, so the kernel, not a file left behind,
says whether it runs: a crash leaves nothing that blocks the next start.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from svcctl.dates.lengths import length_text
from svcctl.errors import SvcctlError, Unavailable, UsageError, reason
from svcctl.io import extras, home
from svcctl.io.files import is_locked, lock, write
from svcctl.profiles.settings import BUILT_IN, LOCAL_URL
from svcctl.service.settings import located

START_SECONDS = 120.0
STOP_SECONDS = 30.0
MAX_SOCKET_PATH = 100
"""Unix sockets have paths of at most 107 bytes on Linux and 103 elsewhere."""

DATA_ENVIRONMENT = "SVCCTL_DATA"
READY = "ready\n"
"""The line that a service writes to its starter's pipe when it is ready, after any lines of progress."""
NOTE = "note: "
"""The prefix of a line to the starter that is not progress."""
LOCKED_EXIT = 9
_CREDENTIALS: Mapping[str, Callable[[], str]] = {
    "api_key": lambda: secrets.token_hex(16),
    "api_secret": lambda: secrets.token_hex(32),
    "token": lambda: secrets.token_urlsafe(32),
}
"""The credentials of a built-in profile, and how each is made."""


@dataclass(frozen=True)
class Files:
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
        """The command line of the last service, if that was `service serve --listen`."""
        return self.directory / "serve.txt"

    @property
    def events(self) -> Path:
        return self.directory / "events.duckdb"

    @property
    def state(self) -> Path:
        return self.directory / "state.db"

    @cached_property
    def socket(self) -> Path:
        """The path of the Unix socket: in the directory, or in a private temporary one if that path is too long."""
        path = self.directory / "service.sock"
        if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
            return path
        import hashlib
        import tempfile

        name = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        short = Path(tempfile.gettempdir()) / f"svcctl-{os.getuid()}"
        short.mkdir(mode=0o700, exist_ok=True)
        _require_private(short, f"or set {DATA_ENVIRONMENT} to a shorter path")
        return short / f"{name}.sock"

    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())

    def make(self) -> Path:
        """Make the directory, private to the user, and return it."""
        with self.within():
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(self.directory, f"or set {DATA_ENVIRONMENT} to a directory that is made anew")
        return self.directory

    @contextmanager
    def within(self) -> Iterator[None]:
        """Raise an OSError of the block as a UsageError that names the directory."""
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"the local service cannot keep its data in {self.directory}: {reason(error)}",
                hint=f"set {DATA_ENVIRONMENT} to a directory that can be written",
            ) from None


def _require_private(directory: Path, otherwise: str) -> None:
    """Raise UsageError when other users can access a directory, which has the socket, the events and the credentials.

    Its mode is not changed here, since other users may need other files in it.
    """
    found = directory.stat()
    if found.st_uid not in (os.getuid(), 0) or found.st_mode & 0o077:
        raise UsageError(
            f"directory {directory} can be used by others (its mode is {found.st_mode & 0o7777:04o})",
            hint=f"make it private: chmod 700 {shlex.quote(str(directory))}; {otherwise}",
        )


def default_files(environment: Mapping[str, str]) -> Files:
    """The files under SVCCTL_DATA, else the platform's data directory."""
    if named := environment.get(DATA_ENVIRONMENT):
        return Files(home.expanded(named).absolute())
    return Files(home.directory("data", DATA_ENVIRONMENT) / "service")


def profile_fields(files: Files, name: str) -> dict[str, Any]:
    """The fields of a built-in profile. The credentials are functions, since reading them may create them."""
    made = {field: partial(_credential, files, name, field) for field in _CREDENTIALS}
    with files.within():
        return {"base_url": LOCAL_URL, "socket": str(files.socket), "auth": "signature", **made}


def credentials(files: Files, name: str) -> dict[str, str]:
    """The credentials of a built-in profile; they are made on first use, readable by this user only."""
    files.make()
    with files.within():
        try:
            return _read_credentials(files)[name]
        except FileNotFoundError:
            return _make_credentials(files)[name]


def _credential(files: Files, name: str, field: str) -> str:
    return credentials(files, name)[field]


def _read_credentials(files: Files) -> dict[str, dict[str, str]]:
    """The credentials of each built-in profile. SvcctlError when the file is damaged."""
    try:
        given = json.loads(files.credentials.read_text(encoding="utf-8"))
        return {name: {field: "" + given[name][field] for field in _CREDENTIALS} for name in BUILT_IN}
    except (ValueError, TypeError, LookupError, RecursionError):
        raise SvcctlError(
            f"credentials file {files.credentials} is damaged", hint="remove it: the next start makes a new one"
        ) from None


def all_credentials(files: Files) -> list[dict[str, str]]:
    """The credentials of each built-in profile, in the order of BUILT_IN."""
    return [credentials(files, name) for name in BUILT_IN]


def _make_credentials(files: Files) -> dict[str, dict[str, str]]:
    made = {name: {field: make() for field, make in _CREDENTIALS.items()} for name in BUILT_IN}
    try:
        write(files.credentials, json.dumps(made).encode(), overwrite=False, private=True)
    except FileExistsError:  # another process was first; both use its credentials
        made = _read_credentials(files)
    return made


def place(files: Files) -> str:
    """An identifier of the events in this directory and in copies of it, unlike those of other service processes."""
    import hashlib

    return hashlib.sha256(credentials(files, BUILT_IN[0])["api_key"].encode()).hexdigest()[:16]


def running(files: Files) -> int | None:
    """The process ID of the service that holds the lock (0 while the ID is written), None when no service runs."""
    with files.within():
        try:
            return int(files.lock.read_text(encoding="ascii") or 0) if is_locked(files.lock) else None
        except ValueError:
            raise SvcctlError(
                f"file {files.lock} is damaged: it does not say which process holds it",
                hint="stop the process 'svcctl service serve', and remove the file",
            ) from None


def hold_lock(files: Files) -> int:
    """Take the service's lock until this process ends, and write the process ID to it. Locked when it is taken."""
    files.make()
    # `running` takes the lock for an instant to test it: wait that long.
    with files.within():
        busy = f"the local service is already running in {files.directory}"
        handle = lock(files.lock, busy, hint="stop it with: svcctl service stop", patience=0.2)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


def still_held(files: Files, handle: int) -> bool:
    """Whether the lock file is still the one that `hold_lock` locked: not deleted, not replaced."""
    try:
        return files.lock.stat().st_ino == os.fstat(handle).st_ino
    except OSError:
        return False


def keep_serve_command(files: Files, command: str | None) -> None:
    """Save the command line of a service that listens on TCP; None removes it, so that commands may start a service."""
    with files.within():
        if command is None:
            files.serve_command.unlink(missing_ok=True)
        else:
            write(files.serve_command, command.encode(), private=True)


def serve_command(files: Files) -> str | None:
    """The saved command line. While there is one, no command starts the service by itself."""
    with files.within(), suppress(FileNotFoundError):
        return files.serve_command.read_text(encoding="utf-8", errors="replace")
    return None


def how_to_start(files: Files) -> str:
    """The hint for a service that does not run."""
    background = "'svcctl service start'"
    if (command := serve_command(files)) is None:
        return f"start it with {background}"
    return f"start it with: {command} (or in the background with {background})"


def await_served(files: Files) -> bool:
    """Wait for a service that listens on TCP and is starting; False when the last service did not listen.

    Unavailable when no service runs. None is started here: it would keep a supervisor from starting the real one.
    """
    if serve_command(files) is None:
        return False
    deadline = time.monotonic() + START_SECONDS
    while not answers(files):
        if running(files) is None or time.monotonic() > deadline:
            raise Unavailable(
                "the local service is not running, and commands do not start one that was run with --listen",
                hint=how_to_start(files),
            )
        time.sleep(0.05)
    return True


def answers(files: Files) -> bool:
    """Whether something listens on the service's socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(files.socket))
        except OSError:
            return False
    return True


def start(files: Files, notify: Callable[[str], None], note: Callable[[str], None]) -> bool:
    """Start the service in the background and wait until it answers; False when it already runs.

    `notify` receives its lines of progress (the demo events, on the first start), and `note` its other lines.
    """
    if answers(files):
        return False
    extras.need("service", "the local service")
    files.make()
    with files.within():
        log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o600)
    written = files.log.stat().st_size
    reader, writer = os.pipe()
    with os.fdopen(log, "ab"):
        process = subprocess.Popen(
            [sys.executable, "-m", "svcctl", "--verbose", "service", "serve", "--ready-fd", str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, **located(os.environ), DATA_ENVIRONMENT: str(files.directory)},
            start_new_session=True,
            pass_fds=(writer,),
        )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as messages:
        for line in messages:
            if line == READY:
                process.returncode = 0  # it outlives this process: keep Popen from warning
                return True
            if line.startswith(NOTE):
                note(line.removeprefix(NOTE).rstrip())
            else:
                notify(line.rstrip())
    if (code := process.wait()) == LOCKED_EXIT:
        _wait_until_it_answers(files)
        return False
    raise _did_not_start(files, code, written)


def reset(files: Files) -> None:
    """Delete what the service stored; its credentials and its command line stay. The service must not run."""
    with files.within():
        for path in (files.events, files.state):
            for each in files.directory.glob(f"{path.name}*"):
                shutil.rmtree(each) if each.is_dir() else each.unlink()


def stop(files: Files) -> bool:
    """Stop the service and wait until it has stopped; False when none was running."""
    pid = running(files)
    if pid is None:
        return False
    deadline = time.monotonic() + STOP_SECONDS
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signal.SIGTERM)
    while running(files) is not None:
        if time.monotonic() > deadline:
            raise SvcctlError(f"the local service (process {pid}) did not stop in {length_text(STOP_SECONDS)}")
        time.sleep(0.02)
    return True


def _wait_until_it_answers(files: Files) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(files):
        if running(files) is None or time.monotonic() > deadline:
            raise _did_not_start(files)
        time.sleep(0.05)


def _did_not_start(files: Files, code: int = 1, start: int = 0) -> SvcctlError:
    """Make the error of a service that ended, from its exit code and its log from byte `start` on.

    The log ends in a message, and perhaps a hint. On a full disk it is empty.
    """
    log = files.log.read_bytes()[start:].decode("utf-8", "replace").strip()
    *_, line, last = ["", *log.split("\n")]
    reason, hint = (line, last) if last.startswith("hint: ") else (last, f"its log has the reason: {files.log}")
    if not log:
        reason, hint = "it wrote nothing to its log", "'svcctl service serve' runs it in the foreground, and says why"
    reason = reason.removeprefix("svcctl: error: ")
    kind = {2: UsageError, 6: Unavailable}.get(code, SvcctlError)
    return kind(f"the local service did not start: {reason}", hint=hint.removeprefix("hint: "))
