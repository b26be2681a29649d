"""Temporary tables: files that a single client queries, as the table `file`, as long as its request is open.

Each is in an engine of its own, in memory, which writes what does not fit into a temporary directory. So nobody else
can see it, and nothing of it is left when the process is killed; the next start removes the directory.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

from svcctl.api.loads import FILE_TABLE
from svcctl.errors import NotFound, ServiceError
from svcctl.service.engines import Engine, Engines, Tables
from svcctl.service.language import parse
from svcctl.service.queries.concurrency import TOO_MANY_REQUESTS, OpenQuery

MAX_TEMPORARY_TABLES = 8
"""The most temporary tables at once; each may need as much memory as the service's own tables."""


class NotTheFile(NotFound):
    """A query of loaded files reads another table."""

    reason = "not-the-file"

    def __init__(self, table: str) -> None:
        super().__init__(
            f"no table '{table}': a query of files reads the table {FILE_TABLE}",
            hint=f"begin it with: from {FILE_TABLE}",
            data={"table": table},
        )


def check_query(text: str) -> None:
    """Raise QueryError if a query cannot be read, and NotTheFile if it reads another table than that of the files."""
    if (table := parse(text).table) != FILE_TABLE:
        raise NotTheFile(table)


@dataclass(eq=False)
class TemporaryTable:
    """The table of one request, and the queries that read it. `api_key` is the key of the request."""

    api_key: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    queries: set[OpenQuery] = field(default_factory=set)
    _closing: ExitStack = field(default_factory=ExitStack)
    _engines: Engines | None = None

    def open(self, engine: AbstractContextManager[Engine]) -> Tables:
        """Open the engine of the table, which has no table yet, until `close`; returns where to store it."""
        opened = self._closing.enter_context(engine)
        self._engines = Engines(opened)
        return opened.stored

    @property
    def engines(self) -> Engines:
        """The engine of the table as that of a service. NotFound before it is open."""
        if self._engines is None:
            raise _gone()
        return self._engines

    async def close(self, loading: asyncio.Future[Any]) -> None:
        """End the queries, and remove the table once nothing uses it; `loading` is the work that fills it."""
        reading = [query for query in self.queries if not query.closed.done()]
        for query in reading:
            query.end(_gone())
        uses: set[asyncio.Future[Any]] = {loading, *(query.closed for query in reading)}
        await asyncio.wait(uses)
        await asyncio.to_thread(self._closing.close)


class TemporaryTables:
    """The temporary tables of a service. Used in the event loop alone."""

    def __init__(self) -> None:
        self._tables: dict[str, TemporaryTable] = {}

    def add(self, api_key: str) -> TemporaryTable:
        """A new table. ServiceError 429 if there are too many."""
        if len(self._tables) >= MAX_TEMPORARY_TABLES:
            raise ServiceError(
                f"files of {len(self._tables)} queries are already loaded, which is the maximum",
                code=TOO_MANY_REQUESTS,
                reason="service-busy",
                hint="try again when one of them has ended",
            )
        table = TemporaryTable(api_key)
        self._tables[table.id] = table
        return table

    def get(self, id: str, api_key: str) -> TemporaryTable:
        """The table with this ID. NotFound if there is none, or it belongs to another API key."""
        table = self._tables.get(id)
        if table is None or table.api_key != api_key:
            raise _gone()
        return table

    def remove(self, table: TemporaryTable) -> None:
        """Forget a table, so that no query of it can begin."""
        self._tables.pop(table.id, None)


def _gone() -> NotFound:
    return NotFound("the files of this query are not loaded, or their request has ended", reason="files-gone")
