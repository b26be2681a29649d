"""The service as a process: takes the lock, opens the files, makes the demo events, listens, and stops at a signal."""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import uvicorn

from svcctl import local_service
from svcctl.errors import UsageError
from svcctl.service.engines import Engine
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.events import demo
from svcctl.service.http.app import build, settle
from svcctl.service.http.connection import Connection, Limits
from svcctl.service.http.middleware import AccessLog
from svcctl.service.jobs.delivery import deliver
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.provisioning.seed import open_store
from svcctl.service.service import Service
from svcctl.service_settings import (
    ACCESS_DAYS,
    ACCESS_EVENTS,
    CONNECTIONS,
    CORS_ORIGINS,
    DEMO_DAYS,
    LINE_END,
    NUMBERS,
    OPEN_QUERIES,
    PADDING_SECONDS,
    QUERY_PLACES,
    QUERY_SECONDS,
    RUNNING_JOBS,
    TOTAL_JOBS,
)

THREADS = 64
"""Threads at most, for queries that have their turn and for loads; how many are used depends on the places."""
OTHER_DESCRIPTORS = 200
"""Open files beside connections: of the state and the events, of jobs, of files that are loaded."""
GROW_SECONDS = 1.0
"""How often the demo tables are extended and the access log is stored while requests come."""
SETTLE_SECONDS = 1.0
"""How soon the service notices that another process has disabled or enabled a domain."""
QUIET_SECONDS = 60.0
QUIET_GROW_SECONDS = 60.0
"""How often this happens after QUIET_SECONDS without a request: an idle service should cost nothing."""

_log = logging.getLogger("svcctl.service")


class _Ready:
    """Reports progress to the process that started this one, or to the terminal of a foreground run."""

    def __init__(self, handle: int | None) -> None:
        self._stream = None if handle is None else os.fdopen(handle, "w", encoding="utf-8")

    def progress(self, what: str, fraction: float) -> None:
        self._write(f"{what} {fraction:.0%}\n")

    def ready(self, where: str) -> None:
        if self._stream is None:
            print(f"svcctl: listening on {where}", file=sys.stderr)
            return
        self._write(local_service.READY)
        with suppress(OSError):
            self._stream.close()

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        with suppress(OSError):  # the process that started this one may have ended
            self._stream.write(text)
            self._stream.flush()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()


def serve(files: local_service.Files, *, listen: str | None, ready_fd: int | None) -> None:
    """Run until SIGTERM or SIGINT. Locked when a service already runs on these files.

    The service always listens on its Unix socket, where the commands of this machine find it; `listen` adds HOST:PORT.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.umask(0o077)
    settings = {setting: setting.read(os.environ) for setting in NUMBERS}
    line_end = LINE_END.read(os.environ)
    origins = CORS_ORIGINS.read(os.environ)
    history = timedelta(days=settings[DEMO_DAYS])
    limits = Limits(connections=_descriptors_for(int(settings[CONNECTIONS])))
    ready = _Ready(ready_fd)
    lock = local_service.hold_lock(files)  # the kernel frees it when this process ends, however it ends
    with ExitStack() as closing:
        tcp = None if listen is None else closing.enter_context(_tcp(listen))
        address = None if tcp is None else _address(tcp)
        store = open_store(files)
        closing.callback(store.close)
        engine = closing.enter_context(DuckDBEngine(files.events))
        demo.extend(engine, datetime.now(UTC), ready.progress, history)
        executor = ThreadPoolExecutor(THREADS, thread_name_prefix="query")
        closing.callback(executor.shutdown, cancel_futures=True)
        service = Service(
            *(engine, store, executor),
            query_seconds=settings[QUERY_SECONDS],
            padding_seconds=settings[PADDING_SECONDS],
            places=int(settings[QUERY_PLACES]),
            share=int(settings[OPEN_QUERIES]),
            line_end=line_end,
            address=address,
        )
        shares = {"share": int(settings[RUNNING_JOBS]), "total": int(settings[TOTAL_JOBS])}
        jobs = Jobs(store, partial(deliver, engine, service.now), **shares)
        app = build(service, jobs, origins)
        log = AccessLog(app, engine, most=int(settings[ACCESS_EVENTS]), days=settings[ACCESS_DAYS])
        is_ours = partial(local_service.still_held, files, lock)
        closing.enter_context(_repeated(partial(_grow, engine, log, history, is_ours)))
        closing.callback(jobs.close)
        closing.enter_context(_repeated(partial(_settle, service, jobs)))
        # The server stops at a signal, and then raises it again for the handler that was there before.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        sockets = [closing.enter_context(_unix(files)), *([] if tcp is None else [tcp])]
        config = uvicorn.Config(
            log,
            http=Connection.limited(limits),
            access_log=False,
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=3,
            ws="none",
        )
        _Server(config, partial(ready.ready, address or str(files.socket))).run(sockets)


def _descriptors_for(connections: int) -> int:
    """Raise this process's limit of open files for so many connections; fewer of them where the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    granted = min(connections + OTHER_DESCRIPTORS, most)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return max(1, min(connections, granted - OTHER_DESCRIPTORS))


def _unix(files: local_service.Files) -> socket.socket:
    """The service's own socket, the user's alone. This process holds the lock, so an existing one is a leftover."""
    with suppress(FileNotFoundError):
        files.socket.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(files.socket))
    files.socket.chmod(0o600)
    return listener


def _tcp(listen: str) -> socket.socket:
    """A socket on HOST:PORT; port 0 asks for any free port. UsageError when it cannot be had."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--listen '{listen}' is not of the form HOST:PORT")
    host = host.strip("[]") or "127.0.0.1"
    try:
        return socket.create_server((host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"the service cannot listen on {listen}: {getattr(error, 'strerror', None) or error}"
        ) from None


def _address(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def _repeated(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """A thread that works until the event is set, at the end of the block."""
    stopping = threading.Event()
    thread = threading.Thread(target=work, args=(stopping,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _settle(service: Service, jobs: Jobs, stopping: threading.Event) -> None:
    """Settle again and again: another process may have changed the state, as `service accounts` does."""
    while True:
        try:
            settle(service, jobs)
        except Exception:
            _log.exception("the jobs could not be started or stopped")
        if stopping.wait(SETTLE_SECONDS):
            return


def _grow(
    engine: Engine, log: AccessLog, history: timedelta, is_ours: Callable[[], bool], stopping: threading.Event
) -> None:
    """Extend the live tables until `stopping` is set; end the process when its files were deleted."""
    grown = 0.0
    while not stopping.wait(GROW_SECONDS):
        if not is_ours():
            _log.warning("the service's files are gone: the service stops")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        if log.quiet_for() > QUIET_SECONDS and time.monotonic() - grown < QUIET_GROW_SECONDS:
            continue
        grown = time.monotonic()
        try:
            demo.extend(engine, datetime.now(UTC), history=history)
            log.flush()
        except Exception:
            _log.exception("the live tables could not be extended")
    log.flush()
