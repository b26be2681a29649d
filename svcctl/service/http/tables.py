"""The routes that list, load, trim, move and drop tables. These routes are additions to the interface.

Every account may see the tables. Only an administrator of the service may change a table, or see the jobs and saved
queries that read a table.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from svcctl.api.loads import LOAD_OPTIONS, LoadOptions
from svcctl.dates.epochs import from_ms, to_ms
from svcctl.dates.operators import moment_text
from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError, UsageError
from svcctl.io.json_members import optional_text, text
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.access_log import TABLE as ACCESS_TABLE
from svcctl.service.http.auth import signed
from svcctl.service.http.body import json_object, note_unknown
from svcctl.service.http.connection import left
from svcctl.service.http.context import Service
from svcctl.service.http.envelope import encoded, envelope, error_envelope, refusal, succeeded
from svcctl.service.jobs import job_table
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.language import QueryError, parse
from svcctl.service.language.types import Table
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.load import load
from svcctl.service.queries import saved_queries
from svcctl.service.state.store import Store

# A hint about the demo tables, which the service itself fills. It names the setting that switches the demo off.
_DEMO_SETTING = "for a service without demo events, set SVCCTL_DEMO=0"
RECENT = 100
"""The number of recent loads whose results the service remembers."""
ENDS_SECONDS = 0.8
"""A request for the result of a load waits at most this number of seconds for the load to end."""
LAST_MS = 253_402_300_799_999
"""The last moment of the year 9999, in epoch milliseconds."""
LOAD_MEMBERS = ("files", "table", *LOAD_OPTIONS, "loadId", "attempt")
_NO_FILES = 'files is not a list of objects with a path, such as [{"path": "/rows.csv"}]'
FOLDER, FILE = "folder", "file"
"""The two places where a table can be: in the shared folder, or in the service's own file."""
_SIZE_SETTINGS = {ACCESS_TABLE: "SVCCTL_ACCESS_EVENTS and SVCCTL_ACCESS_TIME set how much it keeps"}


def _list(request: Request) -> Response:
    service: Service = request.app.state.service
    return succeeded(request, [_described(service, table) for table in service.engines.tables().values()])


def _get(request: Request) -> Response:
    service: Service = request.app.state.service
    account: Account = request.state.account
    table = service.engines.table(request.path_params["name"])
    description = _described(service, table)
    return succeeded(request, description | _readers(service.store, table.name) if account.operates else description)


def _drop(request: Request) -> Response:
    """Drop a table. The answer describes the table as it was before the operation.

    Jobs that read the table stop with an error at their next read.
    """
    service = operated(request, "drop tables")
    table = service.engines.table(request.path_params["name"])
    _check_changeable(service, table.name, _SIZE_SETTINGS.get(table.name, _DEMO_SETTING))
    description = _described(service, table) | _readers(service.store, table.name)
    service.engines.of(table.name).stored.drop(table.name)
    return succeeded(request, description)


async def _trim(request: Request) -> Response:
    """Remove the events of a table before a date. Raises Conflict if a job must still read some of these events."""
    service = operated(request, "remove events")
    fields = json_object(request.state.body)
    note_unknown("a trim", fields, ("before",))
    name, before = request.path_params["name"], fields.get("before")
    if not isinstance(before, int) or not 0 <= before <= LAST_MS:
        raise ServiceError("before is missing" if before is None else "before is not a date in epoch milliseconds")
    _check_changeable(service, name, _SIZE_SETTINGS.get(name, _DEMO_SETTING))
    table, jobs, date = service.engines.table(name), request.app.state.jobs, from_ms(before)

    def work() -> dict[str, Any]:
        for job in _readers_of(service.store, name):
            begins = job.rest.request.asked.range.start
            if begins < date and jobs.reached(job) < before:
                raise Conflict(
                    f"job {job.friendly_name} has not read the events of {name} before {moment_text(date)} (UTC) yet",
                    hint="wait until it has, or remove it",
                    reason="events-unread",
                    data={"job": job.id, "table": name},
                )
        removed = service.engines.of(name).stored.remove_before(name, date.replace(tzinfo=None))
        return _described(service, table) | {"removed": removed}

    return await _padded(request, service.run(work))


async def _load(request: Request) -> Response:
    """Load files into a table. The service itself reads the files, so they must be on the service's machine."""
    service = operated(request, "load events")
    fields = json_object(request.state.body)
    note_unknown("a load", fields, LOAD_MEMBERS)
    table, options = text(fields, "table"), LoadOptions.from_json(fields)
    _check_changeable(service, table, "load into another table")
    files, load_id, gone = sources(fields), optional_text(fields, "loadId"), Event()
    attempt = optional_text(fields, "attempt")

    def go_on() -> None:
        if gone.is_set():
            raise ServiceError("the load was ended because its client left")

    def work() -> dict[str, Any]:
        engine, limits = service.engines.for_load(table), service.load_limits
        loaded = load(engine, files, table, options, go_on, load_id=load_id, limits=limits)
        service.record_events()
        if loaded is None:
            return {"table": table, "alreadyLoaded": load_id}
        ended = {"jobs": _readers(service.store, table)["jobs"]} if options.replace and loaded.before else {}
        return loaded.to_json() | ended

    result = service.run(work)
    if attempt is not None:
        service.loads[attempt] = result
        for old in list(service.loads)[:-RECENT]:
            del service.loads[old]
    return await _padded(request, result, gone)


