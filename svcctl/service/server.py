"""The process of the service.

The process takes the lock, listens on its sockets, opens its files and makes demo events. Then it answers requests
until it gets a signal to stop.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from svcctl.errors import Terminated, Unavailable, UsageError, reason
from svcctl.io.allocator import limit_arenas
from svcctl.io.parquet import start_arrow
from svcctl.io.setting import Setting
from svcctl.io.temporary import remove_left_over
from svcctl.io.time_limit import without_signals
from svcctl.service import process
from svcctl.service.accounts.seed import open_store
from svcctl.service.disk import Disk
from svcctl.service.engines import Engine, Engines
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.hosts.allowed_hosts import EVERYTHING, PUBLIC_ONLY
from svcctl.service.http.access_log import TABLE as ACCESS_TABLE
from svcctl.service.http.access_log import AccessLog
from svcctl.service.http.app import build, delivering, settle
from svcctl.service.http.connection import Limits, ServerConnection
from svcctl.service.http.context import Service
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.listeners import UnixListener, address_of, tcp_listener
from svcctl.service.loading import demo, first_demo
from svcctl.service.loading.limits import LoadLimits
from svcctl.service.loading.shared_folder import opened
from svcctl.service.settings import (
    ACCESS_EVENTS,
    ACCESS_TIME,
    CONNECTIONS,
    CORS_ORIGINS,
    DEMO,
    DESTINATIONS_ALLOWED,
    EMBEDDED,
    ENGINE,
    LAG_TIME,
    LINE_END,
    OPEN_QUERIES,
    PADDING_TIME,
    QUERY_PLACES,
    QUERY_TIME,
    RUNNING_JOBS,
    SERVICE_SETTINGS,
    TABLES,
    TOTAL_JOBS,
    places,
)
from svcctl.service.state import folder_identity
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.events_record import EventsRecord
from svcctl.service.state.store import Store
from svcctl.words import mask_urls

THREADS = 64
"""The maximum number of threads for loads and for running queries."""
OTHER_DESCRIPTORS = 200
"""The number of open files that the service needs in addition to its connections.

The service needs these files for its state, events, jobs and loads.
"""
SIGNAL_SECONDS = 0.2
"""The maximum time, in seconds, until the service notices a signal that arrives while it opens its tables."""
TICK_SECONDS = 1.0
"""The interval between two ticks of the server, in seconds.

At each tick, the server updates the `Date` header of responses and checks its Unix socket.
"""
SETTLE_SECONDS, SHARED_SETTLE_SECONDS = 1.0, 0.4
"""The interval, in seconds, at which the service looks for changes that other processes have made to its state.

