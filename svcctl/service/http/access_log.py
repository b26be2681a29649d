"""The access log: a table with an event for each request. The middleware `AccessLog` writes the events."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svcctl.dates.epochs import EPOCH
from svcctl.service.engines import Tables
from svcctl.service.language.types import Column, Type
from svcctl.service.process import PING_PATH
from svcctl.service.settings import ACCESS_EVENTS, ACCESS_TIME

HEALTH = "/service/health"
UNLOGGED = {HEALTH, PING_PATH}
"""The paths of requests that are not logged.

Health checks and pings are so frequent that they would fill the log.
"""

TABLE = "service.access"
TRIMMED_EVERY = timedelta(hours=1)
MAX_CHARS = {"method": 20, "uri": 500, "userAgent": 200}
"""The maximum number of characters in each column with text from the client. A longer text is cut."""
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
    """Stores an event in the table `service.access` for each request.

    An event is made when the response to its request has ended. The next call of `flush` stores the event. If the
    process is killed, events that are not yet stored are lost. The column `timeTaken` is in milliseconds.

    The table is trimmed once an hour, and also when it has 10 % more events than `most`. So clients cannot fill the
    disk. Trimming keeps only the newest `most` events, and removes all events older than `age` seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        tables: Tables,
        *,
        most: int = ACCESS_EVENTS.default_value,
        age: float = ACCESS_TIME.default_value,
    ) -> None:
        self._app = app
        self._tables = tables
        self._most = most
        self._age = timedelta(seconds=age)
        self._stored = 0
        self._trimmed: datetime | None = None
        self._waiting: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._open = 0
        self._last = time.monotonic()
        if TABLE not in tables.tables():
            tables.create(TABLE, COLUMNS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in UNLOGGED:
            await self._app(scope, receive, send)
            return
        status, sent, started = None, 0, time.monotonic()

        async def counted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        state = scope.setdefault("state", {})
        self._open += 1
        try:
            await self._app(scope, receive, counted)
        finally:
            self._open -= 1
            self._last = time.monotonic()
            account = state.get("account")
            row = {
                "eventdate": datetime.now(UTC).replace(tzinfo=None),
                "method": _cut("method", scope["method"]),
                "uri": _cut("uri", scope["path"]),
                "statusCode": status,
                "bytesSent": sent,
                "timeTaken": int((time.monotonic() - started) * 1000),
                "domain": account.domain if account else None,
                "cid": state.get("cid"),
                "userAgent": _cut("userAgent", Headers(scope=scope).get("user-agent") or None),
            }
            with self._lock:
                self._waiting.append(row)

    def quiet_for(self) -> float:
        """Return the number of seconds since the last request ended. Return 0 while a request is open."""
        return 0.0 if self._open else time.monotonic() - self._last

    def flush(self) -> None:
        """Store the events of the requests that ended since the last flush, and trim the table if necessary."""
        with self._lock:
            rows, self._waiting = self._waiting, []
        if rows:
            batch = pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
            self._stored += self._tables.append(TABLE, pa.RecordBatchReader.from_batches(_SCHEMA, [batch]))
        now = datetime.now(UTC)
        if self._stored * 10 > self._most * 11 or self._trimmed is None or now - self._trimmed > TRIMMED_EVERY:
            self._trimmed = now
            since = max(now, EPOCH + self._age) - self._age
            self._stored = self._tables.trim(TABLE, most=self._most, since=since.replace(tzinfo=None))


def _cut(column: str, text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_CHARS[column] else f"{text[: MAX_CHARS[column] - 1]}…"
