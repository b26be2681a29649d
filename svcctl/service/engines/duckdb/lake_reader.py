"""Reads tables of a shared folder with DuckDB, in this process. Only the files that a query may need are read.

The first rows of a large result are returned early, and the result is not held in memory. Files with rows in order of
date are not sorted again. Other files are sorted in small parts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import duckdb
from sqlglot import exp

from svcctl.service.engines import Mark
from svcctl.service.engines.duckdb import matches
from svcctl.service.engines.duckdb.dialect import POSITION, DuckDBDialect
from svcctl.service.engines.duckdb.matches import Statements
from svcctl.service.engines.duckdb.reading import Reading, Selects
from svcctl.service.engines.duckdb.scanner import Source
from svcctl.service.engines.duckdb.syntax import quote
from svcctl.service.engines.lake.selects import counted, with_keys, without_range
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.engines.lake.snapshot import Snapshot, SnapshotPart, parts, whole
from svcctl.service.language.dialect import write
from svcctl.service.language.types import Column, Plan, Type


class LakeReader(Reading):
    """Runs plans over the tables of a shared folder in DuckDB."""

    dialect = DuckDBDialect()

    def __init__(self, lake: LakeTables) -> None:
        self._lake = lake

    @contextmanager
    def _reading(
        self, plan: Plan, since: Mark | None, until: Mark | None
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, Selects]]:
        table = self._lake.snapshot(plan.table)
        loads = self._lake.between(table, since, until)
        plan, files = counted(plan, table.within(plan.start, plan.end, loads), loads)
        columns = _read_by(plan, table)
        read = parts(files, self._lake.sorted_rows) if plan.by_event else [whole(files)]
        with self._lake.scanner.scanning(table, loads, columns, (plan.start, plan.end)) as (cursor, source):
            statements = _statements(without_range(plan, files), table, columns, source)
            if plan.by_event and plan.selective and len(read) > 1:
                yield cursor, Selects(matches.selects(cursor, read, statements, self._lake.sorted_rows))
            else:
                yield cursor, Selects(map(statements.sorted, read))


def _statements(plan: Plan, table: Snapshot, read: Sequence[Column], source: Source) -> Statements:
    """Return the SELECTs of a plan. `read` has the columns that the plan needs.

    `source` returns the subquery that reads the rows of a part of the table.
    """
    position = quote(table.hidden.row)
    names = ", ".join(f"{_as_read(column)} AS {quote(column.name)}" for column in read)
    place = f"{quote(table.hidden.load)}::HUGEINT * {1 << 40} + {position} AS {position}"
    rows = f"rows-{uuid.uuid4().hex}"  # no query contains this name

    def over(select: exp.Select) -> Callable[[SnapshotPart], str]:
        node, within = _source(select)
        for column in within.find_all(exp.Column):
            if column.name == POSITION:
                column.set("this", exp.to_identifier(table.hidden.row, quoted=True))
        node.set("this", exp.to_identifier(rows, quoted=True))
        text = write(select, LakeReader.dialect)
        return lambda part: text.replace(quote(rows), f"(SELECT {names}, {place} FROM {source(part)})")

    unordered, keys = with_keys(plan.select)
    unordered.set("order", None)
    ordered, as_read = over(plan.select.copy()), over(_without_sort(plan.select))
    columns = [item.alias for item in plan.select.expressions]
    return Statements(lambda part: (as_read if part.ordered else ordered)(part), over(unordered), columns, keys)


def _read_by(plan: Plan, table: Snapshot) -> list[Column]:
    """Return those columns of a table that a plan reads."""
    used = {column.name for column in plan.select.find_all(exp.Column)}
    return [column for column in table.columns if column.name in used]


def _as_read(column: Column) -> str:
    return f"{quote(column.name)}::UINTEGER" if column.type is Type.IP4 else quote(column.name)


def _source(select: exp.Select) -> tuple[exp.Table, exp.Select]:
    """Return the table that a SELECT reads, and the SELECT that has this table after FROM.

    The second result is the given SELECT or one of its subqueries.
    """
    node = next(select.find_all(exp.Table))
    within = node.parent_select
    assert within is not None
    return node, within


def _without_sort(plan: exp.Select) -> exp.Select:
    """Return a plan without its ORDER BY eventdate and position.

    The changed plan must read rows that are already in this order.
    """
    plan = plan.copy()
    select: exp.Expression | None = _source(plan)[1]
    name = POSITION
    while isinstance(select, exp.Select):
        order = select.args.get("order")
        if order is not None:
            keys = order.expressions
            if len(keys) == 2 and isinstance(keys[1].this, exp.Column) and keys[1].this.name == name:
                select.set("order", None)
            break
        carried = [item for item in select.expressions if isinstance(item, exp.Alias)]
        aliases = [item.alias for item in carried if isinstance(item.this, exp.Column) and item.this.name == name]
        if not aliases:
            break
        name, select = aliases[0], select.parent_select
    return plan
