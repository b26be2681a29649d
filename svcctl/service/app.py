"""The service's routes: requests in, envelopes and streams out. What a route does is in the modules beside this one."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from svcctl import __version__
from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError, SvcctlError
from svcctl.service import language
from svcctl.service.auth import authorize
from svcctl.service.encoders import ENCODERS, Encoder, Rendering
from svcctl.service.engines.duckdb import Engine
from svcctl.service.load import load
from svcctl.service.requests import QueryBody, read_query
from svcctl.service.store import Account, Store

MAX_BODY_BYTES = 2**20
"""A request body is a query and a few fields; more is refused with 413."""

_log = logging.getLogger("svcctl.service")


@dataclass
class Service:
    """What the routes work with."""

    engine: Engine
    store: Store
    executor: Executor
    clock: Callable[[], float] = time.time
    query_seconds: float = 600.0
    """How long the engine may work on one query; the time that a reader takes does not count."""
    padding_seconds: float = 5.0
    """How long a client waits for the next byte before it gets keep-alive padding."""
    started: float = field(default_factory=time.time)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)


def build(service: Service) -> Starlette:
    """The ASGI application."""

    def route(path: str, method: str, respond: Callable[[Service, Request, bytes], Awaitable[Response]]) -> Route:
        return Route(path, partial(_guarded, service, respond), methods=[method])

    return Starlette(
        routes=[
            route("/search/query", "POST", _query),
            route("/service/status", "GET", _status),
            route("/service/load", "POST", _load),
        ],
        exception_handlers={404: _no_route, 405: _no_route},
    )


async def _guarded(
    service: Service, respond: Callable[[Service, Request, bytes], Awaitable[Response]], request: Request
) -> Response:
    """Run a route for whoever signed the request, and turn every error into the interface's envelope."""
    cid = request.state.cid = secrets.token_hex(6)
    try:
        body = await _read(request)
        request.state.account = authorize(request.headers, body, service.store, service.clock)
        return await respond(service, request, body)
    except SvcctlError as error:
        return failure(service, error, cid)
    except Exception:
        _log.exception("request %s failed", cid)
        return failure(
            service, ServiceError("the service failed on this request; its log has the reason", code=500), cid
        )


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ServiceError(f"the body is larger than {MAX_BODY_BYTES} bytes", code=413)
    return bytes(body)


_STATUS: tuple[tuple[type[SvcctlError], int], ...] = ((CredentialsError, 401), (NotFound, 404), (Conflict, 409))


def http_status(error: SvcctlError) -> int:
    """The HTTP status of an error; the code of a ServiceError when it is one."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    code = error.code if isinstance(error, ServiceError) else None
    return code if code is not None and 400 <= code < 600 else 400


def envelope(service: Service, cid: str, content: Any, **fields: Any) -> dict[str, Any]:
    """The interface's response envelope; `fields` replace its own."""
    made = {"success": True, "msg": "", "status": 0, "cid": cid, "timestamp": int(service.clock() * 1000)}
    return made | fields | ({} if content is None else {"object": content})


def failure(service: Service, error: SvcctlError, cid: str) -> Response:
    """The envelope of an error: `success` false, `status` 1, and the place in the query when it has one."""
    return _json(_failed(service, error, cid), http_status(error))


def _failed(service: Service, error: SvcctlError, cid: str) -> dict[str, Any]:
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    place = getattr(error, "place", None)
    context = {} if place is None else {"context": {"line": place.line, "column": place.column}}
    return envelope(service, cid, None, success=False, msg=message, status=1, **context)


def _json(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content, ensure_ascii=False, default=str), status, media_type="application/json")


async def _no_route(request: Request, error: Exception) -> Response:
    content = {"success": False, "msg": f"no route {request.method} {request.url.path}", "status": 1}
    return _json(content | {"cid": secrets.token_hex(6), "timestamp": int(time.time() * 1000)}, 404)


async def _query(service: Service, request: Request, body: bytes) -> Response:
    loop = asyncio.get_running_loop()
    asked = read_query(body, now=service.now(), modes=ENCODERS)
    plan = await loop.run_in_executor(service.executor, _plan, service, asked)
    rendering = Rendering(
        request.state.cid, int(service.clock() * 1000), plan.table, date_format=asked.date_format, zone=asked.zone
    )
    answer = Answer(service, ENCODERS[asked.mode](plan.columns, rendering), plan)
    await answer.begin()
    return StreamingResponse(answer.chunks(), media_type=answer.encoder.content_type)


