"""Two engines as one: the service's file has the tables about the service itself, a shared folder all others.

Tables that were loaded into the file before the service had a folder are still read from there; `service copy` moves
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import MappingProxyType

import pyarrow as pa

from svcctl.errors import UsageError
from svcctl.service.engines import ARROW, ROWS_PER_BATCH, Engine, Extent, Mark, Stream, check_table
from svcctl.service.language import compile, tree
from svcctl.service.language.dialect import Dialect
from svcctl.service.language.query_error import NOWHERE
from svcctl.service.language.types import Column, Plan, Table

BEGIN = datetime(1, 1, 1, tzinfo=UTC)


class JoinedEngine:
    """The tables of two engines. New tables are made in `shared`, but for the names in `kept`, which are made in `own`.

    A name that both engines have means the shared table.
    """

    def __init__(self, own: Engine, shared: Engine, kept: Collection[str] = ()) -> None:
        self.own = own
        self.shared = shared
        self._kept = frozenset(kept)
        self._joined: tuple[Mapping[str, Table], Mapping[str, Table], Mapping[str, Table]] | None = None

    def holder(self, name: str) -> Engine:
        """The engine that has a table, or would store it."""
        if name in self._kept or (name in self.own.tables() and name not in self.shared.tables()):
            return self.own
        return self.shared

    @property
    def dialect(self) -> Dialect:
        return self.own.dialect

    def check(self) -> None:
        self.own.check()
        self.shared.check()

    def tables(self) -> Mapping[str, Table]:
        own, shared = self.own.tables(), self.shared.tables()
        if self._joined is None or self._joined[0] is not own or self._joined[1] is not shared:
            kept = {name: table for name, table in own.items() if name in self._kept}
            self._joined = own, shared, MappingProxyType(dict(sorted({**own, **shared, **kept}.items())))
        return self._joined[2]

    def table(self, name: str) -> Table:
        return self.holder(name).table(name)

    def everywhere(self, name: str) -> bool:
        return self.holder(name).everywhere(name)

    def newest(self, name: str) -> datetime | None:
        return self.holder(name).newest(name)

    def events(self, name: str) -> int:
        return self.holder(name).events(name)

    def extent(self, name: str) -> Extent:
        return self.holder(name).extent(name)

    def mark(self, name: str) -> Mark:
        return self.holder(name).mark(name)

    def check_mark(self, name: str, mark: Mark) -> None:
        self.holder(name).check_mark(name, mark)

    def create(self, name: str, columns: Sequence[Column]) -> Table:
        check_table(name, columns, self.tables())
        return self.holder(name).create(name, columns)

    def append(
        self,
        name: str,
        rows: pa.RecordBatchReader,
        *,
        create: Sequence[Column] | None = None,
        replace: bool = False,
        load_id: str | None = None,
        go_on: Callable[[], None] = lambda: None,
    ) -> int:
        if create is not None:
            check_table(name, create, self.tables(), replace=replace)
        return self.holder(name).append(name, rows, create=create, replace=replace, load_id=load_id, go_on=go_on)

    def has_load(self, name: str, load_id: str) -> bool:
        return self.holder(name).has_load(name, load_id)

    def drop(self, name: str) -> None:
        self.holder(name).drop(name)

    def trim(self, name: str, *, most: int, since: datetime) -> int:
        return self.holder(name).trim(name, most=most, since=since)

    def remove_before(self, name: str, date: datetime) -> int:
        return self.holder(name).remove_before(name, date)

    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> AbstractContextManager[Stream]:
        return self.holder(plan.table).stream(plan, since=since, until=until, rows_per_batch=rows_per_batch)

    def move(self, name: str, *, shared: bool) -> int:
        source = self.holder(name)
        table, target = source.table(name), self.shared if shared else self.own
        if name in self._kept:
            raise UsageError(f"table '{name}' belongs to the service, so it stays where it is")
        if source is target:
            raise UsageError(f"table '{name}' is in {'the shared folder' if shared else 'the file'} already")
        everything = tree.Query(at=NOWHERE, table=name, clauses=())
        plan = compile(everything, {name: table}, dialect=source.dialect, start=BEGIN, end=None, now=BEGIN)
        schema = pa.schema([(column.name, ARROW[column.type]) for column in table.columns])
        with source.stream(plan, rows_per_batch=ROWS_PER_BATCH) as rows:
            renamed = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
            batches = pa.RecordBatchReader.from_batches(schema, renamed)
            moved = target.append(name, batches, create=table.columns, replace=name in target.tables())
        source.drop(name)
        return moved

    def close(self) -> None:
        self.shared.close()
        self.own.close()
