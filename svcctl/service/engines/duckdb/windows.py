"""Splits a query into windows, which are ranges of dates with few events. Each window is sorted separately.

A single sort would hold all rows in memory, and would return the first row only after reading the last event. A sample
of the events determines the windows, so the windows have only approximately the same number of rows. The order of the
rows does not depend on the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import duckdb
from sqlglot import exp

from svcctl.service.engines.duckdb.dialect import DuckDBDialect
from svcctl.service.language.dialect import write

SORTED_ROWS = 250_000
"""The approximate number of rows that are sorted at once. These rows need about 50 MB.

Rows with the same date are always sorted together.
"""
MOST_WINDOWS = 40
"""The maximum number of windows."""
SAMPLED_ROWS = 500_000
"""The number of events in the sample. Reading the sample takes milliseconds."""
_DATE = exp.column("eventdate", table="t", quoted=True)


def windowed(
    cursor: duckdb.DuckDBPyConnection,
    select: exp.Select,
    within: exp.Select,
    events: int,
    sorted_rows: int = SORTED_ROWS,
) -> Iterator[str]:
    """Split a SELECT into several SELECTs. The SELECT must have no limits and no aggregates.

    Together, the new SELECTs return the rows of the SELECT in order. `within` is the part of the SELECT that reads the
    table. This part reads at most `events` events. About `sorted_rows` rows are sorted at once.
    """
    where = within.args["where"].this
    for start, end in pairwise([None, *_bounds(cursor, within, events, sorted_rows), None]):
        first = [] if start is None else [exp.GTE(this=_DATE.copy(), expression=_moment(start))]
        last = [] if end is None else [exp.LT(this=_DATE.copy(), expression=_moment(end))]
        within.set("where", exp.Where(this=exp.and_(where, *first, *last)))
        yield write(select, DuckDBDialect())


def _bounds(cursor: duckdb.DuckDBPyConnection, within: exp.Select, events: int, sorted_rows: int) -> list[int]:
    """Return the dates that separate the windows, in epoch microseconds.

    A window has about `sorted_rows` events. If more than MOST_WINDOWS windows would be necessary, each window has more
    events.
    """
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
