"""Charts of rows: one bar for each row, or lines over time if the rows begin with a date.

They are drawn here because plotting libraries load slowly, crash on NaN, or label axes with numbers that are not round.
Like tables, charts do not know streams or formats. The module `chart` chooses the measure, `bars` and `series` draw,
and `axes` has the axes of series. In a pipe or a file, a chart is bars of `#` next to their numbers.

A chart over time covers the whole range of the query. A period without rows is a gap, and a period only partly inside
the range, such as the present hour, is marked. Neither may look like an outage, or hide one.
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
    """Draw a chart of rows: over time if their first column is a date, otherwise one bar for each row.

    The measure is the first numeric column that is neither a key of the query nor needed to tell rows apart: a status
    code names a row, and a count measures it. In a chart over time whose rows are named by the date alone, numeric
    columns of similar size become lines of one chart. UsageError if there is no measure, or if there are more than
    MAX_ROWS rows.
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
