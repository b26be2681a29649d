"""The routes of the service, and the answers to failed requests.

A route is a function that takes a request. A route that is not `async` runs in a thread, so it may wait for the disk.
The class `Authentication` sets `request.state.account` and `request.state.body` before a route is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from svcctl import __version__
from svcctl.api import models
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import CredentialsError, ServiceError, SvcctlError, Unavailable
from svcctl.service.accounts import accounts, domains, keys
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.keys import KeyStatus
from svcctl.service.destinations import kinds
from svcctl.service.engines import Engines
from svcctl.service.http import monitoring, provisioning, tables, temporary_tables, verification
from svcctl.service.http.auth import OnOwnSocket, signed
from svcctl.service.http.body import value_text
from svcctl.service.http.codes import CREDENTIALS
from svcctl.service.http.connection import left
from svcctl.service.http.context import Service
from svcctl.service.http.envelope import failed, succeeded
from svcctl.service.http.middleware import Answered, for_pages, without_trailing_slashes
from svcctl.service.http.query_body import read_query
from svcctl.service.http.streaming import LATE_HEADER, AnswerResponse, StreamedAnswer
from svcctl.service.jobs import delivery
from svcctl.service.jobs.checkpoint import StoredQuery
from svcctl.service.jobs.continuation import follow
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.runner import Deliver
from svcctl.service.language import parse
from svcctl.service.process import STOP_PATH
from svcctl.service.queries import saved_queries
from svcctl.service.queries.concurrency import OpenQuery
from svcctl.service.queries.continuous import Steps
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import Step
from svcctl.service.rendering import ENCODERS
from svcctl.service.state.database import StateUnavailable
from svcctl.service.verification.verify import Checks, check

LEFT = 499
"""The status in the access log if the client disconnected before the answer. HTTP defines no status for this case."""


def routes(*, stops: bool) -> list[Route]:
    """Return the routes of the service. If `stops` is true, the list includes the route that stops the service."""
    return [
        signed("POST", "/search/query", _query),
        signed("GET", "/search/jobs", _list_jobs),
        signed("GET", "/search/job/{id}", _get_job),
        signed("GET", "/search/job/stop/{id}", _stop_job),
        signed("GET", "/search/job/start/{id}", _start_job),
        signed("DELETE", "/search/job/remove/{id}", _remove_job),
        signed("GET", "/search/job/remove/{id}", _remove_job),  # for clients that cannot send DELETE
        signed("GET", "/service/status", _status, by=OnOwnSocket),
        signed("POST", "/service/confirm-loss", _confirm_loss),
        *([signed("POST", STOP_PATH, _stop)] if stops else []),
        *monitoring.ROUTES,
        *tables.ROUTES,
        *temporary_tables.ROUTES,
        *provisioning.ROUTES,
        *verification.ROUTES,
    ]


def build(
    service: Service, jobs: Jobs | None = None, origins: Sequence[str] = (), checks: Checks | None = None
) -> ASGIApp:
    """Build the ASGI application of the service. Web pages from `origins` may send requests to the application."""
    app = Starlette(
        routes=routes(stops=service.stop is not None),
        exception_handlers={404: _no_route, 405: _no_route, SvcctlError: _refused, Exception: _refused},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.jobs = jobs or Jobs(service.store, delivering(service))
    app.state.checks = checks or Checks(service.store, service.engines, app.state.jobs, service.allowed, check)
    app.state.settle = partial(settle, service, app.state.jobs)
    return for_pages(Answered(without_trailing_slashes(app), service), origins)


def delivering(service: Service) -> Deliver:
    """Return a function that delivers the jobs of this service. The function connects only to allowed hosts."""
    connect = partial(kinds.destination, allowed=service.allowed)
    return partial(delivery.deliver, service.engines, service.now, lag=service.lag_seconds, connect=connect)


def settle(service: Service, jobs: Jobs) -> None:
    """Apply changed access rights to running jobs and to answers that are still being sent.

    If a domain can no longer be accessed, its jobs and answers are ended. If a domain can be accessed again, its jobs
    are resumed. An answer is also ended if the API key of its request was deleted or has expired.
    """
    ended = {
        key: CredentialsError("the API key of this request is no longer valid", code=CREDENTIALS)
        for key in service.turns.api_keys()
        if (account := accounts.with_key(service.store, key)) is None or account.has_expired(service.clock())
    }
    service.turns.end(domains.refusals(service.store, service.turns.domains()), ended)
    jobs.settle()


async def _no_route(request: Request, error: Exception) -> Response:
    path = value_text(request.url.path)
    return await _refused(request, ServiceError(f"no route {request.method} {path}", code=404, reason="no-route"))


async def _refused(request: Request, error: Exception) -> Response:
    return failed(request.url.path, request.state.cid, request.app.state.service.clock(), error)


async def _query(request: Request) -> Response:
    service: Service = request.app.state.service
    read = partial(
        read_query, now=service.now(), modes=ENCODERS, saved=lambda id: saved_queries.get(service.store, id).text
    )
    asked = await service.look(read, request.state.body)
    if asked.destination is not None:
        return succeeded(request, {"id": await asyncio.to_thread(_launch, request, asked)})
    account: Account = request.state.account
    table = asked.temporary_table and service.temporary_tables.get(asked.temporary_table, account.api_key)
    query = service.turns.open(account.owner, account.api_key)
    if table:
        table.queries.add(query)
    leaving = asyncio.create_task(_end_when_left(request, query))
    try:
        steps, step = await query.run(_planned, service, table.engines if table else None, asked)
        notes = LATE_HEADER in request.headers
        answer = StreamedAnswer(service, query, asked, request.state.cid, steps, notes=notes)
        await answer.begin(step)
    except BaseException:
        query.close()
        raise
    finally:
        leaving.cancel()
    return AnswerResponse(answer, ENCODERS[asked.mode], request.headers.get("connection", ""))


def _planned(service: Service, temporary: Engines | None, asked: AskedQuery) -> tuple[Steps, Step | None]:
    """Return two values: the steps in which a query runs, and the first of these steps.

    The second value is None if the first step cannot run yet. `temporary` has the temporary table that the query reads.
    `temporary` is None if the query reads a stored table.
    """
    steps = Steps(
        temporary or service.engines,
        asked,
        service.now,
        launched=service.now(),
        lag=service.lag_seconds,
        complete=temporary is not None,
    )
    return steps, steps.next(None, 0)


async def _end_when_left(request: Request, query: OpenQuery) -> None:
    """End a query if its client disconnects before the answer begins."""
    await left(request)
    query.end(ServiceError("the client left before its answer began", code=LEFT))


def _launch(request: Request, asked: AskedQuery) -> str:
    """Launch a query with a destination as a job. Return the ID of the job."""
    service: Service = request.app.state.service
    launched = service.now()
    destination = delivery.check(service.engines, asked, launched, service.allowed)
    table = parse(asked.query).table
    stored = service.engines.of(table).stored
    everywhere = stored.everywhere(table)
    mark = None if everywhere else stored.mark(table)
    columns = tuple(column.name for column in stored.table(table).columns)
    job = _jobs(request).launch(
        request.state.account,
        type=destination.type,
        request=StoredQuery(asked, launched, mark=mark, columns=columns),
        params=destination.params,
        everywhere=everywhere,
        follow=follow,
    )
    return job.id


def _list_jobs(request: Request) -> Response:
    return succeeded(request, [job.to_json() for job in _jobs(request).listed(request.state.account)])


def _get_job(request: Request) -> Response:
    return _one_job(request, _jobs(request).get)


def _stop_job(request: Request) -> Response:
    return _one_job(request, _jobs(request).stop)


def _start_job(request: Request) -> Response:
    return _one_job(request, _jobs(request).start)


def _remove_job(request: Request) -> Response:
    return _one_job(request, _jobs(request).remove)


def _one_job(request: Request, operation: Callable[[Account, str], models.Job]) -> Response:
    return succeeded(request, operation(request.state.account, request.path_params["id"]).to_json())


def _jobs(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


def _status(request: Request) -> Response:
    """Answer with the state of the service.

    If the database or the tables cannot be reached, the member `problems` of the answer has the reasons.
    """
    service: Service = request.app.state.service
    problems, tables, expiring = [], [], []
    try:
        expiring = [
            {"name": key.name or key.api_key, "expires": key.expires}
            for key in keys.list_keys(service.store)
            if key.status is KeyStatus.EXPIRING
        ]
    except StateUnavailable as error:
        problems.append(error.detail)
    try:
        service.engines.check()
        tables = [
            {"name": table.name, "columns": [f"{column.name} {column.type}" for column in table.columns]}
            for table in service.engines.tables().values()
        ]
    except Unavailable as error:
        problems.append(error.message)
    if service.disk is not None and service.disk.failure is not None:
        problems.append(service.disk.failure.detail)
    started = seconds_to_ms(service.started)
    members: dict[str, Any] = {
        "version": __version__,
        "address": service.address,
        "startedAt": started,
        "tables": tables,
    }
    account: Account | None = request.state.account
    if account is None or account.operates:
        members["uses"] = service.uses
        lost = service.loss and service.loss.to_json()
        details = {"problems": problems, "foreground": service.foreground, "lost": lost, "expiringKeys": expiring}
        members |= {name: value for name, value in details.items() if value}
    return succeeded(request, members)


def _confirm_loss(request: Request) -> Response:
    """Confirm a loss of events, so that the loss is no longer reported. The answer has the confirmed loss."""
    service: Service = request.app.state.service
    account: Account = request.state.account
    if not account.operates:
        raise CredentialsError("only an administrator of the service may confirm that events were lost")
    loss = None if service.record is None else service.record.confirm()
    return succeeded(request, {"lost": loss and loss.to_json()})


async def _stop(request: Request) -> Response:
    """Stop the service. The request must use the Unix socket, to which only the owner of the service can connect."""
    service: Service = request.app.state.service
    account: Account = request.state.account
    if request.client is not None or not account.operates:
        raise CredentialsError("only an administrator may stop the service, and only over its Unix socket")
    assert service.stop is not None
    service.stop()
    return succeeded(request, {"status": "stopping"})
