"""The route of temporary tables.

A request loads files into a temporary table, which other requests can then query. The answer is one line of JSON: the
envelope with the result of the load, or an error. While the files are loaded, blanks are sent. After a successful load,
the answer stays open until the client disconnects. Then the table is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from threading import Event
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from svcctl.api.loads import FILE_TABLE, LOAD_OPTIONS, LoadOptions
from svcctl.errors import ServiceError
from svcctl.io.json_members import text, texts
from svcctl.service.http.auth import signed
from svcctl.service.http.body import json_object, note_unknown
from svcctl.service.http.connection import left
from svcctl.service.http.context import Service
from svcctl.service.http.envelope import encoded, envelope, error_envelope, refusal
from svcctl.service.http.tables import operated, sources
from svcctl.service.language.types import Column, Type
from svcctl.service.loading.in_memory import engine_in_memory
from svcctl.service.loading.load import load
from svcctl.service.queries.temporary_tables import TemporaryTable, check_query

MEMBERS = ("files", *LOAD_OPTIONS, "query", "emptyColumns")


async def _load(request: Request) -> Response:
    """Load files of the service's machine into a temporary table.

    Only queries with the same API key can read the table. The member `query` of the request is checked before the files
    are read. If the files have no events, the table gets the columns in the member `emptyColumns`. Raises ServiceError
    429 if there are too many temporary tables.
    """
    service = operated(request, "load events")
    fields = json_object(request.state.body)
    note_unknown("a temporary table", fields, MEMBERS)
    query, empty = text(fields, "query"), _columns(fields)
    files, options, gone = sources(fields), LoadOptions.from_json(fields), Event()
    table = service.temporary_tables.add(request.state.account.api_key)

    def go_on() -> None:
        if gone.is_set():
            raise ServiceError("the load was ended because its client left")

    def work() -> dict[str, Any]:
        check_query(query)
        stored = table.open(engine_in_memory())
        loaded = load(stored, files, FILE_TABLE, options, go_on, limits=service.load_limits)
        assert loaded is not None  # the load has no ID, so the service cannot mistake it for an earlier load
        if FILE_TABLE not in stored.tables():
            stored.create(FILE_TABLE, empty)
        return loaded.to_json() | {"temporaryTable": table.id}

    loading = service.run(work)
    leaving = asyncio.ensure_future(left(request))
    leaving.add_done_callback(lambda _: gone.set())
    hold = _TableHold(service, table, loading, leaving)
    try:
        either: set[asyncio.Future[Any]] = {loading, leaving}
        await asyncio.wait(either, timeout=service.padding_seconds, return_when=asyncio.FIRST_COMPLETED)
        if loading.done() or leaving.done():
            await loading  # an error of the load is raised here, before the HTTP status is sent
    except asyncio.CancelledError:
        await hold.close()
        raise ServiceError("the service is stopping", code=504) from None
    except BaseException:
        await hold.close()
        raise
    return _TableResponse(hold, _answer(request, hold))


def _columns(fields: Mapping[str, Any]) -> list[Column]:
    """Return the columns that a temporary table gets if its files have no events.

    The first column is `eventdate`. Each other name in `emptyColumns` gives a column of type str.
    """
    names = {name.casefold(): name for name in texts(fields, "emptyColumns")}
    names.pop("eventdate", None)
    return [Column("eventdate", Type.TIMESTAMP), *(Column(name, Type.STR) for name in names.values())]


class _TableHold:
    """A temporary table that exists as long as the request that made the table.

    `loading` is the future of the load. `leaving` is a future that is done when the client disconnects.
    """

    def __init__(
        self, service: Service, table: TemporaryTable, loading: asyncio.Future[Any], leaving: asyncio.Future[None]
    ) -> None:
        self.service = service
        self.loading = loading
        self.leaving = leaving
        self._table = table

    async def close(self) -> None:
        """End the load if it still runs, and remove the temporary table."""
        with anyio.CancelScope(shield=True):
            self.service.temporary_tables.remove(self._table)
            self.leaving.cancel()
            await asyncio.wait({self.leaving})
            await self._table.close(self.loading)
        if not self.loading.cancelled():
            self.loading.exception()


async def _answer(request: Request, hold: _TableHold) -> AsyncIterator[bytes]:
    service = hold.service
    while not hold.loading.done():
        yield b"    "
        await asyncio.wait({hold.loading}, timeout=service.padding_seconds)
    cid, now = request.state.cid, service.clock()
    try:
        content = envelope(cid, now, hold.loading.result())
    except Exception as error:
        yield encoded(error_envelope(cid, now, refusal(error, cid)))
        return
    yield encoded(content) + b"\n"
    await asyncio.wait({hold.leaving})


class _TableResponse(StreamingResponse):
    """The response of a load into a temporary table. The table is removed when the response ends."""

    def __init__(self, hold: _TableHold, answer: AsyncIterator[bytes]) -> None:
        super().__init__(answer, media_type="application/json")
        self._hold = hold

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._hold.close()


ROUTES = [signed("POST", "/service/temporary-table", _load)]