def _plan(service: Service, asked: QueryBody) -> language.Plan:
    return language.compile(
        language.parse(asked.query),
        service.engine.tables(),
        start=asked.range.start,
        end=asked.range.end,
        now=service.now(),
        zone=asked.zone,
        skip=asked.skip,
        limit=asked.limit,
    )


class Answer:
    """One query's rows on their way out: the engine works a batch ahead while the wire takes the last one.

    The engine's part runs in a thread. Nothing is sent before the first batch (or the padding time), so that an early
    failure is an envelope of its own; a later one ends the stream in the way of its format.
    """

    def __init__(self, service: Service, encoder: Encoder, plan: language.Plan) -> None:
        self.encoder = encoder
        self._service = service
        self._closing = ExitStack()
        self._closing.enter_context(encoder)
        self._stream = self._closing.enter_context(service.engine.stream(encoder.select(plan)))
        self._batches: Iterator[pa.RecordBatch] = iter(self._stream)
        self._left = service.query_seconds
        self._next = self._advance()

    async def begin(self) -> None:
        """Wait for the first batch, but not longer than a client should wait for a byte."""
        await self._wait()
        if self._next.done() and self._next.exception() is not None:
            await self._close()
            self._next.result()

    async def chunks(self) -> AsyncIterator[bytes | memoryview]:
        """The response's body."""
        try:
            yield self.encoder.head()
            while True:
                while not self._next.done():
                    await self._wait()
                    if not self._next.done() and self.encoder.padding:
                        yield self.encoder.padding
                chunk = self._next.result()
                if chunk is None:
                    break
                self._next = self._advance()
                yield chunk
            for chunk in self.encoder.tail():
                yield chunk
        except SvcctlError as error:
            if not self.encoder.streams:
                raise  # nothing was sent yet: closing the connection is the one way left to say it
            yield self.encoder.error(http_status(error), error.message)
        finally:
            await self._close()

    def _advance(self) -> asyncio.Future[bytes | memoryview | None]:
        return asyncio.get_running_loop().run_in_executor(self._service.executor, self._encode_next)

    def _encode_next(self) -> bytes | memoryview | None:
        batch = next(self._batches, None)
        return None if batch is None else self.encoder.chunk(batch)

    async def _wait(self) -> None:
        before = time.monotonic()
        await asyncio.wait({self._next}, timeout=max(0.0, min(self._service.padding_seconds, self._left)))
        self._left -= time.monotonic() - before
        if self._left <= 0 and not self._next.done():
            limit = f"{self._service.query_seconds:g} s"
            self._stream.interrupt(ServiceError(f"the query needs more than {limit} of work; narrow it", code=504))

    async def _close(self) -> None:
        """Stop the engine's work and wait for its thread; a client that left must not hold one."""
        if not self._next.done():
            self._stream.interrupt()
        await asyncio.shield(asyncio.wait({self._next}))
        if not self._next.cancelled():
            self._next.exception()
        self._closing.close()


async def _status(service: Service, request: Request, body: bytes) -> Response:
    tables = [
        {"name": table.name, "columns": [f"{column.name} {column.type}" for column in table.columns]}
        for table in service.engine.tables().values()
    ]
    content = {"version": __version__, "startedAt": int(service.started * 1000), "tables": tables}
    return _json(envelope(service, request.state.cid, content))


async def _load(service: Service, request: Request, body: bytes) -> Response:
    """Load a file of this machine into a table: for administrators, since the service reads the file itself."""
    account: Account = request.state.account
    if not account.administrator:
        raise CredentialsError("only an administrator may load events")
    fields = json.loads(body)
    work = partial(
        load,
        service.engine,
        Path(fields["path"]),
        fields["table"],
        time_field=fields.get("timeField"),
        format=fields.get("format"),
    )
    return await _padded(service, request.state.cid, work)


async def _padded(service: Service, cid: str, work: Callable[[], Any]) -> Response:
    """The envelope of work that may take long; meanwhile the client gets padding, so that it keeps waiting."""
    result = asyncio.get_running_loop().run_in_executor(service.executor, work)
    await asyncio.wait({result}, timeout=service.padding_seconds)
    if result.done():
        return _json(envelope(service, cid, asdict(result.result())))

    async def body() -> AsyncIterator[bytes]:
        while not result.done():
            yield b"    "
            await asyncio.wait({result}, timeout=service.padding_seconds)
        try:
            content = envelope(service, cid, asdict(result.result()))
        except SvcctlError as error:
            content = _failed(service, error, cid)
        yield json.dumps(content, ensure_ascii=False, default=str).encode()

    return StreamingResponse(body(), media_type="application/json")