SHARED_SETTLE_SECONDS is used if several services share the state.
"""

SERVICE_LIMITS = {
    "query_seconds": QUERY_TIME,
    "padding_seconds": PADDING_TIME,
    "lag_seconds": LAG_TIME,
    "places": QUERY_PLACES,
    "share": OPEN_QUERIES,
    "line_end": LINE_END,
}
"""The fields of `Service` that are set by settings. Each field is mapped to its setting."""

_log = logging.getLogger("svcctl.service")


class _StartReport:
    """Reports the progress of the start to the log, and to the process that started the service."""

    def __init__(self, pipe: process.StarterPipe) -> None:
        self._pipe = pipe
        self._announced = False

    def progress(self, what: str, fraction: float) -> None:
        if not self._pipe.is_open and fraction < 1 and not self._announced:
            _log.info("making demo events (once)")
            self._announced = True
        self._pipe.send(progress=f"making demo events (once): {what} {fraction:.0%}")

    def note(self, text: str, level: int = logging.INFO) -> None:
        _log.log(level, "%s", text)
        self._pipe.send(note=text)

    def ready(self, where: str) -> None:
        _log.info("listening on %s", where)
        self._pipe.end(ready=True)


class _Server(uvicorn.Server):
    """The HTTP server. Its first socket is the Unix socket.

    The server makes the Unix socket again if the socket's file was deleted or replaced.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        own: UnixListener,
        is_ours: Callable[[], bool],
        serving: threading.Event,
        ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        config.callback_notify, config.timeout_notify = self._restore, 0  # call `_restore` at every tick
        self._own = own
        self._is_ours = is_ours
        self._serving = serving
        self._ready = ready
        self._listen_failed = False
        self._leaving = asyncio.Event()

    async def main_loop(self) -> None:
        """Run a tick every second until a signal arrives. The loop of uvicorn would run ten ticks a second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), TICK_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        asyncio.get_running_loop().call_soon_threadsafe(self._leaving.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._serving.set()
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._serving.clear()
        await super().shutdown(sockets=sockets)

    async def _restore(self) -> None:
        """Listen on the Unix socket again if its file was deleted or replaced."""
        if self._own.is_found() or not self._is_ours():
            return
        try:
            self._own.listen()
        except OSError as error:
            if not self._listen_failed:
                _log.warning("the socket %s is gone and cannot be made: %s", self._own.path, reason(error))
            self._listen_failed = True
            return
        self._listen_failed = False
        lost, *others = self.servers
        await super().startup(sockets=[self._own.socket])
        self.servers += others
        lost.close()
        _log.warning("the socket %s was gone: the service made it again", self._own.path)


def serve(
    files: process.ServiceFiles,
    command: str,
    *,
    listen: str | None = None,
    state: str | None = None,
    tables: str | None = None,
    engine: str | None = None,
    create: bool = False,
    pipe: process.StarterPipe,
) -> None:
    """Run the service until SIGTERM or SIGINT. Raises Locked if a service already runs with these files.

    The service always listens on its Unix socket, for the commands on this machine. With `listen`, it also listens on
    HOST:PORT, and saves its command line `command`. When the service is not running, hints show this command line.
    """
    _prepare_process()
    settings = {setting: setting.read(os.environ) for setting in SERVICE_SETTINGS}
    history = timedelta(seconds=settings[DEMO])
    limits = Limits(connections=_descriptors_for(settings[CONNECTIONS]))
    ready = _StartReport(pipe)
    lock = process.hold_lock(files)  # the kernel releases the lock when this process ends, even after a crash
    with ExitStack() as closing:
        serving = threading.Event()
        closing.enter_context(_running_thread(partial(_touch, lock, serving)))
        own_socket = UnixListener(files.socket)
        closing.callback(own_socket.close)
        for folder in (None, files.directory):
            remove_left_over(folder)
        tcp = None if listen is None else closing.enter_context(tcp_listener(listen))
        address = None if tcp is None else address_of(tcp)
        process.keep_serve_command(files, None if tcp is None else command)
        process.complete_reset(files)
        store = open_store(files, os.environ, state=state, is_service=True)
        closing.callback(store.close)
        live = frozenset((ACCESS_TABLE, *(demo.TABLES if history else ())))
        check_record = partial(_check_record, files, store, partial(ready.note, level=logging.WARNING))
        own, record = closing.enter_context(_tables(files, ready.progress, history, check_record))
        closing.callback(_record, record)
        engine_name = engine or ENGINE.read(os.environ) or EMBEDDED
        shared = closing.enter_context(
            _shared_engine(store, tables or TABLES.read(os.environ), engine_name, ready.note, create=create)
        )
        executor = ThreadPoolExecutor(THREADS, thread_name_prefix="query")
        closing.callback(executor.shutdown, cancel_futures=True)
        service = Service(
            engines=Engines(Engine(own, own), shared, live),
            store=store,
            executor=executor,
            **{name: settings[setting] for name, setting in SERVICE_LIMITS.items()},
            load_limits=LoadLimits.read(os.environ),
            allowed=settings[DESTINATIONS_ALLOWED] or (EVERYTHING if tcp is None else PUBLIC_ONLY),
            address=address,
            live=live,
            record=record,
            disk=Disk(files.directory),
            foreground=not pipe.is_open,
            uses=places(os.environ, folder=tables, state=state, engine=engine),
            stop=partial(os.kill, os.getpid(), signal.SIGTERM),
        )
        jobs = _jobs(service, settings, process.place(files))
        app = build(service, jobs, settings[CORS_ORIGINS] or ())
        log = AccessLog(app, own, most=settings[ACCESS_EVENTS], age=settings[ACCESS_TIME])
        is_ours = partial(process.holds_lock, files, lock)
        closing.enter_context(_running_thread(partial(_grow, demo.GrowingTables(own, history), log, is_ours)))
        closing.callback(jobs.close)
        service.record_events()
        pause = SHARED_SETTLE_SECONDS if store.shared else SETTLE_SECONDS
        closing.enter_context(_running_thread(partial(settle_repeatedly, service, jobs, pause)))
        report_ready = partial(ready.ready, address or str(files.socket))
        server = _Server(_config(log, limits), own_socket, is_ours, serving, report_ready)
        _answer(server, [own_socket.socket, *([] if tcp is None else [tcp])])
    _log.info("stopped")


def _jobs(service: Service, settings: Mapping[Setting, Any], place: str) -> Jobs:
    return Jobs(
        service.store,
        delivering(service),
        share=settings[RUNNING_JOBS],
        total=settings[TOTAL_JOBS],
        place=place,
    )


class _MaskingFormatter(logging.Formatter):
    """Formats the lines of the log without the secrets in URLs. Lines that libraries write are included."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_urls(super().format(record))


