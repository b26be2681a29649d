"""Charts of rows. A chart has one bar for each row, or lines over time if the first column is a date.

svcctl draws charts itself. The module `chart` chooses the column to draw, `bars` and `series` draw the charts, and
`axes` makes the axes for `series`. In a pipe or a file, every chart is a bar chart, and its bars consist of `#`.

A chart over time covers the whole time range of the query. A period without rows is shown as a gap. A period that is
not complete, such as the present hour, is marked.
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

    On a terminal, a chart whose first column is a date has lines over time. Any other chart has one bar for each row.
    The function `choose` chooses the numeric column to draw. If the date is the only label of the rows, the lines can
    show several numeric columns of similar size. Raises UsageError if no column can be drawn, or if there are more than
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
