"""ASGI middleware: gives each request an ID, authenticates it, and logs its answer.

Answered and AccessLog wrap the application. Authentication wraps single routes, so a path without a route is a 404 for
everybody.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svcctl.errors import ServiceError
from svcctl.service.accounts import domains
from svcctl.service.accounts.accounts import Account
from svcctl.service.engines import Tables
from svcctl.service.http.auth import claimed
from svcctl.service.http.context import Counts, Service
from svcctl.service.http.envelope import failed
from svcctl.service.language.types import Column, Type
from svcctl.service.settings import ACCESS_EVENTS, ACCESS_TIME
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.store import Store
from svcctl.words import size_text

CID = "x-svc-cid"
"""The header that holds a request's ID; some formats have no place for it in the body."""

MAX_BODY_BYTES = 2**20
"""A request body is a query and a few fields; a larger one is refused with 413."""

SMALL_BODY_BYTES = 2**16
"""A body up to this size is read at once; larger ones wait for one of the service's `large_bodies`."""

HEALTH = "/service/health"
"""Load balancers ask for it every few seconds, so the access log leaves it out."""

TABLE = "service.access"
TRIMMED_EVERY = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1)
LONGEST = {"method": 20, "uri": 500, "userAgent": 200}
"""The most characters of the texts that a client chooses; longer ones are cut."""
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


class Answered:
    """Gives each request its `request.state.cid`, and every answer the header of the same ID; counts the answers.

    This is the outermost middleware, so it also answers what failed in any other one. A failure after the head of the
    answer was sent is passed on, and the server closes the connection.
    """

    def __init__(self, app: ASGIApp, clock: Callable[[], float], counts: Counts) -> None:
        self._app = app
        self._clock = clock
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cid = secrets.token_hex(6)
        scope.setdefault("state", {})["cid"] = cid
        begun = ended = False

        async def named(message: Message) -> None:
            nonlocal begun, ended
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message)[CID] = cid
                self._counts.answer(scope["method"], message["status"])
            else:
                self._counts.bytes += len(message.get("body", b""))
                ended = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, named)
        except Exception as error:
            if not begun:
                await failed(cid, self._clock(), error)(scope, receive, named)
            elif not ended:
                raise


def for_pages(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Let web pages of these origins read the answers of an application (CORS); without origins nothing changes.

    Before most requests of a page its browser sends a preflight request, which is answered here, unsigned.
    """
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "POST", "PUT", "DELETE"),
        allow_headers=("Authorization", "Content-Type", *(f"x-svc-{name}" for name in ("apikey", "timestamp", "sign"))),
        expose_headers=(CID,),
    )


class Authentication:
    """Lets only signed requests reach a route, and gives it `request.state.account` and `request.state.body`.

    The body is read here, once, because the signature covers its bytes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service: Service = scope["app"].state.service
        signer = await service.look(claimed, Headers(scope=scope), service.store, service.clock)
        body = await _read(Request(scope, receive), service)
        account = await service.look(_admitted, signer, body, service.store)
        scope["state"] |= {"account": account, "body": body}
        await self._app(scope, receive, send)


class OnOwnSocket(Authentication):
    """Lets unsigned requests on the Unix socket through while the state, which has the accounts, cannot be reached.

    Only the service's user can connect to that socket. `request.state.account` is None then.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except StateUnavailable:
            if scope["client"] is not None:
                raise
            scope["state"] |= {"account": None, "body": b""}
            await self._app(scope, receive, send)


def _admitted(signer: Callable[[bytes], Account], body: bytes, store: Store) -> Account:
    """The account that signed a body, if its domain can be accessed."""
    account = signer(body)
    if account.domain_id is not None:
        domains.require_access(store, account.domain_id)
    return account


def signed(
    method: str, path: str, endpoint: Callable[[Request], object], by: type[Authentication] = Authentication
) -> Route:
    """Make a route that only signed requests reach."""
    return Route(path, endpoint, methods=[method], middleware=[Middleware(by)])


async def _read(request: Request, service: Service) -> bytes:
    """Read a body before its signature is known, so only a few large ones are held at a time."""
    body = bytearray()
    async with AsyncExitStack() as holding:
        try:
            async for chunk in request.stream():
                if len(body) <= SMALL_BODY_BYTES < len(body) + len(chunk):
                    await holding.enter_async_context(service.large_bodies)
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise ServiceError(f"the body is larger than {size_text(MAX_BODY_BYTES)}", code=413)
        except ClientDisconnect:
            raise ServiceError("the client left before its request was whole") from None
        return bytes(body)


class AccessLog:
    """The access log as a live table: stores an event of `service.access` for each request.

    A request is noted when its response has ended, and stored by the next `flush`, so a kill loses the last few.
    `timeTaken` is in milliseconds. The table keeps the last `most` events (and a tenth more before it is trimmed), and
    none that is older than `days` (and an hour). So clients cannot fill the disk.
    """

    def __init__(
        self, app: ASGIApp, tables: Tables, *, most: int = ACCESS_EVENTS.read({}), age: float = ACCESS_TIME.read({})
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
        if scope["path"] == HEALTH:
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
        """Seconds since the last request ended; 0 while one is open."""
        return 0.0 if self._open else time.monotonic() - self._last

    def flush(self) -> None:
        """Store the requests that were noted since the last flush."""
        with self._lock:
            rows, self._waiting = self._waiting, []
        if rows:
            batch = pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
            self._stored += self._tables.append(TABLE, pa.RecordBatchReader.from_batches(_SCHEMA, [batch]))
        now = datetime.now(UTC).replace(tzinfo=None)
        if self._stored * 10 > self._most * 11 or self._trimmed is None or now - self._trimmed > TRIMMED_EVERY:
            self._trimmed = now
            self._stored = self._tables.trim(TABLE, most=self._most, since=max(now, EPOCH + self._age) - self._age)


def _cut(column: str, text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST[column] else f"{text[: LONGEST[column] - 1]}…"
