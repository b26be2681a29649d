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
from typing import Any

import uvicorn

from svcctl import local_service
from svcctl.errors import UsageError
from svcctl.local_service import (
    CONNECTIONS,
    DEMO_DAYS,
    OPEN_QUERIES,
    PADDING_SECONDS,
    PROCESS_SETTINGS,
    QUERY_PLACES,
    QUERY_SECONDS,
    RUNNING_JOBS,
    TOTAL_JOBS,
)
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
    def __init__(self, config: uvicorn.Config, ready: _Ready) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            # Port 0 asks for any free port, so the address is read from the socket.
            address = self.servers[0].sockets[0].getsockname()
            self._ready.ready(address if isinstance(address, str) else f"{address[0]}:{address[1]}")


def serve(files: local_service.Files, *, listen: str | None, ready_fd: int | None) -> None:
    """Run until SIGTERM or SIGINT. Locked when a service already runs on these files."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.umask(0o077)
    settings = {setting: setting.read(os.environ) for setting in PROCESS_SETTINGS}
    history = timedelta(days=settings[DEMO_DAYS])
    limits = Limits(connections=_descriptors_for(int(settings[CONNECTIONS])))
    ready = _Ready(ready_fd)
    lock = local_service.hold_lock(files)  # the kernel frees it when this process ends, however it ends
    with ExitStack() as closing:
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
        )
        shares = {"share": int(settings[RUNNING_JOBS]), "total": int(settings[TOTAL_JOBS])}
        jobs = Jobs(store, partial(deliver, engine, service.now), **shares)
        log = AccessLog(build(service, jobs), engine)
        is_ours = partial(local_service.still_held, files, lock)
        closing.enter_context(_repeated(partial(_grow, engine, log, history, is_ours)))
        closing.callback(jobs.close)
        closing.enter_context(_repeated(partial(_settle, service, jobs)))
        # The server stops at a signal, and then raises it again for the handler that was there before.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        where = _where(listen, files)
        _Server(
            uvicorn.Config(
                log,
                **where,
                http=Connection.limited(limits),
                access_log=False,
                log_config=None,
                lifespan="off",
                timeout_graceful_shutdown=3,
                ws="none",
            ),
            ready,
        ).run()


def _descriptors_for(connections: int) -> int:
    """Raise this process's limit of open files for so many connections; fewer of them where the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    granted = min(connections + OTHER_DESCRIPTORS, most)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return max(1, min(connections, granted - OTHER_DESCRIPTORS))


def _where(listen: str | None, files: local_service.Files) -> dict[str, Any]:
    if listen is None:
        with suppress(FileNotFoundError):
            files.socket.unlink()  # this process holds the lock, so an existing socket is a leftover
        # uvicorn keeps the mode of a socket that is there; one that it makes could be used by everybody.
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(files.socket))
        files.socket.chmod(0o600)
        return {"uds": str(files.socket)}
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--listen '{listen}' is not of the form HOST:PORT")
    return {"host": host.strip("[]") or "127.0.0.1", "port": int(port)}


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
