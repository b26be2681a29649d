"""Charts of rows: one bar per row, or a line over time when the rows begin with a date.

They are drawn here because plotting libraries load slowly, crash on a NaN, or label axes with unrounded numbers. Like
tables, charts know nothing of streams or formats. `chart` chooses what is drawn, `bars` and `series` draw it, `axes`
has the axes of series. In a pipe or a file, a chart is bars of `#` beside their numbers.

A chart over time shows the range that was asked for. A period without rows is a gap, and one that the range cuts, such
as the present hour, is marked: neither may look like an outage, or hide one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from svcctl.errors import UsageError
from svcctl.terminal.charts.bars import bars
from svcctl.terminal.charts.chart import MAX_ROWS, Chart, choose, side_by_side
from svcctl.terminal.charts.series import lines
from svcctl.terminal.layout import NUMERIC, Style, TableColumn


def draw(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style) -> Chart:
    """The chart of some rows: over time when their first column is a date, else one bar per row.

    The measure is the first numeric column that is neither a key of the query nor needed to tell rows apart, so a
    status code names a row and a count measures it. Over time, if only the date names a row, numeric columns of similar
    size are lines of one chart. UsageError when there is no such column, or when there are more than MAX_ROWS rows.
    """
    charted = list(islice(rows, MAX_ROWS + 1))
    if len(charted) > MAX_ROWS:
        measure = next((column.name for column in reversed(columns) if column.type in NUMERIC), None)
        largest = f", or draw the largest with --sort {measure}:desc --top 20" if measure else ""
        raise UsageError(
            f"more than {MAX_ROWS} rows cannot be charted",
            hint=f"group by fewer columns or by longer periods{largest}",
        )
    chosen = choose(columns, charted, style)
    if not charted:
        return Chart([])
    on_screen = style.width is not None or style.color
    return lines(side_by_side(chosen)) if chosen.over_time and on_screen else bars(chosen)