async def _load_ended(request: Request) -> Response:
    """Answer with the result of a load after the client of the load has disconnected.

    If the load still runs after ENDS_SECONDS, the answer says so.
    """
    service = operated(request, "load events")
    result = service.loads.get(request.path_params["attempt"])
    if result is None:
        raise NotFound("no recent load has this attempt")
    if not result.done():
        await asyncio.wait({result}, timeout=ENDS_SECONDS)
    loaded = None if not result.done() or result.exception() is not None else result.result()
    return succeeded(request, {"ended": result.done(), "loaded": loaded})


async def _copy(request: Request) -> Response:
    """Move a table to the shared folder, or back to the service's own file."""
    service = operated(request, "move tables")
    fields = json_object(request.state.body)
    to = text(fields, "to")
    if to not in (FOLDER, FILE):
        raise ServiceError(f"to is '{to}', which is not {FOLDER} or {FILE}")
    name = request.path_params["name"]

    def move() -> dict[str, Any]:
        events = service.engines.move(name, shared=to == FOLDER)
        service.record_events()
        return {"table": name, "events": events}

    return await _padded(request, service.run(move))


def sources(fields: Mapping[str, Any]) -> list[Source]:
    """Return the files that a request asks to load.

    Each file has a path, and a name that is used in messages. By default, the name is the path. Raises ServiceError for
    invalid members.
    """
    files = fields.get("files")
    if not isinstance(files, list) or not files:
        raise ServiceError("files is missing" if files is None else _NO_FILES)
    file_sources = []
    for file in files:
        if not isinstance(file, dict):
            raise ServiceError(_NO_FILES)
        path = text(file, "path")
        file_sources.append(Source(Path(path), optional_text(file, "name") or path))
    return file_sources


def operated(request: Request, what: str) -> Service:
    """Return the service, if the account of the request may administer the service.

    Otherwise raise CredentialsError. `what` is the operation, for the error message.
    """
    account: Account = request.state.account
    if not account.operates:
        raise CredentialsError(f"only an administrator of the service may {what}")
    service: Service = request.app.state.service
    return service


def _check_changeable(service: Service, name: str, hint: str) -> None:
    """Raise UsageError if the service itself fills the table `name`. Users may not change such a table."""
    if name in service.live:
        raise UsageError(f"table '{name}' belongs to the service, which writes its events", hint=hint)


def _described(service: Service, table: Table) -> dict[str, Any]:
    extent = service.engines.of(table.name).stored.extent(table.name)
    return {
        "name": table.name,
        "columns": [f"{column.name} {column.type}" for column in table.columns],
        "events": extent.events,
        "from": None if extent.oldest is None else to_ms(extent.oldest),
        "to": None if extent.newest is None else to_ms(extent.newest),
        "bytes": extent.bytes,
        "live": table.name in service.live,
    }


def _readers(store: Store, table: str) -> dict[str, Any]:
    """Return as JSON the jobs and the saved queries that read a table.

    The jobs come from all domains. Only jobs that run or can be started again are included.
    """
    jobs = [
        {"id": job.id, "status": job.status, "friendlyName": job.friendly_name} for job in _readers_of(store, table)
    ]
    return {
        "jobs": jobs,
        "queries": [query.id for query in saved_queries.list_queries(store) if _reads(query.text, table)],
    }


def _readers_of(store: Store, table: str) -> list[StoredJob]:
    return [job for job in job_table.unfinished(store) if _reads(job.query, table)]


def _reads(query: str, table: str) -> bool:
    try:
        return parse(query).table == table
    except QueryError:
        return False


async def _padded(request: Request, result: asyncio.Future[Any], gone: Event | None = None) -> Response:
    """Answer with the result of long work. Until the result is ready, send blanks, so that the client keeps waiting.

    The threading.Event `gone` is set when the client disconnects or the answer is complete.
    """
    service: Service = request.app.state.service
    leaving = asyncio.ensure_future(left(request))
    if gone is not None:
        leaving.add_done_callback(lambda _: gone.set())
    try:
        await asyncio.wait({result, leaving}, timeout=service.padding_seconds, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:  # the service stops, and no longer waits for its requests
        leaving.cancel()
        raise ServiceError("the service is stopping", code=504) from None
    if result.done() or leaving.done():
        leaving.cancel()
        return succeeded(request, await result)

    async def body() -> AsyncIterator[bytes]:
        try:
            while not result.done():
                yield b"    "
                await asyncio.wait({result}, timeout=service.padding_seconds)
        finally:
            leaving.cancel()
        try:
            content = envelope(request.state.cid, service.clock(), result.result())
        except Exception as error:
            cid = request.state.cid
            content = error_envelope(cid, service.clock(), refusal(error, cid))
        yield encoded(content)

    return StreamingResponse(body(), media_type="application/json")


ROUTES = [
    signed("GET", "/service/tables", _list),
    signed("GET", "/service/tables/{name}", _get),
    signed("DELETE", "/service/tables/{name}", _drop),
    signed("POST", "/service/tables/{name}/copy", _copy),
    signed("POST", "/service/tables/{name}/trim", _trim),
    signed("POST", "/service/load", _load),
    signed("GET", "/service/load/{attempt}", _load_ended),
]
