"""Charts of rows: one bar per row, or a line over time when the rows begin with a date.

They are drawn here because the libraries for it load slowly, crash on a NaN, or label axes with unrounded numbers. Like
tables, charts know nothing of streams or formats. Without colour a chart is plain text, for pipes, files and plain
terminals: bars of `#` beside their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, islice, pairwise
from typing import Any

from svcctl.errors import UsageError
from svcctl.terminal.tables import (
    EPOCH,
    GAP,
    NUMERIC,
    Style,
    TableColumn,
    bold,
    cell_width,
    cut,
    fill,
    format_cell,
    heading,
)
from svcctl.terminal.visible import joined, styled

MAX_ROWS = 5000
"""More points than this cannot be read, and leaving some out would make the chart wrong."""
MAX_SERIES = 8
WIDTH = 80
"""Width of a chart that is not printed to a terminal; labels are not cut then, and may make it wider."""
NARROWEST_BAR = 10
COLORS = (36, 33, 35, 32, 34, 31, 96, 93)
"""Escape codes of the series, in turn."""

_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille character by row and column of its dots."""
_BRAILLE = 0x2800

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(step * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * _MINUTE for step in (1, 2, 5, 10, 15, 30)),
    *(step * _HOUR for step in (1, 2, 3, 6, 12)),
    *(step * _DAY for step in (1, 2, 7, 14, 28, 56, 112, 224, 448, 896, 3_584, 14_336, 57_344, 229_376)),
)
"""Milliseconds between ticks of the time axis."""
_TICK_CELLS = 10
_DATES = range(-62_000_000_000_000, 253_000_000_000_000)
"""The milliseconds that are dates."""


@dataclass(frozen=True, slots=True)
class Chart:
    lines: list[str]
    notes: list[str] = field(default_factory=list)
    """Remarks on what the chart leaves out."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a chart, the columns that name a row, and the column that measures it."""

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
        return self.style.width or WIDTH

    def title(self) -> str:
        names = ", ".join(heading(self.columns[at], self.style) for at in self.names)
        title = f"{heading(self.columns[self.measure], self.style)} by {names}"
        return bold(_fitted(title, self.style.width), self.style)

    def texts(self, at: int) -> list[str]:
        """The cells of a column."""
        values = [row[at] for row in self.rows]
        fraction = any(isinstance(value, int) and value % 1000 for value in values)
        return [format_cell(value, self.columns[at].type, self.style, fraction=fraction) for value in values]

    def numbers(self) -> list[float | None]:
        """The measure of each row; None if it cannot be drawn."""
        return [_number(row[self.measure]) for row in self.rows]


def draw(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style) -> Chart:
    """The chart of some rows: over time when their first column is a date, else one bar per row.

    The measure is the first number that is not needed to tell the rows apart, so a status code names a row and a count
    measures it. UsageError when there is no such column, or when there are more than MAX_ROWS rows.
    """
    kept = list(islice(rows, MAX_ROWS + 1))
    if len(kept) > MAX_ROWS:
        raise UsageError(
            f"more than {MAX_ROWS} rows cannot be charted",
            hint="group by fewer columns or by longer periods, or use --limit",
        )
    chosen = _choose(columns, kept, style)
    return _lines(chosen) if chosen.over_time and style.color and kept else _bars(chosen)


def _choose(columns: Sequence[TableColumn], rows: Sequence[Sequence[Any]], style: Style) -> _Rows:
    numbers = [at for at, column in enumerate(columns) if column.type in NUMERIC]
    texts = [at for at, column in enumerate(columns) if at not in numbers and (at == 0 or column.type != "timestamp")]
    choices = [
        _Rows(columns, rows, tuple(sorted((*texts, *numbers[:index]))), measure, style)
        for index, measure in enumerate(numbers)
        if texts or index
    ]
    for choice in choices:
        named = {tuple(map(str, (row[at] for at in choice.names))) for row in rows}
        if len(named) == len(rows):
            return choice
    if choices:
        return choices[0]
    there = ", ".join(f"{column.name} ({column.type})" for column in columns)
    raise UsageError(
        f"a chart needs a number and another column that names the rows; the columns are {there or 'none'}",
        hint="group by a column or a period, and select count() as n",
    )


def _number(value: Any) -> float | None:
    """A value as a number that can be drawn; larger ones would overflow the arithmetic."""
    if not isinstance(value, int | float) or not -1e300 < value < 1e300:
        return None
    return value if abs(value) > 1e-300 else 0


# Bars ----------------------------------------------------------------------------------------------------------------


