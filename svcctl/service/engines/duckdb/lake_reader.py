"""The embedded reader of tables in a shared folder: DuckDB reads only the files that a query may need.

A long answer begins at once and is not held in memory: rows of files in order of date are not sorted again, and others
are sorted in small parts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb
from sqlglot import exp

from svcctl.service.engines import Mark
from svcctl.service.engines.duckdb.dialect import POSITION, DuckDBDialect
from svcctl.service.engines.duckdb.reading import Reading, Selects
from svcctl.service.engines.duckdb.syntax import quote
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.engines.lake.snapshot import Snapshot, parts, whole
from svcctl.service.language.dialect import write
from svcctl.service.language.types import Column, Plan, Type


class LakeReader(Reading):
    """Runs plans over the tables of a shared folder in their DuckDB."""

    dialect = DuckDBDialect()

    def __init__(self, lake: LakeTables) -> None:
        self._lake = lake

    @contextmanager
    def _reading(
        self, plan: Plan, since: Mark | None, until: Mark | None
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, Selects]]:
        table = self._lake.snapshot(plan.table)
        loads = self._lake.between(table, since, until)
        files = table.within(plan.start, plan.end, loads)
        columns = _read_by(plan, table)
        read = parts(files, self._lake.sorted_rows) if plan.by_event else [whole(files)]
        with self._lake.scanner.scanning(table, read, loads, columns, (plan.start, plan.end)) as (cursor, sources):
            # The name stands for the list of files, which may be long; it is random, so no query contains it.
            name = quote(f"source-{uuid.uuid4().hex}")
            kinds = {part.ordered for part in read}
            texts = {ordered: self._text(plan, table, name, columns, ordered=ordered) for ordered in kinds}
            selects = [texts[part.ordered].replace(name, source) for part, source in zip(read, sources, strict=True)]
            yield cursor, Selects(selects)

    def _text(self, plan: Plan, table: Snapshot, source: str, read: Sequence[Column], *, ordered: bool) -> str:
        """The plan's SELECT over `source`, without ORDER BY if the rows of `source` are ordered."""
        select = plan.select.copy()
        node = next(node for node in select.find_all(exp.Table))
        within = node.parent_select
        assert within is not None
        if ordered:
            _drop_order(within)
        position = table.hidden.row
        for column in within.find_all(exp.Column):
            if column.name == POSITION:
                column.set("this", exp.to_identifier(position, quoted=True))
        stand_in = f"rows-{uuid.uuid4().hex}"
        node.set("this", exp.to_identifier(stand_in, quoted=True))
        columns = ", ".join(f"{_as_read(column)} AS {quote(column.name)}" for column in read)
        place = f"{quote(table.hidden.load)}::HUGEINT * {1 << 40} + {quote(position)} AS {quote(position)}"
        return write(select, self.dialect).replace(quote(stand_in), f"(SELECT {columns}, {place} FROM {source})")


def _read_by(plan: Plan, table: Snapshot) -> list[Column]:
    """The columns of a table that a plan may read."""
    used = {column.name for column in plan.select.find_all(exp.Column)}
    return [column for column in table.columns if column.name in used]


def _as_read(column: Column) -> str:
    return f"{quote(column.name)}::UINTEGER" if column.type is Type.IP4 else quote(column.name)


def _drop_order(within: exp.Select) -> None:
    """Remove ORDER BY eventdate and position from the plan: its source returns the rows in this order."""
    select: exp.Expression | None = within
    name = POSITION
    while isinstance(select, exp.Select):
        order = select.args.get("order")
        if order is not None:
            keys = order.expressions
            if len(keys) == 2 and isinstance(keys[1].this, exp.Column) and keys[1].this.name == name:
                select.set("order", None)
            return
        carried = [item for item in select.expressions if isinstance(item, exp.Alias)]
        aliases = [item.alias for item in carried if isinstance(item.this, exp.Column) and item.this.name == name]
        if not aliases:
            return
        name, select = aliases[0], select.parent_select
