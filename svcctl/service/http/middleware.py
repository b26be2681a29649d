"""The service's own access log as a live table: every request it answers is an event of `service.access`."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svcctl.service.engines.duckdb import Engine
from svcctl.service.language.types import Column, Type

TABLE = "service.access"
COLUMNS = (
    Column("eventdate", Type.TIMESTAMP),
    Column("method", Type.STR),
    Column("uri", Type.STR),
    Column("statusCode", Type.INT4),
    Column("bytesSent", Type.INT8),
    Column("timeTaken", Type.INT8),
    Column("domain", Type.STR),
    Column("cid", Type.STR),
    Column("userAgent", Type.STR),
)
_ARROW = {Type.TIMESTAMP: pa.timestamp("ms"), Type.STR: pa.string(), Type.INT4: pa.int32(), Type.INT8: pa.int64()}
_SCHEMA = pa.schema([(column.name, _ARROW[column.type]) for column in COLUMNS])


class AccessLog:
    """Wraps the app: notes each request when its response has ended, and stores what was noted at each `flush`.

    `timeTaken` is in milliseconds. Rows wait in memory between flushes, so a kill loses the last of them.
    """

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine
        self._waiting: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._open = 0
        self._last = time.monotonic()
        if TABLE not in engine.tables():
            engine.create(TABLE, COLUMNS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, sent, started = 0, 0, time.monotonic()

        async def counted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        self._open += 1
        try:
            await self._app(scope, receive, counted)
        finally:
            self._open -= 1
            self._last = time.monotonic()
            state = scope.get("state", {})
            account = state.get("account")
            row = {
                "eventdate": datetime.now(UTC).replace(tzinfo=None),
                "method": scope["method"],
                "uri": scope["path"],
                "statusCode": status or None,
                "bytesSent": sent,
                "timeTaken": int((time.monotonic() - started) * 1000),
                "domain": account.domain if account else None,
                "cid": state.get("cid"),
                "userAgent": dict(scope["headers"]).get(b"user-agent", b"").decode("latin-1") or None,
            }
            with self._lock:
                self._waiting.append(row)

    def quiet_for(self) -> float:
        """Seconds since the last request ended; 0 while one is open."""
        return 0.0 if self._open else time.monotonic() - self._last

    def flush(self) -> None:
        """Store what was noted since the last flush."""
        with self._lock:
            rows, self._waiting = self._waiting, []
        if rows:
            batch = pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
            self._engine.append(TABLE, pa.RecordBatchReader.from_batches(_SCHEMA, [batch]))
