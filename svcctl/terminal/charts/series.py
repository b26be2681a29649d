"""Charts over time. Each series is a line on a grid of characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from svcctl.terminal.charts.axes import short, time_axis, value_axis, value_rows
from svcctl.terminal.charts.bars import bars
from svcctl.terminal.charts.chart import CUT_SHORT, Chart, ChartRows, colored_text, fitted_text
from svcctl.terminal.escapes import joined
from svcctl.terminal.layout import COLUMN_GAP, Style, cell_width
from svcctl.terminal.selection import rank

MAX_SERIES = 8
MARKERS = {True: "●■▲◆▼★◀▶", False: "ABCDEFGH"}
"""The markers of the series, with Unicode glyphs (True) or without them (False).

The markers distinguish the series even without colours.
"""
CUT = {True: "○", False: "o"}
"""The marker of an incomplete period, with Unicode glyphs (True) or without them (False). No line leads to this marker.
"""
MARKER_CELLS = 12
"""The smallest distance between two markers of a series, in cells."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille character, by the row and the column of the dot."""
_BRAILLE = 0x2800
_DATES = range(-62_000_000_000_000, 253_000_000_000_000)
"""The range of epoch milliseconds that can be shown as dates."""

_Points = list[tuple[int, float]]


def lines(chart: ChartRows) -> Chart:
    """Draw a chart with one line for each series, a value axis, a time axis and a legend.

    A line joins only adjacent periods. A period without rows is a gap in the line.
    """
    series, notes = _series(chart)
    points = [point for line_points in series.values() for point in line_points]
    if not points:
        return bars(chart)
    glyphs = chart.style.glyphs
    rows = max(8, min(20, chart.width // 5))
    low, high, step = value_axis([number for _, number in points], rows)
    ticks = {row: short(low + index * step) for index, row in value_rows(low, high, step, rows)}
    margin = max(map(len, ticks.values()))
    times = sorted({time for time, _ in points})
    start, end = _bounds(chart, times)
    period = chart.every or min((later - earlier for earlier, later in pairwise(times)), default=0)
    grid = Grid(max(1, chart.width - margin - 1), rows, start, end, low, high, glyphs)
    cut = False
    for index, line_points in enumerate(series.values()):
        whole = [point for point in line_points if not chart.cuts(point[0])]
        alone = dict.fromkeys(whole)
        for earlier, later in pairwise(whole):
            if 0 < later[0] - earlier[0] <= period:
                grid.line(earlier, later, index)
                alone.pop(earlier, None)
                alone.pop(later, None)
        for point in alone:  # without a marker, a single dot would hardly be visible
            grid.sign(point, MARKERS[glyphs][index], index)
        if len(series) > 1:
            grid.mark(whole, MARKERS[glyphs][index], index)
        for point in line_points:
            if chart.cuts(point[0]):
                grid.sign(point, CUT[glyphs], index)
                cut = True
    drawn = [chart.title(), *_legend(list(series), chart)]
    if cut:
        drawn.append(fitted_text(f"{CUT[glyphs]} {CUT_SHORT}", chart.width))
    for row, cells in enumerate(grid.rows(chart.style)):
        edge = ("┤│" if glyphs else "+|")[row not in ticks]
        drawn.append(joined(f"{ticks.get(row, ''):>{margin}}{edge}", cells))
    drawn += (" " * margin + line for line in time_axis(start, end, grid.width, chart.style))
    return Chart(drawn, [*notes, *chart.notes()])


def _bounds(chart: ChartRows, times: Sequence[int]) -> tuple[int, int]:
    """Return the start and the end of the time axis. The axis covers the range of the query and all points."""
    span = chart.style.span
    if span is None:
        return times[0], times[-1]
    start = span.start // chart.every * chart.every if chart.every else span.start
    return min(start, times[0]), max(span.end, times[-1])


def _series(chart: ChartRows) -> tuple[Mapping[str, _Points], list[str]]:
    """Return the points of each series in chronological order, and a note if some series are left out.

    If there are too many series, only the largest series are kept. If the rows are in chronological order, the series
    are sorted by name. Otherwise, the series keep the order of the rows.
    """
    keys = [at for at in chart.names if at != 0]
    others = [chart.texts(at) for at in keys]
    labels = [", ".join(parts) for parts in zip(*others, strict=True)] if others else [""] * len(chart.rows)
    series: dict[str, _Points] = {}
    ranks: dict[str, list[object]] = {}
    times: list[int] = []
    for row, label, number in zip(chart.rows, labels, chart.numbers(), strict=True):
        if number is not None and isinstance(row[0], int) and row[0] in _DATES:
            series.setdefault(label, []).append((row[0], number))
            ranks.setdefault(label, [rank(row[at], chart.columns[at].type) for at in keys])
            times.append(row[0])
    if times == sorted(times):
        series = dict(sorted(series.items(), key=lambda item: ranks[item[0]]))
    for points in series.values():
        points.sort(key=lambda point: point[0])
    if len(series) <= MAX_SERIES:
        return series, []
    largest = sorted(series, key=lambda label: -sum(abs(number) for _, number in series[label]))[:MAX_SERIES]
    note = f"the chart shows the {MAX_SERIES} of {len(series)} series with the largest sums"
    return {label: points for label, points in series.items() if label in largest}, [note]


@dataclass(slots=True)
class Grid:
    """The grid of a chart. A cell has four rows of two Braille dots.

    Without Unicode glyphs, a cell has a single character instead of the dots. A cell has the colour of the last series
    that was drawn in it.
    """

    width: int
    height: int
    start: int
    end: int
    low: float
    high: float
    glyphs: bool
    cells: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """For each (row, column): the bits of the Braille dots in the cell, and the index of the series."""
    signs: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    """For each (row, column) with a sign instead of dots: the sign, and the index of the series."""

    def place(self, point: tuple[int, float]) -> tuple[int, int]:
        """Return the row and the column of a point in the grid, counted in dots."""
        across, down = (2, 4) if self.glyphs else (1, 1)
        time, number = point
        return (
            round((self.high - number) / (self.high - self.low) * (down * self.height - 1)),
            round((time - self.start) / ((self.end - self.start) or 1) * (across * self.width - 1)),
        )

    def cell(self, point: tuple[int, float]) -> tuple[int, int]:
        """Return the row and the column of a point in the grid, counted in cells."""
        y, x = self.place(point)
        return (y // 4, x // 2) if self.glyphs else (y, x)

    def line(self, start: tuple[int, float], end: tuple[int, float], series: int) -> None:
        """Draw a line of a series between two points."""
        (y, x), (to_y, to_x) = self.place(start), self.place(end)
        across, down = to_x - x, to_y - y
        steps = max(abs(across), abs(down), 1)
        for step in range(steps + 1):
            self._dot(x + round(across * step / steps), y + round(down * step / steps), series)

    def mark(self, points: _Points, sign: str, series: int) -> None:
        """Put the marker of a series on one or more points of the series.

        Two markers of a series are at least MARKER_CELLS cells apart.
        """
        free = series * MARKER_CELLS // MAX_SERIES
        placed = False
        for point in points:
            cell = self.cell(point)
            if cell[1] >= free and cell not in self.signs:
                self.signs[cell] = sign, series
                free, placed = cell[1] + MARKER_CELLS, True
        if points and not placed:
            self.sign(points[-1], sign, series)

    def sign(self, point: tuple[int, float], sign: str, series: int) -> None:
        """Show the character `sign` at a point, in the colour of a series."""
        self.signs[self.cell(point)] = sign, series

    def _dot(self, x: int, y: int, series: int) -> None:
        if not self.glyphs:
            self.cells[y, x] = 1, series
            return
        bits, _ = self.cells.get((y // 4, x // 2), (0, -1))
        self.cells[y // 4, x // 2] = bits | _DOTS[y % 4][x % 2], series

    def rows(self, style: Style) -> Iterator[str]:
        """Yield the lines of the grid as texts, without trailing blanks."""
        drawn = {place: (self._shown(bits, series), series) for place, (bits, series) in self.cells.items()}
        drawn |= self.signs
        for row in range(self.height):
            last = max((column for at, column in drawn if at == row), default=-1)
            cells = [drawn.get((row, column), (" ", -1)) for column in range(last + 1)]
            yield joined(
                *(
                    colored_text("".join(sign for sign, _ in same), series, style)
                    for series, same in groupby(cells, key=lambda cell: cell[1])
                )
            )

    def _shown(self, bits: int, series: int) -> str:
        return chr(_BRAILLE + bits) if self.glyphs else MARKERS[False][series].lower()


def _legend(labels: Sequence[str], chart: ChartRows) -> Iterator[str]:
    """Yield the lines of the legend, which has the name, the marker and the colour of each series.

    If the only series has no name, there is no legend.
    """
    line, line_cells = "", 0
    for index, label in enumerate(labels if any(labels) else ()):
        text = fitted_text(label, chart.width - 2)
        cells = cell_width(text) + 2
        if line and line_cells + len(COLUMN_GAP) + cells > chart.width:
            yield line
            line, line_cells = "", 0
        sign = colored_text(MARKERS[chart.style.glyphs][index], index, chart.style)
        line = joined(line, COLUMN_GAP if line else "", sign, " ", text)
        line_cells += (len(COLUMN_GAP) if line_cells else 0) + cells
    if line:
        yield line