def _prepare_process() -> None:
    """Set up the memory, the log, the mode of new files, and Arrow for the whole process."""
    limit_arenas()
    to_stderr = logging.StreamHandler()
    to_stderr.setFormatter(_MaskingFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[to_stderr])
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # hide warnings about the SQL that sqlglot writes
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # hide messages about the start and stop of uvicorn
    os.umask(0o077)
    start_arrow()


@contextmanager
def _tables(
    files: process.ServiceFiles,
    progress: Callable[[str, float], None],
    history: timedelta,
    check_record: Callable[[DuckDBEngine], EventsRecord],
) -> Iterator[tuple[DuckDBEngine, EventsRecord]]:
    """Open the tables in the service's own file, check for lost events, and add the demo events up to now.

    This work runs in a separate thread. In the main thread, a signal during a call of DuckDB would either have no
    effect or raise an error of DuckDB.
    """
    gone = threading.Event()

    def report(table: str, fraction: float) -> None:
        if gone.is_set():
            raise Terminated
        progress(table, fraction)

    def make() -> tuple[DuckDBEngine, EventsRecord]:
        if history and not files.events.exists():
            first_demo.make(files.events, datetime.now(UTC), history, report)
        with ExitStack() as closing:
            own = closing.enter_context(DuckDBEngine(files.events))
            record = check_record(own)
            for table, fraction, _ in demo.extend(own, datetime.now(UTC), history):
                report(table, fraction)
            closing.pop_all()
        return own, record

    with ThreadPoolExecutor(1, initializer=without_signals) as thread:
        tables = thread.submit(make)
        try:
            # The system may deliver a signal to a thread of a library. Python notices the signal only when the main
            # thread runs.
            while not tables.done():
                wait([tables], SIGNAL_SECONDS)
        except (KeyboardInterrupt, Terminated):
            gone.set()
            raise
    own, record = tables.result()
    with own:
        yield own, record


def _check_record(
    files: process.ServiceFiles, store: Store, note: Callable[[str], None], own: DuckDBEngine
) -> EventsRecord:
    """Check whether the service's own file of events has lost any events, and return the record of the file.

    The record is in the service's state, and has the position at which each table ends. Lost events are reported to
    `note`. Raises Unavailable if the state cannot be reached.
    """
    record = EventsRecord(store, process.place(files), own)
    try:
        loss = record.check(adopts=files.reset.exists())
    except StateUnavailable as error:
        raise Unavailable(error.detail, hint=error.advice) from None
    files.reset.unlink(missing_ok=True)
    if loss is not None:
        note(f"events were lost: {loss.text}")
    elif record.loss is not None:
        _log.warning("events were lost earlier, and nobody has confirmed the loss: %s", record.loss.text)
    return record


def _record(record: EventsRecord) -> None:
    """Store the position at which each table ends, so that the next start can detect lost events.

    If the state cannot be written, nothing is stored.
    """
    with suppress(StateUnavailable):
        record.record()


def _config(app: AccessLog, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=ServerConnection.limited(limits),
        access_log=False,
        log_config=None,
        lifespan="off",
        timeout_graceful_shutdown=3,
        ws="none",
    )


def _answer(server: _Server, sockets: list[socket.socket]) -> None:
    """Answer requests until a signal arrives."""
    # After uvicorn has stopped at a signal, it sends the same signal to this process again. These handlers ignore the
    # second signal, so that it does not end the process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    # The objects that exist now are needed until the process ends, so the garbage collector need not visit them.
    # Otherwise, the collector would visit all objects at every hundredth query. This would delay running queries by the
    # time of up to five queries.
    gc.freeze()
    gc.set_threshold(700, 10, 100)
    try:
        server.run(sockets)
    finally:
        gc.unfreeze()