def _bars(chart: _Rows) -> Chart:
    """One line per row: its name, its number and a bar."""
    style, numbers = chart.style, chart.numbers()
    amounts = chart.texts(chart.measure)
    amount_width = max(map(cell_width, amounts), default=0)
    labels = _labels(chart)
    label_width = max(map(cell_width, labels), default=0)
    shortened = 0
    if style.width is not None:
        most = max(1, style.width - amount_width - 2 * len(GAP) - NARROWEST_BAR)
        shortened = sum(cell_width(label) > most for label in labels)
        label_width = min(label_width, most)
    room = max(NARROWEST_BAR, chart.width - label_width - amount_width - 2 * len(GAP))
    known = [number for number in numbers if number is not None]
    scale = _Scale(min((0, *known)), max((0, *known)), room)
    lines = [chart.title()]
    for label, amount, number in zip(labels, amounts, numbers, strict=True):
        bar = "" if number is None else _bar(number, scale, fancy=style.color)
        named = f"{fill(_fitted(label, label_width), label_width)}{GAP}{fill(amount, amount_width, right=True)}"
        lines.append(joined(named, GAP, _colored(bar, 0, style)) if bar else named.rstrip())
    return Chart(
        lines,
        [f"labels that were cut to fit: {shortened} (see them whole with --format vertical or csv)"]
        if shortened
        else [],
    )


