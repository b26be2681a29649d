"""The service as a process: its lock, its files, its demo events, its socket; from the first to the last moment."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import uvicorn

from svcctl import local_service
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.events import demo
from svcctl.service.http.app import build
from svcctl.service.http.middleware import AccessLog
from svcctl.service.jobs.delivery import deliver
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.provisioning.seed import open_store
from svcctl.service.service import PADDING_SECONDS, QUERY_SECONDS, Service, number_of, seconds_of

THREADS = 8
GROW_SECONDS = 1.0
"""How often the demo tables grow up to now, and the access log is stored, while somebody asks."""
QUIET_SECONDS = 60.0
QUIET_GROW_SECONDS = 60.0
"""How often they do when nobody has asked for QUIET_SECONDS: a service that waits should cost nothing."""

_log = logging.getLogger("svcctl.service")


class _Ready:
    """Tells the process that started this one how far it is; a foreground run tells its terminal."""

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
        with suppress(OSError):  # whoever started us may have gone; the service goes on
            self._stream.write(text)
            self._stream.flush()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: _Ready) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            # Port 0 is any free port: what counts is where the socket is now.
            address = self.servers[0].sockets[0].getsockname()
            self._ready.ready(address if isinstance(address, str) else f"{address[0]}:{address[1]}")


def serve(files: local_service.Files, *, listen: str | None, ready_fd: int | None) -> None:
    """Run until SIGTERM or SIGINT. Locked when a service already runs on these files."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.umask(0o077)
    ready = _Ready(ready_fd)
    query_seconds = seconds_of(os.environ, "SVCCTL_QUERY_SECONDS", QUERY_SECONDS)
    padding_seconds = seconds_of(os.environ, "SVCCTL_PADDING_SECONDS", PADDING_SECONDS)
    history = timedelta(days=number_of(os.environ, "SVCCTL_DEMO_DAYS", demo.HISTORY.days))
    lock = local_service.hold_lock(files)  # until this process has gone, however it goes
    is_ours = partial(local_service.still_held, files, lock)
    store = open_store(files)
    executor = ThreadPoolExecutor(THREADS, thread_name_prefix="query")
    with DuckDBEngine(files.events) as engine:
        demo.extend(engine, datetime.now(UTC), ready.progress, history)
        service = Service(engine, store, executor, query_seconds=query_seconds, padding_seconds=padding_seconds)
        jobs = Jobs(store, partial(deliver, engine, service.now))
        app = AccessLog(build(service, jobs), engine)
        where = _where(listen, files)
        config = uvicorn.Config(
            app, **where, access_log=False, log_config=None, lifespan="off", timeout_graceful_shutdown=3, ws="none"
        )
        stopping = threading.Event()
        growing = threading.Thread(target=_grow, args=(engine, app, history, is_ours, stopping), daemon=True)
        growing.start()
        jobs.resume()
        try:
            # The server ends at a signal, and then raises it again for whoever was there before it.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: None)
            _Server(config, ready).run()
        finally:
            jobs.close()
            stopping.set()
            growing.join()
            executor.shutdown(cancel_futures=True)
            store.close()


def _where(listen: str | None, files: local_service.Files) -> dict[str, Any]:
    if listen is None:
        with suppress(FileNotFoundError):
            files.socket.unlink()  # we hold the lock, so a socket that is there belongs to no one
        return {"uds": str(files.socket)}
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--listen '{listen}' is not of the form HOST:PORT")
    return {"host": host.strip("[]") or "127.0.0.1", "port": int(port)}


def _grow(
    engine: DuckDBEngine, log: AccessLog, history: timedelta, is_ours: Callable[[], bool], stopping: threading.Event
) -> None:
    """Keep the tables that live by themselves up to now, until the service stops.

    While nobody asks, now and then is enough. A service whose files were deleted has nothing left to serve and ends.
    """
    grown = 0.0
    while not stopping.wait(GROW_SECONDS):
        if not is_ours():
            _log.warning("the service's files are gone: it ends")
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
