"""Windows of dates with few events each, so that an answer can be sorted one window after the other.

One sort of all would hold the whole answer, and give nothing of it until the last event is read. Windows are chosen by
a sample: how many rows one has is about right, and which rows come in which order does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import duckdb
from sqlglot import exp

from svcctl.service.engines.duckdb.dialect import DuckDBDialect
from svcctl.service.language.dialect import write

SORTED_ROWS = 250_000
"""About so many rows are sorted at once, unless more have one date: some 50 MB."""
MOST_WINDOWS = 40
"""No more windows than that: each reads the parts of a file anew in which its events lie among others."""
SAMPLED_ROWS = 500_000
"""So many events are looked at: 244 of DuckDB's vectors, a matter of milliseconds."""
_DATE = exp.column("eventdate", table="t", quoted=True)


def windowed(
    cursor: duckdb.DuckDBPyConnection,
    select: exp.Select,
    within: exp.Select,
    events: int,
    sorted_rows: int = SORTED_ROWS,
) -> Iterator[str]:
    """SELECTs that give the rows of one, which has neither a limit nor an aggregate, one after the other.

    `within` is the part of it that reads events, and `events` says how many it reads at most. About
    `sorted_rows` are sorted at once.
    """
    where = within.args["where"].this
    for start, end in pairwise([None, *_bounds(cursor, within, events, sorted_rows), None]):
        first = [] if start is None else [exp.GTE(this=_DATE.copy(), expression=_moment(start))]
        last = [] if end is None else [exp.LT(this=_DATE.copy(), expression=_moment(end))]
        within.set("where", exp.Where(this=exp.and_(where, *first, *last)))
        yield write(select, DuckDBDialect())


def _bounds(cursor: duckdb.DuckDBPyConnection, within: exp.Select, events: int, sorted_rows: int) -> list[int]:
    """The dates, in epoch microseconds, between which about `sorted_rows` of the events lie that are kept."""
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