def _labels(chart: _Rows) -> list[str]:
    """The names of each row, side by side and aligned."""
    columns = [chart.texts(at) for at in chart.names]
    widths = [max(map(cell_width, texts), default=0) for texts in columns]
    return [
        GAP.join(fill(text, width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Numbers from `low` (0 or below) to `high` (0 or above) spread over some cells; zero comes after `before`."""

    low: float
    high: float
    cells: int

    @property
    def before(self) -> int:
        return min(round(self.length(self.low)), self.cells - (self.high > 0))

    def length(self, number: float) -> float:
        """The cells that a distance takes."""
        return abs(number) / (self.high - self.low) * self.cells if number else 0.0


def _bar(number: float, scale: _Scale, *, fancy: bool) -> str:
    """A bar from zero, to the left for negative numbers; only zero itself has no bar."""
    if not number:
        return ""
    if number < 0:
        cells = min(scale.before, max(1, round(scale.length(number))))
        return " " * (scale.before - cells) + ("█" if fancy else "#") * cells
    length = min(scale.length(number), scale.cells - scale.before)
    if not fancy:
        return " " * scale.before + "#" * max(1, round(length))
    whole, eighths = divmod(max(1, round(length * 8)), 8)
    return " " * scale.before + "█" * whole + _EIGHTHS[eighths]


# Lines over time -----------------------------------------------------------------------------------------------------

_Points = list[tuple[int, float]]


def _lines(chart: _Rows) -> Chart:
    """One line per series on a grid of dots, with a value axis, a time axis and a legend.

    Only neighbouring periods are joined: where nothing happened there is no group, and a line would make something up.
    """
    series, notes = _series(chart)
    points = [point for each in series.values() for point in each]
    if not points:
        return _bars(chart)
    rows = max(8, min(20, chart.width // 5))
    low, high, step = _value_axis([number for _, number in points], rows)
    ticks = {row: _short(low + index * step) for index, row in _value_rows(low, high, step, rows)}
    margin = max(map(len, ticks.values()))
    times = [time for time, _ in points]
    period = min((later - earlier for earlier, later in pairwise(sorted(set(times)))), default=0)
    grid = _Grid(max(1, chart.width - margin - 1), rows, min(times), max(times), low, high)
    for index, each in enumerate(series.values()):
        for place in each:
            grid.line(place, place, index)
        for earlier, later in pairwise(each):
            if 0 < later[0] - earlier[0] <= period:
                grid.line(earlier, later, index)
    lines = [chart.title(), *_legend(list(series), chart)]
    for row, drawn in enumerate(grid.rows(chart.style)):
        lines.append(joined(f"{ticks.get(row, ''):>{margin}}{'┤' if row in ticks else '│'}", drawn))
    lines += (" " * margin + line for line in _time_axis(grid, chart.style))
    return Chart(lines, notes)


def _series(chart: _Rows) -> tuple[Mapping[str, _Points], list[str]]:
    """The points by series, ordered by time, and notes; of too many series only the largest are kept."""
    others = [chart.texts(at) for at in chart.names if at != 0]
    labels = [", ".join(parts) for parts in zip(*others, strict=True)] if others else [""] * len(chart.rows)
    series: dict[str, _Points] = {}
    for row, label, number in zip(chart.rows, labels, chart.numbers(), strict=True):
        if number is not None and isinstance(row[0], int) and row[0] in _DATES:
            series.setdefault(label, []).append((row[0], number))
    for points in series.values():
        points.sort(key=lambda point: point[0])
    if len(series) <= MAX_SERIES:
        return series, []
    largest = sorted(series, key=lambda label: -sum(abs(number) for _, number in series[label]))[:MAX_SERIES]
    note = f"the chart shows the {MAX_SERIES} of {len(series)} series with the largest sums"
    return {label: points for label, points in series.items() if label in largest}, [note]


@dataclass(slots=True)
class _Grid:
    """Braille cells of two by four dots; a cell has the colour of the series drawn in it last."""

    width: int
    height: int
    start: int
    end: int
    low: float
    high: float
    cells: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(row, column) -> (bits, series)"""

    def column(self, time: int) -> int:
        """The column of dots of a moment."""
        return round((time - self.start) / ((self.end - self.start) or 1) * (2 * self.width - 1))

    def row(self, number: float) -> int:
        """The row of dots of a value."""
        return round((self.high - number) / (self.high - self.low) * (4 * self.height - 1))

    def line(self, one: tuple[int, float], other: tuple[int, float], series: int) -> None:
        x, y = self.column(one[0]), self.row(one[1])
        across, down = self.column(other[0]) - x, self.row(other[1]) - y
        steps = max(abs(across), abs(down), 1)
        for step in range(steps + 1):
            self._dot(x + round(across * step / steps), y + round(down * step / steps), series)

    def _dot(self, x: int, y: int, series: int) -> None:
        place = (y // 4, x // 2)
        bits, _ = self.cells.get(place, (0, -1))
        self.cells[place] = (bits | _DOTS[y % 4][x % 2], series)

    def rows(self, style: Style) -> Iterator[str]:
        """The lines of cells, without blanks at their ends."""
        for row in range(self.height):
            drawn = [column for _, column in (place for place in self.cells if place[0] == row)]
            cells = [self.cells.get((row, column), (0, -1)) for column in range(max(drawn, default=-1) + 1)]
            yield joined(
                *(
                    _colored("".join(chr(_BRAILLE + bits) if bits else " " for bits, _ in same), series, style)
                    for series, same in groupby(cells, key=lambda cell: cell[1])
                )
            )


def _value_axis(numbers: Sequence[float], rows: int) -> tuple[float, float, float]:
    """Bounds and step of the value axis: round numbers that include zero, unless all values are close together."""
    low, high = min(numbers), max(numbers)
    spread = high - low > 1e-6 * max(abs(low), abs(high))
    far_above, far_below = spread and low > high / 2 > 0, spread and high < low / 2 < 0
    if not far_above:
        low = min(low, 0)
    if not far_below:
        high = max(high, 0)
    if low == high:
        high = 1
    rough = (high - low) / max(2, rows // 4)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step


def _value_rows(low: float, high: float, step: float, rows: int) -> Iterator[tuple[int, int]]:
    """The ticks of the value axis, each with its row of cells."""
    for index in range(round((high - low) / step) + 1):
        yield index, round((high - low - index * step) / (high - low) * (4 * rows - 1)) // 4


def _short(number: float) -> str:
    """A number in few characters: 1500, 20k, 1.5M."""
    if number and not 1e-3 <= abs(number) < 1e15:
        return f"{number:.2g}"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 10_000 and abs(number) >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.4g}"


def _time_axis(grid: _Grid, style: Style) -> Iterator[str]:
    """The line below the grid with its ticks, their times, and the dates where the date changes."""

    def moment(time: int) -> datetime:
        return (EPOCH + timedelta(milliseconds=time)).astimezone(style.zone)

    span = (grid.end - grid.start) or 1
    step = next((step for step in _STEPS if step / span * grid.width >= _TICK_CELLS), _STEPS[-1])
    fine, coarse = ("%m-%d", "%Y") if step >= _DAY else ("%H:%M" if step >= _MINUTE else "%H:%M:%S", "%Y-%m-%d")
    offset = moment(grid.start).utcoffset() or timedelta()
    shift = offset // timedelta(milliseconds=1)
    first = -(-(grid.start + shift) // step) * step - shift
    ticks = [(grid.column(time) // 2 + 1, moment(time)) for time in range(first, grid.end + 1, step)]
    if not ticks:
        ticks = [(1, moment(grid.start))]
        fine = "%H:%M:%S"
    rule = ["─"] * grid.width
    for column, _ in ticks:
        rule[column - 1] = "┬"
    yield "└" + "".join(rule)
    yield _placed(((column, time.strftime(fine)) for column, time in ticks), grid.width + 1)
    days = [time.strftime(coarse) for _, time in ticks]
    changes = [index for index, day in enumerate(days) if index == 0 or day != days[index - 1]]
    yield _placed(((ticks[index][0], days[index]) for index in changes), grid.width + 1)


def _placed(texts: Iterable[tuple[int, str]], width: int) -> str:
    """Texts at their columns, moved left at the end of the line and dropped when there is no room."""
    line = ""
    for column, text in texts:
        at = min(column, width - len(text))
        if at > len(line) or (at >= 0 and not line):
            line = line.ljust(at) + text
    return line


def _legend(labels: Sequence[str], chart: _Rows) -> Iterator[str]:
    """The series and their colours, as many per line as fit; nothing for a single series without a name."""
    line, used = "", 0
    for index, label in enumerate(labels if any(labels) else ()):
        shown = _fitted(label, chart.width - 2)
        cells = cell_width(shown) + 2
        if line and used + len(GAP) + cells > chart.width:
            yield line
            line, used = "", 0
        line = joined(line, GAP if line else "", _colored("●", index, chart.style), " ", shown)
        used += (len(GAP) if used else 0) + cells
    if line:
        yield line


def _fitted(text: str, width: int | None) -> str:
    return text if width is None or cell_width(text) <= width else cut(text, width)


def _colored(text: str, series: int, style: Style) -> str:
    return styled(COLORS[series % len(COLORS)], text) if style.color and text.strip() else text
