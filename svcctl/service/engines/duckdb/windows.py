"""Splits a query into windows of dates with few events each, which are sorted one after the other.

A single sort would hold the whole answer, and return nothing until the last event is read. Windows are chosen by a
sample, so they have only about the same number of rows; the order of the rows does not depend on the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import duckdb
from sqlglot import exp

from svcctl.service.engines.duckdb.dialect import DuckDBDialect
from svcctl.service.language.dialect import write

SORTED_ROWS = 250_000
"""About how many rows are sorted at once, unless more have the same date: some 50 MB."""
MOST_WINDOWS = 40
"""The most windows: each reads again all parts of the file that have some of its events."""
SAMPLED_ROWS = 500_000
"""How many events are in the sample: 244 of DuckDB's vectors, which takes milliseconds."""
_DATE = exp.column("eventdate", table="t", quoted=True)


def windowed(
    cursor: duckdb.DuckDBPyConnection,
    select: exp.Select,
    within: exp.Select,
    events: int,
    sorted_rows: int = SORTED_ROWS,
) -> Iterator[str]:
    """Split a SELECT, which has neither a limit nor an aggregate, into SELECTs that return its rows in turn.

    `within` is the part of it that reads the table, and `events` is the most events that it reads. About `sorted_rows`
    are sorted at once.
    """
    where = within.args["where"].this
    for start, end in pairwise([None, *_bounds(cursor, within, events, sorted_rows), None]):
        first = [] if start is None else [exp.GTE(this=_DATE.copy(), expression=_moment(start))]
        last = [] if end is None else [exp.LT(this=_DATE.copy(), expression=_moment(end))]
        within.set("where", exp.Where(this=exp.and_(where, *first, *last)))
        yield write(select, DuckDBDialect())


def _bounds(cursor: duckdb.DuckDBPyConnection, within: exp.Select, events: int, sorted_rows: int) -> list[int]:
    """Dates in epoch microseconds that split the events of `within` into windows of about `sorted_rows`."""
    if events <= sorted_rows:
        return []
    share = SAMPLED_ROWS / events if events > SAMPLED_ROWS else 1
    sample = exp.Select(from_=within.args["from_"].copy(), where=within.args["where"].copy())
    for table in sample.find_all(exp.Table):
        table.set("sample", exp.TableSample(method=exp.var("SYSTEM"), percent=exp.Literal.number(share * 100)))
    dates = write(sample.select(_DATE.copy()), DuckDBDialect())
    rows = "count(*) OVER () AS rows, row_number() OVER (ORDER BY eventdate) - 1 AS row"
    width = f"greatest({round(sorted_rows * share)}, rows // {MOST_WINDOWS}, 1)"
    bounds = (
        f"SELECT DISTINCT date FROM (SELECT epoch_us(eventdate) AS date, {rows} FROM ({dates})) "
        f"WHERE row > 0 AND row % {width} = 0 ORDER BY date"
    )
    return [date for (date,) in cursor.execute(bounds).fetchall()]


def _moment(microseconds: int) -> exp.Expr:
    return exp.Anonymous(this="make_timestamp", expressions=[exp.Literal.number(microseconds)])
