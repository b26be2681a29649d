"""The rows of a chart, and the choice of the column to draw and of the columns that label the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from svcctl.errors import UsageError
from svcctl.terminal.escapes import styled
from svcctl.terminal.layout import NUMERIC, Style, TableColumn, bold, cell_width, cut, format_cell, heading
from svcctl.words import counted, some

MAX_ROWS = 5000
"""The maximum number of rows of a chart. Nobody could read a chart with more rows."""
DEFAULT_CHART_CELLS = 80
"""The width in cells of a chart that is not printed to a terminal. Long labels make the chart wider."""
COLORS = (36, 35, 32, 31, 94, 33)
"""The colour codes for the series of a chart, in the order of use.

All of these colours are visible on light and dark backgrounds.
"""
MAX_DRAWN_NUMBER = 1e305
"""Numbers of this size or larger are not drawn, because calculations with them could overflow."""
SIMILAR = 40
"""The largest ratio between the sizes of two series in one chart.

With a larger ratio, the smaller series would look flat.
"""
CUT_SHORT = "incomplete period"


@dataclass(frozen=True, slots=True)
class Chart:
    lines: list[str]
    notes: list[str] = field(default_factory=list)
    """Notes on values and columns that are not in the chart."""


@dataclass(frozen=True, slots=True)
class ChartRows:
    """The rows of a chart.

    `names` are the indices of the columns that label the rows, such as a date or a user. `measure` is the index of the
    column to draw.
    """

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Any]]
    names: tuple[int, ...]
    measure: int
    style: Style

    @property
    def over_time(self) -> bool:
        return self.columns[0].type == "timestamp"

    @property
    def width(self) -> int:
        return self.style.width or DEFAULT_CHART_CELLS

    def title(self) -> str:
        names = ", ".join(heading(self.columns[at], self.style) for at in self.names if self.columns[at].name)
        title = f"{heading(self.columns[self.measure], self.style)} by {names}"
        return bold(fitted_text(title, self.style.width), self.style)

    def texts(self, at: int) -> list[str]:
        """Return the values of the column at the index `at` as texts."""
        values = [row[at] for row in self.rows]
        fraction = any(isinstance(value, int) and value % 1000 for value in values)
        return [format_cell(value, self.columns[at].type, self.style, fraction=fraction) for value in values]

    def numbers(self) -> list[float | None]:
        """Return the number to draw for each row; None for a value that cannot be drawn."""
        return [number_of(row[self.measure]) for row in self.rows]

    def notes(self) -> list[str]:
        """Return notes on values that cannot be drawn, and on numeric columns that are not drawn."""
        values = [row[self.measure] for row in self.rows]
        count = sum(value is not None and number_of(value) is None for value in values)
        what = counted(count, "value is not a number or is too large", "values are not numbers or are too large")
        notes = [f"{what} to draw"] if count else []
        drawn_columns = (*self.names, self.measure)
        others = [
            column.name for at, column in enumerate(self.columns) if column.type in NUMERIC and at not in drawn_columns
        ]
        if others:
            drawn = ",".join(filter(None, (self.columns[at].name for at in self.names)))
            what = "it" if len(others) == 1 else others[0]
            notes.append(f"not drawn: {', '.join(others)} (--columns {drawn},{others[0]} draws {what})")
        return notes

    @property
    def every(self) -> int | None:
        """The length of the periods by which the rows are grouped, in milliseconds; None if the length is not known."""
        return self.style.span.every if self.over_time and self.style.span else None

    def cuts(self, time: Any) -> bool:
        """Return whether the period that begins at `time` is partly outside the range, or has not ended yet."""
        span, every = self.style.span, self.every
        if span is None or every is None or not isinstance(time, int):
            return False
        return time < span.start or time + every > min(span.end, span.now)


def choose(columns: Sequence[TableColumn], rows: Sequence[Sequence[Any]], style: Style) -> ChartRows:
    """Choose the column to draw, and the columns that label the rows.

    The drawn column is numeric. A numeric column by which the rows are grouped is drawn only if there is no other
    numeric column. Otherwise, it is a label of the rows. The other labels are the columns that are not numeric, and the
    numeric columns before the drawn column. A date is a label only if it is the first column. Raises UsageError if no
    column is numeric, or if no other column can label the rows.
    """
    numbers = [at for at, column in enumerate(columns) if column.type in NUMERIC]
    numbers = [at for at in numbers if columns[at].name not in style.keys] or numbers
    texts = [at for at, column in enumerate(columns) if at not in numbers and (at == 0 or column.type != "timestamp")]
    choices = [
        ChartRows(columns, rows, tuple(sorted((*texts, *numbers[:index]))), measure, style)
        for index, measure in enumerate(numbers)
        if texts or index
    ]
    for choice in choices:  # take the first column for which no two rows have the same labels
        row_names = {tuple(map(str, (row[at] for at in choice.names))) for row in rows}
        if len(row_names) == len(rows):
            return choice
    if choices:
        return choices[0]
    there = some([f"{column.name} ({column.type})" for column in columns])
    raise UsageError(
        f"a chart needs a number and another column that names the rows; the columns are {there or 'none'}",
        hint="group by a column or a period, and select count() as n",
    )


def side_by_side(chart: ChartRows) -> ChartRows:
    """Return a chart that draws several numeric columns as series, if their numbers are of similar size.

    The chart is returned unchanged if the date is not the only label of its rows, or if fewer than two columns are of
    similar size. Notes of the new chart name the numeric columns that are not drawn.
    """
    numbers = [at for at, column in enumerate(chart.columns) if column.type in NUMERIC]
    if chart.names != (0,) or len(numbers) < 2:
        return chart
    sizes = {at: max((abs(number_of(row[at]) or 0) for row in chart.rows), default=0) for at in numbers}
    first = sizes[chart.measure]
    drawn = [at for at in numbers if not 0 < min(first, sizes[at]) * SIMILAR < max(first, sizes[at])]
    if len(drawn) < 2:
        return chart
    left_out = [at for at in numbers if at not in drawn]
    measure = ", ".join(chart.columns[at].name for at in drawn)
    return replace(
        chart,
        columns=[
            chart.columns[0],
            TableColumn("", "str"),
            TableColumn(measure, "float8"),
            *(chart.columns[at] for at in left_out),
        ],
        rows=[
            (row[0], chart.columns[at].name, row[at], *(row[other] for other in left_out))
            for at in drawn
            for row in chart.rows
        ],
        names=(0, 1),
        measure=2,
    )


def number_of(value: Any) -> float | None:
    """Convert a value to a number that can be drawn. Returns None if this is not possible."""
    if not isinstance(value, int | float) or not -MAX_DRAWN_NUMBER < value < MAX_DRAWN_NUMBER:
        return None
    return value if abs(value) > 1e-300 else 0


def fitted_text(text: str, width: int | None) -> str:
    """Cut a text to a width in cells. If the width is None, the text is unchanged."""
    return text if width is None or cell_width(text) <= width else cut(text, width, "…")


def colored_text(text: str, series: int, style: Style) -> str:
    """Return a text in the colour of a series, if the style has colours."""
    return styled(COLORS[series % len(COLORS)], text) if style.color and text.strip() else text
