"""Charts of rows. A chart has one bar for each row, or lines over time if the first column is a date.

svcctl draws charts itself, because plotting libraries load slowly, crash on NaN, or label axes with numbers that are
not round. Like tables, charts do not know streams or output formats. The module `chart` chooses the column to draw,
`bars` and `series` draw the charts, and `axes` has the axes for `series`. In a pipe or a file, every chart is a bar
chart. Its bars consist of `#`, and each bar is next to its number.

A chart over time covers the whole range of the query. A period without rows is shown as a gap, so an outage is visible.
A period that is only partly inside the range, such as the present hour, is marked, so that its low value does not look
like an outage.
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
    """Draw a chart of rows.

    If the first column is a date, the chart is over time. Otherwise the chart has one bar for each row. The measure is
    the column that is drawn: the first numeric column by which the rows are not grouped, and which is not needed to
    distinguish the rows. For example, a status code names a row, and a count measures the row. If the rows of a chart
    over time have no name except their date, all numeric columns of similar size are drawn as lines. Raises UsageError
    if there is no measure, or if there are more than MAX_ROWS rows.
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
