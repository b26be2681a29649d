"""Temporary tables. A client can query its own files as the table `file` while its request is open.

Each table has a separate engine in memory, so no other client can see the table. The engine writes data that does not
fit in memory to a temporary directory. If the process is killed, the next start of the service removes this directory.
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
"""The maximum number of temporary tables that exist at the same time.

The engine of each table may need as much memory as the engine of the stored tables.
"""


class NotTheFile(NotFound):
    """Raised if a query of loaded files reads a table other than `file`."""

    reason = "not-the-file"

    def __init__(self, table: str) -> None:
        super().__init__(
            f"no table '{table}': a query of files reads the table {FILE_TABLE}",
            hint=f"begin it with: from {FILE_TABLE}",
            data={"table": table},
        )


def check_query(text: str) -> None:
    """Check a query of loaded files.

    Raises QueryError if the query cannot be parsed. Raises NotTheFile if the query reads a table other than `file`.
    """
    if (table := parse(text).table) != FILE_TABLE:
        raise NotTheFile(table)


@dataclass(eq=False)
class TemporaryTable:
    """The temporary table of a request, and the queries that read the table.

    `api_key` is the API key of the request.
    """

    api_key: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    queries: set[OpenQuery] = field(default_factory=set)
    _closing: ExitStack = field(default_factory=ExitStack)
    _engines: Engines | None = None

    def open(self, engine: AbstractContextManager[Engine]) -> Tables:
        """Open the engine of the table, and return the engine's Tables object, in which the table will be stored."""
        opened = self._closing.enter_context(engine)
        self._engines = Engines(opened)
        return opened.stored

    @property
    def engines(self) -> Engines:
        """An Engines object that has only the engine of this table. Raises NotFound if `open` was not called yet."""
        if self._engines is None:
            raise _gone()
        return self._engines

    async def close(self, loading: asyncio.Future[Any]) -> None:
        """End the queries of the table, wait until nothing uses the table, and close the engine of the table.

        `loading` is the future of the load that fills the table.
        """
        reading = [query for query in self.queries if not query.closed.done()]
        for query in reading:
            query.end(_gone())
        uses: set[asyncio.Future[Any]] = {loading, *(query.closed for query in reading)}
        await asyncio.wait(uses)
        await asyncio.to_thread(self._closing.close)


class TemporaryTables:
    """The temporary tables of a service. Use this object only in the event loop."""

    def __init__(self) -> None:
        self._tables: dict[str, TemporaryTable] = {}

    def add(self, api_key: str) -> TemporaryTable:
        """Add a new temporary table. Raises ServiceError 429 if there are too many temporary tables."""
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
        """Return the temporary table with this ID.

        Raises NotFound if there is no such table, or if the table belongs to another API key.
        """
        table = self._tables.get(id)
        if table is None or table.api_key != api_key:
            raise _gone()
        return table

    def remove(self, table: TemporaryTable) -> None:
        """Remove a temporary table from the list, so that new queries cannot read the table."""
        self._tables.pop(table.id, None)


def _gone() -> NotFound:
    return NotFound("the files of this query are not loaded, or their request has ended", reason="files-gone")