@contextmanager
def _shared_engine(
    store: Store, uri: str | None, engine_name: str, note: Callable[[str], None], *, create: bool
) -> Iterator[Engine | None]:
    """Open the engine for the tables in the shared folder. Yield None if the service has no shared folder.

    `uri` is the shared folder. `engine_name` is `duckdb`, or the URI of Spark. With `create`, a missing folder is
    created. `note` receives a message if the service used another folder before.
    """
    with ExitStack() as closing:
        if uri is None and (create or engine_name != EMBEDDED):
            option = "--create" if create else "--engine"
            hint = f"name it with --tables or {TABLES.environment}"
            raise UsageError(f"{option} needs a shared folder of tables", hint=hint)
        lake = None if uri is None else closing.enter_context(opened(uri, os.environ))
        folder = None if lake is None else lake.folder
        if before := folder_identity.join(store, folder, create=create):
            now = folder_identity.NO_FOLDER if folder is None else folder.uri
            note(f"its shared folder is now {now} (before: {before}); {TABLES.environment} sets it")
        if lake is None:
            yield None
        elif engine_name == EMBEDDED:
            from svcctl.service.engines.duckdb.lake_reader import LakeReader

            yield Engine(lake, LakeReader(lake))
        else:
            from svcctl.service.engines.spark import on_spark  # Spark needs the packages of two extras

            spark = on_spark(lake, engine_name, os.environ)
            closing.callback(spark.close)
            yield Engine(lake, spark)


def _descriptors_for(connections: int) -> int:
    """Raise the process's limit of open files, so that `connections` connections are possible.

    Return the number of connections that the system allows. This number may be lower than `connections`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    granted = min(connections + OTHER_DESCRIPTORS, most)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return max(1, min(connections, granted - OTHER_DESCRIPTORS))


@contextmanager
def _running_thread(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `work` in a thread during the block. `work` must end when its argument is set, at the end of the block."""
    stopping = threading.Event()
    thread = threading.Thread(target=work, args=(stopping,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _touch(lock: int, serving: threading.Event, stopping: threading.Event) -> None:
    """Touch the lock file every second while the service starts or stops. So the service does not seem to hang.

    `serving` is set while the service answers requests.
    """
    without_signals()
    while not stopping.wait(process.TOUCH_SECONDS):
        if not serving.is_set():
            with suppress(OSError):
                os.utime(lock)


def settle_repeatedly(service: Service, jobs: Jobs, pause: float, stopping: threading.Event) -> None:
    """Apply changes that other processes have made to the state, every `pause` seconds until `stopping` is set.

    Also probes the disk and renews the leases of jobs. From time to time, stores the position at which each table ends,
    and the time at which each API key was last used.
    """
    is_away = False
    while True:
        try:
            jobs.renew()
            if service.disk is not None:
                service.disk.look()
            if service.record is not None:
                service.record.record_in_time()
            settle(service, jobs)
            jobs.renew()
            service.key_uses.write_in_time()
            if is_away:
                _log.info("the state can be reached again")
            is_away = False
        except StateUnavailable as error:
            if not is_away:
                _log.warning("%s", error.detail)
            is_away = True
        except Exception:
            _log.exception("the jobs could not be started or stopped")
        if stopping.wait(pause):
            with suppress(StateUnavailable):
                service.key_uses.write()
            return


def _grow(tables: demo.GrowingTables, log: AccessLog, is_ours: Callable[[], bool], stopping: threading.Event) -> None:
    """Until `stopping` is set, add demo events to the demo tables, and store the new events of the access log.

    Stops the process if its files were deleted.
    """
    last_extension = 0.0
    while not stopping.wait(demo.GROW_SECONDS):
        if not is_ours():
            _log.warning("the service's files are gone: the service stops")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        if log.quiet_for() > demo.QUIET_SECONDS and time.monotonic() - last_extension < demo.QUIET_GROW_SECONDS:
            continue
        last_extension = time.monotonic()
        try:
            tables.extend(datetime.now(UTC))
            log.flush()
        except Exception:
            _log.exception("the live tables could not be extended")
    log.flush()
