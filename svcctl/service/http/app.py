"""The service's routes: requests in, envelopes and streams out. What a route does is in the modules beside this one."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from svcctl import __version__
from svcctl.errors import CredentialsError, ServiceError, SvcctlError
from svcctl.service.events.load import load
from svcctl.service.http import provisioning
from svcctl.service.http.auth import authorize
from svcctl.service.http.envelope import envelope, failed, failure, http_status, json_response
from svcctl.service.http.query_body import read_query
from svcctl.service.http.streaming import AnswerResponse, StreamedAnswer
from svcctl.service.jobs import delivery
from svcctl.service.jobs.checkpoint import StoredQuery
from svcctl.service.jobs.jobs import STATUSES, Jobs
from svcctl.service.provisioning import domains
from svcctl.service.provisioning.accounts import Account
from svcctl.service.queries import saved
from svcctl.service.queries.asked import AskedQuery
from svcctl.service.queries.continuous import Steps
from svcctl.service.rendering import ENCODERS
from svcctl.service.service import Service

MAX_BODY_BYTES = 2**20
"""A request body is a query and a few fields; more is refused with 413."""

CID = "x-svc-cid"
"""Names a request in every answer, for the formats whose body has no place for it."""

_log = logging.getLogger("svcctl.service")


def build(service: Service, jobs: Jobs | None = None) -> Starlette:
    """The ASGI application."""
    running = jobs or Jobs(service.store, partial(delivery.deliver, service.engine, service.now))

    def route(path: str, method: str, respond: Callable[[Service, Request, bytes], Awaitable[Response]]) -> Route:
        return Route(path, partial(_guarded, service, respond), methods=[method])

    return Starlette(
        routes=[
            route("/search/query", "POST", partial(_query, running)),
            route("/search/jobs", "GET", partial(_job, running.listed)),
            route("/search/job/{id}", "GET", partial(_job, running.get)),
            route("/search/job/stop/{id}", "GET", partial(_job, running.stop)),
            route("/search/job/start/{id}", "GET", partial(_job, running.start)),
            route("/search/job/remove/{id}", "DELETE", partial(_job, running.remove)),
            route("/service/status", "GET", _status),
            route("/service/load", "POST", _load),
            *(route(one.path, one.method, one) for one in provisioning.ROUTES),
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
        account = request.state.account = authorize(request.headers, body, service.store, service.clock)
        domains.require_access(service.store, account.domain)
        response = await respond(service, request, body)
    except SvcctlError as error:
        response = failure(service, error, cid)
    except Exception:
        _log.exception("request %s failed", cid)
        response = failure(
            service, ServiceError("the service failed on this request; its log has the reason", code=500), cid
        )
    response.headers[CID] = cid
    return response


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ServiceError(f"the body is larger than {MAX_BODY_BYTES} bytes", code=413)
    return bytes(body)


async def _no_route(request: Request, error: Exception) -> Response:
    cid = secrets.token_hex(6)
    content = {"success": False, "msg": f"no route {request.method} {request.url.path}", "status": 1, "cid": cid}
    response = json_response(content | {"timestamp": int(time.time() * 1000)}, 404)
    response.headers[CID] = cid
    return response


async def _query(jobs: Jobs, service: Service, request: Request, body: bytes) -> Response:
    asked = read_query(body, now=service.now(), modes=ENCODERS, saved=partial(_saved, service))
    if asked.destination is not None:
        id = await asyncio.to_thread(_launch, jobs, service, asked, request.state.account)
        return json_response(envelope(service, request.state.cid, {"id": id}))
    steps = await service.run(partial(Steps, service.engine, asked, service.now, launched=service.now()))
    answer = StreamedAnswer(service, asked, request.state.cid, steps)
    await answer.begin()
    return AnswerResponse(answer, ENCODERS[asked.mode].content_type)


def _launch(jobs: Jobs, service: Service, asked: AskedQuery, account: Account) -> str:
    """Make a job of a query with a destination; its ID."""
    launched = service.now()
    destination = delivery.check(service.engine, asked, launched)
    request = StoredQuery(asked, launched).to_json()
    return jobs.launch(account, type=destination.type, query=asked.query, request=request, params=destination.params).id


async def _job(operation: Callable[..., Any], service: Service, request: Request, body: bytes) -> Response:
    """What a job operation returns, in a thread of its own kind: it waits for the disk, and a stop for its job."""
    try:
        found = await asyncio.to_thread(operation, request.state.account, *request.path_params.values())
    except ServiceError as error:
        if error.code not in STATUSES:
            raise
        told = failed(service, error, request.state.cid) | {"status": error.code}
        return json_response(told, http_status(error))
    content = [job.to_json() for job in found] if isinstance(found, list) else found.to_json()
    return json_response(envelope(service, request.state.cid, content))


def _saved(service: Service, id: str) -> str:
    return saved.get(service.store, id).text


async def _status(service: Service, request: Request, body: bytes) -> Response:
    tables = [
        {"name": table.name, "columns": [f"{column.name} {column.type}" for column in table.columns]}
        for table in service.engine.tables().values()
    ]
    content = {"version": __version__, "startedAt": int(service.started * 1000), "tables": tables}
    return json_response(envelope(service, request.state.cid, content))


async def _load(service: Service, request: Request, body: bytes) -> Response:
    """Load a file of this machine into a table: for administrators, since the service reads the file itself."""
    account: Account = request.state.account
    if not account.operates:
        raise CredentialsError("only an administrator of the service may load events")
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
    result = service.run(work)
    await asyncio.wait({result}, timeout=service.padding_seconds)
    if result.done():
        return json_response(envelope(service, cid, asdict(result.result())))

    async def body() -> AsyncIterator[bytes]:
        while not result.done():
            yield b"    "
            await asyncio.wait({result}, timeout=service.padding_seconds)
        try:
            content = envelope(service, cid, asdict(result.result()))
        except SvcctlError as error:
            content = failed(service, error, cid)
        yield json.dumps(content, ensure_ascii=False, default=str).encode()

    return StreamingResponse(body(), media_type="application/json")
